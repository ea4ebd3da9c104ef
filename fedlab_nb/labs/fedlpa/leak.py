"""What the uploads say of the labels: true counts, an attacker's guess of each client's classes, and noise on it."""

from collections.abc import Generator, Mapping, Sequence
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import torch
from ipywidgets import Dropdown, SelectionSlider

from ...comm import from_upper_triangle
from ...methods.fedlpa.client import guess_classes, label_leak
from ...panels import LabView, PanelState, made
from ...plots import Picture, drawing, heading, listed, percent, tabled, told
from ...plots.axes import HALVES, PERCENT, class_ticks, colour_bar, mark
from ...plots.characters import client_axis, own_name
from ...plots.kit import heat_map
from ...plots.style import INK, SECOND
from ..runs import where
from .replay import replay

SOURCE = "Which numbers of the upload the attacker reads. FedAvg also sends the bias"
NOISE = (
    "Laplace noise on all uploads, as a share of the size of each tensor. It guarantees no privacy"
)
NOISES = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
DIAGONAL, BIAS = "diagonal of the last B", "bias of the last layer"


class Leak(LabView):
    """Which classes can be read off the uploads, beside the true counts; and what noise does to both."""

    name, title = "leak", "What leaks"

    def __init__(self) -> None:
        noises = [(f"{noise:g}", noise) for noise in NOISES]
        self.source = made(Dropdown, label="Read", help=SOURCE, width=260, options=[DIAGONAL, BIAS])
        self.noise = made(
            SelectionSlider, label="Noise", help=NOISE, width=280, label_width=46, options=noises
        )

    def prepare(self, state: PanelState) -> Generator[None, None, "NoiseSweep"]:
        return sweep_noises(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        sweep, read = state.prepared, self.source.value
        read = read if read in sweep.sent else DIAGONAL
        chosen = sweep.noises.index(self.noise.value)
        return leak(sweep, read, chosen, state.class_names, state.client, state.klass)


# ------------------------------------------------------------------------------------------------ numbers
class NoiseSweep(NamedTuple):
    """Which classes are read off the uploads for each of `noises`; `counts [M, C]`: true samples by class.

    sent:       what is read (DIAGONAL, BIAS) -> `[M, C]` for each noise
    precision:  what is read -> share of right guesses for each noise;   chance: of a blind attacker
    accuracy:   test accuracy of FedLPA for each noise;   setting: of the run, in words
    """

    noises: Sequence[float]
    counts: np.ndarray
    sent: Mapping[str, Sequence[np.ndarray]]
    precision: Mapping[str, Sequence[float]]
    accuracy: Sequence[float]
    chance: float
    setting: str

    def guesses(self, what: str, chosen: int) -> list[list[int]]:
        """The classes that are taken to be there, by client, as many as it has."""
        held = (self.counts > 0).sum(1).tolist()
        return [
            guess_classes(torch.as_tensor(row), n)
            for row, n in zip(self.sent[what][chosen], held, strict=True)
        ]


def sweep_noises(outcome: Any) -> Generator[None, None, NoiseSweep]:
    """Every noise, in three draws; the numbers that are `sent` are those of the first one."""
    server = replay(outcome)
    options, last = outcome.options, outcome.report.layers[-1]
    counts = torch.as_tensor(outcome.report.train_counts)
    readings = {
        DIAGONAL: lambda upload: from_upper_triangle(upload["factors"][last]["b"]).diagonal()
    }
    if f"{last}.bias" in server.posteriors[0].state:
        readings[BIAS] = lambda upload: upload["state"][f"{last}.bias"]
    sent: dict[str, list[np.ndarray]] = {what: [] for what in readings}
    precision: dict[str, list[float]] = {what: [] for what in readings}
    accuracy = []
    for noise in NOISES:
        draws = []
        for draw in range(3 if noise else 1):
            draws.append(server.uploads(options["damping"], options["pi"], noise, seed=draw))
            yield
        accuracy.append(
            mean(server.accuracy(server.solve_with("exact", received)) for received in draws)
        )
        for what, read in readings.items():
            numbers = [
                torch.stack([read(upload) for upload in received]).cpu() for received in draws
            ]
            sent[what].append(numbers[0].double().numpy())
            precision[what].append(mean(label_leak(of, counts)["precision"] for of in numbers))
    chance = float((counts > 0).double().mean())
    return NoiseSweep(NOISES, counts.numpy(), sent, precision, accuracy, chance, where(outcome))


# ------------------------------------------------------------------------------------------------ picture
def leak(
    sweep: NoiseSweep,
    what: str,
    chosen: int,
    names: Sequence[str],
    client: int | None = None,
    klass: int | None = None,
) -> Picture:
    """What the clients hold, and what an attacker reads off the numbers `what` (in words, a key of `sweep.sent`) at
    noise number `chosen`: a ring where the guess of a class is right, a cross where it is wrong."""
    counts, guesses, sent = sweep.counts, sweep.guesses(what, chosen), sweep.sent[what][chosen]
    named = np.array([(k, c, counts[k, c] > 0) for k, own in enumerate(guesses) for c in own])
    with drawing() as (figure, ax):
        # Each client has its own scale, so that small clients can be read too.
        held = heat_map(ax, (counts / np.maximum(counts.max(1, keepdims=True), 1)).T)
        colour_bar(held, ax, "samples, of the client's largest class", format=PERCENT, ticks=HALVES)
        heading(ax, "What the clients hold (ring: named, cross: named wrongly)")
        class_ticks(ax, names, "y", length=6)
        client_axis(ax, len(counts), sweep.setting, few=12)
        mark(ax, client, len(counts), frame=True)
        mark(ax, klass, len(names), "y", frame=True)
        for right, marker, colour in ((1, "o", INK), (0, "x", SECOND)):
            style = {"ms": 200 / max(25, *counts.shape), "mfc": "none", "mec": colour, "mew": 1.6}
            ax.plot(*named[named[:, 2] == right, :2].T, marker, **style)
    classes = [
        [np.flatnonzero(own).tolist() for own in counts],
        guesses,
        np.argsort(-sent, kind="stable")[:, :5],
    ]
    rows = [
        (k, *([names[c] for c in each] for each in of))
        for k, of in enumerate(zip(*classes, strict=True))
    ]
    noise = sweep.noises[chosen]
    words = f"At noise {noise:g}" if noise else "Without noise"
    if client is not None and client < len(rows):
        own, guess = map(listed, rows[client][1:3])
        words = f"Client {own_name(client, sweep.setting)} holds {own}; a reader of its upload names {guess}. {words}"
    return told(
        figure,
        "What the clients hold, and the classes that are read off their uploads",
        sweep.setting,
        f"{words} a reader of the {what}, who is told how many classes a client has, names "
        f"{percent(sweep.precision[what][chosen])} of them correctly (blind guess {percent(sweep.chance)}); FedLPA has "
        f"an accuracy of {percent(sweep.accuracy[chosen])}.",
        tabled(
            "client | holds | guessed | largest",
            ((own_name(k, sweep.setting), *map(", ".join, of)) for k, *of in rows),
        ),
    )
