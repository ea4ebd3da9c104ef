"""The page without Python: `fedlab-nb page` writes one file that trains the digits' clients in the browser, and has the
stored results beside it; to be opened from anywhere.

`template.html` says where style, data and scripts go, which lie beside it. They are plain CSS and JavaScript: no
library, no build step, no network. Modules lose their `import` and `export`, since all stand in one file. The stored
numbers are those of `studies.stored_results`, the looks those of `plots.identity`. What runs in the browser is
`run.js`, on the package's own samples, streams and recipe, so that its run of a seed is Python's run of that
seed to rounding.
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
from ...front import join_front_modules, read_stylesheet
from ...front.flight import describe_flights
from ...front.vocabulary import (
    CLIENTS,
    FENS_SUM,
    MEAN_SUM,
    OFFICES,
    PHRASES,
    SHORT_NAMES,
    describe_classes,
)
from ...methods import METHODS, choose_method_label, group_methods_by_kind
from ...plots.identity import get_method_look, shorten_title
from ...plots.style import list_class_colours
from ...plots.vector import make_marker_path
from ...plots.words import join_with_and
from ...studies.statistics import compute_band, compute_two_sided_t_quantile
from ...studies.stored_results import StoredTable, list_datasets_with_stored_results, load
from ...tensor_types import Images, Labels

JsonObject = dict[str, Any]
# Of a method: title, name, colours and SVG shapes, all as text.
MethodStyle = dict[str, str]
Phase = str
Direction = str  # "up" or "down"
IsRepeated = bool

HERE = Path(__file__).parent
DASHES = {"-": "none", "--": "7 4", "-.": "8 3 2 3", ":": "2 3.5"}
MARK = 4.6  # pixels from the middle of a marker to its end
DIGITS = 6  # of a band, so that no version of SciPy or Python shows in the file
TRAINED = "digits"  # the data set whose networks are trained in the page
# What the page takes of front/.
FRONT = ("stage", "worker_transport", "state", "federation", "dom", "text", "headline", "one_image")
# What a run measures there, in this order; the ensemble's two plain means are two. The last ones need no network: they
# run on every data set.
SUMS = ("afl", "gauss")
RUNS = ("local", "fedavg", "logits", "ensemble", "fens", *SUMS)

# Of these the answers that are sums over clients: what is added up, and the sum in a sentence.
ADDED_UP = {
    "logits": {"unit": "logits", "about": MEAN_SUM},
    "ensemble": {"unit": "probabilities", "about": MEAN_SUM},
    "fens": {"unit": "logits", "about": FENS_SUM},
}

# The legs of the ledgers that `ledger.js` counts there: phase, direction, and whether it comes again and again.
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
    """Accuracies 0–1 of all seeds, their mean and half its band; mean bytes of all clients."""

    mean: float
    half: float
    accuracies: list[float]
    up: float
    down: float


def write_page(path: str | Path, *, force: bool = False) -> Path:
    """Write the page to `path` and return it. RunError if that is no place to write, UsageError if a file of
    somebody else's is there already, unless `force`."""
    check_replaceable([path], force=force)
    data = json.dumps(collect_page_data(), ensure_ascii=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )

    def find_part(place: re.Match) -> str:
        """Find the text that replaces this "@name@" in the template."""
        if place[1] == "data":
            return data
        if place[1] == "front":
            return join_front_modules(*FRONT)
        if place[1] == "stage.css":
            return read_stylesheet()
        return join_javascript_modules(HERE / place[1])

    template = (HERE / "template.html").read_text(encoding="utf-8")
    page = re.sub(r"@(data|front|\w+\.(?:css|js))@", find_part, template)
    try:
        return write_file(path, page, force=force)
    except OSError as error:
        raise RunError(
            f"The page cannot be written to {path}: {error.strerror}; choose another --out."
        ) from None


def join_javascript_modules(*files: Path) -> str:
    """Join the text of files that stand in one place: of modules without `import` and `export`."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return re.sub(r"^import .*\n|^export ", "", text, flags=re.MULTILINE)


def collect_page_data() -> dict[str, JsonObject]:
    """Collect the page's numbers, {data set: its entry}, of all data sets that have a stored table."""
    return {
        name: describe_dataset_for_page(load(name)) for name in list_datasets_with_stored_results()
    }


