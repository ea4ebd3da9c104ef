"""The page without Python: `fedlab-nb page` writes one HTML file, which any browser can open.

The file trains the clients of the digits in the browser, and shows the stored results of all data sets that have some.

`template.html` marks where style, data and scripts are inserted. They lie beside it, and are plain CSS and JavaScript:
no library, no build step, no network. All modules stand in one file, so their `import` and `export` are removed. The
stored numbers come from `studies.stored_results`, colours and markers from `plots.identity`. Training in the browser is
`run.js`. It uses the package's samples, random streams and recipe, so a run of a seed there equals Python's run of the
same seed, to rounding.
"""

import base64
import json
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, TypedDict

import torch
from torch import Tensor

from ...comm import Ledger
from ...data import Dataset, describe, find_dataset_title
from ...data import load as load_data
from ...errors import RunError
from ...files import check_replaceable, write_file
from ...front import join_front_modules_into_expression, read_stage_stylesheet
from ...front.flight import describe_flights
from ...front.vocabulary import (
    CLIENTS,
    FENS_SUM,
    MEAN_SUM,
    OFFICES,
    PHRASES,
    SHORT_NAMES,
    describe_classes_for_browser,
)
from ...methods import METHODS, choose_method_label, group_method_names
from ...plots.identity import get_method_look, shorten_method_title
from ...plots.style import list_class_colours
from ...plots.vector import make_svg_path_of_marker
from ...plots.words import join_with_and
from ...studies.statistics import compute_band, compute_two_sided_t_quantile
from ...studies.stored_results import StoredTable, list_datasets_with_stored_results, load
from ...tensor_types import Images, Labels
from ...value_types import JsonObject

# How a method is shown: its title, short name, colour and SVG shapes, all as text.
MethodStyle = dict[str, str]
Phase = str
Direction = str  # "up" or "down"
IsRepeated = bool

HERE = Path(__file__).parent
DASHES = {"-": "none", "--": "7 4", "-.": "8 3 2 3", ":": "2 3.5"}
MARK = 4.6  # pixels from the middle of a marker to its end
DIGITS = 6  # decimals of a band: few enough that the file is the same with every version of SciPy
TRAINED = "digits"  # the data set whose networks are trained in the page
# The modules of front/ that the page contains.
FRONT = ("stage", "worker_transport", "state", "federation", "dom", "text", "headline", "one_image")
# The methods that a run in the page measures, in this order. The ensemble stands here twice, as the mean of logits and
# as the mean of probabilities. The last two need no network, so they run on every data set.
SUMS = ("afl", "gauss")
RUNS = ("local", "fedavg", "logits", "ensemble", "fens", *SUMS)

# The methods among them whose answer is a sum over clients: what is added up, and the sum in a sentence.
ADDED_UP = {
    "logits": {"unit": "logits", "about": MEAN_SUM},
    "ensemble": {"unit": "probabilities", "about": MEAN_SUM},
    "fens": {"unit": "logits", "about": FENS_SUM},
}

# The transfers that `ledger.js` counts in the page, by method: phase, direction, and whether it is repeated each round.
ONE_MODEL = (("initial model", "down", False), ("local models", "up", False))
LEGS = {
    "fedavg": ONE_MODEL,
    "ensemble": ONE_MODEL,
    "fens": (
        *ONE_MODEL,
        ("ensemble", "down", False),
        ("aggregator", "down", True),
        ("aggregator", "up", True),
    ),
    "afl": (("sums", "up", False),),
    "gauss": (("statistics", "up", False),),
}


class StoredRunsSummary(TypedDict):
    """The stored runs of one method at one setting.

    mean:        of the accuracies, 0–1
    half:        half the width of the 95 % band of this mean
    accuracies:  accuracy of each seed, 0–1
    up, down:    bytes that all clients send and receive, mean over seeds
    """

    mean: float
    half: float
    accuracies: list[float]
    up: float
    down: float


