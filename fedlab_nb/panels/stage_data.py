"""The data that a panel sends to its stage (`front/`): samples, who holds them, results, and answers on an image.

The functions take plain values and arrays, and return plain values and bytes. No widget is used here.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
import torch
from PIL import Image

from ..data import (
    DATASETS,
    Dataset,
    Federation,
    add_public_part,
    federate,
    find_dataset_title,
    load,
)
from ..data.schema import InputSchema
from ..errors import SAMPLES, UsageError
from ..front.flight import Flight, describe_flights
from ..front.vocabulary import (
    PHRASES,
    SHORT_NAMES,
    choose_words_for_clients_and_samples,
    choose_words_of_post_office_story,
    describe_classes_for_browser,
)
from ..methods import choose_method_label
from ..methods.base import GlobalModel
from ..plots.array_types import ByteImages, ClientIndexPerSample, FeatureRows, SampleLabels
from ..plots.identity import get_method_look, shorten_method_title
from ..plots.style import list_class_colours
from ..plots.vector import ThumbnailSheet
from ..studies.outcome import Outcome
from ..studies.statistics import compute_band
from ..tensor_types import ClassScores, Images, OneSample, Samples
from ..torch_switches import use_default_torch_switches
from ..training.calibration import SCORES
from ..value_types import Accuracy0To1, SettingsByName
from .arithmetic import (
    AnswerAsClientSum,
    explain_answer_as_client_sum,
    explain_mean_of_client_logits,
    has_sum_explanation,
)
from .controls import PREVIEWED
from .nearest_results import NearestStoredResults
from .record import MethodRun, RunRecord

# int [rows of ModelAnswers, N], the class that each predicts for each sample
LabelsByModel = np.ndarray

MOST_OWNERS = 2_000_000  # the most samples in all partitions that are sent ahead (4 MB)
THUMBNAIL = 16  # pixels, the side of images if there are too many to send them in full size
SQUARE = 4  # pixels, the side of the square of a sample that is no image
# The most bytes of all training images in full size; if there are more, thumbnails are sent.
MOST_BYTES = 4_000_000
MOST_TEST_IMAGES = 1000  # the number of test samples that are sent
NOBODY = 2**16 - 1  # the owner of a sample that no client holds
LIVE_SECONDS = 1.0  # a method that is forecast to take longer waits for Run
FREE = ("seed", "seeds", "device")  # settings that do not make a result one of another setting


# ------------------------------------------------------------------------------------------------ samples
class SideAndChannels(TypedDict):
    """Pixels of a side of a square image, and 1 channel or 3."""

    side: int
    channels: int


@dataclass(frozen=True)
class SamplesForBrowser:
    """Training or test samples as a window gets them.

    labels: `[N]`
    images: bytes `[N, side, side, channels]`; None if samples are no images
    """

    labels: SampleLabels
    images: ByteImages | None

    @property
    def image_shape(self) -> SideAndChannels:
        if self.images is None:
            return {"side": SQUARE, "channels": 1}
        return {"side": self.images.shape[1], "channels": self.images.shape[3]}

    def make_label_and_image_buffers(self) -> list[bytes]:
        """Make the buffers for the browser: the labels, then the images."""
        images = b"" if self.images is None else self.images.tobytes()
        return [self.labels.astype(np.uint16).tobytes(), images]


def make_train_and_test_samples_for_browser(
    dataset: Dataset,
) -> tuple[SamplesForBrowser, SamplesForBrowser]:
    """Make the training samples, as thumbnails if there are many, and the first test samples."""
    size = dataset.x_train[0].numel() * len(dataset.x_train)
    side = None if size <= MOST_BYTES else THUMBNAIL
    train = SamplesForBrowser(
        dataset.y_train.numpy(), render_square_images_as_bytes_or_none(dataset.x_train, side)
    )
    few = slice(0, MOST_TEST_IMAGES)
    test = SamplesForBrowser(
        dataset.y_test[few].numpy(),
        render_square_images_as_bytes_or_none(dataset.x_test[few], None),
    )
    return train, test


def render_square_images_as_bytes_or_none(
    samples: Samples, largest_side_pixels_or_none: int | None
) -> ByteImages | None:
    """Render square images as bytes `[N, side, side, 1 or 3]`; None if the samples are no square images.

    largest_side_pixels_or_none: the largest side; None: as it is
    """
    if samples.ndim != 4 or samples.shape[1] not in (1, 3) or samples.shape[2] != samples.shape[3]:
        return None
    if largest_side_pixels_or_none is not None and largest_side_pixels_or_none < samples.shape[2]:
        samples = torch.nn.functional.interpolate(
            samples, size=largest_side_pixels_or_none, mode="area"
        )
    pixels = (255 * samples.clamp(0, 1)).round().to(torch.uint8)
    return pixels.permute(0, 2, 3, 1).contiguous().numpy()


def make_thumbnail_sheet_or_none(images: Images, images_per_row: int = 20) -> ThumbnailSheet | None:
    """Make a PNG with all images `images [N, C, H, W]`, `images_per_row` of them in a row, for
    `plots.vector.attach_thumbnail_sheet`. Large images are made smaller. None if the samples are no images."""
    pixels = render_square_images_as_bytes_or_none(images, THUMBNAIL)
    if pixels is None:
        return None
    count, side = pixels.shape[:2]
    rows = -(-count // images_per_row)
    page = np.zeros((rows * side, images_per_row * side, pixels.shape[3]), dtype=np.uint8)
    for number, image in enumerate(pixels):
        top = number // images_per_row * side
        left = number % images_per_row * side
        page[top : top + side, left : left + side] = image
    out = io.BytesIO()
    Image.fromarray(page.squeeze()).save(out, "png")
    address = f"data:image/png;base64,{b64encode(out.getvalue()).decode()}"
    return {
        "image": address,
        "width": side,
        "height": side,
        "columns": images_per_row,
        "rows": rows,
    }


def find_client_of_each_training_sample(federation: Federation) -> ClientIndexPerSample:
    """Find each training sample's client, `[N]`; NOBODY if no client holds it."""
    owners = np.full(len(federation.dataset.y_train), NOBODY, dtype=np.uint16)
    for k, shard in enumerate(federation.shards):
        owners[np.asarray(shard)] = k
    return owners


