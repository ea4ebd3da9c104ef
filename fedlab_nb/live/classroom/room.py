"""The class: who has which digits to draw, what has arrived, what is made of it, and what of it is kept.

A seat is a number. Its student draws digits from a mix of classes of its own, q ~ Dirichlet(α), as in the package's
partition `client_dirichlet`; but the largest share is that of class (seat mod 10), so that ten phones have all classes.
A seat's key is a MAC of its number, so that nothing is remembered of a phone that has not sent.
"""

import hashlib
import hmac
import json
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...comm.codec import Quantised, dequantise_state, quantise_state
from ...data import load
from ...data.partition import dirichlet_draw
from ...errors import UsageError, demand, number, whole
from ...files import open_replacement
from ...methods import METHODS, afl, gauss
from ...methods.ensemble import RuledEnsemble
from ...methods.parts.averages import average_states, initial_state, mean_change, server_step
from ...models import load_state
from ...rng import numpy_rng
from ...training import ClientModels
from ...training.evaluate import one_pass
from .messages import (
    CLASSES,
    MOST_DRAWINGS,
    MOST_SEATS,
    PIXELS,
    SIDE,
    Message,
    coded,
    least_squares,
    must,
    network,
    numbers,
    opened,
    read,
)

MOST = 300  # messages in a class
FEWEST = 10  # test drawings that are a test set
AFL, GAUSS, FENS = (
    METHODS[name]() for name in ("afl", "gauss", "fens")
)  # with the values that the course has
PATIENCE = 3.0  # seconds that a round waits for phones; whoever is later is left out of it
STEEPEST = (
    1e12  # a weight that comes back; a joker's network has logits, and so slopes, of millions
)
AGAIN = 5  # times that a phone gets the networks, which are large


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
        self.rounds: Rounds | None = None
        if file and file.exists():
            try:
                head, *lines = file.read_text("utf-8").split("\n")
                given = json.loads(head)
                demand(given.keys() == self.about.keys(), "of something else")
                self.about, self.messages = (
                    given,
                    {message.seat: message for message in map(read, lines)},
                )
            except (ValueError, AttributeError):
                raise UsageError(
                    f"{file} is no file of a class; name another one with --keep FILE."
                ) from None
            self.joined = max(self.messages, default=-1) + MOST  # some that joined have not sent
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        if self.file:
            lines = [json.dumps(self.about), *(m.text for m in self.messages.values())]
            with open_replacement(self.file, force=True) as part:  # this class's own: see above
                part.touch(mode=0o600)  # for its owner alone
                part.write_text("\n".join(lines), "utf-8")

    @property
    def kept(self) -> str:
        """What is kept of messages, in a sentence for everybody."""
        memory = (
            "Messages are in the memory of the teacher's computer, and gone when the class ends"
        )
        where = (
            f"Messages are kept in {self.file.name} on the teacher's computer"
            if self.file
            else memory
        )
        return f"{where}; the teacher can save those that may be saved."

    # ------------------------------------------------------------------------------------------- seats and messages
    def seat(self) -> dict[str, Any]:
        """The next free seat: its number, its key, and the digits that it is asked to draw."""
        demand(
            self.joined < MOST_SEATS,
            "The class has no free seat; ask the teacher to start it anew.",
        )
        seat, self.joined = self.joined, self.joined + 1
        about = {"seed": self.about["seed"], "kept": self.kept}
        return about | {"seat": seat, "key": self.key(seat), "labels": self.wanted(seat)}

    def key(self, seat: int) -> str:
        return hmac.new(
            self.about["secret"].encode(), str(seat).encode(), hashlib.sha256
        ).hexdigest()[:24]

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
        demand(
            seat in (None, message.seat),
            "The message is that of another seat; open the address anew.",
        )
        before = self.messages.get(message.seat, message)
        demand(
            before.text == message.text,
            f"Seat {message.seat} has sent already; one shot is one message.",
        )
        demand(len(self.messages) < MOST, f"The class has {MOST} messages, and takes no more.")
        if before is message:
            self.messages[message.seat] = message
            self._changed()
        return message

    def forget(self, seat: int) -> None:
        """Take a message out, as if it had never been sent; also out of the file."""
        if self.messages.pop(seat, None):
            if self.rounds and seat in self.rounds.known:
                self.rounds = None  # what they learnt is of this student, too
            self._changed()

    def start(self) -> None:
        """Begin the tiny rounds, with the networks that are here. UsageError without a network."""
        self.rounds = Rounds(self.messages.values())
        self.version += 1

    def stay(self, seat: int, text: str | bytes, now: float) -> dict[str, Any]:
        """What a phone that stays is told at `now` (seconds), after its answer `text` to a round; {} before the rounds.
        UsageError for an answer that is none, and for who has not sent."""
        demand(seat in self.messages, "Send your message first; then you may stay.")
        if not self.rounds:
            return {}
        before, told = self.rounds.round, self.rounds.take(self.messages[seat], text, now)
        self.version += self.rounds.round - before
        return told

    # ------------------------------------------------------------------------------------------------ what it is worth
    def rows(self) -> list[dict[str, Any]]:
        """What the class is worth so far: of each way its title, how many students it is of, and its accuracy on the
        class's drawings (None: there are none) and on the package's test digits, 0–1."""
        digits, (x, y) = load("digits"), given_drawings(self.messages.values())
        truth, n, rows = torch.cat([y, digits.y_test]), len(y), []
        with one_pass():
            said_by = answers(
                [*self.messages.values()], images := torch.cat([x, digits.x_test.flatten(1)])
            )
            if self.rounds:
                said_by["FENS"] = len(self.rounds.table), self.rounds.answers(images)
        for title, (of, said) in said_by.items():
            right = (said == truth).double()
            own = float(right[..., :n].mean()) if n else None
            rows.append(
                {"title": title, "of": of, "own": own, "digits": float(right[..., n:].mean())}
            )
        return rows

    def sent(self) -> list[dict[str, Any]]:
        """What has come from whom, in the order in which it came. `means`: what the sums show of each class: how many
        drawings, and their mean `[64]`. Who computes gets each drawing out of them (see `made`)."""
        return [
            {
                "seat": m.seat,
                "name": m.name,
                "bytes": len(m.text),
                "drawings": sum(m.counts),
                "given": len(m.y),
            }
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
        demand(
            len(set(classes)) > 1,
            "No two classes of those who let them be saved are here; nothing is saved.",
        )
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


class Rounds:
    """FENS' phase 2 with the phones that stay (Allouah et al. 2024, Algorithm 1): per-class weights λ `table [M, C]`.

    A phone gets the M networks, in 8 bits, and has their logits on the drawings that it has kept. Each round it gets λ
    and sends it back after one step of its own. The server takes the mean change, by the phones' drawings, and makes a
    step of FedAdam. A round ends when all phones of the last one have answered, or after PATIENCE; who comes late is
    in the next one. Departure: phones hold nothing out, they take the drawings that their networks learnt from
    (`proxy=reused` of the package).
    """

    def __init__(self, messages: Iterable[Message]) -> None:
        members = [m for m in messages if m.network is not None]
        demand(
            members,
            "No network is here, so there is nothing to combine; the rounds begin after the first one.",
        )
        clients = ClientModels([m.network for m in members])
        states = [quantise_state(state, FENS.bits) for state in clients.states()]
        self.clients = clients.with_states([dequantise_state(state) for state in states])
        self.known = {m.seat for m in members}  # who is in λ
        self.networks = [[packed(part) for part in state.values()] for state in states]
        self.table = torch.full((len(members), CLASSES), 1 / len(members))
        self.moments = initial_state(self.table)
        self.round, self.begun = 0, float("inf")
        self.got: dict[int, tuple[int, Tensor]] = {}
        self.expected: set[int] = set()
        self.asked: Counter[int] = Counter()

    def answers(self, x: Tensor) -> Tensor:
        """The class of each sample `x [N, 64]`, `[N]`."""
        return (
            (self.clients.logits(x.view(-1, 1, SIDE, SIDE)) * self.table[:, None]).sum(0).argmax(1)
        )

    def take(self, message: Message, text: str | bytes, now: float) -> dict[str, Any]:
        """`text`, of the sender of `message`: {"round", "weights"}, or {} to ask where the rounds are, or {"networks"}
        for these, too."""
        given = opened(text)
        if "weights" in given and given.get("round") == self.round < FENS.rounds:
            values = numbers(given, "weights", "<f4", -STEEPEST, STEEPEST)
            must(values.size == self.table.numel(), "its size")
            self.begun = min(self.begun, now)
            self.got[message.seat] = (
                sum(message.counts),
                torch.from_numpy(values.copy()).view_as(self.table),
            )
        if self.got and (
            now - self.begun > PATIENCE or (self.expected and self.expected <= self.got.keys())
        ):
            self._step()
        told = {"round": self.round, "of": FENS.rounds, "weights": coded(self.table)}
        if "networks" in given and self.asked[message.seat] < AGAIN:
            self.asked[message.seat] += 1
            told["networks"] = self.networks
        return told

    def about(self) -> dict[str, Any]:
        """Where the rounds are, how many phones were in the last one, and the bytes of the networks and of λ."""
        sizes = {"networks": len(json.dumps(self.networks)), "weights": len(coded(self.table))}
        return {"round": self.round, "of": FENS.rounds, "phones": len(self.expected)} | sizes

    def _step(self) -> None:
        used = [min(n, FENS.batch) for n, _ in self.got.values()]
        change = mean_change(
            [n / sum(used) for n in used], [table for _, table in self.got.values()], self.table
        )
        rates = {"lr": FENS.eta_s, "tau": FENS.tau, "beta1": FENS.beta1, "beta2": FENS.beta2}
        self.table, self.moments = server_step(
            FENS.server, self.table, change, self.moments, **rates
        )
        self.expected = {*self.got}
        self.known |= self.expected
        self.round, self.begun, self.got = self.round + 1, float("inf"), {}


def packed(part: Tensor | Quantised) -> tuple[str, float]:
    """A part of a network as it goes to phones: in base64, and the scale of its 8 bits, or 0 for a part in 32."""
    return (
        (coded(part.codes), float(part.scale))
        if isinstance(part, Quantised)
        else (coded(part), 0.0)
    )


def given_drawings(messages: Iterable[Message]) -> tuple[Tensor, Tensor]:
    """The test drawings in messages: `x [T, 64]`, `y [T]`."""
    own = [
        (torch.empty(0, PIXELS), torch.empty(0, dtype=torch.long)),
        *((m.x, m.y) for m in messages),
    ]
    x, y = (torch.cat(column) for column in zip(*own, strict=True))
    return x, y


def answers(messages: Sequence[Message], x: Tensor) -> dict[str, tuple[int, Tensor]]:
    """By title: of how many students, and the class of each sample `x [N, 64]`, `[N]`; of local models `[M, N]`."""
    made: dict[str, tuple[int, Tensor]] = {}
    senders = [m for m in messages if m.network is not None]
    if senders:
        clients, count, images = (
            ClientModels([m.network for m in senders]),
            len(senders),
            x.view(-1, 1, SIDE, SIDE),
        )
        sizes = [sum(m.counts) for m in senders]
        made["Local only"] = count, clients.logits(images).argmax(-1)
        for title, rule in {"FedAvg": "mean", "FedAvg, median": "median"}.items():
            average = network()
            load_state(average, average_states(clients.states(), sizes, rule, 0))
            made[title] = count, ClientModels([average]).logits(images)[0].argmax(1)
        for title, rule in {"Ensemble": "probabilities", "Ensemble, median": "median"}.items():
            made[title] = (
                count,
                RuledEnsemble(clients, rule, cut=(count - 1) // 2).logits(images).argmax(1),
            )
    sums = [m.sums for m in messages if m.sums is not None]
    if sums:
        total = sum(sums[1:], sums[0])
        weights = afl.solve_weights(least_squares(total), len(sums), 0.0, AFL.rho)
        made["AFL"] = len(sums), afl.linear_scores(x.double(), weights).argmax(1)
        made["Gaussian heads"] = (
            len(sums),
            gauss.make_scores(total, GAUSS.head, GAUSS.shrinkage)(x).argmax(1),
        )
    return made


def plane(messages: Iterable[Message]) -> dict[str, Any]:
    """The means of each student's digits on the two axes along which all their drawings vary most.

    The axes are the first principal ones of all drawings, which the added sums give as one place would.
    `points`: seat, class and two coordinates of each mean, 0–1;   `share`: of the variance that the axes hold, 0–1;
    `alike`: how many means have, in all 64 numbers, a mean of the same digit nearest among those of other students.
    """
    own = [(m.seat, m.sums) for m in messages if m.sums]
    if not own:
        return {"points": [], "share": 0, "alike": 0}
    moments = least_squares(sum((sums for _, sums in own[1:]), own[0][1])).moments
    moments = moments / moments[-1, -1]
    middle = moments[-1, :-1]
    values, axes = torch.linalg.eigh(moments[:-1, :-1] - torch.outer(middle, middle))
    axes = axes[:, [-1, -2]]
    axes = (
        axes * axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    )  # an axis has no side of its own
    seats, classes = zip(
        *((seat, c) for seat, sums in own for c in sums.counts.nonzero()[:, 0].tolist()),
        strict=True,
    )
    rows, (seat, klass) = (
        torch.cat([sums.means[sums.counts > 0] for _, sums in own]),
        torch.tensor([seats, classes]),
    )
    away = torch.cdist(rows, rows).masked_fill(seat == seat[:, None], torch.inf)
    near = (klass[away.argmin(1)] == klass) & away.isfinite().any(1)
    places = (rows - middle) @ axes
    places = (
        (places - places.amin(0)) / (places.amax(0) - places.amin(0)).clamp(min=1e-12)
    ).T.tolist()
    share = float(values[-2:].sum() / values.sum().clamp(min=1e-12))
    return {
        "points": [*zip(seats, classes, *places, strict=True)],
        "share": share,
        "alike": int(near.sum()),
    }


def made(sums: gauss.ClassSums, c: int, rng: np.random.Generator) -> np.ndarray:
    """Rows `[n, d]` whose sum and Σ x xᵀ are those of class c, which has n samples.

    X = 1 μᵀ + U diag(√λ) Vᵀ, where V diag(λ) Vᵀ = Σ x xᵀ - n μ μᵀ has rank n - 1 at most, and the columns of U are
    orthonormal and orthogonal to 1. Any such U will do; this one is drawn. So sums tell samples of any numbers but for
    a rotation of n - 1 dimensions. That hides no drawings: their pixels are whole sixteenths, and hardly a rotation
    leaves them so. Fifteen drawings of a digit are worked out in a moment, to the pixel (test_class.py does).
    """
    n, mean = int(sums.counts[c]), sums.means[c].numpy()
    values, axes = np.linalg.eigh(sums.second[c].numpy() - n * np.outer(mean, mean))
    rank = min(n - 1, len(mean))
    spread = axes[:, -rank:] * np.sqrt(values[-rank:].clip(0)) if rank else np.zeros((len(mean), 0))
    basis = np.linalg.qr(np.column_stack([np.ones(n), rng.standard_normal((n, rank))]))[0][:, 1:]
    return mean + basis @ spread.T
