"""Clients with a spurious cue: right at home, lost outside. A strip of their images with and without it, and a column
of marks a client; what all clients together achieve stands in the sentence and the table.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import torch
from ipywidgets import Dropdown
from matplotlib.axes import Axes

from ...data.cues import CUES
from ...methods import METHODS
from ...panels import LabView, PanelState, made, offer
from ...plots import Picture, drawing, dress, heading, legend, percent, plural, tabled, told
from ...plots.axes import QUARTERS, mark, percent_axis
from ...plots.characters import client_axis, own_name
from ...plots.identity import shorten_title
from ...plots.kit import tiles
from ...plots.style import ACCENT, INK, RULE, SECOND, narrow
from ...rng import generator
from ...training import accuracy
from ..runs import Steps, plain_ensemble, where

TESTS = {
    "clean": "without a cue",
    "tied": "with the cue of their class",
    "untied": "with a random cue",
}
HELP = "The test images as they are, with the cue of their own class, or with the cue of a random class"
STRIP = 10  # images of the client that is shown
MOST = 2000  # test samples and samples of one client that are looked at, at most


class SpuriousCue(LabView):
    """Each client's accuracy on its own images and outside, with and without the cue, and that of all together."""

    name, title = "cue", "Spurious cue"

    def __init__(self) -> None:
        tests = [(words, name) for name, words in TESTS.items()]
        self.test = made(Dropdown, label="Test images", help=HELP, width=310, options=tests)

    def adapt(self, state: PanelState) -> None:
        offer(self.test, ((TESTS[name], name) for name in state.prepared.outside), "clean")

    def prepare(self, state: PanelState) -> Steps:
        """Of the plain ensemble's clients, each trained alone."""
        settings, federation, device = (
            state.outcome.settings,
            state.outcome.federation(),
            state.outcome.settings.device,
        )
        clients = (yield from plain_ensemble(state)).model.clients
        data, plain, y_test = (
            federation.dataset,
            settings.data(),
            federation.dataset.y_test[:MOST].to(device),
        )
        cues = with_and_without_cue(
            data, federation.tint or settings.tint, settings.seed, settings.cue
        )
        tests = {name: x.to(device) for name, x in cues.items()}
        outside = {
            name: [accuracy(own, y_test) for own in clients.logits(x).argmax(-1)]
            for name, x in tests.items()
        }
        home, bare, images = [], [], []
        for m, (rows, _) in enumerate(federation.split(state.outcome.plan.holdout)):
            y, shown = data.y_train[rows[:MOST]].to(device), varied(rows, data.y_train)
            for source, accuracies in ((data, home), (plain, bare)):
                x = source.x_train[rows[:MOST]].to(device)
                accuracies.append(accuracy(clients.logits(x)[m].argmax(1), y))
            images.append((plain.x_train[shown].numpy(), data.x_train[shown].numpy()))
            yield
        systems = {}
        for method, outcomes in {**state.others, "fusefl": state.outcomes}.items():
            if settings.seed in outcomes:
                model, title = (
                    outcomes[settings.seed].model,
                    shorten_title(METHODS[method].info.title),
                )
                systems[title] = {name: model.accuracy(x, y_test) for name, x in tests.items()}
        return Cue(where(state.outcome), federation.spurious, home, bare, outside, systems, images)

    def draw(self, state: PanelState) -> Picture:
        return cue(state.prepared, self.test.value, client=state.client)


# ------------------------------------------------------------------------------------------------ numbers
class Cue(NamedTuple):
    """What is drawn. All accuracies are 0–1; M clients, each trained alone.

    marked:   clients whose training images carry the cue;   setting: in words
    home:     [M] on their own training images as they have them;   bare: [M] on the same images without the cue
    outside:  {"clean", and for images "tied" and "untied": [M]} on test samples
    systems:  {name: {"clean", ...: accuracy}} of all clients together
    images:   [M] pairs [n, ...] of a client's images, without the cue and as it has them
    """

    setting: str
    marked: Sequence[int]
    home: Sequence[float]
    bare: Sequence[float]
    outside: Mapping[str, Sequence[float]]
    systems: Mapping[str, Mapping[str, float]]
    images: Sequence[tuple[np.ndarray, np.ndarray]]


