"""What runs will cost, before they run: seconds on this machine, and bytes between clients and server.

The bytes are what each method says of itself (`Method.bytes_sent`).

The seconds are those of the stored results: the same method on the same data, with the stored number of clients and α
that are nearest. The machine that made them was another one, so one training step is measured here, and with it the
time that the clients' local training takes. A method's own part, stored beside that of the local training, is told
slower or faster in the same proportion. Where networks, data or numbers of rounds are others than the stored ones, it
goes with them. All this is rough: within a factor of three. What has no stored results takes a time that is not known.
"""

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log, prod
from statistics import fmean, median
from typing import Any, NamedTuple

import torch
from torch.nn import functional as F

from ..errors import FedlabError, check_names
from ..methods.traffic import FLOAT, Sizes, Traffic, count_triangle_entries
from ..models import build, model_state, parameter_count
from ..models.state import copy_model
from ..training import Recipe
from ..training.backend import (
    SMALL_INPUT,
    choose_smallest_stack,
    configure_torch,
    count_cores,
    find_fastest_backend,
)
from ..training.optim import make_optimizer
from ..training.stack import Stack
from ..training.stacked import cross_entropy_gradient
from .experiment import are_clients_stored, is_stored
from .settings import Plan, Settings, make_plans
from .stored_results import DIGITS, StoredTable, list_stored_sets, load

BATCH = 32  # samples of a measured step
MOST_STEPS = 30  # that are measured
MEASURING_SECONDS = 0.2  # after so long no further step is measured
STACK = 10  # clients of the stack that is measured
# Knobs that say how often something is done: a method's own time goes with each of them.
REPETITIONS = (
    "rounds",
    "epochs",
    "local_epochs",
    "server_epochs",
    "steps",
    "local_steps",
    "server_steps",
    "one_shot_steps",
    "generator_steps",
    "distil_steps",
    "iterations",
    "passes",
    "students",
    "layers",
    "samples",
    "per_class",
)
# What a step in a training takes, by a step alone: batches are drawn, and accuracies measured.
OVERHEAD = 1.7
LEAST_SECONDS = 0.005  # of a run that computes anything
CLIENT_SECONDS = 0.004  # to build, send and test one client's network, however little it trains


@dataclass(frozen=True)
class Cost:
    """seconds: on this machine while it has nothing else to do, None where nobody knows yet
    bytes: up and down, all clients and runs;   exact: whether the bytes are those that the ledger will have"""

    seconds: float | None
    bytes: float
    exact: bool


def estimate_cost(*calls: tuple[str | Sequence[str], Mapping[str, Any]]) -> Cost | None:
    """What several calls of `fl.job` will cost; None while their arguments are wrong.

    calls: of each its methods and its settings

    Stored runs take no time, nor do clients that are stored or trained for an earlier run.
    """
    runs: list[Plan] = []
    total = 0.0
    is_exact = True
    try:
        for methods, settings in calls:
            values = dict(settings)
            values.pop("cache", None)
            seeds = int(values.pop("seeds", 1))
            for plan in make_plans(Settings.make(**values), check_names("methods", methods)):
                traffic = estimate_traffic(plan)
                total += seeds * traffic.bytes
                is_exact = is_exact and traffic.is_exact
                for i in range(seeds):
                    seed = plan.settings.seed + i
                    runs.append(replace(plan, settings=replace(plan.settings, seed=seed)))
    except FedlabError:
        return None
    return Cost(estimate_seconds(runs), total, is_exact)


# ------------------------------------------------------------------------------------------------ bytes
def estimate_traffic(plan: Plan) -> Traffic:
    """What travels in a run: exact if the method says so, and all clients are alike and send what they should."""
    traffic = plan.method.bytes_sent(collect_sizes(plan))
    settings = plan.settings
    is_usual = settings.poison == "none" and not settings.absent
    if is_usual and len(set(plan.architectures)) == 1:
        return traffic
    return traffic.about


def collect_sizes(plan: Plan) -> Sizes:
    """What a plan knows of the sizes that bytes depend on."""
    settings = plan.settings
    about = settings.describe()
    clients = len(settings.members)
    networks = [
        measure_network_sizes(architecture) for architecture in plan.architectures[:clients]
    ]
    up = sum(network["state_bytes"] for network in networks)
    return Sizes(
        clients=clients,
        samples=settings.share * about.n_train,
        public_samples=about.n_public,
        classes=about.classes,
        input_shape=tuple(about.input_shape),
        numbers=prod(about.input_shape),
        models_up=up,
        models_down=up if settings.init == "same" else 0,
        **networks[0],
    )


