"""Compare: all methods on one federation. Beside the playground's views: wall time, and what each needs and leaks."""

from ..data import describe
from ..errors import FedlabError
from ..methods import METHODS
from ..plots.cost import needs, times
from ..study.settings import Plan, Settings, plans_for
from .figures import Calibration
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
        rows, plans = [], plans_of(state)
        for info in (METHODS[name].info for name in state.methods):
            row = {text: getattr(info, name) for text, name in columns.items()}
            row |= {"local work": passes(plans[info.name])} if plans else {}
            leaks = plans[info.name].method.leaks if plans else info.leaks
            rows.append({**row, "what leaks": leaks or "nothing beyond its answers"})
        return needs(rows)


def plans_of(state: PanelState) -> dict[str, Plan]:
    """What each method would do at the present settings; {} while they are wrong."""
    asked = {name: value for name, value in state.settings.items() if name not in ("seeds", "cache")}
    try:
        return {p.name: p for p in plans_for(Settings.make(**asked), list(state.methods))}
    except FedlabError:
        return {}


def passes(p: Plan) -> str:
    """How often a client of the method passes over its own data."""
    return f"{p.local_passes(describe(p.settings.dataset).n_train):.0f} passes"


COMPARE = LabSpec(
    name="compare", views=(Calibration, Times, Needs), settings={"seeds": 1}, last=True,
    companions=(
        "local", "fedavg", "ensemble", "feddf", "dense", "fens", "fedet", "coboosting", "fusefl", "fedlpa",
        "centralized",
    ),
)  # fmt: skip
