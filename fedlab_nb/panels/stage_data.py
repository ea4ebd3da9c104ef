"""What a panel tells its stage (`front/`): the samples, who holds them, results, and what everybody says of an image.

Plain values and arrays in, plain values and bytes out: nothing here knows a widget.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from ..data import DATASETS, Dataset, Federation, add_public_part, federate, find_title, load
from ..data.schema import InputSchema
from ..errors import SAMPLES, UsageError
from ..front.flight import describe_flights
from ..front.vocabulary import PHRASES, SHORT_NAMES, describe_classes, describe_people
from ..methods import label_of
from ..plots.identity import look, shorten_title
from ..plots.style import class_colours
from ..studies.statistics import band
from ..torch_switches import use_default_switches
from ..training.calibration import SCORES
from .arithmetic import Sum, explain_answer, explain_mean_of_logits, is_sum
from .nearest_results import NearestResults
from .record import Row, Runs

PREVIEWED = (0.01, 0.05, 0.3, 1.5, 10.0)  # α of the small partitions at the slider
MOST_OWNERS = 2_000_000  # of all partitions that are sent ahead: 4 MB
THUMBNAIL = 16  # pixels of a side, where all images in full size would be too much to send
SQUARE = 4  # pixels of a side of a sample without a picture
MOST_BYTES = 4_000_000  # of all training images in full size
MOST_TEST_IMAGES = 1000  # that can be looked at
NOBODY = 2**16 - 1  # the owner of a sample that no client holds
LIVE_SECONDS = 1.0  # a method that is forecast to take longer waits for Run
FREE = ("seed", "seeds", "device")  # settings that do not make a result one of another setting


# ------------------------------------------------------------------------------------------------ samples
@dataclass(frozen=True)
class Part:
    """Training or test samples as a window gets them. labels: `[N]`; images: bytes `[N, side, side, channels]`, None
    where a sample has no picture."""

    labels: np.ndarray
    images: np.ndarray | None

    @property
    def shape(self) -> dict[str, int]:
        if self.images is None:
            return {"side": SQUARE, "channels": 1}
        return {"side": self.images.shape[1], "channels": self.images.shape[3]}

    def to_bytes(self) -> list[bytes]:
        images = b"" if self.images is None else self.images.tobytes()
        return [self.labels.astype(np.uint16).tobytes(), images]


def make_parts(dataset: Dataset) -> tuple[Part, Part]:
    """The training samples, as thumbnails where there are many, and the test samples that can be looked at."""
    size = dataset.x_train[0].numel() * len(dataset.x_train)
    side = None if size <= MOST_BYTES else THUMBNAIL
    train = Part(dataset.y_train.numpy(), make_images(dataset.x_train, side))
    few = slice(0, MOST_TEST_IMAGES)
    test = Part(dataset.y_test[few].numpy(), make_images(dataset.x_test[few], None))
    return train, test


def make_images(x: Tensor, side: int | None) -> np.ndarray | None:
    """Square images as bytes `[N, side, side, 1 or 3]`; `side` None: as they are. None for what is no image."""
    if x.ndim != 4 or x.shape[1] not in (1, 3) or x.shape[2] != x.shape[3]:
        return None
    if side is not None and side < x.shape[2]:
        x = torch.nn.functional.interpolate(x, size=side, mode="area")
    pixels = (255 * x.clamp(0, 1)).round().to(torch.uint8)
    return pixels.permute(0, 2, 3, 1).contiguous().numpy()


def make_sheet(x: Tensor, columns: int = 20) -> dict[str, Any] | None:
    """Images `x [N, C, H, W]` as one PNG, `columns` of them in a row, as `plots.vector.attach_thumbnails` takes it;
    None for what is no image. Large ones are made smaller."""
    pixels = make_images(x, THUMBNAIL)
    if pixels is None:
        return None
    count, side = pixels.shape[:2]
    rows = -(-count // columns)
    page = np.zeros((rows * side, columns * side, pixels.shape[3]), dtype=np.uint8)
    for number, image in enumerate(pixels):
        top = number // columns * side
        left = number % columns * side
        page[top : top + side, left : left + side] = image
    out = io.BytesIO()
    Image.fromarray(page.squeeze()).save(out, "png")
    address = f"data:image/png;base64,{b64encode(out.getvalue()).decode()}"
    return {"image": address, "width": side, "height": side, "columns": columns, "rows": rows}


def find_owners(federation: Federation) -> np.ndarray:
    """Each training sample's client, `[N]`; NOBODY where there is none."""
    owners = np.full(len(federation.dataset.y_train), NOBODY, dtype=np.uint16)
    for k, shard in enumerate(federation.shards):
        owners[np.asarray(shard)] = k
    return owners


