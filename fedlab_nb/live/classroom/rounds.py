"""The tiny rounds: FENS with the phones that stay. Who is needed, the rounds themselves, and why a
result is bad."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, TypedDict

import torch
from torch import Tensor

from ...comm.codec import Quantised, dequantise_state, quantise_state
from ...data.edits import format_client_letters
from ...errors import UsageError
from ...methods import METHODS
from ...methods.parts.averages import (
    compute_mean_parameter_change,
    make_zero_optimizer_moments,
    take_server_optimizer_step,
)
from ...tensor_types import Predictions
from ...training import ClientModels
from .messages import (
    CLASSES,
    SIDE,
    FlatDigits,
    Message,
    Seconds,
    decode_base64_array,
    encode_array_in_base64,
    parse_json_object,
    raise_unless_valid,
)
from .worth import SHOUTING_FACTOR, LogitSizeBySeat


class PackedTensor(NamedTuple):
    """Numbers in base64, and the scale of their 8-bit codes, or 0 if they are 32-bit numbers."""

    text: str
    scale: float


PackedNetwork = list[PackedTensor]  # as phones receive it
FENS = METHODS["fens"]()  # with the values that the course has
# How long a round waits for phones that are expected, in seconds; later answers are left out.
PATIENCE = 3.0
FIRST_PATIENCE = 12.0  # in the first round, before which phones load and apply all networks
SHORT_PATIENCE = 0.5  # after all rounds together have waited MAX_WAIT_SECONDS for late phones
MAX_WAIT_SECONDS = 15.0
STAYING_SECONDS = 6.0  # a phone counts as staying for this long after its last message
MAX_WEIGHT = 1e12  # of an answer; a joker's network has logits, and so slopes, of millions
MAX_NETWORK_SENDS = 5  # times that one phone gets the networks, which are large
MAX_SUGGESTED_OFFICES = 4  # that the projector asks to stay, by name


class RoundsNeed(TypedDict):
    """Who has to stay for the tiny rounds to go well.

    phones:    number of phones that stay
    missing:   classes that no phone that stays has drawn
    ask:       letters of the offices that would bring them
    loud:      letters of the offices whose networks outshout all others
    is_enough: whether the rounds can start
    sentence:  all of this in words
    """

    phones: int
    missing: list[int]
    ask: list[str]
    loud: list[str]
    is_enough: bool
    sentence: str


class RoundReply(TypedDict, total=False):
    """What a phone that stays needs for its next round.

    serial:    number of the tiny rounds
    round, of: number of rounds that have ended, and of all rounds
    weights:   λ `[M, C]` in base64
    networks:  all networks, if the phone has asked for them
    """

    serial: int
    round: int
    of: int
    weights: str
    networks: list[PackedNetwork]


class RoundsProgress(TypedDict):
    """Where the tiny rounds are.

    round, of: number of rounds that have ended, and of all rounds
    phones:    number of phones in the last round
    networks:  bytes of all networks
    weights:   bytes of λ
    """

    round: int
    of: int
    phones: int
    networks: int
    weights: int


class Rounds:
    """FENS' phase 2 with the phones that stay (Allouah et al. 2024, Algorithm 1): per-class weights
    λ `table [M, C]`.

    A phone gets the M networks, in 8 bits, and has their logits on the drawings that it has kept.
    Each round it gets λ and sends it back after one step of its own. The server takes the mean
    change, by the phones' drawings, and makes a step of FedAdam. A round ends when all phones that
    are expected have answered, or after PATIENCE. Whoever is late is left out of that round, and
    expected again as soon as an answer comes; for a phone that is always slow the rounds wait
    MAX_WAIT_SECONDS in all. `expected`: the phones that stayed when the rounds began, then those of the
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
        self.networks = [
            [pack_tensor_for_phones(part) for part in state.values()] for state in states
        ]
        self.table = torch.full((len(members), CLASSES), 1 / len(members))
        self.moments = make_zero_optimizer_moments(self.table)
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

    def predict_classes(self, samples: FlatDigits) -> Predictions:
        """Predict the class of each image `samples [N, 64]`."""
        logits = self.clients.logits(samples.view(-1, 1, SIDE, SIDE))
        return (logits * self.table[:, None]).sum(0).argmax(1)

    def handle_round_request(
        self, message: Message, request_text: str | bytes, now: Seconds
    ) -> RoundReply:
        """Take a phone's answer to a round, and return what the phone needs next.

        message: the message that the phone sent to the class
        request_text:    a JSON object: {"round", "weights"} is an answer, {} asks where the rounds are, and
                 {"networks"} asks for the networks as well
        now:     seconds
        """
        given = parse_json_object(request_text)
        known = given.get("round")
        is_late = "weights" in given and isinstance(known, int) and 0 <= known < self.round
        if is_late:
            self.expected.add(message.seat)
        if "weights" in given and known == self.round < FENS.rounds:
            values = decode_base64_array(given, "weights", "<f4", -MAX_WEIGHT, MAX_WEIGHT)
            raise_unless_valid(values.size == self.table.numel(), "its size")
            table = torch.from_numpy(values.copy()).view_as(self.table)
            self.begun = min(self.begun, now)
            self.received[message.seat] = sum(message.counts), table
            self.taught[message.seat] = message.counts
        self.end_round_if_due(now)
        reply: RoundReply = {
            "serial": self.serial,
            "round": self.round,
            "of": FENS.rounds,
            "weights": encode_array_in_base64(self.table),
        }
        if "networks" in given and self.requests[message.seat] < MAX_NETWORK_SENDS:
            self.requests[message.seat] += 1
            reply["networks"] = self.networks
        return reply

    def end_round_if_due(self, now: Seconds) -> None:
        """Make the server's step if every expected phone has answered or its time is over."""
        if not self.received:
            return
        is_complete = bool(self.expected) and self.expected <= self.received.keys()
        if not is_complete and now - self.begun <= self.get_patience_seconds():
            return
        if not is_complete and self.expected and self.round:
            self.waited += now - self.begun
        used = [min(n, FENS.batch) for n, _ in self.received.values()]
        shares = [n / sum(used) for n in used]
        change = compute_mean_parameter_change(
            shares, [table for _, table in self.received.values()], self.table
        )
        rates = {"lr": FENS.eta_s, "tau": FENS.tau, "beta1": FENS.beta1, "beta2": FENS.beta2}
        self.table, self.moments = take_server_optimizer_step(
            FENS.server, self.table, change, self.moments, **rates
        )
        self.expected = {*self.received}
        self.known |= self.expected
        self.round += 1
        self.begun = float("inf")
        self.received = {}

    def get_patience_seconds(self) -> Seconds:
        """Return how many seconds this round waits for phones that are expected."""
        if self.round == 0 and self.expected:
            return FIRST_PATIENCE
        return PATIENCE if self.waited < MAX_WAIT_SECONDS else SHORT_PATIENCE

    def describe_progress(self) -> RoundsProgress:
        """Describe where the rounds are, and how large what they send is."""
        return {
            "round": self.round,
            "of": FENS.rounds,
            "phones": len(self.expected),
            "networks": self.networks_size,
            "weights": len(encode_array_in_base64(self.table)),
        }


