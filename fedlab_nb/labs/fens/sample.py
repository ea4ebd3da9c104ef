"""FENS on one test sample: every client's logits, the average's answer, FENS' answer, and the sample itself. Or on a
digit that a hand draws: then the methods that ran beside it answer, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ipywidgets as widgets
import numpy as np
import torch
from scipy.special import softmax

from ...data import load
from ...panels import Ink, LabView, PanelState, made, show_if
from ...plots import Picture, capital, listed, percent, plural
from ...plots.characters import own_name
from ...plots.identity import shorten_title
from ...plots.style import shorten
from ...studies import Outcome
from ...studies.experiment import test_points
from ..one_sample import OneSample, one_sample
from ..runs import where


class Sample(LabView):
    """One test sample: every client's logits, the average's answer, FENS' answer."""

    name, title = "sample", "One sample"
    _state: PanelState | None = None  # of the last drawing of this view
    KINDS = ("all", "FENS right, average wrong", "FENS wrong", "every client wrong")

    def __init__(self) -> None:
        help = "Which test samples to look at"
        self.kind = made(
            widgets.Dropdown, label="Samples", help=help, width=250, options=self.KINDS
        )
        help = "Go from sample to sample"
        self.at = made(
            widgets.IntSlider, label="Sample", help=help, width=300, max=0, readout=False
        )
        help = "Draw a digit, and see at once what every client and every method takes it for"
        self.pen = made(
            widgets.ToggleButton, "fl-pen", label="Draw a digit", help=help, width="auto"
        )
        self.ink, self.says = made(Ink, "fl-drawn"), made(widgets.HTML, "fl-says")
        self.controls = [self.kind, self.at, self.pen, self.ink, widgets.HBox([self.says])]
        show_if(False, self.pen, self.ink, self.says)
        self.ink.observe(lambda change: self._see(change["new"]), "seen")

    def prepare(self, state: PanelState) -> Iterator[None]:
        """The test points, which are shown here and used for nothing else: their logits, `answers` {who: scores}; and
        all `models`, {who: model}, for what is drawn."""
        outcome, model = state.outcome, state.outcome.model
        data = load(outcome.settings.dataset)
        points = test_points(len(data.y_test))
        fens = getattr(model, "teacher", model)
        models = {"FENS": fens} | ({} if model is fens else {"student": model})
        z, answers = heard(models, data.x_test[points].to(outcome.settings.device))
        shown = {"x": data.x_test[points].numpy(), "y": data.y_test[points].numpy(), "logits": z}
        for method, others in state.others.items() if drawable(state) else ():
            yield
            models[shorten_title(state.runs.find(method).title)] = next(iter(others.values())).model
        return {**shown, "points": points, "answers": answers, "models": models}

    def chosen(self, state: PanelState) -> np.ndarray:
        """Which of the prepared samples are leafed through; all, where none is of the kind that is asked for."""
        y = state.prepared["y"]
        right = {name: scores.argmax(1) == y for name, scores in state.prepared["answers"].items()}
        rows = {
            self.KINDS[0]: np.ones(len(y), dtype=bool),
            self.KINDS[1]: right["FENS"] & ~right["average"],
            self.KINDS[2]: ~right["FENS"],
            self.KINDS[3]: (state.prepared["logits"].argmax(2) != y[:, None]).all(1),
        }[self.kind.value]
        of_class = rows & (y == state.klass)
        rows = of_class if of_class.any() else rows
        return np.flatnonzero(rows) if rows.any() else np.arange(len(y))

    def adapt(self, state: PanelState) -> None:
        show_if(drawable(state), self.pen)
        show_if(drawable(state) and self.pen.value, self.ink, self.says)
        self._state = state
        self.at.max = len(self.chosen(state)) - 1

    def draw(self, state: PanelState) -> Picture:
        p, rows, members = state.prepared, self.chosen(state), state.report.members
        i, outcome = int(rows[self.at.value]), state.outcome
        if drawn := drawable(state) and self.pen.value and self.ink.value:
            x, name, truth, (said, answers) = (
                np.reshape(drawn, DIGIT),
                "your drawing",
                None,
                of_drawing(state, drawn),
            )
            about = int(answers["FENS"].argmax())
        else:
            x, name, said, about = (
                p["x"][i],
                f"test sample {p['points'][i]}",
                p["logits"][i],
                int(p["y"][i]),
            )
            truth, answers = (
                about,
                {who: probabilities(scores[i]) for who, scores in p["answers"].items()},
            )
        known = {
            f"samples of {shorten([state.class_names[about]], 8)[0]}": outcome.label_counts[
                members, about
            ]
        }
        of = OneSample(
            x, name, truth, said, answers, said.argmax(1) != about, known, members.tolist(), state.class_names,
            where(state), state.client, state.klass,
        )  # fmt: skip
        which = f"{capital(of.name)}, {self.at.value + 1} of {len(rows)} ({self.kind.value})."
        text = (
            f"Your drawing: {guesses(state, said, answers)}." if drawn else f"{which} {told_by(of)}"
        )
        return one_sample(
            of, "Logits of the clients", text + ("" if drawn else of_student(outcome))
        )

    def _see(self, ink: Sequence[float]) -> None:
        """Say what everybody takes the drawing for while it grows: a picture would come too late."""
        words = (
            guesses(state, *of_drawing(state, ink))
            if ink and (state := self._state) and state.prepared
            else ""
        )
        self.says.value = f'<p role="status">{words}</p>'


