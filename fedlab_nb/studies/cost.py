"""Estimates the cost of runs before they begin: seconds on this machine, and bytes between clients
and server.

The bytes come from the method itself (`Method.bytes_sent`).

The seconds come from the stored results of the same method on the same data, with the nearest
stored number of clients and α. Another machine made these, so one training step is measured on this
machine. It gives the time of the clients' local training, and that of training one network on all
data, which is stored, too. Their ratio tells how much slower this machine is. The stored time of a
method's own part is scaled by this ratio, and also by the sizes of the networks and the data and by
the numbers of rounds, if they differ from the stored ones. The estimates are right within a factor
of three. The time of a method without stored results is not known.
"""

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import log, prod
from statistics import fmean, median
from typing import NamedTuple

import torch
from torch.nn import functional as F

from ..errors import FedlabError, check_and_list_unique_names
from ..methods.traffic import (
    FLOAT,
    FederationSizes,
    NetworkSizes,
    RunBytesUpPlusDown,
    count_upper_triangle_entries,
)
from ..models import build, copy_model_state, count_parameters
from ..models.network import Architecture
from ..models.state import copy_model
from ..training import Recipe
from ..training.backend import (
    SMALL_INPUT,
    choose_minimum_client_count_for_stack,
    count_usable_cores,
    find_fastest_backend,
    use_torch_settings_for_run,
)
from ..training.optim import make_optimizer
from ..training.stack import Stack
from ..training.stacked import compute_weighted_cross_entropy_gradient
from ..value_types import MeanPassesPerClient, SettingValue
from .experiment import are_clients_stored, is_run_stored
from .settings import MethodRunPlan, Settings, make_plans
from .stored_results import DIGITS, StoredTable, list_datasets_with_stored_results, load
from .stored_rows import StoredRow

# The arguments of a call of `fl.job`: names of methods, and settings by name.
MethodsAndSettings = tuple[str | Sequence[str], Mapping[str, SettingValue]]

BATCH = 32  # samples of a measured step
MOST_STEPS = 30  # steps that are measured, at most
MEASURING_SECONDS = 0.2  # after this time no further step is measured
STACK = 10  # clients of the stack that is measured
# Knobs for how often something is done. A method's own time is proportional to each of them.
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
# Time of a step in a training divided by that of a step alone, as batches are drawn and accuracies measured, too.
OVERHEAD = 1.7
LEAST_SECONDS = 0.005  # of a run that computes anything
CLIENT_SECONDS = 0.004  # to build, send and test one client's network, however little it trains


@dataclass(frozen=True)
class EstimatedCost:
    """What runs will cost.

    seconds: on this machine while it has nothing else to do, None if not known yet
    bytes: up and down, of all clients and runs
    exact: whether the bytes are those that the ledger will have
    bytes_per_seed: up and down, of all clients and methods, with one seed
    seeds: number of seeds
    has_upload: whether clients send anything
    """

    seconds: float | None
    bytes: float
    exact: bool
    bytes_per_seed: float
    seeds: int
    has_upload: bool


def estimate_cost(*calls: MethodsAndSettings) -> EstimatedCost | None:
    """Estimate the cost of several calls of `fl.job`; None if their arguments are wrong.

    calls: the methods and the settings of each call; `seeds` of the result is the largest of theirs

    Stored runs take no time, nor do clients that are stored or trained for an earlier run.
    """
    runs: list[MethodRunPlan] = []
    total = 0.0
    per_seed = 0.0
    most_seeds = 1
    is_exact = True
    has_upload = False
    try:
        for methods, settings in calls:
            values = dict(settings)
            values.pop("cache", None)
            seeds = int(values.pop("seeds", 1))
            most_seeds = max(most_seeds, seeds)
            for plan in make_plans(
                Settings.make(**values), check_and_list_unique_names("methods", methods)
            ):
                traffic = estimate_bytes_of_run(plan)
                total += seeds * traffic.bytes
                per_seed += traffic.bytes
                has_upload = has_upload or bool(plan.method.info.sends)
                is_exact = is_exact and traffic.is_exact
                for i in range(seeds):
                    seed = plan.settings.seed + i
                    runs.append(replace(plan, settings=replace(plan.settings, seed=seed)))
    except FedlabError:
        return None
    seconds = estimate_seconds_of_runs(runs)
    return EstimatedCost(seconds, total, is_exact, per_seed, most_seeds, has_upload)


