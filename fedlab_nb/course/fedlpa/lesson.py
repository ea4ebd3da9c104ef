"""Lesson 07, FedLPA: its worked numbers and its exercises.

Every number that the lesson quotes is computed here when the reader runs the cell, from real runs (three seeds, digits,
ten clients, α = 0.1, the classroom preset); nothing is written into the text by hand.
"""

from collections.abc import Sequence
from statistics import mean
from typing import Any

import torch

from ...data import load
from ...declared import declared
from ...labs.fedlpa.plane import plane
from ...labs.fedlpa.solver import solutions, solver
from ...labs.fedlpa.two_weights import MEANS, two_weights
from ...methods.parts.kronecker import factor_layers, layer_matrix
from ...models import build, model_state
from ...plots import Picture
from ...plots.words import apart, data_size, mean_percent, plural, seeds_of
from ...study import Outcome
from ...study.experiment import finished
from ...study.lesson_runs import DATASET, MANY, SEEDS, accuracies, percent, runs
from ..kit.low_rank import low_rank  # noqa: F401
from ..kit.runs import versus
from ..kit.view import Card, Sheet, worked
from .exercises import q1, q2, q3, q4, q5

__all__ = ["percent", "q1", "q2", "q3", "q4", "q5"]  # used by the notebook, made elsewhere

PLACES, SHARES, STEPS = (tuple(declared("course/fedlpa/words.toml")[name]) for name in ("places", "shares", "steps"))


# ------------------------------------------------------------------------------------------------ two weights
def by_hand(ratio: float = 9) -> Card:
    """The product of two Gaussians whose axes are those of the plane, weight by weight."""
    (a, b), (c, d) = MEANS
    first, second = (ratio * a + c) / (ratio + 1), (b + ratio * d) / (1 + ratio)
    return worked(
        f"Client 1 found ({a:g}, {b:g}), with precision {ratio:g} for weight 1 and 1 for weight 2. Client 2 found "
        f"({c:g}, {d:g}), with precision 1 and {ratio:g}.\n"
        f"weight 1: ({ratio:g} · {a:g} + 1 · {c:g}) / ({ratio:g} + 1) = {first:g};  "
        f"weight 2: (1 · {b:g} + {ratio:g} · {d:g}) / (1 + {ratio:g}) = {second:g}.\n"
        f"The plain average is ({(a + c) / 2:g}, {(b + d) / 2:g}).",
    )


def place(ratio: float = 9) -> str:
    """Which of PLACES the product of the two Gaussians is, where their axes are those of the plane."""
    x, y = two_weights(90, ratio).aggregate
    return next(words for words in PLACES if words.startswith(f"({x:.1f}, {y:.1f})"))


def angles() -> Sheet:
    """Four planes."""
    return Sheet(
        {
            "90 degrees": plane(90, ratio=9, damping=0),
            "45 degrees": plane(45, ratio=9, damping=0),
            "Circles: no direction is surer": plane(90, ratio=1, damping=0),
            "45 degrees, λ_damp = 10": plane(45, ratio=9, damping=10),
        }
    )


# ------------------------------------------------------------------------------------------------ a layer, an upload
def one_run(seed: int = 0, **settings: Any) -> Outcome:
    """FedLPA on one of the lesson's seeds."""
    return runs("fedlpa", seeds=1, seed=seed, **settings)[0]


def one_layer(client: int = 0, seed: int = 0) -> Card:
    """One client's first layer: shapes, and its last column of A beside the mean of its own images."""
    outcome = one_run(seed)
    own, name = outcome.model.posteriors[client], outcome.report.layers[0]
    m, factors = layer_matrix(own.state, name), own.factors[name]
    federation = outcome.federation()  # the client's images, which no server has
    images = federation.dataset.x_train[federation.split(outcome.plan.holdout)[client][0]]
    difference = float((factors.a[:-1, -1] - images.flatten(1).mean(0)).abs().max())
    return worked(
        f"Client {client} (seed {seed}), first layer: Θ is {len(m)} × {m.shape[1]}, 64 weights and a bias for each "
        f"unit; A is {len(factors.a)} × {len(factors.a)}; B is {len(factors.b)} × {len(factors.b)}.\n"
        f"The Fisher matrix itself would be {m.numel()} × {m.numel()}.\n"
        f"The last column of A against the mean of the client's own {len(images)} images: largest difference of a "
        f"pixel {difference:.4f}.",
    )


