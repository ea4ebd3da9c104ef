"""Lesson 07, FedLPA: its worked numbers and its exercises.

Every number that the lesson quotes is computed here when the reader runs the cell, from real runs (three seeds, digits,
ten clients, α = 0.1, the classroom preset); nothing is written into the text by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import Any

import torch

from fedlab_nb.data import load
from fedlab_nb.draw import Picture
from fedlab_nb.draw.fedlpa_plane import ANSWERS, Plane
from fedlab_nb.draw.fedlpa_solver import SOLVERS, solver
from fedlab_nb.draw.words import data_size, gap, is_noise
from fedlab_nb.methods.parts.again import Again
from fedlab_nb.methods.parts.kronecker import factor_layers, layer_matrix
from fedlab_nb.methods.parts.two_weights import MEANS, two_weights
from fedlab_nb.models import build, model_state
from fedlab_nb.study import Outcomes, compare, run

from .fedlpa_exercises import q1, q2, q3, q4
from .heterogeneity import DATASET, SEEDS, percent
from .view import Card, Sheet

__all__ = ["percent", "q1", "q2", "q3", "q4"]  # used by the notebook, made elsewhere

ALPHA, CLIENTS = 0.1, 10
PLACES = ("(2, 2), half-way between them", "(1.2, 1.2), not between them at all", "(1, 3), with one of them")


def runs(methods: Sequence[str] = ("fedlpa",), seeds: int = SEEDS, **settings: Any) -> Outcomes:
    """The lesson's runs."""
    return compare(list(methods), dataset=DATASET, alpha=ALPHA, clients=CLIENTS, seeds=seeds, **settings)


# ------------------------------------------------------------------------------------------------ two weights
def by_hand(ratio: float = 9) -> Card:
    """The product of two Gaussians whose axes are those of the plane, weight by weight."""
    (a, b), (c, d) = MEANS
    first, second = (ratio * a + c) / (ratio + 1), (b + ratio * d) / (1 + ratio)
    return Card(
        "worked",
        f"Client 1 found ({a:g}, {b:g}), with precision {ratio:g} for weight 1 and 1 for weight 2. Client 2 found "
        f"({c:g}, {d:g}), with precision 1 and {ratio:g}.\n"
        f"weight 1: ({ratio:g} · {a:g} + 1 · {c:g}) / ({ratio:g} + 1) = {first:g};  "
        f"weight 2: (1 · {b:g} + {ratio:g} · {d:g}) / (1 + {ratio:g}) = {second:g}.\n"
        f"The plain average is ({(a + c) / 2:g}, {(b + d) / 2:g}).",
    )


def plane(angle: float, ratio: float, damping: float) -> Picture:
    """The plane as the lab shows it."""
    found = two_weights(angle, ratio, damping)
    setting = f"angle {angle:g} degrees, precision {ratio:g} to 1, λ = {damping:g}"
    points = {name: getattr(found, name) for name in ANSWERS}
    return Plane().show(found.means, found.precisions, points, found.pooled, setting=setting)


def angles(chosen: Sequence[tuple[str, float, float, float]] | None = None) -> Sheet:
    """Four planes: (title, angle, ratio, λ) each."""
    chosen = chosen or (
        ("90 degrees", 90, 9, 0),
        ("45 degrees", 45, 9, 0),
        ("Circles: no direction is surer", 90, 1, 0),
        ("45 degrees, λ = 10", 45, 9, 10),
    )
    return Sheet({title: plane(*numbers) for title, *numbers in chosen})


# ------------------------------------------------------------------------------------------------ a layer, an upload
def one_layer(client: int = 0, seed: int = 0) -> Card:
    """One client's first layer: shapes, and its last column of A beside the mean of its own images."""
    outcome = run("fedlpa", dataset=DATASET, alpha=ALPHA, clients=CLIENTS, seed=seed)
    own = outcome.model.evidence[client]
    name = outcome.extras["layers"][0]
    m, found = layer_matrix(own.state, name), own.factors[name]
    images = own_images(client, seed)
    difference = float((found.a[:-1, -1] - images.flatten(1).mean(0)).abs().max())
    return Card(
        "worked",
        f"Client {client} (seed {seed}), first layer: M is {tuple(m.shape)[0]} × {tuple(m.shape)[1]}, 64 weights and a "
        f"bias for each unit; A is {len(found.a)} × {len(found.a)}; B is {len(found.b)} × {len(found.b)}.\n"
        f"The Fisher matrix itself would be {m.numel()} × {m.numel()}.\n"
        f"The last column of A against the mean of the client's own {len(images)} images: largest difference of a "
        f"pixel {difference:.4f}.",
    )


def own_images(client: int, seed: int) -> torch.Tensor:
    """The images that a client of the lesson trained on; no server has them."""
    from fedlab_nb.data import federate

    federation = federate(DATASET, alpha=ALPHA, clients=CLIENTS, seed=seed)
    return federation.dataset.x_train[federation.split(0.1)[client][0]]


def upload() -> Card:
    """What one client of the lesson sends, counted layer by layer."""
    dataset = load(DATASET)
    network = build("mlp", dataset.input_shape, dataset.classes, generator=torch.Generator().manual_seed(0))
    state, lines, total, model = model_state(network), [], 0, 0
    for i, name in enumerate(factor_layers(network), 1):
        outputs, inputs = layer_matrix(state, name).shape
        sizes = outputs * inputs, inputs * (inputs + 1) // 2, outputs * (outputs + 1) // 2
        lines.append(
            f"layer {i}: M {outputs}·{inputs} = {sizes[0]}, A {inputs}·{inputs + 1}/2 = {sizes[1]}, "
            f"B {outputs}·{outputs + 1}/2 = {sizes[2]}"
        )
        total, model = total + sum(sizes), model + sizes[0]
    lines.append(
        f"{total} numbers of 4 bytes = {data_size(4 * total)}, where the network alone is {model} numbers = "
        f"{data_size(4 * model)}: {total / model:.2f} times as much."
    )
    return Card("worked", "\n".join(lines))


