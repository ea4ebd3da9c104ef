"""Claims on a learner's own record: gaps between two methods over seeds, and the verdict on claims
such as "the gap is clear here and not clear there".

    gaps = find_accuracy_gaps_between_variants(outcomes, None, "ensemble", "fedavg", describe_group)
    return judge_one_gap_clear_and_one_not(gaps, **texts)  # texts: table `claim` of the exercise's TOML

It also loads what lessons show of their declared figures: values by seed, means, bars.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from operator import itemgetter
from statistics import fmean
from typing import Any, Literal, NamedTuple

from ...declared import ROOT, read_toml
from ...plots import Picture
from ...plots.accuracy import draw_accuracy_bars
from ...plots.series import MethodResults
from ...plots.words import format_count_and_noun, format_percent_band
from ...studies import Outcome
from ...studies.lesson_runs import SharedConditions, Variant, group_comparable_accuracies
from ...studies.statistics import Band, ValuesBySeed, compute_band
from ...studies.stored_figures import (
    format_figure_values,
    read_figure_values_by_seed,
    select_values_of_seeds_or_all,
)
from ...value_types import SettingValue
from .exercises import load_lesson_text_or_list
from .problem import Verdict
from .view import Card

MIN_SEEDS = 3  # the fewest seeds that both sides of a comparison need
CHANCE = 0.1  # the accuracy of guessing, unless a figure has its own

GapKind = Literal["clear", "noise", "below", "short"]
CLEAR: GapKind = "clear"
NOISE: GapKind = "noise"
BELOW: GapKind = "below"
SHORT: GapKind = "short"
# A text of the table `claim` of an exercise's TOML: clear, other, right, nothing, both.
ClaimText = str


class GroupAndVariant(NamedTuple):
    """What an outcome shares with those that it is compared with, and which variant it is."""

    shared: SharedConditions
    variant: Variant


# Returns the mean of a figure in whole per cent, or draws a picture of several.
FigureFunction = Callable[..., Any]
# Makes the name of a gap, such as "α = 0.1", from what the runs of its group share.
GroupNamer = Callable[[Any], str]
# Returns the group and the variant of an outcome; None if it does not count. See `group_comparable_accuracies`.
Grouping = Callable[[Outcome], GroupAndVariant | None]


@dataclass(frozen=True)
class AccuracyGap:
    """The difference a − b of the accuracies of two variants on the same federations.

    name:        the setting in which both ran
    a, b:        {seed: accuracy 0–1}
    test_gap:    if a and b are validation accuracies, the same gap on the test images
    least_seeds: number of seeds that both variants need; with fewer the gap is SHORT
    least_gain:  the gap is CLEAR only if its whole band is above this share
    """

    name: str
    a: ValuesBySeed
    b: ValuesBySeed
    test_gap: "AccuracyGap | None" = None
    least_seeds: int = MIN_SEEDS
    least_gain: float = 0.0

    @property
    def accuracy_differences(self) -> list[float]:
        """a − b for each seed that both variants have."""
        return [self.a[seed] - self.b[seed] for seed in sorted(set(self.a) & set(self.b))]

    @property
    def difference_band(self) -> Band:
        """Mean of the differences with its 95 % band of Student's t."""
        return compute_band(self.accuracy_differences)

    @property
    def kind(self) -> GapKind:
        """CLEAR (above `least_gain`), NOISE, BELOW (clearly below zero) or SHORT (fewer than
        `least_seeds`).
        """
        if len(self.accuracy_differences) < self.least_seeds:
            return SHORT
        if self.difference_band.is_noise:
            return NOISE
        if self.difference_band.mean < 0:
            return BELOW
        if self.difference_band.low > self.least_gain:
            return CLEAR
        return NOISE

    @property
    def is_clear_on_test_images(self) -> bool:
        """Whether the test images show a clear gap, by the same measure."""
        if self.test_gap is None:
            return False
        return replace(self.test_gap, least_gain=self.least_gain).kind == CLEAR

    def describe(self, name_of_both_variants: str = "both methods") -> str:
        """Describe the gap of each seed: 'α = 0.1: +5, +3, +4 points, mean +4 ± 1'.

        If the gap is SHORT, say how many seeds have both variants.
        """
        if self.kind == SHORT:
            seeds = format_count_and_noun(len(self.accuracy_differences), "seed")
            return f"{self.name} has {seeds} with {name_of_both_variants}"
        points = [
            format_percent_band(compute_band([difference]), 0, "+")
            for difference in self.accuracy_differences
        ]
        return f"{self.name}: {', '.join(points)} points, mean {self.mean_with_band_in_points}"

    @property
    def mean_with_band_in_points(self) -> str:
        """The mean difference with its band in points, as text: '+4 ± 1'."""
        return format_percent_band(self.difference_band, 0, "+", shows_band_of_few_seeds=True)