@dataclass(frozen=True)
class Partitions:
    """The same data dealt out at several α. owners: `[A, N]`, each training sample's client."""

    alphas: tuple[float, ...] = ()
    owners: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint16))


def deal_partitions(about: Mapping[str, Any], alphas: Sequence[float]) -> Partitions:
    """Deal a data set out at each of `alphas`; of very many samples at those of the small pictures alone.

    about: the options of `data.federate` without `alpha`, `dataset` and `public` as names. An α at which the data
    cannot be dealt out so is left out.
    """
    options = dict(about)
    dataset = add_public_part(load(options.pop("dataset")), options.pop("public"))
    samples = len(dataset.y_train)
    if len(alphas) * samples > MOST_OWNERS:
        alphas = PREVIEWED
    dealt: dict[float, np.ndarray] = {}
    for alpha in alphas:
        try:
            federation = federate(dataset, alpha=alpha, **options)
        except UsageError:
            continue
        dealt[alpha] = find_owners(federation)
    return Partitions(tuple(dealt), np.array(list(dealt.values())).reshape(-1, samples))


def describe_table_row(schema: InputSchema, features: np.ndarray) -> dict[str, str]:
    """A sample of a table as its columns have it: {"age": "63", "sex": "m"}; empty for what is no table.

    A cell that is missing is left out: its number's feature is 0, which would read as the mean.
    """
    if schema.kind != "table" or features.ndim != 1:
        return {}
    cells = {}
    start = 0
    for column in schema.columns:
        own = features[start : start + column.width]
        start += column.width
        if column.kind == "number" and own[0] != 0:
            value = float(own[0]) * column.scale + column.mean
            cells[column.name] = f"{round(value, 4):.6g}{column.unit}"
        elif column.kind == "category" and own.size and own.max() > 0:
            cells[column.name] = column.categories[int(own.argmax())]
    return cells


def rank_columns(schema: InputSchema, x: np.ndarray, labels: np.ndarray) -> list[str]:
    """The names of a table's columns, those first that tell most about the class.

    x: `[N, D]`;   labels: `[N]`. The measure is eta squared, the share of a column's variance that lies between the
    classes, summed over the features of a category. Empty for what is no table.
    """
    if schema.kind != "table" or x.ndim != 2:
        return []
    mean = x.mean(0)
    total = x.var(0)
    between = np.zeros(x.shape[1])
    for label in np.unique(labels):
        own = x[labels == label]
        between += len(own) / len(x) * (own.mean(0) - mean) ** 2
    shares = {}
    start = 0
    for column in schema.columns:
        own = slice(start, start + column.width)
        start += column.width
        if column.width and total[own].sum() > 0:
            shares[column.name] = between[own].sum() / total[own].sum()
    return sorted(shares, key=shares.__getitem__, reverse=True)


# -------------------------------------------------------------------------------------------- what is shown
def describe_data(federation: Federation, methods: Sequence[str]) -> dict[str, Any]:
    """What does not change while sliders move: names, words, the cast."""
    dataset = federation.dataset
    colours = [to_hex(colour) for colour in class_colours(max(dataset.classes, 2))]
    names = [str(name) for name in dataset.class_names]
    return {
        "digest": str(dataset.digest),
        "about": dataset.about,
        "classes": describe_classes(names, colours[: len(names)]),
        "people": describe_people(dataset.name, SAMPLES[len(dataset.input_shape)]),
        "methods": list_cast(methods),
        "canDraw": dataset.name == "digits" and dataset.input_shape == (1, 8, 8),
    }


