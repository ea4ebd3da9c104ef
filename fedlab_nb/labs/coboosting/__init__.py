"""Co-Boosting's lab: weights by hand and by epoch, synthetic images, the three switches."""

from ...panels import Extra, LabSpec
from .hand import Hand
from .images import Images
from .switches import Switches
from .weights import Trajectories

PARTITION = "How the training samples are divided. “Two classes each” does not use α"
PARTITIONS = (("Dirichlet (α)", "dirichlet"), ("own mix, equal sizes (α)", "client_dirichlet"))
PARTITIONS += (("two classes each", "classes"), ("unequal sizes (α)", "quantity"))
MODELS = (("all alike", "auto"), ("MLP and LeNet-5 in turn", "mlp,lenet5"))
MODEL = "Co-Boosting combines logits only, so the clients' networks may differ. FedAvg cannot average such networks"

LAB = LabSpec(
    method="coboosting", name="coboosting", companions=("fedavg", "ensemble"),
    knobs=("ghs", "dhs", "ee", "mu", "epsilon", "beta", "weighted", "updates", "epochs"),
    settings={"alpha": 0.1, "seeds": 1, "ensemble.rule": "logits"},  # with equal weights, by the same rule
    views=(Hand, Trajectories, Images, Switches),
    extras=(Extra("partition", "Partition", PARTITIONS, PARTITION), Extra("model", "Client models", MODELS, MODEL)),
)  # fmt: skip
