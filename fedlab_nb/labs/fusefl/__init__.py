"""The lab of FuseFL: its run step by step, clients with a spurious cue, fusion against calibration,
and probes.
"""

from ...panels import Extra, LabSpec
from .cue import CueAccuracyView
from .fusion_calibration import FusionCalibrationView
from .probes import ProbesView
from .steps import RunStepsView

SPURIOUS_HELP = (
    "The training images of these clients get a cue that shows the label. The test images stay as "
    "they are"
)
SPURIOUS = (("no client", ""), ("client A", "0"), ("clients A and B", "0,1"))
CUE_HELP = (
    "A background whose grey or colour shows the label, or the paper's trigger: a small figure at a "
    "random place"
)
CUES = (("background", "tint"), ("small shape", "shape"))
MODEL_HELP = (
    "The network that is cut into K blocks. The usual perceptron has two layers, so it has at most "
    "two blocks"
)
MODELS = (
    ("as usual", "auto"),
    ("five-layer CNN", "cnn:12"),
    ("ResNet-8, batch norm", "resnet8:8"),
)

LAB = LabSpec(
    method="fusefl",
    name="fusefl",
    companions=("fedavg", "ensemble"),
    knobs=("blocks", "adaptor", "head", "merge", "warm_start", "frozen_norm"),
    settings={"alpha": 0.1, "clients": 5, "seeds": 1},
    extras=(
        Extra("spurious", "Spurious cue", SPURIOUS, SPURIOUS_HELP),
        Extra("cue", "Its kind", CUES, CUE_HELP),
        Extra("model", "Network", MODELS, MODEL_HELP),
    ),
    views=(RunStepsView, CueAccuracyView, FusionCalibrationView, ProbesView),
)