def to_hex(colour: Any) -> str:
    """A colour of `plots.style` as "#rrggbb"."""
    if isinstance(colour, str):
        return colour
    red, green, blue = (round(255 * share) for share in colour[:3])
    return f"#{red:02x}{green:02x}{blue:02x}"


def list_cast(methods: Sequence[str]) -> list[dict[str, str]]:
    """The rows of the stage: the methods, and before the ensemble the other plain mean, which every run of it has."""
    cast = []
    for name in methods:
        if name == "ensemble":
            cast.append(describe_method("logits", label_of("ensemble", {"rule": "logits"})))
        cast.append(describe_method(name, label_of(name)))
    return cast


def describe_method(name: str, title: str) -> dict[str, str]:
    short = SHORT_NAMES.get(name, shorten_title(title))
    phrase = PHRASES.get(name, title)
    return {
        "name": name,
        "title": title,
        "short": short,
        "phrase": phrase,
        "colour": look(title).colour,
    }


def list_datasets(current: str, own_file: str, file: str = "") -> list[dict[str, str]]:
    """The menu of data sets: an entry for one that was added, and at its end the choice of a file.

    Where a `file` is shown, its name stands in the place of that choice.
    """
    entries = []
    for name, info in DATASETS.items():
        title = info.title if info.offline else f"{info.title} (download)"
        entries.append({"name": name, "title": title})
    is_known = any(entry["name"] == current for entry in entries)
    if not is_known and current != own_file:
        entries.append({"name": current, "title": find_title(current)})
    title = file if file and current == own_file else "Choose a file …"
    return [*entries, {"name": own_file, "title": title}]


def make_table(nearest: NearestResults | None) -> dict[str, Any] | None:
    """The stored bands for the stage, by method, then stored M, then stored α; None where nothing stored fits."""
    if nearest is None or not nearest.methods:
        return None
    table = nearest.table
    results: dict[str, list[list[dict[str, float]]]] = {}
    for method in nearest.methods:
        rows = []
        for clients in table.clients:
            row = []
            for alpha in table.alphas:
                found = band(table.accuracies(method, alpha, clients))
                row.append({"mean": found.mean, "half": found.half_width})
            rows.append(row)
        results[method] = rows
    return {
        "alphas": list(table.alphas),
        "clients": list(table.clients),
        "seeds": len(table.seeds),
        "results": results,
    }


