"""What each of Co-Boosting's three ideas is worth: teacher and student with some of them switched off."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ipywidgets import BoundedIntText, Dropdown

from ...panels import LabView, PanelState, made
from ...panels.figures import words
from ...plots import Picture, Series, drawing, mean_percent, seeds_of, tabled, told
from ...plots.axes import HALVES
from ...plots.kit import Bars
from ...plots.words import points
from ...studies.statistics import difference
from ..runs import Steps, tries
from .curves import against
from .votes import last_of_ensemble, settings_for

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


class Switches(LabView):
    """The method again with ideas switched off, on the federation that the controls say, over several seeds."""

    name, title, ready, work_label = "switches", "GHS, DHS, EE", "data", "Run these variants"

    def __init__(self) -> None:
        many = {"help": "How many federations each variant is run on", "value": 3, "min": 1, "max": 20}
        self.which = made(Dropdown, label="Variants", help="Which combinations to run", width=200, options=list(SETS))
        self.seeds = made(BoundedIntText, label="Seeds", width=110, label_width=40, **many)

    def work(self, state: PanelState) -> Steps:
        """Run the method with some of its three ideas switched off, on the federation that the controls describe"""
        settings = settings_for("coboosting", state.settings)
        settings |= {"seeds": self.seeds.value, "coboosting.answer": "server"}
        which, sets = self.which.value, SETS[self.which.value]
        switched = {
            f"{Variant(on).name} ({i} of {len(sets)})": {f"coboosting.{idea.lower()}": idea in on for idea in IDEAS}
            for i, on in enumerate(sets, 1)
        }
        outcomes = yield from tries("coboosting", settings, switched)
        variants = [
            Variant(on, last_of_ensemble(runs), {seed: o.accuracy for seed, o in runs.items()})
            for on, runs in zip(sets, outcomes.values(), strict=True)
        ]
        return {"variants": variants, "setting": words(settings), "which": which}

    def draw(self, state: PanelState) -> Picture:
        if state.worked and state.worked["which"] == self.which.value:
            return switches(state.worked["variants"], state.worked["setting"])
        empty = [Variant(on) for on in SETS[self.which.value]]
        return switches(empty, words({**state.settings, "seeds": self.seeds.value}))


def switches(variants: Sequence[Variant], setting: str) -> Picture:
    """Bars of teacher and student; the first variant is what the others are compared with, seed by seed."""
    whole = variants[0]
    with drawing(1, 2) as (figure, axes):
        for ax, part, title in zip(axes, PARTS, ("Ensemble (teacher)", "Server model (student)"), strict=True):
            rows = [Series(v.name, accuracies=getattr(v, part), method="coboosting") for v in variants]
            Bars(ax, rows, x="mean, 95 % band, one dot per seed", ticks=HALVES).update(rows, title)
    table = []
    for v in variants:
        row = [v.name, *("on" if idea in v.on else "off" for idea in IDEAS)]
        for part in PARTS:
            values = getattr(v, part)
            row += [mean_percent(values) if values else "not run yet"]
            row += [against(values, getattr(whole, part)) if values and v is not whole else ""]
        table.append(row)
    columns = "variant | GHS | DHS | EE | ensemble | ensemble, against all three | server | server, against all three"
    title = "Bars of the accuracy of ensemble and server model with ideas switched off"
    return told(figure, title, setting, verdict(whole, variants[1:]), tabled(columns, table))


def verdict(whole: Variant, others: Sequence[Variant]) -> str:
    """Which switch matters for teacher and student, and which cannot be told from noise."""
    if not whole.ensemble:
        return "Which switch costs the ensemble most? Which one the server model? Guess, then press the button."
    parts = []
    for part in PARTS:
        gaps = {v.name: difference(getattr(v, part), getattr(whole, part)) for v in others}
        said = (f"{name} {points(of)}{' (within the noise)' * of.is_noise}" for name, of in gaps.items())
        parts.append(f"{part.capitalize()}: {', '.join(said)}")
    return f"{'. '.join(parts)} ({seeds_of(whole.ensemble)}, against all three)."
