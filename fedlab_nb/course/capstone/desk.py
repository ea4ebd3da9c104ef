"""A capstone as a learner works on it: try methods on validation images, choose, argue, submit.

    case = lesson.case("HARBOUR", name="Ada")
    case.seen()                              # what the server sees
    case.trial("fens", rounds=20)            # validation accuracy and bytes of a client
    case.tries()                             # all of them in one picture
    case.form()                              # the same with buttons
    report = case.submit(2, "Because …")     # opens the test images
    report.save("reports")

A code word draws the hidden federation: its data set, its clients, their sizes and the byte budget.
The same word gives the same federation on every machine. Two data sets are made of it. The first
one is for choices: a fifth of the training images takes the place of the test images, which are not
in it at all. The second one has the test images, and is used for submissions alone. Clients and
their images are the same in both.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from ... import __version__
from ...data import Dataset, federate, load
from ...data.dataset import hash_parts_to_short_id
from ...data.federation import copy_dataset_with_clients_of_index_lists
from ...errors import UsageError, check_allowed_name
from ...methods import METHODS
from ...models import (
    build_untrained_network_of_first_model,
    choose_default_model_name,
    count_parameters,
)
from ...plots import Picture
from ...plots.capstone import draw_noisy_class_counts, draw_tries_against_budget
from ...plots.series import MethodResults
from ...plots.words import format_client_letters, format_data_size, format_percent_band
from ...rng import derive_stream_seed, make_numpy_generator
from ...studies import compare
from ...studies.settings import RECIPE_FIELDS
from ...studies.statistics import ValuesBySeed
from ...value_types import SettingValue
from ..kit import Card, make_worked_card
from ..kit.array_types import NoisyClientClassCounts
from .report import CapstoneRecord, Report, Submission, Try, ValueTextByKnob

if TYPE_CHECKING:
    from .form import CaseForm

FREE = ("model", "holdout", "init", "transform")  # settings of the run that a learner may choose


class SeedRange(NamedTuple):
    """Seeds in a row."""

    first: int
    count: int


TRIAL_SEEDS = SeedRange(0, 5)  # with fewer than five seeds no band is shown
TEST_SEEDS = SeedRange(100, 10)  # other seeds, so that no network of a try is tested again
LEAST_CHARACTERS = 20  # of an argument

# What a code word draws from.
SETS = ("digits", "glyphs:8g")
ALPHAS = (0.05, 0.1, 0.3, 1.0)
CLIENTS = (5, 8, 10, 12)
SIZE_SIGMAS = (0.0, 0.5, 1.0)  # of the lognormal sizes of the clients
SHARES = (0.6, 0.8, 1.0)  # of the training images that the clients have
BUDGETS = (0.7, 2.2, 4.0, 7.0, 12.0)  # of a client, in multiples of the bytes of its network
NOISE = 3.0  # scale of the Laplace noise on each count of a client's classes


class AccuraciesBytesAndLeaks(NamedTuple):
    """The results of a method on several seeds."""

    accuracies: ValuesBySeed  # 0–1
    most_client_bytes: int  # up and down of the client that sends and receives most
    leaks: str  # what leaks, in words


@dataclass(frozen=True, eq=False)
class HiddenFederation:
    """What a code word has drawn. The learner is shown `samples_per_client`, `noisy`, `budget` and the
    size of the network, and nothing else.

    code:    the code word
    source:  the data set that the federation is made from
    sigma:   spread of the clients' sizes, 0 for equal ones
    share:   share of the training images that the clients have
    trial:   the data set for choices, with validation images in the place of the test images
    final:   the data set with the test images
    noisy:   `[M, C]`, the clients' samples by class with noise, whole numbers
    numbers: parameters of a client's network
    budget:  bytes that a client may send and receive
    """

    code: str
    source: str
    alpha: float
    clients: int
    sigma: float
    share: float
    trial: Dataset
    final: Dataset
    noisy: NoisyClientClassCounts
    numbers: int
    budget: int

    @property
    def samples_per_client(self) -> list[int]:
        """Training samples of each client."""
        owner = self.trial.client_train
        return torch.bincount(owner[owner >= 0]).tolist()

    def list_facts_for_server(self) -> list[str]:
        """List what the server sees, one sentence for each fact."""
        inputs = int(np.prod(self.trial.input_shape))
        sizes = ", ".join(str(size) for size in self.samples_per_client)
        return [
            f"{self.clients} clients, {self.trial.classes} classes, {inputs} numbers for "
            "each sample.",
            f"Training samples of clients A to {format_client_letters(self.clients - 1)}: {sizes}.",
            f"The server has {len(self.trial.x_public)} samples without labels.",
            f"A client's network: {self.numbers:,} numbers, {4 * self.numbers:,} bytes.",
            f"Budget of a client, up and down together: {self.budget:,} bytes.",
        ]


def normalise_code_word(code_word: str) -> str:
    """Return a code word in capitals, with single spaces and none at its ends. UsageError if it is
    empty.
    """
    text = " ".join(str(code_word).split()).upper()
    if not text:
        raise UsageError(
            "The code word is empty; give the one that your teacher has chosen, or any "
            "word for practice."
        )
    return text


@functools.lru_cache(maxsize=8)
def draw_random_federation_of_code_word(code_word: str) -> HiddenFederation:
    """Draw the federation of a code word in the form of `normalise_code_word`."""
    seed = derive_stream_seed(0, "capstone", code_word)
    stream = make_numpy_generator(seed, "federation")

    def choose_one(options: tuple) -> Any:
        return options[int(stream.integers(len(options)))]

    source = choose_one(SETS)
    alpha = choose_one(ALPHAS)
    clients = choose_one(CLIENTS)
    sigma = choose_one(SIZE_SIGMAS)
    share = choose_one(SHARES)
    networks_in_budget = choose_one(BUDGETS)
    trial, final = split_off_validation_images(load(source), seed, code_word)
    federation = federate(
        trial, alpha=alpha, clients=clients, seed=seed % 2**31, size_sigma=sigma, share=share
    )
    counts = federation.label_counts.numpy()
    noise = make_numpy_generator(seed, "noise").laplace(0, NOISE, counts.shape)
    model = choose_default_model_name(trial.input_shape)
    network = build_untrained_network_of_first_model(model, trial.input_shape, trial.classes)
    numbers = count_parameters(network)
    return HiddenFederation(
        code=code_word,
        source=source,
        alpha=alpha,
        clients=clients,
        sigma=sigma,
        share=share,
        trial=copy_dataset_with_clients_of_index_lists(trial, federation.shards),
        final=copy_dataset_with_clients_of_index_lists(final, federation.shards),
        noisy=np.maximum(0, np.rint(counts + noise)).astype(int),
        numbers=numbers,
        budget=int(round(networks_in_budget * 4 * numbers, -2)),
    )


class TrialAndFinalDataset(NamedTuple):
    """Two data sets with the same clients."""

    trial: Dataset  # its test images are validation images, for choices
    final: Dataset  # with the test images, for submissions


def split_off_validation_images(
    dataset: Dataset, seed: int, code_word: str
) -> TrialAndFinalDataset:
    """Make the data set for choices and the one for the test. A fifth of the training images, the
    validation images, belongs to no client.
    """
    order = make_numpy_generator(seed, "validation").permutation(len(dataset.y_train))
    validation_images = len(order) // 5
    validation_rows = order[:validation_images]
    train_rows = order[validation_images:]
    digest = hash_parts_to_short_id(dataset.digest, "capstone", code_word)
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
    return TrialAndFinalDataset(trial, final)


# ------------------------------------------------------------------------------------------ at work
class Case:
    """A hidden federation, and one person's tries and submissions on it. UsageError for an empty
    code word.
    """

    def __init__(self, code: str, name: str = "") -> None:
        self.code = normalise_code_word(code)
        self.name = " ".join(str(name).split())
        self._hidden: HiddenFederation = draw_random_federation_of_code_word(self.code)
        self.record = CapstoneRecord.load(self.code, self.name)

    @property
    def budget_in_bytes(self) -> int:
        """Bytes that a client may receive and send, together."""
        return self._hidden.budget

    def facts(self) -> Card:
        """Show what the server sees, in words."""
        return make_worked_card(*self._hidden.list_facts_for_server())

    def seen(self) -> Picture:
        """Draw what the server sees: each client's number of samples, and its classes with noise."""
        return draw_noisy_class_counts(
            self._hidden.samples_per_client, self._hidden.noisy, federation_code=self.code
        )

    # ---------------------------------------------------------------------------------------- tries
    def trial(self, method: str, **knobs: SettingValue) -> Card:
        """Run a method on five seeds, add it to the tries, and show its validation accuracy and
        bytes.

        knobs: fields of the method, of local training (epochs, lr, …), or of FREE
        Raises UsageError for any other knob, and for what the method cannot do here.
        """
        settings = self._format_knob_values_or_raise(method, knobs)
        earlier_try = self.record.find_try_with_settings(method, settings)
        if earlier_try is None:
            result_of_seeds = self._run_on_seeds(self._hidden.trial, method, settings, TRIAL_SEEDS)
            number_of_try = len(self.record.tries) + 1
            result = Try(number_of_try, method, settings, *result_of_seeds)
            self.record.add_and_store(result)
        else:
            result = earlier_try
        title = f"Try {result.number}: {result.method_title} ({result.knobs_in_words})."
        if earlier_try is not None:
            title += " You had tried it before."
        cost_text = f"{format_data_size(result.bytes)}, {100 * result.bytes / self.budget_in_bytes:.0f} % of the budget"
        if result.bytes > self.budget_in_bytes:
            cost_text += ": too much, it cannot be submitted"
        return make_worked_card(
            title,
            (
                f"Validation accuracy {format_percent_band(result.validation_band)} % "
                f"({len(result.validation)} seeds)."
            ),
            f"Bytes of a client, up and down: {cost_text}.",
        )

    def tries(self, report: Report | None = None) -> Picture:
        """Draw all tries: validation accuracy against the bytes of a client, with the budget.

        report: of a submission, whose test accuracy is marked
        """
        rows = []
        for result in self.record.tries:
            rows.append(
                MethodResults(
                    result.method_title,
                    f"try {result.number}",
                    accuracies=result.validation,
                    up=result.bytes,
                    method=result.method,
                )
            )
        submitted_try = None
        if report is not None:
            submitted_try = dataclasses.replace(rows[report.choice - 1], accuracies=report.test)
        return draw_tries_against_budget(
            rows, self.budget_in_bytes, federation_code=self.code, tested_try=submitted_try
        )

    def _format_knob_values_or_raise(
        self, method: str, knobs: Mapping[str, SettingValue]
    ) -> ValueTextByKnob:
        """Return the settings as text, sorted by name. UsageError for one that cannot be set here."""
        check_allowed_name("method", method, METHODS)
        if method == "centralized":
            raise UsageError(
                "Centralized training needs the clients' samples in one place, which "
                "this federation does not allow; choose another method."
            )
        allowed = {*(knob.name for knob in METHODS[method].fields()), *RECIPE_FIELDS, *FREE}
        for name in knobs:
            if name.removeprefix(f"{method}.") not in allowed:
                raise UsageError(
                    f"{name!r} cannot be set for {method} in a capstone, because the "
                    f"federation is given; what can be set: {', '.join(sorted(allowed))}."
                )
        return {name: str(knobs[name]) for name in sorted(knobs)}

    def _run_on_seeds(
        self, dataset: Dataset, method: str, knobs: ValueTextByKnob, seeds: SeedRange
    ) -> AccuraciesBytesAndLeaks:
        """Run a method once for each seed, and measure it on the test images of `dataset`."""
        outcomes = compare([method], dataset=dataset, seed=seeds.first, seeds=seeds.count, **knobs)
        accuracies = {}
        most_bytes = 0
        for outcome in outcomes:
            accuracies[outcome.settings.seed] = outcome.accuracy
            for up, down in outcome.ledger.by_client().values():
                most_bytes = max(most_bytes, up + down)
        return AccuraciesBytesAndLeaks(accuracies, most_bytes, outcomes[0].plan.method.leaks)

    # ----------------------------------------------------------------------------------- submission
    def submit(self, choice: int | None, argument: str, name: str = "") -> Report:
        """Open the test images for try number `choice`, and make the report. It also says how often
        they were opened before.

        argument: why this try, in a sentence or more
        name:     the person's name, if `case` was not given it
        Raises UsageError for a number that is no try, a try over the budget, or a missing argument. The
        test images stay closed then.
        """
        tries = self.record.tries
        chosen_try = self.get_try_to_submit_or_raise(choice)
        text = self.check_argument_and_join_its_lines(argument)
        test_results = self._run_on_seeds(
            self._hidden.final, chosen_try.method, chosen_try.knobs, TEST_SEEDS
        )
        earlier_submissions = self.record.submissions
        report = Report(
            code=self.code,
            name=name or self.name,
            number=len(earlier_submissions) + 1,
            facts=tuple(self._hidden.list_facts_for_server()),
            tries=tuple(tries),
            validation_images=len(self._hidden.trial.y_test),
            choice=chosen_try.number,
            argument=text,
            test=test_results.accuracies,
            test_images=len(self._hidden.final.y_test),
            bytes=test_results.most_client_bytes,
            budget=self.budget_in_bytes,
            leaks=test_results.leaks,
            version=__version__,
            earlier=tuple(submission["accuracy"] for submission in earlier_submissions),
        )
        submission = Submission(
            submission=report.number, accuracy=report.test_band.mean, choice=chosen_try.number
        )
        self.record.add_and_store(submission)
        return report

    @property
    def validation_images(self) -> int:
        """The number of validation images, on which each try is judged."""
        return len(self._hidden.trial.y_test)

    @staticmethod
    def check_argument_and_join_its_lines(argument: str) -> str:
        """Return the argument on one line; UsageError if it is too short."""
        text = " ".join(str(argument).split())
        if len(text) < LEAST_CHARACTERS:
            raise UsageError(
                f"Your argument has {len(text)} characters, but it should have at least "
                f"{LEAST_CHARACTERS}; say in a sentence or more why you chose this try."
            )
        return text

    def get_try_to_submit_or_raise(self, try_number_from_1: int | None) -> Try:
        """Return the try with this number. UsageError for None, and if it cannot be submitted."""
        tries = self.record.tries
        if not tries:
            raise UsageError(
                "There is no try yet, so nothing can be submitted; try a method first."
            )
        if try_number_from_1 not in range(1, len(tries) + 1):
            problem = (
                "No try is chosen yet"
                if try_number_from_1 is None
                else f"There is no try {try_number_from_1!r}"
            )
            raise UsageError(f"{problem}; choose one from 1 to {len(tries)}.")
        chosen_try = tries[try_number_from_1 - 1]
        if chosen_try.bytes > self.budget_in_bytes:
            raise UsageError(
                f"{chosen_try.method_title} costs a client {format_data_size(chosen_try.bytes)}, "
                f"{chosen_try.bytes / self.budget_in_bytes:.1f} times the budget of "
                f"{format_data_size(self.budget_in_bytes)}, so it cannot be submitted; choose a "
                "try within the budget, or try a method that sends less."
            )
        return chosen_try

    @staticmethod
    def list_knob_description_lines(method: str) -> list[str]:
        """List a line for each knob of a method, and one for what every method takes."""
        lines = [f"{knob.name} = {knob.default}: {knob.help}" for knob in METHODS[method].fields()]
        common = ", ".join((*RECIPE_FIELDS, *FREE))
        lines.append(f"Of every method: {common}. For example model=mlp:32 is a smaller network.")
        return lines

    def form(self) -> CaseForm:
        """Make the form: tries, choice, argument and submission with buttons."""
        from .form import CaseForm

        return CaseForm(self)


def behind(code_word: str) -> Card:
    """Show, for the teacher, what a code word has drawn."""
    hidden = draw_random_federation_of_code_word(normalise_code_word(code_word))
    networks = hidden.budget / (4 * hidden.numbers)
    return make_worked_card(
        f"{hidden.code}: {hidden.source}, α = {hidden.alpha:g}, {hidden.clients} clients, "
        f"sizes with σ = {hidden.sigma:g}, {100 * hidden.share:.0f} % of the training "
        "images.",
        f"Budget {hidden.budget} bytes, {networks:.1f} networks of a client.",
    )