@dataclass(frozen=True)
class PartitionsByAlpha:
    """Partitions of the same data for several α.

    alphas: A values of α
    owners: `[A, N]`, each training sample's client
    """

    alphas: tuple[float, ...] = ()
    owners: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.uint16))


def make_partitions_for_alphas(
    federation_arguments_without_alpha: Mapping[str, Any], alphas: Sequence[float]
) -> PartitionsByAlpha:
    """Partition a data set with each of `alphas`; if there are very many samples, only with the values PREVIEWED.

    An α with which the data cannot be partitioned is left out.

    federation_arguments_without_alpha: arguments of `data.federate` without `alpha`; `dataset` and `public` are names
    """
    options = dict(federation_arguments_without_alpha)
    dataset = add_public_part(load(options.pop("dataset")), options.pop("public"))
    samples = len(dataset.y_train)
    if len(alphas) * samples > MOST_OWNERS:
        alphas = PREVIEWED
    owners_by_alpha: dict[float, np.ndarray] = {}
    for alpha in alphas:
        try:
            federation = federate(dataset, alpha=alpha, **options)
        except UsageError:
            continue
        owners_by_alpha[alpha] = find_client_of_each_training_sample(federation)
    owners = np.array(list(owners_by_alpha.values())).reshape(-1, samples)
    return PartitionsByAlpha(tuple(owners_by_alpha), owners)


def format_row_cells_by_column(schema: InputSchema, feature_row: FeatureRows) -> dict[str, str]:
    """Format a row of a table, given as features, by columns: {"age": "63", "sex": "m"}; {} if it is no row of a table.

    A missing number is left out: its feature is 0, which would look like the mean.
    """
    if schema.kind != "table" or feature_row.ndim != 1:
        return {}
    cells = {}
    start = 0
    for column in schema.columns:
        column_features = feature_row[start : start + column.feature_count]
        start += column.feature_count
        if column.kind == "number" and column_features[0] != 0:
            value = float(column_features[0]) * column.scale + column.mean
            cells[column.name] = f"{round(value, 4):.6g}{column.unit}"
        elif column.kind == "category" and column_features.size and column_features.max() > 0:
            cells[column.name] = column.categories[int(column_features.argmax())]
    return cells


