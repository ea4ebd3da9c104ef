"""Compare: all methods on one federation. Beside the playground's views: wall time, and what each needs and leaks."""

from ..data import describe
from ..errors import FedlabError
from ..methods import METHODS
from ..plots.cost import needs, times
from ..study.settings import Settings, plan
from .lab_view import LabSpec, LabView, PanelState


class Times(LabView):
    name, title, ready = "times", "Time", "data"

    def draw(self, state: PanelState):
        parts = ("seconds_local", "seconds_method")
        rows = [row for row in state.runs.current if row.outcomes]
        seconds = {row.title: tuple(row.mean(part) for part in parts) for row in rows}
        return times([s for s in state.runs.series() if s.name in seconds], seconds)


class Needs(LabView):
    name, title, ready = "needs", "Needs and leaks", "always"

    def draw(self, state: PanelState):
        columns = {"method": "title", "rounds": "rounds", "bytes of one client": "traffic", "extra data": "extra"}
        rows, work = [], local_work(state)
        for info in (METHODS[name].info for name in state.methods):
            row = {text: getattr(info, name) for text, name in columns.items()}
            row |= {"local work": work[info.name]} if work else {}
            rows.append({**row, "what leaks": info.leaks or "nothing beyond its answers"})
        return needs(rows)


def local_work(state: PanelState) -> dict[str, str]:
    """How often a client of each method passes over its own data, at the present settings; {} while they are wrong."""
    asked = {name: value for name, value in state.settings.items() if name not in ("seeds", "cache")}
    try:
        plans = plan(Settings.make(**asked), list(state.methods))
        passes = {p.name: p.local_passes(describe(p.settings.dataset).n_train) for p in plans}
    except FedlabError:
        return {}
    return {name: f"{count:.0f} passes" for name, count in passes.items()}


COMPARE = LabSpec(
    name="compare", views=(Times, Needs), settings={"seeds": 1}, last=True,
    companions=(
        "local", "fedavg", "ensemble", "feddf", "dense", "fens", "fedet", "coboosting", "fusefl", "fedlpa",
        "centralized",
    ),
)  # fmt: skip
