"""The one message of a student: its form, and how it is checked.

A message is a JSON object with these fields:

    seat      number of the seat
    name      what the student typed
    counts    number of drawings of each class that the message was made from
    sums      class sums of these drawings, see below
    network   parameters of the network that was trained on these drawings
    test      drawings given to the common test set
    keep      whether the teacher may save the message

`sums`, `network` and `test` are little-endian arrays in base64, and "" if there is none. Every
length is known beforehand, every number must be finite and in bounds, and nothing is unpickled.

`sums` are those of the Gaussian heads (`methods/gauss.py`, kind "full"): for each class with
drawings, in order, the sum of their 64 pixels, then the upper triangle of Σ x xᵀ. AFL's two sums
follow from them (`convert_class_sums_to_ridge_sums`), so that one upload serves both methods. AFL's
local ridge is left out, since the server would only subtract it again. DigitPixels0To1 are sixteenths, so
these sums are exact in float32. They hide nothing: the drawings can be computed from them
(`recover.js`).
"""

import base64
import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypedDict

import numpy as np
import torch
from torch import Tensor

from ...data.edits import format_client_letters
from ...errors import UsageError
from ...methods import afl, gauss
from ...methods.parts.averages import split_vector_into_tensors
from ...models import Network, build, copy_model_state, load_state
from ...rng import make_torch_generator
from ...tensor_types import Labels

UncheckedJsonObject = dict[str, Any]  # a JSON object that has not been checked
MonotonicSeconds = float  # a time, read from a clock that never goes back
DigitPixels0To1 = tuple[float, ...]  # of one image, 64 numbers 0–1
FlatDigits0To1 = Tensor  # [N, 64], pixels 0–1
NumbersOfMessage = np.ndarray  # [n], of the type that the field has

CLASSES = 10
SIDE = 8  # pixels
PIXELS = SIDE * SIDE
TRIANGLE = PIXELS * (PIXELS + 1) // 2  # numbers in the upper triangle of Σ x xᵀ
ROW = PIXELS + TRIANGLE  # numbers in the sums of one class
FULL = 16  # the highest value of a pixel in `test`
PARAMETERS = 6570  # number of parameters of the class's network, 64-64-32-10
MAX_PARAMETER = 1000.0  # the largest absolute value of a network's parameter
# The largest message, in bytes: ten classes' sums, a network and the drawings are about 155,000.
LIMIT = 200_000
MAX_DRAWINGS = 60  # of one student
MAX_SEATS = 100_000
NAME = 24  # the most characters that a name has
MAX_MARKS = 3  # accents over or under one letter; Thai and Devanagari need two
JOINER = "\u200d"  # joins several emoji into one
FIELDS = {"seat", "name", "counts", "sums", "network", "test", "keep"}


class ClassMean(NamedTuple):
    """The mean `[64]` of a student's drawings of one class, and their number."""

    label: int
    drawing_count: int
    mean: list[float]


class LabelledDrawings(NamedTuple):
    """Drawings as `images [N, 64]`, 0–1, and their `labels [N]`."""

    images: FlatDigits0To1
    labels: Labels


class MessageDescription(TypedDict):
    """What the projector shows of a message.

    bytes:    size of the message
    drawings: number of drawings that it was made from
    counts:   the same by class
    given:    number of drawings that are given for testing
    network:  whether it has a network
    means:    the mean drawing of each class, which the sums show
    test:     the drawings given for testing, as label and pixels in sixteenths
    """

    seat: int
    name: str
    bytes: int
    drawings: int
    counts: list[int]
    given: int
    network: bool
    means: list[ClassMean]
    test: list[list[Any]]


@dataclass(frozen=True, eq=False)
class Message:
    """A message that has been checked.

    nickname: the name that the student typed, cleaned, or ""
    counts:   number of drawings of each class that the message was made from
    sums:     class sums of kind "full", or None
    network:  the student's network, or None
    x, y:     drawings for the test set `[n, 64]`, 0–1, and their labels `[n]`
    keep:     whether the teacher may save it
    text:     the message as JSON on one line
    size:     bytes that were received
    """

    seat: int
    nickname: str
    counts: tuple[int, ...]
    sums: gauss.ClassSums | None
    network: Network | None
    x: FlatDigits0To1
    y: Labels
    keep: bool
    text: str
    size: int

    @property
    def office_letters(self) -> str:
        """The letters of the seat, such as "K"; they are unique."""
        return format_client_letters(self.seat)

    @property
    def office_and_nickname(self) -> str:
        """The name in tables and files; the office's letters come first, so it is unique."""
        return f"{self.office_letters} {self.nickname}".strip()

    def list_class_means(self) -> list[ClassMean]:
        """List the mean of the drawings of each class in the sums."""
        if self.sums is None:
            return []
        class_means = []
        for c in self.sums.counts.nonzero()[:, 0].tolist():
            mean = [round(value, 3) for value in self.sums.means[c].tolist()]
            class_means.append(ClassMean(c, self.counts[c], mean))
        return class_means

    @cached_property
    def projector_description(self) -> MessageDescription:
        """What the projector shows of the message."""
        pixels = (FULL * self.x).round().int().tolist()
        return {
            "seat": self.seat,
            "name": self.nickname,
            "bytes": self.size,
            "drawings": sum(self.counts),
            "counts": list(self.counts),
            "given": len(self.y),
            "network": self.network is not None,
            "means": self.list_class_means(),
            "test": [[c, row] for c, row in zip(self.y.tolist(), pixels, strict=True)],
        }


