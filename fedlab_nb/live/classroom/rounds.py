"""The tiny rounds: FENS' phase 2 with the phones that stay.

The rounds themselves, which phones they need, and why their result is good or bad.
"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, TypedDict

import torch
from torch import Tensor

from ...comm.codec import QuantisedTensor, dequantise_state, quantise_state
from ...data.edits import format_client_letters
from ...errors import UsageError
from ...methods import METHODS
from ...methods.parts.averages import (
    compute_mean_parameter_change,
    compute_server_optimizer_step,
    make_zero_optimizer_moments,
)
from ...tensor_types import Predictions
from ...training import ClientModels
from ...value_types import Accuracy0To1, Seconds
from .messages import (
    CLASSES,
    SIDE,
    FlatDigits0To1,
    Message,
    MonotonicSeconds,
    decode_base64_array,
    encode_tensor_in_base64,
    parse_json_object,
    raise_usage_error_unless_valid,
)
from .worth import SHOUTING_FACTOR, LogitSizeBySeat


class PackedTensor(NamedTuple):
    """A tensor as phones receive it.

    text:  its numbers in base64
    scale: of their 8-bit codes; 0 if the numbers are 32-bit
    """

    text: str
    scale: float


ClassIndex = int
DrawingCountByClass = tuple[int, ...]
PackedNetwork = list[PackedTensor]  # as phones receive it
FENS = METHODS["fens"]()  # with the default values of its knobs, as in the course
# How long a round waits for the phones that are expected, in seconds; later answers are left out.
PATIENCE = 3.0
FIRST_PATIENCE = 12.0  # in the first round, before which phones load and apply all networks
SHORT_PATIENCE = 0.5  # after all rounds together have waited MAX_WAIT_SECONDS for late phones
MAX_WAIT_SECONDS = 15.0
STAYING_SECONDS = 6.0  # a phone counts as staying for this long after its last request
# The largest weight in an answer. It is large, since a joker's network has logits, and so gradients, of millions.
MAX_WEIGHT = 1e12
MAX_NETWORK_SENDS = 5  # how often one phone gets the networks, which are large
MAX_SUGGESTED_OFFICES = 4  # that the projector asks by name to stay


class PhonesNeededForRounds(TypedDict):
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
    """FENS' phase 2 with the phones that stay (Allouah et al. 2024, Algorithm 1).

    It learns a weight for each network and class, λ: `table [M, C]`. Before the first round, a phone
    gets all M networks, in 8 bits, and computes their logits on the drawings that it has kept. In each
    round it gets λ, makes one gradient step, and sends λ back. The server averages the changes of λ,
    weighted by each phone's number of drawings, and makes one step of FedAdam.

    A round ends when all expected phones have answered, or after PATIENCE. A phone that is late is
    left out of that round, and is expected again as soon as an answer comes. So that a phone that is
    always slow cannot delay the class, all rounds together wait MAX_WAIT_SECONDS at most.

    expected: seats of the phones that stayed when the rounds began; later those that answered the
        last round, and those that answered too late
    serial: number of these rounds; a phone that has the networks of other rounds gets these anew

    Departure from the paper: phones hold no samples out. They learn λ on the drawings that their
    networks were trained on (`proxy=reused` of the package).
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
        self.known = {m.seat for m in members}  # seats whose network or drawings are in λ
        self.networks = [
            [pack_tensor_for_phones(part) for part in state.values()] for state in states
        ]
        self.table = torch.full((len(members), CLASSES), 1 / len(members))
        self.moments = make_zero_optimizer_moments(self.table)
        self.serial = serial
        self.round = 0
        self.begun = float("inf")  # when the first answer of this round came
        # By seat, the answers to this round: number of drawings, and λ [M, C].
        self.received: dict[int, tuple[int, Tensor]] = {}
        self.expected = set(expected)
        # By seat, the drawings by class of the phones that have answered a round.
        self.taught: dict[int, DrawingCountByClass] = {}
        self.requests: Counter[int] = Counter()  # by seat, how often the networks were sent
        self.waited = 0.0  # seconds in all for phones that did not answer
        self.networks_size = len(json.dumps(self.networks))

    @property
    def is_over(self) -> bool:
        return self.round >= FENS.rounds

    def predict_classes(self, samples: FlatDigits0To1) -> Predictions:
        """Predict the class of each image `samples [N, 64]`."""
        logits = self.clients.logits(samples.view(-1, 1, SIDE, SIDE))
        return (logits * self.table[:, None]).sum(0).argmax(1)

    def handle_round_request(
        self, message: Message, request_json: str | bytes, now: MonotonicSeconds
    ) -> RoundReply:
        """Take a phone's answer to a round, and return what the phone needs next.

        message: the message that the phone sent to the class
        request_json: a JSON object: {"round", "weights"} is an answer, {} asks where the rounds are,
            and {"networks"} asks for the networks as well
        now: seconds
        """
        given = parse_json_object(request_json)
        is_answer = "weights" in given
        answered_round = given.get("round")
        if is_answer and isinstance(answered_round, int) and 0 <= answered_round < self.round:
            self.expected.add(message.seat)  # the answer is late
        if is_answer and answered_round == self.round and not self.is_over:
            values = decode_base64_array(given, "weights", "<f4", -MAX_WEIGHT, MAX_WEIGHT)
            raise_usage_error_unless_valid(values.size == self.table.numel(), "its size")
            table = torch.from_numpy(values.copy()).view_as(self.table)
            self.begun = min(self.begun, now)
            self.received[message.seat] = sum(message.counts), table
            self.taught[message.seat] = message.counts
        self.end_round_if_due(now)
        reply: RoundReply = {
            "serial": self.serial,
            "round": self.round,
            "of": FENS.rounds,
            "weights": encode_tensor_in_base64(self.table),
        }
        if "networks" in given and self.requests[message.seat] < MAX_NETWORK_SENDS:
            self.requests[message.seat] += 1
            reply["networks"] = self.networks
        return reply

    def end_round_if_due(self, now: MonotonicSeconds) -> None:
        """Make the server's step if every expected phone has answered or its time is over."""
        if not self.received:
            return
        is_complete = bool(self.expected) and self.expected <= self.received.keys()
        if not is_complete and now - self.begun <= self.get_patience_seconds():
            return
        if not is_complete and self.expected and self.round:
            self.waited += now - self.begun
        sample_counts = []
        tables = []
        for drawing_count, table in self.received.values():
            sample_counts.append(min(drawing_count, FENS.batch))
            tables.append(table)
        shares = [count / sum(sample_counts) for count in sample_counts]
        change = compute_mean_parameter_change(shares, tables, self.table)
        self.table, self.moments = compute_server_optimizer_step(
            FENS.server,
            self.table,
            change,
            self.moments,
            lr=FENS.eta_s,
            tau=FENS.tau,
            beta1=FENS.beta1,
            beta2=FENS.beta2,
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
            "weights": len(encode_tensor_in_base64(self.table)),
        }


