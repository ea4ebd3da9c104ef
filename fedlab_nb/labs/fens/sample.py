"""FENS on one test sample: the sample, every client's logits, and the answers of their plain
average and of FENS.

A person can draw a digit instead. Then the methods that were run beside FENS answer, too.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import ipywidgets as widgets
import numpy as np
import torch
from scipy.special import softmax

from ...data import load
from ...methods.base import GlobalModel
from ...panels import Ink, LabView, PanelState, PausesThenResult, make_widget, show_widgets_if
from ...plots import (
    Picture,
    capitalize_first_letter,
    format_count_and_noun,
    format_percent,
    join_with_and,
)
from ...plots.array_types import SampleArray, SampleIndices
from ...plots.identity import shorten_method_title
from ...plots.words import format_client_for_sentence, shorten_labels
from ...studies import Outcome
from ...studies.experiment import choose_fixed_test_indices_for_pictures
from ...tensor_types import Samples
from ..array_types import ClientOutputs, ProbabilityPerClass, ScorePerClass
from ..one_sample import SampleOutputs, draw_sample_with_outputs_and_answers
from ..runs import describe_setting

DIGIT_SHAPE = (1, 8, 8)  # of the image that is made from a drawing
# The choices of test samples for the slider to go through.
ALL = "all"
FENS_BETTER = "FENS right, average wrong"
FENS_WRONG = "FENS wrong"
CLIENTS_WRONG = "every client wrong"


class OneSampleView(LabView):
    """One test sample, or a drawing. The test samples are shown here and used for nothing else."""

    name = "sample"
    title = "One sample"
    summary = (
        "Then this shows one test sample: every client's logits, and the answers of the "
        "average and of FENS."
    )
    KINDS = (ALL, FENS_BETTER, FENS_WRONG, CLIENTS_WRONG)
    _state: PanelState | None = None  # the state that was drawn last

    def __init__(self) -> None:
        self.kind = make_widget(
            widgets.Dropdown,
            label="Samples",
            help="Which test samples to look at",
            width=250,
            options=self.KINDS,
        )
        self.at = make_widget(
            widgets.IntSlider,
            label="Sample",
            help="Go from sample to sample",
            width=300,
            max=0,
            readout=False,
        )
        self.pen = make_widget(
            widgets.ToggleButton,
            "fl-pen",
            label="Draw a digit",
            help="Draw a digit, and see at once what every client and every method takes it for",
            width="auto",
        )
        self.ink = make_widget(Ink, "fl-drawn")
        self.answer_text = make_widget(widgets.HTML, "fl-says")
        # A widget in a box does not redraw the view.
        self.controls = [self.kind, self.at, self.pen, self.ink, widgets.HBox([self.answer_text])]
        show_widgets_if(False, self.pen, self.ink, self.answer_text)
        self.ink.observe(lambda change: self._write_answers_to_drawing(change["new"]), "seen")

    def prepare(self, state: PanelState) -> PausesThenResult["PreparedSamples"]:
        outcome = state.outcome
        data = load(outcome.settings.dataset)
        test_indices = choose_fixed_test_indices_for_pictures(len(data.y_test))
        samples = data.x_test[test_indices]
        models = get_fens_and_student_models(outcome)
        computed = compute_client_logits_and_model_scores(
            models, samples.to(outcome.settings.device)
        )
        if has_samples_of_drawing_shape(state):
            for method, outcomes_by_seed in state.others.items():
                yield
                first_outcome = next(iter(outcomes_by_seed.values()))
                models[shorten_method_title(state.runs.find_current_row(method).title)] = (
                    first_outcome.model
                )
        return PreparedSamples(
            samples=samples.numpy(),
            labels=data.y_test[test_indices].numpy(),
            test_indices=test_indices,
            client_logits=computed.client_logits,
            scores_by_model=computed.scores_by_model,
            models_by_name=models,
        )

    def _select_sample_indices(self, state: PanelState) -> SampleIndices:
        """Select the prepared samples that the slider goes through: those of the chosen kind.

        If any of them belong to the selected class, only these. If there are none of the chosen
        kind, all samples.
        """
        prepared: PreparedSamples = state.prepared
        labels = prepared.labels
        fens_right = prepared.scores_by_model["FENS"].argmax(1) == labels
        average_right = prepared.scores_by_model["average"].argmax(1) == labels
        kind = self.kind.value
        if kind == ALL:
            is_selected = np.ones(len(labels), dtype=bool)
        elif kind == FENS_BETTER:
            is_selected = fens_right & ~average_right
        elif kind == FENS_WRONG:
            is_selected = ~fens_right
        else:
            client_classes = prepared.client_logits.argmax(2)
            is_selected = (client_classes != labels[:, None]).all(1)
        is_of_class = is_selected & (labels == state.class_index)
        if is_of_class.any():
            is_selected = is_of_class
        if not is_selected.any():
            return np.arange(len(labels))
        return np.flatnonzero(is_selected)

    def adapt(self, state: PanelState) -> None:
        can_draw = has_samples_of_drawing_shape(state)
        show_widgets_if(can_draw, self.pen)
        show_widgets_if(can_draw and self.pen.value, self.ink, self.answer_text)
        self._state = state
        self.at.max = len(self._select_sample_indices(state)) - 1

    def draw(self, state: PanelState) -> Picture:
        if has_samples_of_drawing_shape(state) and self.pen.value and self.ink.value:
            return self._draw_answers_to_drawing(state)
        return self._draw_answers_to_test_sample(state)

    def _draw_answers_to_drawing(self, state: PanelState) -> Picture:
        ink = self.ink.value
        logits, answers = predict_drawing(state, ink)
        sample = make_sample_outputs(
            state,
            sample_values=np.reshape(ink, DIGIT_SHAPE),
            sample_name="your drawing",
            true_class=None,
            client_logits=logits,
            probabilities_by_model=answers,
            expected_class=int(answers["FENS"].argmax()),
        )
        models = describe_predictions_of_models(answers, state.class_names)
        clients = describe_answer_of_each_client(state, logits)
        sentence = f"Your drawing: {models}."
        return draw_sample_with_outputs_and_answers(
            sample, "Logits of the clients", sentence, f"Clients: {clients}."
        )

    def _draw_answers_to_test_sample(self, state: PanelState) -> Picture:
        prepared: PreparedSamples = state.prepared
        rows = self._select_sample_indices(state)
        row = int(rows[self.at.value])
        truth = int(prepared.labels[row])
        probabilities = {}
        for name, scores in prepared.scores_by_model.items():
            probabilities[name] = compute_softmax_with_excluded_classes(scores[row])
        sample = make_sample_outputs(
            state,
            sample_values=prepared.samples[row],
            sample_name=f"test sample {prepared.test_indices[row]}",
            true_class=truth,
            client_logits=prepared.client_logits[row],
            probabilities_by_model=probabilities,
            expected_class=truth,
        )
        place = f"{self.at.value + 1} of {len(rows)} ({self.kind.value})"
        clients_text = describe_wrong_clients_and_selected_one(sample)
        student_text = describe_distilled_student_if_any(state.outcome)
        detail = f"Sample {place}. {clients_text}{student_text}"
        return draw_sample_with_outputs_and_answers(
            sample, "Logits of the clients", describe_sample_and_model_answers(sample), detail
        )

    def _write_answers_to_drawing(self, ink_pixels: Sequence[float]) -> None:
        """Say what every model takes the drawing for while a person draws. A picture would be too
        slow.
        """
        state = self._state
        text = ""
        if ink_pixels and state and state.prepared:
            logits, answers = predict_drawing(state, ink_pixels)
            models = describe_predictions_of_models(answers, state.class_names)
            text = f"{models}; clients: {describe_answer_of_each_client(state, logits)}"
        self.answer_text.value = f'<p role="status">{text}</p>'


# ------------------------------------------------------------------------------------------ numbers
def has_samples_of_drawing_shape(state: PanelState) -> bool:
    """Whether the run's samples have the shape of a drawing; False without a finished run."""
    return state.outcome is not None and state.outcome.settings.dataset == "digits"


