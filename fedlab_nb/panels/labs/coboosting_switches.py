"""Co-Boosting's lab: what GHS, DHS and EE are worth, by running the method without them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import ipywidgets as widgets

from ...draw import Picture
from ...draw.coboosting_switches import IDEAS, Variant, switches
from ...methods import METHODS
from ..lab_view import LabView, Look
from ..scene import words

SETS = {
    "leave one out": (IDEAS, IDEAS[1:], (IDEAS[0], IDEAS[2]), IDEAS[:2], ()),
    "one alone": (IDEAS, *((idea,) for idea in IDEAS), ()),
    "all eight": (IDEAS, IDEAS[:2], (IDEAS[0], IDEAS[2]), IDEAS[1:], *((idea,) for idea in IDEAS), ()),
}


def named(on: tuple[str, ...]) -> str:
    off = [idea for idea in IDEAS if idea not in on]
    if not off:
        return "all three"
    return "none" if len(off) == 3 else f"no {off[0]}" if len(off) == 1 else f"{on[0]} alone"


class Switches(LabView):
    """The method again with ideas switched off, on the federation that the controls say, over several seeds."""

    name, title, ready = "switches", "GHS, DHS, EE", "data"
    work_label = "Run these variants"

    def __init__(self) -> None:
        super().__init__()
        self.which = widgets.Dropdown(
            options=list(SETS), description="Variants", tooltip="Which combinations to run",
            style={"description_width": "58px"}, layout=widgets.Layout(width="200px"),
        )  # fmt: skip
        self.seeds = widgets.BoundedIntText(
            3, min=1, max=20, description="Seeds", tooltip="Federations for each variant",
            style={"description_width": "40px"}, layout=widgets.Layout(width="110px"),
        )  # fmt: skip
        self.controls = [self.which, self.seeds]

    def work(self, look: Look) -> Any:
        """Run the method with some of its three ideas switched off, on the federation that the controls say"""
        from ...study import job

        settings = {k: v for k, v in look.settings.items() if takes(k)} | {"seeds": self.seeds.value}
        sets, found = SETS[self.which.value], []
        for i, on in enumerate(sets):
            switched = {f"coboosting.{idea.lower()}": idea in on for idea in IDEAS}
            ensemble, server = {}, {}
            for event in job(["coboosting"], **{**settings, **switched, "coboosting.answer": "server"}):
                if event.error is not None:
                    raise event.error
                if event.outcome is not None:
                    ensemble[event.seed] = event.outcome.extras["ensemble_curve"][-1]
                    server[event.seed] = event.outcome.accuracy
                done = (
                    i + (len(server) + event.done / max(event.total, 1) * (event.outcome is None)) / settings["seeds"]
                )
                yield done, len(sets), f"{named(on)} ({i + 1} of {len(sets)}), seed {event.seed}: {event.phase}"
            found.append(Variant(named(on), on, ensemble, server))
        return {"variants": found, "setting": words(settings), "which": self.which.value}

    def draw(self, look: Look) -> Picture:
        if look.worked and look.worked["which"] == self.which.value:
            return switches(look.worked["variants"], setting=look.worked["setting"])
        return switches(
            [Variant(named(on), on, {}, {}) for on in SETS[self.which.value]],
            setting=words({**look.settings, "seeds": self.seeds.value}),
        )


def takes(key: str) -> bool:
    """Whether a run of the method alone takes the setting `key`: not if it belongs to a method beside it."""
    from ...study.settings import RECIPE_FIELDS, Settings

    own = {knob.name for knob in METHODS["coboosting"].fields()}
    known = {f.name for f in fields(Settings)} | own | {*RECIPE_FIELDS, "seeds", "cache"}
    return key in known or key.removeprefix("coboosting.") in own