# ------------------------------------------------------------------------------------------------ bytes
def estimate_bytes_of_run(plan: MethodRunPlan) -> RunBytesUpPlusDown:
    """Estimate the bytes of a run. They are exact if the method says so, and if all clients are
    alike and honest.
    """
    traffic = plan.method.bytes_sent(estimate_federation_sizes(plan))
    settings = plan.settings
    is_usual = settings.poison == "none" and not settings.absent
    if is_usual and len(set(plan.architectures)) == 1:
        return traffic
    return traffic.as_estimate


def estimate_federation_sizes(plan: MethodRunPlan) -> FederationSizes:
    """Estimate the sizes on which the bytes of a plan depend, as far as they are known before the run."""
    settings = plan.settings
    about = settings.describe_dataset()
    clients = len(settings.participating_clients)
    networks = [
        count_bytes_and_triangle_entries_of_network(architecture)
        for architecture in plan.architectures[:clients]
    ]
    up = sum(network.state_bytes for network in networks)
    return FederationSizes(
        clients=clients,
        samples=settings.share * about.n_train,
        public_samples=about.n_public,
        classes=about.classes,
        input_shape=tuple(about.input_shape),
        numbers=prod(about.input_shape),
        models_up=up,
        models_down=up if settings.init == "same" else 0,
        **asdict(networks[0]),
    )


@functools.lru_cache(maxsize=256)
def count_bytes_and_triangle_entries_of_network(architecture: Architecture) -> NetworkSizes:
    """Build a network to count its bytes and the entries of its triangles."""
    name, shape, classes, width = architecture
    model = build(name, shape, classes, width=width)
    state = copy_model_state(model)
    coded = {name: tensor for name, tensor in state.items() if tensor.ndim > 1}
    inputs = 0
    outputs = 0
    for name, weight in coded.items():
        has_bias = name.replace("weight", "bias") in state
        inputs += count_upper_triangle_entries(prod(weight.shape[1:]) + has_bias)
        outputs += count_upper_triangle_entries(len(weight))
    return NetworkSizes(
        state_bytes=FLOAT * sum(tensor.numel() for tensor in state.values()),
        parameter_bytes=FLOAT * count_parameters(model),
        coded_numbers=sum(tensor.numel() for tensor in coded.values()),
        coded_tensors=len(coded),
        features=model.classifier.in_features,
        input_triangles=inputs,
        output_triangles=outputs,
    )


# ------------------------------------------------------------------------------------------------ seconds
def estimate_seconds_of_runs(plans: Iterable[MethodRunPlan]) -> float | None:
    """Estimate the seconds that these runs will take; None if one of their methods has no stored
    results.

    Stored runs take no time, nor do clients that are stored or trained for an earlier run.
    """
    total = 0.0
    trained = set[str]()  # keys of the clients that an earlier run of these has trained
    for plan in plans:
        if is_run_stored(plan):
            continue
        seconds = estimate_seconds_besides_local_training(plan)
        if seconds is None:
            return None
        total += max(seconds, LEAST_SECONDS)
        if plan.method.sends_models:
            total += CLIENT_SECONDS * len(plan.settings.participating_clients)
        if not plan.method.trains_locally:
            continue
        key = plan.hash_settings_of_local_training()
        if key not in trained and not are_clients_stored(plan):
            trained.add(key)
            total += estimate_local_training_seconds_of_all_clients(plan)
    return total


