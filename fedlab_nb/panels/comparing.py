"""Compare: all methods on one federation. Beside the playground's views: wall time, and what each needs and leaks."""

from __future__ import annotations

from statistics import mean

from ..draw.cost import needs, times
from ..methods import METHODS
from .lab_view import LabSpec, LabView, Look

METHODS_AT_START = (
    "local", "fedavg", "ensemble", "feddf", "dense", "fens", "fedet", "coboosting", "fusefl", "fedlpa", "centralized",
)  # fmt: skip


class Times(LabView):
    name, title, ready = "times", "Time", "data"

    def draw(self, look: Look):
        seconds = {
            row.title: tuple(
                mean(getattr(o, part) for o in row.outcomes.values()) for part in ("seconds_local", "seconds_method")
            )
            for row in look.record.current
            if row.outcomes
        }
        return times([s for s in look.record.series() if s.name in seconds], seconds)


class Needs(LabView):
    name, title, ready = "needs", "Needs and leaks", "always"

    def draw(self, look: Look):
        chosen = [METHODS[name].info for name in look.methods]
        return needs(
            [
                {
                    "method": info.title,
                    "rounds": info.rounds,
                    "bytes of one client": info.traffic,
                    "extra data": info.extra,
                    "what leaks": info.leaks or "nothing beyond its answers",
                }
                for info in chosen
            ]
        )


COMPARE = LabSpec(name="compare", views=(Times, Needs), settings={"seeds": 1}, last=True)
