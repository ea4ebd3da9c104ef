"""Lesson 09, your own data, network and method: worked numbers, exact tests for a method, and its exercises."""

import csv
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...data import load
from ...errors import UsageError
from ...methods import METHODS
from ...models import build_specified, parameter_count
from ...plots.words import listed, significance
from ...plots.words import points as in_points
from ...studies import Outcome, compare, run, statistics
from ...studies.lesson_runs import ALPHA, LOGITS, MANY, accuracies, alike, percents, runs, title
from ..kit import CLEAR, ENOUGH, Build, Card, Gap, Verdict, exercises, worked


def scratch(name: str) -> str:
    """A path for a file of that name in a folder of its own, which the system may clean up."""
    return str(Path(tempfile.mkdtemp(prefix="fedlab_nb-")) / name)


# ---------------------------------------------------------------------------------- worked numbers
def what_is_missing(path: str, methods: Sequence[str] = ("feddf", "fusefl")) -> Card:
    """What methods say of a data set that lacks what they need."""
    lines = []
    for method in methods:
        try:
            accuracy = run(method, dataset=path, clients=5, alpha=0.3).accuracy
            lines.append(f"{title(method)} runs on it: {100 * accuracy:.0f} %.")
        except UsageError as error:
            lines.append(str(error))
    return worked(*lines)


def own_clients(data: Mapping[str, Any], seeds: int = 3) -> Card:
    """What each client of data that name their clients holds, and what one of them and all together reach."""
    names = {"local": "one client alone", "fedavg": "FedAvg", "ensemble": "ensemble", "fens": "FENS"}
    outcomes = compare(list(names), dataset=data, seeds=seeds)
    federation = outcomes[0].federation()
    lines = [
        f"{name}: {sum(counts)} samples, {100 * counts[0] / sum(counts):.0f} % of them of class 0"
        for name, counts in zip(federation.dataset.client_names, federation.label_counts.tolist(), strict=True)
    ]
    return worked(*lines, percents(outcomes, names), f"Test accuracy, {seeds} seeds: they change the training alone.")


def ward_table(path: str, rows: int = 240) -> str:
    """Write a table of invented patients to `path`, and return it: three hospitals, two numbers with gaps, a text of
    few values, a free text, a column that never changes, and a diagnosis in words."""
    draw, places = np.random.default_rng(0), ("North", "South", "University")
    lines = [("age", "pressure", "smoker", "note", "country", "hospital", "diagnosis")]
    for i in range(rows):
        place = int(draw.integers(3))
        ill = bool(draw.random() < (0.25, 0.5, 0.8)[place])
        age, pressure = draw.normal(58 if ill else 46, 13), draw.normal(146 if ill else 124, 16)
        text = draw.choice(["short of breath", "pain in the chest", "tired"] if ill else ["tired", "a check", "a cold"])
        lines.append((
            "" if draw.random() < 0.1 else f"{age:.0f}", "" if draw.random() < 0.1 else f"{pressure:.0f}",
            str(draw.choice(["yes", "no"])), f"{text}, visit {i}", "Norway", places[place], "heart" if ill else "other",
        ))  # fmt: skip
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(lines)
    return path


def as_a_data_set(path: str) -> Card:
    """What a table becomes."""
    data = load(path)
    shares = [f"{name}: {int((data.client_train == k).sum())} rows" for k, name in enumerate(data.client_names)]
    size = f"{len(data.x_train)} training rows, {len(data.x_test)} test rows, {data.input_shape[0]} numbers each"
    return worked(size, f"Classes: {', '.join(data.class_names)}. Clients: {', '.join(shares)}.", data.note)


def on_a_table(path: str, seeds: int = 3) -> Card:
    """What one hospital and all of them together reach on a table."""
    names = {"local": "one hospital alone", "fedavg": "FedAvg", "ensemble": "ensemble", "fens": "FENS"}
    return worked(percents(compare(list(names), dataset=path, seeds=seeds), names), f"Test accuracy, {seeds} seeds.")


def models(names: Sequence[str], dataset: str = "digits", alpha: float = 0.3) -> Card:
    """Parameters of networks, and what one of them and an ensemble of ten reach."""
    shape, lines = load(dataset).input_shape, []
    for name in names:
        size = parameter_count(build_specified(name, shape, 10))
        outcomes = runs(["local", "ensemble"], alpha, dataset=dataset, model=name, seeds=1)
        reached = percents(outcomes, {"local": "one client alone", "ensemble": "ensemble"})
        lines.append(f"{name}: {size:,} parameters; ".replace(",", " ") + reached)
    return worked(*lines, f"{dataset}, α = {alpha:g}, ten clients, one seed.")


def bytes_told(outcomes: Sequence[Outcome], method: str) -> Card:
    """What the ledger says of a method, by phase."""
    outcome = next(o for o in outcomes if o.method == method)
    clients = outcome.settings.clients
    parts = [
        f"{phase}: {up // clients:,} up, {down // clients:,} down".replace(",", " ")
        for phase, (up, down) in outcome.ledger.by_phase().items()
    ]
    return worked("Bytes of one client.", *parts)


