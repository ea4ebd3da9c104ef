"""A capstone as a learner works on it: try methods on validation images, choose, argue, submit.

    case = lesson.case("HARBOUR", name="Ada")
    case.seen()                              # what the server sees
    case.trial("fens", rounds=20)            # validation accuracy and bytes of a client
    case.tries()                             # all of them in one picture
    case.form()                              # the same with buttons
    report = case.submit(2, "Because …")     # opens the test images
    report.save("reports")

A code word draws the hidden federation: its data set, its clients, their sizes and the byte budget; the same word gives
the same federation on every machine. Two data sets are made of it. On the first one choices are made: a fifth of the
training images takes the place of the test images, which are not in it at all. The second one has the test images; it
is used for submissions alone. Clients and their images are the same in both.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ... import __version__
from ...data import Dataset, federate, load
from ...data.dataset import digest_of
from ...data.federation import with_clients
from ...errors import UsageError, choose, demand
from ...methods import METHODS
from ...models import build_from_text, default_model, parameter_count
from ...plots import Picture
from ...plots.capstone import seen, tried
from ...plots.series import Series
from ...plots.words import data_size, letter, number
from ...rng import numpy_rng, seed_for
from ...studies import compare
from ...studies.settings import RECIPE_FIELDS
from ..kit import Card, worked
from .report import Record, Report, Try

FREE = ("model", "holdout", "init", "transform")  # settings of the run that a learner may choose
TRIAL_SEEDS = (0, 3)  # the first seed, and how many
TEST_SEEDS = (100, 10)  # others: no network of a try is among those that are tested
ENOUGH = 20  # letters of an argument


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
        return torch.bincount(owner[owner >= 0]).tolist()

    def facts(self) -> list[str]:
        """What the server sees, line by line."""
        inputs = int(np.prod(self.trial.input_shape))
        return [
            f"{self.clients} clients, {self.trial.classes} classes, {inputs} numbers for each sample.",
            f"Training samples of clients A to {letter(self.clients - 1)}: {', '.join(map(str, self.sizes))}.",
            f"The server has {len(self.trial.x_public)} samples without labels.",
            f"A client's network: {self.numbers} numbers, {4 * self.numbers} bytes.",
            f"Budget of a client, up and down together: {self.budget} bytes.",
        ]


def word(code: str) -> str:
    """A code word as it counts: without its spaces at the ends, in capitals. UsageError if nothing is left."""
    text = " ".join(str(code).split()).upper()
    demand(
        text,
        "The code word is empty; give the one that your teacher has chosen, or any word for practice.",
    )
    return text


@functools.lru_cache(maxsize=8)
def drawn(code: str) -> Hidden:
    """The federation of a code word, which `word` has written."""
    seed = seed_for(0, "capstone", code)
    draw = numpy_rng(seed, "federation")
    names = (SETS, ALPHAS, CLIENTS, SIGMAS, SHARES, BUDGETS)
    source, alpha, clients, sigma, share, times = (
        options[int(draw.integers(len(options)))] for options in names
    )
    trial, final = two_sets(load(source), seed, code)
    dealt = federate(
        trial, alpha=alpha, clients=clients, seed=seed % 2**31, size_sigma=sigma, share=share
    )
    counts = dealt.label_counts.numpy()
    noise = numpy_rng(seed, "noise").laplace(0, NOISE, counts.shape)
    numbers = parameter_count(
        build_from_text(default_model(trial.input_shape), trial.input_shape, trial.classes)
    )
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
    same = {
        "x_train": own.x_train[rest],
        "y_train": own.y_train[rest],
        "y_public": None,
        "class_names": names,
    }
    final = dataclasses.replace(own, name="hidden", note="", digest=digest, **same)
    validation = {
        "x_test": own.x_train[held],
        "y_test": own.y_train[held],
        "digest": f"{digest}, validation",
    }
    return dataclasses.replace(final, **validation), final


# ------------------------------------------------------------------------------------------------- at work
class Case:
    """A hidden federation, and what one person has done with it. UsageError for an empty code word."""

    def __init__(self, code: str, name: str = "") -> None:
        self.code, self.name = word(code), " ".join(str(name).split())
        self._hidden: Hidden = drawn(self.code)
        self.record = Record.of(self.code, self.name)

    @property
    def budget(self) -> int:
        """Bytes that a client may receive and send, together."""
        return self._hidden.budget

    def facts(self) -> Card:
        """What the server sees, in words."""
        return worked(*self._hidden.facts())

    def seen(self) -> Picture:
        """What the server sees, as a picture: samples of each client, and its classes with noise."""
        return seen(self._hidden.sizes, self._hidden.noisy, code=self.code)

    # ------------------------------------------------------------------------------------------------------------ tries
    def trial(self, method: str, **knobs: Any) -> Card:
        """Run a method on three seeds, and say its validation accuracy and its bytes; it becomes a try of the list.

        knobs: fields of the method, of local training (epochs, lr, …), or of FREE. UsageError for anything else, and
        for what the method cannot do here.
        """
        asked = self._checked(method, knobs)
        done = next((t for t in self.record.tries if (t.method, t.knobs) == (method, asked)), None)
        again = "" if done is None else " You had tried it before."
        if done is None:
            shares, sent, leaks = self._runs(self._hidden.trial, method, asked, TRIAL_SEEDS)
            done = Try(len(self.record.tries) + 1, method, asked, shares, sent, leaks)
            self.record.add(done)
        share = f"{100 * done.bytes / self.budget:.0f} % of the budget"
        over = "" if done.bytes <= self.budget else ": too much, it cannot be submitted"
        return worked(
            f"Try {done.number}: {done.title} ({done.settings}).{again}",
            f"Validation accuracy {number(done.band)} % ({len(done.validation)} seeds).",
            f"Bytes of a client, up and down: {data_size(done.bytes)}, {share}{over}.",
        )

    def tries(self) -> Picture:
        """All tries: validation accuracy against the bytes of a client, with the budget."""
        rows = []
        for t in self.record.tries:
            rows.append(
                Series(
                    t.title, f"try {t.number}", accuracies=t.validation, up=t.bytes, method=t.method
                )
            )
        return tried(rows, self.budget, code=self.code)

    def _checked(self, method: str, knobs: Mapping[str, Any]) -> dict[str, str]:
        """The settings as text, in the order of their names."""
        choose("method", method, METHODS)
        forbidden = "needs the clients' samples in one place, which this federation does not allow"
        demand(method != "centralized", f"Centralized training {forbidden}; choose another method.")
        known = {*(k.name for k in METHODS[method].fields()), *RECIPE_FIELDS, *FREE}
        for name in knobs:
            given = "in a capstone, because the federation is given; what can be set"
            allowed = name.removeprefix(f"{method}.") in known
            demand(
                allowed, f"{name!r} cannot be set for {method} {given}: {', '.join(sorted(known))}."
            )
        return {name: str(knobs[name]) for name in sorted(knobs)}

    def _runs(
        self, dataset: Any, method: str, knobs: Mapping[str, str], seeds: tuple[int, int]
    ) -> tuple[dict[int, float], int, str]:
        """{seed: accuracy on that data set's images}, the most bytes of a client, and what leaks."""
        first, count = seeds
        outcomes = compare([method], dataset=dataset, seed=first, seeds=count, **knobs)
        sent = max(sum(both) for o in outcomes for both in o.ledger.by_client().values())
        return {o.settings.seed: o.accuracy for o in outcomes}, sent, outcomes[0].plan.method.leaks

    # ------------------------------------------------------------------------------------------------------- submission
    def submit(self, choice: int | None, argument: str, name: str = "") -> Report:
        """Open the test images for try number `choice`: the report, which also says whether it is the first one.

        argument: why, in a sentence or more;   name: who, if `case` was not told. UsageError, with nothing opened, for
        a number that is no try, a try over the budget, or no argument.
        """
        tries, text = self.record.tries, " ".join(str(argument).split())
        demand(tries, "There is no try yet, so nothing can be submitted; try a method first.")
        if choice not in range(1, len(tries) + 1):
            what = "No try is chosen yet" if choice is None else f"There is no try {choice!r}"
            raise UsageError(f"{what}; choose one from 1 to {len(tries)}.")
        chosen = tries[choice - 1]
        costs = f"{chosen.bytes} bytes, {chosen.bytes / self.budget:.1f} times the budget of {self.budget} bytes"
        over = f"{chosen.title} costs a client {costs}, so it cannot be submitted"
        demand(
            chosen.bytes <= self.budget,
            f"{over}; choose a try within the budget, or try a method that sends less.",
        )
        short = f"Your argument has {len(text)} letters, but it should have at least {ENOUGH}"
        demand(len(text) >= ENOUGH, f"{short}; say in a sentence or more why you chose this try.")
        test, sent, leaks = self._runs(self._hidden.final, chosen.method, chosen.knobs, TEST_SEEDS)
        report = Report(
            code=self.code, name=name or self.name, number=len(self.record.submissions) + 1,
            facts=tuple(self._hidden.facts()), tries=tuple(tries), validation_images=len(self._hidden.trial.y_test),
            choice=choice, argument=text, test=test, test_images=len(self._hidden.final.y_test), bytes=sent,
            budget=self.budget, leaks=leaks, version=__version__,
            earlier=tuple(entry["accuracy"] for entry in self.record.submissions),
        )  # fmt: skip
        self.record.add(
            {"submission": report.number, "accuracy": report.band.mean, "choice": choice}
        )
        return report

    @staticmethod
    def explained(method: str) -> list[str]:
        """A line for each knob of a method, and one for what every method takes."""
        own = [f"{k.name} = {k.default}: {k.help}" for k in METHODS[method].fields()]
        every = ", ".join((*RECIPE_FIELDS, *FREE))
        return [*own, f"Of every method: {every}. For example model=mlp:32 is a smaller network."]

    def form(self) -> Any:
        """Tries, choice, argument and submission with buttons."""
        from .form import CaseForm

        return CaseForm(self)


def behind(code: str) -> Card:
    """For the teacher: what a code word has drawn."""
    h = drawn(word(code))
    sizes = f"sizes with σ = {h.sigma:g}, {100 * h.share:.0f} % of the training images"
    first = f"{h.code}: {h.source}, α = {h.alpha:g}, {h.clients} clients, {sizes}."
    return worked(
        first, f"Budget {h.budget} bytes, {h.budget / (4 * h.numbers):.1f} networks of a client."
    )
