"""Fed-ET in the classroom: one sample and its experts under any weights, dissent and λ_div, on the logits that a run
leaves behind, so that all of it follows the hand; the feedback loop; public data and traffic, which need runs of their
own.
"""

from ...panels import Extra, LabSpec
from .dissent import Dissent
from .expert import Expert
from .public import Public
from .rounds import Rounds
from .target import Target
from .traffic import Traffic

SIZES = "mlp:16,mlp:32,mlp:64"  # the small models of lab and lesson, dealt out in turn
MODELS = (
    ("one size", "auto"),
    ("three sizes (MLP)", SIZES),
    ("MLP and CNN", "mlp:16,cnn:8,mlp:64"),
)
HELP = "Which networks the clients have, in turn. The server's network is larger than each of them"
LAB = LabSpec(
    method="fedet", name="fedet", companions=("local", "ensemble"),
    settings={"alpha": 0.1, "seeds": 1, "model": SIZES}, extras=(Extra("model", "Small models", MODELS, HELP),),
    knobs=("rounds", "weighting", "temperature", "diversity", "public", "transfer"),
    views=(Expert, Dissent, Target, Rounds, Public, Traffic),
)  # fmt: skip
