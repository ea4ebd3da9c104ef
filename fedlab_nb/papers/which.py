"""Recommends a method: the frontier of accuracy against bytes on stored federations, a rule drawn
from it, how wrong that rule is on data that it has not seen, and a recommendation for a person's
own data.

    fedlab-nb which                       the stored federations, the rule and its regret
    fedlab-nb which mine.csv?label=ill    the same on one's own data, within a stated time
    fl.which(), fl.which("mine.csv?label=ill")     the same in a notebook, with the picture

A candidate is a method with its options. On a federation of the study the answer is the cheapest
candidate that is within the noise of the most accurate one (paired differences over seeds,
Student's t). For other data there is a rehearsal: the candidates on the study's shortlist are run
on the person's data, and training samples that are held out of these runs decide.
"""

from __future__ import annotations

import html
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np
import torch

from ..data import Dataset, load
from ..data.dataset import hash_parts_to_short_id
from ..data.registry import get_or_register_dataset_name, remove_dataset
from ..declared import parse_toml
from ..errors import UsageError, check_allowed_name
from ..methods import METHODS
from ..plots import MethodResults, Picture
from ..plots.frontier import BAND_SEEDS, FederationFrontier, draw_frontiers
from ..plots.identity import shorten_method_title
from ..plots.style import make_image_html, render_png_for_notebook
from ..plots.words import describe_seeds, format_count_and_noun, format_dataset_name, join_with_and
from ..rng import make_numpy_generator
from ..studies import run, stored_results
from ..studies.cost import estimate_cost
from ..studies.statistics import compute_band, difference
from ..studies.stored_rows import FOLDER, StoredRow, read_stored_rows
from ..studies.text_tables import format_data_size
from ..value_types import Accuracy0To1

DECLARATION = Path(__file__).parent / "declared" / "which.toml"
REFERENCES = ("local", "centralized")

IMAGES_ALONE = ("(lite0)", "(conv)")  # options that work on images alone
STUDIED_IMAGES = "images of letters and digits"  # for other images the study has no fixed answer

LEAST_GAIN = 0.0005  # by which one more candidate must improve a shortlist's score
MOST_POINTS_LOST = 1.0  # by which a cheaper candidate may be behind the most accurate one
FOLDS = 5  # parts of the training samples; each seed holds out one of them
MOST_SEEDS = 20  # of a rehearsal
WANTED_HELD_OUT = 1000  # samples that all seeds together should hold out

# Federations of the study whose clients come with the data: {runs: (data set, setting in words)}.
NATURAL = {
    "fonts": ("glyphs:16g", "a font a client"),
    "watch": ("watch", "ten people"),
    "mails": ("mails", "six mailing lists"),
}
# Their numbers of clients.
CLIENTS = {"fonts": 10, "watch": 10, "mails": 6}

# What is tried on a person's own data, besides every method at its defaults.
VARIANTS: Mapping[str, Sequence[str]] = {
    "afl": ("pixels", "relu", "conv", "lite0"),
    "gauss": ("pixels", "lite0"),
}


@dataclass(frozen=True)
class Answers:
    """A person's answers to four questions; None for a question that was not answered.

    public: whether the server has unlabelled samples of the same kind
    once:   whether a client can send one message only
    unlike: whether the clients have networks of different architectures
    forget: whether a client may later ask to be forgotten
    """

    public: bool | None = None
    once: bool | None = None
    unlike: bool | None = None
    forget: bool | None = None

    def is_method_allowed(self, method: str) -> bool:
        """Whether a method fits these answers."""
        info = METHODS[method].info
        if method in REFERENCES:
            return False
        if self.public is False and "public" in info.needs:
            return False
        # "one-shot, then T tiny rounds" (FENS) is more than one message.
        is_once = info.rounds.startswith("one-shot") and method != "fens"
        if self.once and not is_once:
            return False
        if self.unlike and "one architecture" in info.needs:
            return False
        return not self.forget or bool(info.forgets)


@dataclass(frozen=True)
class Candidate:
    """A method with its options on one federation.

    accuracy: by seed, 0-1
    bytes_each: up and down, of one client
    seconds: of one run, the median over seeds; nan if they were not recorded
    """

    method: str
    options: str
    accuracy: Mapping[int, float]
    bytes_each: float
    seconds: float = math.nan

    @property
    def name(self) -> str:
        return f"{self.method} ({self.options})" if self.options else self.method

    @property
    def title(self) -> str:
        """Its name in pictures."""
        title = shorten_method_title(METHODS[self.method].info.title)
        return f"{title} ({self.options})" if self.options else title

    @property
    def mean(self) -> Accuracy0To1:
        return fmean(self.accuracy.values())


@dataclass(frozen=True)
class StudiedFederation:
    """What was run on one federation.

    data: shared by the federations of one data set
    rehearsal_answer: the name of the candidate that a rehearsal chose; empty in the study
    """

    name: str
    data: str
    candidates: Sequence[Candidate]
    rehearsal_answer: str = ""


CandidateName = str
FederationName = str  # such as "digits, α = 0.1"
AccuracyRegret0To1 = float  # how far a mean accuracy is below the best one


class RuleChoice(NamedTuple):
    """What a rule chooses: a candidate's name, and its regret (mean accuracy below the best, 0-1)."""

    name: str
    regret: float


class FederationKey(NamedTuple):
    """A federation by its data set and its setting, such as "α = 0.1"."""

    data: str
    setting: str


