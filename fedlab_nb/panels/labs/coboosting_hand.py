"""Co-Boosting's lab: set the ensemble's weights by hand on remembered logits, then see what the method makes of them.

The displayed test images are halved: weights are tuned on one half, by whoever drags, and judged on the other. The
method itself sees neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets
import numpy as np

from ...draw import Picture
from ...draw.coboosting import ByHand
from ...draw.coboosting_words import EQUAL, LEARNT, REAL, YOURS
from ...draw.words import half_width, setting_of
from ..lab_view import LabView, Look
from .sliders import WINDOW, Sliders

OWN = "own"


class Hand(LabView):
    """Drag the weights, try to beat equal ones; then show Co-Boosting's, and let the other half judge."""

    name, title, ready = "hand", "Weights by hand", "run"
    empty = "Press Run. Then drag the weights of the clients and try to beat equal weights, before Co-Boosting tries."
    work_label = "Learn from real images"

    def __init__(self) -> None:
        super().__init__()
        self.sliders = Sliders()
        self.start = widgets.Dropdown(
            options=[("…", OWN)], description="Set to", tooltip="Set all sliders at once",
            layout=widgets.Layout(width="190px"), style={"description_width": "40px"},
        )  # fmt: skip
        self.learnt = widgets.ToggleButton(
            False,
            description="Show Co-Boosting's",
            tooltip="Show the weights that Co-Boosting has found, and its score",
        )
        self.judge = widgets.ToggleButton(
            False, description="Show the judge half", tooltip="Accuracy on the images that nobody has tuned on"
        )
        for button in (self.learnt, self.judge):
            button.layout.width = "auto"
        # In a box of its own the dropdown is no view control: what it changes are the sliders, which redraw.
        self.controls = [self.sliders, widgets.HBox([self.start]), self.learnt, self.judge]
        self.start.observe(self._set, "value")
        self.sliders.observe(self._dragged, "value")
        self.picture, self._outcome, self._presets = ByHand(), None, {}
        self._setting, self._spoilt = False, False

    # ------------------------------------------------------------------------------------------------ controls
    def adapt(self, look: Look) -> None:
        clients = len(look.outcome.label_counts)
        if look.outcome is not self._outcome:  # another run: start afresh
            self._outcome, self._spoilt = look.outcome, False
            self.learnt.value = self.judge.value = False
            self._offer(look)
            self._put(np.ones(clients))
        elif REAL not in self._presets and self._real(look) is not None:
            self._offer(look)
        client = look.client if look.client is not None and look.client < clients else 0
        first = client // WINDOW * WINDOW
        if (first, clients) != (self.sliders.first, len(self.sliders.value)):
            self._setting = True
            self.sliders.fit(clients, first)
            self._setting = False

    def _offer(self, look: Look) -> None:
        counts = np.asarray(look.outcome.label_counts)
        self._presets = {EQUAL: np.ones(len(counts)), "by sample counts": counts.sum(1)}
        self._presets[LEARNT] = np.asarray(look.outcome.extras["ensemble_weights"])
        if (real := self._real(look)) is not None:
            self._presets[REAL] = real
        self._setting = True
        self.start.options = [("…", OWN), *((name, name) for name in self._presets)]
        self.start.value = OWN
        self._setting = False

    def _real(self, look: Look) -> np.ndarray | None:
        """Weights from real images, if they were learnt for this very outcome."""
        return look.worked["weights"] if look.worked and look.worked["outcome"] is look.outcome else None

    def _put(self, w: np.ndarray) -> None:
        self._setting = True
        self.sliders.put(w)
        self._setting = False

    def _set(self, change: Mapping) -> None:
        if not self._setting and change["new"] in self._presets:
            self._put(self._presets[change["new"]])

    def _dragged(self, _: Mapping) -> None:
        self._spoilt |= self.judge.value and not self._setting
        if not self._setting and self.start.value != OWN:
            self._setting = True
            self.start.value = OWN
            self._setting = False

    # ------------------------------------------------------------------------------------------------ slow work
    def prepare(self, look: Look) -> Any:
        """Logits of every client on the displayed test images: the features of the ensemble's outcome."""
        from ...study import job

        outcome = look.outcome
        seed = outcome.setting["seed"]
        beside = look.others.get("ensemble", {}).get(seed)
        if beside is None:  # not ticked: its clients are remembered, so this is quick
            rows = look.record.current
            settings = {**rows[0].settings, "seed": seed, "seeds": 1}
            for event in job([*(row.method for row in rows), "ensemble"], **settings):
                yield
                if event.error is not None and event.method == "ensemble":
                    raise event.error
                beside = event.outcome if event.outcome is not None and event.method == "ensemble" else beside
        labels = np.asarray(beside.test_labels)
        logits = np.asarray(beside.test_features, dtype=np.float32).reshape(len(labels), len(outcome.label_counts), -1)
        tune, judge = halves(len(labels))
        return {"logits": logits, "labels": labels, "tune": tune, "judge": judge}

    def work(self, look: Look) -> Any:
        """The same rule on the clients' own training images, which they would have to send: a reference only"""
        from ...study import job

        row = look.record.find("coboosting")
        settings = {k: v for k, v in row.settings.items() if "." not in k or k.startswith("coboosting.")}
        # Synthetic images and the student change nothing in these weights: as few as possible of both.
        only = {"ee": True, "ee_data": "real", "answer": "ensemble", "dhs": False, "generator_steps": 1}
        settings |= {f"coboosting.{name}": value for name, value in only.items()}
        settings |= {"seed": look.outcome.setting["seed"], "seeds": 1}
        weights = None
        for event in job(["coboosting"], **settings):
            if event.error is not None:
                raise event.error
            if event.outcome is not None:
                weights = np.asarray(event.outcome.extras["ensemble_weights"])
            yield event.done, event.total, f"weights from real images, {event.phase}"
        return {"outcome": look.outcome, "weights": weights}

    # ------------------------------------------------------------------------------------------------ picture
    def draw(self, look: Look) -> Picture:
        known = look.prepared
        weights = {EQUAL: np.ones(len(self.sliders.value)), YOURS: np.asarray(self.sliders.value)}
        if self.learnt.value:
            weights[LEARNT] = self._presets[LEARNT]
        if (real := self._real(look)) is not None:
            weights[REAL] = real
        right = {who: correct(known["logits"], w) == known["labels"] for who, w in weights.items()}
        tune, judge = known["tune"], known["judge"]
        half = judge if self.judge.value and len(judge) else tune
        difference = right[YOURS][half].astype(float) - right[EQUAL][half]
        return self.picture.show(
            look.outcome.label_counts,
            look.class_names,
            weights=weights,
            tune={who: float(r[tune].mean()) for who, r in right.items()},
            judge={who: float(r[judge].mean()) for who, r in right.items()} if half is judge else None,
            by_class={
                who: by_class(right[who][tune], known["labels"][tune], len(look.class_names)) for who in (EQUAL, YOURS)
            },
            gap=(float(difference.mean()), half_width(difference.tolist())),
            sizes=(len(tune), len(judge)),
            setting=f"{setting_of(look.outcome.setting)}, seed {look.outcome.setting['seed']}",
            client=look.client,
            klass=look.klass,
            spoilt=self._spoilt,
        )


def halves(images: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the tune and the judge half of so many images, always the same."""
    order = np.random.default_rng(0).permutation(images)
    return order[::2], order[1::2]


def correct(logits: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Classes `[N]` that Σ_k w_k f_k says, from client logits `[N, M, C]`; equal weights where all are 0."""
    w = np.asarray(w, dtype=np.float32)
    return np.einsum("m,nmc->nc", w if w.sum() > 0 else np.ones_like(w), logits).argmax(1)


def by_class(right: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Accuracy for each class `[C]`, nan where there is no image."""
    count = np.bincount(labels, minlength=classes)
    return np.where(count > 0, np.bincount(labels, right, minlength=classes) / np.maximum(count, 1), np.nan)
