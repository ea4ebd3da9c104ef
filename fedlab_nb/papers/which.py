"""Which method should one use? The frontier of accuracy against bytes on stored federations, a rule
drawn from it, how wrong that rule is on data that it has not seen, and the same on a person's data.

    fedlab-nb which                       the stored federations, the rule and its regret
    fedlab-nb which mine.csv?label=ill    the same on one's own data, within a stated time
    fl.which(), fl.which("mine.csv?label=ill")     the same in a notebook, with the picture

A candidate is a method with its options. On one federation the answer is the cheapest candidate
that is within the noise of the most accurate one (paired differences over seeds, Student's t).
"""

from __future__ import annotations

import html
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from ..declared import parse_toml
from ..errors import UsageError, choose
from ..methods import METHODS
from ..plots import Picture, Series, png
from ..plots.frontier import BAND_SEEDS, Frontier, draw_frontiers
from ..plots.identity import shorten_title
from ..plots.vector import draw_svg
from ..plots.words import describe_seeds, join_words, name_dataset, plural
from ..studies import run, stored_results
from ..studies.cost import estimate_cost
from ..studies.statistics import band, difference
from ..studies.stored_rows import FOLDER, Row, read_stored_rows
from ..studies.text_tables import data_size

DECLARATION = Path(__file__).parent / "declared" / "which.toml"
REFERENCES = ("local", "centralized")

IMAGES_ALONE = ("(lite0)", "(conv)")  # options that a table or a text cannot have

# Federations of the study whose clients are given by the data: data set, name; number of clients.
NATURAL = {
    "fonts": ("glyphs:16g", "a font a client"),
    "watch": ("watch", "ten people"),
    "mails": ("mails", "six mailing lists"),
}
CLIENTS = {"fonts": 10, "watch": 10, "mails": 6}

# What is tried on a person's own data, besides every method at its defaults.
VARIANTS: Mapping[str, Sequence[str]] = {
    "afl": ("pixels", "relu", "conv", "lite0"),
    "gauss": ("pixels", "lite0"),
}


@dataclass(frozen=True)
class Answers:
    """What a person has and needs; None: the question was not answered.

    public: the server has unlabelled samples of the same kind
    once: a client can send one message only
    unlike: the clients have networks of different architectures
    forget: a client may later ask to be forgotten
    """

    public: bool | None = None
    once: bool | None = None
    unlike: bool | None = None
    forget: bool | None = None

    def is_allowed(self, method: str) -> bool:
        """Whether a method is still possible."""
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

    accuracy: by seed, 0-1;   bytes_each: up and down, of one client
    seconds: of one run, nan where it was not recorded
    other: by seed, on images that nothing is judged by
    """

    method: str
    options: str
    accuracy: Mapping[int, float]
    bytes_each: float
    seconds: float = math.nan
    other: Mapping[int, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.method} ({self.options})" if self.options else self.method

    @property
    def title(self) -> str:
        """What pictures call it."""
        title = shorten_title(METHODS[self.method].info.title)
        return f"{title} ({self.options})" if self.options else title

    @property
    def mean(self) -> float:
        return fmean(self.accuracy.values())


@dataclass(frozen=True)
class Federation:
    """What was run on one federation; `data` is shared by federations of one data set."""

    name: str
    data: str
    candidates: Sequence[Candidate]


class RuleChoice(NamedTuple):
    """What a rule chooses: a candidate's name, and its regret (mean accuracy below the best, 0-1)."""

    name: str
    regret: float


class FederationKey(NamedTuple):
    """A federation by its data set and its setting, such as "α = 0.1"."""

    data: str
    setting: str


class Case(NamedTuple):
    """A case that the page has a sentence for: its name, and the answers that it means."""

    name: str
    answers: Answers


class Variant(NamedTuple):
    """Options of a method: their name in a candidate ("": none), and the knobs that they set."""

    name: str
    knobs: dict[str, Any]


