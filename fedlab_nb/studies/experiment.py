"""Run methods on one federation: `job` yields events while it works, `run` and `compare` wait for the end.

Clients are trained once for a setting and shared by all methods. Each run is stored as soon as it is finished, so that
no result is lost when a later run fails or is stopped. Test images are used only here, to report.
"""

import functools
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar, overload

import numpy as np
import torch

from ..data import Federation
from ..data.array_types import IndexArray
from ..errors import (
    RunError,
    UsageError,
    check_and_list_unique_names,
    check_whole_number,
    parse_if_number,
)
from ..methods import METHODS, GlobalModel, Progress
from ..methods.context import Context
from ..methods.memory import check_matrices_fit_in_memory, make_run_error_if_out_of_memory
from ..methods.run_outputs import ClientsAlone, Report, check_report_type_and_copy_arrays
from ..models import Network, count_parameters
from ..models.state import ModelState, are_all_finite
from ..rng import make_numpy_generator
from ..tensor_types import (
    AccuracyPerClass,
    AccuracyPerClient,
    ClassScores,
    ClientPredictions,
    Predictions,
)
from ..torch_switches import iterate_with_default_torch_switches, use_default_torch_switches
from ..training import (
    ClientModels,
    EpochProgress,
    cache_forward_passes,
    compute_class_accuracies,
    compute_client_accuracies_from_class_accuracies,
    compute_group_accuracies,
    iterate_training_of_clients_in_place,
)
from ..training.backend import resolve_backend_choice, use_torch_settings_for_run
from ..training.clients import group_clients_by_architecture
from ..training.loop import LabelledSamples, Shard
from ..value_types import SettingValue
from .frozen_features import make_federation_with_public_data
from .inputs import make_input_preparation_of_plan
from .outcome import CurvePoint, Outcome, ValidationSamples, get_validation_samples_if_any
from .results import Outcomes
from .settings import MethodRunPlan, Settings, make_plans
from .store import (
    Store,
    StoredEntry,
    TrainedClientsCache,
    TrainedEntry,
    delete_least_recently_used_entries_every_100_calls,
)

SamplesByClientName = dict[str, LabelledSamples]

TEST_POINTS = 500
MOST_TOGETHER = 8  # most federations whose clients are trained as one stack
MOST_NUMBERS = 2**24  # most numbers in all models of such a stack
# Phases whose seconds are measured.
LOCAL = "local training"
CURVE = "live curve"
EVALUATION = "evaluation"


class AccuraciesByClassAndByClient(NamedTuple):
    """Accuracies, 0–1: of each class `[C]`, and for each client `[M]`."""

    per_class: torch.Tensor
    per_client: torch.Tensor


GeneratorResult = TypeVar("GeneratorResult")  # what a generator returns at its end


@dataclass(frozen=True)
class Event:
    """One step of a job.

    done, total: steps of the `phase`
    curve: a new point of the live curve, or None
    report: what the method has to show so far, of the type that it declares; None if nothing
    outcome: the result of this run, if the run is finished
    error: why this run failed; the job goes on with the others
    """

    method: str
    seed: int
    phase: str = ""
    done: int = 0
    total: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    curve: CurvePoint | None = None
    report: Report | None = None
    outcome: Outcome | None = None
    error: Exception | None = None


_trained_clients = TrainedClientsCache()


@functools.lru_cache(maxsize=12)
def _make_cached_federation(dataset_digest: str, **options: SettingValue) -> Federation:
    """Make a federation, or take it from the cache; `dataset_digest` is part of the cache's key, so that a changed
    file gives a new federation."""
    return make_federation_with_public_data(**options)


def choose_fixed_test_indices_for_pictures(test_set_size: int) -> IndexArray:
    """Choose the sorted indices of the test points that pictures show: at most TEST_POINTS, the same for every
    method and seed."""
    if test_set_size <= TEST_POINTS:
        return np.arange(test_set_size)
    stream = make_numpy_generator(0, "test points")
    chosen = stream.choice(test_set_size, TEST_POINTS, replace=False)
    return np.sort(chosen)