def pack_tensor_for_phones(tensor: Tensor | Quantised) -> PackedTensor:
    """Encode a part of a network for phones: its numbers in base64, and the scale of 8-bit codes, or 0
    for 32-bit numbers."""
    if isinstance(tensor, Quantised):
        return PackedTensor(encode_array_in_base64(tensor.codes), float(tensor.scale))
    return PackedTensor(encode_array_in_base64(tensor), 0.0)


def list_trained_classes_nobody_staying_drew(
    drawings_by_class_of_networks: Iterable[tuple[int, ...]],
    drawings_by_class_of_staying: Iterable[tuple[int, ...]],
) -> list[int]:
    """List the classes that networks were trained on and no staying phone has drawings of.

    drawings_by_class_of_networks: drawings by class of each phone with a network
    drawings_by_class_of_staying: drawings by class of each phone that stays
    """
    trained = [sum(column) for column in zip(*drawings_by_class_of_networks, strict=True)]
    staying = [sum(column) for column in zip(*drawings_by_class_of_staying, strict=True)]
    if not staying:
        staying = [0] * len(trained)
    return [c for c, count in enumerate(trained) if count and not staying[c]]


def describe_phones_needed_for_rounds(
    messages: dict[int, Message], staying_seats: Iterable[int], logit_size_by_seat: LogitSizeBySeat
) -> RoundsNeed:
    """Describe who has to stay for the rounds to go well.

    The phones that stay must have drawn every digit that a network knows.
    """
    stay = [seat for seat in staying_seats if seat in messages]
    networks = [m for m in messages.values() if m.network is not None]
    missing = list_trained_classes_nobody_staying_drew(
        [m.counts for m in networks], [messages[s].counts for s in stay]
    )
    ask: list[int] = []
    lacking = set(missing)
    others = [m for m in messages.values() if m.seat not in stay]
    while lacking and len(ask) < MAX_SUGGESTED_OFFICES:
        best = max(others, key=lambda m: len({c for c in lacking if m.counts[c]}), default=None)
        if best is None or not any(best.counts[c] for c in lacking):
            break
        ask.append(best.seat)
        lacking -= {c for c in lacking if best.counts[c]}
        others.remove(best)
    loud = [seat for seat, times in logit_size_by_seat.items() if times > SHOUTING_FACTOR]
    if not networks:
        sentence = "No network has come yet: the rounds weigh networks."
    elif not stay:
        sentence = "No phone stays yet. Press “Stay” on your phones: every digit needs one."
    elif missing:
        digits = join_words_with_and([str(c) for c in missing])
        sentence = (
            f"{format_number_of_staying_phones(len(stay))}, and none of them has drawn {digits}."
        )
        if ask:
            sentence += (
                f" Needed: {join_words_with_and([format_client_letters(seat) for seat in ask])}."
            )
    else:
        sentence = (
            f"{format_number_of_staying_phones(len(stay))}: enough, they have drawn every digit."
        )
    if loud:
        names = join_words_with_and([format_client_letters(seat) for seat in loud])
        sentence += f" Office {names} shouts {max(logit_size_by_seat.values()):,.0f} times as loud: take it out first."
    return {
        "phones": len(stay),
        "missing": missing,
        "ask": [format_client_letters(seat) for seat in ask],
        "loud": [format_client_letters(seat) for seat in loud],
        "is_enough": bool(stay) and not missing and not loud,
        "sentence": sentence,
    }


