"""Run methods on one federation: `job` yields events as work goes on, `run` and `compare` wait for the end.

Clients are trained once for a setting and shared by all methods; finished runs are kept in the store, one by one, so
that nothing computed is lost when a later one fails or is stopped. Test images are used here only, to report.
"""

import functools
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch

from ..data import Federation
from ..errors import RunError, UsageError, check_names, check_whole_number, parse_number
from ..methods import METHODS, GlobalModel, Progress
from ..methods.context import Context
from ..methods.memory import check_memory, explain_allocation
from ..methods.run_outputs import ClientsAlone, Report, check_report_type
from ..models import Network, parameter_count
from ..models.state import all_finite
from ..rng import numpy_rng
from ..torch_switches import step_with_default_switches, use_default_switches
from ..training import (
    ClientModels,
    Tick,
    cache_passes,
    compute_class_accuracies,
    compute_client_accuracies,
    compute_group_accuracies,
    train_clients,
)
from ..training.backend import choose_backend, configure_torch
from ..training.clients import group_by_architecture
from ..training.loop import Shard
from .frozen_features import make_federation
from .inputs import find_inputs
from .outcome import Outcome, ValidationSamples, find_validation_samples
from .results import Outcomes
from .settings import Plan, Settings, make_plans
from .store import Store, StoredEntry, TrainedClients, delete_oldest_beyond_limit

TEST_POINTS = 500
# Federations whose clients are trained as one stack, and numbers in all their models, at most.
MOST_TOGETHER = 8
MOST_NUMBERS = 2**24
# Phases in the ledger of seconds.
LOCAL = "local training"
CURVE = "live curve"
EVALUATION = "evaluation"


@dataclass(frozen=True)
class Event:
    """One step of a job. `curve`: a new point of the live curve; `report`: what the method has to show so far
    (of the type that it declares), None if there is nothing; `outcome`: this method is finished; `error`: it failed,
    and the job goes on with the others."""

    method: str
    seed: int
    phase: str = ""
    done: int = 0
    total: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    curve: dict[str, Any] | None = None
    report: Report | None = None
    outcome: Outcome | None = None
    error: Exception | None = None


_trained_clients = TrainedClients()


@functools.lru_cache(maxsize=12)
def _make_federation_once(digest: str, **options: Any) -> Federation:
    """The federation, kept for the next method; `digest` makes a file that has changed another data set."""
    return make_federation(**options)


def choose_test_points(samples: int) -> np.ndarray:
    """Indices of the fixed test points that pictures show: at most TEST_POINTS, the same for every method and seed."""
    if samples <= TEST_POINTS:
        return np.arange(samples)
    return np.sort(numpy_rng(0, "test points").choice(samples, TEST_POINTS, replace=False))