def make_verdict_on_missing_runs(
    missing_runs: Iterable[str],
    descriptions_of_found_gaps: Iterable[str],
    text_if_nothing_found: str,
    least_seeds: int = MIN_SEEDS,
) -> Verdict:
    """Make the verdict "wrong" that says which runs are missing and what the record shows so far.

    text_if_nothing_found: what to say of a record without any gap
    """
    record = "; ".join(descriptions_of_found_gaps) or text_if_nothing_found
    return Verdict(
        "wrong",
        f"Still to find, with {least_seeds} seeds or more: {' and '.join(missing_runs)}. "
        f"Your record: {record}.",
    )


def judge_one_gap_clear_and_one_not(
    gaps: Iterable[AccuracyGap],
    *,
    kinds_of_other_gap: Collection[GapKind] = (NOISE,),
    least_seeds: int = MIN_SEEDS,
    **texts: ClaimText,
) -> Verdict:
    """Judge the claim that one gap is CLEAR and another one is not.

    The kind of the other gap must be among `kinds_of_other_gap`. The test images have to agree: a gap
    that is CLEAR on the test images does not count as the other one, whatever the validation images say.

    texts: of the exercise's table `claim`
        clear, other: names of the two gaps, for a verdict that says which one is missing
        right:        text of the verdict "right", with `{clear}` and `{other}` for the gaps found
        nothing:      text for a record without any gap
        both:         names the two variants that a gap compares; may be absent
    """
    both = texts.get("both", "both methods")
    gaps = list(gaps)
    clear_gaps = [gap for gap in gaps if gap.kind == CLEAR]
    other_gaps = [gap for gap in gaps if gap.kind in kinds_of_other_gap]
    short_gaps = [gap for gap in gaps if gap.kind == SHORT]
    confirmed_gaps = [gap for gap in other_gaps if not gap.is_clear_on_test_images]
    if clear_gaps and confirmed_gaps:
        pair = (clear_gaps[0], confirmed_gaps[0])
        message = texts["right"].format(clear=pair[0].describe(both), other=pair[1].describe(both))
        return Verdict("right", message + describe_gaps_on_test_images(pair))
    if clear_gaps and other_gaps:
        return make_verdict_on_test_contradiction(other_gaps[0], texts["other"])
    missing = []
    if not clear_gaps:
        missing.append(texts["clear"])
    if not other_gaps:
        missing.append(texts["other"])
    found = [gap.describe(both) for gap in (*clear_gaps, *other_gaps, *short_gaps)]
    return make_verdict_on_missing_runs(missing, found, texts["nothing"], least_seeds)


def make_verdict_on_test_contradiction(gap: AccuracyGap, name_of_required_gap: str) -> Verdict:
    """Make the verdict on a gap that is clear on the test images, but not on the validation images."""
    return Verdict(
        "wrong",
        f"Still to find: {name_of_required_gap}. {gap.name} looked like one on the validation images "
        f"({gap.mean_with_band_in_points} points), but on the test images the difference is clear: "
        f"{format_percent_band(gap.test_gap.difference_band, 1, '+', shows_band_of_few_seeds=True)} points. "
        "Small is not the same as none: take a "
        "setting where the test images agree.",
    )


