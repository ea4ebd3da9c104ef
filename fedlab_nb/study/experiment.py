"""Run methods on one federation: `job` yields events as work goes on, `run` and `compare` wait for the end.

Clients are trained once for a setting and shared by all methods; finished runs are kept in the store, one by one, so
that nothing computed is lost when a later one fails or is stopped. Test images are used here only, to report.
"""

from __future__ import annotations

import functools
import time
from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from ..data import Federation, federate, load
from ..errors import FedlabError, RunError, number, parsed
from ..methods import METHODS, GlobalModel, Progress
from ..methods.context import Context
from ..methods.results import ClientsAlone
from ..rng import numpy_rng
from ..training import ClientModels, Tick, class_accuracy, client_accuracy
from ..training.loop import Shard
from ..training.threads import suitable_threads
from .outcome import Outcome
from .settings import Plan, Settings, plan
from .store import Store
from .together import SEEDS, Party, companions, train_parties

TEST_POINTS = 500
LOCAL = "local training"


@dataclass(frozen=True)
class Event:
    """One step of a job. `curve`: a new point of the live curve; `live`: small arrays of the model as it is now;
    `outcome`: this method is finished; `error`: it failed, and the job goes on with the others."""

    method: str
    seed: int
    phase: str = ""
    done: int = 0
    total: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    curve: dict[str, Any] | None = None
    live: Mapping[str, np.ndarray] = field(default_factory=dict)
    outcome: Outcome | None = None
    error: Exception | None = None


class _Clients:
    """Trained clients, remembered in memory (a few settings) and in the store."""

    def __init__(self, limit: int = 8) -> None:
        self._memory: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._limit = limit

    def get(self, key: str, store: Store | None) -> dict[str, Any] | None:
        if key in self._memory:
            self._memory.move_to_end(key)
            return self._memory[key]
        found = store.get(key) if store else None
        if found is None:
            return None
        values, arrays = found
        states: list[dict[str, torch.Tensor]] = [{} for _ in range(values["clients"])]
        for name, array in arrays.items():
            k, _, tensor = name.partition("/")
            states[int(k)][tensor] = torch.from_numpy(array)
        return self._keep(key, {"states": states, "history": values["history"], "seconds": values["seconds"]})

    def put(self, key: str, entry: dict[str, Any], store: Store | None) -> None:
        self._keep(key, entry)
        if store:
            arrays = {f"{k}/{name}": t.numpy() for k, state in enumerate(entry["states"]) for name, t in state.items()}
            values = {"clients": len(entry["states"]), "history": entry["history"], "seconds": entry["seconds"]}
            store.put(key, values, arrays)

    def unused(self, key: str) -> None:
        """Say of the clients of `key` that they were trained in company and that the first run that asks has not been
        yet: to that run they are its own."""
        self._memory[key]["unused"] = True

    def _keep(self, key: str, entry: dict[str, Any]) -> dict[str, Any]:
        self._memory[key] = entry
        while len(self._memory) > self._limit:
            self._memory.popitem(last=False)
        return entry


_remembered = _Clients()


@functools.lru_cache(maxsize=32)
def _federation(dataset: str, digest: str, options: tuple[tuple[str, Any], ...]) -> Federation:
    """The federation, kept for the next method; `digest` makes a file that has changed another data set."""
    return federate(load(dataset), **dict(options))


def test_points(samples: int) -> np.ndarray:
    """Indices of the fixed test points that pictures show: at most TEST_POINTS, the same for every method and seed."""
    if samples <= TEST_POINTS:
        return np.arange(samples)
    return np.sort(numpy_rng(0, "test points").choice(samples, TEST_POINTS, replace=False))