class Run:
    """One method on one federation.

    clients: the trained clients that are kept in memory;   cache: whether the store on the disk is used, too
    next_plans: plans of runs to come, whose clients may be trained together with these
    """

    def __init__(
        self, plan: Plan, clients: TrainedClients, cache: bool, next_plans: Sequence[Plan] = ()
    ) -> None:
        self.plan = plan
        self.settings = plan.settings
        self.next_plans = next_plans
        self.clients = clients
        self.cache = cache
        self.store = Store("clients") if cache else None
        self.federation = _make_federation_once(
            plan.digest, **plan.settings.make_federation_arguments()
        )
        self.history: list[dict[str, Any]] = []
        self.seconds: dict[str, float] = {}
        self.clients_cached = False
        self.starts_locally = False
        # This run's share of the time of local training; other runs, trained together with it, have the rest.
        self.time_share = 1.0
        # Trained clients that are not stored yet, since the time of their phase is not complete.
        self._unstored_states: list[dict[str, torch.Tensor]] | None = None

    def prepare(self) -> None:
        """Make the context, and the test images ready for curves."""
        self.ctx = Context(
            self.federation,
            recall=self._recall_clients,
            remember=self._remember_clients,
            train=self._train,
            seed=self.settings.seed,
            device=self.settings.device,
            backend=self.settings.backend,
            init=self.settings.init,
            poison=self.settings.poison,
            architectures=self.plan.architectures,
            recipe=self.plan.recipe,
            holdout=self.plan.holdout,
            scale=self.plan.scale,
        )
        dataset = self.federation.dataset
        self.x_test = dataset.x_test.to(self.ctx.device, self.ctx.dtype)
        self.y_test = dataset.y_test.to(self.ctx.device)

    # ------------------------------------------------------------------------------------------- the trained clients
    def _recall_clients(self) -> list[dict[str, torch.Tensor]] | None:
        """The states of clients that were trained before, or None."""
        entry = self.clients.get(self.plan.make_clients_key(), self.store)
        if entry is None:
            return None
        self.clients_cached = True
        self.history = [dict(point) for point in entry["history"]]
        self.seconds[LOCAL] = entry["seconds"]
        return entry["states"]

    def _train(self, models: list[Network], shards: list[Shard]) -> Iterator[Tick]:
        """Train this federation's clients, and with them, as one stack, those of federations to come.

        That takes as many steps as one federation takes, each a little wider. Every client becomes what it would be
        alone, to rounding.
        """
        companions = self._find_companions(models)
        models_of = {run: run.ctx.send_initial_models() for run in companions}
        all_models = list(models)
        all_shards = list(shards)
        seeds = [self.settings.seed] * len(models)
        ids = list(self.ctx.ids)
        for run in companions:
            all_models += models_of[run]
            all_shards += [run.ctx.private.train(k) for k in range(run.ctx.clients_count)]
            seeds += [run.settings.seed] * len(models_of[run])
            ids += run.ctx.ids
        self.time_share = 1 / (1 + len(companions))
        for tick in train_clients(
            all_models, all_shards, self.ctx.recipe, seed=seeds, ids=ids, backend=self.ctx.backend
        ):
            if tick.fresh:
                step = Progress(LOCAL, tick.done, tick.total)
                for run in companions:
                    clients = ClientsAlone(ClientModels(models_of[run]))
                    run.history.append(run._make_point(step, clients))
            yield tick
        for run in companions:
            parameters = (p for model in models_of[run] for p in model.parameters())
            if all_finite(parameters):
                run.seconds[LOCAL] = self.seconds[LOCAL]
                run._remember_clients(ClientModels(models_of[run]))
                run._store_clients()

    def _find_companions(self, models: list[Network]) -> list["Run"]:
        """Those of the next runs of this method whose clients, not yet trained, can join the stack of these."""
        if len(group_by_architecture(models)) > 1:
            return []
        shape = self.ctx.input_shape
        backend = choose_backend(
            self.ctx.backend, self.ctx.device.type, models[0], shape, len(models)
        )
        if backend != "stacked":
            return []
        numbers = sum(parameter_count(model) for model in models)
        most = min(MOST_TOGETHER, MOST_NUMBERS // numbers)
        companions: list[Run] = []
        keys = {self.plan.make_clients_key()}
        for plan in self.next_plans:
            if len(keys) >= most:
                break
            if not can_train_together(plan, self.plan):
                continue
            key = plan.make_clients_key()
            if key in keys:
                continue
            is_trained = self.clients.get(key, self.store) is not None
            is_done = self.cache and Store("runs").has(plan.make_run_key())
            if not is_trained and not is_done:
                keys.add(key)
                run = Run(plan, self.clients, self.cache)
                run.prepare()
                companions.append(run)
        return companions

    def _remember_clients(self, trained: ClientModels) -> None:
        """Keep the states until `_store_clients` is called."""
        states = []
        for k in range(len(trained)):
            states.append({name: tensor.cpu() for name, tensor in trained.state(k).items()})
        self._unstored_states = states

    def _store_clients(self) -> None:
        """Put the trained clients away, once the time of their phase is complete."""
        if self._unstored_states is None:
            return
        entry = {
            "states": self._unstored_states,
            "history": [dict(point) for point in self.history if point["phase"] == LOCAL],
            "seconds": self.seconds.get(LOCAL, 0.0),
        }
        self.clients.put(self.plan.make_clients_key(), entry, self.store)
        self._unstored_states = None

    # ------------------------------------------------------------------------------------------- the run
    def _make_point(self, step: Progress, model: GlobalModel) -> dict[str, Any]:
        """A point of the curve. Local training fills the first half of a run that starts with it."""
        progress = step.done / max(step.total, 1)
        if step.phase == LOCAL:
            progress = progress / 2
        elif self.starts_locally:
            progress = 0.5 + progress / 2
        return {
            "phase": step.phase,
            "progress": progress,
            "accuracy": model.accuracy(self.x_test, self.y_test),
            "bytes": self.ctx.link.ledger.total,
        }

    def run_steps(self) -> Generator[Event, None, Outcome]:
        """The whole run: its events, and the outcome at the end."""
        self.prepare()
        self.plan.method.validate(self.ctx)
        self.plan.method.check_poison(self.ctx)
        matrices = self.plan.method.square_matrices(self.ctx)
        check_memory(self.plan.label, matrices, self.ctx.device)
        try:
            model = yield from self.record_progress(self.plan.method.run(self.ctx))
            return self.evaluate(model)
        except (MemoryError, RuntimeError) as error:
            full = explain_allocation(self.plan.label, error, self.ctx.device)
            if full is None:
                raise
            raise full from None

    def record_progress(
        self, generator: Generator[Progress, None, Any]
    ) -> Generator[Event, None, Any]:
        """Carry out `generator`, its time and its curve written down; returns what it returns."""
        phase = ""
        start = time.perf_counter()
        while True:
            try:
                step = next(generator)
            except StopIteration as stop:
                # What follows the last step is the server's.
                self._add_seconds("server", time.perf_counter() - start)
                self._store_clients()
                return stop.value
            now = time.perf_counter()
            phase = step.phase
            if phase != LOCAL:
                self._store_clients()
                self._add_seconds(phase, now - start)
            elif not self.clients_cached:
                self._add_seconds(phase, (now - start) * self.time_share)
            self.starts_locally |= phase == LOCAL
            point = None
            report = None
            if step.model is not None:
                if step.model.report.known_fields():
                    report = step.model.report
                point = self._make_point(step, step.model)
                self.history.append(point)
                self._add_seconds(CURVE, time.perf_counter() - now)
            yield Event(
                self.plan.name,
                self.settings.seed,
                phase,
                step.done,
                step.total,
                step.metrics,
                point,
                report,
            )
            # The caller's time between two steps is not counted.
            start = time.perf_counter()

    def _add_seconds(self, phase: str, seconds: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    @torch.no_grad()
    @cache_passes()
    def evaluate(self, model: GlobalModel) -> Outcome:
        """The outcome of the run: its `model` on the test images and on those for choices."""
        start = time.perf_counter()
        federation = self.federation
        x = self.x_test
        y = self.y_test
        tested = model.tested(x, y)
        check_scores(tested.scores, self.plan.label)
        predictions = tested.scores.argmax(1)
        per_class, per_client = self._measure_groups(predictions, tested.client_predictions)
        points = choose_test_points(len(y))
        report = check_report_type(model.measured(x, y), self.plan.method.report)
        validation_accuracy = None
        validation_on = ""
        validation = find_validation_samples(self.ctx, federation, self.plan.method.holds_out)
        if validation is not None:
            x_validation, y_validation, validation_on = validation
            validation_accuracy = model.accuracy(x_validation, y_validation)
        unseen = {
            name: model.accuracy(x_unseen, y_unseen)
            for name, (x_unseen, y_unseen) in self.load_unseen().items()
        }
        ledger = self.ctx.link.ledger
        last_point = {
            "phase": "end",
            "progress": 1.0,
            "accuracy": tested.accuracy,
            "bytes": ledger.total,
        }
        features = model.features(x)[points].float().cpu().numpy()
        self.seconds[EVALUATION] = time.perf_counter() - start
        inputs = None
        if not self.settings.reads_features:
            inputs = find_inputs(self.plan, federation.dataset)
        return Outcome(
            plan=self.plan,
            accuracy=tested.accuracy,
            calibration=tested.calibration,
            accuracy_validation=validation_accuracy,
            validation_on=validation_on,
            per_class=[None if np.isnan(share) else share for share in per_class.tolist()],
            per_client=per_client.tolist(),
            ledger=ledger,
            history=[*self.history, last_point],
            seconds=self.seconds,
            parameters=model.parameters,
            label_counts=federation.label_counts.numpy(),
            skew=asdict(federation.skew) | {"moved": federation.moved},
            test_features=features,
            test_labels=y[points].cpu().numpy(),
            test_predictions=predictions[points].cpu().numpy(),
            unseen=unseen,
            report=report,
            clients_cached=self.clients_cached,
            _model=model,
            _inputs=inputs,
            _run_again=functools.partial(run_again, self.plan),
        )

    def _measure_groups(
        self, predictions: torch.Tensor, client_predictions: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The accuracies of the classes `[C]`, and of the clients `[M]`.

        predictions: `[N]`;   client_predictions: `[M, N]` where each client has a model of its own. A class then has
        the mean over their models, a client what its own one reaches.
        """
        if client_predictions is None:
            per_class = compute_class_accuracies(predictions, self.y_test, self.federation.classes)
            return per_class, self._measure_clients(predictions, per_class)
        class_accuracies = []
        own_accuracies = []
        for client, own in enumerate(client_predictions):
            per_class = compute_class_accuracies(own, self.y_test, self.federation.classes)
            class_accuracies.append(per_class)
            own_accuracies.append(self._measure_clients(own, per_class)[client])
        return torch.stack(class_accuracies).mean(0), torch.stack(own_accuracies)

    def _measure_clients(self, predictions: torch.Tensor, per_class: torch.Tensor) -> torch.Tensor:
        """The accuracy for each client, `[M]`: on its own test samples where the data name these, else on its mix of
        labels."""
        federation = self.federation
        owners = federation.dataset.client_test if federation.partition == "natural" else None
        if owners is None:
            return compute_client_accuracies(per_class, federation.label_counts)
        count = len(federation.dataset.client_names)
        everybody = compute_group_accuracies(predictions == self.y_test, owners, count)
        return everybody[list(federation.ids)]

    def load_unseen(self) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """`(x, y)` of the clients that take no part, by their names or numbers; for the report alone."""
        everybody = self.federation.whole
        if everybody is None:
            return {}
        dataset = self.federation.dataset
        has_names = self.federation.partition == "natural" and bool(dataset.client_names)
        x_train = dataset.x_train.to(self.ctx.dtype)
        samples = {}
        for k in self.federation.unseen:
            rows = everybody.shards[k]
            x = x_train[rows].to(self.ctx.device)
            y = dataset.y_train[rows].to(self.ctx.device)
            samples[dataset.client_names[k] if has_names else str(k)] = (x, y)
        return samples


def can_train_together(plan: Plan, other: Plan) -> bool:
    """Whether the clients of two runs fit into one stack."""
    return (
        plan.name == other.name
        and plan.architectures == other.architectures
        and plan.recipe == other.recipe
        and plan.settings.backend == other.settings.backend
        and plan.settings.device == other.settings.device
    )


def check_scores(scores: torch.Tensor, title: str) -> None:
    """RunError where scores `[N, C]` are not finite, unless some are -inf, the logarithm of a probability of 0."""
    is_finite = bool(torch.isfinite(scores).all())
    if not is_finite and not bool((scores == -torch.inf).any()):
        raise RunError(f"{title} gave scores that are not finite; use a smaller learning rate.")


def load_validation_samples(outcome: Outcome) -> ValidationSamples | None:
    """The samples on which `outcome.accuracy_validation` was measured, as `find_validation_samples` gives them."""
    if not outcome.validation_on:
        return None
    run = Run(outcome.plan, TrainedClients(), cache=False)
    run.prepare()
    run.ctx.private.held_out_used = outcome.validation_on == "public"
    return find_validation_samples(run.ctx, run.federation, outcome.plan.method.holds_out)


# ------------------------------------------------------------------------------------------------ one run and many
def run_plan(
    plan: Plan, clients: TrainedClients, cache: bool, next_plans: Sequence[Plan] = ()
) -> Generator[Event, None, None]:
    """Events of one plan, the last one with its outcome. `next_plans`: the plans after it."""
    seed = plan.settings.seed
    stored = load_stored_outcome(plan) if cache else None
    if stored is not None:
        yield Event(plan.name, seed, "remembered", 1, 1, outcome=stored)
        return
    run = Run(plan, clients, cache, next_plans)
    with configure_torch(plan.settings.device, run.federation.dataset.input_shape):
        outcome = yield from run.run_steps()
    if cache:
        Store("runs").put(plan.make_run_key(), *outcome.to_entry())
        delete_oldest_beyond_limit()
    yield Event(plan.name, seed, "done", 1, 1, outcome=outcome)


def is_stored(plan: Plan) -> bool:
    """Whether the run is in the store."""
    return Store("runs").has(plan.make_run_key())


def are_clients_stored(plan: Plan) -> bool:
    """Whether the trained clients of a run are in memory or in the store."""
    return _trained_clients.has(plan.make_clients_key(), Store("clients"))


def run_again(plan: Plan) -> Outcome:
    """A stored run once more, from its stored clients."""
    with use_default_switches():
        return run_to_end(Run(plan, _trained_clients, cache=True).run_steps())


def load_stored_outcome(plan: Plan) -> Outcome | None:
    """The outcome in the store, or None."""
    entry = Store("runs").get(plan.make_run_key())
    return None if entry is None else restore_outcome(plan, entry)


def restore_outcome(plan: Plan, entry: StoredEntry) -> Outcome:
    """An outcome from its stored form."""
    return Outcome.from_entry(*entry, plan=plan, run_again=functools.partial(run_again, plan))


def run_to_end(generator: Generator[Any, None, Any]) -> Any:
    """Run a generator whose steps nobody watches; returns what it returns."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return end.value


def job(
    methods: str | Sequence[str], *, seeds: int = 1, cache: bool = True, **settings: Any
) -> Generator[Event, None, None]:
    """Run `methods` on `seeds` federations (seed, seed+1, …); a generator of Events.

    Wrong settings raise UsageError before anything is computed. If a method fails, it yields an Event with its `error`,
    and the other methods go on. If you close the generator, the work stops after the present step. Finished results
    stay in the store.
    """
    names = check_names("methods", methods)
    if names == ["all"]:
        names = list(METHODS)
    with use_default_switches():
        base = Settings.make(**settings)
    plans = []
    for i in range(check_whole_number("seeds", parse_number(seeds), 1, 1000)):
        plans += make_plans(replace(base, seed=base.seed + i), names)
    return run_plans(plans, cache)


def run_plans(
    plans: Sequence[Plan], cache: bool, together: bool = False
) -> Generator[Event, None, None]:
    """Events of all plans, one plan after the other. `together`: clients of several of them may be trained as one
    stack, which takes less time, and gives what they give alone to rounding."""
    clients = _trained_clients if cache else TrainedClients()
    for i, plan in enumerate(plans):
        try:
            next_plans = plans[i + 1 :] if together else ()
            yield from step_with_default_switches(run_plan(plan, clients, cache, next_plans))
        except Exception as error:
            yield Event(plan.name, plan.settings.seed, "failed", error=error)


def compare(
    methods: str | Sequence[str], *, seeds: int = 1, cache: bool = True, **settings: Any
) -> Outcomes:
    """Run several methods on the same federation(s). The clients are trained once for all of them. If a method fails,
    its error is raised after the other methods have ended."""
    outcomes = Outcomes()
    first_error: Exception | None = None
    for event in job(methods, seeds=seeds, cache=cache, **settings):
        if event.outcome is not None:
            outcomes.append(event.outcome)
        if event.error is not None and first_error is None:
            first_error = event.error
    if first_error is not None:
        raise first_error
    return outcomes


def run(method: str, *, seeds: int = 1, cache: bool = True, **settings: Any) -> Any:
    """Run one method: an Outcome, or with `seeds` > 1 the Outcomes of that many seeds, counted up from `seed`.

    settings: those of `Settings`; recipe and method fields may be given too (`epochs=20`, `rounds=100`)
    dataset: a name, a path, arrays (a mapping of x_train, y_train, x_test, y_test, …), or a Dataset
    federation: what `federate` gives, perhaps changed by hand: the partition of all seeds, which then vary the training
        alone. `seed` is that of the federation unless it is given; UsageError for a setting that contradicts it
    """
    if not isinstance(method, str):
        raise UsageError(
            f"run takes one method's name, but got {method!r}; for several use fl.compare."
        )
    outcomes = compare(method, seeds=seeds, cache=cache, **settings)
    return outcomes if len(outcomes) > 1 else outcomes[0]