def describe_gaps_on_test_images(gaps: Iterable[AccuracyGap]) -> str:
    """Describe the same gaps on the test images in a sentence; '' if they are not known."""
    points = []
    for gap in gaps:
        if gap.test_gap is not None:
            points.append(f"{gap.name} {gap.test_gap.mean_with_band_in_points} points")
    return f" On the test images: {'; '.join(points)}." if points else ""


# ---------------------------------------------------------------------------------- runs
def make_grouping_by_options(method: str, *option_names: str) -> Grouping:
    """Make a grouping for the runs of a method that differ in these options alone.

    Runs that share everything else form a group; the values of the options are the variants.
    """

    get_variant = itemgetter(*option_names)

    def group_run(outcome: Outcome) -> GroupAndVariant | None:
        if outcome.method != method:
            return None
        shared_options = []
        for name, value in outcome.options.items():
            if name not in option_names:
                shared_options.append((name, value))
        return GroupAndVariant((outcome.conditions, *shared_options), get_variant(outcome.options))

    return group_run


def find_accuracy_gaps_between_variants(
    outcomes: Sequence[Outcome],
    grouping: Grouping | None,
    variant: Variant,
    other_variant: Variant,
    name_group: GroupNamer,
    least_seeds: int = MIN_SEEDS,
) -> list[AccuracyGap]:
    """Find the gap variant − other variant on validation images, one for each group of runs.

    Each gap has the same gap on the test images with it.

    grouping:   the group and the variant of an outcome; None: the method is the variant
    name_group: makes the name of a gap from what its group shares
    """
    test_groups = group_comparable_accuracies(outcomes, grouping, uses_validation_accuracy=False)
    validation_groups = group_comparable_accuracies(
        outcomes, grouping, uses_validation_accuracy=True
    )
    names = make_unique_group_names(list(validation_groups), name_group)
    gaps = []
    for shared, validation in validation_groups.items():
        test = test_groups[shared]
        test_gap = AccuracyGap(names[shared], test[variant], test[other_variant])
        gap = AccuracyGap(names[shared], validation[variant], validation[other_variant])
        gaps.append(replace(gap, test_gap=test_gap, least_seeds=least_seeds))
    return gaps


def make_unique_group_names(
    groups: Sequence[SharedConditions], name_group: GroupNamer
) -> dict[SharedConditions, str]:
    """Name groups: {what the group shares: its name}.

    If `name_group` gives several groups the same name, what tells them apart is appended:
    'α = 0.3, epochs 1'.
    """
    names = {group: name_group(group) for group in groups}
    namesakes = defaultdict(list)
    for group in groups:
        namesakes[names[group]].append(group)
    for shared_name, same_name_groups in namesakes.items():
        if len(same_name_groups) < 2:
            continue
        settings_of_groups = [collect_shared_settings(group) for group in same_name_groups]
        differing_settings = []
        for setting in settings_of_groups[0]:
            values = {str(settings.get(setting)) for settings in settings_of_groups}
            if len(values) > 1:
                differing_settings.append(setting)
        for group, settings in zip(same_name_groups, settings_of_groups, strict=True):
            parts = [shared_name]
            for setting in differing_settings:
                if setting in settings:
                    parts.append(f"{setting.replace('_', ' ')} {settings[setting]}")
            names[group] = ", ".join(parts)
    return names


def collect_shared_settings(group: SharedConditions) -> dict[str, SettingValue]:
    """Collect the settings, the recipe and the options that the runs of a group share: {name: value}.

    group: a dataclass of settings, a pair (name, value), or a tuple of such parts; anything else has no values
    """
    if is_dataclass(group):
        return {field.name: getattr(group, field.name) for field in fields(group)}
    if not isinstance(group, tuple):
        return {}
    if len(group) == 2 and isinstance(group[0], str):
        return {group[0]: group[1]}
    values = {}
    for part in group:
        values.update(collect_shared_settings(part))
    return values


