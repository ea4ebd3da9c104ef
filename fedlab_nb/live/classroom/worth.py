"""What the messages of a class are worth: every way to combine them, each student's share, and what sums give away."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...methods import METHODS, afl, gauss
from ...methods.ensemble import RuledEnsemble
from ...methods.parts.averages import average_states
from ...models import load_state
from ...training import ClientModels
from .messages import PIXELS, SIDE, Message, build_network, derive_afl_sums

AFL, GAUSS = METHODS["afl"](), METHODS["gauss"]()  # with the values that the course has
SHOWN = 8  # images that a phone shows of those that its message made right
LOUD = 20  # times the middle network's logits: who is louder shouts
# The rules by which networks are averaged, and by which they vote, by title.
AVERAGES = {"FedAvg": "mean", "FedAvg, median": "median"}
VOTES = {"Mean of logits": "logits", "Ensemble": "probabilities", "Ensemble, median": "median"}

# What a way is called on every screen, by its title in the package; a question adds the phrase.
WAYS = {
    "Local only": {"name": "One alone", "phrase": "one office's network"},
    "FedAvg": {"name": "FedAvg", "phrase": "the average network"},
    "FedAvg, median": {"name": "FedAvg median", "phrase": "the median network"},
    "Mean of logits": {"name": "Loud vote", "phrase": "shouting counts"},
    "Ensemble": {"name": "Equal vote", "phrase": "all count the same"},
    "Ensemble, median": {"name": "Median vote", "phrase": "the middle voice counts"},
    "FENS": {"name": "FENS", "phrase": "a vote with learnt weights"},
    "AFL": {"name": "AFL", "phrase": "all sums, added up"},
    "Gaussian heads": {"name": "Gaussian", "phrase": "all sums, bell curves"},
}


def describe_way(title: str) -> str:
    """A way as an answer to choose: "AFL: all sums, added up"."""
    return f"{WAYS[title]['name']}: {WAYS[title]['phrase']}"


def collect_given_drawings(messages: Iterable[Message]) -> tuple[Tensor, Tensor]:
    """The test drawings in messages: `x [T, 64]`, `y [T]`."""
    images = [torch.empty(0, PIXELS)]
    labels = [torch.empty(0, dtype=torch.long)]
    for message in messages:
        images.append(message.x)
        labels.append(message.y)
    return torch.cat(images), torch.cat(labels)


def predict_by_all_ways(messages: Sequence[Message], x: Tensor) -> dict[str, tuple[int, Tensor]]:
    """By title: of how many students, and the class of each sample `x [N, 64]`, `[N]`; of local
    models `[M, N]`."""
    found: dict[str, tuple[int, Tensor]] = {}
    senders = [m for m in messages if m.network is not None]
    if senders:
        for title, classes in predict_by_networks(senders, x).items():
            found[title] = len(senders), classes
    sums = [m.sums for m in messages if m.sums is not None]
    if sums:
        total = sum(sums[1:], sums[0])
        found["AFL"] = len(sums), predict_by_sums(total, len(sums), x)
        heads = gauss.make_scores(total, GAUSS.head, GAUSS.shrinkage)
        found["Gaussian heads"] = len(sums), heads(x).argmax(1)
    return found


def predict_by_networks(senders: Sequence[Message], x: Tensor) -> dict[str, Tensor]:
    """By title: what the networks of these messages say of each sample, alone, averaged, or voting."""
    images = x.view(-1, 1, SIDE, SIDE)
    clients = ClientModels([m.network for m in senders])
    sizes = [sum(m.counts) for m in senders]
    found = {"Local only": clients.logits(images).argmax(-1)}
    for title, rule in AVERAGES.items():
        average = build_network()
        load_state(average, average_states(clients.states(), sizes, rule, 0))
        found[title] = ClientModels([average]).logits(images)[0].argmax(1)
    for title, rule in VOTES.items():
        ensemble = RuledEnsemble(clients, rule, cut=(len(senders) - 1) // 2)
        found[title] = ensemble.logits(images).argmax(1)
    return found


def predict_by_sums(total: gauss.ClassSums, clients: int, x: Tensor) -> Tensor:
    """AFL's class of each sample `x [N, 64]`, `[N]`, from the added sums of so many clients."""
    weights = afl.solve_weights(derive_afl_sums(total), clients, 0.0, AFL.rho)
    return afl.compute_linear_scores(x.double(), weights).argmax(1)


def measure_loudness(networks: Sequence[Message], x: Tensor) -> dict[int, float]:
    """{seat: how many times as large as the middle network's the logits of this seat's network are} on `x [N, 64]`."""
    if not networks:
        return {}
    clients = ClientModels([m.network for m in networks])
    sizes = clients.logits(x.view(-1, 1, SIDE, SIDE)).abs().amax(-1).median(1).values
    middle = float(sizes.median().clamp(min=1e-9))
    return {m.seat: float(size) / middle for m, size in zip(networks, sizes, strict=True)}


