"""The pictures of a panel: from a federation and the record to `draw`, with the slow part (t-SNE) remembered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import draw
from ..draw.embed import POINTS
from ..draw.words import data_size, setting_of
from .guess import reveal
from .record import Record

KEPT = 60  # maps remembered


class Scene:
    """`partition(...)` and `result(view, ...)` give Pictures; `missing(...)` and `embed(...)` make the t-SNE maps."""

    def __init__(self) -> None:
        self._partition = draw.Partition()
        self._maps: dict[int, dict[str, Any]] = {}  # by the identity of the feature array, which is kept with it

    def partition(
        self, federation: Any, setting: str, client: int | None, klass: int | None = None, stored: Any = None
    ) -> draw.Picture:
        skew = federation.skew
        return self._partition.show(
            federation.label_counts.numpy(), federation.dataset.class_names, setting=setting, note=federation.note,
            jensen_shannon=skew.jensen_shannon, effective_classes=skew.effective_classes, client=client,
            klass=klass, stored=stored,
        )  # fmt: skip

    def result(self, view: str, record: Record, client: int | None, klass: int | None = None) -> draw.Picture:
        """The picture of one of the result views; every one of them takes a record without results too."""
        names = record.current[0].classes
        if view == "accuracy":
            return draw.accuracy(record.series(), chance=1 / len(names), note=guesses(record))
        if view == "communication":
            return draw.communication(record.series(), client_bytes=bytes_of(record, client))
        if view == "classes":
            return draw.classes(record.series(same_classes=True), names, client=client, klass=klass)
        return self._features(record, client, klass)

    def _features(self, record: Record, client: int | None, klass: int | None) -> draw.Picture:
        held, who = None, ""
        first = next((o for row in record.current for _, o in sorted(row.outcomes.items())), None)
        if client is not None and first is not None and client < len(first.label_counts):
            held, who = list(np.asarray(first.label_counts)[client] > 0), f"classes that client {client} holds"
        names = record.current[0].classes
        if klass is not None and klass < len(names):
            held, who = [c == klass for c in range(len(names))], f"class {names[klass]}"
        maps = []
        for s in self._with_features(record):
            kept = self._kept(s)
            how = "t-SNE" if "tsne" in kept else "PCA"
            maps.append(draw.Map(s.lines, kept.get("tsne", kept["pca"]), s.labels[:POINTS], kept["score"], how))
        setting = record.current[0].setting
        return draw.features(maps, names, setting=setting, held=held, who=who)

    def _with_features(self, record: Record) -> list[draw.Series]:
        return [s for s in record.series(same_classes=True) if s.features is not None and len(s.features) > 1]

    def _kept(self, s: draw.Series) -> dict[str, Any]:
        key = id(s.features)
        if key not in self._maps:
            score = draw.neighbour_accuracy(s.features, s.labels)
            self._maps[key] = {"features": s.features, "pca": draw.pca(s.features[:POINTS]), "score": score}
            while len(self._maps) > KEPT:
                self._maps.pop(next(iter(self._maps)))
        return self._maps[key]

    def missing(self, record: Record) -> list[draw.Series]:
        """The shown series that still have no t-SNE map."""
        return [s for s in self._with_features(record) if "tsne" not in self._kept(s)]

    def embed(self, series: Sequence[draw.Series]) -> Iterator[str]:
        """Make the maps of `series` one by one; yields each one's name when it is made."""
        for s in series:
            self._kept(s)["tsne"] = draw.tsne(s.features[:POINTS])
            yield s.name

    def handout(self, federation: Any, record: Record, setting: str, what_to_do: str) -> draw.Picture:
        """The state in one picture: the present partition, and the results of the last run where there are any."""
        skew = federation.skew
        current = record.current
        ran = any(row.outcomes for row in current)
        return draw.handout(
            federation.label_counts.numpy(), federation.dataset.class_names, record.series() if ran else [],
            setting=setting, jensen_shannon=skew.jensen_shannon,
            effective_classes=skew.effective_classes, chance=1 / len(current[0].classes) if ran else None,
            what_to_do=what_to_do,
        )  # fmt: skip


def bytes_of(record: Record, client: int | None) -> str:
    """What one client of the first seed sends and receives, method by method, in a sentence."""
    if client is None:
        return ""
    parts = []
    for row in record.current:
        for _, outcome in sorted(row.outcomes.items())[:1]:
            parts.append(f"{row.title} {data_size(sum(outcome.ledger.by_client().get(client, (0, 0))))}")
    return f"Client {client}, up and down: {'; '.join(parts)}." if parts else ""


def guesses(record: Record) -> str:
    """What was guessed before the present run, and how far it was from what came out."""
    told = [
        reveal(row.title, row.guess, [o.accuracy for o in row.outcomes.values()])
        for row in record.current
        if row.guess is not None and row.outcomes
    ]
    return " ".join(told)


def words(settings: dict[str, Any]) -> str:
    """Settings as a person reads them, seeds included: 'digits, α = 0.1, 10 clients, seeds 0–2'."""
    first, count = settings["seed"], settings["seeds"]
    seeds = f"seed {first}" if count == 1 else f"seeds {first}–{first + count - 1}"
    return f"{setting_of(settings)}, {seeds}"


def caption(record: Record, settings: dict[str, Any]) -> str:
    """What the result views show, and whether the controls, which now say `settings`, have moved on since."""
    if not record.current:
        return ""
    then = dict(record.current[0].settings)
    now = {**settings, "device": then.get("device")}
    moved = " (the controls have moved: press Run)" if now != {"device": None, **then} else ""
    return f"Run {record.run}: {words(then)}{moved}"


def python(methods: Sequence[str], settings: dict[str, Any]) -> str:
    """The Python line that does what Run does."""
    given = ", ".join(f"{key}={value!r}" for key, value in settings.items() if "." not in key)
    dotted = {key: value for key, value in settings.items() if "." in key}
    given += f", **{dotted!r}" if dotted else ""
    return f"fl.compare({list(methods)!r}, {given})"
