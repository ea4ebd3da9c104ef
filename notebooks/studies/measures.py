"""What the studies of the texts measure beyond a run's own numbers.

A function of an outcome returns {name: number}; a figure reads it as `runs/method:function.name`. A function of plain
numbers is a constant of a figure: `bits = "= shared_bits(3.3)"`.
"""

import hashlib
from pathlib import Path
from statistics import fmean


def code() -> str:
    """This file's digest: when it changes, everything is measured again."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]


def probes(outcome) -> dict[str, float]:
    """FuseFL: linear probes on the top features, trained on all training samples: of one client (mean over them), of
    the mean over the clients, and the gain of the mean; `first`: of one client's first layer or block."""
    from fedlab_nb.labs.fusefl.probes import blocks_of, layers_of, probe

    data, network = outcome.settings.data(), outcome.model.module
    outputs = blocks_of if outcome.options["blocks"] > 1 else layers_of
    points = [*probe(outputs(network, data.x_train), data.y_train, outputs(network, data.x_test), data.y_test)]
    (first, _), (each, of_mean) = points[0], points[-1]
    return {"each": fmean(each), "mean": of_mean, "first": fmean(first)}


def shared_cue_bits(seed: int, spurious: str = "0,1") -> float:
    """Bits that the cue of lesson 06 tells about the label over all five clients of one federation."""
    return _cue_over_clients(seed, spurious)[0]


def label_bits(seed: int) -> float:
    """Entropy of the label in the same federation."""
    return _cue_over_clients(seed, "0,1")[1]


def _cue_over_clients(seed: int, spurious: str) -> tuple[float, float]:
    from fedlab_nb.data import federate
    from fedlab_nb.labs.fusefl.two_cues import cue_over_clients

    counts = federate("digits", alpha=0.5, clients=5, seed=seed).label_counts
    return cue_over_clients(counts, [int(k) for k in spurious.split(",")])