@functools.lru_cache(maxsize=256)
def measure_network_sizes(architecture: tuple) -> dict[str, int]:
    """The sizes of one network, by the names of `Sizes`."""
    name, shape, classes, width = architecture
    model = build(name, shape, classes, width=width)
    state = model_state(model)
    coded = {name: tensor for name, tensor in state.items() if tensor.ndim > 1}
    inputs = 0
    outputs = 0
    for name, weight in coded.items():
        has_bias = name.replace("weight", "bias") in state
        inputs += count_triangle_entries(prod(weight.shape[1:]) + has_bias)
        outputs += count_triangle_entries(len(weight))
    return {
        "state_bytes": FLOAT * sum(tensor.numel() for tensor in state.values()),
        "parameter_bytes": FLOAT * parameter_count(model),
        "coded_numbers": sum(tensor.numel() for tensor in coded.values()),
        "coded_tensors": len(coded),
        "features": model.classifier.in_features,
        "input_triangles": inputs,
        "output_triangles": outputs,
    }


# ------------------------------------------------------------------------------------------------ seconds
def estimate_seconds(plans: Iterable[Plan]) -> float | None:
    """What these runs will take; None if a method among them has no stored results.

    Stored runs take no time, nor do clients that are stored or trained for an earlier run.
    """
    total = 0.0
    trained = set[str]()  # keys of the clients that a run before has trained
    for plan in plans:
        if is_stored(plan):
            continue
        seconds = estimate_method_seconds(plan)
        if seconds is None:
            return None
        total += max(seconds, LEAST_SECONDS)
        if plan.method.sends_models:
            total += CLIENT_SECONDS * len(plan.settings.members)
        if not plan.method.trains_locally:
            continue
        key = plan.make_clients_key()
        if key not in trained and not are_clients_stored(plan):
            trained.add(key)
            total += estimate_training_seconds(plan)
    return total


def estimate_method_seconds(plan: Plan) -> float | None:
    """What a method takes here beside the clients' local training; None if it has no stored results."""
    table = load(plan.settings.dataset if plan.settings.dataset in list_stored_sets() else DIGITS)
    stored = find_nearest_row(table, plan)
    if stored is None:
        return None
    device = plan.settings.device
    usual = make_plan_of_row(
        table.dataset, plan.name, stored["at"]["alpha"], stored["at"]["clients"]
    )
    usual = replace(usual, settings=replace(usual.settings, device=device))
    if median(stored["seconds_local"]) > 0:  # made at the same time on the same machine
        slower = estimate_training_seconds(usual) / fmean(stored["seconds_local"])
    else:
        slower = compare_speed(table, device)
    seconds = median(stored["seconds_method"]) * slower
    if plan.method.trains_locally:  # the server works on single networks
        seconds *= measure_step_seconds(plan) / measure_step_seconds(usual)
    elif plan.method.sends_models:  # the clients train again, all of them together
        seconds *= estimate_training_seconds(plan, passes=1) / estimate_training_seconds(
            usual, passes=1
        )
    else:  # it makes nothing of the clients' networks
        seconds *= count_samples(plan) / count_samples(usual)
    if not plan.method.trains_locally:
        seconds *= count_passes(plan, plan.recipe.epochs) / count_passes(plan, usual.recipe.epochs)
    for knob in REPETITIONS:
        before = getattr(usual.method, knob, 0)
        now = getattr(plan.method, knob, 0)
        if before and now:
            seconds *= now / before
    return seconds


def count_passes(plan: Plan, epochs: int) -> float:
    """How often a client would train on its own data if the recipe had so many epochs; 1 where it trains nothing."""
    members = len(plan.settings.members)
    sizes = [count_samples(plan) / members] * members
    recipe = replace(plan.recipe, epochs=epochs)
    return plan.method.local_passes(recipe, sizes) or 1.0


def find_nearest_row(table: StoredTable, plan: Plan) -> Mapping[str, Any] | None:
    """The stored row of the plan's method whose clients and α are nearest, on logarithmic scales."""

    members = len(plan.settings.members)

    def distance(place: tuple[str, float, int]) -> float:
        _, alpha, clients = place
        clients_apart = abs(log(clients / members))
        return clients_apart + 0.1 * abs(log(alpha / plan.settings.alpha))

    places = [place for place in table.rows if place[0] == plan.name]
    return table.rows[min(places, key=distance)] if places else None


@functools.lru_cache(maxsize=256)
def make_plan_of_row(dataset: str, method: str, alpha: float, clients: int) -> Plan:
    """The plan of a stored row."""
    settings = Settings.make(dataset=dataset, alpha=alpha, clients=clients, device="cpu")
    return make_plans(settings, [method])[0]