def clean_nickname(typed_name: str) -> str:
    """Clean a name so that it can be shown beside others. Letters of any script and emoji stay.

    The name becomes one line of at most `NAME` characters. Removed are invisible characters, those
    that change the direction of text, and accents beyond `MAX_MARKS` on one letter.
    """
    kept: list[str] = []
    marks = 0  # accents in a row
    for character in unicodedata.normalize("NFC", typed_name[: 20 * NAME]):
        category = unicodedata.category(character)
        if category in ("Zs", "Zl", "Zp") or character in "\t\r\n":
            character = " "
        elif category[0] == "C" and character != JOINER:
            continue
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if marks <= MAX_MARKS:
            kept.append(character)
    return " ".join("".join(kept).split())[:NAME].strip(f" {JOINER}")


def build_untrained_class_network(seed: int = 0) -> Network:
    """Build the network that all phones of a class start from.

    It is the first network of a run with this seed, in the package and in `learn.js`.
    """
    return build(
        "mlp", (1, SIDE, SIDE), CLASSES, generator=make_torch_generator(seed, "init", "mlp")
    )


def parse_message(message_json: str | bytes) -> Message:
    """Parse and check a message. UsageError, in one sentence, if any part of it is invalid."""
    raise_usage_error_unless_valid(len(message_json) <= LIMIT, "its length")
    given = parse_json_object(message_json)
    raise_usage_error_unless_valid(given.keys() == FIELDS, "its form")
    seat = given["seat"]
    name = given["name"]
    counts = given["counts"]
    keep = given["keep"]
    raise_usage_error_unless_valid(type(seat) is int and 0 <= seat < MAX_SEATS, "seat")
    raise_usage_error_unless_valid(isinstance(name, str), "name")
    raise_usage_error_unless_valid(isinstance(keep, bool), "keep")
    raise_usage_error_unless_valid(isinstance(counts, list) and len(counts) == CLASSES, "counts")
    raise_usage_error_unless_valid(all(type(count) is int for count in counts), "counts")
    raise_usage_error_unless_valid(min(counts) >= 0 and 0 < sum(counts) <= MAX_DRAWINGS, "counts")
    sums = parse_class_sums(given, counts)
    model = parse_network_of_message(given)
    raise_usage_error_unless_valid(sums is not None or model is not None, "its size")
    x, y = parse_test_drawings(given)
    nickname = clean_nickname(name)
    line = json.dumps(given | {"name": nickname}, separators=(",", ":"))
    size = (
        len(message_json.encode(errors="replace"))
        if isinstance(message_json, str)
        else len(message_json)
    )
    return Message(seat, nickname, tuple(counts), sums, model, x, y, keep, line, size)


def parse_class_sums(
    message_fields: UncheckedJsonObject, drawings_by_class: list[int]
) -> gauss.ClassSums | None:
    """Parse the class sums of a message; None if it has none.

    drawings_by_class: number of drawings of each class
    """
    positive_counts = np.array([count for count in drawings_by_class if count])
    values = decode_base64_array(message_fields, "sums", "<f4", 0, max(positive_counts))
    if not len(values):
        return None
    raise_usage_error_unless_valid(len(values) == len(positive_counts) * ROW, "its size")
    rows = values.reshape(len(positive_counts), ROW).astype(np.float64)
    raise_usage_error_unless_valid(
        (rows <= positive_counts[:, None]).all(), "sums"
    )  # a pixel is 1 at most
    sums, second = torch.from_numpy(rows).split([PIXELS, TRIANGLE], 1)
    message = gauss.ClassSumsMessage(
        counts=torch.tensor(drawings_by_class), sums=sums, second=second
    )
    return gauss.unpack_class_sums(message, "full")


