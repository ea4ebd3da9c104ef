"""The same work in what one would use instead: Flower's simulation, fluke, a plain loop, and here.

    uv venv peers --python 3.12
    uv pip install --python peers 'flwr[simulation]' fluke-fl -r pyproject.toml
    peers/bin/python tests/benchmarks/peers.py --repeats 3

FedAvg on the digits: the same federation, network, optimizer, batches and number of steps for all
four, once with one round of 40 epochs and once with 20 rounds of two. *Cold* is a new process, from
its start to the accuracy, imports included; *warm* is the same again in that process. The four take
turns, so that a busy moment of the machine meets them all, and the ratios are those of one turn. It
is run by hand, in an environment of its own and on an idle machine; no part of the test suite.

Every peer is used as its documentation shows it: Flower's `run_simulation` with a CPU core for each
client, fluke's `CentralizedFL` with its own loader and evaluation. What a peer prints goes away.
"""

import argparse
import contextlib
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from itertools import product
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
PEERS = ("here", "loop", "fluke", "flower")
TITLES = {"here": "fedlab_nb", "loop": "plain loop", "fluke": "fluke", "flower": "Flower"}
PACKAGES = ("torch", "flwr", "ray", "fluke-fl")
MODELS = ("mlp", "cnn")
CLIENTS = (10, 50)
EPOCHS = {1: 40, 20: 2}  # local epochs by the number of rounds: the same passes over the data
ALPHA, SEED, BATCH = 0.1, 0, 32
SGD = {"momentum": 0.9, "weight_decay": 1e-5}
RATES = {"mlp": 0.05, "cnn": 0.02}
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "WANDB_MODE": "disabled",
    "PYTHONWARNINGS": "ignore",
}


# ------------------------------------------------------------------------------------ the work
class Work:
    """The federation, the network, and the recipe that all peers get."""

    def __init__(self, model: str, clients: int, rounds: int) -> None:
        import fedlab_nb as fl

        self.model_name = model
        self.rounds = rounds
        self.epochs = EPOCHS[rounds]
        self.rate = RATES[model]
        self.federation = fl.federate("digits", alpha=ALPHA, clients=clients, seed=SEED)
        data = self.federation.dataset
        self.shards = [(data.x_train[rows], data.y_train[rows]) for rows in self.federation.shards]
        self.test = (data.x_test, data.y_test)

    def build_network(self):
        from fedlab_nb.models import build
        from fedlab_nb.rng import make_torch_generator

        shape = self.federation.dataset.input_shape
        stream = make_torch_generator(
            SEED, "init", self.model_name
        )  # the same first weights for all four
        return build(self.model_name, shape, 10, generator=stream)


def measure_accuracy(network, test: tuple) -> float:
    import torch

    network.eval()
    with torch.no_grad():
        return (network(test[0]).argmax(1) == test[1]).float().mean().item()


