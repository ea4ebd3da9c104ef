"""`MethodResults`, the plain data from which pictures of results are drawn: one method under one setting,
over its seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any, TypedDict

from ..studies.statistics import Band, compute_band
from .array_types import FeatureRows, SampleLabels
from .style import ColourMarkerLine, get_method_look
from .words import SettingCaption, describe_seeds, format_data_size, format_percent_band


class CurvePoint(TypedDict):
    """One point of a run's curve.

    phase:    "local training" or a phase of the method
    progress: share of the run that is done, 0–1
    accuracy: on the test set, 0–1
    bytes:    sent so far by all clients, both directions
    """

    phase: str
    progress: float
    accuracy: float
    bytes: float


@dataclass(frozen=True)
class MethodResults:
    """The results of one method under one setting: one row or line of a picture.

    label:        the method's title
    detail:       what distinguishes it from others with the same title, such as "run 2, α = 1"
    setting:      the setting of its runs, in words
    accuracies:   {seed: test accuracy, 0–1}
    up, down:     bytes of all clients, mean over the seeds
    phases:       {phase: (bytes up, bytes down)}, mean over the seeds
    curves:       the points of each seed in turn, also of an unfinished one
    per_class:    {seed: accuracy on each class, None for a class without a test sample}
    per_client:   {seed: accuracy on each client's classes}
    calibration:  {seed: reliability diagram with `nll`, `ece`, `counts`, `right`, `confidence`}
    features:     features of the fixed test points for the first seed, None if there are none
    labels:       the classes of these points
    features_of:  whose network computed the features if each client has its own, such as "client G"
    answers:      `[N]`, the classes that the method predicts for these points
    stored:       the band of its stored results, None if none are stored
    stored_about: what the stored results are, or why there are none, in words
    method:       the method whose look it has, if not that of `label`
    pinned:       whether it belongs to an earlier run, and is drawn hatched or hollow
    bound:        whether it is a reference and not a competitor (local only, centralised)
    """

    label: str
    detail: str = ""
    setting: SettingCaption | str = ""
    accuracies: Mapping[int, float] = field(default_factory=dict)
    up: float = 0.0
    down: float = 0.0
    phases: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    curves: Sequence[Sequence[CurvePoint]] = ()
    per_class: Mapping[int, Sequence[float | None]] = field(default_factory=dict)
    per_client: Mapping[int, Sequence[float]] = field(default_factory=dict)
    calibration: Mapping[int, Any] = field(default_factory=dict)
    features: FeatureRows | None = None
    labels: SampleLabels | None = None
    features_of: str = ""
    answers: SampleLabels | None = None
    stored: Band | None = None
    stored_about: str = ""
    method: str = ""
    pinned: bool = False
    bound: bool = False

    @property
    def name(self) -> str:
        """Label and detail on one line."""
        return f"{self.label} ({self.detail})" if self.detail else self.label

    @property
    def two_line_label(self) -> str:
        """Label and detail on two lines, for axes."""
        return f"{self.label}\n{self.detail}" if self.detail else self.label

    @property
    def mean(self) -> float:
        return mean(self.accuracies.values())

    @property
    def band(self) -> Band:
        """The mean accuracy with its 95 % band of Student's t."""
        return compute_band(self.accuracies)

    @property
    def band_ends(self) -> tuple[float, ...]:
        """Both ends of the band, within 0 and 1; empty if there are too few seeds for a band."""
        if not self.accuracies or not self.band.is_shown:
            return ()
        return (max(0.0, self.band.low), min(1.0, self.band.high))

    @property
    def accuracy_text(self) -> str:
        """The accuracy in percent: '84 ± 2'; with few seeds '84'."""
        return format_percent_band(self.band)

    @property
    def seeds_text(self) -> str:
        return describe_seeds(self.accuracies)

    @property
    def total_bytes(self) -> float:
        """Bytes of all clients in both directions."""
        return self.up + self.down

    @property
    def hover_text(self) -> str:
        """The hover text of its marks: name, accuracy with its band, that of each seed, and bytes."""
        if not self.accuracies:
            return f"{self.name}\nno result yet"
        band_text = ""
        if self.band.is_shown:
            band_text = f" ± {100 * self.band.half_width:.1f} points (95 % band)"
        seeds = ", ".join(f"{seed}: {100 * value:.1f} %" for seed, value in self.accuracies.items())
        lines = [self.name, f"{100 * self.mean:.1f} %{band_text}", f"seeds {seeds}"]
        if self.total_bytes:
            lines.append(
                f"{format_data_size(self.total_bytes)}: {format_data_size(self.up)} up, "
                f"{format_data_size(self.down)} down"
            )
        if self.stored is not None:
            share = format_percent_band(self.stored)
            lines.append(f"{self.stored_about}: {share} %")
        elif self.stored_about:
            lines.append(self.stored_about)
        return "\n".join(lines)

    @property
    def highlight_key(self) -> str:
        """The method that is highlighted when one of its marks is selected."""
        return self.method or self.label

    @property
    def look(self) -> ColourMarkerLine:
        """The colour, marker and line of its method."""
        return get_method_look(self.method or self.label)


def select_results_with_accuracies(series: Sequence[MethodResults]) -> list[MethodResults]:
    """Select the series with at least one result."""
    return [s for s in series if s.accuracies]


def join_setting_texts(series: Sequence[MethodResults]) -> str:
    """Join the settings that occur, each once, for alt texts."""
    return "; ".join(dict.fromkeys(str(s.setting) for s in series if s.setting)) or "no setting yet"