# -------------------------------------------------------------------------------------------------- results
def is_same_setting(one: Mapping[str, Any], other: Mapping[str, Any], method: str) -> bool:
    """Whether a result of `method` with the first settings is one of the second, on whatever seeds."""

    def read(settings: Mapping[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in settings.items() if name not in FREE}
        return {n: v for n, v in kept.items() if "." not in n or n.split(".")[0] == method}

    return read(one) == read(other)


def describe_results(
    runs: Runs, methods: Sequence[str], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The newest result of each method. `older`: those of another setting than `settings`, or of another seed where
    they have one alone."""
    described: dict[str, Any] = {"accuracies": {}, "bands": {}, "seeds": {}, "older": []}
    for method in methods:
        row = find_newest(runs, method)
        if row is None:
            continue
        shares = {seed: outcome.accuracy for seed, outcome in row.outcomes.items()}
        is_old = not is_same_setting(row.settings, settings, method)
        is_old = is_old or settings.get("seed") not in shares
        add_result(described, method, shares, is_old)
        if method == "ensemble":
            others = other_means(row)
            if others:
                add_result(described, "logits", others, is_old)
    return described


def collect_flights(
    runs: Runs, methods: Sequence[str], settings: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """What the methods have sent at these settings, by name (see `front.flight`): of the setting's own seed."""
    ledgers = {}
    for method in methods:
        row = find_newest(runs, method)
        if row is None or not is_same_setting(row.settings, settings, method):
            continue
        outcome = row.outcomes.get(settings.get("seed"))
        if outcome is not None:
            ledgers[method] = outcome.ledger
    return describe_flights(ledgers)


def find_newest(runs: Runs, method: str) -> Row | None:
    """The last row of `method` that has a result."""
    found = [row for row in runs.rows if row.method == method and row.outcomes]
    return max(found, key=lambda row: row.run, default=None)


def other_means(row: Row) -> dict[int, float]:
    """Accuracies of the mean of the logits in a row of the ensemble, by seed."""
    title = label_of("ensemble", {"rule": "logits"})
    shares = {}
    for seed, outcome in row.outcomes.items():
        share = outcome.report.others().get(title)
        if share is not None:
            shares[seed] = share
    return shares


def add_result(
    described: dict[str, Any], name: str, shares: Mapping[int, float], is_old: bool
) -> None:
    found = band(shares)
    described["accuracies"][name] = found.mean
    described["seeds"][name] = len(shares)
    if found.is_shown:
        described["bands"][name] = found.half_width
    if is_old:
        described["older"].append(name)


# -------------------------------------------------------------------------------------------------- answers
@dataclass(frozen=True)
class Answers:
    """What models say of samples. names: a method, or a client's number, for each row; shares: `[rows, N, C]`."""

    names: tuple[str | int, ...]
    shares: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        """The class that each says, `[rows, N]`."""
        return self.shares.argmax(-1)

    def client_accuracies(self, labels: np.ndarray) -> list[float]:
        """How much of samples with these `labels` [N] each client gets right by itself, `[M]`."""
        right = self.labels[:, : len(labels)] == labels
        clients = [row for row, name in enumerate(self.names) if isinstance(name, int)]
        return [float(right[row].mean()) for row in clients]


class Voices:
    """The models of the last run, as far as they are at hand: each method's, and each client's own.

    outcomes: {method: its outcome of the run's first seed}. A model that was not kept and takes longer than a moment
    to make again is left out.
    """

    def __init__(self, outcomes: Mapping[str, Any]) -> None:
        self.models: dict[str, Any] = {}
        self.clients: Any = None
        for method, outcome in outcomes.items():
            if getattr(outcome, "_model", None) is None and not is_quick(outcome):
                continue
            model = outcome.model
            self.models[method] = model
            if method in ("local", "ensemble") and self.clients is None:
                self.clients = model.clients

    @use_default_switches()
    @torch.no_grad()
    def ask(self, x: Tensor) -> Answers:
        """What all say of the prepared samples `x [N, …]`."""
        names: list[str | int] = []
        shares = []
        logits = None if self.clients is None else self.clients.logits(x)
        for method, model in self.models.items():
            if method == "ensemble" and logits is not None:
                names.append("logits")
                shares.append(logits.mean(0).softmax(-1))
            names.append(method)
            shares.append(find_shares(model, x))
        if logits is not None:
            names += range(len(logits))
            shares += list(logits.softmax(-1))
        if not shares:
            return Answers((), np.zeros((0, len(x), 0), dtype=np.float32))
        return Answers(tuple(names), torch.stack([one.float().cpu() for one in shares]).numpy())

    def list_sums(self) -> list[str]:
        """The names of the answers that are sums over clients."""
        names = []
        for method, model in self.models.items():
            if method == "ensemble" and self.clients is not None:
                names.append("logits")
            if is_sum(model):
                names.append(method)
        return names

    @use_default_switches()
    @torch.no_grad()
    def explain(self, name: str, x: Tensor) -> Sum | None:
        """The sum behind an answer to one prepared sample `x [1, …]`; None where it is no sum."""
        if name not in self.list_sums():
            return None
        if name == "logits":
            return explain_mean_of_logits(self.clients, x)
        return explain_answer(self.models[name], x)


def is_quick(outcome: Any) -> bool:
    """Whether a model that was not kept can be made again while somebody waits."""
    return getattr(outcome, "seconds_total", LIVE_SECONDS) < LIVE_SECONDS and hasattr(
        outcome, "model"
    )


def find_shares(model: Any, x: Tensor) -> Tensor:
    """A model's answers `[N, C]` between 0 and 1: probabilities where it has any, else its scores, cut off."""
    scores = model.logits(x)
    if SCORES[model.score_kind]:
        return scores.softmax(-1)
    return scores.clamp(0, 1)