def upload() -> Card:
    """What one client of the lesson sends, counted layer by layer."""
    dataset = load(DATASET)
    network = build("mlp", dataset.input_shape, dataset.classes, generator=torch.Generator().manual_seed(0))
    state, lines, total, model = model_state(network), [], 0, 0
    for i, name in enumerate(factor_layers(network), 1):
        outputs, inputs = layer_matrix(state, name).shape
        sizes = outputs * inputs, inputs * (inputs + 1) // 2, outputs * (outputs + 1) // 2
        lines.append(
            f"layer {i}: Θ {outputs}·{inputs} = {sizes[0]}, A {inputs}·{inputs + 1}/2 = {sizes[1]}, "
            f"B {outputs}·{outputs + 1}/2 = {sizes[2]}"
        )
        total, model = total + sum(sizes), model + sizes[0]
    lines.append(
        f"{total} numbers of 4 bytes = {data_size(4 * total)}, where the network alone is {model} numbers = "
        f"{data_size(4 * model)}: {total / model:.2f} times as much."
    )
    return worked(*lines)


# ------------------------------------------------------------------------------------------------ what is worth what
LADDER = declared("course/fedlpa/words.toml")["ladder"]


def ladder(outcomes: Sequence[Outcome]) -> Card:
    """Accuracy by how much of the precision is used, and whether the last step is more than noise."""
    lines = [f"{words}: {percent(outcomes, method):.0f} %" for method, words in LADDER.items()]
    ahead = versus(outcomes, "fedlpa", "regmean", clear="more than noise")
    return worked(*lines, f"FedLPA − RegMean: {ahead} ({seeds_of(accuracies(outcomes, 'fedlpa'))}).")


def share_of_a(outcomes: Sequence[Outcome]) -> str:
    """Which of SHARES RegMean is, by accuracy."""
    low, high, alone = (percent(outcomes, method) for method in ("fedavg", "fedlpa", "regmean"))
    return SHARES[1] if alone > high - 5 else SHARES[2] if alone < low + 5 else SHARES[0]


def solvers(damping: float = 1e-6, steps: int = 1000, seed: int = 0) -> Picture:
    """The three solvers on one run's uploads."""
    return solver(finished(solutions(one_run(seed), damping, steps)))


def steps_needed(damping: float = 1e-6, seed: int = 0) -> str:
    """Which of STEPS conjugate gradients need, in the slowest layer."""
    steps = max(one_run(seed, damping=damping).report.iterations.values())
    return STEPS[0] if steps < 100 else STEPS[1] if steps < 3000 else STEPS[2]


# ------------------------------------------------------------------------------------------------ reality
def leak(epochs: Sequence[int] = (1, 5, 40)) -> Card:
    """How well the classes of the clients are read off the last B, by how long the clients have trained."""
    lines = []
    for count in epochs:
        leaks = [outcome.report.label_leak for outcome in runs("fedlpa", epochs=count)]
        right, blind = (100 * mean(leak[key] for leak in leaks) for key in ("precision", "chance"))
        lines.append(
            f"after {plural(count, 'epoch')}: {right:.0f} % of the named classes are really there "
            f"(blind guess {blind:.0f} %)"
        )
    return worked(*lines, f"(the reader is told how many classes each client has; means of {SEEDS} seeds)")


def reality() -> Card:
    """What of the paper's statements does not hold at this size."""
    lines = []
    for damping in (1e-3, 1e-6):
        exact, shortcut = (
            accuracies(runs("fedlpa", seeds=MANY, damping=damping, solver=name), "fedlpa") for name in ("cg", "ea")
        )
        lines.append(
            f"λ_damp = {damping:g}: exact {mean_percent(exact)}, shortcut {mean_percent(shortcut)} "
            f"(difference over {MANY} seeds: {apart(exact, shortcut)})"
        )
    noise, rounds = (
        ", ".join(f"{value:g}: {percent(runs('fedlpa', **{name: value}), 'fedlpa'):.0f} %" for value in values)
        for name, values in (("noise", (0.0, 0.1, 0.3, 1.0)), ("rounds", (0, 1, 5)))
    )
    return worked(
        *lines,
        f"noise on the uploads, as a share of their size, {noise}",
        f"rounds of FedAvg after FedLPA, {rounds} (means of {SEEDS} seeds)",
    )