class _Run:
    """One method on one federation."""

    def __init__(self, work: Plan, clients: _Clients, cache: bool, later: Sequence[Plan] = ()) -> None:
        self.plan, self.settings = work, work.settings
        self.later = later  # the same with other seeds, to come
        self.company: list[Party] = []
        self.clients, self.cache = clients, cache
        self.store = Store("clients") if cache else None
        options = tuple(work.settings.federation_options().items())
        self.federation = _federation(work.settings.dataset, work.digest, options)
        self.history: list[dict[str, Any]] = []
        self.seconds: dict[str, float] = {}
        self.clients_cached = False
        self.starts_locally = False

    def context(self) -> Context:
        return Context(
            self.federation,
            architectures=self.plan.architectures,
            recipe=self.plan.recipe,
            seed=self.settings.seed,
            holdout=self.settings.holdout,
            device=self.settings.device,
            backend=self.settings.backend,
            init=self.settings.init,
            recall=self._recall,
            remember=self._remember,
            train=self._train,
        )

    def _recall(self) -> list[dict[str, torch.Tensor]] | None:
        entry = self.clients.get(self.plan.clients_key(), self.store)
        if entry is None:
            return None
        self.clients_cached = not entry.pop("unused", False)
        self.history = [dict(point) for point in entry["history"]]
        self.seconds[LOCAL] = entry["seconds"]
        return entry["states"]

    def _remember(self, trained: ClientModels) -> None:
        states = [{name: t.cpu() for name, t in trained.state(k).items()} for k in range(len(trained))]
        self._waiting = {"states": states}  # kept once the phase's time is complete

    def _keep(self) -> None:
        """Put the trained clients away, and those of the seeds that were trained with them."""
        if self._waiting is None:
            return
        self.seconds[LOCAL] = self.seconds.get(LOCAL, 0.0) / (1 + len(self.company))
        entry = {
            "states": self._waiting["states"],
            "history": [dict(point) for point in self.history if point["phase"] == LOCAL],
            "seconds": self.seconds[LOCAL],
        }
        self.clients.put(self.plan.clients_key(), entry, self.store)
        for party in self.company:
            if party.finite:  # else its own run will tell
                party.run._remember(ClientModels(party.models))
                party.run.seconds[LOCAL] = self.seconds[LOCAL]
                party.run._keep()
                self.clients.unused(party.run.plan.clients_key())
        self._waiting, self.company = None, []

    def _train(self, models: list[nn.Module], shards: list[Shard]) -> Iterator[Tick]:
        """Local training of this seed's clients and, where they fit into the stack, of later seeds' clients."""
        context = self.ctx
        parties = [Party(self, context, models, shards)]
        for work in self.later[: companions(context, models, len(self.later))]:
            if self.clients.get(work.clients_key(), self.store) is None:
                with suppress(FedlabError):  # its own run will tell
                    run = _Run(work, self.clients, self.cache)
                    run.begin()
                    own = run.ctx.send_initial_models()
                    data = [run.ctx.private.train(k) for k in range(run.ctx.clients_count)]
                    parties.append(Party(run, run.ctx, own, data))
        self.company = parties[1:]
        return train_parties(parties)

    def _point(self, step: Progress, model: GlobalModel) -> dict[str, Any]:
        """A point of the curve. Local training fills the first half of a run that starts with it."""
        share = step.done / max(step.total, 1)
        progress = share / 2 if step.phase == LOCAL else (0.5 + share / 2 if self.starts_locally else share)
        ledger = self.ctx.link.ledger
        return {
            "phase": step.phase,
            "progress": progress,
            "accuracy": model.accuracy(self.x_test, self.y_test),
            "bytes": ledger.up + ledger.down,
        }

    def begin(self) -> None:
        """Make the context, and the test images ready for curves."""
        self._waiting: dict[str, Any] | None = None
        self.ctx = self.context()
        dataset = self.federation.dataset
        self.x_test = dataset.x_test.to(self.ctx.device, self.ctx.dtype)
        self.y_test = dataset.y_test.to(self.ctx.device)

    def steps(self) -> Generator[Event, None, Outcome]:
        name, seed = self.plan.name, self.settings.seed
        self.begin()
        ctx = self.ctx
        self.plan.method.validate(ctx)
        generator = self.plan.method.run(ctx)
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
                self.seconds[phase] = self.seconds.get(phase, 0.0) + spent
            self.starts_locally |= phase == LOCAL
            point, live = None, {}
            if step.model is not None:
                live = dict(step.model.live)
                point = self._point(step, step.model)
                self.history.append(point)
                if phase == LOCAL:
                    for party in self.company:
                        snapshot = ClientsAlone(ClientModels(party.models))
                        party.run.history.append(party.run._point(step, snapshot))
            yield Event(name, seed, phase, step.done, step.total, step.metrics, point, live)
            clock = time.perf_counter()  # what the caller and the live curve take is not the method's time
        self.seconds["server"] = self.seconds.get("server", 0.0) + spent
        self._keep()
        return self.evaluate(ctx, model)

    @torch.no_grad()
    def evaluate(self, ctx: Context, model: GlobalModel) -> Outcome:
        start = time.perf_counter()
        federation, x, y = self.federation, self.x_test, self.y_test
        scores = model.logits(x)
        if not bool(torch.isfinite(scores).all()) and not bool((scores == -torch.inf).any()):
            raise RunError(
                f"{self.plan.method.info.title} gave scores that are not finite; use a smaller learning rate."
            )
        predictions = scores.argmax(1)
        per_class = class_accuracy(predictions, y, federation.classes)
        points = test_points(len(y))
        extras = dict(model.numbers)
        if hasattr(model, "each"):
            extras["each_client"] = model.each(x, y)
            extras["best_client_accuracy"] = extras["each_client"][model.best]
        if hasattr(model, "curves"):
            extras |= model.curves(x, y)
        accuracy = model.accuracy(x, y)
        sent = ctx.link.ledger.up + ctx.link.ledger.down
        last = {"phase": "end", "progress": 1.0, "accuracy": accuracy, "bytes": sent}
        self.seconds["evaluation"] = time.perf_counter() - start
        s = self.settings
        return Outcome(
            method=self.plan.name,
            setting={
                "dataset": s.dataset,
                "alpha": s.alpha,
                "clients": s.clients,
                "seed": s.seed,
                "preset": s.preset,
                "partition": s.partition,
                "classes_per_client": s.classes_per_client,
                "spurious": s.spurious,
                "model": s.model if s.model != "auto" else self.plan.architectures[0][0],
                "holdout": s.holdout,
                "init": s.init,
                "device": s.device,
                "recipe": {k: getattr(self.plan.recipe, k) for k in self.plan.recipe.__dataclass_fields__},
                "options": {k.name: getattr(self.plan.method, k.name) for k in self.plan.method.fields()},
            },
            accuracy=accuracy,
            per_class=[None if np.isnan(a) else a for a in per_class.tolist()],
            per_client=client_accuracy(per_class, federation.label_counts).tolist(),
            ledger=ctx.link.ledger,
            history=[*self.history, last],
            seconds=self.seconds,
            parameters=model.parameters,
            label_counts=federation.label_counts.numpy(),
            skew={
                "jensen_shannon": federation.skew.jensen_shannon,
                "effective_classes": federation.skew.effective_classes,
                "moved": federation.moved,
            },
            test_features=model.features(x[points]).float().cpu().numpy(),
            test_labels=y[points].cpu().numpy(),
            test_predictions=predictions[points].cpu().numpy(),
            extras=extras,
            artefacts={name: np.asarray(array) for name, array in model.artefacts.items()},
            clients_cached=self.clients_cached,
            _model=lambda: model,
        )


