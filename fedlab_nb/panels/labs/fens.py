"""FENS' lab. Here: whom the aggregator trusts, round by round. `fens_sample`: one test sample. `fens_cost`: bytes at
two sizes. `fens_tries`: one knob at several values. `fens_again`: phase 2 without a client, and one student for all.
"""

from __future__ import annotations

import ipywidgets as widgets
import numpy as np

from ...draw import Picture
from ...draw.fens_trust import Trust as TrustPicture
from ..lab_view import Extra, LabSpec, LabView, Look
from .fens_again import Distil, Forget
from .fens_cost import Cost
from .fens_sample import Sample
from .fens_tries import WIDE, Vary, where


class Trust(LabView):
    """The aggregator's table beside who holds what, round by round while phase 2 runs, and as a replay afterwards."""

    name, title, ready = "trust", "Who is trusted", "live"
    empty = "Press Run: beside who holds what, the aggregator's table grows round by round."

    def __init__(self) -> None:
        super().__init__()
        self.round = widgets.SelectionSlider(
            options=[("end", 0)], description="Round", tooltip="The table after which round", style=WIDE,
            layout={"width": "250px"},
        )  # fmt: skip
        self.play = widgets.Play(value=0, min=0, max=0, interval=450, tooltip="Replay the rounds", show_repeat=False)
        widgets.jslink((self.play, "value"), (self.round, "index"))
        # In a box of its own Play is no control of the view: the slider that it moves redraws.
        self.table = widgets.Dropdown(
            options=[("weight", False), ("weight × logit", True)], description="Table", style=WIDE,
            tooltip="The weight alone, or what a client adds to the score of the true class on average (at the end)",
            layout={"width": "190px"},
        )  # fmt: skip
        self.controls = [widgets.HBox([self.play]), self.round, self.table]
        self._picture, self._shown = TrustPicture(), None

    def adapt(self, look: Look) -> None:
        """A new outcome brings its own rounds, and is seen from its end."""
        if look.outcome is self._shown:
            return
        self._shown = look.outcome
        rounds = [] if look.outcome is None else look.outcome.artefacts.get("frame_rounds", ())
        options = [(str(int(t)), i) for i, t in enumerate(rounds)] or [("end", 0)]
        self.round.options = options
        self.play.max, self.round.index = len(options) - 1, len(options) - 1
        self.play.value = len(options) - 1

    def draw(self, look: Look) -> Picture:
        outcome = look.outcome
        marks = {"setting": where(look), "client": look.client, "klass": look.klass}
        if outcome is None:
            counts = look.federation.label_counts.numpy()
            weights = spread(look.live["influence"], look.live["members"], counts)
            knobs = look.knobs
            rule, at = knobs["aggregator"], int(look.live["round"][0])
            return self._picture.show(
                counts, weights, look.class_names, rule=rule, at=at, rounds=knobs["rounds"], **marks
            )
        counts, kept, rule = outcome.label_counts, outcome.artefacts, outcome.setting["options"]["aggregator"]
        frames = kept.get("aggregator_frames")
        if frames is None:
            table = kept["competency"].diagonal(axis1=1, axis2=2) if rule == "voting" else kept["aggregator_weights"]
            return self._picture.show(
                counts, spread(table, kept["members"], counts), look.class_names, rule=rule, **marks
            )
        if self.table.value:
            added = spread(kept["aggregator_contribution"], kept["members"], counts)
            return self._picture.show(counts, added, look.class_names, rule="added", **marks)
        at = min(self.round.index or 0, len(frames) - 1)
        return self._picture.show(
            counts, spread(frames[at], kept["members"], counts), look.class_names, rule=rule,
            at=int(kept["frame_rounds"][at]), rounds=int(kept["frame_rounds"][-1]), limit=float(np.abs(frames).max()),
            **marks,
        )  # fmt: skip


def spread(table: np.ndarray, members: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """`table` with a row for every client of `counts [M, C]`; nan for those who take no part."""
    whole = np.full(counts.shape, np.nan)
    inside = members < len(counts)  # the sliders may have moved on while the method runs
    whole[members[inside]] = table[inside]
    return whole


LAB = LabSpec(
    method="fens",
    companions=("fedavg", "ensemble"),
    knobs=("aggregator", "rounds", "bits", "without"),
    extras=(
        Extra(
            "holdout",
            "Proxy share",
            tuple((f"{100 * share:g} %", share) for share in (0.1, 0.02, 0.05, 0.2, 0.4)),
            "How much of its data each client keeps away from local training, for the aggregator",
        ),
    ),
    settings={"alpha": 0.1, "seeds": 1},
    views=(Trust, Sample, Vary, Forget, Cost, Distil),
    name="fens",
)