# ------------------------------------------------------------------------------------------------ what is worth what
LADDER = {
    "fedavg": "none of it, the average (FedAvg)",
    "fisher_merge": "its diagonal (Fisher merging)",
    "regmean": "A alone (RegMean)",
    "fedlpa": "A and B (FedLPA)",
}


def ladder(outcomes: Sequence[Any]) -> Card:
    """Accuracy by how much of the precision is used, and whether the last step is more than noise."""
    lines = [f"{words}: {percent(outcomes, method):.0f} %" for method, words in LADDER.items()]
    difference, wide = gap(by_seed(outcomes, "fedlpa"), by_seed(outcomes, "regmean"))
    verdict = "within the noise" if is_noise(difference, wide) else "more than noise"
    seeds = len(by_seed(outcomes, "fedlpa"))
    lines.append(
        f"FedLPA − RegMean: {round(100 * difference):+d} ± {100 * wide:.0f} points over {seeds} seeds, {verdict}."
    )
    return Card("worked", "\n".join(lines))


SHARES = ("half-way between FedAvg and FedLPA", "as good as FedLPA", "as bad as FedAvg")


def share_of_a(outcomes: Sequence[Any]) -> str:
    """Which of SHARES RegMean is, by accuracy."""
    low, high, found = (percent(outcomes, method) for method in ("fedavg", "fedlpa", "regmean"))
    return SHARES[1] if found > high - 5 else SHARES[2] if found < low + 5 else SHARES[0]


def by_seed(outcomes: Sequence[Any], method: str) -> dict[int, float]:
    return {o.setting["seed"]: o.accuracy for o in outcomes if o.method == method}


def solvers(damping: float = 1e-6, steps: int = 1000, seed: int = 0) -> Picture:
    """The three solvers on one run's uploads."""
    outcome = run("fedlpa", dataset=DATASET, alpha=ALPHA, clients=CLIENTS, seed=seed)
    dataset = load(DATASET)
    again = Again(outcome.model, dataset.x_test, dataset.y_test)
    received = again.uploads(damping)
    curves, points = {}, {name: {} for name in SOLVERS}
    for name in SOLVERS:
        for found, point in again.path(name, steps, received):
            curves[name] = {layer: [r.item() for r in curve] for layer, curve in found.items()} if point else None
            if point is not None:
                points[name][point.iteration] = point.accuracy
    layers = [f"layer {i + 1}" for i in range(len(outcome.extras["layers"]))]
    setting = f"{DATASET}, α = {ALPHA:g}, {CLIENTS} clients, seed {seed}, λ = {damping:g}"
    return solver(curves, {name: sorted(p.items()) for name, p in points.items()}, layers=layers, setting=setting)


STEPS = ("fewer than 100 steps", "about 1,000 steps too", "some 10,000 steps")


def steps_needed(damping: float = 1e-6, seed: int = 0) -> str:
    """Which of STEPS conjugate gradients need, in the slowest layer."""
    outcome = run("fedlpa", dataset=DATASET, alpha=ALPHA, clients=CLIENTS, seed=seed, damping=damping)
    steps = max(outcome.extras["iterations"].values())
    return STEPS[0] if steps < 100 else STEPS[1] if steps < 3000 else STEPS[2]


# ------------------------------------------------------------------------------------------------ reality
def leak(epochs: Sequence[int] = (1, 5, 40)) -> Card:
    """How well the classes of the clients are read off the last B, by how long the clients have trained."""
    lines = []
    for count in epochs:
        found = [o.extras["label_leak"] for o in runs(epochs=count)]
        right, blind = (100 * mean(f[key] for f in found) for key in ("precision", "chance"))
        trained = "1 epoch" if count == 1 else f"{count} epochs"
        lines.append(
            f"after {trained}: {right:.0f} % of the classes read off are really there (blind guess {blind:.0f} %)"
        )
    return Card("worked", "\n".join([*lines, f"(means of {SEEDS} seeds)"]))


def reality() -> Card:
    """What of the paper's statements does not hold at this size."""
    lines = []
    for damping in (1e-3, 1e-6):
        exact, shortcut = (runs(damping=damping, solver=name) for name in ("cg", "ea"))
        a, b = by_seed(exact, "fedlpa"), by_seed(shortcut, "fedlpa")
        difference, wide = gap(a, b)
        verdict = "within the noise" if is_noise(difference, wide) else "clear"
        lines.append(
            f"λ = {damping:g}: exact {100 * mean(a.values()):.0f} %, shortcut {100 * mean(b.values()):.0f} % "
            f"(difference {round(100 * difference):+d} ± {100 * wide:.0f} points: {verdict})"
        )
    told = [f"{noise:g}: {percent(runs(noise=noise), 'fedlpa'):.0f} %" for noise in (0.0, 0.1, 0.3, 1.0)]
    lines.append(f"noise on the uploads, as a share of their size, {', '.join(told)}")
    told = [f"{rounds}: {percent(runs(rounds=rounds), 'fedlpa'):.0f} %" for rounds in (0, 1, 5)]
    lines.append(f"rounds of FedAvg after FedLPA, {', '.join(told)} (means of {SEEDS} seeds)")
    return Card("worked", "\n".join(lines))
