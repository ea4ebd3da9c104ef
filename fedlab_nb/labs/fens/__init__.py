"""The lab of FENS: how much the aggregator trusts each client, round by round; the answers to one
test sample; phase 2 without a client; the bytes of one client with two sizes of network.
"""

from ...panels import Extra, LabSpec
from .cost import ClientCostView
from .forget import ForgetClientView
from .sample import OneSampleView
from .trust import AggregatorWeightsView

PROXY_HELP = (
    "How much of its data each client keeps out of local training. The aggregator is trained on it"
)
PROXY_SHARES = (("10 %", 0.1), ("2 %", 0.02), ("5 %", 0.05), ("20 %", 0.2), ("40 %", 0.4))

LAB = LabSpec(
    method="fens",
    name="fens",
    companions=("fedavg", "ensemble"),
    settings={"alpha": 0.1, "seeds": 1},
    knobs=("aggregator", "rounds", "bits", "without"),
    extras=(Extra("holdout", "Proxy share", PROXY_SHARES, PROXY_HELP),),
    views=(AggregatorWeightsView, OneSampleView, ForgetClientView, ClientCostView),
)