def get_fens_and_student_models(fens_outcome: Outcome) -> dict[str, GlobalModel]:
    """Return {name: model}: FENS, and the student if the run has distilled one."""
    model = fens_outcome.model
    if hasattr(model, "teacher"):
        return {"FENS": model.teacher, "student": model}
    return {"FENS": model}


class PreparedSamples(NamedTuple):
    """What `OneSampleView` computes once for all its pictures.

    samples, labels: N test samples `[N, ...]`, and their classes `[N]`
    test_indices:    `[N]`, their numbers in the test set
    client_logits:   `[N, M, C]`
    scores_by_model: {name: `[N, C]`}, of the average and of each model of the run
    models_by_name:  all models that answer a drawing
    """

    samples: np.ndarray
    labels: np.ndarray
    test_indices: np.ndarray
    client_logits: np.ndarray
    scores_by_model: dict[str, np.ndarray]
    models_by_name: dict[str, GlobalModel]


class LogitsAndScores(NamedTuple):
    """The clients' logits `[N, M, C]`, and {name of a model: its scores `[N, C]`}."""

    client_logits: np.ndarray
    scores_by_model: dict[str, np.ndarray]


class DrawingAnswers(NamedTuple):
    """The clients' logits `[M, C]` for a drawing, and {name of a model: its probabilities `[C]`}."""

    client_logits: np.ndarray
    probabilities_by_model: dict[str, np.ndarray]


def compute_client_logits_and_model_scores(
    models_by_name: Mapping[str, GlobalModel], samples: Samples
) -> LogitsAndScores:
    """Compute for `samples [N, ...]` the clients' logits `[N, M, C]`, and the scores `[N, C]` of
    their average and of each model.
    """
    logits = models_by_name["FENS"].experts(samples)
    scores = {"average": logits.mean(1).cpu().numpy()}
    for name, model in models_by_name.items():
        scores[name] = model.logits(samples).cpu().numpy()
    return LogitsAndScores(logits.cpu().numpy(), scores)