@functools.lru_cache(maxsize=8)
def compare_speed(table: StoredTable, device: str) -> float:
    """How much longer something takes here than on the machine that made the stored results: the time of the clients'
    local training here by the one there."""
    alpha = next(alpha for method, alpha, _ in table.rows if method == "fedavg")
    clients = table.find_nearest_clients(STACK)
    stored = table.rows["fedavg", alpha, clients]
    plan = make_plan_of_row(table.dataset, "fedavg", alpha, clients)
    seconds_here = estimate_training_seconds(
        replace(plan, settings=replace(plan.settings, device=device))
    )
    return seconds_here / fmean(stored["seconds_local"])


def measure_step_seconds(plan: Plan) -> float:
    """What a training step of one client's network takes, the mean over clients."""
    device = plan.settings.device
    return fmean(measure_step(architecture, device).seconds for architecture in plan.architectures)


def count_samples(plan: Plan) -> float:
    """How many samples all clients train on."""
    settings = plan.settings
    return settings.share * settings.describe().n_train * (1 - plan.holdout)


def estimate_training_seconds(plan: Plan, passes: float | None = None) -> float:
    """What all clients take for so many passes over their own samples, by default those of the recipe."""
    settings = plan.settings
    about = settings.describe()
    samples = count_samples(plan)
    members = len(settings.members)
    steps = [measure_step(architecture, settings.device) for architecture in plan.architectures]
    # Of all clients; the last one of each is half full.
    batches = samples / plan.recipe.batch_size + members / 2
    batch_seconds = measure_step_seconds(plan) * plan.recipe.batch_size / BATCH
    if passes is None:
        passes = plan.recipe.epochs
    if members > 1 and all(step.stacked for step in steps):
        # A stack takes as many steps as its largest client, each a little longer with every client more.
        peak = 1.0  # samples of the largest client by those of the mean one
        if settings.partition == "dirichlet":
            peak += 0.8 / (1 + settings.alpha)
        stacks = max(1, members // steps[0].least_stack)
        more = fmean((step.stacked - step.seconds) / step.seconds for step in steps)
        per_client = max(0.0, more / (STACK - 1))  # of a step's time; none on a card
        longest = (peak * batches / members + 0.5) * (1 + stacks) / 2
        batches = longest * max(0.0, 1 - per_client) + batches * per_client
        batches /= min(count_cores(), stacks)
    elif prod(about.input_shape) > SMALL_INPUT:
        batches /= min(count_cores(), members)  # each client on a core of its own
    return OVERHEAD * passes * batches * batch_seconds


class Step(NamedTuple):
    """What training steps take.

    seconds: of one step of a network
    stacked: of one step that STACK clients take as one stack, 0 if they do not
    least_stack: clients of a stack, at least, where there are several stacks
    """

    seconds: float
    stacked: float
    least_stack: int


@functools.lru_cache(maxsize=256)
def measure_step(architecture: tuple, device: str) -> Step:
    """A training step of a network, and of a stack of such, measured once a session."""
    name, shape, classes, width = architecture
    model = build(name, shape, classes, width=width, device=device)
    x = torch.zeros(STACK, BATCH, *shape, device=device)
    y = torch.zeros(STACK * BATCH, dtype=torch.long, device=device)
    optimizer = make_optimizer(model.parameters(), Recipe())

    def train_alone() -> None:
        loss = F.cross_entropy(model(x[0]), y[:BATCH])
        optimizer.step(torch.autograd.grad(loss, optimizer.parameters))

    def train_together() -> None:
        logits = stack.forward(x).flatten(0, 1)
        weights = torch.full((STACK * BATCH,), 1 / BATCH, device=device)
        slope = cross_entropy_gradient(logits, y, weights)
        stack_optimizer.step(torch.autograd.grad((logits * slope).sum(), parameters))

    with configure_torch(device, shape):
        seconds = measure_seconds(train_alone, device)
        stacked = 0.0
        if find_fastest_backend(device, model, shape, 2) == "stacked":
            stack = Stack([copy_model(model) for _ in range(STACK)])
            parameters = list(stack.activate(STACK).values())
            stack_optimizer = make_optimizer(stack.parameters.values(), Recipe(), rows=STACK)
            stacked = measure_seconds(train_together, device)
    least_stack = choose_smallest_stack(model) if device == "cpu" else STACK**9
    return Step(seconds, stacked, least_stack)


def measure_seconds(step: Callable[[], None], device: str) -> float:
    """Seconds of a step, as an idle machine takes them: those of the fastest quarter of a few after the first, which
    may set up a card for seconds."""
    taken: list[float] = []
    has_card = device != "cpu"
    # On a processor its own time, whatever else the machine does.
    clock = time.perf_counter if has_card else time.thread_time
    while len(taken) < MOST_STEPS and (len(taken) < 3 or sum(taken[1:]) < MEASURING_SECONDS):
        start = clock()
        step()
        if has_card:
            torch.cuda.synchronize(device)
        taken.append(clock() - start)
    return sorted(taken[1:])[len(taken) // 4]