def estimate_seconds_besides_local_training(plan: MethodRunPlan) -> float | None:
    """Estimate the seconds that a method takes in addition to the clients' local training; None if
    not known.
    """
    dataset = plan.settings.dataset
    has_stored_results = dataset in list_datasets_with_stored_results()
    table = load(dataset if has_stored_results else DIGITS)
    stored = find_stored_row_with_nearest_clients_and_alpha(table, plan)
    if stored is None:
        return None
    device = plan.settings.device
    usual = make_plan_of_stored_row(
        table.dataset, plan.method_name, stored["at"]["alpha"], stored["at"]["clients"]
    )
    usual = replace(usual, settings=replace(usual.settings, device=device))
    slowdown = compute_slowdown_relative_to_stored_runs(table, device)
    seconds = median(stored["seconds_method"]) * slowdown
    if plan.method.trains_locally:  # the server works on single networks
        step_seconds = measure_mean_step_seconds_over_clients(plan)
        seconds *= step_seconds / measure_mean_step_seconds_over_clients(usual)
    elif plan.method.sends_models:  # the clients train again, all of them together
        pass_seconds = estimate_local_training_seconds_of_all_clients(plan, 1)
        seconds *= pass_seconds / estimate_local_training_seconds_of_all_clients(usual, 1)
        share_per_round = compute_share_of_clients_per_round(plan)
        seconds *= share_per_round / compute_share_of_clients_per_round(usual)
    else:  # it makes nothing of the clients' networks
        samples = estimate_training_samples_of_all_clients(plan)
        seconds *= samples / estimate_training_samples_of_all_clients(usual)
    if not plan.method.trains_locally:
        passes = count_passes_over_local_data(plan, plan.recipe.epochs)
        seconds *= passes / count_passes_over_local_data(plan, usual.recipe.epochs)
    for knob in REPETITIONS:
        usual_value = getattr(usual.method, knob, 0)
        planned_value = getattr(plan.method, knob, 0)
        if usual_value and planned_value:
            seconds *= planned_value / usual_value
    return seconds


def count_passes_over_local_data(plan: MethodRunPlan, local_epochs: int) -> MeanPassesPerClient:
    """Count how often a client would train on its own data with this number of epochs; 1 if it
    trains nothing.
    """
    members = len(plan.settings.participating_clients)
    sizes = [estimate_training_samples_of_all_clients(plan) / members] * members
    recipe = replace(plan.recipe, epochs=local_epochs)
    return plan.method.local_passes(recipe, sizes) or 1.0


def compute_share_of_clients_per_round(plan: MethodRunPlan) -> float:
    """Compute the share of the clients that train in a round, 0-1."""
    members = len(plan.settings.participating_clients)
    per_round = getattr(plan.method, "per_round", 0) or members
    return min(per_round, members) / members


def find_stored_row_with_nearest_clients_and_alpha(
    table: StoredTable, plan: MethodRunPlan
) -> StoredRow | None:
    """Find the stored row of the plan's method whose clients and α are nearest, on logarithmic scales."""

    members = len(plan.settings.participating_clients)

    def distance(key: tuple[str, float, int]) -> float:
        _, alpha, clients = key
        clients_apart = abs(log(clients / members))
        return clients_apart + 0.1 * abs(log(alpha / plan.settings.alpha))

    keys = [key for key in table.rows if key[0] == plan.method_name]
    return table.rows[min(keys, key=distance)] if keys else None


@functools.lru_cache(maxsize=256)
def make_plan_of_stored_row(
    dataset: str, method: str, alpha: float, client_count: int
) -> MethodRunPlan:
    """Make the plan of the run whose results a stored row has."""
    settings = Settings.make(dataset=dataset, alpha=alpha, clients=client_count, device="cpu")
    return make_plans(settings, [method])[0]


@functools.lru_cache(maxsize=8)
def compute_slowdown_relative_to_stored_runs(table: StoredTable, device: str) -> float:
    """Compute how many times longer work takes here than on the machine that made the stored
    results.

    It is the time of training one network on all data here, divided by the time there. The time of
    the clients' local training cannot be used, since there the clients of all seeds were trained
    together.
    """
    keys = [key for key in table.rows if key[0] == "centralized"]
    seconds_there = median(seconds for key in keys for seconds in table.rows[key]["seconds_method"])
    _, alpha, clients = keys[0]  # this training does not depend on them
    plan = make_plan_of_stored_row(table.dataset, "centralized", alpha, clients)
    plan = replace(plan, settings=replace(plan.settings, device=device))
    batches = estimate_training_samples_of_all_clients(plan) / plan.recipe.batch_size
    batch_seconds = measure_mean_step_seconds_over_clients(plan) * plan.recipe.batch_size / BATCH
    return OVERHEAD * plan.recipe.epochs * batches * batch_seconds / seconds_there


def measure_mean_step_seconds_over_clients(plan: MethodRunPlan) -> float:
    """Measure the seconds of a training step of a client's network, as the mean over clients."""
    device = plan.settings.device
    return fmean(
        measure_step_seconds_once(architecture, device).seconds
        for architecture in plan.architectures
    )