class RegretTable(NamedTuple):
    """The regrets on one federation, from which shortlists are chosen.

    data:    its data set
    regrets: {candidate: regret, 0-1}
    best:    accuracy of the best candidate, 0-1
    """

    data: str
    regrets: Mapping[str, float]
    best: float


class CaseNameAndAnswers(NamedTuple):
    """A case for which the page has a sentence: its name, and its answers to the questions."""

    name: str
    answers: Answers


class MethodVariant(NamedTuple):
    """Options of a method: their name in a candidate, empty for the defaults, and the knobs that
    they set.
    """

    name: str
    knobs: dict[str, Any]


class WaitingCandidate(NamedTuple):
    """A candidate that was not run yet: the forecast of its time, its method, and its options by
    their name and by the knobs that they set.
    """

    forecast_seconds: float
    method: str
    options: str
    knobs: dict[str, Any]


class CandidateRuns(NamedTuple):
    """Candidates that ran, and a text for each that did not, with the reason."""

    candidates: list[Candidate]
    not_run: list[str]


# ----------------------------------------------------------------------- frontier, ties and regret
def find_candidates_unbeaten_in_accuracy_and_bytes(
    candidates: Sequence[Candidate],
) -> list[Candidate]:
    """Find the candidates that are not beaten, the cheapest first. One is beaten if another one has
    at least its mean accuracy for at most its bytes, and is better in one of the two.
    """
    frontier: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.bytes_each, -c.mean)):
        if not frontier or candidate.mean > frontier[-1].mean:
            frontier.append(candidate)
    return frontier


