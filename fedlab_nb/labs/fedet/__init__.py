"""The lab of Fed-ET. Computed at once from the logits that a run leaves behind: one sample and its
experts under any weights, dissent, λ_div. Also the feedback loop; and public data and traffic,
which need runs of their own.
"""

from ...panels import Extra, LabSpec
from .dissent import DissentView
from .expert import OneSampleVoteView
from .public import PublicDataView
from .rounds import DistillationRoundsView
from .target import SoftTargetView
from .traffic import TrafficView

SIZES = "mlp:16,mlp:32,mlp:64"  # the small models of lab and lesson, dealt out in turn
MODELS = (
    ("one size", "auto"),
    ("three sizes (MLP)", SIZES),
    ("MLP and CNN", "mlp:16,cnn:8,mlp:64"),
)
MODEL_HELP = (
    "Which networks the clients have, in turn. The server's network is larger than each of them"
)

LAB = LabSpec(
    method="fedet",
    name="fedet",
    companions=("local", "ensemble"),
    knobs=("rounds", "weighting", "temperature", "diversity", "public", "transfer"),
    settings={"alpha": 0.1, "seeds": 1, "model": SIZES},
    extras=(Extra("model", "Small models", MODELS, MODEL_HELP),),
    views=(
        OneSampleVoteView,
        DissentView,
        SoftTargetView,
        DistillationRoundsView,
        PublicDataView,
        TrafficView,
    ),
)