def _one(work: Plan, clients: _Clients, cache: bool, later: Sequence[Plan] = ()) -> Iterator[Event]:
    """Events of one plan, the last one with its outcome. `later`: the same with other seeds, which will follow."""
    runs = Store("runs") if cache else None
    key = work.run_key()
    found = runs.get(key) if runs else None
    if found is not None:
        outcome = Outcome.from_entry(*found, model=lambda: _again(work))
        yield Event(work.name, work.settings.seed, "remembered", 1, 1, outcome=outcome)
        return
    fresh = _Run(work, clients, cache, [w for w in later if runs is None or not runs.has(w.run_key())])
    with suitable_threads(work.settings.device, fresh.federation.dataset.input_shape):
        outcome = yield from fresh.steps()
    if runs:
        runs.put(key, *outcome.to_entry())
    yield Event(work.name, work.settings.seed, "done", 1, 1, outcome=outcome)


def _again(work: Plan) -> GlobalModel:
    """The model of a remembered run, from its remembered clients."""
    run = _Run(work, _remembered, cache=True)
    steps = run.steps()
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value.model


def job(
    methods: str | Sequence[str], *, seeds: int = 1, cache: bool = True, **settings: Any
) -> Generator[Event, None, list[Outcome]]:
    """Run `methods` on `seeds` federations (seed, seed+1, …); a generator of Events that returns the outcomes.

    Wrong settings raise UsageError before anything is computed. A method that fails yields an Event with its `error`,
    and the others go on. Closing the generator stops the work between two steps; what was finished stays in the store.

    Where clients are trained as a stack, those of up to 8 seeds are trained together (`together`), so that a band over
    seeds costs less than so many runs; the results are those of single runs to rounding, and each seed's time is its
    share.
    """
    names = [methods] if isinstance(methods, str) else list(dict.fromkeys(methods))
    if names == ["all"]:
        names = list(METHODS)
    base = Settings.make(**settings)
    count = number("seeds", parsed(seeds), 1, 1000, integer=True)
    plans = [plan(base.with_seed(base.seed + i), names) for i in range(count)]
    return _events(plans, cache)


