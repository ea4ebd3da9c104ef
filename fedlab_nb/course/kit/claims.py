"""Claims on a learner's own record: a gap over seeds and its kind, and the verdict on "here it is clear,
there not".

    gaps = [Gap(f"α = {s.alpha:g}", v["ensemble"], v["fedavg"])
            for (s, _), v in alike(outcomes).items()]
    return two_kinds(gaps, **words)   # the words stand in the exercise's table `claim` of the TOML file

Also what lessons take from their declared figures: values by seed, means, bars.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from operator import itemgetter
from statistics import fmean
from typing import Any

from ...declared import ROOT, read_toml
from ...plots import Picture
from ...plots.accuracy import draw_accuracy_bars
from ...plots.series import Series
from ...plots.words import format_share, plural
from ...studies import Outcome
from ...studies.lesson_runs import alike
from ...studies.statistics import Band, band
from ...studies.stored_figures import format_figure, read_figure, select_seeds
from .exercises import lesson_words
from .problem import Verdict
from .view import Card

LEAST_SEEDS = 3  # that both sides of a comparison need
CHANCE = 0.1  # what guessing gets right, where a figure does not say it

# Kinds of gaps.
CLEAR = "clear"
NOISE = "noise"
BELOW = "below"
SHORT = "short"


@dataclass(frozen=True)
class Gap:
    """a − b, accuracies `{seed: 0–1}` of the same federations, in the setting `name`.

    test_gap:    where a and b are validation accuracies, by which settings are chosen, the same gap
                 on the test images
    least_seeds: that both sides need before anything is said
    least_gain:  what the whole band must lie above to be CLEAR, as a share; a smaller gain is NOISE
    """

    name: str
    a: Mapping[int, float]
    b: Mapping[int, float]
    test_gap: "Gap | None" = None
    least_seeds: int = LEAST_SEEDS
    least_gain: float = 0.0

    @property
    def differences(self) -> list[float]:
        """a − b for each seed that both have."""
        return [self.a[seed] - self.b[seed] for seed in sorted(set(self.a) & set(self.b))]

    @property
    def band(self) -> Band:
        """Mean of the differences with its 95 % band of Student's t."""
        return band(self.differences)

    @property
    def kind(self) -> str:
        """CLEAR (above `least_gain`), NOISE, BELOW (clearly below zero) or SHORT (fewer than
        `least_seeds`).
        """
        if len(self.differences) < self.least_seeds:
            return SHORT
        if self.band.is_noise:
            return NOISE
        if self.band.mean < 0:
            return BELOW
        if self.band.low > self.least_gain:
            return CLEAR
        return NOISE

    @property
    def is_clear_on_test(self) -> bool:
        """Whether the test images show a clear gap, by the same measure."""
        if self.test_gap is None:
            return False
        return replace(self.test_gap, least_gain=self.least_gain).kind == CLEAR

    def words(self, both: str = "both methods") -> str:
        """'α = 0.1: +5, +3, +4 points, mean +4 ± 1', or how many seeds there are with `both`."""
        if self.kind == SHORT:
            return f"{self.name} has {plural(len(self.differences), 'seed')} with {both}"
        points = [format_share(band([difference]), 0, "+") for difference in self.differences]
        return f"{self.name}: {', '.join(points)} points, mean {self.mean}"

    @property
    def mean(self) -> str:
        """In points: '+4 ± 1'."""
        return format_share(self.band, 0, "+", few_seeds=True)


def report_missing(
    missing: Iterable[str], found: Iterable[str], nothing: str, least_seeds: int = LEAST_SEEDS
) -> Verdict:
    """What is still to be found, beside what the record shows so far.

    nothing: what is said of a record that shows nothing
    """
    record = "; ".join(found) or nothing
    return Verdict(
        "wrong",
        f"Still to find, with {least_seeds} seeds or more: {' and '.join(missing)}. "
        f"Your record: {record}.",
    )


