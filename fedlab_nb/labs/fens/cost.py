"""What FENS costs one client: here and with the paper's network, part by part, beside one-shot and FedAvg's rounds."""

import functools
from collections import Counter
from collections.abc import Mapping

import ipywidgets as widgets
from matplotlib.axes import Axes

from ...comm import Ledger, formulas
from ...methods.fens import Fens
from ...methods.fens.model import PAPER, PAPER_D, Size, client_bytes
from ...models import build_specified, model_state
from ...panels import LabView, PanelState, made
from ...plots import Picture, drawing, dress, plural, tabled, told
from ...plots.axes import SIZES, few_ticks
from ...plots.kit import stacked
from ...plots.style import ACCENT, INK, look
from ...plots.words import data_size
from ..runs import where

OWN, ENSEMBLE, ROUNDS, OTHER, FEDAVG = "own model", "ensemble", "aggregator rounds", "other", "FedAvg, all rounds"
PARTS = {"initial model": OWN, "local models": OWN, "ensemble": ENSEMBLE, "aggregator": ROUNDS}  # of the ledger
HUES = {OWN: "#9aa4ae", ENSEMBLE: "#56B4E9", ROUNDS: ACCENT, OTHER: "#E69F00", FEDAVG: look("fedavg_multi").colour}
PAPER_RATIO = formulas.fens_ratio(PAPER_D, **PAPER)
Bars = Mapping[str, Mapping[str, float]]  # {what costs it: {part: bytes of one client}}; the first is one-shot learning


def bytes_by_part(ledger: Ledger, client: int) -> dict[str, int]:
    """One client's bytes, down and up, by OWN, ENSEMBLE, ROUNDS, OTHER."""
    parts: Counter[str] = Counter()
    for row in ledger.rows():
        if row["client"] == client:
            parts[PARTS.get(row["phase"], OTHER)] += row["bytes"]
    return parts


@functools.lru_cache(maxsize=32)
def network(model: str, input_shape: tuple[int, ...], classes: int) -> Size:
    """The clients' (first) network."""
    return Size.of(model_state(build_specified(model, input_shape, classes)))


def bill(size: Size, terms: Mapping[str, int], rounds: int) -> Bars:
    """What one client pays for a network; `terms`: `Fens.terms`; `rounds`: of FedAvg."""
    own = formulas.one_shot_bytes(size.d)
    small = 2 * formulas.state_bytes(terms["q"]) * terms["rounds"]
    fens = {OWN: own, ENSEMBLE: client_bytes(size, **terms) - own - small, ROUNDS: small}
    fedavg = {FEDAVG: formulas.iterative_bytes(size.d, rounds)}
    return {"one-shot": {OWN: own}, "FENS": fens, f"{plural(rounds, 'round')} of FedAvg": fedavg}


class Cost(LabView):
    """One client's bytes with this network and with the paper's, from the formula, before anything is run."""

    name, title, ready = "cost", "Bytes at two sizes", "data"

    def __init__(self) -> None:
        self.whose = made(
            widgets.Dropdown, label="Clients, rule, rounds", width=270, options=["as set here", "the paper's"],
            help="The paper's: 20 clients, a network of 8450 numbers, 500 rounds, 8 bits",
        )  # fmt: skip
        self.rounds = made(
            widgets.IntSlider, label="FedAvg's rounds", help="Rounds of FedAvg to compare with", width=330, value=20,
            min=1, max=100,
        )  # fmt: skip
        self.controls = [self.whose, self.rounds]

    def draw(self, state: PanelState) -> Picture:
        shape, classes, clients = state.federation.dataset.input_shape, len(state.class_names), state.federation.clients
        outcome, terms, counted = state.outcome, Fens(**state.knobs).terms(clients, classes, shape), None
        if self.whose.value == "the paper's":
            terms, clients = PAPER, PAPER["clients"]
        elif outcome is not None and outcome.settings.dataset == state.settings["dataset"]:
            if Fens(**outcome.options).terms(outcome.settings.clients, classes, shape) == terms:
                counted = outcome.report.bytes["measured"]
        size = network(state.settings.get("model", "auto"), shape, classes)
        return bytes_at_two_sizes(
            bill(size, terms, self.rounds.value), bill(Size(PAPER_D), terms, self.rounds.value), size.d,
            clients=clients, setting=where(state), counted=counted,
        )  # fmt: skip


def bytes_at_two_sizes(
    own: Bars, paper: Bars, d: int, *, clients: int, setting: str, counted: float | None = None
) -> Picture:
    """Side by side: with this network of `d` numbers, and with the paper's. counted: what the ledger counted for the
    client with the most bytes.
    """
    shown = {f"This network: {d:,} numbers".replace(",", "\u202f"): own, "The paper's: 4.9 million": paper}
    rows = []
    with drawing(1, 2, sharey=True) as (figure, places):
        for ax, (what, bars) in zip(places, shown.items(), strict=True):
            dress(ax, title=what, x="one client, down and up", grid="x")
            totals = stacked(ax, bars, HUES, thick=0.58)
            write_totals(ax, totals)
            for (name, parts), total in zip(bars.items(), totals, strict=True):
                rows.append((what, name, *(round(parts.get(p, 0)) for p in HUES), round(total), ratio(bars, name)))
        figure.legend(
            *places[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False,
            fontsize=9, labelcolor=INK, handlelength=1.3, columnspacing=1.3,
        )  # fmt: skip
    said = ""
    if counted is not None:
        same = abs(counted - sum(own["FENS"].values())) < 1
        said = f" (the ledger counted {'the same' if same else data_size(counted)})"
    *_, fedavg = own
    sentence = (
        f"With {plural(clients, 'client')} FENS costs a client {ratio(own, 'FENS'):g}× one-shot learning here{said} "
        f"and {ratio(paper, 'FENS'):g}× with the paper's network; {fedavg} cost {ratio(own, fedavg):g}×. "
        f"The paper's own setting: {PAPER_RATIO:.3g}×."
    )
    table = tabled(["network", "what", *HUES, "bytes of one client", "× one-shot"], rows)
    return told(figure, "Bars of one client's bytes, at two sizes of the network", setting, sentence, table)


def ratio(bars: Bars, name: str) -> float:
    """To the first of `bars`, in three figures."""
    first, *_ = bars.values()
    return float(f"{sum(bars[name].values()) / sum(first.values()):.3g}")


def write_totals(ax: Axes, totals: list[float]) -> None:
    """Each bar's bytes and how many times the first's they are: inside a long bar, beside a short one."""
    longest = max(totals)
    for i, total in enumerate(totals):
        inside = total > 0.62 * longest
        style = {"ha": "right", "color": "white"} if inside else {"ha": "left", "color": INK}
        x = total + (-0.015 if inside else 0.015) * longest
        text = f"{total / totals[0]:.3g}× · {data_size(total)}"
        ax.text(x, i, text, va="center", fontsize=9.5, fontweight="bold", **style)
    ax.set_xlim(0, 1.04 * longest)
    few_ticks(ax, "x", 4, form=SIZES)