def _events(plans: Sequence[Sequence[Plan]], cache: bool) -> Generator[Event, None, list[Outcome]]:
    clients = _remembered if cache else _Clients(limit=4 * SEEDS)
    outcomes: list[Outcome] = []
    for i, works in enumerate(plans):
        for j, work in enumerate(works):
            try:
                for event in _one(work, clients, cache, [later[j] for later in plans[i + 1 :]]):
                    yield event
                    if event.outcome is not None:
                        outcomes.append(event.outcome)
            except Exception as error:
                yield Event(work.name, work.settings.seed, "failed", error=error)
    return outcomes


class Outcomes(list):
    """Outcomes of a comparison, with their table."""

    def table(self) -> list[dict[str, Any]]:
        """One row an outcome: the keys that the command line prints."""
        return [outcome.to_json() for outcome in self]

    def mean(self, method: str) -> float:
        """Mean test accuracy of `method` over the seeds."""
        values = [outcome.accuracy for outcome in self if outcome.method == method]
        if not values:
            raise FedlabError(f"No outcome of {method!r} is here; there are: {', '.join({o.method for o in self})}.")
        return sum(values) / len(values)


def compare(methods: str | Sequence[str], *, seeds: int = 1, cache: bool = True, **settings: Any) -> Outcomes:
    """Run several methods on the same federation(s); clients are trained once. A failure is raised after the others
    have ended."""
    outcomes, failed = Outcomes(), None
    for event in job(methods, seeds=seeds, cache=cache, **settings):
        if event.outcome is not None:
            outcomes.append(event.outcome)
        if event.error is not None:
            failed = failed or event.error
    if failed is not None:
        raise failed
    return outcomes


def run(method: str, *, cache: bool = True, **settings: Any) -> Outcome:
    """Run one method. Settings are those of `Settings`; recipe and method fields may be given too (`epochs=20`,
    `rounds=100`)."""
    return compare([method], cache=cache, **settings)[0]