def describe_dataset_for_page(table: StoredTable) -> JsonObject:
    """The numbers of one data set, by method, then stored M, then stored α; t: Student's quantile of a 95 % band over
    the seeds; labels: of the training samples, a figure each."""
    dataset = load_data(table.dataset)
    infos = [METHODS[name].info for name in table.methods]
    methods = []
    results = {}
    for info in infos:
        methods.append(vars(info) | get_svg_method_style(table.title(info.name)) | {"needs": ""})
        results[info.name] = [
            [summarise_stored_runs(table, info.name, alpha, clients) for alpha in table.alphas]
            for clients in table.clients
        ]
    axes = {"alpha": table.alphas, "clients": table.clients, "seed": table.seeds}
    return {
        "about": {"date": table.about["date"], "settings": axes},
        "title": find_dataset_title(table.dataset),
        "images": describe_image_dataset(table.dataset),
        "t": round(compute_two_sided_t_quantile(len(table.seeds) - 1), DIGITS),
        "classes": describe_classes(list(dataset.class_names), list_class_colours(10)),
        "people": OFFICES if table.dataset == TRAINED else CLIENTS,
        "groups": group_methods_by_kind(table.methods),
        "methods": methods,
        "words": describe_stored_results(table),
        "results": results,
        "labels": encode_labels_as_digits(dataset.y_train),
        "live": pack_browser_training_data(dataset, table),
    }


def pack_browser_training_data(dataset: Dataset, table: StoredTable) -> JsonObject:
    """Make what a run in the browser needs.

    train, test: images as `encode_pixel_levels_in_base64` has them
    answers: the classes of the test images
    rows: name and look of what the run measures
    flights: what becomes of the messages, without their bytes
    sums: the answers that are sums over clients, in words
    """
    titles = {name: table.title(name) for name in table.methods}
    titles["logits"] = choose_method_label("ensemble", {"rule": "logits"})
    trains_networks = table.dataset == TRAINED
    runs = RUNS if trains_networks else SUMS
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
        "flights": describe_flights(
            {name: make_ledger_of_one_client(legs) for name, legs in LEGS.items() if name in runs}
        ),
    }


def make_ledger_of_one_client(transfers: Iterable[tuple[Phase, Direction, IsRepeated]]) -> Ledger:
    """A ledger with these legs, for a single client: what they carry is known before a run, and not how many bytes."""
    ledger = Ledger(1)
    for phase, way, is_repeated in transfers:
        ledger.add(0, way, phase, 0, message_count=2 if is_repeated else 1)
    return ledger


def make_style_of_shown_method(method_name: str, method_title: str) -> MethodStyle:
    """Make a method of the stage: its name and look, `short` beside a bar, `phrase` at the beginning of a sentence."""
    row = {
        "name": method_name,
        **get_svg_method_style(method_title),
        "phrase": PHRASES.get(method_name, method_title),
    }
    row["short"] = SHORT_NAMES.get(method_name, row["short"])
    return row


def choose_highest_pixel_level(images: Images) -> Literal[16, 255]:
    """Into how many steps pixels from 0 to 1 are divided: 16, as in the digits, or 255."""
    steps = 16 * images
    return 16 if bool((steps == steps.round()).all()) else 255


def encode_pixel_levels_in_base64(images: Images, highest_level: int) -> str:
    """Encode a byte a pixel, 0 to `highest_level`, as base64."""
    steps = (highest_level * images.flatten()).round().to(torch.uint8)
    return base64.b64encode(steps.numpy().tobytes()).decode("ascii")


def encode_labels_as_digits(labels_below_10: Labels) -> str:
    """One figure a label; there are at most ten classes."""
    return "".join(map(str, labels_below_10.tolist()))


def describe_stored_results(table: StoredTable) -> str:
    """Say what is stored, at the end of the page."""
    about = table.about
    made = table.get_options_of_method(table.methods[0])
    runs = len(table.rows) * len(table.seeds)
    seeds = ", ".join(map(str, table.seeds))
    alphas = join_with_and([f"{a:g}" for a in table.alphas])
    return (
        f"Results of {len(table.methods)} methods on "
        f"{describe_image_dataset(table.dataset)} at α = {alphas}, "
        f"with {', '.join(map(str, table.clients))} clients and seeds {seeds}: {runs} runs in all, made on "
        f"{about['date']} by fedlab_nb {about['version']} with PyTorch {about['torch']} (preset "
        f"classroom: {made['recipe.epochs']} local epochs, batches of {made['recipe.batch_size']}, "
        f"{made['recipe.optimizer'].upper()} with learning rate {made['recipe.lr']})."
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
    shapes = {"outline": make_marker_path(marker, MARK), "dash": DASHES[line]}
    return {"title": method_title, "short": shorten_title(method_title), "colour": colour, **shapes}


def summarise_stored_runs(
    table: StoredTable, method: str, alpha: float, clients: int
) -> StoredRunsSummary:
    """Mean and half its band, 0–1, over the accuracies of the seeds; bytes of all clients, mean over seeds."""
    accuracies = table.accuracies(method, alpha, clients)
    accuracy = compute_band(accuracies)
    bytes_up = table.get_values_by_seed("bytes_up", method, alpha, clients)
    bytes_down = table.get_values_by_seed("bytes_down", method, alpha, clients)
    return {
        "mean": accuracy.mean,
        "half": round(accuracy.half_width, DIGITS),
        "accuracies": list(accuracies.values()),
        "up": fmean(bytes_up.values()),
        "down": fmean(bytes_down.values()),
    }