def estimate_training_samples_of_all_clients(plan: MethodRunPlan) -> float:
    """Count the samples that all clients train on."""
    settings = plan.settings
    return (
        settings.share
        * settings.describe_dataset().n_train
        * (1 - plan.share_held_out_of_local_training)
    )


def estimate_local_training_seconds_of_all_clients(
    plan: MethodRunPlan, passes_over_local_data: float | None = None
) -> float:
    """Estimate the seconds that all clients take for `passes_over_local_data` over their own samples, by
    default the recipe's."""
    settings = plan.settings
    about = settings.describe_dataset()
    samples = estimate_training_samples_of_all_clients(plan)
    members = len(settings.participating_clients)
    steps = [
        measure_step_seconds_once(architecture, settings.device)
        for architecture in plan.architectures
    ]
    # The batches of all clients; the last batch of each client is half full on average.
    batches = samples / plan.recipe.batch_size + members / 2
    batch_seconds = measure_mean_step_seconds_over_clients(plan) * plan.recipe.batch_size / BATCH
    if passes_over_local_data is None:
        passes_over_local_data = plan.recipe.epochs
    if members > 1 and all(step.stacked for step in steps):
        # A stack takes as many steps as its largest client. Each step is a little longer with each further client.
        peak = 1.0  # samples of the largest client divided by the mean
        if settings.partition == "dirichlet":
            peak += 0.8 / (1 + settings.alpha)
        stacks = max(1, members // steps[0].least_stack)
        relative_extra = fmean((step.stacked - step.seconds) / step.seconds for step in steps)
        per_client = max(0.0, relative_extra / (STACK - 1))  # of a step's time; none on a card
        longest = (peak * batches / members + 0.5) * (1 + stacks) / 2
        batches = longest * max(0.0, 1 - per_client) + batches * per_client
        batches /= min(count_usable_cores(), stacks)
    elif prod(about.input_shape) > SMALL_INPUT:
        batches /= min(count_usable_cores(), members)  # each client on a core of its own
    return OVERHEAD * passes_over_local_data * batches * batch_seconds


class StepSeconds(NamedTuple):
    """How long training steps take.

    seconds: of one step of a network
    stacked: seconds of one step of STACK clients as one stack, 0 if they are not stacked
    least_stack: smallest number of clients in a stack, if there are several stacks
    """

    seconds: float
    stacked: float
    least_stack: int


@functools.lru_cache(maxsize=256)
def measure_step_seconds_once(architecture: Architecture, device: str) -> StepSeconds:
    """Measure a training step of a network and one of a stack of such networks, once in a session."""
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
        slope = compute_weighted_cross_entropy_gradient(logits, y, weights)
        stack_optimizer.step(torch.autograd.grad((logits * slope).sum(), parameters))

    with use_torch_settings_for_run(device, shape):
        seconds = measure_fastest_seconds_per_call(train_alone, device)
        stacked = 0.0
        if find_fastest_backend(device, model, shape, 2) == "stacked":
            stack = Stack([copy_model(model) for _ in range(STACK)])
            parameters = list(stack.activate_first_models(STACK).values())
            stack_optimizer = make_optimizer(
                stack.parameters.values(), Recipe(), stacked_model_count_or_none=STACK
            )
            stacked = measure_fastest_seconds_per_call(train_together, device)
    least_stack = choose_minimum_client_count_for_stack(model) if device == "cpu" else STACK**9
    return StepSeconds(seconds, stacked, least_stack)


def measure_fastest_seconds_per_call(function_to_time: Callable[[], None], device: str) -> float:
    """Measure the seconds of a step on an idle machine, by the fastest quarter of a few steps.

    The first step is left out, because it may set up a card for seconds.
    """
    seconds: list[float] = []
    has_card = device != "cpu"
    # On a processor its own time, whatever else the machine does.
    clock = time.perf_counter if has_card else time.thread_time
    while len(seconds) < MOST_STEPS and (len(seconds) < 3 or sum(seconds[1:]) < MEASURING_SECONDS):
        start = clock()
        function_to_time()
        if has_card:
            torch.cuda.synchronize(device)
        seconds.append(clock() - start)
    return sorted(seconds[1:])[len(seconds) // 4]
