"""FENS, whom the aggregator trusts for what: its table beside who holds what, the clients in the same order."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import ipywidgets as widgets
import numpy as np
from matplotlib.figure import Figure

from ...panels import LabView, PanelState, made, player
from ...plots import Picture, drawing, percent, tabled, told
from ...plots.axes import colour_bar
from ...plots.characters import own_name
from ...plots.kit import clients_and_classes
from ..runs import where

# What the numbers beside the partition are, rule by rule: title, unit, whether they can be negative.
KINDS = {
    "averaging": ("Weight, fixed", "weight λ", False),
    "weighted": ("Weight, from the counts", "weight λ", False),
    "voting": ("Right votes", "P(votes c | truth c)", False),
    "linear": ("Weight, trained", "weight λ", True),
    "per_class": ("Weight, trained", "weight λ", True),
    "nn": ("Slope of the network", "mean ∂f_c / ∂z_ic", True),
    "deepset": ("Slope of the network", "mean ∂f_c / ∂z_ic", True),
    "moe": ("Gate", "mean gate", False),
    "added": ("What it adds", "mean weight × logit, own class", True),
}


class Likeness(NamedTuple):
    """How far weights resemble the partition: `correlation` with each client's share of a class, `owners` (classes
    whose heaviest client holds most of their samples) of `classes`, and the share of `negative` weights.
    """

    correlation: float
    owners: int
    classes: int
    negative: float


def likeness(counts: np.ndarray, weights: np.ndarray) -> Likeness:
    """Of `weights [M, C]` (a row of nan: forgotten) and label `counts [M, C]`."""
    members = np.isfinite(weights).all(1)
    counts, weights = np.asarray(counts, dtype=float)[members], weights[members]
    share = shares(counts)
    flat = np.ptp(share) < 1e-6 or np.ptp(weights) < 1e-6
    judged = (counts.sum(0) > 0) & (np.ptp(weights, axis=0) > 1e-6)
    return Likeness(
        correlation=0.0 if flat else float(np.corrcoef(share.ravel(), weights.ravel())[0, 1]),
        owners=int((weights.argmax(0) == counts.argmax(0))[judged].sum()),
        classes=int(judged.sum()),
        negative=float((weights < 0).mean()),
    )


def shares(counts: np.ndarray) -> np.ndarray:
    """Each client's share of a class's samples, `[M, C]`."""
    return counts / np.maximum(counts.sum(0), 1)


def for_everybody(table: np.ndarray, members: np.ndarray, clients: int) -> np.ndarray:
    """`table [members, C]` with a row for each of `clients`; nan for those who take no part."""
    whole = np.full((clients, table.shape[1]), np.nan)
    inside = members < clients  # the sliders may have moved on while the method runs
    whole[members[inside]] = table[inside]
    return whole


class Trust(LabView):
    """The aggregator's table beside who holds what, round by round while phase 2 runs, and as a replay afterwards."""

    name, title, ready = "trust", "Who is trusted", "live"

    def __init__(self) -> None:
        help = "After which round the table is shown"
        self.round = made(
            widgets.SelectionSlider, label="Round", help=help, width=250, options=["end"]
        )
        self.play = player(self.round, interval=450, tooltip="Replay the rounds", show_repeat=False)
        help = "The weight alone, or what a client adds on average to the score of the true class, at the end"
        options = [("weight", False), ("weight × logit", True)]
        self.table = made(widgets.Dropdown, label="Table", help=help, width=190, options=options)
        self._shown = None

    def adapt(self, state: PanelState) -> None:
        """A new outcome brings its own rounds, and is seen from its end."""
        if state.outcome is self._shown:
            return
        self._shown = state.outcome
        rounds = None if state.outcome is None else state.report.frame_rounds
        self.round.options = ["end"] if rounds is None else [str(int(t)) for t in rounds]
        self.play.max = self.round.index = self.play.value = len(self.round.options) - 1

    def draw(self, state: PanelState) -> Picture:
        outcome, report = state.outcome, state.report
        options = state.knobs if outcome is None else outcome.options
        counts = state.federation.label_counts.numpy() if outcome is None else outcome.label_counts
        rule, when, limit = options["aggregator"], "", 0.0
        if report.frames is None:
            table = (
                report.competency.diagonal(axis1=1, axis2=2) if rule == "voting" else report.weights
            )
        elif self.table.value and outcome is not None:
            rule, table = "added", report.contribution
        else:
            at = -1 if outcome is None else self.round.index
            table, when = (
                report.frames[at],
                f"round {report.frame_rounds[at]} of {options['rounds']}",
            )
            limit = 0.0 if outcome is None else float(np.abs(report.frames).max())
        weights, marks = (
            for_everybody(table, report.members, len(counts)),
            (state.client, state.klass),
        )
        return trust(counts, weights, state.class_names, where(state), rule, when, limit, *marks)


