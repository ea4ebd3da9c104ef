"""FENS on one test sample: every client's logits, the average's answer, FENS' answer, and the sample itself."""

from typing import Any

import ipywidgets as widgets
import numpy as np
from scipy.special import softmax

from ...data import load
from ...panels import LabView, PanelState, made
from ...plots import Picture, capital, listed, percent, plural
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
    KINDS = ("all", "FENS right, average wrong", "FENS wrong", "every client wrong")

    def __init__(self) -> None:
        help = "Which test samples to look at"
        self.kind = made(widgets.Dropdown, label="Samples", help=help, width=250, options=self.KINDS)
        help = "Go from sample to sample"
        self.at = made(widgets.IntSlider, label="Sample", help=help, width=300, max=0, readout=False)

    def prepare(self, state: PanelState) -> dict[str, Any]:
        """The test points, which are shown here and used for nothing else: their logits, `answers` {who: scores}."""
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
        return {**shown, "points": points, "answers": answers}

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
        self.at.max = len(self.chosen(state)) - 1

    def draw(self, state: PanelState) -> Picture:
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
