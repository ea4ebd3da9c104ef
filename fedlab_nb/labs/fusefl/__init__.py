"""FuseFL's lab: its run step by step, clients with a spurious cue, fusion against calibration, and probes."""

from ...panels import Extra, LabSpec
from .cue import SpuriousCue
from .halves import Halves
from .probes import Probes
from .steps import Steps

MARKED = "The training images of these clients get a cue that shows the label. The test images stay as they are"
KIND = "A background whose grey or colour shows the label, or the paper's trigger: a small figure at a random place"
MODEL = "The network that is cut into K blocks. The usual perceptron has two layers, so it has at most two blocks"
NETWORKS = (
    ("as usual", "auto"),
    ("five-layer CNN", "cnn:12"),
    ("ResNet-8, batch norm", "resnet8:8"),
)

LAB = LabSpec(
    method="fusefl", name="fusefl", companions=("fedavg", "ensemble"), views=(Steps, SpuriousCue, Halves, Probes),
    knobs=("blocks", "adaptor", "head", "merge", "warm_start", "frozen_norm"),
    settings={"alpha": 0.1, "clients": 5, "seeds": 1},
    extras=(
        Extra("spurious", "Spurious cue", (("no client", ""), ("client A", "0"), ("clients A and B", "0,1")), MARKED),
        Extra("cue", "Its kind", (("background", "tint"), ("small shape", "shape")), KIND),
        Extra("model", "Network", NETWORKS, MODEL),
    ),
)  # fmt: skip