def measure_share(messages: Sequence[Message], seat: int, x: Tensor, y: Tensor) -> dict[str, Any]:
    """What the message of `seat` brings to all others: right answers on `x [N, 64]` with it and without.

    From sums this is AFL with the seat's sums taken off again, which is AFL of all others (Σ over k ≠ seat). A message
    without sums is measured by the ensemble of networks. Returns `way`, `with_it` and `without_it` (right answers),
    `images`, `helped` (numbers of samples that are right only with it), `harmed` (how many are wrong only with it) and
    `classes` {class of the sender: [samples, right with it, right without it]}.
    """
    message = next(m for m in messages if m.seat == seat)
    others = [m for m in messages if m.seat != seat]
    if message.sums is not None:
        way = "AFL"
        everybody = [m.sums for m in messages if m.sums is not None]
        rest = [m.sums for m in others if m.sums is not None]
        with_it = predict_by_sums(sum(everybody[1:], everybody[0]), len(everybody), x)
        without_it = None
        if rest:
            without_it = predict_by_sums(sum(rest[1:], rest[0]), len(rest), x)
    else:
        way = "Ensemble"
        with_it = predict_by_ensemble(messages, x)
        without_it = predict_by_ensemble(others, x)
    right = with_it == y
    before = torch.zeros_like(right) if without_it is None else without_it == y
    classes = {}
    for c in np.flatnonzero(message.counts).tolist():
        of_class = y == c
        counts = [of_class.sum(), (right & of_class).sum(), (before & of_class).sum()]
        classes[c] = [int(count) for count in counts]
    return {
        "way": way,
        "with_it": int(right.sum()),
        "without_it": int(before.sum()),
        "images": len(y),
        "helped": (right & ~before).nonzero()[:, 0].tolist(),
        "harmed": int((before & ~right).sum()),
        "classes": classes,
    }


def predict_by_ensemble(messages: Sequence[Message], x: Tensor) -> Tensor | None:
    """The ensemble's class of each sample, `[N]`; None without a network."""
    senders = [m for m in messages if m.network is not None]
    if not senders:
        return None
    ensemble = RuledEnsemble(ClientModels([m.network for m in senders]), "probabilities", cut=0)
    return ensemble.logits(x.view(-1, 1, SIDE, SIDE)).argmax(1)


def project_means(messages: Iterable[Message]) -> dict[str, Any]:
    """The means of each student's digits on the two axes along which all their drawings vary most.

    The axes are the first principal ones of all drawings, which the added sums give as one place would.
    `points`: seat, class and two coordinates of each mean, 0–1;   `share`: of the variance that the axes hold, 0–1;
    `alike`: how many means have, in all 64 numbers, a mean of the same digit nearest among those of other students.
    """
    senders = [m for m in messages if m.sums is not None]
    if not senders:
        return {"points": [], "share": 0, "alike": 0}
    total = sum((m.sums for m in senders[1:]), senders[0].sums)
    moments = derive_afl_sums(total).moments
    moments = moments / moments[-1, -1]
    middle = moments[-1, :-1]
    values, axes = torch.linalg.eigh(moments[:-1, :-1] - torch.outer(middle, middle))
    axes = axes[:, [-1, -2]]
    largest = axes.abs().argmax(0, keepdim=True)
    axes = axes * axes.gather(0, largest).sign()  # an axis has no side of its own
    seats: list[int] = []
    classes: list[int] = []
    for message in senders:
        held = message.sums.counts.nonzero()[:, 0].tolist()
        seats += [message.seat] * len(held)
        classes += held
    rows = torch.cat([m.sums.means[m.sums.counts > 0] for m in senders])
    seat = torch.tensor(seats)
    label = torch.tensor(classes)
    distances = torch.cdist(rows, rows).masked_fill(seat == seat[:, None], torch.inf)
    is_alike = (label[distances.argmin(1)] == label) & distances.isfinite().any(1)
    places = (rows - middle) @ axes
    spread = (places.amax(0) - places.amin(0)).clamp(min=1e-12)
    places = (places - places.amin(0)) / spread
    share = float(values[-2:].sum() / values.sum().clamp(min=1e-12))
    return {
        "points": [*zip(seats, classes, *places.T.tolist(), strict=True)],
        "share": share,
        "alike": int(is_alike.sum()),
    }


def make_rows(sums: gauss.ClassSums, c: int, rng: np.random.Generator) -> np.ndarray:
    """Rows `[n, d]` whose sum and Σ x xᵀ are those of class c, which has n samples.

    X = 1 μᵀ + U diag(√λ) Vᵀ, where V diag(λ) Vᵀ = Σ x xᵀ - n μ μᵀ has rank n - 1 at most, and the columns of U are
    orthonormal and orthogonal to 1. Any such U will do; this one is drawn. So sums tell samples of any numbers but for
    a rotation of n - 1 dimensions. That hides no drawings: their pixels are whole sixteenths, and hardly a rotation
    leaves them so. Fifteen drawings of a digit are worked out in a moment, to the pixel (`recover.js` does).
    """
    n, mean = int(sums.counts[c]), sums.means[c].numpy()
    values, axes = np.linalg.eigh(sums.second[c].numpy() - n * np.outer(mean, mean))
    rank = min(n - 1, len(mean))
    spread = axes[:, -rank:] * np.sqrt(values[-rank:].clip(0)) if rank else np.zeros((len(mean), 0))
    basis = np.linalg.qr(np.column_stack([np.ones(n), rng.standard_normal((n, rank))]))[0][:, 1:]
    return mean + basis @ spread.T