def write_page(path: str | Path, *, force: bool = False) -> Path:
    """Write the page to `path`, and return the path.

    RunError if `path` cannot be written. UsageError if there is a file that `fedlab_nb` did not write, unless `force`.
    """
    check_replaceable([path], force=force)
    data = json.dumps(collect_page_data(), ensure_ascii=False, separators=(",", ":"))
    data = data.replace("<", "\\u003c")  # a "</script>" within the data would end the script

    def find_part(placeholder: re.Match) -> str:
        """Find the text that replaces this "@name@" in the template."""
        name = placeholder[1]
        if name == "data":
            return data
        if name == "front":
            return join_front_modules_into_expression(*FRONT)
        if name == "stage.css":
            return read_stage_stylesheet()
        return join_files_without_imports_and_exports(HERE / name)

    template = (HERE / "template.html").read_text(encoding="utf-8")
    page = re.sub(r"@(data|front|\w+\.(?:css|js))@", find_part, template)
    try:
        return write_file(path, page, force=force)
    except OSError as error:
        raise RunError(
            f"The page cannot be written to {path}: {error.strerror}; choose another --out."
        ) from None


def join_files_without_imports_and_exports(*files_in_order: Path) -> str:
    """Join the text of these files; of modules without `import` and `export`."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in files_in_order)
    return re.sub(r"^import .*\n|^export ", "", text, flags=re.MULTILINE)


def collect_page_data() -> dict[str, JsonObject]:
    """Collect the page's numbers: {name of a data set with a stored table: `describe_dataset_for_page`}."""
    return {
        name: describe_dataset_for_page(load(name)) for name in list_datasets_with_stored_results()
    }


def describe_dataset_for_page(stored_table: StoredTable) -> JsonObject:
    """Describe a data set and its stored results.

    results: {method: [[`StoredRunsSummary` for each stored α] for each stored number of clients M]}
    t:       Student's quantile for a 95 % band over the seeds
    labels:  the training samples' labels, one digit each
    live:    what training in the browser needs
    """
    dataset = load_data(stored_table.dataset)
    infos = [METHODS[name].info for name in stored_table.methods]
    methods = []
    results = {}
    for info in infos:
        methods.append(
            vars(info)
            | get_svg_method_style(stored_table.get_title_of_method(info.name))
            | {"needs": ""}
        )
        results[info.name] = [
            [
                summarise_stored_runs(stored_table, info.name, alpha, clients)
                for alpha in stored_table.alphas
            ]
            for clients in stored_table.client_counts
        ]
    axes = {
        "alpha": stored_table.alphas,
        "clients": stored_table.client_counts,
        "seed": stored_table.seeds,
    }
    return {
        "about": {"date": stored_table.about["date"], "settings": axes},
        "title": find_dataset_title(stored_table.dataset),
        "images": describe_image_dataset(stored_table.dataset),
        "t": round(compute_two_sided_t_quantile(len(stored_table.seeds) - 1), DIGITS),
        "classes": describe_classes_for_browser(list(dataset.class_names), list_class_colours(10)),
        "people": OFFICES if stored_table.dataset == TRAINED else CLIENTS,
        "groups": group_method_names(stored_table.methods),
        "methods": methods,
        "words": describe_stored_results(stored_table),
        "results": results,
        "labels": encode_labels_as_digits(dataset.y_train),
        "live": pack_browser_training_data(dataset, stored_table),
    }


def pack_browser_training_data(dataset: Dataset, stored_table: StoredTable) -> JsonObject:
    """Pack what a run in the browser needs.

    train, test: images, encoded by `encode_pixel_levels_in_base64`
    answers: labels of the test images
    rows: name and look of each method that the run measures
    flights: the messages of each method as the stage shows them, without their bytes
    sums: the methods whose answer is a sum over clients, see `ADDED_UP`
    """
    titles = {name: stored_table.get_title_of_method(name) for name in stored_table.methods}
    titles["logits"] = choose_method_label("ensemble", {"rule": "logits"})
    trains_networks = stored_table.dataset == TRAINED
    runs = RUNS if trains_networks else SUMS
    ledgers = {name: make_ledger_of_one_client(LEGS[name]) for name in LEGS if name in runs}
    levels = choose_highest_pixel_level(dataset.x_train)
    return {
        "trainsNetworks": trains_networks,
        "side": dataset.x_train.shape[-1],
        "levels": levels,
        "train": encode_pixel_levels_in_base64(dataset.x_train, levels),
        "test": encode_pixel_levels_in_base64(dataset.x_test, levels),
        "answers": encode_labels_as_digits(dataset.y_test),
        "rows": [make_style_of_shown_method(name, titles[name]) for name in runs],
        "sums": {name: about for name, about in ADDED_UP.items() if name in runs},
        "flights": describe_flights(ledgers),
    }


