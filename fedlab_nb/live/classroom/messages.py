"""The one message of a student: its form, and what is checked before anything is made of it.

A message is JSON: `seat`, `name`, `counts` (drawings of each class that it was made from), `sums`,
`network`, `test` (the drawings for the common test set) and `keep` (the teacher may save it).
Numbers are base64 of little-endian arrays, and "" means nothing. Every length is known beforehand,
every number is finite and in bounds, and nothing is unpickled.

`sums` are those of the Gaussian heads (`methods/gauss.py`, kind "full"): for each class with
drawings, in order, the sum of their 64 pixels, then the upper triangle of Σ x xᵀ. AFL's two sums
are in them (`least_squares`), so that one upload serves both. AFL's local ridge is left out: the
server would only take it off again. Pixels are sixteenths, so these sums are exact in float32. They
hide nothing: the drawings can be worked out from them (`recover.js`).
"""

import base64
import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...data.edits import format_letters
from ...errors import UsageError
from ...methods import afl, gauss
from ...methods.parts.averages import split_vector
from ...models import Network, build, load_state, model_state
from ...rng import generator

CLASSES, SIDE = 10, 8
PIXELS = SIDE * SIDE
TRIANGLE = PIXELS * (PIXELS + 1) // 2
ROW = PIXELS + TRIANGLE  # numbers of a class's sums
FULL = 16  # a pixel of a drawing for the test set, from 0 to FULL
PARAMETERS = 6570  # of the classroom's network, 64-64-32-10
LARGEST = 1000.0  # a number of a network
LIMIT = (
    200_000  # bytes of a message; ten classes' sums, a network and the drawings are about 155,000
)
MOST_DRAWINGS, MOST_SEATS = 60, 100_000
NAME = 24  # characters of a name
MOST_MARKS = 3  # accents over or under one letter; Thai and Devanagari need two
JOINER = "\u200d"  # joins emoji to one
FIELDS = {"seat", "name", "counts", "sums", "network", "test", "keep"}


@dataclass(frozen=True, eq=False)
class Message:
    """nickname: what the student typed, cleaned, or "";   sums: class statistics, kind "full", or
    None;   network: or None;   x `[n, 64]`, y `[n]`: drawings for the test set;   text: the message
    as JSON on one line;   size: bytes as they came."""

    seat: int
    nickname: str
    counts: tuple[int, ...]
    sums: gauss.ClassSums | None
    network: Network | None
    x: Tensor
    y: Tensor
    keep: bool
    text: str
    size: int

    @property
    def office(self) -> str:
        """The letters of the seat, such as "K": everybody has others."""
        return format_letters(self.seat)

    @property
    def name(self) -> str:
        """For tables and files: the office's letters first, so that no two are alike."""
        return f"{self.office} {self.nickname}".strip()

    def means(self) -> list[tuple[int, int, list[float]]]:
        """Of each class in the sums: its number, how many drawings, and their mean `[64]`."""
        if self.sums is None:
            return []
        found = []
        for c in self.sums.counts.nonzero()[:, 0].tolist():
            mean = [round(value, 3) for value in self.sums.means[c].tolist()]
            found.append((c, self.counts[c], mean))
        return found

    @cached_property
    def description(self) -> dict[str, Any]:
        """What the projector shows of it. `means`: what the sums show of each class; who computes
        gets each drawing out of them (`recover.js`). `test`: the drawings that were given, as label
        and pixels in sixteenths."""
        pixels = (FULL * self.x).round().int().tolist()
        return {
            "seat": self.seat,
            "name": self.nickname,
            "bytes": self.size,
            "drawings": sum(self.counts),
            "counts": list(self.counts),
            "given": len(self.y),
            "network": self.network is not None,
            "means": self.means(),
            "test": [[c, row] for c, row in zip(self.y.tolist(), pixels, strict=True)],
        }


def clean_name(name: str) -> str:
    """A name that can be shown beside others: one line, `NAME` characters at most, nothing that is
    invisible or turns the direction of other people's text, no towers of accents. Any script and
    emoji stay."""
    kept: list[str] = []
    marks = 0  # accents in a row
    for character in unicodedata.normalize("NFC", name[: 20 * NAME]):
        category = unicodedata.category(character)
        if category in ("Zs", "Zl", "Zp") or character in "\t\r\n":
            character = " "
        elif category[0] == "C" and character != JOINER:
            continue
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if marks <= MOST_MARKS:
            kept.append(character)
    return " ".join("".join(kept).split())[:NAME].strip(f" {JOINER}")


def build_network(seed: int = 0) -> Network:
    """The network that all phones of a class start from; the package's and `learn.js`'s first one
    of a run's seed."""
    return build("mlp", (1, SIDE, SIDE), CLASSES, generator=generator(seed, "init", "mlp"))


