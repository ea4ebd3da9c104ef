"""The toy: points in the plane, three clients that train a tiny network each, and what a server
makes of the networks.

Partition, training and averages are the package's own; only the points are made here. A predictor
is a function from points `[N, 2]` to scores `[N, C]`; the largest score of a point is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Literal

import torch

from ...data import Dataset, Federation, federate
from ...data.dataset import hash_parts_to_short_id
from ...errors import check_allowed_name
from ...methods.base import weighted_mean
from ...methods.run_outputs import average_logits_or_log_mean_probabilities
from ...models import Network, build, load_state
from ...rng import make_torch_generator
from ...tensor_types import Logits, PlanePoints
from ...training import (
    ClientModels,
    Recipe,
    compute_accuracy,
    run_in_chunks_with_cache,
    train_clients_in_place,
)
from ...value_types import Accuracy0To1

CLASSES = ("blue", "orange", "red")  # the first colours of `list_class_colours`
CENTRES = ((0, 3), (1, 4), (2, 5))  # of each class, in sixths of a turn
RADIUS = 1.8  # of the ring of islands
SPREAD = 0.4  # standard deviation of an island's points
POINTS = {"train": 40, "test": 100, "public": 30}  # of one island
CLIENTS = 3
WIDTH = 16  # units of the hidden layer of a network
HELD_OUT = 0.2  # of each client's points: no network is trained on them
STARTS = ("common", "own")
RECIPE = Recipe(epochs=40, batch_size=128, optimizer="adam", lr=0.03, weight_decay=0)

Predictor = Callable[[PlanePoints], Logits]
ToyStart = Literal["common", "own"]


@lru_cache(1)
def make_toy_dataset() -> Dataset:
    """Make the points, always the same: islands on a ring, the same number of points in each."""
    island_labels = torch.tensor(list_class_of_each_island())
    x = {}
    y = {}
    for part, count in POINTS.items():
        stream = make_torch_generator(0, "plane", part)
        y[part] = island_labels.repeat_interleave(count)
        centres = compute_island_centres().repeat_interleave(count, 0)
        x[part] = centres + SPREAD * torch.randn(len(centres), 2, generator=stream)
    arrays = [*x.values(), *y.values()]
    digest = hash_parts_to_short_id("plane", *(array.numpy().tobytes() for array in arrays))
    return Dataset(
        "points in the plane",
        x["train"],
        y["train"],
        x["test"],
        y["test"],
        x["public"],
        CLASSES,
        digest,
        y_public=y["public"],
    )


def list_class_of_each_island() -> list[int]:
    """List the class of each island, class by class."""
    labels: list[int] = []
    for c, places in enumerate(CENTRES):
        labels += [c] * len(places)
    return labels


def compute_island_centres() -> PlanePoints:
    """Compute the centres of the islands `[I, 2]`, class by class."""
    places = torch.tensor(CENTRES).flatten()
    angles = places / len(places) * 2 * math.pi
    return RADIUS * torch.stack([angles.cos(), angles.sin()], 1)


@lru_cache(64)
def make_toy_federation(alpha: float, seed: int = 0, start: ToyStart = "common") -> ToyFederation:
    """Make the toy federation of a setting. The last ones are cached."""
    return ToyFederation(alpha, seed, start)


class ToyFederation:
    """Three clients with their points, each trained alone. Everything else is computed when it is first
    used.

    alpha: Dirichlet concentration; smaller is more skewed
    start: "common", or "own" for random weights of each client's own; UsageError for another value
    """

    def __init__(self, alpha: float, seed: int = 0, start: ToyStart = "common") -> None:
        self.alpha = alpha
        self.seed = seed
        self.start = check_allowed_name("start", start, STARTS)
        self.federation: Federation = federate(
            make_toy_dataset(), alpha=alpha, clients=CLIENTS, seed=seed
        )
        data = self.federation.dataset
        self.shards = []
        for rows, _ in self.federation.split(HELD_OUT):
            self.shards.append((data.x_train[rows], data.y_train[rows]))
        networks = [self._make_untrained_network(k) for k in range(CLIENTS)]
        self.clients = ClientModels(
            train_clients_in_place(networks, self.shards, RECIPE, seed=seed)
        )

    def _make_untrained_network(self, client: int) -> Network:
        """Make an untrained network, from the common start or the client's own."""
        if self.start == "common":
            stream = make_torch_generator(self.seed, "plane", "init")
        else:
            stream = make_torch_generator(self.seed, "plane", "init", client)
        return build("mlp1", (2,), len(CLASSES), width=WIDTH, generator=stream)

    @property
    def training_points_per_client(self) -> list[int]:
        """Points that each network is trained on."""
        return [len(y) for _, y in self.shards]

    def count_training_points_of_each_class(self, client: int) -> list[int]:
        """Count the points of each class that the client trains on, `[C]`."""
        return torch.bincount(self.shards[client][1], minlength=len(CLASSES)).tolist()

    @cached_property
    def averaged_network(self) -> Network:
        """The network with the mean of the weights, by sizes: one round of FedAvg."""
        network = self._make_untrained_network(0)
        load_state(network, weighted_mean(self.clients.states(), self.training_points_per_client))
        return network.eval()

    # ----------------------------------------------------------------------------------- predictors
    def make_client_predictor(self, client: int) -> Predictor:
        """Make the predictor that is the client's own network."""
        return lambda points: self.clients.logits(points)[client]

    def predict_with_mean_logits(self, points: PlanePoints) -> Logits:
        """Predict the mean of the clients' logits, `[N, C]`."""
        return average_logits_or_log_mean_probabilities(self.clients.logits(points), "logits")

    def predict_with_averaged_weights(self, points: PlanePoints) -> Logits:
        """Predict the logits of the network with the mean of the clients' weights, `[N, C]`."""
        return run_in_chunks_with_cache(self.averaged_network, points)

    def measure_test_accuracy(self, predictor: Predictor) -> Accuracy0To1:
        """Measure the share of the test points whose class is predicted right, 0–1."""
        data = self.federation.dataset
        return compute_accuracy(predictor(data.x_test).argmax(1), data.y_test)
