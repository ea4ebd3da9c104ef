"""The bytes that FENS costs one client, part by part, beside one-shot learning and FedAvg: with
this network, and with one of the paper's size.
"""

import functools
from collections import Counter
from collections.abc import Mapping

import ipywidgets as widgets

from ...comm import Ledger, formulas
from ...methods.fens import Fens
from ...methods.fens.model import PAPER, PAPER_D, NetworkSize, count_fens_bytes_of_one_client
from ...models import build_untrained_network_of_first_model, copy_model_state
from ...panels import LabView, PanelState, make_widget
from ...panels.figures import make_caption_of_first_seed
from ...plots import (
    Picture,
    add_legend,
    build_table,
    describe_picture,
    drawing,
    dress,
    format_count_and_noun,
    format_data_size,
)
from ...plots.kit import draw_stacked_bars_and_get_ends
from ...plots.style import ACCENT, INK, get_method_look
from ...plots.words import SettingCaption
from ...value_types import SampleShape

# The parts of one client's bytes.
OWN = "own model"
ENSEMBLE = "ensemble"
ROUNDS = "aggregator rounds"
OTHER = "other"
FEDAVG = "FedAvg, all rounds"

PART_OF_PHASE = {  # {phase of the ledger: part}
    "initial model": OWN,
    "local models": OWN,
    "ensemble": ENSEMBLE,
    "aggregator": ROUNDS,
}
COLOURS = {
    OWN: "#9aa4ae",
    ENSEMBLE: "#56B4E9",
    ROUNDS: ACCENT,
    OTHER: "#E69F00",
    FEDAVG: get_method_look("fedavg_multi").colour,
}
PAPER_RATIO = formulas.compute_fens_bytes_relative_to_one_shot(
    PAPER_D, PAPER["client_count"], PAPER["aggregator_parameters"], PAPER["rounds"]
)
# {name of a bar: {part: bytes of one client}}; the first bar is one-shot learning.
BytesByBarAndPart = Mapping[str, Mapping[str, float]]


def count_client_bytes_by_part(ledger: Ledger, client_index: int) -> dict[str, int]:
    """Count one client's bytes, up and down together: {OWN, ENSEMBLE, ROUNDS or OTHER: bytes}."""
    parts: Counter[str] = Counter()
    for row in ledger.rows():
        if row["client"] == client_index:
            part = PART_OF_PHASE.get(row["phase"], OTHER)
            parts[part] += row["bytes"]
    return parts


@functools.lru_cache(maxsize=32)
def measure_size_of_first_client_network(
    model_name: str, input_shape: SampleShape, class_count: int
) -> NetworkSize:
    """Measure the size of the clients' network; of the first one, if they have several kinds."""
    return NetworkSize.measure(
        copy_model_state(
            build_untrained_network_of_first_model(model_name, input_shape, class_count)
        )
    )


def compute_client_bytes_by_bar(
    network_size: NetworkSize, fens_formula_arguments: Mapping[str, int], fedavg_rounds: int
) -> BytesByBarAndPart:
    """Compute what one client sends and receives with a network of this size.

    fens_formula_arguments: see `Fens.make_byte_formula_arguments`
    fedavg_rounds: number of rounds of FedAvg
    """
    one_shot = formulas.count_one_shot_bytes_per_client(network_size.d)
    aggregator_bytes = formulas.count_model_bytes_one_way(
        fens_formula_arguments["aggregator_parameters"]
    )
    aggregator = 2 * aggregator_bytes * fens_formula_arguments["rounds"]
    ensemble = (
        count_fens_bytes_of_one_client(network_size, **fens_formula_arguments)
        - one_shot
        - aggregator
    )
    return {
        "one-shot": {OWN: one_shot},
        "FENS": {OWN: one_shot, ENSEMBLE: ensemble, ROUNDS: aggregator},
        f"{format_count_and_noun(fedavg_rounds, 'round')} of FedAvg": {
            FEDAVG: formulas.count_iterative_bytes_per_client(network_size.d, fedavg_rounds)
        },
    }


