"""`Series`: one method under one setting, over its seeds, as plain data; what the result pictures are drawn from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

import numpy as np

from ..studies.statistics import Band, band
from .style import Look, look
from .words import Setting, data_size, describe_seeds, format_share


@dataclass(frozen=True)
class Series:
    """One row of a comparison.

    label:      the method's title;   detail: what tells it from others of that title, such as "run 2, α = 1"
    setting:    what it was run on, in words
    accuracies: {seed: share of the test set}, 0–1;   bound: a reference, not a competitor (local only, centralised)
    up, down:   bytes of all clients, mean over seeds;   phases: {phase: (up, down)} likewise
    curves:     one list of dicts(phase, progress, accuracy, bytes) a seed, the unfinished one included
    per_class, per_client: {seed: accuracies, None where a class has no test sample}
    calibration: {seed: what has `nll`, `ece`, `counts`, `right` and `confidence` of a reliability diagram}
    features, labels: of the fixed test points, for the first seed; None where there are none
    features_of: whose network these are of, where each client has its own: "client G"
    answers:    `[N]`, what the method takes these points for
    method:     whose look it has, if it is not the label's;   pinned: drawn hatched or hollow, as something from before
    """

    label: str
    detail: str = ""
    setting: Setting | str = ""
    accuracies: Mapping[int, float] = field(default_factory=dict)
    up: float = 0.0
    down: float = 0.0
    phases: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    curves: Sequence[Sequence[Mapping[str, Any]]] = ()
    per_class: Mapping[int, Sequence[float | None]] = field(default_factory=dict)
    per_client: Mapping[int, Sequence[float]] = field(default_factory=dict)
    calibration: Mapping[int, Any] = field(default_factory=dict)
    features: np.ndarray | None = None
    labels: np.ndarray | None = None
    features_of: str = ""
    answers: np.ndarray | None = None
    method: str = ""
    pinned: bool = False
    bound: bool = False

    @property
    def name(self) -> str:
        """Label and detail on one line."""
        return f"{self.label} ({self.detail})" if self.detail else self.label

    @property
    def lines(self) -> str:
        """Label and detail on two lines, for axes."""
        return f"{self.label}\n{self.detail}" if self.detail else self.label

    @property
    def mean(self) -> float:
        return mean(self.accuracies.values())

    @property
    def band(self) -> Band:
        """The mean accuracy with its 95 % band of Student's t."""
        return band(self.accuracies)

    @property
    def ends(self) -> tuple[float, ...]:
        """Both ends of the band, within 0 and 1; none where there are too few seeds for one."""
        if not self.accuracies or not self.band.is_shown:
            return ()
        return (max(0.0, self.band.low), min(1.0, self.band.high))

    @property
    def number(self) -> str:
        """'84 ± 2', in percent; of few seeds '84'."""
        return format_share(self.band)

    @property
    def seeds(self) -> str:
        return describe_seeds(self.accuracies)

    @property
    def total(self) -> float:
        """Bytes, both directions, all clients."""
        return self.up + self.down

    @property
    def hover_text(self) -> str:
        """What a mark of it answers: its name, accuracy with its band, each seed's, and bytes."""
        if not self.accuracies:
            return f"{self.name}\nno result yet"
        wide = ""
        if self.band.is_shown:
            wide = f" ± {100 * self.band.half_width:.1f} points (95 % band)"
        seeds = ", ".join(f"{seed}: {100 * value:.1f} %" for seed, value in self.accuracies.items())
        lines = [self.name, f"{100 * self.mean:.1f} %{wide}", f"seeds {seeds}"]
        if self.total:
            lines.append(
                f"{data_size(self.total)}: {data_size(self.up)} up, {data_size(self.down)} down"
            )
        return "\n".join(lines)

    @property
    def highlight_key(self) -> str:
        """The method that a choice of one of its marks holds."""
        return self.method or self.label

    @property
    def look(self) -> Look:
        """Colour, marker and line of its method."""
        return look(self.method or self.label)


def select_finished(series: Sequence[Series]) -> list[Series]:
    """Those with at least one result."""
    return [s for s in series if s.accuracies]


def join_settings(series: Sequence[Series]) -> str:
    """The settings that occur, each once, for alt texts."""
    return "; ".join(dict.fromkeys(str(s.setting) for s in series if s.setting)) or "no setting yet"
