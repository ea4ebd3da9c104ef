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
from ..errors import RunError, UsageError, parsed, several, whole
from ..methods import METHODS, GlobalModel, Progress
from ..methods.context import Context
from ..methods.memory import check_memory, explain_allocation
from ..methods.run_outputs import ClientsAlone, Report, check_report_type
from ..models import Network, parameter_count
from ..models.state import all_finite
from ..rng import numpy_rng
from ..torch_switches import step_with_usual_switches, usual_switches
from ..training import (
    ClientModels,
    Tick,
    class_accuracy,
    client_accuracy,
    group_accuracy,
    one_pass,
    train_clients,
)
from ..training.backend import choose_backend, suited
from ..training.clients import by_architecture
from ..training.loop import Shard
from .inputs import find_inputs
from .outcome import Outcome, validation_samples
from .results import Outcomes
from .seen import dealt
from .settings import Plan, Settings, plans_for
from .store import Store, TrainedClients, bound

TEST_POINTS = 500
TOGETHER, NUMBERS = (
    8,
    2**24,
)  # federations that are trained as one stack, and numbers in all their models, at most
LOCAL, CURVE, EVALUATION = (
    "local training",
    "live curve",
    "evaluation",
)  # phases in the ledger of seconds


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


_remembered = TrainedClients()


@functools.lru_cache(maxsize=12)
def _federation(digest: str, **dealing: Any) -> Federation:
    """The federation, kept for the next method; `digest` makes a file that has changed another data set."""
    return dealt(**dealing)


def test_points(samples: int) -> np.ndarray:
    """Indices of the fixed test points that pictures show: at most TEST_POINTS, the same for every method and seed."""
    if samples <= TEST_POINTS:
        return np.arange(samples)
    return np.sort(numpy_rng(0, "test points").choice(samples, TEST_POINTS, replace=False))


