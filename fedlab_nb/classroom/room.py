"""The class: who has which digits to draw, what has arrived, what is made of it, and what of it is kept.

A seat is a number. What its student draws are the labels that the package's partition `client_dirichlet` gives to
client `seat`: everybody has the same number of drawings, and α says how alike the mixes of classes are. A seat's key is
a MAC of its number, so that nothing is remembered of a phone that has not sent.
"""

import hashlib
import hmac
import io
import json
import os
import secrets
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data import load
from ..data.partition import cut
from ..errors import UsageError, demand, number, whole
from ..methods import METHODS, afl, gauss
from ..methods.ensemble import RuledEnsemble
from ..methods.parts.averages import averaged
from ..models import load_state
from ..rng import numpy_rng
from ..training import ClientModels
from .messages import CLASSES, MOST_SEATS, PIXELS, SIDE, Message, least_squares, network, read

MOST = 300  # messages in a class
AFL, GAUSS = METHODS["afl"](), METHODS["gauss"]()  # with the values that the course has


class Room:
    """alpha, students, drawings, seed: of the partition;   file: where messages are kept, or None: nowhere.

    UsageError for a value out of range, and for a file of something else. `restored`: messages that were in the file.
    """

    def __init__(
        self, alpha: Any = 0.1, students: Any = 30, drawings: Any = 20, seed: Any = 0, file: Path | None = None
    ):
        self.alpha = number("alpha", alpha, 0, open_low=True, hint="smaller is more skewed")
        self.students = whole("students", students, 1, MOST)
        self.drawings = whole("drawings", drawings, 5, 60)
        self.seed = whole("seed", seed)
        self.file, self.joined, self.version = file, 0, 0
        self.token, self.secret = secrets.token_hex(4), secrets.token_hex(16)
        self.messages: dict[int, Message] = {}
        self.restored = self._restore() if file else 0

    # ------------------------------------------------------------------------------------------------------------ seats
    def seat(self) -> dict[str, Any]:
        """The next free seat: its number, its key, and the digits that it is asked to draw."""
        demand(self.joined < MOST_SEATS, "The class has no free seat; ask the teacher to start it anew.")
        seat, self.joined = self.joined, self.joined + 1
        return {
            "seat": seat, "key": self.key(seat), "labels": self.wanted(seat), "seed": self.seed, "kept": self.kept,
        }  # fmt: skip

    def key(self, seat: int) -> str:
        return hmac.new(self.secret.encode(), str(seat).encode(), hashlib.sha256).hexdigest()[:24]

    def wanted(self, seat: int) -> list[int]:
        """The digits that it is asked to draw, in an order of its own."""
        counts = wishes(self.alpha, self.students, self.drawings, self.seed, seat // self.students)[seat % self.students]
        return numpy_rng(self.seed, "order of drawings", seat).permutation(np.repeat(np.arange(CLASSES), counts)).tolist()

    # --------------------------------------------------------------------------------------------------------- messages
    def accept(self, text: str | bytes, seat: int | None = None) -> Message:
        """Take a message, that of `seat` where it came by the network. UsageError where it cannot be taken."""
        message = read(text)
        demand(seat in (None, message.seat), "The message is that of another seat; open the address anew.")
        demand(message.seat not in self.messages, f"Seat {message.seat} has sent already; one shot is one message.")
        demand(len(self.messages) < MOST, f"The class has {MOST} messages, and takes no more.")
        self.messages[message.seat] = message
        self.version += 1
        if self.file:
            self._write([message.text], "a")
        return message

    def forget(self, seat: int) -> None:
        """Take a message out, as if it had never been sent; also out of the file."""
        if self.messages.pop(seat, None):
            self.version += 1
            if self.file:
                whole_file = self.file.with_name(self.file.name + ".new")
                self._write([self._head(), *(m.text for m in self.messages.values())], "w", whole_file)
                os.replace(whole_file, self.file)

    def _head(self) -> str:
        own = ("alpha", "students", "drawings", "seed", "token", "secret")
        return json.dumps({"class": 1} | {name: getattr(self, name) for name in own})

    def _write(self, lines: Sequence[str], mode: str, file: Path | None = None) -> None:
        """Lines to the disk, where the owner alone may read them."""
        with open(
            file or self.file, mode, encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)
        ) as out:
            out.write("".join(f"{line}\n" for line in lines))
            out.flush()
            os.fsync(out.fileno())

    def _restore(self) -> int:
        """Go on where the file ends; a new file begins with what the class is."""
        if not self.file.exists():
            self._write([self._head()], "w")
            return 0
        head, *lines = self.file.read_text(encoding="utf-8").split("\n")
        try:
            given = json.loads(head)
            self.token, self.secret = given["token"], given["secret"]
            self.alpha, self.students, self.drawings, self.seed = (
                given[name] for name in ("alpha", "students", "drawings", "seed")
            )
        except (ValueError, TypeError, KeyError):
            raise UsageError(f"{self.file} is no file of a class; name another one with --keep FILE.") from None
        for line in filter(None, lines):
            try:
                message = read(line)
            except UsageError:  # the last line of a class that was killed while it wrote
                continue
            self.messages[message.seat] = message
        self.joined = max(self.messages, default=-1) + 1 + self.students  # phones that have not sent hold seats, too
        return len(self.messages)

    # ------------------------------------------------------------------------------------------------------- what it is
    @property
    def kept(self) -> str:
        """What is kept of messages, in a sentence for everybody."""
        memory = "Messages are in the memory of the teacher's computer, and gone when the class ends"
        where = f"Messages are kept in {self.file.name} on the teacher's computer" if self.file else memory
        return f"{where}; the teacher can save those that may be saved."

    @property
    def test(self) -> tuple[Tensor, Tensor]:
        """The class's own test drawings: `x [T, 64]`, `y [T]`."""
        own = list(self.messages.values())
        empty = torch.empty(0, PIXELS), torch.empty(0, dtype=torch.long)
        return torch.cat([empty[0], *(m.x for m in own)]), torch.cat([empty[1], *(m.y for m in own)])

    def rows(self) -> list[dict[str, Any]]:
        """What the class is worth so far: of each way its title, how many students it is of, and its accuracy on the
        class's drawings and on the package's 360 test digits, 0–1."""
        digits = load("digits")
        tests = self.test, (digits.x_test.flatten(1), digits.y_test)
        own, theirs = (answers(list(self.messages.values()), x) for x, _ in tests)

        def accuracy(said: Tensor, y: Tensor) -> float | None:
            return float((said == y).double().mean()) if len(y) else None

        return [
            {
                "title": title,
                "of": of,
                "own": accuracy(said, tests[0][1]),
                "digits": accuracy(theirs[title][1], tests[1][1]),
            }
            for title, (of, said) in own.items()
        ]

    def arrived(self) -> list[dict[str, Any]]:
        """Who has sent what, and how many bytes, in the order in which it came."""
        return [
            {"seat": m.seat, "name": m.called, "bytes": len(m.text), "counts": m.counts, "given": len(m.y),
             "sums": m.sums is not None, "network": m.network is not None}
            for m in self.messages.values()
        ]  # fmt: skip

    def means(self, seat: int) -> list[dict[str, Any]]:
        """What the sums of a student show of each class: the mean of its drawings; of one drawing, that drawing."""
        sums = self.messages[seat].sums if seat in self.messages else None
        if sums is None:
            return []
        held = sums.counts.nonzero()[:, 0].tolist()
        return [{"class": c, "count": int(sums.counts[c]), "mean": sums.means[c].tolist()} for c in held]

    def arrays(self) -> dict[str, np.ndarray]:
        """The class as a data set with clients of its own: arrays of an `.npz` that every panel opens. UsageError where
        there is too little.

        Drawings stayed on the phones. A student's rows are made from the sums: as many of each class as were drawn,
        with the very same sums (`made`), but for numbers that are cut off at 0 and 1. Test images are the drawings that
        were given, or the package's test digits where they are fewer than 10. `messages`: what was sent, by those alone
        who allowed it.
        """
        allowed = [m for m in self.messages.values() if m.keep and m.sums]
        rows, labels, owners = [], [], []
        for m in allowed:
            for c in np.flatnonzero(m.counts):
                own = made(m.sums, int(c), numpy_rng(self.seed, "rows of a class", m.seat, int(c)))
                rows.append(own)
                labels += [c] * len(own)
                owners += [m.called] * len(own)
        demand(
            len(set(labels)) > 1, "No two classes have been sent by students who let them be saved; nothing is saved."
        )
        x = torch.cat([m.x for m in allowed if len(m.y)] or [torch.empty(0, PIXELS)]).numpy()
        y = torch.cat([m.y for m in allowed]).numpy()
        known = np.isin(y, labels)
        x, y = x[known], y[known]
        if len(y) < 10:
            digits = load("digits")
            known = np.isin(digits.y_test.numpy(), labels)
            x, y = digits.x_test.flatten(1).numpy()[known], digits.y_test.numpy()[known]
        train = np.concatenate(rows).astype(np.float32)
        images = {"x_train": train.clip(0, 1), "x_test": x}
        return {name: part.reshape(-1, SIDE, SIDE) for name, part in images.items()} | {
            "y_train": np.array(labels), "y_test": y, "client_train": np.array(owners),
            "messages": np.array([m.text for m in allowed]),
        }  # fmt: skip

    def npz(self) -> bytes:
        """`arrays` as the bytes of a file."""
        out = io.BytesIO()
        np.savez_compressed(out, **self.arrays())
        return out.getvalue()