def judge_two_kinds(
    gaps: Iterable[Gap],
    *,
    clear: str,
    other: str,
    right: str,
    nothing: str,
    both: str = "both methods",
    others: Collection[str] = (NOISE,),
    least_seeds: int = LEAST_SEEDS,
) -> Verdict:
    """The claim that one gap is clear and another one is not (its kind is among `others`).

    The test images have to agree: a gap that is among `others` on validation images and CLEAR on
    test images is not the other one, only too small for the validation images.

    clear, other: what is missing, in words
    right:        the verdict, with the first `{clear}` and `{other}` gap in it
    nothing:      what to say of a record without any gap;   both: which two things a gap compares
    """
    gaps = list(gaps)
    clear_gaps = [gap for gap in gaps if gap.kind == CLEAR]
    other_gaps = [gap for gap in gaps if gap.kind in others]
    short_gaps = [gap for gap in gaps if gap.kind == SHORT]
    confirmed_gaps = [gap for gap in other_gaps if not gap.is_clear_on_test]
    if clear_gaps and confirmed_gaps:
        pair = (clear_gaps[0], confirmed_gaps[0])
        message = right.format(clear=pair[0].words(both), other=pair[1].words(both))
        return Verdict("right", message + describe_test_gaps(pair))
    if clear_gaps and other_gaps:
        return describe_contradiction(other_gaps[0], other)
    missing = []
    if not clear_gaps:
        missing.append(clear)
    if not other_gaps:
        missing.append(other)
    found = [gap.words(both) for gap in (*clear_gaps, *other_gaps, *short_gaps)]
    return report_missing(missing, found, nothing, least_seeds)


def describe_contradiction(gap: Gap, other: str) -> Verdict:
    """A gap that the validation images call unclear, and the test images clear."""
    return Verdict(
        "wrong",
        f"Still to find: {other}. {gap.name} looked like one on the validation images "
        f"({gap.mean} points), but on the test images the difference is clear: "
        f"{format_share(gap.test_gap.band, 1, '+', few_seeds=True)} points. Small is not the same as none: take a "
        "setting where the test images agree.",
    )


def describe_test_gaps(gaps: Iterable[Gap]) -> str:
    """A closing sentence with the same gaps on the test images; '' where they are not known."""
    points = [f"{gap.name} {gap.test_gap.mean} points" for gap in gaps if gap.test_gap is not None]
    return f" On the test images: {'; '.join(points)}." if points else ""


# ---------------------------------------------------------------------------------- runs
def group_by_options(method: str, *names: str) -> Callable[[Outcome], tuple[Any, Any] | None]:
    """The `place` (see `alike`) of runs of a method that differ in these options alone: all else
    that was set, and the values of the options.
    """

    def place(outcome: Outcome) -> tuple[Any, Any] | None:
        if outcome.method != method:
            return None
        shared = [(name, value) for name, value in outcome.options.items() if name not in names]
        return (outcome.conditions, *shared), itemgetter(*names)(outcome.options)

    return place


def find_gaps(
    outcomes: Sequence[Outcome],
    place: Callable[[Outcome], Any] | None,
    a: str,
    b: str,
    name: Callable,
    least_seeds: int = LEAST_SEEDS,
) -> list[Gap]:
    """Variant a − b on validation images, a gap for each group of `alike`, with the gap on the test
    images beside it.

    name: gives what a gap is called, from what its group shares
    """
    test_groups = alike(outcomes, place, validation=False)
    validation_groups = alike(outcomes, place, validation=True)
    names = name_groups(list(validation_groups), name)
    gaps = []
    for shared, validation in validation_groups.items():
        test = test_groups[shared]
        test_gap = Gap(names[shared], test[a], test[b])
        gaps.append(Gap(names[shared], validation[a], validation[b], test_gap, least_seeds))
    return gaps


