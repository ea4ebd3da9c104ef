"""What FENS costs one client: here and with the paper's network, part by part, beside one-shot and FedAvg's rounds."""

import functools
from collections import Counter
from collections.abc import Mapping

import ipywidgets as widgets

from ...comm import Ledger, formulas
from ...methods.fens import Fens
from ...methods.fens.model import PAPER, PAPER_D, Size, client_bytes
from ...models import build_from_text, model_state
from ...panels import LabView, PanelState, made
from ...plots import Picture, data_size, drawing, dress, legend, plural, tabled, told
from ...plots.kit import stacked
from ...plots.style import ACCENT, INK, look
from ..runs import where

OWN, ENSEMBLE, ROUNDS, OTHER, FEDAVG = (
    "own model",
    "ensemble",
    "aggregator rounds",
    "other",
    "FedAvg, all rounds",
)
PARTS = {
    "initial model": OWN,
    "local models": OWN,
    "ensemble": ENSEMBLE,
    "aggregator": ROUNDS,
}  # of the ledger
HUES = {
    OWN: "#9aa4ae",
    ENSEMBLE: "#56B4E9",
    ROUNDS: ACCENT,
    OTHER: "#E69F00",
    FEDAVG: look("fedavg_multi").colour,
}
PAPER_RATIO = formulas.fens_ratio(PAPER_D, **PAPER)
Bars = Mapping[
    str, Mapping[str, float]
]  # {what costs it: {part: bytes of one client}}; the first is one-shot learning


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
    return Size.of(model_state(build_from_text(model, input_shape, classes)))


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
        help, options = (
            "The paper's: 20 clients, 8450 numbers, 500 rounds, 8 bits",
            ["as set here", "the paper's"],
        )
        self.whose = made(
            widgets.Dropdown, label="Clients, rule, rounds", help=help, width=270, options=options
        )
        help, ends = "Rounds of FedAvg to compare with", {"value": 20, "min": 1, "max": 100}
        self.rounds = made(widgets.IntSlider, label="FedAvg's rounds", help=help, width=330, **ends)

    def draw(self, state: PanelState) -> Picture:
        shape, classes, clients = (
            state.federation.dataset.input_shape,
            len(state.class_names),
            state.federation.clients,
        )
        terms = Fens(**state.knobs).terms(clients, classes, shape)
        if self.whose.value == "the paper's":
            terms, clients = PAPER, PAPER["clients"]
        size = network(state.settings.get("model", "auto"), shape, classes)
        own, paper = (bill(of, terms, self.rounds.value) for of in (size, Size(PAPER_D)))
        return bytes_at_two_sizes(own, paper, size.d, clients=clients, setting=where(state))


def bytes_at_two_sizes(own: Bars, paper: Bars, d: int, *, clients: int, setting: str) -> Picture:
    """In multiples of one-shot learning, with this network of `d` numbers and with the paper's."""
    networks = {f"{d:,} numbers".replace(",", "\u202f"): own, "4.9 million": paper}
    rows: list[tuple] = []
    times = {}
    for what, bars in networks.items():
        for name, parts in bars.items():
            times[f"{name},\n{what}"] = {
                part: size / sum(bars["one-shot"].values()) for part, size in parts.items()
            }
            each = (round(parts.get(part, 0)) for part in HUES)
            rows.append((what, name, *each, round(sum(parts.values())), ratio(bars, name)))
    with drawing() as (figure, ax):
        dress(ax, title="One client, down and up, in multiples of one-shot", grid="x")
        for i, (end, row) in enumerate(zip(stacked(ax, times, HUES), rows, strict=True)):
            ax.text(
                end,
                i,
                f" {end:.3g}× · {data_size(row[-2])}",
                va="center",
                fontsize=9.5,
                color=INK,
                gid="outside",
            )
        legend(figure, loc="outside lower center", ncols=5)
    *_, fedavg = own
    sentence = (
        f"With {plural(clients, 'client')} FENS costs a client {ratio(own, 'FENS'):g}× one-shot learning here "
        f"and {ratio(paper, 'FENS'):g}× with the paper's network; {fedavg} cost {ratio(own, fedavg):g}×. "
        f"The paper's own setting: {PAPER_RATIO:.3g}×."
    )
    table = tabled(["network", "what", *HUES, "bytes of one client", "× one-shot"], rows)
    return told(
        figure, "Bars of one client's bytes, at two sizes of the network", setting, sentence, table
    )


def ratio(bars: Bars, name: str) -> float:
    """To the first of `bars`, in three figures."""
    first, *_ = bars.values()
    return float(f"{sum(bars[name].values()) / sum(first.values()):.3g}")
