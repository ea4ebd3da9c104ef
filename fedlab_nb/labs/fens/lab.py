"""FENS' lab: whom the aggregator trusts, round by round; one test sample; one client's bytes at two sizes; and
(`lab_reruns`) what needs FENS to be run again: one knob at several values, phase 2 without a client, one student.
"""

from typing import Any

import numpy as np

from ...data import load
from ...methods.fens import Fens
from ...methods.fens.model import PAPER, PAPER_D, Size
from ...panels.state import PanelState
from ...plots import Picture
from ...study.experiment import test_points
from ..runs import where
from ..views import View, spec
from .lab_reruns import Distil, Forget, Vary
from .numbers import bill, for_everybody, network
from .plots.bytes import bytes_at_two_sizes
from .plots.sample import OneSample, one_sample
from .plots.trust import Trusted, TrustPicture


class Trust(View, name="trust"):
    """The aggregator's table beside who holds what, round by round while phase 2 runs, and as a replay afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self._picture, self._shown = TrustPicture(), None

    def adapt(self, state: PanelState) -> None:
        """A new outcome brings its own rounds, and is seen from its end."""
        if state.outcome is self._shown:
            return
        self._shown = state.outcome
        rounds = None if state.outcome is None else state.report.frame_rounds
        self.round.options = ["end"] if rounds is None else [str(int(t)) for t in rounds]
        self.play.max = self.round.index = self.play.value = len(self.round.options) - 1

    def draw(self, state: PanelState) -> Picture:
        outcome, report = state.outcome, state.report
        options = state.knobs if outcome is None else outcome.options
        counts = state.federation.label_counts.numpy() if outcome is None else outcome.label_counts
        rule, when = options["aggregator"], {}
        if report.frames is None:
            table = report.competency.diagonal(axis1=1, axis2=2) if rule == "voting" else report.weights
        elif self.table.value and outcome is not None:
            rule, table = "added", report.contribution
        else:
            at = -1 if outcome is None else self.round.index
            table = report.frames[at]
            when = {"at": int(report.frame_rounds[at]), "rounds": options["rounds"]}
            when |= {} if outcome is None else {"limit": float(np.abs(report.frames).max())}
        weights = for_everybody(table, report.members, len(counts))
        marks = {"client": state.client, "klass": state.klass}
        return self._picture.show(Trusted(counts, weights, state.class_names, where(state), rule, **when, **marks))


class Sample(View, name="sample"):
    """One test sample: every client's logits, the average's answer, FENS' answer."""

    KINDS = ("all", "FENS right, average wrong", "FENS wrong", "every client wrong")

    def __init__(self) -> None:
        super().__init__(kind=self.KINDS)

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
        p, rows, at = state.prepared, self.chosen(state), self.at.value
        i, members = int(rows[at]), state.report.members
        x, truth = p["x"][i], int(p["y"][i])
        if x.ndim == 3:
            x = x[0] if len(x) != 3 else x.transpose(1, 2, 0)
        held, answers = state.outcome.label_counts[members, truth], {who: z[i] for who, z in p["answers"].items()}
        sample = OneSample(
            x, p["logits"][i], answers, state.class_names, truth, where(state), int(p["points"][i]), held,
            members.tolist(), state.client, state.klass,
        )  # fmt: skip
        picture = one_sample(sample)
        which = f"Test sample {sample.number}, {at + 1} of {len(rows)} ({self.kind.value})"
        picture.sentence = f"{which}. {picture.sentence}"
        return picture


class Cost(View, name="cost"):
    """One client's bytes with this network and with the paper's, from the formula, before anything is run."""

    def draw(self, state: PanelState) -> Picture:
        shape, classes = state.federation.dataset.input_shape, len(state.class_names)
        outcome, terms, counted = state.outcome, PAPER, None
        here = network(state.settings.get("model", "auto"), shape, classes)
        if self.whose.value != "the paper's":
            terms = Fens(**state.knobs).terms(state.federation.clients, classes, shape)
            same = outcome is not None and outcome.settings.dataset == state.settings["dataset"]
            if same and Fens(**outcome.options).terms(outcome.settings.clients, classes, shape) == terms:
                counted = outcome.report.bytes["measured"]
        bills = [
            bill(f"This network: {here.d:,} numbers".replace(",", "\u202f"), here, terms, self.rounds.value),
            bill("The paper's: 4.9 million", Size(PAPER_D), terms, self.rounds.value),
        ]
        clients = PAPER["clients"] if terms is PAPER else state.federation.clients
        return bytes_at_two_sizes(bills, clients=clients, setting=where(state), measured=counted)


LAB = spec(__name__, Trust, Sample, Vary, Forget, Cost, Distil)
