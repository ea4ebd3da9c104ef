"""The one message of a student: its form, and what is checked before anything is made of it.

A message is JSON: `seat`, `name`, `counts` (drawings of each class that it was made from), `sums`, `network`, `test`
(the drawings for the common test set) and `keep` (the teacher may save it). Numbers are base64 of little-endian arrays,
and "" means nothing. Every length is known beforehand, every number is finite and in bounds, and nothing is unpickled.

`sums` are those of the Gaussian heads (`methods/gauss.py`, kind "full"): for each class with drawings, in order, the
sum of their 64 pixels, then the upper triangle of Σ x xᵀ. AFL's two sums are in them (`least_squares`), so that one
upload serves both. AFL's local ridge is left out: the server would only take it off again. Pixels are sixteenths, so
these sums are exact in float32.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..errors import UsageError, demand
from ..methods import afl, gauss
from ..methods.parts.averages import named
from ..models import Network, build, load_state, model_state
from ..rng import generator

CLASSES, SIDE = 10, 8
PIXELS = SIDE * SIDE
TRIANGLE = PIXELS * (PIXELS + 1) // 2
FULL = 16  # a pixel of a drawing for the test set, from 0 to FULL
PARAMETERS = 6570  # of the classroom's network, 64-64-32-10
LARGEST = 100.0  # a number of a network
LIMIT = 200_000  # bytes of a message; ten classes' sums, a network and the drawings are 153,000
MOST_DRAWINGS, MOST_SEATS, NAME = 60, 100_000, 24
FIELDS = {"seat", "name", "counts", "sums", "network", "test", "keep"}


@dataclass(frozen=True, eq=False)
class Message:
    """`sums`: of class statistics, kind "full", or None;   `network`: or None;   `x [n, 64]`, `y [n]`: drawings for the
    test set;   `text`: the message in its one form, JSON on one line."""

    seat: int
    name: str
    counts: tuple[int, ...]
    sums: gauss.ClassSums | None
    network: Network | None
    x: Tensor
    y: Tensor
    keep: bool
    text: str

    @property
    def called(self) -> str:
        """A name of its own, also where two students chose the same."""
        return f"{self.name or 'Student'} {self.seat}"


def network(seed: int = 0) -> Network:
    """The network that all phones of a class start from; the package's and `learn.js`'s first one of a run's seed."""
    return build("mlp", (1, SIDE, SIDE), CLASSES, generator=generator(seed, "init", "mlp"))


def read(text: str | bytes) -> Message:
    """The message in `text`; UsageError, in one sentence, where anything in it is not as it must be."""
    demand(len(text) <= LIMIT, f"The message has {len(text)} bytes, but {LIMIT} are the most; send it again.")
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(
            "This is no message of this class: it is not JSON; take the file as the phone saved it."
        ) from None
    whole = isinstance(given, dict) and given.keys() == FIELDS
    demand(whole, f"This is no message of this class: it must have {', '.join(sorted(FIELDS))}, and nothing else.")
    seat, counts = _whole("seat", given["seat"], MOST_SEATS), given["counts"]
    demand(isinstance(counts, list) and len(counts) == CLASSES, f"counts must be a list of {CLASSES} numbers.")
    counts = [_whole("A count", count, MOST_DRAWINGS) for count in counts]
    demand(0 < sum(counts) <= MOST_DRAWINGS, f"The drawings are {sum(counts)}, but must be 1 to {MOST_DRAWINGS}.")
    name = given["name"]
    demand(isinstance(name, str) and len(name) <= NAME and name.isprintable(), f"A name has at most {NAME} letters.")
    demand(isinstance(given["keep"], bool), "keep must be true or false.")
    held = [c for c in range(CLASSES) if counts[c]]
    rows = _numbers("sums", given["sums"], "<f4", len(held) * (PIXELS + TRIANGLE), 0, max(counts))
    values = _numbers("network", given["network"], "<f4", PARAMETERS, -LARGEST, LARGEST)
    drawings = _numbers("test", given["test"], "u1", None, 0, FULL).reshape(-1, PIXELS + 1)
    x, y = torch.from_numpy(drawings[:, :-1] / np.float32(FULL)), torch.from_numpy(drawings[:, -1].astype(np.int64))
    demand(len(y) <= MOST_DRAWINGS and (y < CLASSES).all(), f"test must be {MOST_DRAWINGS} drawings at most.")
    demand(len(rows) or len(values), "The message has neither sums nor a network; choose at least one.")
    sums = _sums(counts, rows.reshape(len(held), -1)) if len(rows) else None
    return Message(
        seat, " ".join(name.split()), tuple(counts), sums, _network(values) if len(values) else None,
        x, y, given["keep"], json.dumps(given, separators=(",", ":")),
    )  # fmt: skip


