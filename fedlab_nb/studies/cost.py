"""What runs will cost, before they run: seconds on this machine, and bytes between clients and server.

`methods/costs.toml` has the formulas of each method. `bytes` is what its ledger will say, to the byte; `about` stands
in for it where bytes depend on who holds what. `seconds` are the terms of a sum, and a number for each that was fitted
to measured runs (`tests/benchmarks/cost.py`). They know the method's knobs by name, and

M, n, N, A  clients, training samples, public samples, batches of test samples;   C, p, d  classes, numbers of a
            sample, of its frozen features
E, B, L     passes of a client over its own samples; batches of all clients in one pass, and how many of them take as
            long as their local training does, as a stack or on several cores
U, D        bytes of all clients' networks, and of those that come down first
S, W, X, K  of one network: bytes of its state and of its parameters, numbers and tensors that can be quantised
R, TI, TO   its features; numbers of the triangles of all layers' inputs and outputs;   Q: of FENS' rule
t, u        seconds of a training step on 32 samples, of a client's network and of the perceptron for 8x8 images: a
            step of both, and of a stack, is measured once a session, so that a slow machine is told more
G, a        networks that one pass takes one after the other, and u where time is arithmetic: M and u on a processor;
            1 and 0 on a card, which takes all networks as one stack, and whose steps only wait for their launches
"""

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from statistics import mean
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F

from ..declared import declared
from ..errors import FedlabError, several
from ..methods.fens import Fens
from ..models import Network, build, model_state, parameter_count
from ..models.state import copy_model
from ..training import Recipe
from ..training.backend import (
    SMALL_INPUT,
    SMALLEST_STACK,
    auto_backend,
    cores,
    is_convolutional,
    suited,
)
from ..training.optim import optimizer_for
from ..training.stack import Stack
from ..training.stacked import cross_entropy_slope
from .experiment import remembered
from .settings import Plan, Settings, plans_for

BATCH, STEPS, PATIENCE = (
    32,
    30,
    0.2,
)  # samples of a step, steps that are measured at most, seconds for them
UNIT = ("mlp", (1, 8, 8), 10, 64)  # the network of `u`
FORMULAS = "methods/costs.toml"
STACK = 10  # clients of the stack that is measured


@dataclass(frozen=True)
class Cost:
    """seconds: on this machine while it has nothing else to do;   bytes: up and down, all clients and runs
    exact: whether the bytes are those that the ledger will have"""

    seconds: float
    bytes: float
    exact: bool


class Step(NamedTuple):
    """seconds: of one training step of a network;   stacked: of one that STACK clients take as one stack, 0 if they
    do not;   least: clients of a stack, at least, where there are several;   sizes: of the network, by the names of the
    formulas"""

    seconds: float
    stacked: float
    least: int
    sizes: dict[str, int]


def cost_of(*asked: tuple[str | Sequence[str], Mapping[str, Any]]) -> Cost | None:
    """What `study.job` will cost, called with each of these arguments; None while they are wrong. What is remembered
    takes no time, nor do clients that are trained for a plan before."""
    sent, exact, plans = 0.0, True, list[tuple[Plan, int]]()
    try:
        for methods, settings in asked:
            own = {
                name: given for name, given in settings.items() if name not in ("seeds", "cache")
            }
            found = plans_for(Settings.make(**own), several("methods", methods))
            plans += [(plan, int(settings.get("seeds", 1))) for plan in found]
    except FedlabError:
        return None
    for plan, seeds in plans:
        formulas, known = declared(FORMULAS).get(plan.name, {}), names_of(plan)
        ledger = value(formulas.get("bytes", "None"), known)
        usual = (
            plan.settings.poison == "none"
            and not plan.settings.absent
            and len(set(plan.architectures)) == 1
        )
        exact = exact and usual and ledger is not None
        sent += seeds * (value(formulas.get("about", "D + U"), known) if ledger is None else ledger)
    runs = ((plan, plan.settings.seed + i) for plan, seeds in plans for i in range(seeds))
    seconds = seconds_of(
        replace(plan, settings=replace(plan.settings, seed=seed)) for plan, seed in runs
    )
    return Cost(seconds, sent, exact)


def seconds_of(plans: Iterable[Plan]) -> float:
    """What these runs will take: nothing where they, or clients that they share with a run before, are remembered."""
    seconds, trained, every = 0.0, set[str](), declared(FORMULAS)
    for plan in plans:
        done, key = remembered(plan)
        if not done:
            known = names_of(plan)
            own = terms(every.get(plan.name, {}).get("seconds", {}), known)
            seconds += max(known["u"], own)  # t - u can be less than 0, as both are measured
            if key and key not in trained and plan.method.trains_locally:
                trained.add(key)
                seconds += terms(every["local training"]["seconds"], known)
    return seconds


def terms(factors: dict[str, float], names: dict[str, Any]) -> float:
    return sum(factor * value(formula, names) for formula, factor in factors.items())


def value(formula: str, names: dict[str, Any]) -> Any:
    """A formula of the package's own file, with its names."""
    return eval(compiled(formula), {"__builtins__": {}}, names)


