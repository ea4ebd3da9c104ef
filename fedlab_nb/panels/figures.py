"""The views that every panel has: who holds what, accuracy, communication, features, classes; what the comparison and
the race have beside them; and the panel in one picture. From a `PanelState` to `plots`, with the slow part (t-SNE)
remembered.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ipywidgets as widgets
import numpy as np

from .. import plots
from ..data import describe
from ..errors import FedlabError
from ..methods import METHODS
from ..plots.accuracy import table
from ..plots.embed import POINTS, tsne_apart
from ..plots.journey import journey
from ..plots.race import STEPS, Race
from ..plots.stored_curves import StoredPlot
from ..plots.style import current_size, narrow, sized
from ..plots.words import Setting, data_size, listed, own_name, percent, plural
from ..studies.settings import Plan, Settings, plans_for
from .lab_view import LabSpec, LabView, PanelState, caption, words
from .record import Runs
from .theme import made, offer, player, show_if

MOST_MAPS = 60  # remembered
STILL = (10.5, 4.1)  # inches of the picture in a saved notebook
QUICK, SLOW, STEP = (
    180,
    600,
    3,
)  # a race that plays: milliseconds from one place to the next, so many steps on
STRIDE = 6  # steps of the button "Step"
WHAT_TO_DO = (
    "Set α and the number of clients, then press Run. The chosen methods are then compared."
)


class WhoHoldsWhat(LabView):
    """The partition; before the first run with the stored results beside it."""

    name, title, ready = "partition", "Who holds what", "data"
    needs = ("federation", "stored", "client", "klass", "frame")
    empty, waiting = "No data to show.", ""

    def __init__(self) -> None:
        super().__init__()
        self._picture = plots.Partition()

    def draw(self, state: PanelState) -> plots.Picture:
        stored = state.stored.make_bars() if state.stored and not narrow() else None
        words = {"setting": where(state), "client": state.client, "klass": state.klass}
        return self._picture.show(state.federation, stored=stored, **words)

    def caption(self, state: PanelState) -> str:
        if state.federation is None:
            return ""
        skewed = " Smaller α is more skewed." if "α" in str(where(state)) else ""
        return f"{where(state)}.{skewed}" + (
            f" At the right {state.stored.table.label}." if state.stored else ""
        )


class ResultView(LabView):
    """A picture of the present run, from its first curve on, with the pinned rows beside it."""

    ready, empty, waiting = "live", WHAT_TO_DO, "Training …"

    def is_ready(self, state: PanelState) -> bool:
        return any(row.outcomes or row.live for row in state.runs.current)


class Accuracy(ResultView):
    """Accuracy, the best first once all is done; before the first run of the stored results."""

    name, title, needs = "accuracy", "Accuracy", ("runs", "stored", "frame", "running")

    def __init__(self) -> None:
        super().__init__()
        self._stored = StoredPlot()
        about = "Bars in the order of the list of methods, in place of the best first"
        self.listed = made(
            widgets.Checkbox, label="In the order of the list", help=about, indent=False
        )

    def adapt(self, state: PanelState) -> None:
        show_if(state.stored is None, self.listed)

    def is_ready(self, state: PanelState) -> bool:
        return super().is_ready(state) or state.stored is not None

    def draw(self, state: PanelState) -> plots.Picture:
        if state.stored is not None:
            return state.stored.draw(self._stored)
        rows = state.runs.series(others=True)
        if not state.running and not self.listed.value:
            rows = sorted(rows, key=lambda s: s.mean if s.accuracies else -1.0, reverse=True)
        return plots.accuracy(rows, chance=1 / len(state.class_names))

    def caption(self, state: PanelState) -> str:
        if state.stored is not None:
            return "Nothing was run here yet: these are stored results. Press Run to get your own."
        return caption(state)


class Communication(ResultView):
    name, title, needs = "communication", "Communication", ("runs", "client", "frame")

    def draw(self, state: PanelState) -> plots.Picture:
        return plots.communication(
            state.runs.series(), client_bytes=bytes_of(state.runs, state.client)
        )


class Features(ResultView):
    """Maps of the features: PCA at once, t-SNE when it is made."""

    name, title, preview = "features", "Features (t-SNE)", True
    needs = ("runs", "client", "klass", "frame")

    def __init__(self) -> None:
        super().__init__()
        self.maps = made(
            widgets.Dropdown, "fl-maps", label="Methods", label_width=62, options=[("all", 0)],
            help="Which methods' maps are shown; the table has all of them",
        )  # fmt: skip
        self.controls = (self.maps,)
        self._maps: dict[
            int, dict[str, Any]
        ] = {}  # by the identity of the feature array, which is kept with it

    def draw(self, state: PanelState) -> plots.Picture:
        names, client, klass, held, who = state.class_names, state.client, state.klass, None, ""
        setting = state.runs.current[0].setting
        if klass is not None and klass < len(names):
            held, who = [c == klass for c in range(len(names))], f"class {names[klass]}"
        elif client is not None and (
            first := next((o for row in state.runs.current for o in row.outcomes.values()), None)
        ):
            counts = np.asarray(first.label_counts)
            if client < len(counts):
                held, who = (
                    list(counts[client] > 0),
                    f"classes that client {own_name(client, setting)} holds",
                )
        maps = []
        for s in with_features(state.runs):
            known = self._map(s)
            how, at = ("t-SNE", known["tsne"]) if "tsne" in known else ("PCA", known["pca"])
            maps.append(plots.Map(s.lines, at, s.labels[:POINTS], known["score"], how))
        return plots.features(
            maps, names, setting=setting, held=held, who=who, first=self.maps.value
        )

    def adapt(self, state: PanelState) -> None:
        """With more methods than one picture has room for: which of them are seen."""
        count = len(with_features(state.runs))
        starts = range(0, max(count, 1), plots.MAPS)
        offer(
            self.maps,
            [
                (f"{start + 1} to {min(start + plots.MAPS, count)} of {count}", start)
                for start in starts
            ],
        )
        show_if(len(starts) > 1, self.maps)

    def _map(self, s: plots.Series) -> dict[str, Any]:
        key = id(s.features)
        if key not in self._maps:
            score = plots.neighbour_accuracy(s.features, s.labels)
            self._maps[key] = {
                "features": s.features,
                "pca": plots.pca(s.features[:POINTS]),
                "score": score,
            }
            while len(self._maps) > MOST_MAPS:
                self._maps.pop(next(iter(self._maps)))
        return self._maps[key]

    def _missing(self, state: PanelState) -> list[plots.Series]:
        return [s for s in with_features(state.runs) if "tsne" not in self._map(s)]

    def lacks(self, state: PanelState) -> bool:
        return bool(self._missing(state))

    def prepare(self, state: PanelState) -> Iterator[None]:
        """The t-SNE maps that are missing, one by one; where a browser waits for other pictures, in another process."""
        for s in self._missing(state):
            features = s.features[:POINTS]
            self._map(s)["tsne"] = (
                (yield from tsne_apart(features)) if state.frame[0] else plots.tsne(features)
            )
            yield


class Classes(ResultView):
    name, title, needs = "classes", "Clients and classes", ("runs", "client", "klass", "frame")

    def draw(self, state: PanelState) -> plots.Picture:
        series = state.runs.series(same_classes=True)
        return plots.classes(series, state.class_names, client=state.client, klass=state.klass)


class Calibration(LabView):
    """How sure the methods are, and how often they are right: not of the stored results, which have no such counts."""

    name, title = "calibration", "Calibration"
    empty = "The stored results have no reliability diagrams. Press Run: then they are drawn from your results."

    def draw(self, state: PanelState) -> plots.Picture:
        return plots.calibration(state.runs.series())


class Times(LabView):
    """Wall time."""

    name, title = "times", "Time"
    empty = "Press Run: then this shows how long each method took."

    def draw(self, state: PanelState) -> plots.Picture:
        done = [row for row in state.runs.current if row.outcomes]
        rows = [(row.title, row.mean("seconds_local"), row.mean("seconds_method")) for row in done]
        return plots.times(rows, setting=state.setting)


class Needs(LabView):
    name, title, ready = "needs", "Needs and leaks", "always"

    def draw(self, state: PanelState) -> plots.Picture:
        plans, rows = plans_of(state), []
        for info in (METHODS[name].info for name in state.methods):
            row = {"method": info.title, "rounds": info.rounds, "bytes of one client": info.traffic}
            plan = plans.get(info.name)
            own = {"local work": passes(plan)} if plan else {}
            leaks = plan.method.leaks if plan else info.leaks
            rows.append(
                row
                | {
                    "extra data": info.extra,
                    **own,
                    "what leaks": leaks or "nothing beyond its answers",
                }
            )
        free = [row["method"] for row in rows if row["extra data"] == "nothing"]
        text = f"{len(free)} of {plural(len(rows), 'method')} need nothing but the uploads: {listed(free) or 'none'}."
        seen = journey(*state.methods)
        alt = f"{seen.alt} Below it a table of what methods need and leak."
        return replace(seen, alt=alt, sentence=text, table=rows, tabled=True)


def plans_of(state: PanelState) -> dict[str, Plan]:
    """What each method would do at the present settings; {} while they are wrong."""
    asked = {
        name: value for name, value in state.settings.items() if name not in ("seeds", "cache")
    }
    try:
        return {p.name: p for p in plans_for(Settings.make(**asked), list(state.methods))}
    except FedlabError:
        return {}


def passes(p: Plan) -> str:
    """How often a client of the method passes over its own data."""
    return f"{p.local_passes(describe(p.settings.dataset).n_train):.0f} passes"


class Track(LabView):
    name, title, ready = "race", "The race", "live"
    empty = "Press Run, then Play: the methods spend their bytes side by side."

    def __init__(self) -> None:
        super().__init__()
        self.spent = made(
            widgets.IntSlider, label="Bytes spent", value=STEPS, min=0, max=STEPS, readout=False, width=280,
            label_width=84, help="How many bytes have been spent, on a logarithmic scale",
        )  # fmt: skip
        self.play = player(
            self.spent, description="Play", tooltip="Spend the bytes step by step", show_repeat=False, interval=QUICK,
            step=STEP,
        )  # fmt: skip
        self.step = made(widgets.Button, label="Step", help="Spend a little more", width=64)
        self.slow = made(widgets.Checkbox, label="slow", value=False, indent=False, width=66)
        self.label = widgets.HTML()
        self.slow.observe(
            lambda change: setattr(self.play, "interval", SLOW if change["new"] else QUICK), "value"
        )
        self.step.on_click(
            lambda _: setattr(self.spent, "value", (self.spent.value + STRIDE) % (STEPS + STRIDE))
        )
        # In a box of its own what the label says is no move of a control, which would draw once more.
        self.controls = [self.play, self.step, self.slow, self.spent, widgets.HBox([self.label])]
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


COMMON = (WhoHoldsWhat, Accuracy, Communication, Features, Classes)


def where(state: PanelState) -> Setting:
    """The partition's setting in words: that of the first seed."""
    return words({**state.settings, "seeds": 1})


