"""What each of Co-Boosting's three ideas is worth: teacher and student with some of them switched off."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ipywidgets import Dropdown

from ...panels import Asked, PanelState, made
from ...panels.figures import words
from ...plots import Picture, Series, drawing, mean_percent, seeds_of, tabled, told
from ...plots.kit import Bars
from ...plots.words import apart, number
from ...studies.statistics import difference
from ..runs import Steps, all_of, choices
from ..tried import Tried, by_seed, stored_runs

IDEAS, PARTS = ("GHS", "DHS", "EE"), ("ensemble", "server")
PAIRS = (("DHS", "EE"), ("GHS", "EE"), ("GHS", "DHS"))
ALONE = tuple((idea,) for idea in IDEAS)
SETS = {"leave one out": (IDEAS, *PAIRS, ()), "one alone": (IDEAS, *ALONE, ())}
SETS["all eight"] = (IDEAS, *PAIRS, *ALONE, ())


class Variant(NamedTuple):
    """One combination of the three ideas: which are `on`, and accuracies `{seed: 0–1}` of teacher and student."""

    on: tuple[str, ...]
    ensemble: Mapping[int, float] = {}
    server: Mapping[int, float] = {}

    @property
    def name(self) -> str:
        off = [idea for idea in IDEAS if idea not in self.on]
        if not off or len(off) == 3:
            return "none" if off else "all three"
        return f"no {off[0]}" if len(off) == 1 else f"{self.on[0]} alone"


class Switches(Tried):
    """The method again with ideas switched off, on the federations that the controls say."""

    name, title, work_label, of = "switches", "GHS, DHS, EE", "Run these variants", "which"

    def __init__(self) -> None:
        self.which = made(
            Dropdown,
            label="Variants",
            help="Which combinations to run",
            width=200,
            options=list(SETS),
        )

    def asked(self, state: PanelState) -> Asked:
        settings = {**state.settings, "coboosting.answer": "server"}
        sets = {Variant(on).name: on for on in SETS[self.which.value]}
        of = {
            name: {f"coboosting.{idea.lower()}": idea in on for idea in IDEAS}
            for name, on in sets.items()
        }
        return choices("coboosting", settings, of)

    def work(self, state: PanelState) -> Steps:
        """Run the method with some of its three ideas switched off, on the federation that the controls describe"""
        which = self.which.value
        outcomes = yield from all_of(self.asked(state))
        variants = [
            Variant(on, *accuracies_of(of))
            for on, of in zip(SETS[which], outcomes.values(), strict=True)
        ]
        return words(state.settings), variants, which

    def kept(self, state: PanelState) -> Any:
        about, rows = stored_runs("switches")
        by_ideas = {
            tuple(i for i in IDEAS if row["at"][f"coboosting.{i.lower()}"]): row for row in rows
        }
        of = ((on, by_ideas[on]) for on in SETS[self.which.value])
        return about, [
            Variant(on, by_seed(row, "report.ensemble_curve.-1"), by_seed(row)) for on, row in of
        ]

    def tried(self, state: PanelState) -> Picture:
        return switches(state.worked[1], state.worked[0])


def accuracies_of(outcomes: Mapping[int, Any]) -> tuple[dict[int, float], dict[int, float]]:
    """Of the ensemble f̄_w after its last epoch, and of the server model, by seed."""
    ensemble = {seed: o.report.ensemble_curve[-1] for seed, o in outcomes.items()}
    return ensemble, {seed: o.accuracy for seed, o in outcomes.items()}


def switches(variants: Sequence[Variant], setting: str) -> Picture:
    """Bars of teacher and student; the first variant is what the others are compared with, seed by seed."""
    whole = variants[0]
    with drawing(1, 2) as (figure, axes):
        for ax, part, title in zip(
            axes, PARTS, ("Ensemble (teacher)", "Server model (student)"), strict=True
        ):
            rows = [
                Series(v.name, accuracies=getattr(v, part), method="coboosting") for v in variants
            ]
            Bars(ax, rows).update(rows, title)
    table = []
    for v in variants:
        row = [v.name, *("on" if idea in v.on else "off" for idea in IDEAS)]
        for part in PARTS:
            values = getattr(v, part)
            row += [mean_percent(values) if values else "not run yet"]
            row += [
                apart(values, getattr(whole, part), one_seed="one seed")
                if values and v is not whole
                else ""
            ]
        table.append(row)
    columns = "variant | GHS | DHS | EE | ensemble | ensemble, against all three | server | server, against all three"
    title = "Bars of the accuracy of ensemble and server model with ideas switched off"
    return told(figure, title, setting, verdict(whole, variants[1:]), tabled(columns, table))


def verdict(whole: Variant, others: Sequence[Variant]) -> str:
    """Which switches matter for teacher and student; what cannot be told from noise is named by its absence."""
    parts = []
    for part in PARTS:
        gaps = {v.name: difference(getattr(v, part), getattr(whole, part)) for v in others}
        said = [f"{name} {number(of, sign='+')}" for name, of in gaps.items() if not of.is_noise]
        parts.append(f"of the {part} {', '.join(said) or 'nothing'}")
    return f"Clear in points ({seeds_of(whole.ensemble)}, against all three): {'; '.join(parts)}."
