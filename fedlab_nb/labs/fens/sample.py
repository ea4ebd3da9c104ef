"""FENS on one test sample: every client's logits, the average's answer, FENS' answer, and the sample itself. Or on a
digit that a hand draws: then the methods that ran beside it answer, too.
"""

from collections.abc import Iterator, Sequence

import ipywidgets as widgets
import numpy as np
import torch
from scipy.special import softmax

from ...data import load
from ...panels import Ink, LabView, PanelState, made, show_if
from ...plots import Picture, capital, listed, percent, plural
from ...plots.identity import short
from ...plots.style import shorten
from ...plots.words import letter
from ...studies import Outcome
from ...studies.experiment import test_points
from ..one_sample import OneSample, one_sample
from ..runs import where


class Sample(LabView):
    """One test sample: every client's logits, the average's answer, FENS' answer."""

    name, title = "sample", "One sample"
    empty = "Press Run. The picture then shows the answer of each client to one test sample, and how they are combined."
    _state: PanelState | None = None  # of the last drawing of this view
    KINDS = ("all", "FENS right, average wrong", "FENS wrong", "every client wrong")

    def __init__(self) -> None:
        help = "Which test samples to look at"
        self.kind = made(widgets.Dropdown, label="Samples", help=help, width=250, options=self.KINDS)
        help = "Go from sample to sample"
        self.at = made(widgets.IntSlider, label="Sample", help=help, width=300, max=0, readout=False)
        help = "Draw a digit, and see at once what every client and every method takes it for"
        self.pen = made(widgets.ToggleButton, "fl-pen", label="Draw a digit", help=help, width="auto")
        self.ink, self.says = made(Ink, "fl-drawn"), made(widgets.HTML, "fl-says")
        self.controls = [self.kind, self.at, self.pen, self.ink, widgets.HBox([self.says])]
        self.ink.observe(lambda change: self._see(change["new"]), "seen")

    def prepare(self, state: PanelState) -> Iterator[None]:
        """The test points, which are shown here and used for nothing else: their logits, `answers` {who: scores}; and
        all `models`, {who: model}, for what is drawn."""
        outcome, model = state.outcome, state.outcome.model
        data = load(outcome.settings.dataset)
        points = test_points(len(data.y_test))
        x = data.x_test[points].to(outcome.settings.device)
        fens = getattr(model, "teacher", model)
        z = fens.experts(x)
        answers = {"average": z.mean(1), "FENS": fens.logits(x)}
        if model is not fens:
            answers["student"] = model.logits(x)
        answers = {name: scores.cpu().numpy() for name, scores in answers.items()}
        shown = {"x": x.cpu().numpy(), "y": data.y_test[points].numpy(), "logits": z.cpu().numpy()}
        models = {"FENS": fens} | ({} if model is fens else {"student": model})
        for method, others in state.others.items() if drawable(state) else ():
            yield
            models[short(state.runs.find(method).title)] = next(iter(others.values())).model
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
        if drawable(state) and self.pen.value and self.ink.value:
            return self.drawn(state)
        p, rows, members = state.prepared, self.chosen(state), state.report.members
        i = int(rows[self.at.value])
        truth, said, outcome = int(p["y"][i]), p["logits"][i], state.outcome
        # a rule may forbid classes with minus infinity, even all of them
        answers = {
            who: softmax(np.nan_to_num(scores[i].astype(float), neginf=-1e300)) for who, scores in p["answers"].items()
        }
        known = {f"samples of {shorten([state.class_names[truth]], 8)[0]}": outcome.label_counts[members, truth]}
        of = OneSample(
            p["x"][i], f"test sample {p['points'][i]}", truth, said, answers, said.argmax(1) != truth,
            known, members.tolist(), state.class_names, where(state), state.client, state.klass,
        )  # fmt: skip
        which = f"{capital(of.name)}, {self.at.value + 1} of {len(rows)} ({self.kind.value})."
        return one_sample(of, "Logits of the clients", f"{which} {told_by(of)}{of_student(outcome)}")

    def _see(self, ink: Sequence[float]) -> None:
        """Say in words what everybody takes the drawing for while it grows: a picture would come too late."""
        words = ""
        if ink and self._state is not None and self._state.prepared:
            (said, answers), names = heard(self._state, ink), self._state.class_names
            first = ", ".join(f"{who} <b>{names[a.argmax()]}</b> ({percent(a.max())})" for who, a in answers.items())
            each = zip(self._state.report.members, said, strict=True)
            words = f"{first}<br>Clients: {', '.join(f'{letter(k)} <b>{names[z.argmax()]}</b>' for k, z in each)}"
        self.says.value = f'<p role="status">{words}</p>'

    def drawn(self, state: PanelState) -> Picture:
        """What everybody says of the drawing."""
        members, outcome, (said, answers) = state.report.members, state.outcome, heard(state, self.ink.value)
        first = int(answers["FENS"].argmax())
        known = {f"samples of {shorten([state.class_names[first]], 8)[0]}": outcome.label_counts[members, first]}
        x = np.reshape(self.ink.value, DIGIT)
        of = OneSample(
            x, "your drawing", None, said, answers, said.argmax(1) != first, known, members.tolist(), state.class_names,
            where(state), state.client, state.klass,
        )  # fmt: skip
        each = [f"{who} says {of.top(answer)} ({percent(answer.max())} sure)" for who, answer in of.answers.items()]
        alike = f"{len(said) - of.against.sum()} of {plural(len(said), 'client')} say {of.top(answers['FENS'])}"
        return one_sample(of, "Logits of the clients", f"Your drawing: {alike}. {capital(listed(each))}.")


DIGIT = (1, 8, 8)  # what a drawing becomes


def drawable(state: PanelState) -> bool:
    """Whether a drawing is a sample as the run's are."""
    return state.outcome is not None and state.outcome.settings.dataset == "digits"


def heard(state: PanelState, ink: Sequence[float]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Logits `[M, C]` of the clients on a drawing, and the probabilities `[C]` of all who answer for them."""
    models = state.prepared["models"]
    x = torch.tensor(ink, dtype=torch.float32).view(1, *DIGIT).to(state.outcome.settings.device)
    z = models["FENS"].experts(x)
    answers = {"average": z.mean(1), **{who: model.logits(x) for who, model in models.items()}}
    return z[0].cpu().numpy(), {who: scores[0].softmax(-1).cpu().numpy() for who, scores in answers.items()}


def told_by(of: OneSample) -> str:
    """What the client that is looked at says, or the loudest one; and the answers."""
    truth, loud, (held,) = of.names[of.truth], of.said.max(1), of.beside.values()
    each = [f"{who} says {of.top(answer)} ({percent(answer.max())} sure)" for who, answer in of.answers.items()]
    i = of.members.index(of.client) if of.client in of.members else int(loud.argmax())
    return (
        f"The truth is “{truth}”; {of.against.sum()} of {plural(len(of.said), 'client')} say something else. Client "
        f"{letter(of.members[i])} says {of.top(of.said[i])} with a logit of {loud[i]:.0f} after training on "
        f"{plural(int(held[i]), 'sample')} of “{truth}”. {capital(listed(each))}."
    )


def of_student(outcome: Outcome) -> str:
    """A closing sentence on a run with `distil`: how good its student is beside its teacher."""
    report = outcome.report
    if report.agreement is None:
        return ""
    text = f" On all test samples the student has {percent(outcome.accuracy)}, the whole FENS model "
    return f"{text}{percent(report.teacher_accuracy)}; on unlabelled images they agree in {percent(report.agreement)}."
