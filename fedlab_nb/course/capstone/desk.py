"""A capstone as a learner works on it: try methods on validation images, choose, argue, submit.

    case = lesson.case("HARBOUR", name="Ada")
    case.seen()                              # what the server sees
    case.trial("fens", rounds=20)            # validation accuracy and bytes of a client
    case.tries()                             # all of them in one picture
    case.form()                              # the same with buttons
    report = case.submit(2, "Because …")     # opens the test images
    report.save("reports")

A code word draws the hidden federation: its data set, its clients, their sizes and the byte budget;
the same word gives the same federation on every machine. Two data sets are made of it. On the first
one choices are made: a fifth of the training images takes the place of the test images, which are
not in it at all. The second one has the test images; it is used for submissions alone. Clients and
their images are the same in both.
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
from ...data.dataset import hash_parts
from ...data.federation import assign_clients
from ...errors import UsageError, choose
from ...methods import METHODS
from ...models import build_from_text, choose_default_model, parameter_count
from ...plots import Picture
from ...plots.capstone import draw_class_counts, draw_tries
from ...plots.series import Series
from ...plots.words import data_size, format_letters, format_share
from ...rng import numpy_rng, seed_for
from ...studies import compare
from ...studies.settings import RECIPE_FIELDS
from ..kit import Card, worked
from .report import Record, Report, Try

FREE = ("model", "holdout", "init", "transform")  # settings of the run that a learner may choose
TRIAL_SEEDS = (0, 5)  # the first seed, and how many: below five seeds no band is shown
TEST_SEEDS = (100, 10)  # others: no network of a try is among those that are tested
LEAST_LETTERS = 20  # of an argument

# What a code word draws from.
SETS = ("digits", "glyphs:8g")
ALPHAS = (0.05, 0.1, 0.3, 1.0)
CLIENTS = (5, 8, 10, 12)
SIZE_SIGMAS = (0.0, 0.5, 1.0)  # of the lognormal sizes of the clients
SHARES = (0.6, 0.8, 1.0)  # of the training images that the clients have
BUDGETS = (0.7, 2.2, 4.0, 7.0, 12.0)  # of a client, in times the bytes of its network
NOISE = 3.0  # scale of the Laplace noise on each count of a client's classes: its mean size


@dataclass(frozen=True, eq=False)
class Hidden:
    """What a code word has drawn. The learner is shown `sizes`, `noisy`, `budget` and the network,
    and not the rest.

    trial: the data set for choices, with validation images in the place of the test images
    final: the data set with the test images;   noisy: `[M, C]`, whole numbers
    numbers: of a client's network;   budget: bytes of a client
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
        sizes = ", ".join(str(size) for size in self.sizes)
        return [
            f"{self.clients} clients, {self.trial.classes} classes, "
            f"{inputs} numbers for each sample.",
            f"Training samples of clients A to {format_letters(self.clients - 1)}: {sizes}.",
            f"The server has {len(self.trial.x_public)} samples without labels.",
            f"A client's network: {self.numbers} numbers, {4 * self.numbers} bytes.",
            f"Budget of a client, up and down together: {self.budget} bytes.",
        ]


def normalise_code(code: str) -> str:
    """A code word as it counts: without its spaces at the ends, in capitals. UsageError if nothing
    is left.
    """
    text = " ".join(str(code).split()).upper()
    if not text:
        raise UsageError(
            "The code word is empty; give the one that your teacher has chosen, or any word for "
            "practice."
        )
    return text


@functools.lru_cache(maxsize=8)
def draw_federation(code: str) -> Hidden:
    """The federation of a code word, which `normalise_code` has written."""
    seed = seed_for(0, "capstone", code)
    stream = numpy_rng(seed, "federation")

    def choose_one(options: tuple) -> Any:
        return options[int(stream.integers(len(options)))]

    source = choose_one(SETS)
    alpha = choose_one(ALPHAS)
    clients = choose_one(CLIENTS)
    sigma = choose_one(SIZE_SIGMAS)
    share = choose_one(SHARES)
    networks_in_budget = choose_one(BUDGETS)
    trial, final = split_dataset(load(source), seed, code)
    federation = federate(
        trial, alpha=alpha, clients=clients, seed=seed % 2**31, size_sigma=sigma, share=share
    )
    counts = federation.label_counts.numpy()
    noise = numpy_rng(seed, "noise").laplace(0, NOISE, counts.shape)
    model = choose_default_model(trial.input_shape)
    network = build_from_text(model, trial.input_shape, trial.classes)
    numbers = parameter_count(network)
    return Hidden(
        code=code,
        source=source,
        alpha=alpha,
        clients=clients,
        sigma=sigma,
        share=share,
        trial=assign_clients(trial, federation.shards),
        final=assign_clients(final, federation.shards),
        noisy=np.maximum(0, np.rint(counts + noise)).astype(int),
        numbers=numbers,
        budget=int(round(networks_in_budget * 4 * numbers, -2)),
    )


