"""The classroom of neuron matching: a game by hand, the loss barrier, who is matched with whom."""

from ...panels import Extra, LabSpec
from .barrier import Barrier
from .game import Game
from .partners import Partners

INIT = "All clients start from the server's initial model, or each client starts from its own random weights"
NETWORKS = (("by the image size", "auto"), ("one hidden layer", "mlp1"), ("five-layer CNN", "cnn"))
MODEL = "The clients' network. PFNM needs exactly one hidden layer"
LAB = LabSpec(
    method="matching", name="matching", companions=("fedavg", "ensemble"), first="game",
    views=(Game, Barrier, Partners), settings={"alpha": 100, "seeds": 1, "init": "different"},
    knobs=("rule", "sweeps", "gamma"),
    extras=(
        Extra("init", "Initial models", (("the same for all", "same"), ("each its own", "different")), INIT),
        Extra("model", "Network", NETWORKS, MODEL),
    ),
)  # fmt: skip
