"""What each of Co-Boosting's three ideas is worth: teacher and student with some of them switched
off.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ipywidgets import Dropdown

from ...panels import MethodAndArgumentsByName, PanelState, ProgressThenResult, make_widget
from ...panels.figures import make_caption_of_settings_and_seeds
from ...plots import (
    MethodResults,
    Picture,
    build_table,
    describe_picture,
    describe_seeds,
    drawing,
    format_mean_percent,
)
from ...plots.kit import AccuracyBars
from ...plots.words import (
    SettingCaption,
    describe_accuracy_difference,
    format_count_and_noun,
    join_with_and,
)
from ...studies.statistics import difference
from ..button_view import (
    ButtonView,
    get_accuracies_by_seed,
    get_row_values_by_seed,
    read_stored_lab_runs,
)
from ..runs import plan_runs, run_planned_runs

IdeaNames = tuple[str, ...]
IDEAS: IdeaNames = ("GHS", "DHS", "EE")
NONE: IdeaNames = ()
PAIRS: tuple[IdeaNames, ...] = (("DHS", "EE"), ("GHS", "EE"), ("GHS", "DHS"))
SINGLES: tuple[IdeaNames, ...] = (("GHS",), ("DHS",), ("EE",))
VARIANT_SETS = {
    "leave one out": (IDEAS, *PAIRS, NONE),
    "one alone": (IDEAS, *SINGLES, NONE),
    "all eight": (IDEAS, *PAIRS, *SINGLES, NONE),
}
MODELS = {"ensemble": "Ensemble (teacher)", "server": "Server model (student)"}


class IdeaVariant(NamedTuple):
    """A combination of the three ideas.

    active_ideas: the ideas that are switched on
    ensemble:     {seed: accuracy 0–1} of the teacher
    server:       {seed: accuracy 0–1} of the student
    """

    active_ideas: IdeaNames
    ensemble: Mapping[int, float] = {}
    server: Mapping[int, float] = {}

    @property
    def name_in_table(self) -> str:
        """The name as a table or a bar has it: "all three", "no GHS", "GHS alone" or "none"."""
        return format_idea_combination(self.active_ideas)

    @property
    def name_in_sentence(self) -> str:
        """The name as a sentence has it: "none of them" in place of "none"."""
        return self.name_in_table if self.active_ideas else "none of them"


def format_idea_combination(active_ideas: IdeaNames) -> str:
    """Name a combination of ideas: "all three", "no GHS", "GHS alone" or "none"."""
    if len(active_ideas) == 3:
        return "all three"
    if len(active_ideas) == 2:
        (missing,) = set(IDEAS) - set(active_ideas)
        return f"no {missing}"
    if len(active_ideas) == 1:
        return f"{active_ideas[0]} alone"
    return "none"


def make_knob_name_of_idea(idea_name: str) -> str:
    """Return the knob that switches an idea on and off."""
    return f"coboosting.{idea_name.lower()}"


class VariantResults(NamedTuple):
    """What is drawn: the setting in words, the variants, and which of VARIANT_SETS was run."""

    setting: SettingCaption | str
    variants: list[IdeaVariant]
    chosen_set: str = ""


class IdeaSwitchesView(ButtonView):
    """The method with ideas switched off, on the federations that the controls describe."""

    name, title, choice = "switches", "What each part does", "which"
    work_label = "Run these variants"
    work_help = (
        "Run the method with some of its three ideas switched off, on the federation that the "
        "controls describe."
    )

    def __init__(self) -> None:
        self.which = make_widget(
            Dropdown,
            label="Variants",
            help="Which combinations to run",
            width=200,
            options=list(VARIANT_SETS),
        )

    def planned_runs(self, state: PanelState) -> MethodAndArgumentsByName:
        settings = {**state.settings, "coboosting.answer": "server"}
        changes = {}
        for active_ideas in VARIANT_SETS[self.which.value]:
            switches = {make_knob_name_of_idea(idea): idea in active_ideas for idea in IDEAS}
            changes[format_idea_combination(active_ideas)] = switches
        return plan_runs("coboosting", settings, changes)

    def work(self, state: PanelState) -> ProgressThenResult[VariantResults]:
        """Run the variants that the menu chooses."""
        chosen_set = self.which.value
        runs = yield from run_planned_runs(self.planned_runs(state))
        variants = []
        for active_ideas in VARIANT_SETS[chosen_set]:
            outcomes = runs[format_idea_combination(active_ideas)]
            teacher = {}
            for seed, outcome in outcomes.items():
                teacher[seed] = outcome.report.ensemble_curve[-1]
            student = get_accuracies_by_seed(outcomes)
            variants.append(IdeaVariant(active_ideas, teacher, student))
        return VariantResults(
            make_caption_of_settings_and_seeds(state.settings), variants, chosen_set
        )

    def make_stored_result(self, state: PanelState) -> VariantResults:
        setting, rows = read_stored_lab_runs("switches")
        row_by_ideas = {}
        for row in rows:
            active_ideas = tuple(idea for idea in IDEAS if row["at"][make_knob_name_of_idea(idea)])
            row_by_ideas[active_ideas] = row
        variants = []
        for active_ideas in VARIANT_SETS[self.which.value]:
            row = row_by_ideas[active_ideas]
            teacher = get_row_values_by_seed(row, "report.ensemble_curve.-1")
            variants.append(IdeaVariant(active_ideas, teacher, get_row_values_by_seed(row)))
        return VariantResults(setting, variants)

    def draw_result(self, state: PanelState) -> Picture:
        setting, variants, _ = state.worked
        return draw_idea_variants(variants, setting)


# ------------------------------------------------------------------------------------------ picture
def draw_idea_variants(variants: Sequence[IdeaVariant], setting: SettingCaption | str) -> Picture:
    """Draw bars of teacher and student.

    The first variant has all three ideas; the others are compared with it, seed by seed.
    """
    with drawing(1, 2) as (figure, axes):
        for ax, (model, title) in zip(axes, MODELS.items(), strict=True):
            rows = []
            for variant in variants:
                accuracies = getattr(variant, model)
                rows.append(
                    MethodResults(variant.name_in_table, accuracies=accuracies, method="coboosting")
                )
            AccuracyBars(ax, rows).update(rows, title)
    full_method, *reduced_variants = variants
    columns = (
        "variant | GHS | DHS | EE | ensemble | ensemble, against all three | server | "
        "server, against all three"
    )
    return describe_picture(
        figure,
        "Bars of the accuracy of ensemble and server model with ideas switched off",
        setting,
        describe_largest_clear_losses(full_method, reduced_variants),
        build_table(
            columns, [make_variant_table_row(variant, full_method) for variant in variants]
        ),
        detail=describe_all_clear_differences(full_method, reduced_variants),
    )


def make_variant_table_row(variant: IdeaVariant, full_variant: IdeaVariant) -> list[str]:
    """Make a variant's row of the table."""
    row = [variant.name_in_table]
    row += ["on" if idea in variant.active_ideas else "off" for idea in IDEAS]
    for model in MODELS:
        accuracies = getattr(variant, model)
        row.append(format_mean_percent(accuracies) if accuracies else "not run yet")
        gap = ""
        if accuracies and variant is not full_variant:
            reference = getattr(full_variant, model)
            gap = describe_accuracy_difference(accuracies, reference, one_seed_words="one seed")
        row.append(gap)
    return row


