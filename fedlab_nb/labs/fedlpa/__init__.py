"""FedLPA's lab: two weights in the plane, the factors, λ_damp and π, the solver, what the uploads give away, images
that come back from them."""

from ...panels import Extra, LabSpec
from .damping import Damping
from .factors import Factors
from .inverted import Inverted
from .leak import Leak
from .plane import Plane
from .solver import Solver

INIT = "All clients start from the server's initial model, or each client starts from its own random weights"
MODEL = "The clients' network. The factors of a convolution come from the patches of the image that it reads"
NETWORKS = (("by the image size", "auto"), ("five-layer CNN", "cnn"), ("perceptron", "mlp"))

LAB = LabSpec(
    method="fedlpa", name="fedlpa", companions=("fedavg", "fisher_merge", "regmean"), first="plane",
    knobs=("damping", "pi", "solver", "iterations", "noise"), settings={"alpha": 0.1, "seeds": 1},
    extras=(
        Extra("init", "Initial models", (("the same for all", "same"), ("each its own", "different")), INIT),
        Extra("model", "Network", NETWORKS, MODEL),
    ),
    views=(Plane, Factors, Damping, Solver, Leak, Inverted),
)  # fmt: skip
