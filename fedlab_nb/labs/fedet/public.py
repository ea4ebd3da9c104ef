"""What Fed-ET's server learns on: a few samples of each choice of public data, and how good the student becomes."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

import ipywidgets as widgets
import numpy as np

from ...data import DATASETS
from ...methods.parts.images import OWN_SOURCES
from ...panels import Asked, PanelState, made, words
from ...plots import Picture, Series, drawing, percent, plural, tabled, told
from ...plots.kit import Bars, as_tile, photos
from ...plots.words import apart, seed_words
from ...studies import Outcome
from ..runs import Steps, all_of, choices
from ..tried import Tried, accuracies, by_seed, stored_runs

SIZES = (20, 50, 100, 0)  # of public samples; 0: all
SHOWN = 5  # samples a row


Choice = tuple[
    Series, int, float, np.ndarray | None
]  # students, public samples, mean dissent, some of the samples


class Public(Tried):
    """The same clients, other public data: one student for each choice."""

    name, title, work_label, of = "public", "Public data", "Try them", "vary"

    def __init__(self) -> None:
        help, ways = (
            "Where the public samples come from, or how many",
            [("sources", "source"), ("sizes", "size")],
        )
        self.vary = made(widgets.ToggleButtons, label="Compare", help=help, options=ways)

    def _choices(self, state: PanelState) -> dict[str, dict[str, Any]]:
        """Name -> changed settings."""
        data = state.federation.dataset
        own = OWN_SOURCES if data.x_public is not None and len(data.x_public) else ()
        if self.vary.value == "size" and own:
            most = len(data.x_public)
            return {
                f"{n or most} samples": {"fedet.public_size": n, "fedet.public": OWN_SOURCES[0]}
                for n in SIZES
                if n < most
            }
        if self.vary.value == "size":
            return {
                f"{n} samples of noise": {"fedet.public_size": n, "fedet.public": "noise"}
                for n in (50, 200, 1000)
            }
        others = [
            name
            for name in ("digits", "glyphs")
            if name != state.settings["dataset"].partition(":")[0]
        ]
        foreign = others if data.x_train.dim() == 4 else []
        return {
            name_of(name): {"fedet.public": name, "fedet.public_size": 0}
            for name in (*own, *foreign, "noise")
        }

    def asked(self, state: PanelState) -> Asked:
        return choices("fedet", state.settings, self._choices(state))

    def work(self, state: PanelState) -> Steps:
        """Run Fed-ET with each choice of public data, on the federation that the controls describe"""
        way, outcomes = self.vary.value, (yield from all_of(self.asked(state)))
        return words(state.settings), [of_runs(name, of) for name, of in outcomes.items()], way

    def kept(self, state: PanelState) -> Any:
        about, rows = stored_runs(f"{self.vary.value}s")
        numbers = [(row["report.public_samples"][0], row["report.dissent"]) for row in rows]
        names = [
            row["at"].get("fedet.public", f"{of[0]} samples")
            for row, of in zip(rows, numbers, strict=True)
        ]
        return about, [
            choice(name_of(n), by_seed(r), *of)
            for n, r, of in zip(names, rows, numbers, strict=True)
        ]

    def tried(self, state: PanelState) -> Picture:
        return public(state.worked[1], state.worked[0], 1 / len(state.class_names))


def name_of(source: str) -> str:
    """A source of public data in words; else as it is called."""
    words = {"held-out": "held-out part", "other-mix": "half the classes"}
    return words.get(source) or (DATASETS[source].title.lower() if source in DATASETS else source)


def of_runs(name: str, outcomes: Mapping[int, Outcome]) -> Choice:
    reports = [o.report for o in outcomes.values()]
    dissent, samples = [r.dissent for r in reports], reports[0].samples[:SHOWN]
    return choice(name, accuracies(outcomes), reports[0].public_samples, dissent, samples)


def choice(
    name: str,
    accuracies: Mapping[int, float],
    count: int,
    dissent: Sequence[float],
    samples: np.ndarray | None = None,
) -> Choice:
    detail = "" if "sample" in name else plural(count, "sample")
    return (
        Series(name, detail, accuracies=accuracies, method="fedet"),
        count,
        mean(dissent),
        samples,
    )


def public(tried: Sequence[Choice], setting: str, chance: float) -> Picture:
    """Bars of the students, beside some samples where they were kept;   chance: accuracy of guessing"""
    rows, *_, pictured = zip(*tried, strict=True)
    with drawing(1, 2, width_ratios=[0.01 if pictured[0] is None else 0.72, 1]) as (
        figure,
        (left, right),
    ):
        Bars(right, rows, chance).update(rows, "Test accuracy of the student")
        high = min(0.8, 0.15 * max(len(rows), 3))  # of a row; square, about
        for i, samples in enumerate(pictured):
            if samples is not None:
                strip, place = (
                    np.hstack([as_tile(image) for image in samples]),
                    (0, 1, i + high / 2, i - high / 2),
                )
                left.imshow(
                    strip.squeeze(), cmap="gray", vmin=0, vmax=1, aspect="auto", extent=place
                )
        photos(left)
        left.set(xlim=(0, 1), ylim=right.get_ylim())
        left.set_axis_off()
    worst, *_, best = sorted([*rows, *rows], key=lambda s: s.mean)
    distance = apart(
        best.accuracies,
        worst.accuracies,
        one_seed="one seed: nobody can tell how much of that is noise",
    )
    sentence = (
        f"Best student: {best.label}, {percent(best.mean)}. "
        f"Worst: {worst.label}, {percent(worst.mean)} ({distance})."
    )
    cells = (
        (s.label, n, s.number, percent(dissent), seed_words(s.accuracies))
        for s, n, dissent, _ in tried
    )
    title = "Some samples of each choice of public data, and bars of the student's accuracy"
    table = tabled("public data | samples | accuracy | dissent | seeds", cells)
    return told(figure, title, setting, sentence, table)