def describe_largest_clear_losses(
    full_variant: IdeaVariant, reduced_variants: Sequence[IdeaVariant]
) -> str:
    """Say with which variant the teacher and the student lose most. Differences within the noise
    are left out.
    """
    parts = []
    for model, name in (("ensemble", "teacher"), ("server", "student")):
        losses = {}
        for variant in reduced_variants:
            gap = difference(getattr(variant, model), getattr(full_variant, model))
            if not gap.is_noise and round(-100 * gap.mean) > 0:
                losses[variant.name_in_sentence] = -gap.mean
        if losses:
            worst = max(losses, key=losses.__getitem__)
            points = format_count_and_noun(round(100 * losses[worst]), "point")
            parts.append(f"the {name} loses most with {worst}, {points}")
        else:
            parts.append(f"the {name} is as good without any of them")
    seeds = describe_seeds(full_variant.ensemble)
    return f"Against all three ideas ({seeds}) {'; '.join(parts)}."


def describe_all_clear_differences(
    full_variant: IdeaVariant, reduced_variants: Sequence[IdeaVariant]
) -> str:
    """Say how much the teacher and the student lose with each variant. Differences within the noise
    are left out.
    """
    parts = []
    for model, name in (("ensemble", "teacher"), ("server", "student")):
        losses = []
        for variant in reduced_variants:
            gap = difference(getattr(variant, model), getattr(full_variant, model))
            if not gap.is_noise and round(100 * gap.mean) != 0:
                sign = "" if gap.mean < 0 else "+"
                losses.append(
                    f"{sign}{abs(100 * gap.mean):.0f} points with {variant.name_in_sentence}"
                )
        if losses:
            parts.append(f"the {name} loses {join_with_and(losses)}")
        else:
            parts.append(f"the {name} is as good without any of them")
    seeds = describe_seeds(full_variant.ensemble)
    return f"Against all three ideas ({seeds}) {'; '.join(parts)}."
