"""Accuracy against λ_damp for what a server may make of the uploads, under both rules for π.

The curves are on validation images, so that a λ_damp may be chosen; only the chosen one is tried on the test images.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from ipywidgets import Dropdown, SelectionSlider

from ...errors import RunError
from ...methods.fedlpa.server import USES
from ...methods.parts.kronecker import PI_RULES
from ...panels import LabView, PanelState, made
from ...plots import Picture, drawing, dress, listed, percent, tabled, told
from ...plots.axes import FIFTHS, end_labels, log_axis, percent_axis
from ...plots.style import ACCENT, INK, SERIES, look, narrow
from ...studies.experiment import validation_of
from ...studies.outcome import WORDS
from ..runs import where
from .replay import DAMPINGS, offered, power, replay, ten

MARKED = "The λ_damp that is marked in the picture"
# use of the uploads -> words, colour, line, marker
LOOKS = {
    "exact": ("exact (FedLPA)", look("fedlpa").colour, "-", "o"),
    "shortcut": ("shortcut EA", SERIES[1], "--", "s"),
    "inputs": ("A alone (RegMean)", look("regmean").colour, "-.", "^"),
    "diagonal": ("factor diagonals", SERIES[3], ":", "D"),
    "none": ("average", "#7F7F7F", (0, (1, 2)), ""),
}


class Damping(LabView):
    """Accuracy against λ_damp for five uses of the uploads."""

    name, title = "damping", "λ_damp and π"
    _outcome: Any = None

    def __init__(self) -> None:
        rules = [("π = 1", "one"), ("π by the traces", "trace")]
        self.damping = made(
            SelectionSlider, label="λ_damp", help=MARKED, width=366, label_width=56, **offered()
        )
        self.pi = made(
            Dropdown,
            label="Split",
            help="How the two factors share the damping",
            width=210,
            options=rules,
        )

    def adapt(self, state: PanelState) -> None:
        """Start at what the run had."""
        if state.outcome is not self._outcome:
            self._outcome, options = state.outcome, state.outcome.options
            self.damping.value, self.pi.value = offered(options["damping"])["value"], options["pi"]

    def prepare(self, state: PanelState) -> Generator[None, None, "DampingSweep"]:
        return sweep_dampings(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        return damping(state.prepared, self.pi.value, self.damping.index)


class DampingSweep(NamedTuple):
    """The server's part for each of `dampings` λ_damp, from the same uploads.

    accuracies: rule for π -> use of the uploads (of USES) -> validation accuracy 0-1 for each λ_damp
    tested:     rule for π -> test accuracy 0-1 of the exact solution with the λ_damp that is best on validation images
    measured:   `[M, layers]`, mean diagonal of the undamped B;   ratios: rule -> `[M, layers]`, π
    layers:     their names in words;   setting: of the run, in words
    """

    dampings: Sequence[float]
    accuracies: Mapping[str, Mapping[str, Sequence[float]]]
    measured: np.ndarray
    damping_ratios: Mapping[str, np.ndarray]
    layers: Sequence[str]
    setting: str
    tested: Mapping[str, float] = {}
    judged_on: str = "held-out"

    def best(self, rule: str) -> int:
        """Number of the λ_damp with which the exact solution is best on validation images."""
        shares = self.accuracies[rule]["exact"]
        return shares.index(max(shares))

    def over(self, rule: str, chosen: int) -> list[str]:
        """In which layers λ_damp number `chosen` adds more to B than was measured, at most clients."""
        over = (self.dampings[chosen] ** 0.5 / self.damping_ratios[rule] > self.measured).mean(
            0
        ) > 0.5
        return [self.layers[i] for i in np.flatnonzero(over)]


def sweep_dampings(outcome: Any) -> Generator[None, None, DampingSweep]:
    """Every λ_damp, both rules for π, every use of the uploads, on validation images; of the λ_damp that is best there,
    and of it alone, the test accuracy. RunError where the run has no validation images."""
    held = validation_of(outcome)
    if held is None:
        raise RunError(
            "This run has no validation images to compare λ_damp on; choose a holdout above 0."
        )
    server = replay(outcome, held[:2])
    accuracies: dict[str, dict[str, list[float]]] = {
        rule: {use: [] for use in USES} for rule in PI_RULES
    }
    for rule, by_use in accuracies.items():
        for damping in DAMPINGS:
            received = server.uploads(damping, rule)
            for use, shares in by_use.items():
                known = use == "none" and shares  # the average does not depend on λ_damp
                shares.append(
                    shares[0] if known else server.accuracy(server.solve_with(use, received))
                )
                yield
    of_clients = server.posteriors
    measured = np.array(
        [[layer.b.diagonal().mean().item() for layer in own.factors.values()] for own in of_clients]
    )
    ratios = {rule: np.array([own.damping_ratios(rule) for own in of_clients]) for rule in PI_RULES}
    names, tested = [f"layer {i + 1}" for i in range(len(outcome.report.layers))], {}
    sweep = DampingSweep(
        DAMPINGS, accuracies, measured, ratios, names, where(outcome), tested, held[2]
    )
    on_test = replay(outcome)
    for rule in PI_RULES:
        received = on_test.uploads(DAMPINGS[sweep.best(rule)], rule)
        tested[rule] = on_test.accuracy(on_test.solve_with("exact", received))
    return sweep


def damping(sweep: DampingSweep, rule: str, chosen: int) -> Picture:
    """Every use of the uploads under a `rule` for π; λ_damp number `chosen` is marked."""
    dampings, accuracies, over = sweep.dampings, sweep.accuracies[rule], sweep.over(rule, chosen)
    best, tested = sweep.best(rule), sweep.tested.get(rule)
    with drawing() as (figure, ax):
        dress(ax, title="Validation accuracy (ring: test)", x="damping λ_damp", grid="y")
        for use, shares in accuracies.items():
            words, colour, line, marker = LOOKS[use]
            ax.plot(
                dampings, shares, ls=line, marker=marker, color=colour, ms=4.5, lw=1.9, label=words
            )
        if tested is not None:
            ax.plot(dampings[best], tested, "o", ms=12, mfc="none", mec=INK, mew=1.6, zorder=6)
        ax.axvline(dampings[chosen], color=ACCENT, lw=7, alpha=0.16, zorder=0)
        log_axis(ax, most=5 if narrow() else 9, form=ten)
        percent_axis(ax, "y", 1.03, ticks=FIFTHS)
        end_labels(ax, [(shares[-1], *LOOKS[use][:2]) for use, shares in accuracies.items()])
    here = ", ".join(
        f"{LOOKS[use][0].split(' (')[0]} {percent(shares[chosen])}"
        for use, shares in accuracies.items()
    )
    on_test = "" if tested is None else f"; on test images {percent(tested)}"
    rows = zip(
        map(power, dampings), *(map(percent, shares) for shares in accuracies.values()), strict=True
    )
    return told(
        figure,
        "Validation accuracy against λ_damp for each use of the uploads",
        f"{sweep.setting}, rule π = {1 if rule == 'one' else rule}",
        f"At λ_damp = {power(dampings[chosen])}, on validation images ({WORDS[sweep.judged_on]}): {here}. "
        f"Best for FedLPA: {power(dampings[best])} ({percent(accuracies['exact'][best])}{on_test}). "
        f"λ_damp adds more to B than was measured in {listed(over) or 'no layer'}.",
        tabled(["λ_damp", *(LOOKS[use][0] for use in accuracies)], rows),
    )
