"""The lab of Fed-ET.

Three views are computed at once from the logits that a run keeps: the clients' votes on one sample,
dissent, and the soft target. A fourth shows the run round by round. The views of public data and of
traffic need runs of their own.
"""

from ...panels import Extra, LabSpec
from .dissent import DissentView
from .expert import OneSampleVoteView
from .public import PublicDataView
from .rounds import DistillationRoundsView
from .target import SoftTargetView
from .traffic import TrafficView

SIZES = "mlp:16,mlp:32,mlp:64"  # the clients' models in lab and lesson, assigned in turn
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
