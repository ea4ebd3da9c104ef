"""Figures and claims of texts: the runs behind them, how they are computed, and whether the texts
agree.

`load_all_declared_studies` returns all declared studies: those of figures, the tuning study (`papers/tuning`),
and the runs of the papers' tables.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ...declared import parse_toml
from ...studies.grid import Study
from ...studies.outcome import Outcome
from ...studies.statistics import compute_band
from ...studies.stored_figures import (
    OPERATOR,
    SERIES,
    ValuesBySeed,
    compute_figure_values_by_seed,
    format_figure_values,
    select_values_of_seeds_or_all,
)
from ...studies.stored_rows import FOLDER, StoredRow, make_json_key_of_row, make_path_of_stored_rows
from ..cells import list_points_of_stored_tables
from ..points import COMMAND, DeclaredStudy, MethodSettingPoint
from ..reproduction import FILES
from ..tuning import SETS, list_tuning_points

SEEDS = tuple(range(10))
StudyArguments = Mapping[str, Any]  # keyword arguments of `fl.study`
PLAIN = ("accuracy", "bytes_up", "bytes_down", "parameters")
FIGURE = re.compile(r"<!--n (?P<study>\w+)\.(?P<what>[^>]+?)-->(?P<shown>.*?)<!--/n-->", re.DOTALL)
CLAIM = re.compile(r"<!--c (?P<study>\w+)\.(?P<claim>\w+)-->")
# On another processor the mean of ten seeds is another one, because of rounding. It differs by up to two points with
# methods that search for images, which amplifies rounding (AMPLIFIERS), and hardly with others. If a claim's band ends
# nearer to its limit than that, the text has to say so (EDGE).
AMPLIFIERS = ("dense", "coboosting", "fdafl")
MOVES_AMPLIFIED, MOVES = 0.02, 0.001
EDGE = "(at the edge"
DECLARATIONS = Path(__file__).parent
ROOT = DECLARATIONS.parents[2]
LESSONS = ROOT / "fedlab_nb" / "course"
TEXTS = ("fedlab_nb/course/*", "notebooks/instructor", "notebooks", ".", "notebooks/guide")


class ClaimJudgement(NamedTuple):
    """Whether a claim holds, and its numbers in words.

    holds: None if the order is as claimed, but not clear on these seeds
    """

    holds: bool | None
    numbers: str


@dataclass(frozen=True)
class FigureStudy(DeclaredStudy):
    """Runs, the figures that are computed from them, and the claims that the texts make.

    A figure is a value for each seed: the accuracies of a method, another column, or a difference of two figures on the
    same seeds. It may also be the result of a function in the module `measures`, which needs no declared run: a
    constant, or {seed: value}.

    runs:     {name: keyword arguments of `fl.study`}
    later:    runs like those of `runs` that take long (`core_minutes` on one core), so that they are made only on
              demand (`make_study_with_later_runs`). Their rows that are stored already are kept up to date
    columns:  the columns that each row has, besides those that the figures read
    figures:  {name: expression from which it is computed}
    claims:   {name: what it says, such as "a > b"}, see `judge_claim`
    quotes:   {file: templates}, for files that cannot have the comments that mark a figure
    measures: name of the module whose functions measure more than a run's own numbers
    """

    runs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    later: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    columns: Sequence[str] = PLAIN
    figures: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, str] = field(default_factory=dict)
    quotes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    measures: str = ""

    def list_points(
        self, stored_rows: Sequence[StoredRow] = (), other_seeds_or_empty: Sequence[int] = ()
    ) -> Iterator[MethodSettingPoint]:
        """List the points of all runs, and of the later runs that have rows.

        other_seeds_or_empty: to be used instead of the declared ones; () for the declared ones
        """
        for name, declaration in self.runs.items():
            yield from self.list_points_of_runs_with_name(name, declaration, other_seeds_or_empty)
        stored_keys = {make_json_key_of_row(row) for row in stored_rows}
        for name, declaration in self.later.items():
            arguments = drop_core_minutes_from_declaration(declaration)
            for point in self.list_points_of_runs_with_name(name, arguments, other_seeds_or_empty):
                if point.key in stored_keys:
                    yield point

    def list_points_of_runs_with_name(
        self,
        runs_name: str,
        study_arguments: StudyArguments,
        other_seeds_or_empty: Sequence[int],
    ) -> Iterator[MethodSettingPoint]:
        """List the points of runs with a name.

        other_seeds_or_empty: to be used instead of the declared ones; () for the declared ones
        """
        settings = {"seeds": SEEDS, **study_arguments}
        if other_seeds_or_empty:
            settings["seeds"] = other_seeds_or_empty
        grid = Study.declare(**settings)
        for cell in replace(grid, seeds=grid.seeds[:1]).cells():
            method = cell.plan.method_name
            columns = {}
            for column in self.list_column_names_to_store(runs_name, method):
                columns[column] = partial(self.read_column_value, column)
            yield MethodSettingPoint(
                runs_name, method, cell.values, cell.plan.settings, grid.seeds, columns
            )

    def make_study_with_later_runs(self) -> FigureStudy:
        """Make the same study, which also includes the runs that are made only on demand."""
        later = {
            name: drop_core_minutes_from_declaration(declared)
            for name, declared in self.later.items()
        }
        return replace(self, runs={**self.runs, **later}, later={})

    def list_column_names_to_store(self, runs_name: str, method: str) -> list[str]:
        """List the columns that the rows of a method in these runs have: the declared ones, then those
        that figures read."""
        read_columns = set[str]()
        for expression in self.figures.values():
            for part in OPERATOR.split(expression):
                series = SERIES.fullmatch(part)
                if series is None or not series["column"]:
                    continue
                if (series["runs"], series["method"]) == (runs_name, method):
                    read_columns.add(series["column"])
        return [*self.columns, *sorted(read_columns - set(self.columns))]

    def get_measure_function(self, measure_name: str) -> Callable[..., Any]:
        """Find a function of the module `measures`: by its name in the module's dict MEASURES, or, if
        there is no such dict, by its name in the module."""
        module = importlib.import_module(self.measures)
        functions = getattr(module, "MEASURES", vars(module))
        return functions[measure_name]

    def read_column_value(self, column_path: str, outcome: Outcome) -> float | None:
        """Read a column of an outcome; None if the outcome of this method does not have it.

        column_path: a path into the outcome, such as `report.heads.ccvr`; a whole number in it is an index.
            Or a path into the result of a measure: `probes.mean` is "mean" in the result of `probes`
        """
        value: Any = outcome
        steps = column_path.split(".")
        if not hasattr(outcome, steps[0]) and self.measures:
            value = self.get_measure_function(steps.pop(0))(outcome)
        for step in steps:
            if value is not None and re.fullmatch(r"-?\d+", step):
                value = value[int(step)]
            elif isinstance(value, Mapping):
                value = value.get(step)
            else:
                value = getattr(value, step, None)
        return value

    def compute_figure_values_by_seed(
        self, figure_name_or_expression: str, stored_rows: Sequence[StoredRow]
    ) -> ValuesBySeed:
        """Compute a figure's values by seed.

        figure_name_or_expression: its name, an expression of figures, or a number, which is the same on every seed
        """
        figure_name_or_expression = self.figures.get(
            figure_name_or_expression.strip(), figure_name_or_expression
        ).strip()
        if figure_name_or_expression.startswith("="):
            name, _, arguments_text = figure_name_or_expression[1:].strip().partition("(")
            arguments = ast.literal_eval(f"({arguments_text.rstrip(')')},)")
            measured = self.get_measure_function(name)(*arguments)
            if isinstance(measured, Mapping):
                return dict(measured)
            return {0: float(measured)}
        try:
            return compute_figure_values_by_seed(
                figure_name_or_expression, self.figures, stored_rows
            )
        except ValueError as error:
            raise ValueError(f"Study {self.name}: {error}") from None

    def judge_claim(self, claim_name: str, stored_rows: Sequence[StoredRow]) -> ClaimJudgement:
        """Judge whether a claim holds on `stored_rows`.

        `a > b`: the difference is clear. `a > 0.3`: the whole band of a is above 0.3. `a ~ b`: the
        difference is within the noise.
        """
        left, sign, right = re.split(r" ([>~]) ", self.claims[claim_name])
        difference = compute_band(
            self.compute_figure_values_by_seed(f"{left} - {right}", stored_rows)
        )
        numbers = f"{100 * difference.mean:+.1f} ± {100 * difference.half_width:.1f}"
        numbers += f", {difference.verdict}"
        if sign == ">" and difference.mean <= 0:
            return ClaimJudgement(False, f"{numbers}: REVERSED")
        expected = "clear" if sign == ">" else "within the noise"
        return ClaimJudgement(True if difference.verdict == expected else None, numbers)

    def find_method_names_read_by_expression(self, figure_name_or_expression: str) -> set[str]:
        """Find the methods whose runs a figure, or an expression of figures, reads."""
        figure_name_or_expression = figure_name_or_expression.strip()
        if figure_name_or_expression in self.figures:
            return self.find_method_names_read_by_expression(
                self.figures[figure_name_or_expression]
            )
        parts = OPERATOR.split(figure_name_or_expression)
        if len(parts) > 1:
            return set().union(*map(self.find_method_names_read_by_expression, parts))
        series = SERIES.fullmatch(figure_name_or_expression)
        return {series["method"]} if series else set()

    def can_rounding_break_claim(self, claim_name: str, stored_rows: Sequence[StoredRow]) -> bool:
        """Whether a claim that holds on `stored_rows` could fail by the rounding of another processor."""
        left, sign, right = re.split(r" ([>~]) ", self.claims[claim_name])
        difference = compute_band(
            self.compute_figure_values_by_seed(f"{left} - {right}", stored_rows)
        )
        if sign == ">":
            distance = difference.low
        else:
            distance = min(-difference.low, difference.high)
        if self.find_method_names_read_by_expression(f"{left} - {right}") & set(AMPLIFIERS):
            return distance < MOVES_AMPLIFIED
        return distance < MOVES

    def format_figure_values(self, figure_reference: str, stored_rows: Sequence[StoredRow]) -> str:
        """Format a figure in the way in which a text refers to it.

        figure_reference: NAME, NAME:FORM or NAME@SEEDS:FORM, such as `server`, `server:mean`,
            `server@0-2:each`
        """
        name_and_seeds, _, form = figure_reference.partition(":")
        name, _, seeds = name_and_seeds.partition("@")
        values = select_values_of_seeds_or_all(
            self.compute_figure_values_by_seed(name, stored_rows), seeds
        )
        return format_figure_values(values, form)


def drop_core_minutes_from_declaration(declaration: Mapping[str, Any]) -> StudyArguments:
    """Select the arguments of `fl.study` in a declaration of `later`."""
    return {name: value for name, value in declaration.items() if name != "core_minutes"}


def load_figure_study(toml_file: Path) -> FigureStudy:
    """Load the study that a TOML file declares.

    For a file of this folder the results are in `studies/stored/`, for that of a lesson beside the TOML file.
    """
    content = parse_toml(toml_file.read_text(encoding="utf-8"))
    content.pop("bars", None)  # they declare a lesson's pictures, see `course/kit/claims.py`
    results = toml_file.with_suffix(".json")
    if toml_file.parent == DECLARATIONS:
        results = FOLDER / results.name
    return FigureStudy(content.pop("name", toml_file.stem), results, **{"decimals": 6, **content})


def load_all_declared_studies() -> dict[str, DeclaredStudy]:
    """Load all declared studies: {name: study}."""
    files = list(LESSONS.glob("*/figures.toml"))
    files += [path for path in DECLARATIONS.glob("*.toml") if path.name != "tuning.toml"]
    studies: list[DeclaredStudy] = [load_figure_study(file) for file in files]
    studies.sort(key=lambda study: study.name)
    note = (
        "accuracy: share of the validation images, a fixed fifth of the training images; "
        "no test image was used"
    )
    for dataset in SETS:
        path = make_path_of_stored_rows("tuning", dataset)
        list_points = partial(list_tuning_points, dataset)
        studies.append(DeclaredStudy(path.stem, path, note, wanted=list_points))
    note = "accuracy: share of the test images; by seed"
    small_file, large_file = FILES
    studies.append(
        DeclaredStudy(small_file.stem, small_file, note, wanted=list_points_of_stored_tables)
    )
    list_large_points = partial(list_points_of_stored_tables, is_for_large_datasets=True)
    studies.append(DeclaredStudy(large_file.stem, large_file, note, wanted=list_large_points))
    return {study.name: study for study in studies}


# ------------------------------------------------------------------------------------------------------- in texts
def list_markdown_files_that_may_cite_figures(root: Path) -> Iterator[Path]:
    """List all Markdown texts below `root` that may name figures."""
    for folder in TEXTS:
        yield from sorted(root.glob(f"{folder}/*.md"))


StoredRowsByStudy = Mapping[str, Sequence[StoredRow]]  # {name of a study: its rows}
StudyAndClaimName = tuple[str, str]  # names of a study and of one of its claims


def replace_figures_between_marks(
    text: str, studies: Mapping[str, FigureStudy], rows_by_study: StoredRowsByStudy
) -> str:
    """Return `text` with the figures of `studies` as they are now."""

    def write_marked_figure(match: re.Match) -> str:
        name = match["study"]
        if name not in studies:
            return match[0]
        value = studies[name].format_figure_values(match["what"], rows_by_study[name])
        return f"<!--n {name}.{match['what']}-->{value}<!--/n-->"

    return FIGURE.sub(write_marked_figure, text)


def replace_figures_by_template(
    text: str, template: str, study: FigureStudy, stored_rows: Sequence[StoredRow]
) -> str:
    """Return `text` with the figures of a template as they are now. ValueError if no place in the text
    matches the template.

    template: such as "{server} % against {equal:mean} %"; a space stands for any white space
    """
    # Fixed words and references to figures alternate in `pieces`.
    pieces = re.split(r"\{([^}]+)\}", template)
    patterns = []
    for fixed_words in pieces[::2]:
        escaped_words = [re.escape(word) for word in re.split(r"\s+", fixed_words)]
        patterns.append("(" + r"\s+".join(escaped_words) + ")")
    pattern = re.compile(r"([^\n]{1,60}?)".join(patterns))
    if not pattern.search(text):
        raise ValueError(f"no place reads like {template!r}")
    values = [study.format_figure_values(reference, stored_rows) for reference in pieces[1::2]]

    def write_place(match: re.Match) -> str:
        fixed_words = match.groups()[::2]
        written = fixed_words[0]
        for value, words in zip(values, fixed_words[1:], strict=True):
            written += value + words
        return written

    return pattern.sub(write_place, text)


def make_corrected_texts_by_changed_file(
    root: Path, studies: Mapping[str, FigureStudy]
) -> dict[Path, str]:
    """Return {path: corrected text} of all texts in which a figure differs from its study. ValueError if
    a figure cannot be computed or found."""
    rows = {name: study.load_stored_rows() for name, study in studies.items()}
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in list_markdown_files_that_may_cite_figures(root)
    }
    updated = {
        path: replace_figures_between_marks(text, studies, rows) for path, text in texts.items()
    }
    for name, study in studies.items():
        for file, templates in study.quotes.items():
            path = root / file
            if path not in texts:
                texts[path] = path.read_text(encoding="utf-8")
            text = updated.get(path) or texts[path]
            for template in templates:
                text = replace_figures_by_template(text, template, study, rows[name])
            updated[path] = text
    return {path: text for path, text in updated.items() if text != texts[path]}


def describe_wrong_texts_and_claims(root: Path, studies: Mapping[str, FigureStudy]) -> list[str]:
    """Write a sentence for each text that disagrees with its study, and for each claim that does not
    hold, is in no text, or is in no study."""
    lines = []
    for path in make_corrected_texts_by_changed_file(root, studies):
        lines.append(f"{path.name}: a figure differs from its study; run {COMMAND} --texts")
    marked = {claim for claim in find_claims_marked_in_texts(root) if claim[0] in studies}
    declared = set[StudyAndClaimName]()
    for name, study in studies.items():
        declared.update((name, claim) for claim in study.claims)
    for name, claim in marked - declared:
        lines.append(f"{name}: a text marks {claim!r}, and no such claim is declared")
    for name, claim in declared - marked:
        lines.append(f"{name}: no text marks the claim with <!--c {name}.{claim}-->")
    return lines + describe_wrong_claims(studies, find_claims_whose_text_says_at_edge(root))


def describe_wrong_claims(
    studies: Mapping[str, FigureStudy],
    claims_whose_text_says_at_edge: Collection[StudyAndClaimName],
) -> list[str]:
    """Write a sentence for each claim that does not hold, and for each claim whose text wrongly says, or
    does not say, that it is at the edge.

    claims_whose_text_says_at_edge: the claims of which a text says that they are at the edge
    """
    lines = []
    for name in sorted(studies):
        study = studies[name]
        rows = study.load_stored_rows() if study.claims else []
        for claim in sorted(study.claims):
            judgement = study.judge_claim(claim, rows)
            has_remark = (name, claim) in claims_whose_text_says_at_edge
            if not judgement.holds:
                rule = study.claims[claim]
                lines.append(f"{name}: {claim} ({rule}) does not hold: {judgement.numbers}")
            elif study.can_rounding_break_claim(claim, rows) and not has_remark:
                lines.append(
                    f"{name}: {claim}: {judgement.numbers}; "
                    f"write '{EDGE})' after its mark in the text"
                )
            elif has_remark and not study.can_rounding_break_claim(claim, rows):
                lines.append(
                    f"{name}: {claim}: {judgement.numbers}; it is not at the edge, as the text says"
                )
    return lines


def find_claims_marked_in_texts(root: Path) -> set[StudyAndClaimName]:
    """Find the claims that the texts mark."""
    claims = set()
    for path in list_markdown_files_that_may_cite_figures(root):
        for match in CLAIM.finditer(path.read_text(encoding="utf-8")):
            claims.add((match["study"], match["claim"]))
    return claims


def find_claims_whose_text_says_at_edge(root: Path) -> set[StudyAndClaimName]:
    """Find the claims of which a text says that they are at the edge of their band."""
    remarks = set()
    for path in list_markdown_files_that_may_cite_figures(root):
        text = path.read_text(encoding="utf-8")
        for match in CLAIM.finditer(text):
            if text[match.end() :].lstrip().startswith(EDGE):
                remarks.add((match["study"], match["claim"]))
    return remarks
