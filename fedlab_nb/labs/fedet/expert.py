"""Who is the expert? What each client predicts for one sample, how much its vote counts, and the
consensus of all clients (Fed-ET).
"""

from statistics import mean
from typing import Any, NamedTuple

import ipywidgets as widgets
import numpy as np
from scipy.special import softmax

from ...data import load
from ...methods.fedet.consensus import Consensus
from ...panels import LabView, PanelState, make_widget
from ...panels.sliders import FineLogSlider
from ...plots import (
    Picture,
    capitalize_first_letter,
    describe_seeds,
    format_count_and_noun,
    format_percent,
)
from ...plots.array_types import SampleIndices
from ...plots.words import format_client_for_sentence, shorten_labels
from ..array_types import NumberPerClient
from ..one_sample import SampleOutputs, draw_sample_with_outputs_and_answers
from ..runs import describe_setting
from .votes import (
    compute_consensus_accuracy,
    compute_consensus_of_logits,
    compute_consensus_on_test_samples,
    get_weighting_and_temperature,
)

KINDS = (
    ("test, all", "all"),
    ("test, wrong", "wrong"),
    ("test, agreed", "agreed"),
    ("test, disputed", "disputed"),
    ("public", "public"),
)
RULES = (
    ("softmax (paper)", "softmax"),
    ("raw logits", "logit-variance"),
    ("raw logits, summed", "logits"),
    ("equal", "uniform"),
)
MIN_TEMPERATURE = 0.1
MAX_TEMPERATURE = 100


class SampleSource(NamedTuple):
    """One test sample or public sample.

    name:          such as "test sample 17"
    x:             the sample
    truth:         its class; None for a public sample
    logits:        `[m, C]`, of the clients
    server_logits: `[C]`, of the server
    """

    name: str
    x: np.ndarray
    truth: int | None
    logits: np.ndarray
    server_logits: np.ndarray


