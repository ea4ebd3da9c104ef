"""The lab of FedLPA: two weights in the plane, the factors, λ_damp and π, the solver, the labels
that the uploads give away, and the images that can be recovered from them.
"""

from ...panels import Extra, LabSpec
from .damping import DampingView
from .factors import FactorsView
from .inversion import InversionView
from .leak import LabelLeakView
from .plane import TwoClientPlaneView
from .solver import SolverView

INIT_HELP = (
    "All clients start from the server's initial model, or each client starts from its own random "
    "weights"
)
INITS = (("the same for all", "same"), ("each its own", "different"))
MODEL_HELP = (
    "The clients' network. The factors of a convolution come from the patches of the image that it "
    "reads"
)
MODELS = (("by the image size", "auto"), ("five-layer CNN", "cnn"), ("perceptron", "mlp"))

LAB = LabSpec(
    method="fedlpa",
    name="fedlpa",
    companions=("fedavg", "fisher_merge", "regmean"),
    knobs=("damping", "pi", "solver", "iterations", "noise"),
    settings={"alpha": 0.1, "seeds": 1},
    extras=(
        Extra("init", "Initial models", INITS, INIT_HELP),
        Extra("model", "Network", MODELS, MODEL_HELP),
    ),
    views=(TwoClientPlaneView, FactorsView, DampingView, SolverView, LabelLeakView, InversionView),
    first="plane",
)