compiled = functools.cache(functools.partial(compile, filename=FORMULAS, mode="eval"))


def names_of(plan: Plan) -> dict[str, Any]:
    """What the formulas know of a plan."""
    s, about = plan.settings, plan.settings.describe()
    members, samples = len(s.members), s.share * about.n_train
    steps = [step_of(architecture, s.device) for architecture in plan.architectures]
    numbers = prod(about.input_shape)
    known = dict(vars(plan.method))
    size = {"pixels": numbers}.get(known.get("features", ""), known.get("size", numbers))
    batches = samples * (1 - plan.holdout) / plan.recipe.batch_size + members / 2
    local = (
        batches / min(cores(), members) if numbers > SMALL_INPUT else batches
    )  # each client on a core of its own
    if members > 1 and all(
        step.stacked for step in steps
    ):  # as many steps as the largest client has, of each stack
        peak = 1 + (0.8 / (1 + s.alpha) if s.partition == "dirichlet" else 0)
        parts = max(1, members // steps[0].least)
        more = mean((step.stacked - step.seconds) / step.seconds for step in steps)
        each = max(0, more / (STACK - 1))  # of a step's time, a client more; none on a card
        local = (peak * batches / members + 0.5) * (1 + parts) / 2 * max(
            0, 1 - each
        ) + batches * each
        local /= min(cores(), parts)
    whole = sum(step.sizes["S"] for step in steps)
    terms = (
        plan.method.terms(members, about.classes, about.input_shape)
        if isinstance(plan.method, Fens)
        else {}
    )
    unit, card = step_of(UNIT, s.device).seconds, s.device != "cpu"
    return known | steps[0].sizes | {
        "M": members, "n": samples, "N": about.n_public, "A": about.n_test / BATCH, "C": about.classes, "p": numbers,
        "d": size, "E": plan.local_passes(about.n_train), "B": batches, "L": local,
        "U": whole, "D": whole if s.init == "same" else 0, "Q": terms.get("q", 0),
        "t": mean(step.seconds for step in steps) * plan.recipe.batch_size / BATCH,
        "u": unit, "G": 1 if card else members, "a": 0 if card else unit,
    }  # fmt: skip


@functools.lru_cache(maxsize=256)
def step_of(architecture: tuple, device: str) -> Step:
    """A training step of a network, and of a stack of such, measured."""
    name, shape, classes, width = architecture
    model = build(name, shape, classes, width=width, device=device)
    x, y = (
        torch.zeros(STACK, BATCH, *shape, device=device),
        torch.zeros(STACK * BATCH, dtype=torch.long, device=device),
    )
    own = optimizer_for(model.parameters(), Recipe())

    def alone() -> None:
        own.step(torch.autograd.grad(F.cross_entropy(model(x[0]), y[:BATCH]), own.parameters))

    def together() -> None:
        logits = stack.forward(x).flatten(0, 1)
        slope = cross_entropy_slope(
            logits, y, torch.full((STACK * BATCH,), 1 / BATCH, device=device)
        )
        all_of_them.step(torch.autograd.grad((logits * slope).sum(), parameters))

    with suited(device, shape):
        one, several = fastest(alone, device), 0.0
        if auto_backend(device, model, shape, 2) == "stacked":
            stack = Stack([copy_model(model) for _ in range(STACK)])
            parameters = list(stack.use(STACK).values())
            all_of_them = optimizer_for(stack.parameters.values(), Recipe(), rows=STACK).first(
                STACK
            )
            several = fastest(together, device)
    return Step(
        one,
        several,
        SMALLEST_STACK[is_convolutional(model)] if device == "cpu" else STACK**9,
        sizes_of(model),
    )


def fastest(step: Callable[[], None], device: str) -> float:
    """Seconds of a step, as an idle machine takes them: those of the fastest quarter of a few after the first, which
    may set up a card for seconds."""
    taken: list[float] = []
    card = device != "cpu"
    clock = (
        time.perf_counter if card else time.thread_time
    )  # its own time, whatever else the machine does
    while len(taken) < STEPS and (len(taken) < 3 or sum(taken[1:]) < PATIENCE):
        start = clock()
        step()
        if card:
            torch.cuda.synchronize(device)
        taken.append(clock() - start)
    return sorted(taken[1:])[len(taken) // 4]


def sizes_of(model: Network) -> dict[str, int]:
    """The sizes of one network, by the names of the formulas."""
    state = model_state(model)
    coded = {name: t for name, t in state.items() if t.ndim > 1}
    biased = ((w, name.replace("weight", "bias") in state) for name, w in coded.items())
    sides = [(prod(w.shape[1:]) + bias, len(w)) for w, bias in biased]
    return {
        "S": 4 * sum(t.numel() for t in state.values()), "W": 4 * parameter_count(model),
        "X": sum(t.numel() for t in coded.values()), "K": len(coded), "R": model.classifier.in_features,
        "TI": sum(i * (i + 1) // 2 for i, _ in sides), "TO": sum(o * (o + 1) // 2 for _, o in sides),
    }  # fmt: skip