class ClientCostView(LabView):
    """One client's bytes with this network and with the paper's. They come from a formula, so they
    are known before anything is run.
    """

    name, title, ready = "cost", "Bytes at two sizes", "data"

    def __init__(self) -> None:
        self.whose = make_widget(
            widgets.Dropdown,
            label="Clients, rule, rounds",
            help="The paper's: 20 clients, 8450 numbers, 500 rounds, 8 bits",
            width=270,
            options=["as set here", "the paper's"],
        )
        self.rounds = make_widget(
            widgets.IntSlider,
            label="FedAvg's rounds",
            help="Rounds of FedAvg to compare with",
            width=330,
            value=20,
            min=1,
            max=100,
        )

    def draw(self, state: PanelState) -> Picture:
        shape = state.federation.dataset.input_shape
        classes = len(state.class_names)
        if self.whose.value == "the paper's":
            formula_arguments = PAPER
            clients = PAPER["client_count"]
        else:
            clients = state.federation.clients
            formula_arguments = Fens(**state.knobs).make_byte_formula_arguments(
                clients, classes, shape
            )
        size = measure_size_of_first_client_network(
            state.settings.get("model", "auto"), shape, classes
        )
        rounds = self.rounds.value
        return draw_client_cost(
            compute_client_bytes_by_bar(size, formula_arguments, rounds),
            compute_client_bytes_by_bar(NetworkSize(PAPER_D), formula_arguments, rounds),
            size.d,
            client_count=clients,
            setting=make_caption_of_first_seed(state),
        )


def draw_client_cost(
    our_bars: BytesByBarAndPart,
    paper_bars: BytesByBarAndPart,
    network_parameter_count: int,
    *,
    client_count: int,
    setting: SettingCaption | str,
) -> Picture:
    """Draw one client's bytes in multiples of one-shot learning, with this network and with the
    paper's.

    our_bars, paper_bars:    bytes of one client with this network, and with one of the paper's size
    network_parameter_count: of this network
    client_count:            with which both were computed
    """
    bars_by_network = {
        f"{network_parameter_count:,} numbers".replace(",", "\u202f"): our_bars,
        "4.9 million": paper_bars,
    }
    rows: list[tuple] = []
    multiples: dict[str, dict[str, float]] = {}
    for network, bars in bars_by_network.items():
        one_shot = sum(bars["one-shot"].values())
        for name, parts in bars.items():
            multiples[f"{name},\n{network}"] = {
                part: size / one_shot for part, size in parts.items()
            }
            sizes = [round(parts.get(part, 0)) for part in COLOURS]
            total = round(sum(parts.values()))
            rows.append(
                (network, name, *sizes, total, compute_total_ratio_to_first_bar(bars, name))
            )
    with drawing() as (figure, ax):
        dress(ax, title="One client, down and up, in multiples of one-shot", grid="x")
        bar_ends = draw_stacked_bars_and_get_ends(ax, multiples, COLOURS)
        for i, (bar_end, row) in enumerate(zip(bar_ends, rows, strict=True)):
            text = f" {bar_end:.3g}× · {format_data_size(row[-2])}"
            ax.text(bar_end, i, text, va="center", fontsize=9.5, color=INK, gid="outside")
        add_legend(figure, loc="outside lower center", ncols=5)
    *_, fedavg_name = our_bars
    sentence = (
        f"FENS costs a client {compute_total_ratio_to_first_bar(our_bars, 'FENS'):g} times as much "
        f"as one-shot learning, and {fedavg_name} "
        f"{compute_total_ratio_to_first_bar(our_bars, fedavg_name):.0f} times."
    )
    detail = (
        f"With {format_count_and_noun(client_count, 'client')}: "
        f"{compute_total_ratio_to_first_bar(our_bars, 'FENS'):g}× here, "
        f"{compute_total_ratio_to_first_bar(paper_bars, 'FENS'):g}× with the paper's network, "
        f"{PAPER_RATIO:.3g}× in the paper's own setting."
    )
    columns = ["network", "what", *COLOURS, "bytes of one client", "× one-shot"]
    title = "Bars of one client's bytes, at two sizes of the network"
    table = build_table(columns, rows)
    return describe_picture(figure, title, setting, sentence, table, detail=detail)


def compute_total_ratio_to_first_bar(cost_bars: BytesByBarAndPart, bar_name: str) -> float:
    """Compute the total of bar `bar_name` over that of the first bar, to three digits."""
    first_bar = next(iter(cost_bars.values()))
    return float(f"{sum(cost_bars[bar_name].values()) / sum(first_bar.values()):.3g}")