class OneSampleVoteView(LabView):
    """One sample: each client's output and weight, which clients dissent, the consensus, and the
    server's answer.
    """

    name, title, ready = "expert", "Who is the expert?", "live"
    summary = "Then this shows one sample: what each client says of it, and how much that counts."
    _outcome: Any = None  # the outcome that was drawn last

    def __init__(self) -> None:
        self.kind = make_widget(
            widgets.Dropdown,
            label="Samples",
            help="All samples, those where the consensus is wrong, least or most dissent first, or "
            "public ones",
            width=180,
            options=KINDS,
        )
        self.at = make_widget(
            widgets.IntSlider,
            label="Sample",
            help="Go from sample to sample",
            width=150,
            max=0,
            readout=False,
        )
        self.rule = make_widget(
            widgets.Dropdown,
            label="Weights",
            help="What makes the weights",
            width=175,
            options=RULES,
        )
        self.heat = make_widget(
            FineLogSlider,
            label="τ",
            help="Temperature of the weights. Only softmax has one",
            width=150,
            value=1.0,
            min=-1,
            max=2,
            step=0.05,
            readout_format=".2g",
        )

    def _shows_test_samples(self, state: PanelState) -> bool:
        """Whether test samples are shown, whose classes are known. Otherwise public ones are."""
        return state.outcome is not None and self.kind.value != "public"

    def _compute_consensus_by_chosen_weights(self, state: PanelState) -> Consensus:
        report = state.report
        logits = report.test_logits if self._shows_test_samples(state) else report.logits
        return compute_consensus_of_logits(logits, self.rule.value, self.heat.value)

    def _select_sample_indices(self, state: PanelState) -> SampleIndices:
        """Select the samples that the slider goes through: those of the chosen kind, or all if
        there are none. The kinds "agreed" and "disputed" are sorted by dissent.
        """
        vote = self._compute_consensus_by_chosen_weights(state)
        dissent = vote.mass.numpy()
        labels = vote.labels.numpy()
        classes = labels
        is_selected = np.ones(len(dissent), dtype=bool)
        order = np.arange(len(dissent))
        if self._shows_test_samples(state):
            classes = state.report.test_truth
            kind = self.kind.value
            if kind == "wrong":
                is_selected = labels != classes
            elif kind == "agreed":
                order = np.argsort(dissent, kind="stable")
            elif kind == "disputed":
                order = np.argsort(-dissent, kind="stable")
        is_of_class = is_selected & (classes == state.class_index)
        if is_of_class.any():
            is_selected = is_of_class
        if not is_selected.any():
            return order
        return order[is_selected[order]]

    def adapt(self, state: PanelState) -> None:
        """Take over the weighting and the temperature of a new outcome, and the number of its
        samples.
        """
        if state.outcome is not None and state.outcome is not self._outcome:
            self._outcome = state.outcome
            rule, temperature = get_weighting_and_temperature(state.outcome.options)
            self.rule.value = rule
            self.heat.value = min(max(temperature, MIN_TEMPERATURE), MAX_TEMPERATURE)
        self.heat.disabled = self.rule.value != "softmax"
        self.at.max = len(self._select_sample_indices(state)) - 1

    def draw(self, state: PanelState) -> Picture:
        report = state.report
        vote = self._compute_consensus_by_chosen_weights(state)
        row = int(self._select_sample_indices(state)[self.at.value])
        source = self._get_sample_source(state, row)
        sample = SampleOutputs(
            x=source.x,
            name=source.name,
            truth=source.truth,
            outputs=vote.outputs[:, row].numpy(),
            answers={
                "consensus": vote.distribution[row].numpy(),
                "server": softmax(source.server_logits),
            },
            disagrees=vote.dissent[:, row].numpy(),
            client_numbers=self._compute_client_numbers_by_title(state, source, vote, row),
            members=report.members.tolist(),
            names=state.class_names,
            setting=describe_setting(state),
            client=state.client,
            class_index=state.class_index,
        )
        detail = describe_dissent_and_selected_or_heaviest_client(sample)
        detail += self._describe_consensus_on_all_test_samples(state)
        return draw_sample_with_outputs_and_answers(
            sample,
            "What each client says, in %",
            describe_consensus_and_server_answer(sample),
            detail,
        )

    def _get_sample_source(self, state: PanelState, sample_row: int) -> SampleSource:
        report = state.report
        if not self._shows_test_samples(state):
            return SampleSource(
                name=f"public sample {sample_row}",
                x=report.samples[sample_row],
                truth=None,
                logits=report.logits[:, sample_row],
                server_logits=report.student[sample_row],
            )
        number = int(report.test_rows[sample_row])
        return SampleSource(
            name=f"test sample {number}",
            x=load(state.outcome.settings.dataset).x_test[number].numpy(),
            truth=int(report.test_truth[sample_row]),
            logits=report.test_logits[:, sample_row],
            server_logits=report.test_student[sample_row],
        )

    def _compute_client_numbers_by_title(
        self, state: PanelState, source: SampleSource, vote: Consensus, sample_row: int
    ) -> dict[str, NumberPerClient]:
        """Compute each client's weight and the variance of its output. After the run also how many
        samples of the consensus class it holds, which the server cannot know.
        """
        outputs = source.logits
        if self.rule.value == "softmax":
            outputs = softmax(source.logits / self.heat.value, -1)
        numbers = {"weight ω": vote.weights[:, sample_row].numpy(), "σ²": outputs.var(-1)}
        if state.outcome is not None:
            label = int(vote.labels[sample_row])
            class_name = shorten_labels(state.class_names, 5)[label]
            numbers[f"own “{class_name}”"] = state.outcome.label_counts[state.report.members, label]
        return numbers

    def _describe_consensus_on_all_test_samples(self, state: PanelState) -> str:
        """Say how good the chosen weights are on all test samples, on average over the seeds."""
        if state.outcome is None:
            return ""
        accuracies = []
        effective_clients = []
        for outcome in state.outcomes.values():
            vote, truth = compute_consensus_on_test_samples(
                outcome, self.rule.value, self.heat.value
            )
            accuracies.append(compute_consensus_accuracy(vote, truth))
            effective_clients.append(float(vote.effective_clients.mean()))
        return (
            f" On all test samples ({describe_seeds(state.outcomes)}) the consensus of these "
            f"weights gets {format_percent(mean(accuracies))} right, and in effect "
            f"{mean(effective_clients):.1f} of "
            f"{format_count_and_noun(len(state.report.members), 'client')} count."
        )


def describe_consensus_and_server_answer(sample_outputs: SampleOutputs) -> str:
    """Say what the consensus and the server predict, and whether the consensus is right."""
    consensus = sample_outputs.answers["consensus"]
    text = (
        f"{capitalize_first_letter(sample_outputs.name)}: the consensus is "
        f"{sample_outputs.quote_top_class_name(consensus)} "
        f"({format_percent(consensus.max())})"
    )
    if sample_outputs.truth is not None and sample_outputs.truth == consensus.argmax():
        text += ", and it is right"
    elif sample_outputs.truth is not None:
        text += f", wrong, it is “{sample_outputs.names[sample_outputs.truth]}”"
    return f"{text}; the server says {sample_outputs.quote_top_class_name(sample_outputs.answers['server'])}."


def describe_dissent_and_selected_or_heaviest_client(sample_outputs: SampleOutputs) -> str:
    """Say how large the dissent is, and what the selected client predicts; without one, the client
    with the largest weight.
    """
    weights = sample_outputs.client_numbers["weight ω"]
    row = sample_outputs.row_of_selected_client
    if row is None:
        row = int(weights.argmax())
    outputs = sample_outputs.outputs[row]
    return (
        f"The dissent is ω_div = {weights[sample_outputs.disagrees].sum():.2f}. Client "
        f"{format_client_for_sentence(sample_outputs.members[row], sample_outputs.setting)} says "
        f"{sample_outputs.quote_top_class_name(outputs)} ({format_percent(outputs.max())}) with weight "
        f"{weights[row]:.2f}."
    )