class Run:
    """One method on one federation.

    clients: the cache of trained clients in memory
    cache: whether the store on the disk is used as well
    next_plans: plans of later runs, whose clients may be trained together with these
    """

    def __init__(
        self,
        plan: MethodRunPlan,
        clients: TrainedClientsCache,
        cache: bool,
        next_plans: Sequence[MethodRunPlan] = (),
    ) -> None:
        self.plan = plan
        self.settings = plan.settings
        self.next_plans = next_plans
        self.clients = clients
        self.cache = cache
        self.store = Store("clients") if cache else None
        self.federation = _make_cached_federation(
            plan.digest, **plan.settings.list_all_federation_arguments()
        )
        self.history: list[CurvePoint] = []
        self.seconds: dict[str, float] = {}
        self.clients_cached = False
        self.starts_locally = False
        # This run's share of the time of local training, if other runs' clients were trained together with its own.
        self.time_share = 1.0
        # Trained clients that will be stored when the time of their phase is known.
        self._unstored_states: list[dict[str, torch.Tensor]] | None = None

    def prepare_context(self) -> None:
        """Make the context, and move the test images to the device."""
        self.ctx = Context(
            self.federation,
            recall=self._load_client_states,
            remember=self._keep_client_states_for_store,
            train=self._train_together_with_later_runs,
            seed=self.settings.seed,
            device=self.settings.device,
            backend=self.settings.backend,
            init=self.settings.init,
            poison=self.settings.poison,
            architectures=self.plan.architectures,
            recipe=self.plan.recipe,
            holdout=self.plan.share_held_out_of_local_training,
            scale=self.plan.input_scale,
        )
        dataset = self.federation.dataset
        self.x_test = dataset.x_test.to(self.ctx.device, self.ctx.dtype)
        self.y_test = dataset.y_test.to(self.ctx.device)

    # ------------------------------------------------------------------------------------------- the trained clients
    def _load_client_states(self) -> list[ModelState] | None:
        """Load the states of clients that were trained before; None if there are none."""
        entry = self.clients.get(self.plan.hash_settings_of_local_training(), self.store)
        if entry is None:
            return None
        self.clients_cached = True
        self.history = [CurvePoint(**point) for point in entry["history"]]  # type: ignore[typeddict-item]
        self.seconds[LOCAL] = entry["seconds"]
        return entry["states"]

    def _train_together_with_later_runs(
        self, models: list[Network], shards: list[Shard]
    ) -> Iterator[EpochProgress]:
        """Train this federation's clients and, in the same stack, those of later runs' federations.

        This takes as many steps as one federation does, and each step only a little longer. Up to rounding, every
        client is trained as it would be alone.
        """
        companions = self._find_runs_to_train_together(models)
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
        for tick in iterate_training_of_clients_in_place(
            all_models, all_shards, self.ctx.recipe, seed=seeds, ids=ids, backend=self.ctx.backend
        ):
            if tick.has_current_models:
                step = Progress(LOCAL, tick.done, tick.total)
                for run in companions:
                    clients = ClientsAlone(ClientModels(models_of[run]))
                    run.history.append(run._measure_curve_point(step, clients))
            yield tick
        for run in companions:
            parameters: list[torch.Tensor] = []
            for model in models_of[run]:
                parameters += model.parameters()
            if are_all_finite(parameters):
                run.seconds[LOCAL] = self.seconds[LOCAL]
                run._keep_client_states_for_store(ClientModels(models_of[run]))
                run._store_clients()

    def _find_runs_to_train_together(self, models: list[Network]) -> list["Run"]:
        """Find the next runs of this method whose clients are not trained yet and can join the stack of `models`."""
        if len(group_clients_by_architecture(models)) > 1:
            return []
        shape = self.ctx.input_shape
        backend = resolve_backend_choice(
            self.ctx.backend, self.ctx.device.type, models[0], shape, len(models)
        )
        if backend != "stacked":
            return []
        numbers = sum(count_parameters(model) for model in models)
        most_runs = min(MOST_TOGETHER, MOST_NUMBERS // numbers)
        companions: list[Run] = []
        keys = {self.plan.hash_settings_of_local_training()}
        for plan in self.next_plans:
            if len(keys) >= most_runs:
                break
            if not can_train_clients_together(plan, self.plan):
                continue
            key = plan.hash_settings_of_local_training()
            if key in keys:
                continue
            is_trained = self.clients.get(key, self.store) is not None
            is_done = self.cache and Store("runs").has(plan.hash_settings_of_run())
            if not is_trained and not is_done:
                keys.add(key)
                run = Run(plan, self.clients, self.cache)
                run.prepare_context()
                companions.append(run)
        return companions

    def _keep_client_states_for_store(self, trained: ClientModels) -> None:
        """Keep the states until `_store_clients` is called."""
        states = []
        for k in range(len(trained)):
            states.append({name: tensor.cpu() for name, tensor in trained.state(k).items()})
        self._unstored_states = states

    def _store_clients(self) -> None:
        """Store the trained clients; called when the time of their phase is known."""
        if self._unstored_states is None:
            return
        entry = TrainedEntry(
            states=self._unstored_states,
            history=[dict(point) for point in self.history if point["phase"] == LOCAL],
            seconds=self.seconds.get(LOCAL, 0.0),
        )
        self.clients.add_entry(self.plan.hash_settings_of_local_training(), entry, self.store)
        self._unstored_states = None

    # ------------------------------------------------------------------------------------------- the run
    def _measure_curve_point(self, step: Progress, model: GlobalModel) -> CurvePoint:
        """Measure the next point of the curve. If a run starts with local training, that is its first half."""
        progress = step.done / max(step.total, 1)
        if step.phase == LOCAL:
            progress = progress / 2
        elif self.starts_locally:
            progress = 0.5 + progress / 2
        accuracy = model.accuracy(self.x_test, self.y_test)
        return CurvePoint(
            phase=step.phase,
            progress=progress,
            accuracy=accuracy,
            bytes=self.ctx.link.ledger.total,
        )

    def run_and_yield_events(self) -> Generator[Event, None, Outcome]:
        """Do the whole run: yields its events, and returns the outcome."""
        self.prepare_context()
        self.plan.method.validate(self.ctx)
        self.plan.method.check_poison_applies_to_method(self.ctx)
        matrices = self.plan.method.square_matrices(self.ctx)
        check_matrices_fit_in_memory(self.plan.method_label, matrices, self.ctx.device)
        try:
            model = yield from self.iterate_and_time_phases(self.plan.method.run(self.ctx))
            return self.evaluate_and_make_outcome(model)
        except (MemoryError, RuntimeError) as error:
            memory_error = make_run_error_if_out_of_memory(
                self.plan.method_label, error, self.ctx.device
            )
            if memory_error is None:
                raise
            raise memory_error from None

    def iterate_and_time_phases(
        self, generator: Generator[Progress, None, GeneratorResult]
    ) -> Generator[Event, None, GeneratorResult]:
        """Run `generator`, and record the seconds of its phases and the points of its curve; returns its result."""
        phase = ""
        start = time.perf_counter()
        while True:
            try:
                step = next(generator)
            except StopIteration as stop:
                # The time after the last step is the server's.
                self._add_seconds_to_phase("server", time.perf_counter() - start)
                self._store_clients()
                return stop.value
            now = time.perf_counter()
            phase = step.phase
            if phase != LOCAL:
                self._store_clients()
                self._add_seconds_to_phase(phase, now - start)
            elif not self.clients_cached:
                self._add_seconds_to_phase(phase, (now - start) * self.time_share)
            self.starts_locally |= phase == LOCAL
            point = None
            report = None
            if step.model is not None:
                if step.model.report.get_fields_that_are_not_none():
                    report = step.model.report
                point = self._measure_curve_point(step, step.model)
                self.history.append(point)
                self._add_seconds_to_phase(CURVE, time.perf_counter() - now)
            yield Event(
                self.plan.method_name,
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

    def _add_seconds_to_phase(self, phase: str, seconds: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    @torch.no_grad()
    @cache_forward_passes()
    def evaluate_and_make_outcome(self, model: GlobalModel) -> Outcome:
        """Evaluate the run's `model` on test and validation images, and make the outcome."""
        start = time.perf_counter()
        federation = self.federation
        x = self.x_test
        y = self.y_test
        tested = model.compute_test_results(x, y)
        check_scores_are_finite(tested.scores, self.plan.method_label)
        predictions = tested.scores.argmax(1)
        per_class, per_client = self._compute_accuracies_by_class_and_client(
            predictions, tested.client_predictions
        )
        points = choose_fixed_test_indices_for_pictures(len(y))
        report = check_report_type_and_copy_arrays(
            model.complete_report_on_test_samples(x, y), self.plan.method.report
        )
        validation_accuracy = None
        validation_on = ""
        validation = get_validation_samples_if_any(self.ctx, federation, self.plan.method.holds_out)
        if validation is not None:
            x_validation, y_validation, validation_on = validation
            validation_accuracy = model.accuracy(x_validation, y_validation)
        unseen = {
            name: model.accuracy(x_unseen, y_unseen)
            for name, (x_unseen, y_unseen) in self.load_samples_of_unseen_clients().items()
        }
        ledger = self.ctx.link.ledger
        last_point = CurvePoint(
            phase="end", progress=1.0, accuracy=tested.accuracy, bytes=ledger.total
        )
        features = model.features(x)[points].float().cpu().numpy()
        self.seconds[EVALUATION] = time.perf_counter() - start
        inputs = None
        if not self.settings.reads_frozen_features:
            inputs = make_input_preparation_of_plan(self.plan, federation.dataset)
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
            _run_again=functools.partial(rerun_plan_from_stored_clients, self.plan),
        )

    def _compute_accuracies_by_class_and_client(
        self, predictions: Predictions, client_predictions: ClientPredictions | None
    ) -> AccuraciesByClassAndByClient:
        """Compute the accuracies on each class and for each client.

        predictions: the global model's, `[N]`
        client_predictions: `[M, N]`, if each client has a model of its own; the accuracy on a class is then the mean
            over these models, and that of a client is its own model's
        """
        if client_predictions is None:
            per_class = compute_class_accuracies(predictions, self.y_test, self.federation.classes)
            per_client = self._compute_client_accuracies(predictions, per_class)
            return AccuraciesByClassAndByClient(per_class, per_client)
        class_accuracies = []
        own_accuracies = []
        for client, own_predictions in enumerate(client_predictions):
            per_class = compute_class_accuracies(
                own_predictions, self.y_test, self.federation.classes
            )
            class_accuracies.append(per_class)
            per_client = self._compute_client_accuracies(own_predictions, per_class)
            own_accuracies.append(per_client[client])
        mean_per_class = torch.stack(class_accuracies).mean(0)
        return AccuraciesByClassAndByClient(mean_per_class, torch.stack(own_accuracies))

    def _compute_client_accuracies(
        self, predictions: Predictions, accuracy_per_class: AccuracyPerClass
    ) -> AccuracyPerClient:
        """Compute the accuracy for each client, `[M]`: on its own test samples if the data say which these are,
        otherwise on its mix of labels."""
        federation = self.federation
        owners = federation.dataset.client_test if federation.partition == "natural" else None
        if owners is None:
            return compute_client_accuracies_from_class_accuracies(
                accuracy_per_class, federation.label_counts
            )
        count = len(federation.dataset.client_names)
        accuracies = compute_group_accuracies(predictions == self.y_test, owners, count)
        return accuracies[list(federation.ids)]

    def load_samples_of_unseen_clients(self) -> SamplesByClientName:
        """Load `(x, y)` of the clients that take no part, by their names or numbers; only for the report."""
        whole_federation = self.federation.whole
        if whole_federation is None:
            return {}
        dataset = self.federation.dataset
        has_names = self.federation.partition == "natural" and bool(dataset.client_names)
        x_train = dataset.x_train.to(self.ctx.dtype)
        samples = {}
        for k in self.federation.unseen:
            rows = whole_federation.shards[k]
            x = x_train[rows].to(self.ctx.device)
            y = dataset.y_train[rows].to(self.ctx.device)
            name = dataset.client_names[k] if has_names else str(k)
            samples[name] = LabelledSamples(x, y)
        return samples


def can_train_clients_together(plan: MethodRunPlan, other_plan: MethodRunPlan) -> bool:
    """True if the clients of two runs can be trained in one stack."""
    return (
        plan.method_name == other_plan.method_name
        and plan.architectures == other_plan.architectures
        and plan.recipe == other_plan.recipe
        and plan.settings.backend == other_plan.settings.backend
        and plan.settings.device == other_plan.settings.device
    )


def check_scores_are_finite(scores: ClassScores, method_title: str) -> None:
    """Raise RunError if scores `[N, C]` are not finite, unless some are -inf, the logarithm of a probability of 0."""
    is_finite = bool(torch.isfinite(scores).all())
    if not is_finite and not bool((scores == -torch.inf).any()):
        raise RunError(
            f"{method_title} gave scores that are not finite; use a smaller learning rate."
        )


def load_validation_samples(outcome: Outcome) -> ValidationSamples | None:
    """Load the samples on which `outcome.accuracy_validation` was measured; None if there are none."""
    if not outcome.validation_on:
        return None
    run = Run(outcome.plan, TrainedClientsCache(), cache=False)
    run.prepare_context()
    run.ctx.private.held_out_used = outcome.validation_on == "public"
    return get_validation_samples_if_any(run.ctx, run.federation, outcome.plan.method.holds_out)


# ------------------------------------------------------------------------------------------------ one run and many
def iterate_events_of_plan(
    plan: MethodRunPlan,
    clients_cache: TrainedClientsCache,
    use_store: bool,
    later_plans: Sequence[MethodRunPlan] = (),
) -> Generator[Event, None, None]:
    """Run one plan, or load its outcome from the store; yields events, the last one with the outcome.

    later_plans: the plans after it, whose clients may be trained together with its own
    """
    seed = plan.settings.seed
    stored = load_stored_outcome(plan) if use_store else None
    if stored is not None:
        yield Event(plan.method_name, seed, "remembered", 1, 1, outcome=stored)
        return
    run = Run(plan, clients_cache, use_store, later_plans)
    with use_torch_settings_for_run(plan.settings.device, run.federation.dataset.input_shape):
        outcome = yield from run.run_and_yield_events()
    if use_store:
        Store("runs").write_entry_if_possible(plan.hash_settings_of_run(), *outcome.to_entry())
        delete_least_recently_used_entries_every_100_calls()
    yield Event(plan.method_name, seed, "done", 1, 1, outcome=outcome)


def is_run_stored(plan: MethodRunPlan) -> bool:
    """True if the run is in the store."""
    return Store("runs").has(plan.hash_settings_of_run())


def are_clients_stored(plan: MethodRunPlan) -> bool:
    """True if the trained clients of a run are in memory or in the store."""
    return _trained_clients.has(plan.hash_settings_of_local_training(), Store("clients"))


def rerun_plan_from_stored_clients(plan: MethodRunPlan) -> Outcome:
    """Repeat a stored run, from its stored clients."""
    with use_default_torch_switches():
        return exhaust_generator(Run(plan, _trained_clients, cache=True).run_and_yield_events())


def load_stored_outcome(plan: MethodRunPlan) -> Outcome | None:
    """Load the outcome of a plan from the store; None if it is not there."""
    entry = Store("runs").get(plan.hash_settings_of_run())
    if entry is None:
        return None
    return restore_outcome(plan, entry)


def restore_outcome(plan: MethodRunPlan, entry: StoredEntry) -> Outcome:
    """Make an outcome from its entry in the store."""
    run_again = functools.partial(rerun_plan_from_stored_clients, plan)
    return Outcome.from_entry(*entry, plan=plan, run_again=run_again)


def exhaust_generator(generator: Generator[object, None, GeneratorResult]) -> GeneratorResult:
    """Run a generator to its end and ignore what it yields; returns its result."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return end.value


def job(
    methods: str | Sequence[str], *, seeds: int = 1, cache: bool = True, **settings: SettingValue
) -> Generator[Event, None, None]:
    """Run `methods` on `seeds` federations (seed, seed+1, …); a generator of Events.

    Wrong settings raise UsageError before anything is computed. If a method fails, an Event with its `error` is
    yielded, and the other methods are still run. If you close the generator, the work stops after the current step.
    Finished results stay in the store.
    """
    names = check_and_list_unique_names("methods", methods)
    if names == ["all"]:
        names = list(METHODS)
    with use_default_torch_switches():
        base = Settings.make(**settings)
    plans = []
    for i in range(check_whole_number("seeds", parse_if_number(seeds), 1, 1000)):
        plans += make_plans(replace(base, seed=base.seed + i), names)
    return iterate_events_of_plans(plans, cache)


def iterate_events_of_plans(
    plans: Sequence[MethodRunPlan], use_store: bool, should_train_together: bool = False
) -> Generator[Event, None, None]:
    """Run all plans, one after the other; yields their events.

    should_train_together: whether clients of several plans may be trained as one stack, which takes less time and
        gives the same results up to rounding
    """
    clients = _trained_clients if use_store else TrainedClientsCache()
    for i, plan in enumerate(plans):
        try:
            next_plans = plans[i + 1 :] if should_train_together else ()
            yield from iterate_with_default_torch_switches(
                iterate_events_of_plan(plan, clients, use_store, next_plans)
            )
        except Exception as error:
            yield Event(plan.method_name, plan.settings.seed, "failed", error=error)


def compare(
    methods: str | Sequence[str], *, seeds: int = 1, cache: bool = True, **settings: SettingValue
) -> Outcomes:
    """Run several methods on the same federation(s). The clients are trained once for all methods.

    If a method fails, its error is raised after the other methods have ended.
    """
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


@overload
def run(
    method: str, *, seeds: Literal[1] = 1, cache: bool = True, **settings: SettingValue
) -> Outcome: ...


@overload
def run(
    method: str, *, seeds: int, cache: bool = True, **settings: SettingValue
) -> Outcome | Outcomes: ...


def run(
    method: str, *, seeds: int = 1, cache: bool = True, **settings: SettingValue
) -> Outcome | Outcomes:
    """Run one method; returns its Outcome, or for `seeds` > 1 the Outcomes of that many seeds, counted from `seed`.

    settings: those of `Settings`; fields of the recipe and of the method may be given, too (`epochs=20`, `rounds=100`)
    dataset: a name, a path, arrays (a mapping of x_train, y_train, x_test, y_test, …), or a Dataset
    federation: a federation from `federate`, which you may have changed by hand. All seeds have this partition, so
        they vary only the training. `seed` is the federation's unless you give it; UsageError for a setting that
        contradicts the federation
    """
    if not isinstance(method, str):
        raise UsageError(
            f"run takes one method's name, but got {method!r}; for several use fl.compare."
        )
    outcomes = compare(method, seeds=seeds, cache=cache, **settings)
    return outcomes if len(outcomes) > 1 else outcomes[0]
