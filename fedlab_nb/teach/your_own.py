"""Lesson 09, your own data, network and method: worked numbers, exact tests for a method, and its exercises."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from fedlab_nb.data import load
from fedlab_nb.draw.words import gap, is_noise, listed
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.models import build, parameter_count
from fedlab_nb.study import Outcomes, compare, run

from .problem import NumberProblem, RecordProblem, Verdict
from .view import Card, ProblemView

SEEDS = 3


def scratch(name: str) -> str:
    """A path for a file of that name in a folder of its own, which the system may clean up."""
    return str(Path(tempfile.mkdtemp(prefix="fedlab_nb-")) / name)


def percent(outcomes: Sequence[Any], method: str) -> float:
    """Mean test accuracy of `method` in percent, over the seeds in `outcomes`."""
    return 100 * mean(o.accuracy for o in outcomes if o.method == method)


# ------------------------------------------------------------------------------------------------------ worked numbers
def what_is_missing(path: str, methods: Sequence[str] = ("feddf", "fusefl")) -> Card:
    """What methods say of a data set that lacks what they need."""
    lines = []
    for method in methods:
        try:
            outcome = run(method, dataset=path, clients=5, alpha=0.3)
        except UsageError as error:
            lines.append(str(error))
        else:
            lines.append(f"{METHODS[method].info.title} runs on it: {100 * outcome.accuracy:.0f} %.")
    return Card("worked", "\n".join(lines))


def models(names: Sequence[str], dataset: str = "digits", alpha: float = 0.3) -> Card:
    """Parameters of networks, and what one of them and an ensemble of ten reach."""
    shape, lines = load(dataset).input_shape, []
    for name in names:
        plain, _, width = name.partition(":")
        size = parameter_count(build(plain, shape, 10, width=int(width) if width else None))
        found = compare(["local", "ensemble"], dataset=dataset, alpha=alpha, model=name)
        lines.append(
            f"{name}: {size:,} parameters; one client alone {percent(found, 'local'):.0f} %, "
            f"ensemble {percent(found, 'ensemble'):.0f} %".replace(",", " ", 1)
        )
    return Card("worked", "\n".join([*lines, f"{dataset}, α = {alpha:g}, ten clients, one seed."]))


def bytes_told(outcomes: Sequence[Any], method: str) -> Card:
    """What the ledger says of a method, by phase."""
    outcome = next(o for o in outcomes if o.method == method)
    clients = outcome.setting["clients"]
    parts = [
        f"{phase}: {up // clients:,} up, {down // clients:,} down".replace(",", " ")
        for phase, (up, down) in outcome.ledger.by_phase().items()
    ]
    return Card("worked", "Bytes of one client.\n" + "\n".join(parts))


def same_answers(one: Any, other: Any) -> Card:
    """Whether two outcomes answer the same test points alike."""
    same = int((one.test_predictions == other.test_predictions).sum())
    count = len(one.test_predictions)
    return Card("worked", f"{one.method} and {other.method} give the same answer to {same} of {count} test images.")


def difference(method: str, other: str, alpha: float) -> Card:
    """Mean gap over seeds with its band."""
    found = compare([method, other], alpha=alpha, seeds=SEEDS)
    return Card("worked", _gap_words(found, method, other, alpha))


def _gap_words(outcomes: Sequence[Any], method: str, other: str, alpha: float) -> str:
    by = {m: {o.setting["seed"]: o.accuracy for o in outcomes if o.method == m} for m in (method, other)}
    points, band = gap(by[method], by[other])
    word = "within the noise" if is_noise(points, band) else "clear" if points > 0 else "clearly worse"
    return f"α = {alpha:g}: {method} − {other} = {100 * points:+.0f} ± {100 * band:.0f} points ({SEEDS} seeds): {word}."


def reality(method: str = "counted") -> Card:
    """Where the gain of lesson 09's method is, and where it isn't."""
    lines = []
    for alpha in (0.05, 0.1, 1, 10):
        lines.append(_gap_words(compare([method, "ensemble"], alpha=alpha, seeds=SEEDS), method, "ensemble", alpha))
    found = compare([method, "fens"], alpha=0.1, seeds=SEEDS)
    lines.append(_gap_words(found, method, "fens", 0.1))
    return Card("worked", "\n".join(lines))


# ------------------------------------------------------------------------------------------------------ exercises
q1 = ProblemView(
    NumberProblem(
        title="Exercise 1",
        question=(
            "Ten clients, ten classes. How many bytes do all label counts together add to the upload, if each count is "
            "a 32-bit whole number?"
        ),
        right_answer=400,
        tolerance=0.5,
        hints=("One client sends one number for each class.", "32 bits are 4 bytes: 10 clients · 10 classes · 4."),
        explanation="10 · 10 · 4 = {answer} bytes, beside 263 kB of networks: the phase “label counts” in the ledger.",
        slips=((40, "that is one client's part."), (100, "these are numbers, not bytes."), (3200, "that is in bits.")),
    )
)

COUNTS = ((30, 0), (10, 20))

q2 = ProblemView(
    NumberProblem(
        title="Exercise 2",
        question=(
            "Two clients, two classes. Client A has 30 images of class 0 and none of class 1; client B has 10 and 20. "
            "With p = 2, how much does A count for class 0?"
        ),
        right_answer=0.9,
        tolerance=0.005,
        hints=("Only the column of class 0 matters: 30 and 10.", "30² / (30² + 10²)."),
        explanation="900 / (900 + 100) = {answer}. With p = 1 it would be 0.75, with p = 0 a half.",
        slips=((0.75, "that is with p = 1."), (0.5, "that is with p = 0."), (0.1, "that is client B.")),
    )
)


def beats_the_ensemble(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 3: a method that is not the package's own is clearly better than the ensemble somewhere."""
    by: dict[float, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for o in outcomes:
        by[o.setting["alpha"]][o.method][o.setting["seed"]] = o.accuracy
    own = sorted({o.method for o in outcomes if is_own(o.method)})
    if not own:
        return Verdict("wrong", "No run of a method of your own is in the record: register one, tick it and press Run.")
    told = []
    for alpha, methods in sorted(by.items()):
        for method in own:
            common = set(methods.get("ensemble", {})) & set(methods.get(method, {}))
            if len(common) < SEEDS:
                continue
            points, band = gap(methods[method], methods["ensemble"])
            text = f"{method} at α = {alpha:g}: {100 * points:+.0f} ± {100 * band:.0f} points"
            if points > 0 and not is_noise(points, band):
                return Verdict("right", f"Supported by your runs: {text}.")
            told.append(text)
    seen = listed(told) or "no setting has 3 seeds of both"
    return Verdict("wrong", f"Not clear yet: {seen}. Run the ensemble beside it, 3 seeds, where it should help.")


def is_own(method: str) -> bool:
    """Whether a method was written by the learner."""
    return method in METHODS and not METHODS[method].__module__.startswith("fedlab_nb.")


def example_runs() -> Outcomes:
    """Runs of the first method of the learner's own that there is."""
    own = [name for name in METHODS if is_own(name)]
    return compare([*own[:1], "ensemble"], alpha=0.1, seeds=SEEDS)


q3 = ProblemView(
    RecordProblem(
        title="Exercise 3",
        question=(
            "Register a method of your own and show, with 3 seeds, a setting where it is clearly better than the plain "
            "ensemble."
        ),
        right_answer=example_runs,
        hints=(
            "The counted ensemble is one: tick it beside Ensemble and run at a small α.",
            "Change its weights: for example the square root of the counts (p = 0.5).",
        ),
        explanation="Counted ensemble beside Ensemble at α = 0.1. {verdict}",
        claim=beats_the_ensemble,
    )
)


def weights(counts: Sequence[Sequence[float]], power: float) -> np.ndarray:
    """w_kc of lesson 09 from label counts `[M, C]`, in plain numpy: for tests of what the lesson writes."""
    raised = np.asarray(counts, dtype=float) ** power
    return raised / np.maximum(raised.sum(0), 1)
