"""Compare: all methods on one federation. Beside the playground's views: wall time, and what each needs and leaks."""

from collections.abc import Mapping, Sequence

from ..data import describe
from ..errors import FedlabError
from ..methods import METHODS
from ..plots import Picture
from ..plots.kit import told
from ..plots.words import listed, plural, tabled
from ..study.settings import Plan, Settings, plans_for
from .figures import Calibration
from .lab_view import LabSpec, LabView, PanelState

SHARED = "Clients are trained once for all methods. Here their time counts for each method that uses them."


class Times(LabView):
    """Wall time: words and a table."""

    name, title, ready = "times", "Time", "data"

    def draw(self, state: PanelState) -> Picture:
        parts, rows = ("seconds_local", "seconds_method"), [row for row in state.runs.current if row.outcomes]
        seconds = {row.title: [round(row.mean(part), 2) for part in parts] for row in rows}
        text = "No result yet."
        if seconds:
            slow = max(seconds, key=lambda title: sum(seconds[title]))
            text = f"{slow} takes longest, {sum(seconds[slow]):.1f} s. {SHARED}"
        table = tabled("method | local training, s | the rest, s", ((title, *of) for title, of in seconds.items()))
        return told(None, "Wall time on this machine, mean over seeds", state.setting, text, table)


class Needs(LabView):
    name, title, ready = "needs", "Needs and leaks", "always"

    def draw(self, state: PanelState) -> Picture:
        columns = {"method": "title", "rounds": "rounds", "bytes of one client": "traffic", "extra data": "extra"}
        rows, plans = [], plans_of(state)
        for info in (METHODS[name].info for name in state.methods):
            row = {text: getattr(info, name) for text, name in columns.items()}
            row |= {"local work": passes(plans[info.name])} if plans else {}
            leaks = plans[info.name].method.leaks if plans else info.leaks
            rows.append({**row, "what leaks": leaks or "nothing beyond its answers"})
        return needs(rows)


def needs(rows: Sequence[Mapping[str, str]]) -> Picture:
    """What methods need and leak, in words and a table. Rows hold `method` and `extra data`."""
    free = [row["method"] for row in rows if row["extra data"] == "nothing"]
    need = "needs" if len(free) == 1 else "need"
    text = f"{plural(len(free), 'method')} of {len(rows)} {need} nothing but the uploads"
    text += f": {listed(free[:4])}{' and others' if len(free) > 4 else ''}." if free else "."
    return told(None, "What methods need and leak", "", text, rows)


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