def pack_tensor_for_phones(tensor: Tensor | QuantisedTensor) -> PackedTensor:
    """Encode a tensor of a network for phones."""
    if isinstance(tensor, QuantisedTensor):
        return PackedTensor(encode_tensor_in_base64(tensor.codes), float(tensor.scale))
    return PackedTensor(encode_tensor_in_base64(tensor), 0.0)


def list_trained_classes_nobody_staying_drew(
    drawings_by_class_of_networks: Iterable[DrawingCountByClass],
    drawings_by_class_of_staying: Iterable[DrawingCountByClass],
) -> list[ClassIndex]:
    """List the classes that a network was trained on and that no staying phone has drawn.

    drawings_by_class_of_networks: drawings by class of each phone with a network
    drawings_by_class_of_staying: drawings by class of each phone that stays
    """
    # The drawings of each class, added over phones.
    trained = [sum(column) for column in zip(*drawings_by_class_of_networks, strict=True)]
    staying = [sum(column) for column in zip(*drawings_by_class_of_staying, strict=True)]
    if not staying:
        staying = [0] * len(trained)
    return [c for c, count in enumerate(trained) if count and not staying[c]]


def describe_phones_needed_for_rounds(
    message_by_seat: dict[int, Message],
    staying_seats: Iterable[int],
    logit_size_by_seat: LogitSizeBySeat,
) -> PhonesNeededForRounds:
    """Describe who has to stay for the rounds to go well.

    The phones that stay must have drawn every digit that a network was trained on.
    """
    stay = [seat for seat in staying_seats if seat in message_by_seat]
    networks = [m for m in message_by_seat.values() if m.network is not None]
    missing = list_trained_classes_nobody_staying_drew(
        [m.counts for m in networks], [message_by_seat[s].counts for s in stay]
    )
    # Ask the office that has drawn most of the missing classes, then the next one for the rest.
    ask: list[int] = []
    lacking = set(missing)
    others = [m for m in message_by_seat.values() if m.seat not in stay]
    while lacking and others and len(ask) < MAX_SUGGESTED_OFFICES:
        best = max(others, key=lambda m: sum(m.counts[c] > 0 for c in lacking))
        brought = {c for c in lacking if best.counts[c]}
        if not brought:
            break
        ask.append(best.seat)
        lacking -= brought
        others.remove(best)
    loud = list_seats_of_shouting_networks(logit_size_by_seat)
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
            letters = join_words_with_and([format_client_letters(seat) for seat in ask])
            sentence += f" Needed: {letters}."
    else:
        sentence = (
            f"{format_number_of_staying_phones(len(stay))}: enough, they have drawn every digit."
        )
    if loud:
        letters = join_words_with_and([format_client_letters(seat) for seat in loud])
        times = max(logit_size_by_seat.values())
        sentence += f" Office {letters} shouts {times:,.0f} times as loud: take it out first."
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
    fens_accuracy: Accuracy0To1,
    ensemble_accuracy: Accuracy0To1,
    drawings_by_class: list[DrawingCountByClass],
    logit_size_by_seat: LogitSizeBySeat,
) -> str:
    """Explain why FENS came out as it did.

    drawings_by_class:  drawings by class of each phone with a network
    logit_size_by_seat: {seat: size of its network's logits, relative to the median network's}
    """
    loud = list_seats_of_shouting_networks(logit_size_by_seat)
    missing = list_trained_classes_nobody_staying_drew(
        drawings_by_class, list(rounds.taught.values())
    )
    if loud:
        letters = join_words_with_and([format_client_letters(seat) for seat in loud])
        return (
            f"Office {letters} shouts: small steps cannot turn it down. Take it out, start again."
        )
    if missing:
        digits = join_words_with_and([str(c) for c in missing])
        return f"No phone that stayed has drawn {digits}: nobody could weigh the networks there."
    if fens_accuracy < ensemble_accuracy:
        drawings = sum(map(sum, rounds.taught.values()))
        return f"Learnt from {drawings} drawings only: too few to tell who knows what."
    return "The same networks: only who is believed for which digit has changed."


def list_seats_of_shouting_networks(logit_size_by_seat: LogitSizeBySeat) -> list[int]:
    """List the seats whose network outshouts all others."""
    return [seat for seat, times in logit_size_by_seat.items() if times > SHOUTING_FACTOR]


def format_number_of_staying_phones(count: int) -> str:
    return "1 phone stays" if count == 1 else f"{count} phones stay"


def join_words_with_and(words: list[str]) -> str:
    """Join words: "3", "3 and 8", "3, 8 and 9"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