class Run:
    """One method on one federation."""

    def __init__(
        self, work: Plan, clients: TrainedClients, cache: bool, coming: Sequence[Plan] = ()
    ) -> None:
        self.plan, self.settings, self.coming = work, work.settings, coming
        self.clients, self.cache = clients, cache
        self.store = Store("clients") if cache else None
        self.federation = _federation(work.digest, **work.settings.dealing())
        self.history: list[dict[str, Any]] = []
        self.seconds: dict[str, float] = {}
        self.clients_cached = False
        self.starts_locally = False
        self.share = 1.0  # of the time of local training; the rest is that of others, trained together with these
        self._waiting: list[dict[str, torch.Tensor]] | None = (
            None  # trained clients that are still to be kept
        )

    def begin(self) -> None:
        """Make the context, and the test images ready for curves."""
        asked = ("seed", "device", "backend", "init", "poison")
        options: dict[str, Any] = {name: getattr(self.settings, name) for name in asked}
        options |= {
            name: getattr(self.plan, name)
            for name in ("architectures", "recipe", "holdout", "scale")
        }
        own: dict[str, Any] = {
            "recall": self._recall,
            "remember": self._remember,
            "train": self._train,
        }
        self.ctx = Context(self.federation, **own, **options)
        dataset = self.federation.dataset
        self.x_test = dataset.x_test.to(self.ctx.device, self.ctx.dtype)
        self.y_test = dataset.y_test.to(self.ctx.device)

    def _recall(self) -> list[dict[str, torch.Tensor]] | None:
        entry = self.clients.get(self.plan.clients_key(), self.store)
        if entry is None:
            return None
        self.clients_cached = True
        self.history = [dict(point) for point in entry["history"]]
        self.seconds[LOCAL] = entry["seconds"]
        return entry["states"]

    def _train(self, models: list[Network], shards: list[Shard]) -> Iterator[Tick]:
        """Train this federation's clients, and with them, as one stack, those of federations to come: as many steps as
        one takes, each a little wider. Every client becomes what it would be alone, to rounding."""
        others = [(run, run.ctx.send_initial_models()) for run in self._companions(models)]
        for run, _ in others:
            shards = shards + [run.ctx.private.train(k) for k in range(run.ctx.clients_count)]
        everybody = models + [model for _, own in others for model in own]
        seeds = [run.settings.seed for run in (self, *(run for run, _ in others)) for _ in models]
        ids = [k for run in (self, *(run for run, _ in others)) for k in run.ctx.ids]
        self.share = 1 / (1 + len(others))
        for tick in train_clients(
            everybody, shards, self.ctx.recipe, seed=seeds, ids=ids, backend=self.ctx.backend
        ):
            for run, own in others if tick.fresh else ():
                step = Progress(LOCAL, tick.done, tick.total)
                run.history.append(run._point(step, ClientsAlone(ClientModels(own))))
            yield tick
        for run, own in others:
            if all_finite(p for model in own for p in model.parameters()):
                run.seconds[LOCAL] = self.seconds[LOCAL]
                run._remember(ClientModels(own))
                run._keep()

    def _companions(self, models: list[Network]) -> list["Run"]:
        """Those of the next runs of this method whose clients, not yet trained, can join the stack of these."""

        def kind(plan: Plan) -> tuple:
            return (
                plan.name,
                plan.architectures,
                plan.recipe,
                plan.settings.backend,
                plan.settings.device,
            )

        found, shape = {self.plan.clients_key(): self}, self.ctx.input_shape
        way = choose_backend(self.ctx.backend, self.ctx.device.type, models[0], shape, len(models))
        room = (
            min(TOGETHER, NUMBERS // sum(map(parameter_count, models))) if way == "stacked" else 0
        )
        for plan in self.coming if len(by_architecture(models)) == 1 else ():
            if len(found) >= room:
                break
            if kind(plan) != kind(self.plan) or (key := plan.clients_key()) in found:
                continue
            if self.clients.get(key, self.store) is None and not (
                self.cache and Store("runs").has(plan.run_key())
            ):
                found[key] = Run(plan, self.clients, self.cache)
                found[key].begin()
        return list(found.values())[1:]

    def _remember(self, trained: ClientModels) -> None:
        states = [
            {name: t.cpu() for name, t in trained.state(k).items()} for k in range(len(trained))
        ]
        self._waiting = states  # kept once the phase's time is complete

    def _keep(self) -> None:
        """Put the trained clients away."""
        if self._waiting is not None:
            history = [dict(point) for point in self.history if point["phase"] == LOCAL]
            entry = {
                "states": self._waiting,
                "history": history,
                "seconds": self.seconds.get(LOCAL, 0.0),
            }
            self.clients.put(self.plan.clients_key(), entry, self.store)
            self._waiting = None

    def _point(self, step: Progress, model: GlobalModel) -> dict[str, Any]:
        """A point of the curve. Local training fills the first half of a run that starts with it."""
        share = step.done / max(step.total, 1)
        progress = (
            share / 2
            if step.phase == LOCAL
            else (0.5 + share / 2 if self.starts_locally else share)
        )
        accuracy, sent = model.accuracy(self.x_test, self.y_test), self.ctx.link.ledger.total
        return {"phase": step.phase, "progress": progress, "accuracy": accuracy, "bytes": sent}

    def steps(self) -> Generator[Event, None, Outcome]:
        """The whole run: its events, and the outcome at the end."""
        self.begin()
        self.plan.method.validate(self.ctx)
        self.plan.method.check_poison(self.ctx)
        matrices = self.plan.method.square_matrices(self.ctx)
        check_memory(self.plan.label, matrices, self.ctx.device)
        try:
            model = yield from self.watch(self.plan.method.run(self.ctx))
            return self.evaluate(model)
        except (MemoryError, RuntimeError) as error:
            full = explain_allocation(self.plan.label, error, self.ctx.device)
            if full is None:
                raise
            raise full from None

    def watch(self, generator: Generator[Progress, None, Any]) -> Generator[Event, None, Any]:
        """Carry out `generator`, its time and its curve written down; returns what it returns."""
        name, seed = self.plan.name, self.settings.seed
        phase, clock = "", time.perf_counter()
        while True:
            try:
                step = next(generator)
            except StopIteration as stop:
                model = stop.value
                break
            finally:
                now = time.perf_counter()
                spent, clock = now - clock, now
            phase = step.phase
            if phase != LOCAL:
                self._keep()
            if not (phase == LOCAL and self.clients_cached):
                spent *= self.share if phase == LOCAL else 1
                self.seconds[phase] = self.seconds.get(phase, 0.0) + spent
            self.starts_locally |= phase == LOCAL
            point, report = None, None
            if step.model is not None:
                report = step.model.report if step.model.report.known_fields() else None
                point = self._point(step, step.model)
                self.history.append(point)
                self.seconds[CURVE] = self.seconds.get(CURVE, 0.0) + time.perf_counter() - now
            yield Event(name, seed, phase, step.done, step.total, step.metrics, point, report)
            clock = (
                time.perf_counter()
            )  # what the caller takes is nobody's time, what the live curve takes is its own
        self.seconds["server"] = self.seconds.get("server", 0.0) + spent
        self._keep()
        return model

    def unseen(self) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """`(x, y)` of the clients that take no part, by their names or numbers; for the report alone."""
        whole, dataset = self.federation.whole, self.federation.dataset
        rows = {k: whole.shards[k] for k in self.federation.unseen} if whole else {}
        names = dataset.client_names if self.federation.partition == "natural" else ()
        x, y = dataset.x_train.to(self.ctx.dtype), dataset.y_train
        return {
            names[k] if names else str(k): (x[own].to(self.ctx.device), y[own].to(self.ctx.device))
            for k, own in rows.items()
        }

    @torch.no_grad()
    @one_pass()
    def evaluate(self, model: GlobalModel) -> Outcome:
        start = time.perf_counter()
        federation, x, y = self.federation, self.x_test, self.y_test
        tested = model.tested(x, y)
        scores = tested.scores
        if not bool(torch.isfinite(scores).all()) and not bool((scores == -torch.inf).any()):
            title = self.plan.label
            raise RunError(f"{title} gave scores that are not finite; use a smaller learning rate.")
        predictions = scores.argmax(1)
        per_class = class_accuracy(predictions, y, federation.classes)
        own = federation.dataset.client_test if federation.partition == "natural" else None
        per_client = client_accuracy(per_class, federation.label_counts)
        if own is not None:
            every = group_accuracy(predictions == y, own, len(federation.dataset.client_names))
            per_client = every[list(federation.ids)]
        points = test_points(len(y))
        report = check_report_type(model.measured(x, y), self.plan.method.report)
        held = validation_samples(self.ctx, federation, self.plan.method.holds_out)
        validation, validation_on = (
            (None, "") if held is None else (model.accuracy(*held[:2]), held[2])
        )
        unseen = {who: model.accuracy(*own) for who, own in self.unseen().items()}
        ledger = self.ctx.link.ledger
        last = {"phase": "end", "progress": 1.0, "accuracy": tested.accuracy, "bytes": ledger.total}
        features = model.features(x)[points].float().cpu().numpy()
        self.seconds[EVALUATION] = time.perf_counter() - start
        return Outcome(
            plan=self.plan,
            accuracy=tested.accuracy,
            calibration=tested.calibration,
            accuracy_validation=validation,
            validation_on=validation_on,
            per_class=[None if np.isnan(a) else a for a in per_class.tolist()],
            per_client=per_client.tolist(),
            ledger=ledger,
            history=[*self.history, last],
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
            _inputs=None if self.settings.seen else find_inputs(self.plan, federation.dataset),
            _again=functools.partial(rerun, self.plan),
        )


def validation_of(outcome: Outcome) -> tuple[torch.Tensor, torch.Tensor, str] | None:
    """The samples on which `outcome.accuracy_validation` was measured, as `validation_samples` gives them."""
    if not outcome.validation_on:
        return None
    run = Run(outcome.plan, TrainedClients(), cache=False)
    run.begin()
    run.ctx.private.held_out_used = outcome.validation_on == "public"
    return validation_samples(run.ctx, run.federation, outcome.plan.method.holds_out)


def plan_events(
    work: Plan, clients: TrainedClients, cache: bool, coming: Sequence[Plan] = ()
) -> Generator[Event, None, None]:
    """Events of one plan, the last one with its outcome. `coming`: the plans after it."""
    stored = recall(work) if cache else None
    if stored is not None:
        yield Event(work.name, work.settings.seed, "remembered", 1, 1, outcome=stored)
        return
    fresh = Run(work, clients, cache, coming)
    with suited(work.settings.device, fresh.federation.dataset.input_shape):
        outcome = yield from fresh.steps()
    if cache:
        Store("runs").put(work.run_key(), *outcome.to_entry())
        bound()
    yield Event(work.name, work.settings.seed, "done", 1, 1, outcome=outcome)


def remembered(plan: Plan) -> tuple[bool, str]:
    """Whether a run is in the store, and the key of the clients that it would train; "": these are remembered."""
    key = plan.clients_key()
    return Store("runs").has(plan.run_key()), "" if _remembered.has(key, Store("clients")) else key


def rerun(work: Plan) -> Outcome:
    """A remembered run once more, from its remembered clients."""
    with usual_switches():
        return finished(Run(work, _remembered, cache=True).steps())


def recall(plan: Plan) -> Outcome | None:
    """The outcome in the store, or None."""
    entry = Store("runs").get(plan.run_key())
    return None if entry is None else restored(plan, entry)


def restored(plan: Plan, entry: tuple[dict[str, Any], dict[str, Any]]) -> Outcome:
    """An outcome from its stored form."""
    return Outcome.from_entry(*entry, plan=plan, again=functools.partial(rerun, plan))


def finished(work: Generator[Any, None, Any]) -> Any:
    """Do work that nobody watches; what it returns."""
    while True:
        try:
            next(work)
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
    names = several("methods", methods)
    names = list(METHODS) if names == ["all"] else names
    with usual_switches():
        base = Settings.make(**settings)
    count = whole("seeds", parsed(seeds), 1, 1000)
    return events(
        [
            plan
            for i in range(count)
            for plan in plans_for(replace(base, seed=base.seed + i), names)
        ],
        cache,
    )


def events(
    plans: Sequence[Plan], cache: bool, together: bool = False
) -> Generator[Event, None, None]:
    """Events of all plans, one plan after the other. `together`: clients of several of them may be trained as one
    stack, which takes less time, and gives what they give alone to rounding."""
    clients = _remembered if cache else TrainedClients()
    for i, work in enumerate(plans, 1):
        try:
            coming = plans[i:] if together else ()
            yield from step_with_usual_switches(plan_events(work, clients, cache, coming))
        except Exception as error:
            yield Event(work.name, work.settings.seed, "failed", error=error)


def compare(
    methods: str | Sequence[str], *, seeds: int = 1, cache: bool = True, **settings: Any
) -> Outcomes:
    """Run several methods on the same federation(s). The clients are trained once for all of them. If a method fails,
    its error is raised after the other methods have ended."""
    outcomes, failed = Outcomes(), None
    for event in job(methods, seeds=seeds, cache=cache, **settings):
        if event.outcome is not None:
            outcomes.append(event.outcome)
        if event.error is not None:
            failed = failed or event.error
    if failed is not None:
        raise failed
    return outcomes


def run(method: str, *, seeds: int = 1, cache: bool = True, **settings: Any) -> Any:
    """Run one method: an Outcome, or with `seeds` > 1 the Outcomes of that many seeds, counted up from `seed`. Settings
    are those of `Settings`; recipe and method fields may be given too (`epochs=20`, `rounds=100`).

    dataset: a name, a path, arrays (a mapping of x_train, y_train, x_test, y_test, …), a Dataset, or a Federation
        (`federate`), whose shards are then the clients
    federation: what `federate` gives, perhaps changed by hand: the partition of all seeds, which then vary the training
        alone. `seed` is that of the federation unless it is given; UsageError for a setting that contradicts it
    """
    if not isinstance(method, str):
        raise UsageError(
            f"run takes one method's name, but got {method!r}; for several use fl.compare."
        )
    outcomes = compare(method, seeds=seeds, cache=cache, **settings)
    return outcomes if len(outcomes) > 1 else outcomes[0]