def name_groups(groups: Sequence[Any], name: Callable[[Any], str]) -> dict[Any, str]:
    """{group: its name}; where `name` gives several groups the same, all that tells them apart
    follows: 'α = 0.3, epochs 1'.
    """
    names = {group: name(group) for group in groups}
    namesakes = defaultdict(list)
    for group in groups:
        namesakes[names[group]].append(group)
    for shared_name, same in namesakes.items():
        if len(same) < 2:
            continue
        values = [flatten_conditions(group) for group in same]
        differing = []
        for key in values[0]:
            if len({str(each.get(key)) for each in values}) > 1:
                differing.append(key)
        for group, each in zip(same, values, strict=True):
            parts = [f"{key.replace('_', ' ')} {each[key]}" for key in differing if key in each]
            names[group] = ", ".join([shared_name, *parts])
    return names


def flatten_conditions(shared: Any) -> dict[str, Any]:
    """{field or option: value} of what the runs of a group share: settings, recipe, options."""
    if is_dataclass(shared):
        return {field.name: getattr(shared, field.name) for field in fields(shared)}
    values = {}
    if isinstance(shared, tuple):
        if len(shared) == 2 and isinstance(shared[0], str):
            return {shared[0]: shared[1]}
        for part in shared:
            values.update(flatten_conditions(part))
    return values


# --------------------------------------------------------------------------------- declared figures
def find_lesson_folder(module: str) -> list[str]:
    """The folder of the lesson in which the module `__name__` stands."""
    return module.split(".")[1:-1]


def load_stored_values(module: str, figure: str) -> dict[int, float]:
    """The stored values by seed of a figure that the lesson of the module `__name__` declares."""
    return read_figure(ROOT.joinpath(*find_lesson_folder(module), "figures.toml"), figure)


def figures_of(module: str, *bars: str) -> tuple[Callable[..., Any], ...]:
    """What the lesson of the module `__name__` takes from its declared figures: the mean of one, by
    name; and a picture of each of these `bars`.
    """
    return partial(stored_mean, module), *(partial(draw_stored_bars, module, name) for name in bars)


def stored_mean(module: str, figure: str) -> int:
    """The mean of `stored_values` in whole percent."""
    return round(100 * fmean(load_stored_values(module, figure).values()))


class StoredFigures(dict):
    """The figures of the lesson of a module, for `str.format_map`: `{gain}`, `{gain:effect}` or
    `{gain@4:mean}` is written as `format_figure` writes it.
    """

    def __init__(self, module: str) -> None:
        super().__init__()
        self.module = module

    def __missing__(self, name: str) -> "StoredFigure":
        figure, _, seeds = name.partition("@")
        return StoredFigure(select_seeds(load_stored_values(self.module, figure), seeds))


class StoredFigure:
    """The values of one figure by seed, in a text."""

    def __init__(self, values: Mapping[int, float]) -> None:
        self.values = dict(values)

    def __format__(self, form: str) -> str:
        return format_figure(self.values, form)


def make_finding_card(module: str, name: str) -> Card:
    """What was found, in the words that the exercises.toml of the lesson of the module `__name__`
    has under `[words.findings]`. All numbers are declared figures, so they are those of the
    lesson's pictures.
    """
    text = lesson_words(module, "findings")[name].replace("\n", " ").strip()
    return Card("finding", text.format_map(StoredFigures(module)))


def draw_stored_bars(module: str, name: str) -> Picture:
    """Bars of a lesson's declared figures, from their stored results.

    The lesson's figures.toml has them as `[bars.NAME]`, with `setting`, and `chance` if guessing
    does not get a tenth right.
    """
    file = "/".join([*find_lesson_folder(module), "figures.toml"])
    rows = dict(read_toml(file)["bars"][name])
    setting = rows.pop("setting")
    chance = rows.pop("chance", CHANCE)
    series = []
    for figure, row in rows.items():
        series.append(Series(setting=setting, accuracies=load_stored_values(module, figure), **row))
    return draw_accuracy_bars(series, chance=chance)