def with_and_without_cue(
    data: Any, strength: float, seed: int, cue: str = "tint"
) -> dict[str, torch.Tensor]:
    """Test samples as they are and, of images, with the cue of their own class and with one drawn at random."""
    x, y = data.x_test[:MOST], data.y_test[:MOST]
    if x.ndim != 4:
        return {"clean": x}

    def marked(agree: float) -> torch.Tensor:
        stream = generator(seed, "random cue")
        return CUES[cue](x, y, strength, classes=data.classes, agree=agree, generator=stream)

    return {"clean": x, "tied": marked(1), "untied": marked(0)}


def varied(rows: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """A few of the samples `rows`, of as many classes as there are."""
    own = labels[rows[:200]].tolist()
    return rows[sorted(range(len(own)), key=lambda i: (own[:i].count(own[i]), i))[:STRIP]]


# ------------------------------------------------------------------------------------------------ picture
def cue(data: Cue, test: str = "clean", *, client: int | None = None) -> Picture:
    """`test`: which test samples are looked at, a key of TESTS."""
    client = client if client is not None and client < len(data.home) else None
    who = min(data.marked, default=0) if client is None else client
    called = [own_name(k, data.setting) for k in range(len(data.home))]
    with drawing(2, 1, height_ratios=[1, 3]) as (figure, (upper, lower)):
        names = (f"client {called[who]}, without cue", "as it has them")
        tiles(upper, list(zip(names, data.images[who], strict=True))[who not in data.marked :])
        clients(lower, data, test, client)
    names = (
        "who",
        "cue",
        "own images",
        "own, cue removed",
        *(f"test, {TESTS[test]}" for test in data.outside),
    )
    each = enumerate(zip(data.home, data.bare, *data.outside.values(), strict=True))
    table = [
        (f"client {called[k]}", "yes" if k in data.marked else "", *map(percent, shares))
        for k, shares in each
    ]
    table += [
        (name, "", "", "", *(percent(shares[t]) for t in data.outside))
        for name, shares in data.systems.items()
    ]
    title = f"Accuracy of each client at home and on test images {TESTS[test]}, and of all together"
    return told(figure, title, data.setting, sentence(data, test, client), tabled(names, table))


def clients(ax: Axes, data: Cue, test: str, client: int | None) -> None:
    """A column a client: at home, at home without the cue, and outside."""
    count, marked = len(data.home), list(data.marked)
    dress(ax, grid="y")
    heading(ax, "Trained alone", 34 if narrow() else 7)
    for k in marked:
        mark(ax, k, count, colour=SECOND)
    mark(ax, client, count, frame=True, lw=2)
    x, size = np.arange(count), 8 if count <= 16 else 4.5
    ax.vlines(x, data.outside[test], data.home, color=RULE, lw=2, zorder=1)
    ax.plot(x, data.home, "o", color=INK, ms=size, label="own images", clip_on=False)
    bare = {"mfc": "white", "mec": INK, "mew": 1.4, "ms": 0.8 * size, "label": "own, cue removed"}
    ax.plot(marked, [data.bare[k] for k in marked], "D", clip_on=False, **bare)
    ax.plot(x, data.outside[test], "s", color=ACCENT, ms=size, label="test images", clip_on=False)
    ax.set_xlim(-0.6, count - 0.4)
    client_axis(ax, count, data.setting)
    ax.set_xlabel(ax.get_xlabel() + " (shaded: with the cue)" * bool(marked))
    percent_axis(ax, top=1.1, ticks=QUARTERS)
    above = {"loc": "lower right", "bbox_to_anchor": (1.01, 0.985), "ncols": 3, "borderpad": 0}
    legend(ax, handlelength=1.3, columnspacing=1.1, **above).set_in_layout(False)


def sentence(data: Cue, test: str, client: int | None) -> str:
    """How often the chosen client, else the clients with the cue, else all are right at home and outside."""
    who, cue = (
        list(data.marked) or range(len(data.home)),
        "with the cue" if data.marked else "without a cue",
    )
    text = f"{plural(len(who), 'client')} {cue}"
    if client is not None:
        who, text = [client], f"Client {own_name(client, data.setting)}"
    home, bare, out = (
        percent(mean(of[k] for k in who)) for of in (data.home, data.bare, data.outside[test])
    )
    together = ", ".join(f"{name} {percent(shares[test])}" for name, shares in data.systems.items())
    return (
        f"{text}: right for {home} of the own images, for {bare} of them without a cue, and for {out} of the test "
        f"images {TESTS[test]}. All together: {together}."
    )