class CandidateRuns(NamedTuple):
    """Candidates that ran, and a text for each that did not, with the reason."""

    candidates: list[Candidate]
    not_run: list[str]


# ----------------------------------------------------------------------- frontier, ties and regret
def find_frontier(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Find who is not beaten, the cheapest first: nobody is as accurate (mean) for as few bytes and
    better in one of the two."""
    frontier: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.bytes_each, -c.mean)):
        if not frontier or candidate.mean > frontier[-1].mean:
            frontier.append(candidate)
    return frontier


def find_ties(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The most accurate candidate and all within the noise of it, the cheapest first, of equally
    cheap ones the most accurate. With a single common seed nobody can tell, so only equal accuracies are ties."""
    if not candidates:
        return []
    best = max(candidates, key=lambda c: c.mean)
    ties = []
    for candidate in candidates:
        gap = difference(best.accuracy, candidate.accuracy)
        if candidate is best or gap.mean == 0 or gap.verdict == "within the noise":
            ties.append(candidate)
    return sorted(ties, key=lambda c: (c.bytes_each, -c.mean))


def compute_regret(candidate: str, federation: Federation, answers: Answers) -> float | None:
    """How far a candidate's mean lies below the best one allowed, 0-1; None if it did not run."""
    allowed = [c for c in federation.candidates if answers.is_allowed(c.method)]
    own = [c for c in allowed if c.name == candidate]
    if not own:
        return None
    return max(c.mean for c in allowed) - own[0].mean


def choose_by_rule(
    federations: Sequence[Federation], answers: Answers, among: Sequence[str] | None = None
) -> RuleChoice | None:
    """Choose the candidate with the least mean regret: over data sets, each with the mean of its
    federations. It has to have run on two data sets at least (one, if there is only one).

    among: names that come into question; None: all
    """
    by_data: dict[str, dict[str, list[float]]] = {}
    for federation in federations:
        for candidate in federation.candidates:
            regret = compute_regret(candidate.name, federation, answers)
            if regret is not None and (among is None or candidate.name in among):
                of_data = by_data.setdefault(candidate.name, {})
                of_data.setdefault(federation.data, []).append(regret)
    needed = min(2, len({federation.data for federation in federations}))
    means = {}
    for name, regrets in by_data.items():
        if len(regrets) >= needed:
            means[name] = fmean(fmean(values) for values in regrets.values())
    if not means:
        return None
    name = min(means, key=lambda candidate: (means[candidate], candidate))
    return RuleChoice(name, means[name])


def leave_one_out(federations: Sequence[Federation], answers: Answers) -> dict[str, RuleChoice]:
    """{federation: what the rule of the other data sets chooses, with its regret there}. All
    federations of the same data set are left out together: another alpha of the same images is no
    new data."""
    choices = {}
    for federation in federations:
        others = [other for other in federations if other.data != federation.data]
        there = [c.name for c in federation.candidates]
        choice = choose_by_rule(others, answers, there)
        if choice is not None:
            regret = compute_regret(choice.name, federation, answers)
            assert regret is not None  # it is one of those that ran there
            choices[federation.name] = RuleChoice(choice.name, regret)
    return choices


# ----------------------------------------------------------------------------- stored federations
def make_candidate(row: Row, clients: int) -> Candidate | None:
    """Make the candidate of a stored row; None where a run failed."""
    if "failed" in row or row["method"] in REFERENCES:
        return None
    made = row["made"]
    options = str(made.get(f"{row['method']}.features", ""))
    if options == "pixels":
        options = ""
    sent = fmean(row["bytes_up"]) + fmean(row["bytes_down"])
    seconds = math.nan
    # The features of lite0 were remembered from an earlier run, so its seconds would mislead.
    if "seconds_method" in row and options != "lite0":
        seconds = fmean(row["seconds_local"]) + fmean(row["seconds_method"])
    accuracy = dict(zip(row["seeds"], row["accuracy"], strict=True))
    return Candidate(row["method"], options, accuracy, sent / clients, seconds)


def find_row_federation(row: Row) -> tuple[FederationKey, int]:
    """Find the federation of a row of `which.json`, and its number of clients."""
    runs = row["runs"].partition("_")[0]  # mails_rest is on the federation of mails
    if runs in NATURAL:
        return FederationKey(*NATURAL[runs]), CLIENTS[runs]
    data = {"digits": "digits", "glyphs": "glyphs:16g", "mnist": "mnist:5k"}[runs]
    alpha = float(row["at"].get("alpha", 0.1))
    return FederationKey(data, f"α = {alpha:g}"), 10


def load_stored_federations() -> list[Federation]:
    """Load the federations of which results came with the package."""
    found: dict[FederationKey, dict[str, Candidate]] = {}

    def add_row(key: FederationKey, row: Row, clients: int) -> None:
        candidate = make_candidate(row, clients)
        if candidate is not None:
            found.setdefault(key, {})[candidate.name] = candidate

    alphas_of = {"digits": (0.05, 0.1, 0.3, 10.0), "glyphs:16g": (0.1, 1.0, 100.0)}
    for dataset, alphas in alphas_of.items():
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
        key, clients = find_row_federation(row)
        add_row(key, row, clients)
    return sort_federations(found)


def sort_federations(
    found: Mapping[FederationKey, Mapping[str, Candidate]],
) -> list[Federation]:
    """Sort the federations: those of a data set together, the most skewed first."""
    data_sets = list(dict.fromkeys(key.data for key in found))
    keys = sorted(found, key=lambda key: (data_sets.index(key.data), parse_alpha(key.setting)))
    federations = []
    for key in keys:
        candidates = list(found[key].values())
        federations.append(Federation(f"{key.data}, {key.setting}", key.data, candidates))
    return federations


def parse_alpha(setting: str) -> float:
    """Read the α of a setting such as "α = 0.1"; infinity for another setting, so that clients that
    the data name come last in a list."""
    if not setting.startswith("α = "):
        return math.inf
    return float(setting.removeprefix("α = "))


# ---------------------------------------------------------------------------------- in sentences
def describe_candidate(candidate: Candidate) -> str:
    """`afl (conv): 94.2 ± 0.1 %, 12.0 kB a client`."""
    accuracy = band(candidate.accuracy)
    text = f"{candidate.name}: {100 * accuracy.mean:.1f}"
    if not math.isnan(accuracy.half_width):
        text += f" ± {100 * accuracy.half_width:.1f}"
    text += f" %, {data_size(candidate.bytes_each)} a client"
    if not math.isnan(candidate.seconds):
        text += f", {candidate.seconds:.1f} s"
    return text


def describe_federation(federation: Federation, answers: Answers) -> list[str]:
    """Frontier, ties and answer of one federation, a line each."""
    allowed = [c for c in federation.candidates if answers.is_allowed(c.method)]
    if not allowed:
        return [f"{federation.name}: nothing that was run here fits these answers."]
    ties = find_ties(allowed)
    lines = [f"{federation.name} ({len(allowed)} candidates)", "  not beaten:"]
    lines += [f"    {describe_candidate(candidate)}" for candidate in find_frontier(allowed)]
    lines.append(f"  level with the best: {', '.join(c.name for c in ties)}")
    lines.append(f"  answer: {ties[0].name}, the cheapest of these")
    return lines


def select_without_images(federations: Sequence[Federation]) -> list[Federation]:
    """Select the federations on which no option ran that works on images alone."""
    selected = []
    for federation in federations:
        if not any(c.name.endswith(IMAGES_ALONE) for c in federation.candidates):
            selected.append(federation)
    return selected


def describe_rule(federations: Sequence[Federation], answers: Answers) -> str:
    """What to use for these answers, and how wrong that is on data that the rule has not seen."""
    choice = choose_by_rule(federations, answers)
    if choice is None:
        return "No method of the study fits these answers."
    name, regret = choice
    wanted = f"for images use {name}" if name.endswith(IMAGES_ALONE) else f"use {name}"
    text = f"{wanted}, {100 * regret:.1f} points below the best on average"
    return f"{text}{describe_regret(federations, answers)}."


def describe_rest(federations: Sequence[Federation], answers: Answers) -> str:
    """Why there is no rule for tables and recordings: how far off one was on what it had not seen."""
    regrets = [choice.regret for choice in leave_one_out(federations, answers).values()]
    if not regrets:
        return ""
    return (
        f"tables and recordings: no rule. What is best on two of the {len(federations)} federations "
        f"here is {100 * fmean(regrets):.1f} points below the best on the third (at most "
        f"{100 * max(regrets):.1f}). Run fedlab-nb which on your own data."
    )


def describe_regret(federations: Sequence[Federation], answers: Answers) -> str:
    """How wrong the rule is on a data set that it has not seen; "" where no other one is there."""
    regrets = [choice.regret for choice in leave_one_out(federations, answers).values()]
    if not regrets:
        return ""
    return (
        f"; with each data set left out in turn, the rule is {100 * fmean(regrets):.1f} points "
        f"below the best (at most {100 * max(regrets):.1f})"
    )


def describe_left_out(federations: Sequence[Federation], answers: Answers) -> list[str]:
    """For each federation what the rule of the other data sets says, and its regret there."""
    lines = ["each data set left out in turn, what the rule of the others says there:"]
    for name, (choice, regret) in leave_one_out(federations, answers).items():
        lines.append(f"  {name}: {choice}, {100 * regret:.1f} points below the best")
    return lines


def list_cases() -> list[Case]:
    """List the cases for which the page has a sentence."""
    return [
        Case("anything goes", Answers()),
        Case("no public data", Answers(public=False)),
        Case("one message a client", Answers(once=True)),
        Case("clients with different networks", Answers(unlike=True)),
        Case("clients may ask to be forgotten", Answers(forget=True)),
        Case("all four restrictions at once", Answers(False, True, True, True)),
    ]


def describe_study(answers: Answers | None = None) -> str:
    """The stored study in words: the rule, for all cases without answers; then each federation."""
    federations = load_stored_federations()
    lines: list[str] = []
    cases = list_cases() if answers is None else [Case("these answers", answers)]
    for case in cases:
        lines.append(f"{case.name}: {describe_rule(federations, case.answers)}")
    lines += [describe_rest(select_without_images(federations), answers or Answers()), ""]
    for federation in federations:
        lines += describe_federation(federation, answers or Answers())
    lines += ["", *describe_left_out(federations, answers or Answers())]
    if answers is None:
        lines += ["", *describe_missing()]
    return "\n".join(lines)


def describe_missing() -> list[str]:
    """What the study declares and has not run, with what it takes, a line each; then the command."""
    declaration = parse_toml(DECLARATION.read_text(encoding="utf-8"))
    stored = {row["runs"] for row in read_stored_rows(FOLDER / "which.json")[1]}
    lines = []
    for name, runs in declaration["later"].items():
        if name in stored:
            continue
        setting = runs.get("partition", "natural clients")
        alphas = runs.get("alpha", [])
        if alphas:
            values = alphas if isinstance(alphas, list) else [alphas]
            setting = f"α = {join_words([f'{alpha:g}' for alpha in values])}"
        methods = len(METHODS) if runs["methods"] == ["all"] else len(runs["methods"])
        seeds = len(runs.get("seeds", range(BAND_SEEDS)))
        lines.append(
            f"  {runs['dataset']}, {setting}: {methods} methods, {plural(seeds, 'seed')}, "
            f"about {runs['core_minutes']} minutes on one core"
        )
    if lines:
        command = "python -m fedlab_nb.papers.declared which --later"
        lines = ["not run yet:", *lines, f"  {command} runs them, and goes on where it was stopped"]
    return lines


# ------------------------------------------------------------------------------------ the picture
def make_frontier(federation: Federation, answers: Answers) -> Frontier | None:
    """Make what the picture shows of a federation; None where nothing that ran there fits the
    answers."""
    allowed = [c for c in federation.candidates if answers.is_allowed(c.method)]
    if not allowed:
        return None
    rows = []
    for candidate in allowed:
        rows.append(
            Series(
                candidate.title,
                accuracies=candidate.accuracy,
                up=candidate.bytes_each,
                method=candidate.method,
            )
        )
    unbeaten = [candidate.title for candidate in find_frontier(allowed)]
    ties = [candidate.title for candidate in find_ties(allowed)]
    return Frontier(federation.name, rows, unbeaten, ties)


def plot_federations(
    federations: Sequence[Federation], answers: Answers, columns: int = 2
) -> Picture:
    """Accuracy against bytes, a federation each, of what fits the answers. UsageError where nothing
    does."""
    frontiers = []
    for federation in federations:
        frontier = make_frontier(federation, answers)
        if frontier is not None:
            frontiers.append(frontier)
    if not frontiers:
        raise UsageError("Nothing that was run fits these answers; answer fewer questions.")
    seeds = sorted({describe_seeds(row.accuracies) for each in frontiers for row in each.rows})
    return draw_frontiers(frontiers, setting=" or ".join(seeds), columns=columns)


@dataclass(frozen=True, eq=False)
class Recommendation:
    """What `which` gives: printed it is the text; a notebook shows the picture above it.

    federations: what was run, one `Federation` each
    answers: to the four questions; what does not fit them is in neither text nor picture
    """

    text: str
    federations: Sequence[Federation]
    answers: Answers = Answers()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def find(self, federation: str) -> Federation:
        """The federation of that name, such as "digits, α = 0.3"; UsageError for another name."""
        names = {each.name: each for each in self.federations}
        return names[choose("federation", federation, names)]

    def list_unbeaten(self, federation: str) -> list[str]:
        """What the picture calls those that nobody beats in both accuracy and bytes, the cheapest
        first."""
        shown = make_frontier(self.find(federation), self.answers)
        return [] if shown is None else list(shown.unbeaten)

    def plot(self, *federations: str, columns: int = 2) -> Picture:
        """The picture: accuracy against the bytes of one client, with what is not beaten and what is
        level with the best.

        federations: names, such as "digits, α = 0.3"; without any all are drawn, in so many columns
        """
        shown = [self.find(name) for name in federations] or list(self.federations)
        return plot_federations(shown, self.answers, columns)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The picture in the colours of the page, and the text; a PNG where no HTML is shown."""
        try:
            picture = self.plot()
        except UsageError:  # the text says that nothing fits
            return {"text/plain": self.text}, {}
        data = {
            "text/html": picture_html(picture, self.text),
            "image/png": png(picture),
            "text/plain": self.text,
        }
        return data, {"image/png": {"alt": picture.alt}}


def picture_html(picture: Picture, text: str) -> str:
    """A picture that is light or dark as the notebook is, with its text below."""
    assert picture.figure is not None
    return (
        "<style>.fl-which{color-scheme:light}"
        '[data-jp-theme-light="false"] .fl-which,.vscode-dark .fl-which{color-scheme:dark}'
        ".fl-which svg{max-width:900px;width:100%;height:auto}"
        ".fl-which pre{white-space:pre-wrap}</style>"
        f'<div class="fl-which"><div role="img" aria-label="{html.escape(picture.alt)}">'
        f"{draw_svg(picture.figure)}</div><pre>{html.escape(text)}</pre></div>"
    )


# ------------------------------------------------------------------------------ a person's own data
def list_variants(method: str) -> list[Variant]:
    """List the options of a method that are tried on a person's own data."""
    variants = []
    for value in VARIANTS.get(method, ("",)):
        name = "" if value == "pixels" else value
        knobs = {f"{method}.features": value} if value else {}
        variants.append(Variant(name, knobs))
    return variants


def run_candidates(
    dataset: str, answers: Answers, seconds: float, seeds: int, settings: Mapping[str, Any]
) -> CandidateRuns:
    """Run the methods that fit the answers on a person's own data, the cheapest forecast first. No
    run is begun that is forecast to end after `seconds`. UsageError where nothing fits."""
    waiting: list[tuple[float, str, str, dict[str, Any]]] = []
    left: list[str] = []
    for method in filter(answers.is_allowed, METHODS):
        for options, knobs in list_variants(method):
            cost = estimate_cost(
                (method, {**settings, **knobs, "dataset": dataset, "seeds": seeds})
            )
            if cost is None:
                continue
            if cost.seconds is None:
                left.append(f"{method} (nobody knows how long it takes)")
                continue
            waiting.append((cost.seconds, method, options, knobs))
    if not waiting:  # say what is wrong with the data or the settings
        run("fedavg", **settings, dataset=dataset)
        raise UsageError("No method fits these answers; answer fewer questions with yes.")
    ends = time.monotonic() + seconds
    done: list[Candidate] = []
    for forecast, method, options, knobs in sorted(waiting, key=lambda entry: entry[0]):
        name = f"{method} ({options})" if options else method
        if time.monotonic() + forecast > ends:
            left.append(f"{name} (no time left for about {forecast:.0f} s)")
            continue
        try:
            outcomes = [
                run(method, **settings, **knobs, dataset=dataset, seed=seed)
                for seed in range(seeds)
            ]
        except UsageError:
            left.append(f"{name} (cannot run on these data)")
            continue
        if any(outcome.accuracy_validation is None for outcome in outcomes):
            left.append(f"{name} (no held-out samples to judge it by)")
            continue
        sent = fmean(outcome.bytes_up + outcome.bytes_down for outcome in outcomes)
        clients = len(outcomes[0].settings.members)
        validation = {seed: o.accuracy_validation or 0.0 for seed, o in enumerate(outcomes)}
        test = {seed: o.accuracy for seed, o in enumerate(outcomes)}
        took = fmean(outcome.seconds_total for outcome in outcomes)
        done.append(Candidate(method, options, validation, sent / clients, took, test))
    return CandidateRuns(done, left)


def which(
    dataset: str | None = None,
    *,
    answers: Answers | None = None,
    seconds: float = 120,
    seeds: int = 5,
    **given: Any,
) -> Recommendation:
    """Which method to use. Without `dataset`: the stored study; else what fits the answers is run on
    `dataset`, until `seconds` are spent.

    On one's own data the choice is made on the clients' held-out samples; the test accuracy of what
    is chosen is shown once. given: settings of the runs, such as alpha=0.1. UsageError where nothing
    can be run, or nothing in that time.
    """
    if dataset is None:
        if given:
            raise UsageError(
                f"{next(iter(given))} is a setting of runs, but without a data set nothing is run; "
                'name one, such as fl.which("digits").'
            )
        return Recommendation(
            describe_study(answers), load_stored_federations(), answers or Answers()
        )
    if not seconds > 0:
        raise UsageError(f"seconds is {seconds}; give more than 0, such as 120.")
    if seeds < 3:  # with two, Student's band is so wide that everything is level
        raise UsageError(f"seeds is {seeds}; a band that says anything needs 3 or more, such as 5.")
    given = {"device": "cpu", **given}
    done, left = run_candidates(dataset, answers or Answers(), seconds, seeds, given)
    if not done:
        raise UsageError(
            f"Nothing can be judged here within {seconds:g} seconds ({', '.join(left[:3])}, ...); "
            "give more --seconds."
        )
    federation = Federation(name_dataset(dataset), dataset, done)
    lines = ["Accuracies are of the clients' held-out samples, with bands over seeds."]
    lines += describe_federation(federation, Answers())
    answer = find_ties(done)[0]
    lines.append(f"  on the test samples: {100 * fmean(answer.other.values()):.1f} %")
    if left:
        lines.append(f"  not run: {', '.join(left)}")
    return Recommendation("\n".join(lines), [federation])