def rank_column_names_by_class_information(
    schema: InputSchema, features: FeatureRows, labels: SampleLabels
) -> list[str]:
    """List the names of a table's columns, the most informative about the class first; [] if it is no table.

    The measure is eta squared, the share of a column's variance that lies between the classes. For a category, both
    variances are summed over its features.

    features: `[N, D]`
    labels:   `[N]`
    """
    if schema.kind != "table" or features.ndim != 2:
        return []
    mean = features.mean(0)
    total = features.var(0)
    between = np.zeros(features.shape[1])
    for label in np.unique(labels):
        class_features = features[labels == label]
        class_share = len(class_features) / len(features)
        between += class_share * (class_features.mean(0) - mean) ** 2
    shares = {}
    start = 0
    for column in schema.columns:
        part = slice(start, start + column.feature_count)
        start += column.feature_count
        if column.feature_count and total[part].sum() > 0:
            shares[column.name] = between[part].sum() / total[part].sum()
    return sorted(shares, key=shares.__getitem__, reverse=True)


# -------------------------------------------------------------------------------------------- what is shown
class MethodDescription(TypedDict):
    """The names and the colour of a method on the stage."""

    name: str
    title: str
    short: str
    phrase: str
    colour: str


class DatasetEntry(TypedDict):
    """An entry of the menu of data sets."""

    name: str
    title: str


class DataDescription(TypedDict):
    """The part of the data message that does not change while sliders move."""

    digest: str
    about: str
    classes: list[dict[str, str]]
    people: dict[str, str]
    methods: list[MethodDescription]
    canDraw: bool


class MeanAndHalfWidth(TypedDict):
    """A band of accuracies, 0–1."""

    mean: float
    half: float


class StoredTableMessage(TypedDict):
    """Stored bands: results[method][number of `clients`][number of `alphas`]."""

    alphas: list[float]
    clients: list[int]
    seeds: int
    results: dict[str, list[list[MeanAndHalfWidth]]]


class ResultsDescription(TypedDict):
    """The newest result of each method: mean accuracies 0–1, half widths of the bands, numbers of seeds.

    older: the methods whose result is of another setting
    """

    accuracies: dict[str, float]
    bands: dict[str, float]
    seeds: dict[str, int]
    older: list[str]


def describe_dataset_and_methods_for_stage(
    federation: Federation, methods: Sequence[str], *, tells_story: bool = False
) -> DataDescription:
    """Describe what does not change while sliders move: names, words and methods.

    tells_story: whoever holds digits is a post office, not a client
    """
    choose_words = (
        choose_words_of_post_office_story if tells_story else choose_words_for_clients_and_samples
    )
    dataset = federation.dataset
    colours = [
        convert_to_hex_colour(colour) for colour in list_class_colours(max(dataset.classes, 2))
    ]
    names = [str(name) for name in dataset.class_names]
    return {
        "digest": str(dataset.digest),
        "about": dataset.about,
        "classes": describe_classes_for_browser(names, colours[: len(names)]),
        "people": choose_words(dataset.name, SAMPLES[len(dataset.input_shape)]),
        "methods": list_method_descriptions_for_stage(methods),
        "canDraw": dataset.name == "digits" and dataset.input_shape == (1, 8, 8),
    }


def convert_to_hex_colour(colour: str | Sequence[float]) -> str:
    """Convert a colour of `plots.style` to "#rrggbb"."""
    if isinstance(colour, str):
        return colour
    red, green, blue = (round(255 * share) for share in colour[:3])
    return f"#{red:02x}{green:02x}{blue:02x}"


def list_method_descriptions_for_stage(methods: Sequence[str]) -> list[MethodDescription]:
    """List the methods of the stage. Before the ensemble stands the mean of logits, which every run of it has, too."""
    descriptions = []
    for name in methods:
        if name == "ensemble":
            title = choose_method_label("ensemble", {"rule": "logits"})
            descriptions.append(describe_method_for_stage("logits", title))
        descriptions.append(describe_method_for_stage(name, choose_method_label(name)))
    return descriptions


def describe_method_for_stage(name: str, title: str) -> MethodDescription:
    """Describe a method by its names and its colour."""
    short = SHORT_NAMES.get(name, shorten_method_title(title))
    phrase = PHRASES.get(name, title)
    return {
        "name": name,
        "title": title,
        "short": short,
        "phrase": phrase,
        "colour": get_method_look(title).colour,
    }