def with_features(runs: Runs) -> list[plots.Series]:
    return [
        s for s in runs.series(same_classes=True) if s.features is not None and len(s.features) > 1
    ]


def summary(state: PanelState) -> plots.Picture:
    """The state in one picture: the present partition, and beside it the results of the last run where there are any;
    its sentence is what a saved notebook keeps as text."""
    series = [s for s in state.runs.series() if s.accuracies] if state.runs.has_results else []
    with sized(STILL):
        stored = (series, f"Test accuracy, {series[0].seeds}") if series else None
        picture = plots.Partition().show(state.federation, setting=where(state), stored=stored)
    values = ", ".join(f"{s.name} {percent(s.mean)}" for s in series)
    skew = state.federation.skew
    about = f"skew {skew.jensen_shannon:.2f}, {skew.effective_classes:.1f} of {len(state.class_names)} classes a client"
    ran = (
        f"Accuracy, {series[0].seeds}: {values}. {plots.verdict(series)}" if series else WHAT_TO_DO
    )
    return replace(picture, sentence=f"{where(state)} ({about}). {ran}", table=table(series))


def bytes_of(runs: Runs, client: int | None) -> str:
    """What one client of the first seed sends and receives, method by method, in a sentence."""
    if client is None:
        return ""
    firsts = [
        (row.title, next(iter(row.outcomes.values()))) for row in runs.current if row.outcomes
    ]
    parts = [
        f"{title} {data_size(sum(one.ledger.by_client().get(client, (0, 0))))}"
        for title, one in firsts
    ]
    return (
        f"Client {own_name(client, runs.current[0].setting)}, up and down: {'; '.join(parts)}."
        if parts
        else ""
    )


PLAYGROUND = LabSpec(
    companions=("local", "fedavg", "ensemble", "fens", "fedlpa", "afl", "gauss"), views=(Calibration,),
    first="communication",
)  # fmt: skip
COMPARE = LabSpec(
    name="compare", views=(Calibration, Times, Needs), settings={"seeds": 1}, last=True,
    companions=(
        "local", "fedavg", "ensemble", "feddf", "dense", "fens", "fedet", "coboosting", "fusefl", "fedlpa",
        "centralized",
    ),
)  # fmt: skip
RACE = LabSpec(
    name="race", views=(Track,), settings={"seeds": 1},
    companions=("fedavg", "ensemble", "fens", "fedlpa", "fedavg_multi", "fedadam"),
)  # fmt: skip