def split_dataset(dataset: Dataset, seed: int, code: str) -> tuple[Dataset, Dataset]:
    """The data set for choices and the one for the test. A fifth of the training images belongs to
    no client: these are the validation images.
    """
    order = numpy_rng(seed, "validation").permutation(len(dataset.y_train))
    validation_images = len(order) // 5
    validation_rows = order[:validation_images]
    train_rows = order[validation_images:]
    digest = hash_parts(dataset.digest, "capstone", code)
    final = dataclasses.replace(
        dataset,
        name="hidden",
        note="",
        digest=digest,
        x_train=dataset.x_train[train_rows],
        y_train=dataset.y_train[train_rows],
        y_public=None,
        class_names=tuple(str(c) for c in range(dataset.classes)),
    )
    trial = dataclasses.replace(
        final,
        x_test=dataset.x_train[validation_rows],
        y_test=dataset.y_train[validation_rows],
        digest=f"{digest}, validation",
    )
    return trial, final


# ------------------------------------------------------------------------------------------ at work
class Case:
    """A hidden federation, and what one person has done with it. UsageError for an empty code
    word.
    """

    def __init__(self, code: str, name: str = "") -> None:
        self.code = normalise_code(code)
        self.name = " ".join(str(name).split())
        self._hidden: Hidden = draw_federation(self.code)
        self.record = Record.load(self.code, self.name)

    @property
    def budget(self) -> int:
        """Bytes that a client may receive and send, together."""
        return self._hidden.budget

    def facts(self) -> Card:
        """What the server sees, in words."""
        return worked(*self._hidden.facts())

    def seen(self) -> Picture:
        """What the server sees, as a picture: samples of each client, and its classes with
        noise.
        """
        return draw_class_counts(self._hidden.sizes, self._hidden.noisy, code=self.code)

    # ---------------------------------------------------------------------------------------- tries
    def trial(self, method: str, **knobs: Any) -> Card:
        """Run a method on five seeds, and say its validation accuracy and its bytes; it becomes a
        try of the list.

        knobs: fields of the method, of local training (epochs, lr, …), or of FREE. UsageError for
        anything else, and for what the method cannot do here.
        """
        settings = self._check_settings(method, knobs)
        known = self.record.find(method, settings)
        if known is None:
            accuracies, sent, leaks = self._run(self._hidden.trial, method, settings, TRIAL_SEEDS)
            number_of_try = len(self.record.tries) + 1
            result = Try(number_of_try, method, settings, accuracies, sent, leaks)
            self.record.add(result)
        else:
            result = known
        title = f"Try {result.number}: {result.title} ({result.settings})."
        if known is not None:
            title += " You had tried it before."
        costs = f"{data_size(result.bytes)}, {100 * result.bytes / self.budget:.0f} % of the budget"
        if result.bytes > self.budget:
            costs += ": too much, it cannot be submitted"
        return worked(
            title,
            f"Validation accuracy {format_share(result.band)} % ({len(result.validation)} seeds).",
            f"Bytes of a client, up and down: {costs}.",
        )

    def tries(self, report: Report | None = None) -> Picture:
        """All tries: validation accuracy against the bytes of a client, with the budget. `report`: of a submission,
        whose test accuracy is marked.
        """
        rows = []
        for result in self.record.tries:
            rows.append(
                Series(
                    result.title,
                    f"try {result.number}",
                    accuracies=result.validation,
                    up=result.bytes,
                    method=result.method,
                )
            )
        tested = None
        if report is not None:
            tested = dataclasses.replace(rows[report.choice - 1], accuracies=report.test)
        return draw_tries(rows, self.budget, code=self.code, tested=tested)

    def _check_settings(self, method: str, knobs: Mapping[str, Any]) -> dict[str, str]:
        """The settings as text, in the order of their names; UsageError for what cannot be set
        here.
        """
        choose("method", method, METHODS)
        if method == "centralized":
            raise UsageError(
                "Centralized training needs the clients' samples in one place, which this "
                "federation does not allow; choose another method."
            )
        allowed = {*(knob.name for knob in METHODS[method].fields()), *RECIPE_FIELDS, *FREE}
        for name in knobs:
            if name.removeprefix(f"{method}.") not in allowed:
                raise UsageError(
                    f"{name!r} cannot be set for {method} in a capstone, because the federation is "
                    f"given; what can be set: {', '.join(sorted(allowed))}."
                )
        return {name: str(knobs[name]) for name in sorted(knobs)}

    def _run(
        self, dataset: Any, method: str, knobs: Mapping[str, str], seeds: tuple[int, int]
    ) -> tuple[dict[int, float], int, str]:
        """{seed: accuracy on that data set's images}, the most bytes of a client, and what leaks.

        seeds: the first one, and how many
        """
        first_seed, count = seeds
        outcomes = compare([method], dataset=dataset, seed=first_seed, seeds=count, **knobs)
        accuracies = {}
        most_bytes = 0
        for outcome in outcomes:
            accuracies[outcome.settings.seed] = outcome.accuracy
            for up, down in outcome.ledger.by_client().values():
                most_bytes = max(most_bytes, up + down)
        return accuracies, most_bytes, outcomes[0].plan.method.leaks

    # ----------------------------------------------------------------------------------- submission
    def submit(self, choice: int | None, argument: str, name: str = "") -> Report:
        """Open the test images for try number `choice`: the report, which also says whether it is
        the first one.

        argument: why, in a sentence or more;   name: who, if `case` was not told. UsageError, with
        nothing opened, for a number that is no try, a try over the budget, or no argument.
        """
        tries = self.record.tries
        chosen = self.check_choice(choice)
        text = self.check_argument(argument)
        test, sent, leaks = self._run(self._hidden.final, chosen.method, chosen.knobs, TEST_SEEDS)
        earlier = self.record.submissions
        report = Report(
            code=self.code,
            name=name or self.name,
            number=len(earlier) + 1,
            facts=tuple(self._hidden.facts()),
            tries=tuple(tries),
            validation_images=len(self._hidden.trial.y_test),
            choice=chosen.number,
            argument=text,
            test=test,
            test_images=len(self._hidden.final.y_test),
            bytes=sent,
            budget=self.budget,
            leaks=leaks,
            version=__version__,
            earlier=tuple(submission["accuracy"] for submission in earlier),
        )
        self.record.add(
            {"submission": report.number, "accuracy": report.band.mean, "choice": chosen.number}
        )
        return report

    @property
    def validation_images(self) -> int:
        """On how many images each try is judged."""
        return len(self._hidden.trial.y_test)

    @staticmethod
    def check_argument(argument: str) -> str:
        """The argument on one line; UsageError if it is too short."""
        text = " ".join(str(argument).split())
        if len(text) < LEAST_LETTERS:
            raise UsageError(
                f"Your argument has {len(text)} letters, but it should have at least "
                f"{LEAST_LETTERS}; say in a sentence or more why you chose this try."
            )
        return text

    def check_choice(self, choice: int | None) -> Try:
        """The try of that number; UsageError if it cannot be submitted."""
        tries = self.record.tries
        if not tries:
            raise UsageError(
                "There is no try yet, so nothing can be submitted; try a method first."
            )
        if choice not in range(1, len(tries) + 1):
            problem = "No try is chosen yet" if choice is None else f"There is no try {choice!r}"
            raise UsageError(f"{problem}; choose one from 1 to {len(tries)}.")
        chosen = tries[choice - 1]
        if chosen.bytes > self.budget:
            raise UsageError(
                f"{chosen.title} costs a client {data_size(chosen.bytes)}, "
                f"{chosen.bytes / self.budget:.1f} times the budget of {data_size(self.budget)}, so it "
                "cannot be submitted; choose a try within the budget, or try a method that sends "
                "less."
            )
        return chosen

    @staticmethod
    def describe_knobs(method: str) -> list[str]:
        """A line for each knob of a method, and one for what every method takes."""
        lines = [f"{knob.name} = {knob.default}: {knob.help}" for knob in METHODS[method].fields()]
        common = ", ".join((*RECIPE_FIELDS, *FREE))
        lines.append(f"Of every method: {common}. For example model=mlp:32 is a smaller network.")
        return lines

    def form(self) -> Any:
        """Tries, choice, argument and submission with buttons."""
        from .form import CaseForm

        return CaseForm(self)


def behind(code: str) -> Card:
    """For the teacher: what a code word has drawn."""
    hidden = draw_federation(normalise_code(code))
    networks = hidden.budget / (4 * hidden.numbers)
    return worked(
        f"{hidden.code}: {hidden.source}, α = {hidden.alpha:g}, {hidden.clients} clients, "
        f"sizes with σ = {hidden.sigma:g}, {100 * hidden.share:.0f} % of the training images.",
        f"Budget {hidden.budget} bytes, {networks:.1f} networks of a client.",
    )