def list_dataset_menu_entries(
    current_dataset: str, own_file_choice: str, file_name: str = ""
) -> list[DatasetEntry]:
    """List the entries of the menu of data sets; the last one is the choice of a file.

    A data set that is in no menu has an entry if it is the current one. The choice of a file has the text `file_name`
    if that is given and a file is the current data set.
    """
    entries: list[DatasetEntry] = []
    for name, info in DATASETS.items():
        title = info.title if info.offline else f"{info.title} (download)"
        entries.append({"name": name, "title": title})
    is_known = any(entry["name"] == current_dataset for entry in entries)
    if not is_known and current_dataset != own_file_choice:
        title = find_dataset_title(current_dataset)
        entries.append({"name": current_dataset, "title": title})
    is_file_shown = bool(file_name) and current_dataset == own_file_choice
    title = file_name if is_file_shown else "Choose a file …"
    return [*entries, {"name": own_file_choice, "title": title}]


def make_stored_table_message(nearest: NearestStoredResults | None) -> StoredTableMessage | None:
    """Make the stored bands for the stage, by method, then stored M, then stored α; None if no stored results fit."""
    if nearest is None or not nearest.methods:
        return None
    table = nearest.table
    results: dict[str, list[list[MeanAndHalfWidth]]] = {}
    for method in nearest.methods:
        rows: list[list[MeanAndHalfWidth]] = []
        for clients in table.client_counts:
            row: list[MeanAndHalfWidth] = []
            for alpha in table.alphas:
                found = compute_band(table.get_accuracies_by_seed(method, alpha, clients))
                row.append({"mean": found.mean, "half": found.half_width})
            rows.append(row)
        results[method] = rows
    return {
        "alphas": list(table.alphas),
        "clients": list(table.client_counts),
        "seeds": len(table.seeds),
        "results": results,
    }


# -------------------------------------------------------------------------------------------------- results
def has_same_settings_for_method(
    first_settings: SettingsByName, second_settings: SettingsByName, method: str
) -> bool:
    """Whether two settings are the same for `method`, apart from seeds and device."""

    def select_settings(settings: SettingsByName) -> dict[str, Any]:
        """Select the settings on which the method's result depends."""
        selected = {}
        for name, value in settings.items():
            is_of_other_method = "." in name and name.split(".")[0] != method
            if name not in FREE and not is_of_other_method:
                selected[name] = value
        return selected

    return select_settings(first_settings) == select_settings(second_settings)


def describe_newest_results(
    runs: RunRecord, methods: Sequence[str], settings: SettingsByName
) -> ResultsDescription:
    """Describe the newest result of each method.

    A result is `older` if it has another setting than `settings`, or no run with the seed of `settings`.
    """
    described: ResultsDescription = {"accuracies": {}, "bands": {}, "seeds": {}, "older": []}
    for method in methods:
        row = find_newest_run_with_results(runs, method)
        if row is None:
            continue
        shares = {seed: outcome.accuracy for seed, outcome in row.outcomes.items()}
        is_old = not has_same_settings_for_method(row.settings, settings, method)
        is_old = is_old or settings.get("seed") not in shares
        add_method_to_results_description(described, method, shares, is_old)
        if method == "ensemble":
            others = get_logit_mean_accuracies_by_seed(row)
            if others:
                add_method_to_results_description(described, "logits", others, is_old)
    return described


def collect_flights_by_method(
    runs: RunRecord, methods: Sequence[str], settings: SettingsByName
) -> dict[str, Flight]:
    """Collect what the methods have sent at these settings, with the settings' seed: {method: its `Flight`}."""
    ledgers = {}
    for method in methods:
        row = find_newest_run_with_results(runs, method)
        if row is None or not has_same_settings_for_method(row.settings, settings, method):
            continue
        outcome = row.outcomes.get(settings.get("seed"))
        if outcome is not None:
            ledgers[method] = outcome.ledger
    return describe_flights(ledgers)


def find_newest_run_with_results(runs: RunRecord, method: str) -> MethodRun | None:
    """Find the newest row of `method` that has a result; None if there is none."""
    found = [row for row in runs.rows if row.method == method and row.outcomes]
    return max(found, key=lambda row: row.run, default=None)


def get_logit_mean_accuracies_by_seed(row: MethodRun) -> dict[int, Accuracy0To1]:
    """Return the accuracies of the mean of logits in a row of the ensemble, by seed."""
    title = choose_method_label("ensemble", {"rule": "logits"})
    shares = {}
    for seed, outcome in row.outcomes.items():
        share = outcome.report.get_accuracies_under_other_rules().get(title)
        if share is not None:
            shares[seed] = share
    return shares


