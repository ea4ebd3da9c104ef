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
from typing import Any

import torch
from torch import Tensor

from ...comm import Ledger
from ...data import Dataset, describe, find_title
from ...data import load as load_data
from ...errors import RunError
from ...files import check_replaceable, write_file
from ...front import join_front, read_stylesheet
from ...front.flight import describe_flights
from ...front.vocabulary import CLIENTS, OFFICES, PHRASES, SHORT_NAMES, describe_classes
from ...methods import METHODS, group_methods, label_of
from ...plots.identity import look, shorten_title
from ...plots.style import class_colours
from ...plots.vector import draw_outline
from ...plots.words import join_words
from ...studies.statistics import band, compute_t_quantile
from ...studies.stored_results import StoredTable, list_stored_sets, load

HERE = Path(__file__).parent
DASHES = {"-": "none", "--": "7 4", "-.": "8 3 2 3", ":": "2 3.5"}
MARK = 4.6  # pixels from the middle of a marker to its end
DIGITS = 9  # of a band, so that no version of SciPy shows in the file
TRAINED = "digits"  # the data set whose networks are trained in the page
# What the page takes of front/.
FRONT = (
    "stage",
    "worker_transport",
    "state",
    "federation",
    "dom",
    "text",
    "one_image",
)
# What a run measures there, in this order; the ensemble's two plain means are two. The last ones need no network: they
# run on every data set.
SUMS = ("afl", "gauss")
RUNS = ("local", "fedavg", "logits", "ensemble", "fens", *SUMS)

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


def write_page(path: str | Path, *, force: bool = False) -> Path:
    """Write the page to `path` and return it. RunError where that is no place to write, UsageError where a file of
    somebody else's is there already, unless `force`."""
    check_replaceable([path], force=force)
    data = json.dumps(make_page_data(), ensure_ascii=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )

    def find_part(place: re.Match) -> str:
        """What stands where the template has this "@name@"."""
        if place[1] == "data":
            return data
        if place[1] == "front":
            return join_front(*FRONT)
        if place[1] == "stage.css":
            return read_stylesheet()
        return joined(HERE / place[1])

    template = (HERE / "template.html").read_text(encoding="utf-8")
    page = re.sub(r"@(data|front|\w+\.(?:css|js))@", find_part, template)
    try:
        return write_file(path, page, force=force)
    except OSError as error:
        raise RunError(
            f"The page cannot be written to {path}: {error.strerror}; choose another --out."
        ) from None


def joined(*files: Path) -> str:
    """The text of files that stand in one place: of modules without `import` and `export`."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return re.sub(r"^import .*\n|^export ", "", text, flags=re.MULTILINE)


def make_page_data() -> dict[str, Any]:
    """The page's numbers, {data set: its entry}, of all data sets that have a stored table."""
    return {name: make_dataset_entry(load(name)) for name in list_stored_sets()}


def make_dataset_entry(table: StoredTable) -> dict[str, Any]:
    """The numbers of one data set, by method, then stored M, then stored α; t: Student's quantile of a 95 % band over
    the seeds; labels: of the training samples, a figure each."""
    dataset = load_data(table.dataset)
    infos = [METHODS[name].info for name in table.methods]
    methods = []
    results = {}
    for info in infos:
        methods.append(vars(info) | describe_method_look(table.title(info.name)) | {"needs": ""})
        results[info.name] = [
            [make_result_entry(table, info.name, alpha, clients) for alpha in table.alphas]
            for clients in table.clients
        ]
    axes = {"alpha": table.alphas, "clients": table.clients, "seed": table.seeds}
    return {
        "about": {"date": table.about["date"], "settings": axes},
        "title": find_title(table.dataset),
        "images": describe_images(table.dataset),
        "t": round(compute_t_quantile(len(table.seeds) - 1), DIGITS),
        "classes": describe_classes(list(dataset.class_names), class_colours(10)),
        "people": OFFICES if table.dataset == TRAINED else CLIENTS,
        "groups": group_methods(table.methods),
        "methods": methods,
        "words": describe_stored_results(table),
        "results": results,
        "labels": encode_labels(dataset.y_train),
        "live": make_live_entry(dataset, table),
    }


