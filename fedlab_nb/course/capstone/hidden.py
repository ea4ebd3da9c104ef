"""The capstone's hidden federation: a code word draws its data set, its clients, their sizes and the byte budget.

The same code word gives the same federation on every machine. Two data sets are made of it. On the first one choices
are made: a fifth of the training images takes the place of the test images, which are not in it at all. The second one
has the test images; it is used for submissions alone. Clients and their images are the same in both.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass

import numpy as np
import torch

from ...data import Dataset, federate, load
from ...data.dataset import digest_of
from ...data.federation import with_clients
from ...errors import demand
from ...models import build_specified, default_model, parameter_count
from ...rng import numpy_rng, seed_for

# What a code word draws from.
SETS = ("digits", "glyphs:8g")
ALPHAS = (0.05, 0.1, 0.3, 1.0)
CLIENTS = (5, 8, 10, 12)
SIGMAS = (0.0, 0.5, 1.0)  # of the lognormal sizes of the clients
SHARES = (0.6, 0.8, 1.0)  # of the training images that the clients have
BUDGETS = (0.7, 2.2, 4.0, 7.0, 12.0)  # of a client, in times the bytes of its network
NOISE = 3.0  # scale of the Laplace noise on each count of a client's classes: its mean size


@dataclass(frozen=True, eq=False)
class Hidden:
    """What a code word has drawn. The learner is shown `sizes`, `noisy`, `budget` and the network, and not the rest.

    trial: images for choices in the place of the test images;   final: with the test images;   noisy: int [M, C]
    """

    code: str
    source: str
    alpha: float
    clients: int
    sigma: float
    share: float
    trial: Dataset
    final: Dataset
    noisy: np.ndarray
    numbers: int
    budget: int

    @property
    def sizes(self) -> list[int]:
        """Training samples of each client."""
        owner = self.trial.client_train
        return [] if owner is None else torch.bincount(owner[owner >= 0]).tolist()

    @property
    def network(self) -> int:
        """Bytes of one client's network, in 32-bit numbers."""
        return 4 * self.numbers

    def facts(self) -> list[str]:
        """What the server sees, line by line."""
        inputs = int(np.prod(self.trial.input_shape))
        public = 0 if self.trial.x_public is None else len(self.trial.x_public)
        return [
            f"{self.clients} clients, {self.trial.classes} classes, {inputs} numbers for each sample.",
            f"Training samples of clients 0 to {self.clients - 1}: {', '.join(map(str, self.sizes))}.",
            f"The server has {public} samples without labels.",
            f"A client's network: {self.numbers} numbers, {self.network} bytes.",
            f"Budget of a client, up and down together: {self.budget} bytes.",
        ]


def word(code: str) -> str:
    """A code word as it counts: without its spaces at the ends, in capitals. UsageError if nothing is left."""
    text = " ".join(str(code).split()).upper()
    demand(text, "The code word is empty; give the one that your teacher has chosen, or any word for practice.")
    return text


@functools.lru_cache(maxsize=8)
def drawn(code: str) -> Hidden:
    """The federation of a code word, which `word` has written."""
    seed = seed_for(0, "capstone", code)
    draw = numpy_rng(seed, "federation")
    names = (SETS, ALPHAS, CLIENTS, SIGMAS, SHARES, BUDGETS)
    source, alpha, clients, sigma, share, times = (options[int(draw.integers(len(options)))] for options in names)
    trial, final = two_sets(load(source), seed, code)
    dealt = federate(trial, alpha=alpha, clients=clients, seed=seed % 2**31, size_sigma=sigma, share=share)
    counts = dealt.label_counts.numpy()
    noise = numpy_rng(seed, "noise").laplace(0, NOISE, counts.shape)
    numbers = parameter_count(build_specified(default_model(trial.input_shape), trial.input_shape, trial.classes))
    return Hidden(
        code=code, source=source, alpha=alpha, clients=clients, sigma=sigma, share=share,
        trial=with_clients(trial, dealt.shards), final=with_clients(final, dealt.shards),
        noisy=np.maximum(0, np.rint(counts + noise)).astype(int), numbers=numbers,
        budget=int(round(times * 4 * numbers, -2)),
    )  # fmt: skip


def two_sets(own: Dataset, seed: int, code: str) -> tuple[Dataset, Dataset]:
    """The data set for choices and the one for the test; a fifth of the training images belongs to no client."""
    order = numpy_rng(seed, "validation").permutation(len(own.y_train))
    held, rest = order[: len(order) // 5], order[len(order) // 5 :]
    names = tuple(str(c) for c in range(own.classes))
    digest = digest_of(own.digest, "capstone", code)
    same = {"x_train": own.x_train[rest], "y_train": own.y_train[rest], "y_public": None, "class_names": names}
    final = dataclasses.replace(own, name="hidden", note="", digest=digest, **same)
    validation = {"x_test": own.x_train[held], "y_test": own.y_train[held], "digest": f"{digest}, validation"}
    return dataclasses.replace(final, **validation), final
