"""FENS in the classroom: whom the aggregator trusts, round by round; one test sample; phase 2 without a client; one
client's bytes at two sizes.
"""

from ...panels import Extra, LabSpec
from .cost import Cost
from .forget import Forget
from .sample import Sample
from .trust import Trust

HELD = (
    "How much of its data each client keeps out of local training. The aggregator is trained on it"
)
SHARES = (("10 %", 0.1), ("2 %", 0.02), ("5 %", 0.05), ("20 %", 0.2), ("40 %", 0.4))
LAB = LabSpec(
    method="fens", name="fens", companions=("fedavg", "ensemble"), settings={"alpha": 0.1, "seeds": 1},
    knobs=("aggregator", "rounds", "bits", "without"), extras=(Extra("holdout", "Proxy share", SHARES, HELD),),
    views=(Trust, Sample, Forget, Cost),
)  # fmt: skip
