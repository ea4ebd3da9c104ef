"""Fed-ET's lab. Here: one sample and its experts. `lab_weights`: temperature, dissent, λ_div, all on remembered logits.
`lab_runs`: the feedback loop; public data and traffic, which need runs of their own.
"""

from typing import Any

import numpy as np

from ...data import load
from ...methods.fedet.consensus import Consensus
from ...panels.state import PanelState
from ...plots import Picture
from ..runs import where
from ..views import View, spec
from .lab_runs import Public, Rounds, Traffic
from .lab_weights import Dissent, Target, Temperature, leaf_to
from .numbers import as_image, rule_of, softmax, votes
from .plots.expert import Sample, expert

SPREADS = {"logit-variance": "variance of the raw logits", "logits": "variance of the raw logits", "uniform": "equal"}


class Expert(View, name="expert"):
    """One sample: every client's output, its weight, who dissents, the consensus, and what the server says."""

    _of: Any = None
    _votes: tuple[Any, ...] = (None, None, None)

    def _tests(self, state: PanelState) -> bool:
        """Whether test samples are leafed through, whose classes are known."""
        return state.outcome is not None and self.kind.value != "public"

    def _vote(self, state: PanelState) -> Consensus:
        """Remembered until the logits or the rule change: leafing through samples asks for it again and again."""
        logits = state.report.test_logits if self._tests(state) else state.report.logits
        rule = self.rule.value, self.heat.value
        if self._votes[0] is not logits or self._votes[1] != rule:
            self._votes = logits, rule, votes(logits, *rule)
        return self._votes[2]

    def _rows(self, state: PanelState) -> np.ndarray:
        """Which samples are leafed through, by dissent where that is the question; all, where there are none."""
        vote, kind = self._vote(state), self.kind.value
        mass, labels = vote.mass.numpy(), vote.labels.numpy()
        truth = state.report.test_truth if self._tests(state) else labels
        keep, order = np.ones(len(mass), dtype=bool), np.arange(len(mass))
        if self._tests(state) and kind == "wrong":
            keep = labels != truth
        elif self._tests(state) and kind in ("agreed", "disputed"):
            order = np.argsort(mass if kind == "agreed" else -mass, kind="stable")
        if state.klass is not None:
            mine = keep & (truth == state.klass)
            keep = mine if mine.any() else keep
        return order[keep[order]] if keep.any() else order

    def adapt(self, state: PanelState) -> None:
        """A new outcome brings its own rule and temperature, and its own samples."""
        if state.outcome is not None and state.outcome is not self._of:
            self._of = state.outcome
            self.rule.value, heat = rule_of(state.outcome.options)
            self.heat.value = min(max(heat, 0.1), 100)
        self.heat.disabled = self.rule.value != "softmax"
        leaf_to(self.at, len(self._rows(state)) - 1)

    def draw(self, state: PanelState) -> Picture:
        vote, rows, report, rule = self._vote(state), self._rows(state), state.report, self.rule.value
        i = int(rows[min(self.at.value, len(rows) - 1)])
        if self._tests(state):
            number, truth = int(report.test_rows[i]), int(report.test_truth[i])
            logits, student = report.test_logits, report.test_student
            x = load(state.outcome.settings.dataset).x_test[number].numpy()
        else:
            number, truth, logits, student, x = i, None, report.logits, report.student, report.samples[i]
        values = softmax(logits[:, i] / self.heat.value) if rule == "softmax" else logits[:, i]
        heat = f" at τ = {self.heat.value:.3g}" if rule == "softmax" and self.heat.value != 1 else ""
        counts = None if state.outcome is None else state.outcome.label_counts[report.members, int(vote.labels[i])]
        return expert(
            Sample(
                vote.outputs[:, i].numpy(), vote.weights[:, i].numpy(), values.var(-1), vote.distribution[i].numpy(),
                report.members.tolist(), state.class_names, f"{'public' if truth is None else 'test'} sample {number}",
                where(state), SPREADS.get(rule, "variance of the softmax") + heat, student=softmax(student[i]),
                image=as_image(x), truth=truth, held=counts, client=state.client, klass=state.klass,
            )
        )  # fmt: skip


LAB = spec(__name__, Expert, Temperature, Dissent, Target, Rounds, Public, Traffic)
