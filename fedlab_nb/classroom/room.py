"""The class: who has which digits to draw, what has arrived, what is made of it, and what of it is kept.

A seat is a number. Its student draws digits from a mix of classes of its own, q ~ Dirichlet(α), as in the package's
partition `client_dirichlet`; but the largest share is that of class (seat mod 10), so that ten phones have all classes.
A seat's key is a MAC of its number, so that nothing is remembered of a phone that has not sent.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data import load
from ..data.partition import dirichlet_draw
from ..errors import UsageError, demand, number, whole
from ..methods import METHODS, afl, gauss
from ..methods.ensemble import RuledEnsemble
from ..methods.parts.averages import averaged
from ..models import load_state
from ..rng import numpy_rng
from ..training import ClientModels
from ..training.evaluate import one_pass
from .messages import CLASSES, MOST_DRAWINGS, MOST_SEATS, PIXELS, SIDE, Message, least_squares, network, read

MOST = 300  # messages in a class
FEWEST = 10  # test drawings that are a test set
AFL, GAUSS = METHODS["afl"](), METHODS["gauss"]()  # with the values that the course has


class Room:
    """alpha: of the mixes;   drawings: how many each phone makes;   file: where messages are kept, or None: nowhere. A
    class whose file is there goes on as it was begun.

    UsageError for a value out of range, and for a file of something else; OSError where it cannot be written.
    """

    def __init__(self, alpha: Any, drawings: Any, seed: Any, file: Path | None = None) -> None:
        self.about = {
            "alpha": number("alpha", alpha, 0, open_low=True, hint="smaller is more skewed"),
            "drawings": whole("drawings", drawings, 5, MOST_DRAWINGS),
            "seed": whole("seed", seed),
            "token": secrets.token_hex(4),
            "secret": secrets.token_hex(16),
        }
        self.file, self.joined, self.version = file, 0, 0
        self.messages: dict[int, Message] = {}
        if file and file.exists():
            try:
                head, *lines = file.read_text("utf-8").split("\n")
                given = json.loads(head)
                demand(given.keys() == self.about.keys(), "of something else")
                self.about, self.messages = given, {message.seat: message for message in map(read, lines)}
            except (ValueError, AttributeError):
                raise UsageError(f"{file} is no file of a class; name another one with --keep FILE.") from None
            self.joined = max(self.messages, default=-1) + MOST  # some that joined have not sent
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        if self.file:
            fresh = self.file.with_name(f"{self.file.name}.new")
            fresh.touch(mode=0o600)  # for its owner alone
            lines = [json.dumps(self.about), *(m.text for m in self.messages.values())]
            fresh.write_text("\n".join(lines), "utf-8")
            fresh.replace(self.file)

    @property
    def kept(self) -> str:
        """What is kept of messages, in a sentence for everybody."""
        memory = "Messages are in the memory of the teacher's computer, and gone when the class ends"
        where = f"Messages are kept in {self.file.name} on the teacher's computer" if self.file else memory
        return f"{where}; the teacher can save those that may be saved."

    # ------------------------------------------------------------------------------------------- seats and messages
    def seat(self) -> dict[str, Any]:
        """The next free seat: its number, its key, and the digits that it is asked to draw."""
        demand(self.joined < MOST_SEATS, "The class has no free seat; ask the teacher to start it anew.")
        seat, self.joined = self.joined, self.joined + 1
        about = {"seed": self.about["seed"], "kept": self.kept}
        return about | {"seat": seat, "key": self.key(seat), "labels": self.wanted(seat)}

    def key(self, seat: int) -> str:
        return hmac.new(self.about["secret"].encode(), str(seat).encode(), hashlib.sha256).hexdigest()[:24]

    def wanted(self, seat: int) -> list[int]:
        """The digits that it is asked to draw."""
        rng, first = numpy_rng(self.about["seed"], "seat of a class", seat), seat % CLASSES
        shares = np.sort(dirichlet_draw(rng, self.about["alpha"], CLASSES))[::-1]
        classes = [first, *rng.permutation(np.delete(np.arange(CLASSES), first))]
        return rng.choice(classes, self.about["drawings"], p=shares).tolist()

    def accept(self, text: str | bytes, seat: int | None = None) -> Message:
        """Take a message, that of `seat` where it came by the network; the same one again changes nothing. UsageError
        where it cannot be taken."""
        message = read(text)
        demand(seat in (None, message.seat), "The message is that of another seat; open the address anew.")
        before = self.messages.get(message.seat, message)
        demand(before.text == message.text, f"Seat {message.seat} has sent already; one shot is one message.")
        demand(len(self.messages) < MOST, f"The class has {MOST} messages, and takes no more.")
        if before is message:
            self.messages[message.seat] = message
            self._changed()
        return message

    def forget(self, seat: int) -> None:
        """Take a message out, as if it had never been sent; also out of the file."""
        if self.messages.pop(seat, None):
            self._changed()

    # ------------------------------------------------------------------------------------------------ what it is worth
    def rows(self) -> list[dict[str, Any]]:
        """What the class is worth so far: of each way its title, how many students it is of, and its accuracy on the
        class's drawings (None: there are none) and on the package's test digits, 0–1."""
        digits, (x, y) = load("digits"), given_drawings(self.messages.values())
        truth, n, rows = torch.cat([y, digits.y_test]), len(y), []
        with one_pass():
            said_by = answers([*self.messages.values()], torch.cat([x, digits.x_test.flatten(1)]))
        for title, (of, said) in said_by.items():
            right = (said == truth).double()
            own = float(right[..., :n].mean()) if n else None
            rows.append({"title": title, "of": of, "own": own, "digits": float(right[..., n:].mean())})
        return rows

    def sent(self) -> list[dict[str, Any]]:
        """What has come from whom, in the order in which it came. `means`: what the sums show of each class: how many
        drawings, and their mean `[64]`. Who computes gets each drawing out of them (see `made`)."""
        return [
            {"seat": m.seat, "name": m.name, "bytes": len(m.text), "drawings": sum(m.counts), "given": len(m.y)}
            | {"network": m.network is not None, "means": m.means()}
            for m in self.messages.values()
        ]

    def arrays(self) -> dict[str, np.ndarray]:
        """The class as a data set with clients of its own: arrays of an `.npz` that every panel opens. UsageError where
        there is too little.

        Drawings stayed on the phones. A student's rows are made from the sums: as many of each class as were drawn,
        with the very same sums (`made`), but for numbers that are cut off at 0 and 1. Test images are the drawings that
        were given, or the package's test digits where they are fewer than 10. `messages`: what was sent, by those alone
        who allowed it.
        """
        allowed = [m for m in self.messages.values() if m.keep and m.sums]
        pairs = [(m, c) for m in allowed for c in np.flatnonzero(m.counts).tolist()]
        classes = [c for _, c in pairs]
        demand(len(set(classes)) > 1, "No two classes of those who let them be saved are here; nothing is saved.")
        rows = [made(m.sums, c, numpy_rng(self.about["seed"], "rows", m.seat, c)) for m, c in pairs]
        counts, digits, (x, y) = [len(own) for own in rows], load("digits"), given_drawings(allowed)
        x, y = (x, y) if len(y) >= FEWEST else (digits.x_test, digits.y_test)
        known = np.isin(y.numpy(), classes)
        return {
            "x_train": np.concatenate(rows).clip(0, 1).astype(np.float32).reshape(-1, SIDE, SIDE),
            "y_train": np.repeat(classes, counts),
            "client_train": np.repeat([m.name for m, _ in pairs], counts),
            "x_test": x.numpy().reshape(-1, SIDE, SIDE)[known],
            "y_test": y.numpy()[known],
            "messages": np.array([m.text for m in allowed]),
        }


def given_drawings(messages: Iterable[Message]) -> tuple[Tensor, Tensor]:
    """The test drawings in messages: `x [T, 64]`, `y [T]`."""
    own = [(torch.empty(0, PIXELS), torch.empty(0, dtype=torch.long)), *((m.x, m.y) for m in messages)]
    x, y = (torch.cat(column) for column in zip(*own, strict=True))
    return x, y


def answers(messages: Sequence[Message], x: Tensor) -> dict[str, tuple[int, Tensor]]:
    """By title: of how many students, and the class of each sample `x [N, 64]`, `[N]`; of local models `[M, N]`."""
    made: dict[str, tuple[int, Tensor]] = {}
    senders = [m for m in messages if m.network is not None]
    if senders:
        clients, count, images = ClientModels([m.network for m in senders]), len(senders), x.view(-1, 1, SIDE, SIDE)
        sizes = [sum(m.counts) for m in senders]
        made["Local only"] = count, clients.logits(images).argmax(-1)
        for title, rule in {"FedAvg": "mean", "FedAvg, median": "median"}.items():
            average = network()
            load_state(average, averaged(clients.states(), sizes, rule, 0))
            made[title] = count, ClientModels([average]).logits(images)[0].argmax(1)
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
    orthonormal and orthogonal to 1. Any such U will do; this one is drawn. So sums tell samples of any numbers but for a
    rotation of n - 1 dimensions. That hides no drawings: their pixels are whole sixteenths, and hardly a rotation leaves
    them so. Fifteen drawings of a digit are worked out in a moment, to the pixel (tests/classroom/test_class.py).
    """
    n, mean = int(sums.counts[c]), sums.means[c].numpy()
    values, axes = np.linalg.eigh(sums.second[c].numpy() - n * np.outer(mean, mean))
    rank = min(n - 1, len(mean))
    spread = axes[:, -rank:] * np.sqrt(values[-rank:].clip(0)) if rank else np.zeros((len(mean), 0))
    basis = np.linalg.qr(np.column_stack([np.ones(n), rng.standard_normal((n, rank))]))[0][:, 1:]
    return mean + basis @ spread.T