def parse_network_of_message(message_fields: UncheckedJsonObject) -> Network | None:
    """Parse the network of a message; None if it has none."""
    values = decode_base64_array(message_fields, "network", "<f4", -MAX_PARAMETER, MAX_PARAMETER)
    if not len(values):
        return None
    raise_usage_error_unless_valid(len(values) == PARAMETERS, "its size")
    model = build_untrained_class_network().eval()
    state = copy_model_state(model)
    vector = torch.from_numpy(values.astype(np.float32))
    load_state(model, split_vector_into_tensors(vector, state, list(state)))
    return model


def parse_test_drawings(message_fields: UncheckedJsonObject) -> LabelledDrawings:
    """Parse the drawings that a message gives for testing: images `[n, 64]` in 0–1, labels `[n]`."""
    values = decode_base64_array(message_fields, "test", "u1", 0, FULL)
    width = PIXELS + 1
    raise_usage_error_unless_valid(
        len(values) % width == 0 and len(values) <= MAX_DRAWINGS * width, "test"
    )
    rows = torch.from_numpy(values.reshape(-1, width).astype(np.int64))
    x, y = rows.split([PIXELS, 1], 1)
    raise_usage_error_unless_valid((y < CLASSES).all(), "test")
    return LabelledDrawings(x.float() / FULL, y[:, 0])


def parse_json_object(text: str | bytes) -> UncheckedJsonObject:
    """Parse a JSON object. UsageError if `text` is not one."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    raise_usage_error_unless_valid(isinstance(given, dict), "its form")
    return given


def raise_usage_error_unless_valid(is_valid: object, field_name: str) -> None:
    """Raise a UsageError that names this field of a message unless `is_valid`."""
    if not is_valid:
        raise UsageError(
            f"Message rejected: {field_name} is not as it must be. Reload the page and send again."
        )


def decode_base64_array(
    message_fields: UncheckedJsonObject, field_name: str, dtype: str, minimum: float, maximum: float
) -> NumbersOfMessage:
    """Decode the base64 array in a field of a message, with numbers of this `dtype`, as `[n]`.

    UsageError unless every number is from `minimum` to `maximum`.
    """
    try:
        values = np.frombuffer(base64.b64decode(message_fields[field_name], validate=True), dtype)
    except (ValueError, TypeError):
        values = np.array([np.nan])
    with np.errstate(invalid="ignore"):  # comparing with a NaN is False, as it should be
        is_within_bounds = (values >= minimum) & (values <= maximum)
    raise_usage_error_unless_valid(is_within_bounds.all(), field_name)
    return values


def encode_message(
    seat: int,
    nickname: str,
    images: FlatDigits0To1,
    labels: Labels,
    indices_given_for_testing: Sequence[int] = (),
    network: Network | None = None,
) -> str:
    """Encode a message as a phone does, as JSON; the teacher may save it.

    images, labels:            drawings `[n, 64]`, 0–1, and their labels `[n]`
    indices_given_for_testing: of the drawings that are given for testing; the sums are of all others
    network:                   the network trained on those others, or None
    """
    is_given = torch.zeros(len(labels), dtype=torch.bool)
    is_given[list(indices_given_for_testing)] = True
    sums = gauss.measure_class_sums(images[~is_given], labels[~is_given], CLASSES, "full")
    sent = gauss.pack_class_sums(sums, torch.float32)
    parameters = torch.empty(0)
    if network is not None:
        parameters = torch.cat([part.flatten() for part in copy_model_state(network).values()])
    arrays = {
        "sums": torch.cat([sent["sums"], sent["second"]], 1),
        "network": parameters,
        "test": torch.cat([(images[is_given] * FULL).round(), labels[is_given, None]], 1).byte(),
    }
    message = {"seat": seat, "name": nickname, "counts": sums.counts.int().tolist(), "keep": True}
    for field_name, values in arrays.items():
        message[field_name] = encode_tensor_in_base64(values)
    return json.dumps(message, separators=(",", ":"))


def encode_tensor_in_base64(tensor: Tensor) -> str:
    """Encode a tensor's bytes in base64, for JSON."""
    return base64.b64encode(tensor.numpy().tobytes()).decode()


def convert_class_sums_to_ridge_sums(class_sums: gauss.ClassSums) -> afl.RidgeSums:
    """Derive AFL's sums from class sums of the same samples. AFL appends a 1 to each sample's pixels.

    moments `[65, 65]`: Σ x xᵀ over all classes; row and column of the appended 1 are Σ x
    classes `[65, 10]`: Σ x of each class, and below it the number of samples
    """
    by_class = torch.cat([class_sums.sums.T, class_sums.counts[None]])
    total = by_class.sum(1, keepdim=True)
    moments = torch.cat([class_sums.second.sum(0), total[:-1].T])
    return afl.RidgeSums(torch.cat([moments, total], 1), by_class)
