"""The lab of neuron matching: a game by hand, the loss barrier, who is matched with whom."""

from ...panels import Extra, LabSpec
from .barrier import BarrierView
from .game import MatchingGameView
from .partners import UnitPartnersView

INIT_HELP = (
    "All clients start from the server's initial model, or each client starts from its own random "
    "weights"
)
INITS = (("the same for all", "same"), ("each its own", "different"))
MODEL_HELP = "The clients' network. PFNM needs exactly one hidden layer"
MODELS = (("by the image size", "auto"), ("one hidden layer", "mlp1"), ("five-layer CNN", "cnn"))

LAB = LabSpec(
    method="matching",
    name="matching",
    companions=("fedavg", "ensemble"),
    knobs=("rule", "sweeps", "gamma"),
    settings={"alpha": 100, "seeds": 1, "init": "different"},
    extras=(
        Extra("init", "Initial models", INITS, INIT_HELP),
        Extra("model", "Network", MODELS, MODEL_HELP),
    ),
    views=(MatchingGameView, BarrierView, UnitPartnersView),
    first="game",
)