def add_method_to_results_description(
    results_description: ResultsDescription,
    method: str,
    accuracies_by_seed: Mapping[int, Accuracy0To1],
    has_other_setting: bool,
) -> None:
    """Add the result of a method, given as {seed: accuracy}, to `results_description`."""
    found = compute_band(accuracies_by_seed)
    results_description["accuracies"][method] = found.mean
    results_description["seeds"][method] = len(accuracies_by_seed)
    if found.is_shown:
        results_description["bands"][method] = found.half_width
    if has_other_setting:
        results_description["older"].append(method)


# -------------------------------------------------------------------------------------------------- answers
@dataclass(frozen=True)
class ModelAnswers:
    """The answers of models on samples.

    names:  of each row a method, or the number of a client
    shares: `[rows, N, C]`, 0–1 for each class
    """

    names: tuple[str | int, ...]
    shares: np.ndarray

    @property
    def predicted_labels(self) -> LabelsByModel:
        """The predicted classes, `[rows, N]`."""
        return self.shares.argmax(-1)

    def compute_accuracies_of_client_models(self, true_labels: SampleLabels) -> list[Accuracy0To1]:
        """Compute the accuracy of each client's own model on samples with these labels `[N]`: `[M]`."""
        right = self.predicted_labels[:, : len(true_labels)] == true_labels
        clients = [row for row, name in enumerate(self.names) if isinstance(name, int)]
        return [float(right[row].mean()) for row in clients]


class ModelsOfLastRun:
    """The models of the last run: each method's, and each client's own.

    A model that was not kept is made again, or left out if that takes longer than LIVE_SECONDS.

    outcomes: {method: its outcome of the run's first seed}
    """

    def __init__(self, outcomes: Mapping[str, Outcome]) -> None:
        self.models: dict[str, Any] = {}
        self.clients: Any = None
        for method, outcome in outcomes.items():
            if getattr(outcome, "_model", None) is None and not can_remake_model_within_a_second(
                outcome
            ):
                continue
            model = outcome.model
            self.models[method] = model
            if method in ("local", "ensemble") and self.clients is None:
                self.clients = model.clients

    @use_default_torch_switches()
    @torch.no_grad()
    def predict(self, samples: Samples) -> ModelAnswers:
        """Predict the prepared `samples [N, …]` by all models."""
        names: list[str | int] = []
        shares = []
        logits = None if self.clients is None else self.clients.logits(samples)
        for method, model in self.models.items():
            if method == "ensemble" and logits is not None:
                names.append("logits")
                shares.append(logits.mean(0).softmax(-1))
            names.append(method)
            shares.append(compute_class_scores_from_0_to_1(model, samples))
        if logits is not None:
            names += range(len(logits))
            shares += list(logits.softmax(-1))
        if not shares:
            return ModelAnswers((), np.zeros((0, len(samples), 0), dtype=np.float32))
        return ModelAnswers(
            tuple(names), torch.stack([one.float().cpu() for one in shares]).numpy()
        )

    def list_names_of_explainable_answers(self) -> list[str]:
        """List the names of the answers that are sums over clients."""
        names = []
        for method, model in self.models.items():
            if method == "ensemble" and self.clients is not None:
                names.append("logits")
            if has_sum_explanation(model):
                names.append(method)
        return names

    @use_default_torch_switches()
    @torch.no_grad()
    def explain_answer(self, answer_name: str, sample: OneSample) -> AnswerAsClientSum | None:
        """Explain an answer on one prepared `sample [1, …]` as a sum over clients; None if it is no sum."""
        if answer_name not in self.list_names_of_explainable_answers():
            return None
        if answer_name == "logits":
            return explain_mean_of_client_logits(self.clients, sample)
        return explain_answer_as_client_sum(self.models[answer_name], sample)


def can_remake_model_within_a_second(outcome: Outcome) -> bool:
    """Whether a model that was not kept can be made again while somebody waits."""
    return getattr(outcome, "seconds_total", LIVE_SECONDS) < LIVE_SECONDS and hasattr(
        outcome, "model"
    )


def compute_class_scores_from_0_to_1(model: GlobalModel, samples: Samples) -> ClassScores:
    """Compute a model's scores `[N, C]` between 0 and 1: probabilities if it has some, otherwise its clipped scores."""
    scores = model.logits(samples)
    if SCORES[model.score_kind]:
        return scores.softmax(-1)
    return scores.clamp(0, 1)
