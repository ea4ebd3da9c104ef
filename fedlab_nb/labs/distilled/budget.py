"""Accuracy for several numbers of images per class, in words with one client's bytes."""

from collections.abc import Mapping
from typing import NamedTuple

import ipywidgets as widgets

from ...methods import label_of
from ...panels import Asked, PanelState, made, words
from ...plots import Picture, data_size, mean_percent
from ...plots.study import against
from ...plots.style import INK, Look, look
from ...studies.outcome import Outcome
from ..runs import Steps, all_of, choices
from ..tried import Tried, accuracies
from .sent import WAYS

PER_CLASS = (1, 2, 3, 5, 10)


class Bytes(Tried):
    name, title, work_label = "budget", "Accuracy and bytes", "Try 1 to 10 per class"

    def __init__(self) -> None:
        help, many = (
            "The sentence has the test accuracy for this number",
            {"options": PER_CLASS, "value": 3},
        )
        self.per_class = made(
            widgets.SelectionSlider, label="Images per class", help=help, width=340, **many
        )

    def asked(self, state: PanelState) -> Asked:
        return choices(
            "distilled",
            state.settings,
            {f"m_c = {m}": {"distilled.per_class": m} for m in PER_CLASS},
        )

    def work(self, state: PanelState) -> Steps:
        """Run with 1, 2, 3, 5 and 10 images per class, on every seed of the panel. Nothing else changes"""
        outcomes = yield from all_of(self.asked(state))
        points = dict(zip(PER_CLASS, map(budget, outcomes.values()), strict=True))
        return points, f"{words(state.settings)}, {WAYS[state.knobs['images']]}"

    def tried(self, state: PanelState) -> Picture:
        points, setting = state.worked
        others = {
            label_of(name, state.settings): budget(runs)
            for name, runs in state.others.items()
            if runs
        }
        return budgets(points, self.per_class.value, setting=setting, others=others)


class Budget(NamedTuple):
    """One value of `m_c`: bytes up of the client that sends most, accuracies `{seed: share}` on validation and test
    images."""

    bytes: int
    validation: dict[int, float]
    test: dict[int, float]


def budget(outcomes: Mapping[int, Outcome]) -> Budget:
    """`Budget` of the outcomes `{seed: Outcome}` with one `m_c`."""
    validation = {
        s: o.accuracy_validation for s, o in outcomes.items() if o.accuracy_validation is not None
    }
    up = max(up for up, _ in next(iter(outcomes.values())).ledger.by_client().values())
    return Budget(up, validation, accuracies(outcomes))


def budgets(
    points: Mapping[int, Budget], chosen: int, *, setting: str, others: Mapping[str, Budget]
) -> Picture:
    """Lines of validation accuracy over images per class, beside the other methods of the run.

    points: by rising `m_c`;   chosen: `m_c` whose test accuracy is shown
    others: {title of another method: the same} of the same run
    """
    taken, few, many = points[chosen], points[min(points)], points[max(points)]
    lines = {"validation images": {m: p.validation for m, p in points.items() if p.validation}}
    lines["test images"] = {chosen: taken.test}
    lines |= {title: dict.fromkeys(points, of.test) for title, of in others.items()}
    text = f"With {chosen} per class the server is right for {mean_percent(taken.test)} of the test images, for at most"
    text += f" {data_size(taken.bytes)} a client"
    text += f" ({min(points)}: {data_size(few.bytes)}, {max(points)}: {data_size(many.bytes)})"
    text += (
        "".join(
            f"; {title}: {mean_percent(of.test)}, {data_size(of.bytes)}"
            for title, of in others.items()
        )
        + "."
    )
    lines, own = {name: of for name, of in lines.items() if of}, look("distilled")
    looks = {"validation images": own, "test images": Look(INK, "*", "-")}
    looks = {name: of for name, of in looks.items() if name in lines}
    return against(
        lines, "m_c", "images per class m_c", setting=setting, sentence=text, methods=looks
    )
