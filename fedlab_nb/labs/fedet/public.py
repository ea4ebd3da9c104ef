"""What Fed-ET's server learns on: a few samples of each choice of public data, and how good the student becomes."""

from collections.abc import Mapping
from statistics import mean
from typing import Any

import ipywidgets as widgets
import numpy as np

from ...data import DATASETS, load
from ...methods.parts.images import OWN
from ...panels import Asked, LabView, PanelState, made
from ...plots import Picture, Series, blank, drawing, percent, plural, tabled, told
from ...plots.kit import Bars, as_tile
from ...plots.words import apart, seed_words
from ...studies import Outcome
from ..runs import Steps, all_of, choices

SIZES = (20, 50, 100, 0)  # of public samples; 0: all
SHOWN = 5  # samples a row


class Public(LabView):
    """The same clients, other public data: one student for each choice."""

    name, title, work_label = "public", "Public data", "Try them"
    empty = "Press Run. Then one student can be trained for each choice of public data."

    def __init__(self) -> None:
        help, ways = "Where the public samples come from, or how many", [("sources", "source"), ("sizes", "size")]
        self.vary = made(widgets.ToggleButtons, label="Compare", help=help, options=ways)

    def _choices(self, state: PanelState) -> dict[str, dict[str, Any]]:
        """Name -> changed settings."""
        dataset = state.outcome.settings.dataset
        data = load(dataset)
        own = OWN if data.x_public is not None and len(data.x_public) else ()
        if self.vary.value == "size" and own:
            most = len(data.x_public)
            return {f"{n or most} samples": {"fedet.public_size": n, "fedet.public": OWN[0]} for n in SIZES if n < most}
        if self.vary.value == "size":
            return {f"{n} samples of noise": {"fedet.public_size": n, "fedet.public": "noise"} for n in (50, 200, 1000)}
        others = [name for name in ("digits", "glyphs") if name != dataset.partition(":")[0]]
        foreign = others if data.x_train.dim() == 4 else []
        return {name_of(name): {"fedet.public": name, "fedet.public_size": 0} for name in (*own, *foreign, "noise")}

    def asked(self, state: PanelState) -> Asked:
        return choices("fedet", state.runs.find("fedet").settings, self._choices(state))

    def work(self, state: PanelState) -> Steps:
        """Run Fed-ET again with each choice of public data. All other settings are those of the run that is shown."""
        outcomes = yield from all_of(self.asked(state))
        return outcomes, state.setting

    def draw(self, state: PanelState) -> Picture:
        if state.worked is None:
            text = f"Press “{self.work_label}”: one student is trained for each choice of public data."
            return blank(text, setting=state.setting)
        return public(*state.worked, 1 / len(state.class_names))


def name_of(source: str) -> str:
    """A source of public data in words."""
    words = {"held-out": "held-out part", "other-mix": "half the classes", "noise": "noise"}
    return words.get(source) or DATASETS[source].title.lower()


def public(tried: Mapping[str, Mapping[int, Outcome]], setting: str, chance: float) -> Picture:
    """`tried`: {choice of public data: {seed: outcome}};   chance: accuracy of guessing"""
    rows, choices, samples = [], [], []
    for name, outcomes in tried.items():
        reports, accuracies = [o.report for o in outcomes.values()], {seed: o.accuracy for seed, o in outcomes.items()}
        count = reports[0].public_samples
        detail = "" if "sample" in name else plural(count, "sample")
        choices.append(Series(name, detail, accuracies=accuracies, method="fedet"))
        samples.append(reports[0].samples[:SHOWN])
        dissent = percent(mean(r.dissent for r in reports))
        rows.append((name, count, choices[-1].number, dissent, seed_words(accuracies)))
    with drawing(1, 2, width_ratios=[0.72, 1]) as (figure, (left, right)):
        Bars(right, choices, chance).update(choices, "Test accuracy of the student")
        high = min(0.8, 0.15 * max(len(samples), 3))  # of a row; square, about
        for i, images in enumerate(samples):
            strip, place = np.hstack([as_tile(image) for image in images]), (0, 1, i + high / 2, i - high / 2)
            left.imshow(strip.squeeze(), cmap="gray", vmin=0, vmax=1, aspect="auto", extent=place)
        left.set(xlim=(0, 1), ylim=right.get_ylim())
        left.set_axis_off()
    worst, *_, best = sorted([*choices, *choices], key=lambda s: s.mean)
    distance = apart(best.accuracies, worst.accuracies, one_seed="one seed: nobody can tell how much of that is noise")
    sentence = (
        f"Best student: {best.label}, {percent(best.mean)}. Worst: {worst.label}, {percent(worst.mean)} ({distance})."
    )
    columns = "public data | samples | accuracy | dissent | seeds"
    title = "Some samples of each choice of public data, and bars of the student's accuracy"
    return told(figure, title, setting, sentence, tabled(columns, rows))
