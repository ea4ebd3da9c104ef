"""FENS' lab: one client's bytes from the formula, with this network and with the paper's."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets

from ... import formulas
from ...draw import Picture
from ...draw.fens_bytes import Bill, bytes_at_two_sizes
from ...methods.parts.aggregators import TRAINED, trained_aggregator
from ...methods.parts.fens_phases import PAPER_D, PAPER_M, PAPER_Q, PAPER_T
from ...models import build, default_model, model_state
from ..lab_view import LabView, Look
from .fens_tries import WIDE, where


class Cost(LabView):
    """One client's bytes with this network and with the paper's, from the formula, before anything is run."""

    name, title, ready = "cost", "Bytes at two sizes", "data"

    def __init__(self) -> None:
        super().__init__()
        self.whose = widgets.Dropdown(
            options=("as set here", "the paper's"), description="Clients, rule, rounds", style=WIDE,
            tooltip="The paper's: 20 clients, a network of 8450 numbers, 500 rounds, 8 bits",
            layout={"width": "270px"},
        )  # fmt: skip
        self.rounds = widgets.IntSlider(
            20, 1, 100, description="FedAvg's rounds", tooltip="Rounds of FedAvg to compare with", style=WIDE,
            layout={"width": "330px"},
        )  # fmt: skip
        self.controls = [self.whose, self.rounds]

    def draw(self, look: Look) -> Picture:
        here = layout(look.settings.get("model", "auto"), look.federation.dataset.input_shape, len(look.class_names))
        terms = paper_terms() if self.whose.value == "the paper's" else own_terms(look)
        bills = [
            bill(f"This network: {here['d']:,} numbers".replace(",", "\u202f"), here, terms, self.rounds.value),
            bill("The paper's: 4.9 million", {"d": PAPER_D, "kept": 0, "tensors": 0}, terms, self.rounds.value),
        ]
        outcome, counted = look.outcome, None
        if outcome is not None and self.whose.value != "the paper's":
            same = outcome.setting["dataset"] == look.settings["dataset"] and own_terms(look, outcome) == terms
            counted = outcome.extras["bytes"]["measured"] if same else None
        return bytes_at_two_sizes(
            bills, "FENS", in_rounds(self.rounds.value), setting=where(look),
            own=formulas.fens_ratio(PAPER_D, PAPER_M, PAPER_Q, PAPER_T),
            measured=counted,
        )  # fmt: skip


@functools.lru_cache(maxsize=32)
def layout(model: str, input_shape: tuple[int, ...], classes: int) -> Mapping[str, int]:
    """Of the clients' (first) network: d numbers, how many are not quantised, how many tensors are."""
    name, _, width = str(model).split(",")[0].strip().partition(":")
    name = default_model(input_shape) if name == "auto" else name
    state = model_state(build(name, input_shape, classes, width=int(width) if width else None))
    coded = [t.numel() for t in state.values() if t.ndim >= 2]
    d = sum(t.numel() for t in state.values())
    return {"d": d, "kept": d - sum(coded), "tensors": len(coded)}


def own_terms(look: Look, outcome: Any = None) -> dict[str, int]:
    """What the formula needs beside the network: as the controls are, or as they were for `outcome`."""
    knobs = look.knobs if outcome is None else outcome.setting["options"]
    clients = look.federation.clients if outcome is None else outcome.setting["clients"]
    name, members = knobs["aggregator"], clients - (0 <= knobs["without"] < clients)
    federated = (name in TRAINED or name == "voting") and knobs["proxy"] != "server"
    shape, classes = look.federation.dataset.input_shape, len(look.class_names)
    q = trained_aggregator(name, members, classes, k=knobs["k"], input_shape=shape).q if name in TRAINED else 0
    return {
        "models": (members - bool(knobs["skip_own"])) if federated else 0,
        "q": q,
        "rounds": knobs["rounds"] if federated and name in TRAINED else 0,
        "bits": knobs["bits"],
    }


def paper_terms() -> dict[str, int]:
    return {"models": PAPER_M, "q": PAPER_Q, "rounds": PAPER_T, "bits": 8}


def in_rounds(rounds: int) -> str:
    return f"{rounds} round{'s' * (rounds != 1)} of FedAvg"


def bill(what: str, network: Mapping[str, int], terms: Mapping[str, int], rounds: int) -> Bill:
    """The three bars for a network of d numbers."""
    d, plain = network["d"], terms["bits"] > 8
    own = formulas.one_shot_bytes(d)
    kept = {} if plain else {"kept": network["kept"], "tensors": network["tensors"]}
    whole = formulas.fens_bytes(d, terms["models"], terms["q"], terms["rounds"], 32 if plain else terms["bits"], **kept)
    small = 2 * formulas.state_bytes(terms["q"]) * terms["rounds"]
    return Bill(
        what,
        {
            "one-shot": {"own model": own},
            "FENS": {"own model": own, "ensemble": whole - own - small, "aggregator rounds": small},
            in_rounds(rounds): {"rounds": formulas.iterative_bytes(d, rounds)},
        },
    )
