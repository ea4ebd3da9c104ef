"""The classroom of neuron matching: a game by hand, the loss barrier, who is matched with whom."""

from ...panels import Extra, LabSpec
from .barrier import Barrier
from .game import Game
from .partners import Partners

LAB = LabSpec(
    method="matching",
    companions=("fedavg", "ensemble"),
    knobs=("rule", "sweeps", "gamma"),
    extras=(
        Extra(
            "init", "Initial models", (("the same for all", "same"), ("each its own", "different")),
            "All clients start from the server's initial model, or each client starts from its own random weights",
        ),
        Extra(
            "model", "Network",
            (("by the size of the images", "auto"), ("one hidden layer", "mlp1"), ("five-layer CNN", "cnn")),
            "The clients' network. PFNM needs exactly one hidden layer",
        ),
    ),
    settings={"alpha": 100, "seeds": 1, "init": "different"},
    views=(Game, Barrier, Partners),
    first="game",
    name="matching",
)  # fmt: skip
