"""A method's ledger as the flight on the stage shows it: its legs in order, what each carries, and the last gesture.

A leg is one phase of the ledger in one direction. Kernel and page take the words and the gesture from here: a browser
is told what to draw and decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypedDict

from ..comm import Ledger
from ..methods import METHODS
from ..methods.base import Info

# What travels, as it is drawn.
NETWORK = "network"  # one network, or a part of it
NETWORKS = "networks"  # those of all clients in one message
SUMS = "sums"
GAUSSIANS = "gaussians"
NOTE = "note"  # a few numbers
ANSWERS = "answers"  # predictions, or features and logits
IMAGES = "images"
GENERATOR = "generator"

# The last step of a flight: what becomes of the messages.
BLEND = "blend"
KEEP = "keep"
NOTES = "notes"
ADD = "sums"
MAKE = "images"
RETURN = "rounds"
ServerGesture = str  # one of GESTURES
GESTURES = (BLEND, KEEP, NOTES, ADD, MAKE, RETURN)


@dataclass(frozen=True)
class Cargo:
    """What a phase carries: how it is drawn, and what a sentence calls it on its way up and down."""

    kind: str
    up: str = ""
    down: str = ""


# By the phase's name in the ledger, without the number at its end.
CARGO = {
    "activation ranges": Cargo(NOTE, "the ranges of its activations", "those of all"),
    "adapters": Cargo(NETWORK, "its adapter"),
    "aggregator": Cargo(NOTE, "its own", "the weights of the voices"),
    "barycentre": Cargo(SUMS, down="the common moments"),
    "block": Cargo(NETWORK, "a block of its network", "the others' blocks"),
    "choice of the ridge": Cargo(SUMS, "its errors", "the sums of all"),
    "class counts": Cargo(NOTE, "the counts of its classes"),
    "class statistics": Cargo(SUMS, "statistics of each class"),
    "classifiers": Cargo(NETWORK, "its classifier"),
    "confusion matrices": Cargo(NOTE, "its confusion matrix"),
    "decoders": Cargo(GENERATOR, "its generator"),
    "ensemble": Cargo(NETWORKS, down="the networks of all"),
    "features": Cargo(NETWORK, "its feature layers", "the common feature layers"),
    "images": Cargo(IMAGES, "a few images of each class"),
    "initial model": Cargo(NETWORK, down="an untrained network"),
    "keys": Cargo(NOTE, "a key", "the others' keys"),
    "labelled set": Cargo(IMAGES, "a few of its samples"),
    "labels": Cargo(NOTE, "its labels"),
    "layer": Cargo(NETWORK, "a layer of its network", "the matched layer"),
    "layer's sums": Cargo(SUMS, "the sums for another layer"),
    "layers": Cargo(SUMS, down="another layer"),
    "likelihoods": Cargo(NOTE, "how likely its labels are"),
    "local models": Cargo(NETWORK, "its network"),
    "mixtures": Cargo(GAUSSIANS, "Gaussians of each class"),
    "models and Fisher diagonals": Cargo(NETWORK, "its network and squared gradients"),
    "models and input moments": Cargo(NETWORK, "its network and the moments of its inputs"),
    "moments": Cargo(SUMS, "the moments of its features"),
    "posteriors": Cargo(NETWORK, "its network and two factors of each layer"),
    "public images": Cargo(IMAGES, down="the public images"),
    "raw samples": Cargo(IMAGES, "all its samples"),
    "rounds": Cargo(NETWORK, "its network", "the common network"),
    "scores": Cargo(NOTE, "its score", "whether its network is kept"),
    "seed of A": Cargo(NOTE, down="a seed"),
    "seed of the features": Cargo(NOTE, down="a seed"),
    "seed of the layers": Cargo(NOTE, down="a seed"),
    "small models": Cargo(NETWORK, "its small network", "an untrained network"),
    "statistics": Cargo(SUMS, "sums of each class"),
    "students": Cargo(NETWORK, "its students"),
    "sums": Cargo(SUMS, "its sums"),
    "weights": Cargo(SUMS, down="the fit so far"),
}
# Methods whose rounds carry something else than the network alone.
ROUNDS = {
    "dsfl": Cargo(ANSWERS, "its predictions", "the mean of all predictions"),
    "fedgkt": Cargo(
        ANSWERS, "its features and logits", "the server's logits (first an untrained network)"
    ),
    "scaffold": Cargo(
        NETWORK, "its network and control variate", "the common network and control variate"
    ),
}
# What the server has in the end, by method or by group, where it is not one network.
RESULTS = {
    "Keep an ensemble": "an ensemble",
    "Closed form": "one head",
    "afl": "one linear map",
    "distilled": "a kernel machine or a network",
    "fusefl": "all blocks in one",
}


@dataclass(frozen=True)
class Leg:
    """One phase of a ledger in one direction.

    way:             from the clients up to the server, or down
    cargo:           how what travels is drawn
    words:           what a sentence calls it
    bytes, messages: of each client, `[M]`
    """

    phase: str
    way: Literal["up", "down"]
    cargo: str
    words: str
    bytes: list[int]
    messages: list[int]


ImageSource = Literal["sent", "made", "public"]


class Flight(TypedDict, total=False):
    """What travels in a run, for the scene that draws it.

    clients: number of clients
    legs:    the fields of each `Leg`, in the order of their first messages
    gesture: what the server does with what arrives, one of GESTURES
    result:  what the server has in the end, in words
    source:  where the images come from, only with the gesture MAKE
    """

    clients: int
    legs: list[dict[str, Any]]
    gesture: str
    result: str
    source: ImageSource


def describe_flight(method_name: str, ledger: Ledger) -> Flight | None:
    """Describe what travels in a run of `method_name`; None if no client has sent anything."""
    legs = list_flight_legs(method_name, ledger)
    if not any(leg.way == "up" for leg in legs):
        return None
    info = METHODS[method_name].info
    gesture = choose_server_gesture(legs, info)
    flight: Flight = {
        "clients": ledger.clients,
        "legs": [asdict(leg) for leg in legs],
        "gesture": gesture,
        "result": describe_final_server_model(method_name, info.group),
    }
    if gesture == MAKE:
        flight["source"] = choose_image_source(legs, info)
    return flight


def describe_final_server_model(method_name_or_empty: str, method_group: str) -> str:
    """Describe what the server has in the end: "one network".

    method_name_or_empty: "" for any method of the group
    """
    return RESULTS.get(method_name_or_empty, RESULTS.get(method_group, "one network"))


def describe_flights(ledger_by_method: Mapping[str, Ledger]) -> dict[str, Flight]:
    """Describe the flights of several methods, by name, without those whose clients send nothing."""
    flights = {}
    for method, ledger in ledger_by_method.items():
        flight = describe_flight(method, ledger)
        if flight is not None:
            flights[method] = flight
    return flights


def list_flight_legs(method_name: str, ledger: Ledger) -> list[Leg]:
    """List the ledger's legs in the order of their first messages."""
    legs: dict[tuple[str, str], Leg] = {}
    for row in ledger.rows():
        phase = str(row["phase"])
        way = str(row["direction"])
        client = int(row["client"])
        if (phase, way) not in legs:
            cargo = find_cargo_of_phase(method_name, phase)
            words = cargo.up if way == "up" else cargo.down
            nothing = [0] * ledger.clients
            leg = Leg(phase, way, cargo.kind, words or phase, list(nothing), list(nothing))
            legs[phase, way] = leg
        leg = legs[phase, way]
        leg.bytes[client] += int(row["bytes"])
        leg.messages[client] += int(row["messages"])
    return list(legs.values())