def train_one(network, shard: tuple, epochs: int, rate: float) -> None:
    """The loop of a tutorial: a DataLoader, an optimizer, cross-entropy."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(*shard), BATCH, shuffle=True)
    optimizer = torch.optim.SGD(network.parameters(), rate, **SGD)
    network.train()
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(images), labels).backward()
            optimizer.step()


# ----------------------------------------------------------------------------------- the peers
def run_here(work: Work) -> float:
    import fedlab_nb as fl

    method, local = "fedavg", {"epochs": work.epochs}
    if work.rounds > 1:
        method, local = "fedavg_multi", {"rounds": work.rounds, "local_epochs": work.epochs}
    settings = {"model": work.model_name, "lr": work.rate, "batch_size": BATCH, **SGD, **local}
    return fl.run(method, federation=work.federation, cache=False, holdout=0, **settings).accuracy


def run_loop(work: Work) -> float:
    import copy

    network = work.build_network()
    total = sum(len(shard[0]) for shard in work.shards)
    for _ in range(work.rounds):
        mean = {name: value * 0 for name, value in network.state_dict().items()}
        for shard in work.shards:
            local = copy.deepcopy(network)
            train_one(local, shard, work.epochs, work.rate)
            for name, value in local.state_dict().items():
                mean[name] += value * (len(shard[0]) / total)
        network.load_state_dict(mean)
    return measure_accuracy(network, work.test)


def run_flower(work: Work) -> float:
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    client_app, server_app, accuracies = ClientApp(), ServerApp(), []

    @client_app.train()
    def train(message, context):
        network = work.build_network()
        network.load_state_dict(message.content["arrays"].to_torch_state_dict())
        shard = work.shards[context.node_config["partition-id"]]
        train_one(network, shard, work.epochs, work.rate)
        metrics = MetricRecord({"num-examples": len(shard[0])})
        arrays = ArrayRecord(network.state_dict())
        content = RecordDict({"arrays": arrays, "metrics": metrics})
        return Message(content=content, reply_to=message)

    @server_app.main()
    def main(grid, context):
        network = work.build_network()
        strategy = FedAvg(fraction_evaluate=0, min_train_nodes=len(work.shards))
        start = ArrayRecord(network.state_dict())
        result = strategy.start(grid=grid, initial_arrays=start, num_rounds=work.rounds)
        network.load_state_dict(result.arrays.to_torch_state_dict())
        accuracies.append(measure_accuracy(network, work.test))

    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0}}
    run_simulation(server_app, client_app, len(work.shards), backend_config=resources)
    return accuracies[-1]


def run_fluke(work: Work) -> float:
    from fluke import DDict, FlukeENV
    from fluke.algorithms.fedavg import FedAVG
    from fluke.data import FastDataLoader
    from fluke.evaluation import ClassificationEval

    class Splitter:
        """Gives fluke the federation that all have."""

        def assign(self, count, batch_size):
            loaders = [
                FastDataLoader(
                    *shard,
                    num_labels=10,
                    batch_size=batch_size,
                    shuffle=True,
                    skip_singleton=False,
                )
                for shard in work.shards
            ]
            test = FastDataLoader(*work.test, num_labels=10, batch_size=512)
            return (loaders, [None] * count), test

    settings = FlukeENV()
    settings.set_seed(SEED)
    settings.set_device("cpu")
    settings.set_evaluator(ClassificationEval(eval_every=work.rounds, n_classes=10))
    client = DDict(
        batch_size=BATCH,
        local_epochs=work.epochs,
        loss="CrossEntropyLoss",
        optimizer=DDict(name="SGD", lr=work.rate, **SGD),
        scheduler=DDict(name="StepLR", step_size=1, gamma=1),
    )
    parameters = DDict(client=client, server=DDict(weighted=True), model=work.build_network())
    algorithm = FedAVG(len(work.shards), Splitter(), parameters)
    algorithm.run(work.rounds, 1.0)
    accuracy = measure_accuracy(algorithm.server.model, work.test)
    settings.close_cache()
    return accuracy


# ------------------------------------------------------------------------------ the measurement
def run_in_process(peer: str, work: tuple) -> None:
    """What a new process does: twice the same work; prints seconds and accuracies as JSON."""
    start = float(os.environ["PEERS_START"])
    runner: Callable[[Work], float] = globals()[f"run_{peer}"]
    with silenced():
        accuracies = [runner(Work(*work))]
        cold = time.time() - start
        begin = time.time()
        accuracies.append(runner(Work(*work)))
        warm = time.time() - begin
    print(json.dumps({"cold": cold, "warm": warm, "accuracies": accuracies}))


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Progress bars and logs of the peers are not ours to show."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def time_peer(peer: str, work: tuple, store: str) -> dict:
    """A new process for this peer; its own numbers."""
    environment = {**os.environ, **QUIET, "PYTHONPATH": str(ROOT), "FEDLAB_NB_STORE": store}
    environment["PEERS_START"] = str(time.time())
    words = ["--inside", peer, *map(str, work)]
    command = [sys.executable, str(Path(__file__).resolve()), *words]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{peer} on {work}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(work: tuple, repeats: int, peers: list[str]) -> dict[str, list[dict]]:
    """{peer: its numbers, one for each turn}."""
    numbers: dict[str, list[dict]] = {peer: [] for peer in peers}
    with tempfile.TemporaryDirectory() as store:
        for _ in range(repeats):
            for peer in peers:
                numbers[peer].append(time_peer(peer, work, store))
    return numbers


def table_row(work: tuple, numbers: dict[str, list[dict]]) -> str:
    """Seconds here, and for each other how many times as long: the median of the turns' ratios."""
    model, clients, rounds = work
    cells = [f"{model}, M = {clients}, {rounds} round{'s' if rounds > 1 else ''}"]
    for kind in ("cold", "warm"):
        ours = [turn[kind] for turn in numbers["here"]]
        cells.append(f"{median(ours):.2f} s")
        for peer, turns in numbers.items():
            if peer != "here":
                ratios = [turn[kind] / own for turn, own in zip(turns, ours, strict=True)]
                cells.append(f"{median(ratios):.1f}×")
    accuracies = [f"{100 * turns[0]['accuracies'][0]:.0f}" for turns in numbers.values()]
    return f"| {' | '.join([*cells, ', '.join(accuracies)])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3, help="turns; ratios are their medians")
    parser.add_argument("--only", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--clients", nargs="*", type=int, default=list(CLIENTS))
    parser.add_argument("--rounds", nargs="*", type=int, default=list(EPOCHS))
    parser.add_argument("--inside", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        peer, model, clients, rounds = options.inside
        run_in_process(peer, (model, int(clients), int(rounds)))
        return
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {versions}\n")
    peers = ["here", *(peer for peer in options.only if peer != "here")]
    others = [TITLES[peer] for peer in peers[1:]]
    names = ", ".join(TITLES[peer] for peer in peers)
    head = ["work", "cold: here", *others, "warm: here", *others, f"accuracy, %: {names}"]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    for work in product(options.models, options.clients, options.rounds):
        print(table_row(work, measure(work, options.repeats, peers)), flush=True)


if __name__ == "__main__":
    main()