def make_live_entry(dataset: Dataset, table: StoredTable) -> dict[str, Any]:
    """What a run in the browser needs.

    train, test: images as `pack_pixels` has them
    answers: the classes of the test images
    rows: name and look of what the run measures
    flights: what becomes of the messages, without their bytes
    """
    titles = {name: table.title(name) for name in table.methods}
    titles["logits"] = label_of("ensemble", {"rule": "logits"})
    trains_networks = table.dataset == TRAINED
    runs = RUNS if trains_networks else SUMS
    levels = find_levels(dataset.x_train)
    return {
        "trainsNetworks": trains_networks,
        "side": dataset.x_train.shape[-1],
        "levels": levels,
        "train": pack_pixels(dataset.x_train, levels),
        "test": pack_pixels(dataset.x_test, levels),
        "answers": encode_labels(dataset.y_test),
        "rows": [describe_row(name, titles[name]) for name in runs],
        "flights": describe_flights(
            {name: make_ledger(legs) for name, legs in LEGS.items() if name in runs}
        ),
    }


def make_ledger(legs: Iterable[tuple[str, str, bool]]) -> Ledger:
    """A ledger with these legs, for a single client: what they carry is known before a run, and not how many bytes."""
    ledger = Ledger(1)
    for phase, way, is_repeated in legs:
        ledger.add(0, way, phase, 0, messages=2 if is_repeated else 1)
    return ledger


def describe_row(name: str, title: str) -> dict[str, str]:
    """A method of the stage: its name and look, `short` beside a bar, `phrase` at the beginning of a sentence."""
    row = {"name": name, **describe_method_look(title), "phrase": PHRASES.get(name, title)}
    row["short"] = SHORT_NAMES.get(name, row["short"])
    return row


def find_levels(images: Tensor) -> int:
    """Into how many steps pixels from 0 to 1 are divided: 16, as in the digits, or 255."""
    steps = 16 * images
    return 16 if bool((steps == steps.round()).all()) else 255


def pack_pixels(images: Tensor, levels: int) -> str:
    """A byte a pixel, 0 to `levels`, as base64."""
    steps = (levels * images.flatten()).round().to(torch.uint8)
    return base64.b64encode(steps.numpy().tobytes()).decode("ascii")


def encode_labels(labels: Tensor) -> str:
    """One figure a label; there are at most ten classes."""
    return "".join(map(str, labels.tolist()))


def describe_stored_results(table: StoredTable) -> str:
    """What is stored, at the end of the page."""
    about = table.about
    made = table.options(table.methods[0])
    runs = len(table.rows) * len(table.seeds)
    seeds = ", ".join(map(str, table.seeds))
    alphas = join_words([f"{a:g}" for a in table.alphas])
    return (
        f"Results of {len(table.methods)} methods on {describe_images(table.dataset)} at α = {alphas}, "
        f"with {', '.join(map(str, table.clients))} clients and seeds {seeds}: {runs} runs in all, made on "
        f"{about['date']} by fedlab_nb {about['version']} with PyTorch {about['torch']} (preset "
        f"classroom: {made['recipe.epochs']} local epochs, batches of {made['recipe.batch_size']}, "
        f"{made['recipe.optimizer'].upper()} with learning rate {made['recipe.lr']})."
    )


def describe_images(dataset: str) -> str:
    """What a sentence says of the data set's images: 'the digits (8 × 8 pixels, 360 test images)'."""
    about = describe(dataset)
    _, height, width = about.input_shape
    kind = dataset.partition(":")[0]
    return f"the {kind} ({height} × {width} pixels, {about.n_test} test images)"


def describe_method_look(title: str) -> dict[str, str]:
    """A method's title, the short one, and its look as SVG has it."""
    colour, marker, line = look(title)
    shapes = {"outline": draw_outline(marker, MARK), "dash": DASHES[line]}
    return {"title": title, "short": shorten_title(title), "colour": colour, **shapes}


def make_result_entry(
    table: StoredTable, method: str, alpha: float, clients: int
) -> dict[str, Any]:
    """Mean and half its band, 0–1, over the accuracies of the seeds; bytes of all clients, mean over seeds."""
    accuracies = table.accuracies(method, alpha, clients)
    accuracy = band(accuracies)
    bytes_up = table.values("bytes_up", method, alpha, clients)
    bytes_down = table.values("bytes_down", method, alpha, clients)
    return {
        "mean": accuracy.mean,
        "half": round(accuracy.half_width, DIGITS),
        "accuracies": list(accuracies.values()),
        "up": fmean(bytes_up.values()),
        "down": fmean(bytes_down.values()),
    }
