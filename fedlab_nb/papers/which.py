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
from typing import Any

from ..declared import parse_toml
from ..errors import UsageError, choose
from ..methods import METHODS
from ..plots import Picture, Series, png
from ..plots.frontier import BAND_SEEDS, Frontier, draw_frontiers
from ..plots.identity import shorten_title
from ..plots.vector import draw_svg
from ..plots.words import dataset_name, describe_seeds, join_words, plural
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

    def allow(self, method: str) -> bool:
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


# ----------------------------------------------------------------------- frontier, ties and regret
def find_frontier(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Who is not beaten, the cheapest first: nobody is as accurate (mean) for as few bytes and
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


def regret_of(name: str, federation: Federation, answers: Answers) -> float | None:
    """How far a candidate's mean lies below the best one allowed, 0-1; None if it did not run."""
    allowed = [c for c in federation.candidates if answers.allow(c.method)]
    own = [c for c in allowed if c.name == name]
    if not own:
        return None
    return max(c.mean for c in allowed) - own[0].mean


def choose_by_rule(
    federations: Sequence[Federation], answers: Answers, among: Sequence[str] | None = None
) -> tuple[str, float] | None:
    """The candidate with the least mean regret, and that regret: over data sets, each with the mean
    of its federations. It has to have run on two data sets at least (one, if there is only one).

    among: names that come into question; None: all
    """
    by_data: dict[str, dict[str, list[float]]] = {}
    for federation in federations:
        for candidate in federation.candidates:
            regret = regret_of(candidate.name, federation, answers)
            if regret is not None and (among is None or candidate.name in among):
                of_data = by_data.setdefault(candidate.name, {})
                of_data.setdefault(federation.data, []).append(regret)
    needed = min(2, len({federation.data for federation in federations}))
    means = {
        name: fmean(fmean(values) for values in regrets.values())
        for name, regrets in by_data.items()
        if len(regrets) >= needed
    }
    if not means:
        return None
    name = min(means, key=lambda candidate: (means[candidate], candidate))
    return name, means[name]


def leave_one_out(
    federations: Sequence[Federation], answers: Answers
) -> dict[str, tuple[str, float]]:
    """{federation: (what the rule of the other data sets says, its regret there)}. All federations
    of the same data set are left out together: another alpha of the same images is no new data."""
    found = {}
    for federation in federations:
        others = [other for other in federations if other.data != federation.data]
        there = [c.name for c in federation.candidates]
        choice = choose_by_rule(others, answers, there)
        if choice is not None:
            regret = regret_of(choice[0], federation, answers)
            assert regret is not None  # it is one of those that ran there
            found[federation.name] = (choice[0], regret)
    return found


# ----------------------------------------------------------------------------- stored federations
def candidate_of(row: Row, clients: int) -> Candidate | None:
    """A stored row; None where a run failed."""
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


def place_of(row: Row) -> tuple[tuple[str, str], int]:
    """The federation of a row of `which.json`, and its number of clients."""
    runs = row["runs"].partition("_")[0]  # mails_rest is on the federation of mails
    if runs in NATURAL:
        return NATURAL[runs], CLIENTS[runs]
    data = {"digits": "digits", "glyphs": "glyphs:16g", "mnist": "mnist:5k"}[runs]
    alpha = float(row["at"].get("alpha", 0.1))
    return (data, f"α = {alpha:g}"), 10


def stored_federations() -> list[Federation]:
    """The federations of which results came with the package."""
    found: dict[tuple[str, str], dict[str, Candidate]] = {}

    def add(key: tuple[str, str], row: Row, clients: int) -> None:
        candidate = candidate_of(row, clients)
        if candidate is not None:
            found.setdefault(key, {})[candidate.name] = candidate

    for dataset, alphas in {
        "digits": (0.05, 0.1, 0.3, 10.0),
        "glyphs:16g": (0.1, 1.0, 100.0),
    }.items():
        table = stored_results.load(dataset)
        for (_, alpha, clients), row in table.rows.items():
            if clients == 10 and alpha in alphas:
                add((dataset, f"α = {alpha:g}"), row, clients)
    for row in read_stored_rows(FOLDER / "sets.json")[1]:
        if row["runs"] == "mnist":
            add(("mnist:5k", "α = 0.1"), row, 10)
        if row["runs"] == "heart":
            add(("heart", "four hospitals"), row, 4)
    for row in read_stored_rows(FOLDER / "which.json")[1]:
        key, clients = place_of(row)
        add(key, row, clients)
    return sort_federations(found)


def sort_federations(found: Mapping[tuple[str, str], Mapping[str, Candidate]]) -> list[Federation]:
    """The federations, those of a data set together, the most skewed first."""
    data_sets = list(dict.fromkeys(data for data, _ in found))
    federations = []
    for data, setting in sorted(found, key=lambda key: (data_sets.index(key[0]), skew_of(key[1]))):
        candidates = list(found[data, setting].values())
        federations.append(Federation(f"{data}, {setting}", data, candidates))
    return federations


def skew_of(setting: str) -> float:
    """The α of a setting such as "α = 0.1", for the order of a list; clients that the data name come last."""
    number = setting.removeprefix("α = ")
    return math.inf if number == setting else float(number)


# ---------------------------------------------------------------------------------- in sentences
def describe(candidate: Candidate) -> str:
    """`afl (conv): 94.2 ± 0.1 %, 12.0 kB a client`."""
    own = band(candidate.accuracy)
    width = "" if math.isnan(own.half_width) else f" ± {100 * own.half_width:.1f}"
    text = f"{candidate.name}: {100 * own.mean:.1f}{width} %, "
    text += f"{data_size(candidate.bytes_each)} a client"
    if not math.isnan(candidate.seconds):
        text += f", {candidate.seconds:.1f} s"
    return text


def describe_federation(federation: Federation, answers: Answers) -> list[str]:
    """Frontier, ties and answer of one federation, a line each."""
    allowed = [c for c in federation.candidates if answers.allow(c.method)]
    if not allowed:
        return [f"{federation.name}: nothing that was run here fits these answers."]
    ties = find_ties(allowed)
    lines = [f"{federation.name} ({len(allowed)} candidates)", "  not beaten:"]
    lines += [f"    {describe(candidate)}" for candidate in find_frontier(allowed)]
    lines.append(f"  level with the best: {', '.join(c.name for c in ties)}")
    lines.append(f"  answer: {ties[0].name}, the cheapest of these")
    return lines


def without_images(federations: Sequence[Federation]) -> list[Federation]:
    """Those on which no option ran that works on images alone."""
    found = []
    for federation in federations:
        if not any(c.name.endswith(IMAGES_ALONE) for c in federation.candidates):
            found.append(federation)
    return found


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
    regrets = [regret for _, regret in leave_one_out(federations, answers).values()]
    if not regrets:
        return ""
    return (
        f"tables and recordings: no rule. What is best on two of the {len(federations)} federations "
        f"here is {100 * fmean(regrets):.1f} points below the best on the third (at most "
        f"{100 * max(regrets):.1f}). Run fedlab-nb which on your own data."
    )


def describe_regret(federations: Sequence[Federation], answers: Answers) -> str:
    """How wrong the rule is on a data set that it has not seen; "" where no other one is there."""
    regrets = [regret for _, regret in leave_one_out(federations, answers).values()]
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


def cases() -> list[tuple[str, Answers]]:
    """The cases for which the page has a sentence."""
    return [
        ("anything goes", Answers()),
        ("no public data", Answers(public=False)),
        ("one message a client", Answers(once=True)),
        ("clients with different networks", Answers(unlike=True)),
        ("clients may ask to be forgotten", Answers(forget=True)),
        ("all four restrictions at once", Answers(False, True, True, True)),
    ]


def describe_study(answers: Answers | None = None) -> str:
    """The stored study in words: the rule, for all cases without answers; then each federation."""
    federations = stored_federations()
    lines: list[str] = []
    wanted = cases() if answers is None else [("these answers", answers)]
    for words, case in wanted:
        lines.append(f"{words}: {describe_rule(federations, case)}")
    lines += [describe_rest(without_images(federations), answers or Answers()), ""]
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
def frontier_of(federation: Federation, answers: Answers) -> Frontier | None:
    """What the picture shows of a federation; None where nothing that ran there fits the answers."""
    allowed = [c for c in federation.candidates if answers.allow(c.method)]
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
        frontier = frontier_of(federation, answers)
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
        shown = frontier_of(self.find(federation), self.answers)
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
def variants(method: str) -> list[tuple[str, dict[str, Any]]]:
    """The options of a method that are tried on a person's own data."""
    values = VARIANTS.get(method, ("",))
    return [
        ("" if value == "pixels" else value, {f"{method}.features": value} if value else {})
        for value in values
    ]


def run_candidates(
    dataset: str, answers: Answers, seconds: float, seeds: int, given: Mapping[str, Any]
) -> tuple[list[Candidate], list[str]]:
    """What ran on a person's own data, cheapest forecast first, and what did not, with the reason.
    No run is begun that is forecast to end too late. UsageError where nothing fits the answers."""
    waiting: list[tuple[float, str, str, dict[str, Any]]] = []
    left: list[str] = []
    for method in filter(answers.allow, METHODS):
        for options, knobs in variants(method):
            cost = estimate_cost((method, {**given, **knobs, "dataset": dataset, "seeds": seeds}))
            if cost is None:
                continue
            if cost.seconds is None:
                left.append(f"{method} (nobody knows how long it takes)")
                continue
            waiting.append((cost.seconds, method, options, knobs))
    if not waiting:  # say what is wrong with the data or the settings
        run("fedavg", **given, dataset=dataset)
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
                run(method, **given, **knobs, dataset=dataset, seed=seed) for seed in range(seeds)
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
    return done, left


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
        return Recommendation(describe_study(answers), stored_federations(), answers or Answers())
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
    federation = Federation(dataset_name(dataset), dataset, done)
    lines = ["Accuracies are of the clients' held-out samples, with bands over seeds."]
    lines += describe_federation(federation, Answers())
    answer = find_ties(done)[0]
    lines.append(f"  on the test samples: {100 * fmean(answer.other.values()):.1f} %")
    if left:
        lines.append(f"  not run: {', '.join(left)}")
    return Recommendation("\n".join(lines), [federation])
