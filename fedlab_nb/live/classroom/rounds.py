"""The tiny rounds: FENS with the phones that stay. Who is needed, the rounds themselves, and why a
result is bad."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from ...comm.codec import Quantised, dequantise_state, quantise_state
from ...data.edits import format_letters
from ...errors import UsageError
from ...methods import METHODS
from ...methods.parts.averages import compute_mean_change, make_initial_moments, take_server_step
from ...training import ClientModels
from .messages import CLASSES, SIDE, Message, decode_array, encode_array, parse_object, require
from .worth import LOUD

# A network as phones get it: of each part its numbers in base64, and the scale of its 8 bits or 0.
PackedNetwork = list[tuple[str, float]]
FENS = METHODS["fens"]()  # with the values that the course has
PATIENCE = 3.0  # seconds that a round waits for phones; whoever is later is left out of it
PREPARING = 12.0  # the first one: phones get all networks before it, and ask them
HURRY = 0.5  # the same, when the rounds together have waited MOST_WAITED seconds for late phones
MOST_WAITED = 15.0
HERE = 6.0  # seconds after its last word that a phone counts as staying
STEEPEST = (
    1e12  # a weight that comes back; a joker's network has logits, and so slopes, of millions
)
AGAIN = 5  # times that a phone gets the networks, which are large
SUGGESTED = 4  # offices that the projector asks to stay, by name


class Rounds:
    """FENS' phase 2 with the phones that stay (Allouah et al. 2024, Algorithm 1): per-class weights
    λ `table [M, C]`.

    A phone gets the M networks, in 8 bits, and has their logits on the drawings that it has kept.
    Each round it gets λ and sends it back after one step of its own. The server takes the mean
    change, by the phones' drawings, and makes a step of FedAdam. A round ends when all phones that
    are expected have answered, or after PATIENCE. Whoever is late is left out of that round, and
    expected again as soon as an answer comes; for a phone that is always slow the rounds wait
    MOST_WAITED in all. `expected`: the phones that stayed when the rounds began, then those of the
    last round and those that came late. `serial`: which rounds of the class these are; a phone that
    knows others gets the networks anew. Departure: phones hold nothing out, they take the drawings
    that their networks learnt from (`proxy=reused` of the package).
    """

    def __init__(
        self, messages: Iterable[Message], expected: Iterable[int] = (), serial: int = 0
    ) -> None:
        members = [m for m in messages if m.network is not None]
        if not members:
            raise UsageError(
                "No network is here, so there is nothing to weigh; start the rounds after the first one."
            )
        clients = ClientModels([m.network for m in members])
        states = [quantise_state(state, FENS.bits) for state in clients.states()]
        self.clients = clients.with_states([dequantise_state(state) for state in states])
        self.known = {m.seat for m in members}  # who is in λ
        self.networks = [[pack_part(part) for part in state.values()] for state in states]
        self.table = torch.full((len(members), CLASSES), 1 / len(members))
        self.moments = make_initial_moments(self.table)
        self.serial = serial
        self.round = 0
        self.begun = float("inf")  # when the first answer of this round came
        self.received: dict[int, tuple[int, Tensor]] = {}
        self.expected = set(expected)
        self.taught: dict[int, tuple[int, ...]] = {}  # drawings by class of each phone in λ
        self.requests: Counter[int] = Counter()
        self.waited = 0.0  # seconds in all for phones that did not answer
        self.networks_size = len(json.dumps(self.networks))

    @property
    def is_over(self) -> bool:
        return self.round >= FENS.rounds

    def answers(self, x: Tensor) -> Tensor:
        """The class of each sample `x [N, 64]`, `[N]`."""
        logits = self.clients.logits(x.view(-1, 1, SIDE, SIDE))
        return (logits * self.table[:, None]).sum(0).argmax(1)

    def take(self, message: Message, text: str | bytes, now: float) -> dict[str, Any]:
        """`text`, of the sender of `message`: {"round", "weights"}, or {} to ask where the rounds
        are, or {"networks"} for these, too."""
        given = parse_object(text)
        known = given.get("round")
        is_late = "weights" in given and isinstance(known, int) and 0 <= known < self.round
        if is_late:
            self.expected.add(message.seat)
        if "weights" in given and known == self.round < FENS.rounds:
            values = decode_array(given, "weights", "<f4", -STEEPEST, STEEPEST)
            require(values.size == self.table.numel(), "its size")
            table = torch.from_numpy(values.copy()).view_as(self.table)
            self.begun = min(self.begun, now)
            self.received[message.seat] = sum(message.counts), table
            self.taught[message.seat] = message.counts
        self.end_round(now)
        told = {
            "serial": self.serial,
            "round": self.round,
            "of": FENS.rounds,
            "weights": encode_array(self.table),
        }
        if "networks" in given and self.requests[message.seat] < AGAIN:
            self.requests[message.seat] += 1
            told["networks"] = self.networks
        return told

    def end_round(self, now: float) -> None:
        """Make the server's step where everybody has answered who is expected, or has had
        PATIENCE."""
        if not self.received:
            return
        everybody = bool(self.expected) and self.expected <= self.received.keys()
        if not everybody and now - self.begun <= self.find_patience():
            return
        if not everybody and self.expected and self.round:
            self.waited += now - self.begun
        used = [min(n, FENS.batch) for n, _ in self.received.values()]
        shares = [n / sum(used) for n in used]
        change = compute_mean_change(
            shares, [table for _, table in self.received.values()], self.table
        )
        rates = {"lr": FENS.eta_s, "tau": FENS.tau, "beta1": FENS.beta1, "beta2": FENS.beta2}
        self.table, self.moments = take_server_step(
            FENS.server, self.table, change, self.moments, **rates
        )
        self.expected = {*self.received}
        self.known |= self.expected
        self.round += 1
        self.begun = float("inf")
        self.received = {}

    def find_patience(self) -> float:
        """Seconds that this round waits for phones that are expected."""
        if self.round == 0 and self.expected:
            return PREPARING
        return PATIENCE if self.waited < MOST_WAITED else HURRY

    def about(self) -> dict[str, Any]:
        """Where the rounds are, how many phones were in the last one, and the bytes of the networks
        and of λ."""
        return {
            "round": self.round,
            "of": FENS.rounds,
            "phones": len(self.expected),
            "networks": self.networks_size,
            "weights": len(encode_array(self.table)),
        }


def pack_part(part: Tensor | Quantised) -> tuple[str, float]:
    """A part of a network as it goes to phones: in base64, and the scale of its 8 bits, or 0 for a
    part in 32."""
    if isinstance(part, Quantised):
        return encode_array(part.codes), float(part.scale)
    return encode_array(part), 0.0


def find_missing(known: Iterable[tuple[int, ...]], held: Iterable[tuple[int, ...]]) -> list[int]:
    """The classes of the drawings `known` to the networks of which the phones that stay have `held`
    none."""
    wanted = [sum(column) for column in zip(*known, strict=True)]
    here = [sum(column) for column in zip(*held, strict=True)] or [0] * len(wanted)
    return [c for c, n in enumerate(wanted) if n and not here[c]]


def describe_need(
    messages: dict[int, Message], staying: Iterable[int], loudness: dict[int, float]
) -> dict[str, Any]:
    """Who has to stay for the rounds to go well: the phones that stay must have drawn every digit
    that a network knows.

    Returns `phones` (how many stay), `missing` (classes), `ask` (letters of offices that would
    bring them), `loud` (letters of networks that outshout all others), `is_enough` and a
    `sentence`.
    """
    stay = [seat for seat in staying if seat in messages]
    networks = [m for m in messages.values() if m.network is not None]
    missing = find_missing([m.counts for m in networks], [messages[s].counts for s in stay])
    ask: list[int] = []
    lacking = set(missing)
    others = [m for m in messages.values() if m.seat not in stay]
    while lacking and len(ask) < SUGGESTED:
        best = max(others, key=lambda m: len({c for c in lacking if m.counts[c]}), default=None)
        if best is None or not any(best.counts[c] for c in lacking):
            break
        ask.append(best.seat)
        lacking -= {c for c in lacking if best.counts[c]}
        others.remove(best)
    loud = [seat for seat, times in loudness.items() if times > LOUD]
    if not networks:
        sentence = "No network has come yet: the rounds weigh networks."
    elif not stay:
        sentence = "No phone stays yet. Press “Stay” on your phones: every digit needs one."
    elif missing:
        digits = list_words([str(c) for c in missing])
        sentence = f"{count_phones(len(stay))}, and none of them has drawn {digits}."
        if ask:
            sentence += f" Needed: {list_words([format_letters(seat) for seat in ask])}."
    else:
        sentence = f"{count_phones(len(stay))}: enough, they have drawn every digit."
    if loud:
        names = list_words([format_letters(seat) for seat in loud])
        sentence += f" Office {names} shouts {max(loudness.values()):,.0f} times as loud: take it out first."
    return {
        "phones": len(stay),
        "missing": missing,
        "ask": [format_letters(seat) for seat in ask],
        "loud": [format_letters(seat) for seat in loud],
        "is_enough": bool(stay) and not missing and not loud,
        "sentence": sentence,
    }


def explain_result(
    rounds: Rounds, fens: float, ensemble: float, known: list[tuple[int, ...]], loudness: dict
) -> str:
    """Why FENS came out as it did, `fens` and `ensemble` being shares of right answers, 0-1."""
    loud = [seat for seat, times in loudness.items() if times > LOUD]
    missing = find_missing(known, list(rounds.taught.values()))
    if loud:
        names = list_words([format_letters(seat) for seat in loud])
        return f"Office {names} shouts: small steps cannot turn it down. Take it out, start again."
    if missing:
        digits = list_words([str(c) for c in missing])
        return f"No phone that stayed has drawn {digits}: nobody could weigh the networks there."
    if fens < ensemble:
        drawings = sum(map(sum, rounds.taught.values()))
        return f"Learnt from {drawings} drawings only: too few to tell who knows what."
    return "The same networks: only who is believed for which digit has changed."


def count_phones(count: int) -> str:
    return "1 phone stays" if count == 1 else f"{count} phones stay"


def list_words(words: list[str]) -> str:
    """ "3", "3 and 8", "3, 8 and 9"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