def make_ledger_of_one_client(transfers: Iterable[tuple[Phase, Direction, IsRepeated]]) -> Ledger:
    """Make a ledger with these transfers, for a single client.

    Their bytes are 0: before a run it is known what is sent, and not how many bytes it has. A repeated transfer has
    two messages.
    """
    ledger = Ledger(1)
    for phase, direction, is_repeated in transfers:
        ledger.add(0, direction, phase, 0, message_count=2 if is_repeated else 1)
    return ledger


def make_style_of_shown_method(method_name: str, method_title: str) -> MethodStyle:
    """Make a method of the stage: its name and look, `short` for beside a bar, `phrase` for the start of a sentence."""
    row = {
        "name": method_name,
        **get_svg_method_style(method_title),
        "phrase": PHRASES.get(method_name, method_title),
    }
    row["short"] = SHORT_NAMES.get(method_name, row["short"])
    return row


def choose_highest_pixel_level(images_0_to_1: Images) -> Literal[16, 255]:
    """Choose the highest level of a pixel: 16 if all pixels (0–1) are whole sixteenths, as in the digits, else 255."""
    sixteenths = 16 * images_0_to_1
    are_whole = bool((sixteenths == sixteenths.round()).all())
    return 16 if are_whole else 255


def encode_pixel_levels_in_base64(images_0_to_1: Images, highest_level: int) -> str:
    """Encode images (0–1) as base64: one byte a pixel, from 0 to `highest_level`."""
    pixel_levels = (highest_level * images_0_to_1.flatten()).round().to(torch.uint8)
    return base64.b64encode(pixel_levels.numpy().tobytes()).decode("ascii")


def encode_labels_as_digits(labels_below_10: Labels) -> str:
    """Write labels `[N]` as N digits in one string; there are at most ten classes."""
    return "".join(map(str, labels_below_10.tolist()))


def describe_stored_results(stored_table: StoredTable) -> str:
    """Describe what is stored, for the end of the page."""
    about = stored_table.about
    options = stored_table.get_options_of_method(stored_table.methods[0])
    runs = len(stored_table.rows) * len(stored_table.seeds)
    seeds = ", ".join(map(str, stored_table.seeds))
    alphas = join_with_and([f"{a:g}" for a in stored_table.alphas])
    return (
        f"Results of {len(stored_table.methods)} methods on "
        f"{describe_image_dataset(stored_table.dataset)} at α = {alphas}, "
        f"with {', '.join(map(str, stored_table.client_counts))} clients and seeds {seeds}: "
        f"{runs} runs in all, made on "
        f"{about['date']} by fedlab_nb {about['version']} with PyTorch {about['torch']} (preset "
        f"classroom: {options['recipe.epochs']} local epochs, batches of {options['recipe.batch_size']}, "
        f"{options['recipe.optimizer'].upper()} with learning rate {options['recipe.lr']})."
    )


def describe_image_dataset(dataset_name: str) -> str:
    """Describe a data set's images for a sentence: 'the digits (8 × 8 pixels, 360 test images)'."""
    about = describe(dataset_name)
    _, height, width = about.input_shape
    kind = dataset_name.partition(":")[0]
    return f"the {kind} ({height} × {width} pixels, {about.n_test} test images)"


def get_svg_method_style(method_title: str) -> MethodStyle:
    """Return a method's title, the short one, and its look as SVG has it."""
    colour, marker, line = get_method_look(method_title)
    shapes = {"outline": make_svg_path_of_marker(marker, MARK), "dash": DASHES[line]}
    return {
        "title": method_title,
        "short": shorten_method_title(method_title),
        "colour": colour,
        **shapes,
    }


def summarise_stored_runs(
    stored_table: StoredTable, method: str, alpha: float, client_count: int
) -> StoredRunsSummary:
    """Summarise the stored runs of a method over all seeds."""
    accuracies = stored_table.get_accuracies_by_seed(method, alpha, client_count)
    accuracy = compute_band(accuracies)
    bytes_up = stored_table.get_values_by_seed("bytes_up", method, alpha, client_count)
    bytes_down = stored_table.get_values_by_seed("bytes_down", method, alpha, client_count)
    return {
        "mean": accuracy.mean,
        "half": round(accuracy.half_width, DIGITS),
        "accuracies": list(accuracies.values()),
        "up": fmean(bytes_up.values()),
        "down": fmean(bytes_down.values()),
    }
