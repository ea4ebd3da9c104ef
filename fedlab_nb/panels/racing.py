"""Race: one-shot methods against multi-round ones as bytes are spent. A run is recorded, then played."""

import ipywidgets as widgets

from ..plots.race import STEPS, Race
from ..plots.style import current_size
from ..plots.words import data_size
from .lab_view import LabSpec, LabView, PanelState
from .theme import named

QUICK, SLOW = 350, 1200  # milliseconds a step


class Track(LabView):
    name, title, ready = "race", "The race", "run"
    empty = "Press Run, then Play: the methods spend their bytes side by side."

    def __init__(self) -> None:
        super().__init__()
        self.play = named("play", value=STEPS, min=0, max=STEPS, interval=QUICK)
        self.spent = named("spent", value=STEPS, min=0, max=STEPS)
        self.step, self.slow = named("step"), named("slow")
        self.label = widgets.HTML()
        self.link = widgets.jslink((self.play, "value"), (self.spent, "value"))
        self.slow.observe(lambda change: setattr(self.play, "interval", SLOW if change["new"] else QUICK), "value")
        self.step.on_click(lambda _: setattr(self.spent, "value", (self.spent.value + 1) % (STEPS + 1)))
        self.controls = [self.play, self.step, self.slow, self.spent, self.label]
        self.drivers = {"value": self.spent, "play": self.play}
        self._of: tuple = ()
        self._race = Race(())

    def race(self, state: PanelState) -> Race:
        """The race of the present results, made for the size of the frame."""
        if self._of != (of := (state.runs, current_size())):
            self._of, self._race = of, Race(state.runs.series())
        return self._race

    def draw(self, state: PanelState):
        race = self.race(state)
        budget = race.budget(self.spent.value)
        self.label.value = f"<span>{data_size(budget)}</span>"
        return race.show(budget)


RACE = LabSpec(
    name="race", views=(Track,), settings={"seeds": 1}, ran=Track.name,
    companions=("fedavg", "ensemble", "fens", "fedlpa", "fedavg_multi", "fedadam"),
)  # fmt: skip