@lru_cache(maxsize=64)
def wishes(alpha: float, students: int, drawings: int, seed: int, block: int) -> np.ndarray:
    """Drawings of each class `[students, C]`, `drawings` in every row and the classes equally often, of one block of
    seats."""
    labels = np.arange(students * drawings) % CLASSES
    shared = cut(
        labels, CLASSES, students, numpy_rng(seed, "seats of a class", block),
        partition="client_dirichlet", alpha=alpha, minimum=1,
    )  # fmt: skip
    return np.stack([np.bincount(labels[shard], minlength=CLASSES) for shard in shared.shards])


def answers(messages: Sequence[Message], x: Tensor) -> dict[str, tuple[int, Tensor]]:
    """By title: of how many students, and the class of each sample `x [N, 64]`, `[N]`; of local models `[M, N]`."""
    made: dict[str, tuple[int, Tensor]] = {}
    senders = [m for m in messages if m.network is not None]
    if senders:
        clients, count, images = ClientModels([m.network for m in senders]), len(senders), x.view(-1, 1, SIDE, SIDE)
        sizes, start = [sum(m.counts) for m in senders], network()
        made["Local only"] = count, clients.logits(images).argmax(-1)
        for title, rule in {"FedAvg": "mean", "FedAvg, median": "median"}.items():
            load_state(start, averaged(clients.states(), sizes, rule, 0))
            made[title] = count, ClientModels([start]).logits(images)[0].argmax(1)
        for title, rule in {"Ensemble": "probabilities", "Ensemble, median": "median"}.items():
            ensemble = RuledEnsemble(clients, rule, cut=(count - 1) // 2)
            made[title] = count, ensemble.logits(images).argmax(1)
    sums = [m.sums for m in messages if m.sums is not None]
    if sums:
        total = sum(sums[1:], sums[0])
        weights = afl.head(least_squares(total), len(sums), 0.0, AFL.rho)
        made["AFL"] = len(sums), afl.scores(x.double(), weights).argmax(1)
        made["Gaussian heads"] = len(sums), gauss.scores(total, GAUSS.head, GAUSS.shrinkage)(x).argmax(1)
    return made


def made(sums: gauss.ClassSums, c: int, rng: np.random.Generator) -> np.ndarray:
    """Rows `[n, d]` whose sum and Σ x xᵀ are those of class c, which has n samples.

    X = 1 μᵀ + U diag(√λ) Vᵀ, where V diag(λ) Vᵀ = Σ x xᵀ - n μ μᵀ has rank n - 1 at most, and the columns of U are
    orthonormal and orthogonal to 1. Any such U will do; this one is drawn. So sums tell the samples but for a rotation
    of n - 1 dimensions: of one sample all, of two which two.
    """
    n, mean = int(sums.counts[c]), sums.means[c].numpy()
    values, axes = np.linalg.eigh(sums.second[c].numpy() - n * np.outer(mean, mean))
    rank = min(n - 1, len(mean))
    spread = axes[:, -rank:] * np.sqrt(values[-rank:].clip(0)) if rank else np.zeros((len(mean), 0))
    basis = np.linalg.qr(np.column_stack([np.ones(n), rng.standard_normal((n, rank))]))[0][:, 1:]
    return mean + basis @ spread.T