def trust(
    counts: np.ndarray, weights: np.ndarray, names: Sequence[str], setting: str, rule: str = "per_class",
    when: str = "", limit: float = 0.0, client: int | None = None, klass: int | None = None,
) -> Picture:  # fmt: skip
    """Label counts `[M, C]`, and the rule's `weights [M, C]` (nan: forgotten).

    rule: a key of KINDS;   when: the weights were like this, "round 4 of 9";   limit: end of the colours
    """
    title, unit, signed = KINDS[rule]
    title += f", {when}" if when else ""
    limit = limit or float(np.nanmax(np.abs(weights))) or 1.0
    figure = beside_the_samples(
        counts, weights, names, setting, title, unit, limit, signed, client, klass
    )
    rows: list[tuple[Any, ...]] = []
    for k, (held, row) in enumerate(zip(counts, weights, strict=True)):
        cells = ("forgotten" if np.isnan(v) else round(float(v), 3) for v in row)
        who = own_name(k, setting)
        rows += [(who, "samples", *map(int, held)), (who, unit, *cells)]
    table = tabled(["client", "what", *(f"class {n}" for n in names)], rows)
    sentence = f"After {when}" if when else "Here"
    sentence += f" {trusted(counts, weights, names, setting, client, klass)}."
    return told(
        figure, f"Two heat-maps, training samples and {title} ({unit})", setting, sentence, table
    )


def beside_the_samples(
    counts: np.ndarray, values: np.ndarray, names: Sequence[str], setting: str, title: str, unit: str, limit: float,
    signed: bool, client: int | None, klass: int | None, ring: bool = True,
) -> Figure:  # fmt: skip
    """Two heat-maps, of label counts and of `values`, both `[M, C]`. limit: end of the colours;   signed: values may be
    below zero;   client, klass: marked;   ring: round the largest value of each class
    """
    with drawing(1, 2, width_ratios=[1, 1.14]) as (figure, (left, right)):
        text = "{:.0f}" if limit > 10 else "{:.1f}" if limit > 2 else "{:.2f}"
        marks = {"client": client, "klass": klass, "setting": setting}
        most = max(int(counts.max(initial=0)), 1)
        clients_and_classes(left, counts, names, "Training samples", most, ring=True, **marks)
        marks |= {"text": text, "signed": signed, "ring": ring, "first": False}
        colour_bar(clients_and_classes(right, values, names, title, limit, **marks), right, unit)
    return figure


def trusted(
    counts: np.ndarray,
    weights: np.ndarray,
    names: Sequence[str],
    setting: str,
    client: int | None,
    klass: int | None,
) -> str:
    """How like both tables are; before it the heaviest class of the chosen client, or client of the chosen class."""
    like, text = likeness(counts, weights), ""
    if not like.classes:
        return "every client counts the same for every class"
    if (
        client is not None
        and np.isfinite(weights[client : client + 1]).all()
        and client < len(counts)
    ):
        klass = int(weights[client].argmax())
    if klass is not None and klass < len(names):
        k = int(np.nanargmax(weights[:, klass])) if client is None else client
        text = f"client {own_name(k, setting)} counts most for class {names[klass]} (weight {weights[k, klass]:.2f}, "
        text += f"{counts[k, klass]} samples), "
    return (
        f"{text}the heaviest client of a class is the one with most of its samples for {like.owners} of {like.classes} "
        f"classes; weights and shares of samples correlate with {like.correlation:.2f}. {percent(like.negative)} of "
        "the weights are below zero"
    )