DIGIT = (1, 8, 8)  # what a drawing becomes


def drawable(state: PanelState) -> bool:
    """Whether a drawing is a sample as the run's are."""
    return state.outcome is not None and state.outcome.settings.dataset == "digits"


def heard(models: Mapping[str, Any], x: torch.Tensor) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Of samples `x [N, ...]`: the clients' logits `[N, M, C]`, and the scores `[N, C]` of who answers for them."""
    z = models["FENS"].experts(x)
    scores = {"average": z.mean(1), **{who: model.logits(x) for who, model in models.items()}}
    return z.cpu().numpy(), {who: each.cpu().numpy() for who, each in scores.items()}


def of_drawing(state: PanelState, ink: Sequence[float]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The clients' logits `[M, C]` on a drawing, and the probabilities `[C]` of who answers for them."""
    x = torch.tensor(ink, dtype=torch.float32).view(1, *DIGIT).to(state.outcome.settings.device)
    z, scores = heard(state.prepared["models"], x)
    return z[0], {who: probabilities(each[0]) for who, each in scores.items()}


def probabilities(scores: np.ndarray) -> np.ndarray:
    """Of scores `[C]`; a rule may forbid classes with minus infinity, even all of them."""
    return softmax(np.nan_to_num(scores.astype(float), neginf=-1e300))


def guesses(state: PanelState, said: np.ndarray, answers: Mapping[str, np.ndarray]) -> str:
    """What all take a drawing for, in words."""
    names, each = state.class_names, zip(state.report.members, said.argmax(1), strict=True)
    first = ", ".join(
        f"{who} says “{names[a.argmax()]}” ({percent(a.max())} sure)" for who, a in answers.items()
    )
    return f"{first}; clients: {', '.join(f'{own_name(k, where(state))} “{names[c]}”' for k, c in each)}"


def told_by(of: OneSample) -> str:
    """What the client that is looked at says, or the loudest one; and the answers."""
    truth, loud, (held,) = of.names[of.truth], of.said.max(1), of.beside.values()
    each = [
        f"{who} says {of.top(answer)} ({percent(answer.max())} sure)"
        for who, answer in of.answers.items()
    ]
    i = of.members.index(of.client) if of.client in of.members else int(loud.argmax())
    return (
        f"The truth is “{truth}”; {of.against.sum()} of {plural(len(of.said), 'client')} say something else. Client "
        f"{own_name(of.members[i], of.setting)} says {of.top(of.said[i])} with a logit of {loud[i]:.0f} after "
        f"training on {plural(int(held[i]), 'sample')} of “{truth}”. {capital(listed(each))}."
    )


def of_student(outcome: Outcome) -> str:
    """A closing sentence on a run with `distil`: how good its student is beside its teacher."""
    report = outcome.report
    if report.agreement is None:
        return ""
    text = (
        f" On all test samples the student has {percent(outcome.accuracy)}, the whole FENS model "
    )
    return f"{text}{percent(report.teacher_accuracy)}; on unlabelled images they agree in {percent(report.agreement)}."