def same_answers(one: Outcome, other: Outcome) -> Card:
    """Whether two outcomes answer the same test points alike."""
    same = int((one.test_predictions == other.test_predictions).sum())
    count = len(one.test_predictions)
    return worked(f"{one.method} and {other.method} give the same answer to {same} of {count} test images.")


def difference(method: str, other: str, alpha: float) -> Card:
    """Mean gap over seeds with its band; the ensemble is the mean of logits, of which `counted` is a weighted form."""
    outcomes = runs([method, other], alpha, seeds=MANY, **(LOGITS if other == "ensemble" else {}))
    of = statistics.difference(accuracies(outcomes, method), accuracies(outcomes, other))
    word = significance(of, clear="clear" if of.mean > 0 else "clearly worse")
    return worked(f"α = {alpha:g}: {method} − {other} = {in_points(of)} ({MANY} seeds): {word}.")


def wins(method: str, other: str, alpha: float = ALPHA, seeds: int = MANY) -> int:
    """In how many federations, of that many seeds, `method` is more accurate; the ensemble is the mean of logits."""
    outcomes = runs([method, other], alpha, seeds=seeds, **(LOGITS if other == "ensemble" else {}))
    own, others = accuracies(outcomes, method), accuracies(outcomes, other)
    return sum(own[seed] > others[seed] for seed in own)


# ---------------------------------------------------------------------------------- exercises
GIVEN = "counted"  # the lesson's own example, which is no answer


def beats_the_ensemble(outcomes: Sequence[Outcome]) -> Verdict:
    """The claim of exercise 3: a method that the learner wrote is clearly better than the ensemble somewhere."""
    own = sorted({o.method for o in outcomes if is_own(o.method)})
    if not own:
        wanted = f"register one under a new name ({GIVEN!r} is the lesson's), make the panel again, tick it, press Run"
        return Verdict("wrong", f"No run of a method of your own is in the record: {wanted}.")
    seen = []
    for (settings, _), methods in sorted(alike(outcomes).items(), key=lambda group: group[0][0].alpha):
        for method in own:
            ahead = Gap("", methods[method], methods["ensemble"])
            if len(ahead.points) < ENOUGH:
                continue
            text = f"{method} at α = {settings.alpha:g}: {in_points(statistics.difference(ahead.a, ahead.b))}"
            if ahead.kind == CLEAR:
                return Verdict("right", f"Supported by your runs: {text}.")
            seen.append(text)
    record = listed(seen) or "no setting has 3 seeds of both"
    advice = "Run the ensemble beside it, 3 seeds or more, where it should help."
    return Verdict("wrong", f"Not clear yet: {record}. {advice}")


def is_own(method: str) -> bool:
    """Whether a method was written by the learner: it is neither the package's nor the lesson's."""
    package = method in METHODS and METHODS[method].__module__.startswith("fedlab_nb.")
    return method != GIVEN and not package


def example_runs() -> list[Any]:
    """Runs of the solution, `counted` with ζ = 0.5 under a new name; without it, of the ensemble alone."""
    methods = ["ensemble", *filter(METHODS.__contains__, [GIVEN])]
    outcomes = runs(methods, 1, seeds=MANY, **LOGITS, **{f"{method}.power": 0.5 for method in methods[1:]})
    return [
        SimpleNamespace(
            method="rooted" if o.method == GIVEN else o.method,
            **{name: getattr(o, name) for name in ("accuracy", "settings", "conditions", "options")},
        )
        for o in outcomes
    ]


# ---------------------------------------------------------------------------------- the function to build


def mean_and_spread(counts, sums, squares):
    """Mean [D] and standard deviation [D] of all rows, from what M hospitals send: counts [M], sums and sums of squares
    [M, D]."""
    rows = counts.sum()
    mean = sums.sum(0) / rows
    return mean, np.sqrt(squares.sum(0) / rows - mean**2)


def mean_of_means(counts, sums, squares):
    means = sums / counts[:, None]
    mean = means.mean(0)
    return mean, np.sqrt((squares / counts[:, None]).mean(0) - mean**2)


def one_row_less(counts, sums, squares):
    mean, spread = mean_and_spread(counts, sums, squares)
    return mean, spread * np.sqrt(counts.sum() / (counts.sum() - 1))


def variance(counts, sums, squares):
    mean, spread = mean_and_spread(counts, sums, squares)
    return mean, spread**2


def mean_not_taken_off(counts, sums, squares):
    rows = counts.sum()
    return sums.sum(0) / rows, np.sqrt(squares.sum(0) / rows)


def hidden_inputs() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Sums of one, two and five hospitals of different sizes and patients: no value is exactly constant."""
    stream, made = np.random.default_rng(9), []
    for hospitals, columns in ((1, 2), (2, 3), (5, 4), (3, 1)):
        groups = [stream.normal(3 + k, 1 + k, size=(int(stream.integers(3, 30)), columns)) for k in range(hospitals)]
        counts = np.array([len(x) for x in groups])
        made.append((counts, np.array([x.sum(0) for x in groups]), np.array([(x**2).sum(0) for x in groups])))
    return made


SUMS = Build(mean_and_spread, hidden_inputs, (mean_of_means, one_row_less, variance, mean_not_taken_off))


q1, q2, q3, q4 = exercises(__name__, q3=(beats_the_ensemble, example_runs), q4=SUMS)