def read(text: str | bytes) -> Message:
    """The message in `text`; UsageError, in one sentence, where anything in it is not as it must
    be."""
    require(len(text) <= LIMIT, "its length")
    given = parse_object(text)
    require(given.keys() == FIELDS, "its form")
    seat, name, counts, keep = (given[key] for key in ("seat", "name", "counts", "keep"))
    require(type(seat) is int and 0 <= seat < MOST_SEATS, "seat")
    require(isinstance(name, str), "name")
    require(isinstance(keep, bool), "keep")
    require(isinstance(counts, list) and len(counts) == CLASSES, "counts")
    require(all(type(count) is int for count in counts), "counts")
    require(min(counts) >= 0 and 0 < sum(counts) <= MOST_DRAWINGS, "counts")
    sums = read_sums(given, counts)
    model = read_network(given)
    require(sums is not None or model is not None, "its size")
    x, y = read_test(given)
    nickname = clean_name(name)
    line = json.dumps(given | {"name": nickname}, separators=(",", ":"))
    size = len(text.encode(errors="replace")) if isinstance(text, str) else len(text)
    return Message(seat, nickname, tuple(counts), sums, model, x, y, keep, line, size)


def read_sums(given: dict[str, Any], counts: list[int]) -> gauss.ClassSums | None:
    """The class sums of a message whose classes have `counts` drawings; None where it has none."""
    held = np.array([count for count in counts if count])
    values = decode_array(given, "sums", "<f4", 0, max(held))
    if not len(values):
        return None
    require(len(values) == len(held) * ROW, "its size")
    rows = values.reshape(len(held), ROW).astype(np.float64)
    require((rows <= held[:, None]).all(), "sums")  # a pixel is 1 at most
    sums, second = torch.from_numpy(rows).split([PIXELS, TRIANGLE], 1)
    parts = {"counts": torch.tensor(counts), "sums": sums, "second": second}
    return gauss.read_message(parts, "full")


def read_network(given: dict[str, Any]) -> Network | None:
    """The network of a message; None where it has none."""
    values = decode_array(given, "network", "<f4", -LARGEST, LARGEST)
    if not len(values):
        return None
    require(len(values) == PARAMETERS, "its size")
    model = build_network().eval()
    state = model_state(model)
    vector = torch.from_numpy(values.astype(np.float32))
    load_state(model, split_vector(vector, state, list(state)))
    return model


def read_test(given: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The drawings of a message for the test set: x `[n, 64]` in 0-1 and y `[n]`."""
    values = decode_array(given, "test", "u1", 0, FULL)
    width = PIXELS + 1
    require(len(values) % width == 0 and len(values) <= MOST_DRAWINGS * width, "test")
    rows = torch.from_numpy(values.reshape(-1, width).astype(np.int64))
    x, y = rows.split([PIXELS, 1], 1)
    require((y < CLASSES).all(), "test")
    return x.float() / FULL, y[:, 0]


def parse_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object in `text`."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    require(isinstance(given, dict), "its form")
    return given


def require(holds: object, part: str) -> None:
    """UsageError where a part of a message is not as it must be."""
    if not holds:
        raise UsageError(
            f"Message rejected: {part} is not as it must be. Reload the page and send again."
        )


def decode_array(given: dict, part: str, kind: str, low: float, high: float) -> np.ndarray:
    """The array in base64, with every number finite and in bounds."""
    try:
        values = np.frombuffer(base64.b64decode(given[part], validate=True), kind)
    except (ValueError, TypeError):
        values = np.array([np.nan])
    with np.errstate(invalid="ignore"):  # a NaN of any kind is in no range
        is_within = (values >= low) & (values <= high)
    require(is_within.all(), part)
    return values


def write(
    seat: int,
    name: str,
    x: Tensor,
    y: Tensor,
    test: Sequence[int] = (),
    model: Network | None = None,
) -> str:
    """A message as a phone writes it: of drawings `x [n, 64]` in 0–1 with labels `y [n]`, those at
    the places `test` for the test set and all others in the sums. `model`: trained on those others,
    or None. It may be saved."""
    is_given = torch.zeros(len(y), dtype=torch.bool)
    is_given[list(test)] = True
    sums = gauss.measure_class_sums(x[~is_given], y[~is_given], CLASSES, "full")
    sent = gauss.make_message(sums, torch.float32)
    parameters = torch.empty(0)
    if model is not None:
        parameters = torch.cat([part.flatten() for part in model_state(model).values()])
    arrays = {
        "sums": torch.cat([sent["sums"], sent["second"]], 1),
        "network": parameters,
        "test": torch.cat([(x[is_given] * FULL).round(), y[is_given, None]], 1).byte(),
    }
    message = {"seat": seat, "name": name, "counts": sums.counts.int().tolist(), "keep": True}
    for part, values in arrays.items():
        message[part] = encode_array(values)
    return json.dumps(message, separators=(",", ":"))


def encode_array(values: Tensor) -> str:
    """An array as base64, for JSON."""
    return base64.b64encode(values.numpy().tobytes()).decode()


def derive_afl_sums(sums: gauss.ClassSums) -> afl.Sums:
    """AFL's sums of the same samples with a 1 after their pixels, from class sums: Σ x xᵀ over all
    classes is that of each class added up, and the column of the 1 is Σ x."""
    by_class = torch.cat([sums.sums.T, sums.counts[None]])
    total = by_class.sum(1, keepdim=True)
    moments = torch.cat([sums.second.sum(0), total[:-1].T])
    return afl.Sums(torch.cat([moments, total], 1), by_class)
