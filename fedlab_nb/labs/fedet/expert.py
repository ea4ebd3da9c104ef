"""Who is the expert? What each client says of one sample, how much it counts, and what comes of it (Fed-ET)."""

from statistics import mean
from typing import Any

import ipywidgets as widgets
import numpy as np
from scipy.special import softmax

from ...data import load
from ...methods.fedet.consensus import Consensus
from ...panels import LabView, PanelState, made
from ...plots import Picture, capital, percent, plural, seeds_of
from ...plots.characters import own_name
from ...plots.style import shorten
from ..one_sample import OneSample, one_sample
from ..runs import where
from .votes import rule_of, share_right, votes, votes_on_test


class Expert(LabView):
    """One sample: every client's output, its weight, who dissents, the consensus, and what the server says."""

    name, title, ready = "expert", "Who is the expert?", "live"
    _of: Any = None

    def __init__(self) -> None:
        help = "All samples, those where the consensus is wrong, least or most dissent first, or public ones"
        kinds = [(f"test, {kind}", kind) for kind in ("all", "wrong", "agreed", "disputed")] + [
            ("public", "public")
        ]
        self.kind = made(widgets.Dropdown, label="Samples", help=help, width=180, options=kinds)
        help = "Go from sample to sample"
        self.at = made(
            widgets.IntSlider, label="Sample", help=help, width=150, max=0, readout=False
        )
        rules = [
            ("softmax (paper)", "softmax"),
            ("raw logits", "logit-variance"),
            ("raw logits, summed", "logits"),
        ]
        rules += [("equal", "uniform")]
        self.rule = made(
            widgets.Dropdown,
            label="Weights",
            help="What makes the weights",
            width=175,
            options=rules,
        )
        ends = {"value": 1.0, "min": -1, "max": 2, "step": 0.05, "readout_format": ".2g"}
        help = "Temperature of the weights. Only softmax has one"
        self.heat = made(widgets.FloatLogSlider, label="τ", help=help, width=150, **ends)

    def _tests(self, state: PanelState) -> bool:
        """Whether test samples are leafed through, whose classes are known."""
        return state.outcome is not None and self.kind.value != "public"

    def _vote(self, state: PanelState) -> Consensus:
        logits = state.report.test_logits if self._tests(state) else state.report.logits
        return votes(logits, self.rule.value, self.heat.value)

    def _rows(self, state: PanelState) -> np.ndarray:
        """Which samples are leafed through, by dissent where that is the question; all, where there are none."""
        vote, kind = self._vote(state), self.kind.value
        mass, labels = vote.mass.numpy(), vote.labels.numpy()
        truth = state.report.test_truth if self._tests(state) else labels
        keep = (
            labels != truth
            if self._tests(state) and kind == "wrong"
            else np.ones(len(mass), dtype=bool)
        )
        sign = {"agreed": 1, "disputed": -1}.get(kind, 0) * self._tests(state)
        order = np.argsort(sign * mass, kind="stable")
        if state.klass is not None and (keep & (truth == state.klass)).any():
            keep &= truth == state.klass
        return order[keep[order]] if keep.any() else order

    def adapt(self, state: PanelState) -> None:
        """A new outcome brings its own rule and temperature, and its own samples."""
        if state.outcome is not None and state.outcome is not self._of:
            self._of = state.outcome
            self.rule.value, heat = rule_of(state.outcome.options)
            self.heat.value = min(max(heat, 0.1), 100)
        self.heat.disabled = self.rule.value != "softmax"
        self.at.max = len(self._rows(state)) - 1

    def draw(self, state: PanelState) -> Picture:
        vote, rows, report = self._vote(state), self._rows(state), state.report
        i = int(rows[self.at.value])
        if self._tests(state):
            truth, logits, student = (
                int(report.test_truth[i]),
                report.test_logits[:, i],
                report.test_student[i],
            )
            number = int(report.test_rows[i])
            name, x = (
                f"test sample {number}",
                load(state.outcome.settings.dataset).x_test[number].numpy(),
            )
        else:
            truth, logits, student = None, report.logits[:, i], report.student[i]
            name, x = f"public sample {i}", report.samples[i]
        label = int(vote.labels[i])
        spread = softmax(logits / self.heat.value, -1) if self.rule.value == "softmax" else logits
        known = {"weight ω": vote.weights[:, i].numpy(), "σ²": spread.var(-1)}
        if state.outcome is not None:  # what the server cannot know
            known[f"own “{shorten(state.class_names, 5)[label]}”"] = state.outcome.label_counts[
                report.members, label
            ]
        answers = {"consensus": vote.distribution[i].numpy(), "server": softmax(student)}
        of = OneSample(
            x, name, truth, vote.outputs[:, i].numpy(), answers, vote.dissent[:, i].numpy(),
            known, report.members.tolist(), state.class_names, where(state), state.client, state.klass,
        )  # fmt: skip
        return one_sample(of, "What each client says, in %", told_by(of) + self._over_all(state))

    def _over_all(self, state: PanelState) -> str:
        """A closing sentence on all test samples under the chosen weights, mean over the seeds."""
        if state.outcome is None:
            return ""
        each = [
            votes_on_test(outcome, self.rule.value, self.heat.value)
            for outcome in state.outcomes.values()
        ]
        right, count = (
            mean(share_right(*of) for of in each),
            mean(float(of.effective_clients.mean()) for of, _ in each),
        )
        return (
            f" On all test samples ({seeds_of(state.outcomes)}) the consensus of these weights is right for "
            f"{percent(right)}, and in effect {count:.1f} of {plural(len(state.report.members), 'client')} count."
        )


def told_by(of: OneSample) -> str:
    """The consensus and its dissent, the client that is looked at or counts most, and the server."""
    consensus, server = of.answers.values()
    weights = next(iter(of.beside.values()))
    i = of.members.index(of.client) if of.client in of.members else int(weights.argmax())
    text = f"{capital(of.name)}: the consensus is {of.top(consensus)} ({percent(consensus.max())})"
    if of.truth is not None:
        text += (
            ", and it is right"
            if of.truth == consensus.argmax()
            else f", wrong, it is “{of.names[of.truth]}”"
        )
    return (
        f"{text}; dissent ω_div = {weights[of.against].sum():.2f}. Client {own_name(of.members[i], of.setting)} says "
        f"{of.top(of.said[i])} ({percent(of.said[i].max())}) with weight {weights[i]:.2f}. "
        f"The server says {of.top(server)}."
    )