def find_cargo_of_phase(method_name: str, ledger_phase: str) -> Cargo:
    """Find what a phase carries. A phase that is not in CARGO carries a NOTE without words of its own."""
    if ledger_phase == "rounds" and method_name in ROUNDS:
        return ROUNDS[method_name]
    return CARGO.get(re.sub(r" \d+$", "", ledger_phase), Cargo(NOTE))


def choose_server_gesture(legs: Iterable[Leg], method_info: Info) -> ServerGesture:
    """Choose the gesture for what has travelled.

    If only networks have come, once, it shows what the method does with them.
    """
    legs = list(legs)
    up = [leg for leg in legs if leg.way == "up"]
    carried = {leg.cargo for leg in up}
    has_networks_down = any(leg.cargo == NETWORKS for leg in legs)
    has_tiny_rounds = any(leg.cargo == NOTE and max(leg.messages) > 1 for leg in up)
    if has_networks_down and has_tiny_rounds:
        return NOTES
    large = [leg for leg in up if leg.cargo in (NETWORK, ANSWERS)]
    answered = {leg.phase for leg in legs if leg.way == "down"}
    has_rounds = any(max(leg.messages) > 1 and leg.phase in answered for leg in large)
    if has_rounds or len({leg.phase for leg in large}) > 1:
        return RETURN
    if carried & {IMAGES, GENERATOR} or method_info.group.startswith("Distil"):
        return MAKE
    if NETWORK not in carried and carried & {SUMS, GAUSSIANS}:
        return ADD
    if method_info.group == "Keep an ensemble":
        return KEEP
    return BLEND


def choose_image_source(legs: Iterable[Leg], method_info: Info) -> ImageSource:
    """Choose where the images come from that the server's network learns from.

    The clients sent them, the server makes them, or they are public.
    """
    if any(leg.way == "up" and leg.cargo in (IMAGES, GENERATOR) for leg in legs):
        return "sent"
    return "public" if "public" in method_info.needs else "made"
