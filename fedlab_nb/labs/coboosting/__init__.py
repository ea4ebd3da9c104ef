"""The lab of Co-Boosting: weights by hand and by epoch, synthetic images, the three switches."""

from ...panels import Extra, LabSpec
from .by_hand import WeightsByHandView
from .images import SyntheticImagesView
from .switches import IdeaSwitchesView
from .weights import WeightTrajectoriesView

PARTITION_HELP = "How the training samples are divided. “Two classes each” does not use α"
PARTITIONS = (
    ("Dirichlet (α)", "dirichlet"),
    ("own mix, equal sizes (α)", "client_dirichlet"),
    ("two classes each", "classes"),
    ("unequal sizes (α)", "quantity"),
)
MODEL_HELP = (
    "Co-Boosting combines logits only, so the clients' networks may differ. FedAvg cannot average "
    "such networks"
)
MODELS = (("all alike", "auto"), ("MLP and LeNet-5 in turn", "mlp,lenet5"))

LAB = LabSpec(
    method="coboosting",
    name="coboosting",
    companions=("fedavg", "ensemble"),
    knobs=("ghs", "dhs", "ee", "mu", "epsilon", "beta", "weighted", "updates", "epochs"),
    settings={
        "alpha": 0.1,
        "seeds": 1,
        "ensemble.rule": "logits",  # equal weights are compared by the same rule
    },
    extras=(
        Extra("partition", "Partition", PARTITIONS, PARTITION_HELP),
        Extra("model", "Client models", MODELS, MODEL_HELP),
    ),
    views=(WeightsByHandView, WeightTrajectoriesView, SyntheticImagesView, IdeaSwitchesView),
)