def explain_fens_result(
    rounds: Rounds,
    fens_accuracy: float,
    ensemble_accuracy: float,
    drawings_by_class: list[tuple[int, ...]],
    logit_size_by_seat: LogitSizeBySeat,
) -> str:
    """Explain why FENS came out as it did.

    fens_accuracy, ensemble_accuracy: accuracies, 0–1
    drawings_by_class:          drawings by class of each phone with a network
    logit_size_by_seat:       {seat: loudness of its network}
    """
    loud = [seat for seat, times in logit_size_by_seat.items() if times > SHOUTING_FACTOR]
    missing = list_trained_classes_nobody_staying_drew(
        drawings_by_class, list(rounds.taught.values())
    )
    if loud:
        names = join_words_with_and([format_client_letters(seat) for seat in loud])
        return f"Office {names} shouts: small steps cannot turn it down. Take it out, start again."
    if missing:
        digits = join_words_with_and([str(c) for c in missing])
        return f"No phone that stayed has drawn {digits}: nobody could weigh the networks there."
    if fens_accuracy < ensemble_accuracy:
        drawings = sum(map(sum, rounds.taught.values()))
        return f"Learnt from {drawings} drawings only: too few to tell who knows what."
    return "The same networks: only who is believed for which digit has changed."


def format_number_of_staying_phones(count: int) -> str:
    return "1 phone stays" if count == 1 else f"{count} phones stay"


def join_words_with_and(words: list[str]) -> str:
    """Join words: "3", "3 and 8", "3, 8 and 9"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