def write(
    seat: int,
    name: str,
    x: Tensor,
    y: Tensor,
    test: Sequence[int] = (),
    *,
    network: Network | None = None,
    sums: bool = True,
) -> str:
    """A message as a phone writes it: of drawings `x [n, 64]` in 0–1 with labels `y [n]`, those at the places `test`
    for the test set and all others in the sums. `network`: trained on those others."""
    given = torch.zeros(len(y), dtype=torch.bool)
    given[list(test)] = True
    own = gauss.class_sums(x[~given], y[~given], CLASSES, "full")
    sent = gauss.message(own, torch.float32)
    rows = torch.cat([sent["sums"], sent["second"]], 1) if sums else torch.empty(0)
    values = [part.flatten() for part in model_state(network).values()] if network else [torch.empty(0)]
    drawings = torch.cat([(x[given] * FULL).round(), y[given, None]], 1).byte()
    arrays = {"sums": rows.float(), "network": torch.cat(values).float(), "test": drawings}
    coded = {key: base64.b64encode(part.numpy().tobytes()).decode() for key, part in arrays.items()}
    about = {"seat": seat, "name": name, "counts": own.counts.int().tolist(), "keep": True}
    return json.dumps(about | coded, separators=(",", ":"))


def least_squares(own: gauss.ClassSums) -> afl.Sums:
    """AFL's sums, those of the same samples with a 1 after their pixels: Σ x xᵀ over all classes is that of each class
    added up, and the column of the 1 is Σ x."""
    total = own.sums.sum(0)
    corner = torch.cat([total, own.counts.sum()[None]])
    moments = torch.cat([torch.cat([own.second.sum(0), total[None]]), corner[:, None]], 1)
    return afl.Sums(moments, torch.cat([own.sums.T, own.counts[None]]))


def _whole(what: str, value: object, most: int) -> int:
    demand(type(value) is int and 0 <= value <= most, f"{what} must be a whole number from 0 to {most}.")
    return value


def _numbers(what: str, text: object, kind: str, length: int | None, low: float, high: float) -> np.ndarray:
    """The array in base64 `text`, of so many numbers or empty; None: of rows of a drawing and its label."""
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else b"?"
    except ValueError:
        data = b"?"
    step = (PIXELS + 1) if length is None else length * np.dtype(kind).itemsize
    fits = not data or (len(data) % step == 0 if length is None else len(data) == step)
    demand(fits, f"{what} does not have the length that it must have; send the message again.")
    values = np.frombuffer(data, kind)
    inside = np.isfinite(values).all() and (not len(values) or low <= values.min() and values.max() <= high)
    demand(inside, f"{what} has a number that is not finite, or not from {low:g} to {high:g}; nothing is taken.")
    return values


def _sums(counts: list[int], rows: np.ndarray) -> gauss.ClassSums:
    sums, second = torch.from_numpy(rows.astype(np.float64)).split([PIXELS, TRIANGLE], 1)
    own = gauss.received({"counts": torch.tensor(counts), "sums": sums, "second": second}, "full")
    fits = (own.sums <= own.counts[:, None]).all() and (own.second <= own.counts[:, None, None]).all()
    demand(fits, "sums are larger than so many drawings can make them; nothing is taken.")
    return own


def _network(values: np.ndarray) -> Network:
    made = network()
    state = model_state(made)
    load_state(made, named(torch.from_numpy(values.astype(np.float32)), state, list(state)))
    return made.eval()