# --------------------------------------------------------------------------------- declared figures
def list_folders_of_lesson_module(module_name: str) -> list[str]:
    """List the folders of a lesson's module, below the package: ["course", "fens"].

    module_name: `__name__` of the module
    """
    return module_name.split(".")[1:-1]


def load_stored_figure_by_seed(module_name: str, figure_name: str) -> ValuesBySeed:
    """Load the stored values, by seed, of a figure that a lesson declares.

    module_name: `__name__` of the lesson's module
    """
    folder = ROOT.joinpath(*list_folders_of_lesson_module(module_name))
    return read_figure_values_by_seed(folder / "figures.toml", figure_name)


def make_mean_and_bars_functions(module_name: str, *bars_names: str) -> tuple[FigureFunction, ...]:
    """Make the functions that show a lesson's declared figures.

    The first function takes the name of a figure and returns its mean in whole per cent. After it
    comes a function for each of `bars_names`, which draws that picture.

    module_name: `__name__` of the lesson's module
    """
    functions: list[FigureFunction] = [partial(load_stored_mean_in_whole_percent, module_name)]
    for bars_name in bars_names:
        functions.append(partial(draw_bars_of_stored_figures, module_name, bars_name))
    return tuple(functions)


def load_stored_mean_in_whole_percent(module_name: str, figure_name: str) -> int:
    """Return the mean of a figure's stored values in whole per cent."""
    return round(100 * fmean(load_stored_figure_by_seed(module_name, figure_name).values()))


class StoredFigures(dict):
    """A lesson's figures for `str.format_map`.

    `{gain}` is replaced by the values of the figure `gain`, `{gain:effect}` by the same in another
    form, `{gain@4}` by its value of seed 4 alone. The forms are those of `format_figure_values`.
    """

    def __init__(self, module: str) -> None:
        super().__init__()
        self.module = module

    def __missing__(self, name: str) -> "StoredFigure":
        figure, _, seeds = name.partition("@")
        all_values = load_stored_figure_by_seed(self.module, figure)
        return StoredFigure(select_values_of_seeds_or_all(all_values, seeds))


class StoredFigure:
    """The values of one figure by seed, in a text."""

    def __init__(self, values: Mapping[int, float]) -> None:
        self.values = dict(values)

    def __format__(self, form: str) -> str:
        return format_figure_values(self.values, form)


def make_card_of_finding(module_name: str, finding_name: str) -> Card:
    """Make the card of a finding.

    Its text is in the lesson's exercises.toml under `[words.findings]`. All its numbers are declared
    figures, so they agree with the lesson's pictures.

    module_name: `__name__` of the lesson's module
    """
    text = (
        load_lesson_text_or_list(module_name, "findings")[finding_name].replace("\n", " ").strip()
    )
    return Card("finding", text.format_map(StoredFigures(module_name)))


def draw_bars_of_stored_figures(module_name: str, bars_name: str) -> Picture:
    """Draw bars of a lesson's declared figures from their stored results.

    The lesson's figures.toml lists the figures in its table `[bars.NAME]`. The table also has
    `setting`, a caption, and `chance`, the accuracy of guessing, unless that is CHANCE.
    """
    file = "/".join([*list_folders_of_lesson_module(module_name), "figures.toml"])
    rows = dict(read_toml(file)["bars"][bars_name])
    setting = rows.pop("setting")
    chance = rows.pop("chance", CHANCE)
    series = []
    for figure, row in rows.items():
        series.append(
            MethodResults(
                setting=setting, accuracies=load_stored_figure_by_seed(module_name, figure), **row
            )
        )
    return draw_accuracy_bars(series, chance_accuracy=chance)