def find_candidates_tied_for_best(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Find the most accurate candidate and all within the noise of it, the cheapest first; of
    equally cheap ones the most accurate first. With a single common seed the noise is not known, so
    only equal accuracies are ties.
    """
    if not candidates:
        return []
    best = max(candidates, key=lambda c: c.mean)
    ties = []
    for candidate in candidates:
        gap = difference(best.accuracy, candidate.accuracy)
        if candidate is best or gap.mean == 0 or gap.verdict == "within the noise":
            ties.append(candidate)
    return sorted(ties, key=lambda c: (c.bytes_each, -c.mean))


def compute_accuracy_regret_by_candidate(
    federation: StudiedFederation, answers: Answers
) -> dict[CandidateName, AccuracyRegret0To1]:
    """Compute for each candidate that fits the answers how far its mean accuracy is below the best
    one.
    """
    means = {c.name: c.mean for c in federation.candidates if answers.is_method_allowed(c.method)}
    best = max(means.values(), default=0.0)
    return {name: best - mean for name, mean in means.items()}


def choose_candidate_with_least_mean_regret(
    federations: Sequence[StudiedFederation],
    answers: Answers,
    allowed_names: Sequence[str] | None = None,
) -> RuleChoice | None:
    """Choose the candidate with the least mean regret over data sets. The regret on a data set is
    the mean over its federations. The candidate must have run on at least two data sets, or on the
    only one.

    allowed_names: names of the candidates to choose from; None for all
    """
    regrets_by_name: dict[str, dict[str, list[float]]] = {}
    for federation in federations:
        for name, regret in compute_accuracy_regret_by_candidate(federation, answers).items():
            if allowed_names is None or name in allowed_names:
                regrets_by_data = regrets_by_name.setdefault(name, {})
                regrets_by_data.setdefault(federation.data, []).append(regret)
    min_datasets = min(2, len({federation.data for federation in federations}))
    means = {}
    for name, regrets_by_data in regrets_by_name.items():
        if len(regrets_by_data) >= min_datasets:
            means[name] = fmean(fmean(regrets) for regrets in regrets_by_data.values())
    if not means:
        return None
    name = min(means, key=lambda candidate: (means[candidate], candidate))
    return RuleChoice(name, means[name])


def choose_for_each_federation_by_rule_of_other_datasets(
    federations: Sequence[StudiedFederation], answers: Answers
) -> dict[FederationName, RuleChoice]:
    """Make {federation: the choice of the rule drawn from the other data sets, with its regret
    there}.

    All federations of a data set are left out together, as the same images with another alpha are
    not new data.
    """
    choices = {}
    for federation in federations:
        other_federations = [
            candidate_federation
            for candidate_federation in federations
            if candidate_federation.data != federation.data
        ]
        names = [c.name for c in federation.candidates]
        choice = choose_candidate_with_least_mean_regret(other_federations, answers, names)
        if choice is not None:
            regret = compute_accuracy_regret_by_candidate(federation, answers)[choice.name]
            choices[federation.name] = RuleChoice(choice.name, regret)
    return choices


# ------------------------------------------------------------------------ shortlist and rehearsal
def make_regret_tables(
    federations: Sequence[StudiedFederation], answers: Answers, allows_image_options: bool
) -> list[RegretTable]:
    """Make a table for each federation with the regrets of the candidates that a shortlist may
    have.
    """
    tables = []
    for federation in federations:
        regrets = compute_accuracy_regret_by_candidate(federation, answers)
        if not regrets:
            continue
        means = [c.mean for c in federation.candidates if answers.is_method_allowed(c.method)]
        if not allows_image_options:
            regrets = {n: regret for n, regret in regrets.items() if not n.endswith(IMAGES_ALONE)}
        tables.append(RegretTable(federation.data, regrets, max(means)))
    return tables


def select_candidate_names_run_on_two_datasets(
    tables: Sequence[RegretTable],
) -> list[CandidateName]:
    """Select the candidates that ran on at least two data sets, or on the only one."""
    datasets_by_name: dict[str, set[str]] = {}
    for table in tables:
        for name in table.regrets:
            datasets_by_name.setdefault(name, set()).add(table.data)
    min_datasets = min(2, len({table.data for table in tables}))
    return sorted(
        name for name, datasets in datasets_by_name.items() if len(datasets) >= min_datasets
    )


def compute_mean_regret_of_best_two_on_shortlist(
    tables: Sequence[RegretTable], shortlist_names: Sequence[str]
) -> AccuracyRegret0To1:
    """Compute the score of a shortlist, 0-1, the smaller the better: the mean of two regrets, that
    of the list's best candidate and that of its second best.

    The second regret rewards a list with a spare for a candidate that fails on other data. Scores
    are averaged over data sets, each with the mean of its federations. Where no candidate of the
    list ran, its accuracy counts as 0.
    """
    scores_by_data: dict[str, list[float]] = {}
    for table in tables:
        list_regrets = sorted(
            table.regrets[name] for name in shortlist_names if name in table.regrets
        )
        best, spare = [*list_regrets, table.best, table.best][:2]
        scores_by_data.setdefault(table.data, []).append((best + spare) / 2)
    return fmean(fmean(scores) for scores in scores_by_data.values())


def list_closed_form_candidate_names(
    answers: Answers, allows_image_options: bool
) -> list[CandidateName]:
    """List the candidates in closed form that fit the answers, with all their options."""
    names = []
    for method in filter(answers.is_method_allowed, METHODS):
        if METHODS[method].info.group != "Closed form":
            continue
        for variant in list_variants_of_method_to_rehearse(method):
            name = f"{method} ({variant.name})" if variant.name else method
            if allows_image_options or not name.endswith(IMAGES_ALONE):
                names.append(name)
    return names


def choose_shortlist_greedily(
    federations: Sequence[StudiedFederation], answers: Answers, *, allows_image_options: bool = True
) -> list[CandidateName]:
    """Choose the candidates to rehearse, one after the other: always the one that improves the
    list's score most, until the next one would improve it by less than `LEAST_GAIN`.

    allows_image_options: whether options that work on images alone may be on the list
    """
    tables = make_regret_tables(federations, answers, allows_image_options)
    remaining_names = select_candidate_names_run_on_two_datasets(tables)
    shortlist: list[str] = []
    score = math.inf
    while remaining_names:
        scores = {
            name: compute_mean_regret_of_best_two_on_shortlist(tables, [*shortlist, name])
            for name in remaining_names
        }
        best_name = min(remaining_names, key=lambda name: (scores[name], name))
        if score - scores[best_name] < LEAST_GAIN:
            break
        score = scores[best_name]
        shortlist.append(best_name)
        remaining_names.remove(best_name)
    return shortlist


def make_shortlist_with_closed_forms(
    federations: Sequence[StudiedFederation], answers: Answers, *, allows_image_options: bool = True
) -> list[CandidateName]:
    """Make the list of candidates to rehearse: those that the study chooses, and all in closed
    form, which cost little because their clients train no network.
    """
    study_names = choose_shortlist_greedily(
        federations, answers, allows_image_options=allows_image_options
    )
    closed_form_names = list_closed_form_candidate_names(answers, allows_image_options)
    return [*study_names, *(name for name in closed_form_names if name not in study_names)]


def has_candidates_for_images_alone(federation: StudiedFederation) -> bool:
    """Whether candidates ran on the federation whose options work on images alone."""
    return any(c.name.endswith(IMAGES_ALONE) for c in federation.candidates)


def compute_accuracy_regret_of_shortlist_from_other_datasets(
    federations: Sequence[StudiedFederation], answers: Answers
) -> dict[FederationName, AccuracyRegret0To1]:
    """Compute for each federation how far the best candidate on the shortlist of the other data
    sets is below the best of all, 0-1. Federations on which none of the list ran are left out.
    """
    regrets = {}
    for federation in federations:
        other_federations = [
            candidate_federation
            for candidate_federation in federations
            if candidate_federation.data != federation.data
        ]
        shortlist = make_shortlist_with_closed_forms(
            other_federations,
            answers,
            allows_image_options=has_candidates_for_images_alone(federation),
        )
        regrets_by_name = compute_accuracy_regret_by_candidate(federation, answers)
        shortlist_regrets = [regrets_by_name[name] for name in shortlist if name in regrets_by_name]
        if shortlist_regrets:
            regrets[federation.name] = min(shortlist_regrets)
    return regrets


def choose_cheapest_candidate_near_best(candidates: Sequence[Candidate]) -> Candidate:
    """Choose the cheapest candidate that is at most `MOST_POINTS_LOST` points behind the most
    accurate one, even at the far end of the band of their paired differences.

    If few samples are held out, the bands are wide, and the most accurate candidate is chosen.
    """
    best = max(candidates, key=lambda c: (c.mean, -c.bytes_each))
    for candidate in sorted(candidates, key=lambda c: (c.bytes_each, -c.mean)):
        if candidate is best:
            break
        gap = difference(best.accuracy, candidate.accuracy)
        if 100 * (gap.mean + gap.half_width) <= MOST_POINTS_LOST:
            return candidate
    return best


def hold_out_fifth_as_test_samples(dataset: Dataset, seed: int) -> Dataset:
    """Make the data set of one seed of a rehearsal: a fifth of the training samples, drawn class by
    class, takes the place of the test samples, which are left out.

    Seeds 0-4 hold out each training sample once, seeds 5-9 again in another order, and so on.
    Samples of clients that have fewer than `FOLDS` of them are never held out.
    """
    shuffle, fold = divmod(seed, FOLDS)
    generator = make_numpy_generator(shuffle, "rehearsal")
    labels = dataset.y_train.numpy()
    is_held_out = np.zeros(len(labels), bool)
    for label in range(len(dataset.class_names)):
        shuffled_rows = generator.permutation(np.flatnonzero(labels == label))
        is_held_out[shuffled_rows[fold::FOLDS]] = True
    if dataset.client_train is not None:
        clients = dataset.client_train.numpy()
        for client, count in zip(*np.unique(clients, return_counts=True), strict=True):
            if count < FOLDS:
                is_held_out[clients == client] = False
    training_rows = torch.from_numpy(np.flatnonzero(~is_held_out))
    test_rows = torch.from_numpy(np.flatnonzero(is_held_out))
    return replace(
        dataset,
        name=f"{dataset.name}-rehearsal-{seed}",
        digest=hash_parts_to_short_id("rehearsal", dataset.digest, seed),
        x_train=dataset.x_train[training_rows],
        y_train=dataset.y_train[training_rows],
        x_test=dataset.x_train[test_rows],
        y_test=dataset.y_train[test_rows],
        client_train=None if dataset.client_train is None else dataset.client_train[training_rows],
        font_train=None if dataset.font_train is None else dataset.font_train[training_rows],
        client_test=None,
        first_rows=None,
    )


def choose_seed_count_of_rehearsal(training_sample_count: int) -> int:
    """Choose the number of seeds of a rehearsal, so that about `WANTED_HELD_OUT` samples are held
    out.
    """
    needed_seeds = math.ceil(WANTED_HELD_OUT * FOLDS / max(1, training_sample_count))
    return min(MOST_SEEDS, max(FOLDS, needed_seeds))


# ----------------------------------------------------------------------------- stored federations
def make_candidate_of_stored_row_or_none(row: StoredRow, client_count: int) -> Candidate | None:
    """Make the candidate of a stored row; None if a run failed."""
    if "failed" in row or row["method"] in REFERENCES:
        return None
    settings_of_runs = row["made"]
    options = str(settings_of_runs.get(f"{row['method']}.features", ""))
    if options == "pixels":
        options = ""
    all_bytes = fmean(row["bytes_up"]) + fmean(row["bytes_down"])
    seconds = math.nan
    # The features of lite0 came from the cache of an earlier run, so its seconds would mislead.
    if "seconds_method" in row and options != "lite0":
        # The median is not disturbed by a seed whose run had to wait for other programs.
        seconds = median(row["seconds_local"]) + median(row["seconds_method"])
    accuracy = dict(zip(row["seeds"], row["accuracy"], strict=True))
    return Candidate(row["method"], options, accuracy, all_bytes / client_count, seconds)


def read_federation_and_client_count_of_row(row: StoredRow) -> tuple[FederationKey, int]:
    """Find the federation of a row of `which.json`, and its number of clients."""
    runs = row["runs"].partition("_")[0]  # mails_rest is on the federation of mails
    if runs in NATURAL:
        return FederationKey(*NATURAL[runs]), CLIENTS[runs]
    data = {"digits": "digits", "glyphs": "glyphs:16g", "mnist": "mnist:5k"}[runs]
    alpha = float(row["at"].get("alpha", 0.1))
    return FederationKey(data, f"α = {alpha:g}"), 10


def load_stored_federations() -> list[StudiedFederation]:
    """Load the federations whose results come with the package."""
    candidates_by_federation: dict[FederationKey, dict[str, Candidate]] = {}

    def add_row(key: FederationKey, row: StoredRow, clients: int) -> None:
        candidate = make_candidate_of_stored_row_or_none(row, clients)
        if candidate is not None:
            candidates_by_federation.setdefault(key, {})[candidate.name] = candidate

    alphas_by_dataset = {"digits": (0.05, 0.1, 0.3, 10.0), "glyphs:16g": (0.1, 1.0, 100.0)}
    for dataset, alphas in alphas_by_dataset.items():
        table = stored_results.load(dataset)
        for (_, alpha, clients), row in table.rows.items():
            if clients == 10 and alpha in alphas:
                add_row(FederationKey(dataset, f"α = {alpha:g}"), row, clients)
    _, rows = read_stored_rows(FOLDER / "sets.json")
    for row in rows:
        if row["runs"] == "mnist":
            add_row(FederationKey("mnist:5k", "α = 0.1"), row, 10)
        if row["runs"] == "heart":
            add_row(FederationKey("heart", "four hospitals"), row, 4)
    _, rows = read_stored_rows(FOLDER / "which.json")
    for row in rows:
        key, clients = read_federation_and_client_count_of_row(row)
        add_row(key, row, clients)
    return make_sorted_federations(candidates_by_federation)


def make_sorted_federations(
    candidates_by_federation: Mapping[FederationKey, Mapping[str, Candidate]],
) -> list[StudiedFederation]:
    """Sort the federations: those of a data set together, the most skewed first."""
    data_sets = list(dict.fromkeys(key.data for key in candidates_by_federation))
    keys = sorted(
        candidates_by_federation,
        key=lambda key: (data_sets.index(key.data), parse_alpha_or_infinity(key.setting)),
    )
    federations = []
    for key in keys:
        candidates = list(candidates_by_federation[key].values())
        federations.append(StudiedFederation(f"{key.data}, {key.setting}", key.data, candidates))
    return federations


def parse_alpha_or_infinity(setting_text: str) -> float:
    """Parse the α of a text such as "α = 0.1". Any other text gives infinity, so that federations
    whose clients come with the data are last in a list.
    """
    if not setting_text.startswith("α = "):
        return math.inf
    return float(setting_text.removeprefix("α = "))


# ---------------------------------------------------------------------------------- in sentences
def describe_candidate(candidate: Candidate) -> str:
    """Describe a candidate: `afl (conv): 94.2 ± 0.1 %, 12.0 kB a client`."""
    accuracy = compute_band(candidate.accuracy)
    text = f"{candidate.name}: {100 * accuracy.mean:.1f}"
    if not math.isnan(accuracy.half_width):
        text += f" ± {100 * accuracy.half_width:.1f}"
    text += f" %, {format_data_size(candidate.bytes_each)} a client"
    if not math.isnan(candidate.seconds):
        text += f", {candidate.seconds:.1f} s"
    return text


def describe_frontier_ties_and_answer(federation: StudiedFederation, answers: Answers) -> list[str]:
    """Describe the frontier, the ties and the answer of one federation, in lines of text."""
    allowed = [c for c in federation.candidates if answers.is_method_allowed(c.method)]
    if not allowed:
        return [f"{federation.name}: nothing that was run here fits these answers."]
    ties = find_candidates_tied_for_best(allowed)
    lines = [f"{federation.name} ({len(allowed)} candidates)", "  not beaten:"]
    lines += [
        f"    {describe_candidate(candidate)}"
        for candidate in find_candidates_unbeaten_in_accuracy_and_bytes(allowed)
    ]
    lines.append(f"  level with the best: {', '.join(c.name for c in ties)}")
    lines.append(f"  answer: {ties[0].name}, the cheapest of these")
    return lines


def select_federations_without_candidates_for_images_alone(
    federations: Sequence[StudiedFederation],
) -> list[StudiedFederation]:
    """Select the federations on which no candidate ran whose options work on images alone."""
    selected = []
    for federation in federations:
        if not any(c.name.endswith(IMAGES_ALONE) for c in federation.candidates):
            selected.append(federation)
    return selected


def describe_rule_and_its_regret(federations: Sequence[StudiedFederation], answers: Answers) -> str:
    """Say which method to use for these answers, and how wrong the rule is on data that it has not
    seen.
    """
    choice = choose_candidate_with_least_mean_regret(federations, answers)
    if choice is None:
        return "No method of the study fits these answers."
    name, regret = choice
    advice = f"for {STUDIED_IMAGES} use {name}" if name.endswith(IMAGES_ALONE) else f"use {name}"
    text = f"{advice}, {100 * regret:.1f} points below the best on average"
    return f"{text}{describe_regret_on_unseen_datasets(federations, answers)}."


def describe_shortlist_and_its_regret(
    federations: Sequence[StudiedFederation], answers: Answers
) -> list[str]:
    """Say which candidates to rehearse for these answers, and how far the best of such a list is
    below the best of all on data from which the list was not made. No line if nothing fits.
    """
    names = make_shortlist_with_closed_forms(federations, answers)
    if not names:
        return []
    lines = [f"  on images rehearse {join_with_and(names)}"]
    names_for_tables = make_shortlist_with_closed_forms(
        federations, answers, allows_image_options=False
    )
    if names_for_tables != names:
        lines.append(f"  on tables and recordings rehearse {join_with_and(names_for_tables)}")
    regrets = compute_accuracy_regret_of_shortlist_from_other_datasets(
        federations, answers
    ).values()
    if regrets:
        lines.append(
            "  with each data set left out in turn, the list of the others has a member that is "
            f"{100 * fmean(regrets):.1f} points below the best of all on average (at most "
            f"{100 * max(regrets):.1f}); whether the rehearsal finds it is another question"
        )
    return lines


def explain_missing_rule_for_images() -> str:
    """Explain why there is no fixed answer for images of another kind than those of the study."""
    return (
        f"other images: no fixed answer. The study has {STUDIED_IMAGES} on a plain ground alone; "
        "on noisy ones the same method is far below the best. Rehearse the list: "
        "fedlab-nb which YOUR-DATA."
    )


def explain_missing_rule_for_tables(
    federations: Sequence[StudiedFederation], answers: Answers
) -> str:
    """Explain why there is no fixed answer for tables and recordings: how far one was below the
    best on data that it had not seen.
    """
    regrets = [
        choice.regret
        for choice in choose_for_each_federation_by_rule_of_other_datasets(
            federations, answers
        ).values()
    ]
    if not regrets:
        return ""
    return (
        f"tables and recordings: no fixed answer. What is best on two of the {len(federations)} "
        f"federations here is {100 * fmean(regrets):.1f} points below the best on the third "
        f"(at most {100 * max(regrets):.1f}). Rehearse the list: fedlab-nb which YOUR-DATA."
    )


def describe_regret_on_unseen_datasets(
    federations: Sequence[StudiedFederation], answers: Answers
) -> str:
    """Say how wrong the rule is on a data set that it has not seen; "" if there is only one data
    set.
    """
    regrets = [
        choice.regret
        for choice in choose_for_each_federation_by_rule_of_other_datasets(
            federations, answers
        ).values()
    ]
    if not regrets:
        return ""
    return (
        f"; with each data set left out in turn, the rule is {100 * fmean(regrets):.1f} "
        f"points below the best (at most {100 * max(regrets):.1f})"
    )


def describe_choices_on_left_out_datasets(
    federations: Sequence[StudiedFederation], answers: Answers
) -> list[str]:
    """List for each federation what the rule of the other data sets chooses, and its regret there."""
    lines = ["each data set left out in turn, what the rule of the others says there:"]
    for name, (choice, regret) in choose_for_each_federation_by_rule_of_other_datasets(
        federations, answers
    ).items():
        lines.append(f"  {name}: {choice}, {100 * regret:.1f} points below the best")
    return lines


def list_cases_of_answers_with_names() -> list[CaseNameAndAnswers]:
    """List the cases for which the page has a sentence."""
    return [
        CaseNameAndAnswers("anything goes", Answers()),
        CaseNameAndAnswers("no public data", Answers(public=False)),
        CaseNameAndAnswers("one message a client", Answers(once=True)),
        CaseNameAndAnswers("clients with different networks", Answers(unlike=True)),
        CaseNameAndAnswers("clients may ask to be forgotten", Answers(forget=True)),
        CaseNameAndAnswers("all four restrictions at once", Answers(False, True, True, True)),
    ]


def describe_stored_study(answers: Answers | None = None) -> str:
    """Describe the stored study: the rule for these answers, without answers for every case; then
    each federation.
    """
    federations = load_stored_federations()
    lines: list[str] = []
    cases = (
        list_cases_of_answers_with_names()
        if answers is None
        else [CaseNameAndAnswers("these answers", answers)]
    )
    for case in cases:
        lines.append(f"{case.name}: {describe_rule_and_its_regret(federations, case.answers)}")
        lines += describe_shortlist_and_its_regret(federations, case.answers)
    lines.append(explain_missing_rule_for_images())
    lines += [
        explain_missing_rule_for_tables(
            select_federations_without_candidates_for_images_alone(federations),
            answers or Answers(),
        ),
        "",
    ]
    for federation in federations:
        lines += describe_frontier_ties_and_answer(federation, answers or Answers())
    lines += ["", *describe_choices_on_left_out_datasets(federations, answers or Answers())]
    if answers is None:
        lines += ["", *describe_declared_runs_not_stored()]
    return "\n".join(lines)


def describe_declared_runs_not_stored() -> list[str]:
    """List the declared runs that are not stored, a line for each with its cost; then the command."""
    declaration = parse_toml(DECLARATION.read_text(encoding="utf-8"))
    stored_names = {row["runs"] for row in read_stored_rows(FOLDER / "which.json")[1]}
    lines = []
    for name, runs in declaration["later"].items():
        if name in stored_names:
            continue
        setting = runs.get("partition", "natural clients")
        alphas = runs.get("alpha", [])
        if alphas:
            values = alphas if isinstance(alphas, list) else [alphas]
            setting = f"α = {join_with_and([f'{alpha:g}' for alpha in values])}"
        methods = len(METHODS) if runs["methods"] == ["all"] else len(runs["methods"])
        seeds = len(runs.get("seeds", range(BAND_SEEDS)))
        lines.append(
            f"  {runs['dataset']}, {setting}: {methods} methods, "
            f"{format_count_and_noun(seeds, 'seed')}, about {runs['core_minutes']} "
            "minutes on one core"
        )
    if lines:
        command = "python -m fedlab_nb.papers.declared which --later"
        lines = ["not run yet:", *lines, f"  {command} runs them, and goes on where it was stopped"]
    return lines


# ------------------------------------------------------------------------------------ the picture
def make_frontier_or_none_if_nothing_fits(
    federation: StudiedFederation, answers: Answers
) -> FederationFrontier | None:
    """Make what the picture shows of a federation; None if no candidate there fits the answers."""
    allowed = [c for c in federation.candidates if answers.is_method_allowed(c.method)]
    if not allowed:
        return None
    rows = []
    for candidate in allowed:
        rows.append(
            MethodResults(
                candidate.title,
                accuracies=candidate.accuracy,
                up=candidate.bytes_each,
                method=candidate.method,
            )
        )
    unbeaten = [
        candidate.title for candidate in find_candidates_unbeaten_in_accuracy_and_bytes(allowed)
    ]
    ties = [candidate.title for candidate in find_candidates_tied_for_best(allowed)]
    answers_of_rehearsal = [c.title for c in allowed if c.name == federation.rehearsal_answer]
    return FederationFrontier(federation.name, rows, unbeaten, ties, "".join(answers_of_rehearsal))


def plot_accuracy_against_bytes_of_federations(
    federations: Sequence[StudiedFederation], answers: Answers, columns: int = 2
) -> Picture:
    """Draw accuracy against bytes for each federation, of the candidates that fit the answers.

    Raises UsageError if none does.
    """
    frontiers = []
    for federation in federations:
        frontier = make_frontier_or_none_if_nothing_fits(federation, answers)
        if frontier is not None:
            frontiers.append(frontier)
    if not frontiers:
        raise UsageError("Nothing that was run fits these answers; answer fewer questions.")
    seeds = sorted({describe_seeds(row.accuracies) for each in frontiers for row in each.rows})
    return draw_frontiers(frontiers, setting=" or ".join(seeds), columns=columns)


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The result of `which`. Printed, it is the text; a notebook shows the picture above the text.

    federations: the federations and what was run on them
    answers: to the four questions; candidates that do not fit them are in neither text nor picture
    """

    text: str
    federations: Sequence[StudiedFederation]
    answers: Answers = Answers()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def find(self, federation: str) -> StudiedFederation:
        """Find a federation by its name, such as "digits, α = 0.3". UsageError for an unknown name."""
        names = {each.name: each for each in self.federations}
        return names[check_allowed_name("federation", federation, names)]

    def list_unbeaten(self, federation: str) -> list[str]:
        """List the methods that no other one beats in both accuracy and bytes, the cheapest first,
        by their names in the picture.
        """
        frontier = make_frontier_or_none_if_nothing_fits(self.find(federation), self.answers)
        return [] if frontier is None else list(frontier.unbeaten)

    def plot(self, *federations: str, columns: int = 2) -> Picture:
        """Draw accuracy against the bytes of one client. Methods that are not beaten, and those
        that are level with the best, are marked.

        federations: names, such as "digits, α = 0.3"; without a name all are drawn
        columns: number of federations side by side
        """
        shown_federations = [self.find(name) for name in federations] or list(self.federations)
        return plot_accuracy_against_bytes_of_federations(shown_federations, self.answers, columns)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Show the picture, light or dark as the page is, and the text; a PNG where HTML cannot be
        shown.
        """
        try:
            picture = self.plot()
        except UsageError:  # the text says that nothing fits
            return {"text/plain": self.text}, {}
        data = {
            "text/html": make_picture_html(picture, self.text),
            "image/png": render_png_for_notebook(picture),
            "text/plain": self.text,
        }
        return data, {"image/png": {"alt": picture.alt}}


def make_picture_html(picture: Picture, text: str) -> str:
    """Make the HTML of a picture that is light or dark as the notebook is, with its text below."""
    image = make_image_html(picture, "width:900px;max-width:100%")
    return f'{image}<pre style="white-space:pre-wrap">{html.escape(text)}</pre>'


# ------------------------------------------------------------------------------ a person's own data
def list_variants_of_method_to_rehearse(method: str) -> list[MethodVariant]:
    """List the options of a method that are tried on a person's own data."""
    variants = []
    for value in VARIANTS.get(method, ("",)):
        name = "" if value == "pixels" else value
        knobs = {f"{method}.features": value} if value else {}
        variants.append(MethodVariant(name, knobs))
    return variants


def rehearse_candidates(
    dataset: Dataset,
    answers: Answers,
    time_limit_seconds: float,
    seed_count: int,
    settings: Mapping[str, Any],
    candidate_names: Sequence[str] | None = None,
) -> CandidateRuns:
    """Rehearse the candidates that fit the answers, in the order of their forecast seconds. Each
    seed has its own fold of the data (`hold_out_fifth_as_test_samples`). A run that would end after
    `time_limit_seconds` by its forecast is not begun.

    candidate_names: of the candidates to rehearse; None for all
    Raises UsageError if none fits.
    """
    dataset_name = get_or_register_dataset_name(dataset)
    waiting: list[WaitingCandidate] = []
    skipped: list[str] = []
    for method in filter(answers.is_method_allowed, METHODS):
        for options, knobs in list_variants_of_method_to_rehearse(method):
            name = f"{method} ({options})" if options else method
            if candidate_names is not None and name not in candidate_names:
                continue
            cost = estimate_cost(
                (method, {**settings, **knobs, "dataset": dataset_name, "seeds": seed_count})
            )
            if cost is None:
                continue
            if cost.seconds is None:
                skipped.append(f"{name} (nobody knows how long it takes)")
                continue
            waiting.append(WaitingCandidate(cost.seconds, method, options, knobs))
    if not waiting:  # this run raises the error of unsuitable data or settings
        run("fedavg", **settings, dataset=dataset)
        raise UsageError("No method fits these answers; answer fewer questions with yes.")
    folds = [
        get_or_register_dataset_name(hold_out_fifth_as_test_samples(dataset, seed))
        for seed in range(seed_count)
    ]
    try:
        candidate_runs = rehearse_waiting_candidates(waiting, folds, time_limit_seconds, settings)
    finally:
        for fold in folds:  # so that no menu shows them
            remove_dataset(fold)
    return CandidateRuns(candidate_runs.candidates, skipped + candidate_runs.not_run)


def rehearse_waiting_candidates(
    waiting: Sequence[WaitingCandidate],
    fold_dataset_names: Sequence[str],
    time_limit_seconds: float,
    settings: Mapping[str, Any],
) -> CandidateRuns:
    """Run candidates on the folds of a rehearsal, in the order of their forecast seconds.

    fold_dataset_names: the data set of each seed
    """
    end_time = time.monotonic() + time_limit_seconds
    candidates: list[Candidate] = []
    not_run: list[str] = []
    for forecast, method, options, knobs in sorted(
        waiting, key=lambda candidate: candidate.forecast_seconds
    ):
        name = f"{method} ({options})" if options else method
        if time.monotonic() + forecast > end_time:
            not_run.append(f"{name} (no time left for about {forecast:.0f} s)")
            continue
        try:
            outcomes = [
                run(method, **settings, **knobs, dataset=fold, seed=seed)
                for seed, fold in enumerate(fold_dataset_names)
            ]
        except UsageError:
            not_run.append(f"{name} (cannot run on these data)")
            continue
        all_bytes = fmean(outcome.bytes_up + outcome.bytes_down for outcome in outcomes)
        clients = len(outcomes[0].settings.participating_clients)
        accuracy = {seed: outcome.accuracy for seed, outcome in enumerate(outcomes)}
        seconds = median(outcome.seconds_total for outcome in outcomes)
        candidates.append(Candidate(method, options, accuracy, all_bytes / clients, seconds))
    return CandidateRuns(candidates, not_run)


def list_candidate_names_to_rehearse(dataset: Dataset, answers: Answers) -> list[CandidateName]:
    """List the study's shortlist for these answers and for data of this kind."""
    is_image = dataset.x_train.ndim == 4
    return make_shortlist_with_closed_forms(
        load_stored_federations(), answers, allows_image_options=is_image
    )


def describe_largest_gap_of_answer_to_best(
    answer: Candidate, candidates: Sequence[Candidate]
) -> list[str]:
    """Say how far the answer may be behind the most accurate candidate. No line if it is that one."""
    best = max(candidates, key=lambda candidate: candidate.mean)
    if best.name == answer.name:
        return []
    gap = difference(best.accuracy, answer.accuracy)
    largest_gap = 100 * (gap.mean + gap.half_width)
    return [
        f"  the most accurate on average: {best.name}; {answer.name} may be up to "
        f"{largest_gap:.1f} points behind it"
    ]


def describe_rehearsal_and_its_answer(
    federation: StudiedFederation, answer: Candidate, seed_count: int
) -> list[str]:
    """Describe what was rehearsed, what is level with the best, and the answer."""
    lines = [
        f"Accuracies are of training samples that were held out, a fifth in each of {seed_count} "
        "seeds."
    ]
    lines += describe_frontier_ties_and_answer(federation, Answers())[:-1]
    best = max(federation.candidates, key=lambda candidate: candidate.mean)
    if answer.name == best.name:
        reason = "the most accurate of these, and nothing cheaper is surely within"
    else:
        reason = "the cheapest of what is within"
    lines.append(f"  answer: {answer.name}, {reason} {MOST_POINTS_LOST:g} point of the best")
    return lines + describe_largest_gap_of_answer_to_best(answer, federation.candidates)


def which(
    dataset: str | None = None,
    *,
    answers: Answers | None = None,
    seconds: float = 120,
    seeds: int | None = None,
    all_methods: bool = False,
    **given: Any,
) -> Recommendation:
    """Recommend a method. Without `dataset` by the stored study; else by a rehearsal of the study's
    shortlist for these answers on `dataset`, until `seconds` are spent.

    In a rehearsal each seed holds out a fifth of the training samples, and the accuracy on them
    decides. The test accuracy of the chosen method is measured at the end.

    seeds: of the rehearsal, 3 or more; None for 5, or up to 20 for small data
    all_methods: rehearse all methods that fit the answers, and not the shortlist alone
    given: settings of the runs, such as alpha=0.1
    Raises UsageError if nothing can be run, or nothing within the time.
    """
    if dataset is None:
        if given:
            raise UsageError(
                f"{next(iter(given))} is a setting of runs, but without a data set "
                'nothing is run; name one, such as fl.which("digits").'
            )
        return Recommendation(
            describe_stored_study(answers), load_stored_federations(), answers or Answers()
        )
    answers = answers or Answers()
    if not seconds > 0:
        raise UsageError(f"seconds is {seconds}; give more than 0, such as 120.")
    if seeds is not None and seeds < 3:  # with two, the band is so wide that everything is level
        raise UsageError(f"seeds is {seeds}; a band that says anything needs 3 or more, such as 5.")
    data = load(dataset)
    if seeds is None:
        seeds = choose_seed_count_of_rehearsal(len(data.y_train))
    given = {"device": "cpu", **given}
    names = None if all_methods else list_candidate_names_to_rehearse(data, answers)
    candidates, not_run = rehearse_candidates(data, answers, seconds, seeds, given, names)
    if not candidates:
        raise UsageError(
            f"Nothing can be judged here within {seconds:g} seconds "
            f"({', '.join(not_run[:3])}, ...); give more --seconds."
        )
    answer = choose_cheapest_candidate_near_best(candidates)
    federation = StudiedFederation(format_dataset_name(dataset), dataset, candidates, answer.name)
    lines = describe_rehearsal_and_its_answer(federation, answer, seeds)
    knobs = {
        variant.name: variant.knobs
        for variant in list_variants_of_method_to_rehearse(answer.method)
    }
    test_accuracies = [
        run(answer.method, **given, **knobs[answer.options], dataset=dataset, seed=seed).accuracy
        for seed in range(seeds)
    ]
    lines.append(f"  on the test samples: {100 * fmean(test_accuracies):.1f} %")
    if not_run:
        lines.append(f"  not run: {', '.join(not_run)}")
    return Recommendation("\n".join(lines), [federation])