def predict_drawing(state: PanelState, ink_pixels: Sequence[float]) -> DrawingAnswers:
    """Compute the clients' logits for a drawing, and the probabilities of every model.

    ink_pixels: 64 numbers 0–1, row by row
    """
    x = torch.tensor(ink_pixels, dtype=torch.float32).view(1, *DIGIT_SHAPE)
    logits, scores = compute_client_logits_and_model_scores(
        state.prepared.models_by_name, x.to(state.outcome.settings.device)
    )
    shares = {
        name: compute_softmax_with_excluded_classes(values[0]) for name, values in scores.items()
    }
    return DrawingAnswers(logits[0], shares)


def compute_softmax_with_excluded_classes(scores: ScorePerClass) -> ProbabilityPerClass:
    """Compute the softmax of scores `[C]`. A rule may exclude classes by minus infinity, even all."""
    return softmax(np.nan_to_num(scores.astype(float), neginf=-1e300))


def make_sample_outputs(
    state: PanelState,
    *,
    sample_values: SampleArray,
    sample_name: str,
    true_class: int | None,
    client_logits: ClientOutputs,
    probabilities_by_model: Mapping[str, ProbabilityPerClass],
    expected_class: int,
) -> SampleOutputs:
    """Make the sample as the picture takes it.

    true_class: of a test sample; None for a drawing
    client_logits: `[M, C]`
    probabilities_by_model: {name: `[C]`}
    expected_class: the class that the clients' answers are compared with
    """
    members = state.report.members
    class_name = shorten_labels([state.class_names[expected_class]], 8)[0]
    sample_counts = state.outcome.label_counts[members, expected_class]
    return SampleOutputs(
        x=sample_values,
        name=sample_name,
        truth=true_class,
        outputs=client_logits,
        answers=probabilities_by_model,
        disagrees=client_logits.argmax(1) != expected_class,
        client_numbers={f"samples of {class_name}": sample_counts},
        members=members.tolist(),
        names=state.class_names,
        setting=describe_setting(state),
        client=state.client,
        class_index=state.class_index,
    )


# -------------------------------------------------------------------------------------------- words
def describe_predictions_of_models(
    probabilities_by_model: Mapping[str, ProbabilityPerClass], class_names: Sequence[str]
) -> str:
    """Say which class each model predicts for a drawing."""
    parts = []
    for name, shares in probabilities_by_model.items():
        parts.append(
            f"{name} says “{class_names[shares.argmax()]}” ({format_percent(shares.max())} sure)"
        )
    return ", ".join(parts)


def describe_answer_of_each_client(state: PanelState, client_logits: ClientOutputs) -> str:
    """Say which class each client predicts for a drawing."""
    setting = describe_setting(state)
    parts = []
    for k, label in zip(state.report.members, client_logits.argmax(1), strict=True):
        parts.append(f"{format_client_for_sentence(k, setting)} “{state.class_names[label]}”")
    return ", ".join(parts)


def describe_sample_and_model_answers(sample_outputs: SampleOutputs) -> str:
    """Say which class the sample has, and what the models predict."""
    answers = []
    for name, shares in sample_outputs.answers.items():
        answers.append(
            f"{name} says {sample_outputs.quote_top_class_name(shares)} ({format_percent(shares.max())} sure)"
        )
    true_class_name = sample_outputs.names[sample_outputs.truth]
    sample_name = capitalize_first_letter(sample_outputs.name)
    return f"{sample_name} is a “{true_class_name}”: {join_with_and(answers)}."


def describe_wrong_clients_and_selected_one(sample_outputs: SampleOutputs) -> str:
    """Say how many clients are wrong, and what the selected one predicts; without one, the client
    with the largest logit.
    """
    truth = sample_outputs.names[sample_outputs.truth]
    largest_logits = sample_outputs.outputs.max(1)
    row = sample_outputs.row_of_selected_client
    if row is None:
        row = int(largest_logits.argmax())
    client = format_client_for_sentence(sample_outputs.members[row], sample_outputs.setting)
    (sample_counts,) = sample_outputs.client_numbers.values()
    return (
        f"{sample_outputs.disagrees.sum()} of "
        f"{format_count_and_noun(len(sample_outputs.outputs), 'client')} say something other than "
        f"“{truth}”. Client {client} says {sample_outputs.quote_top_class_name(sample_outputs.outputs[row])} "
        "with a logit of "
        f"{largest_logits[row]:.0f} after training on "
        f"{format_count_and_noun(int(sample_counts[row]), 'sample')} of "
        f"“{truth}”."
    )


def describe_distilled_student_if_any(fens_outcome: Outcome) -> str:
    """Say how good the student of a run with `distil` is beside its teacher; else nothing."""
    report = fens_outcome.report
    if report.agreement is None:
        return ""
    return (
        f" On all test samples the student has {format_percent(fens_outcome.accuracy)}, the whole "
        f"FENS model {format_percent(report.teacher_accuracy)}; on unlabelled images they "
        f"agree in {format_percent(report.agreement)}."
    )
