"""FedAvg with many rounds (McMahan et al., AISTATS 2017): the iterative method whose traffic one-shot methods save.

For t = 1…T: the server sends θ_t to every client; client k trains E local epochs on its own data from θ_t and returns
θ_k; θ_{t+1} = Σ_k (n_k/N) θ_k. All clients take part, or m of them, drawn anew each round. Traffic of one client: 2 S_θ
for each round that it takes part in. The optimizer's state starts afresh each round. With T = 1 and the local epochs of
the one-shot recipe this is `fedavg` (a test proves it).

Compression, in both directions, with error feedback at both ends (Sattler et al., TNNLS 2020): client k sends its
change θ_k - θ_t, the server sends the mean of the changes, each sparsified to the share `keep` of largest entries
(`comm/codec.py`). θ_0 goes down whole, batch norm's statistics go uncompressed, and the server goes on from what the
clients could decode.
- ternary: STC, every kept entry as ±μ. The paper keeps 1/400 to 1/25; 1/25 is the default. With a large
  share one μ has to stand for entries of all sizes.
- half: kept entries at 16 bits. FENS' "FedAvg STC" is this with keep = 1/2, which it counts as a quarter of the
  bytes. The positions cost another bit a number, so a message has 9/32 of the bytes, not 8/32: 3.56 times less, not
  4. FENS says neither what is sparsified nor whether the rest is carried on; we take the change, and carry it on.
"""

from typing import TypedDict

from torch import Tensor

from ..comm.codec import SparseMessage, SparsifierWithResidual, unpack_largest_entries
from ..errors import UsageError
from .base import Context, GlobalModel, Steps, knob, register
from .parts.averages import (
    MeanMedianTrimmedOrKrum,
    average_states,
    check_average_is_possible,
    flatten_state_into_vector,
    make_assumed_liars_knob,
    make_average_rule_knob,
    split_vector_into_tensors,
)
from .parts.rounds import PHASE, ROUNDS, Iterative, Rounds, State, subtract_states
from .traffic import FederationSizes, RunBytesUpPlusDown


@register("fedavg_multi", **ROUNDS, title="FedAvg, T rounds", paper="McMahan et al., AISTATS 2017")
class FedAvgMulti(Iterative):
    """Average the weights again and again: T rounds of short local training."""

    compression: str = knob("none", "Compression", options=("none", "half", "ternary"))
    average: MeanMedianTrimmedOrKrum = make_average_rule_knob()
    assumed: int = make_assumed_liars_knob()
    keep: float = knob(0.04, "Kept share", symbol="p", low=0.001, high=1, log=True)

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        if self.compression == "none":
            return super().bytes_sent(sizes)
        return RunBytesUpPlusDown(self.rounds * sizes.models_up, is_exact=False)

    def refuse(self, ctx: Context) -> None:
        super().refuse(ctx)
        participants = min(self.per_round or ctx.clients_count, ctx.clients_count)
        if self.compression != "none" and participants < ctx.clients_count:
            raise UsageError(
                f"Compression needs all clients, but per_round is {self.per_round};"
                " set per_round=0."
            )
        check_average_is_possible(self.average, self.assumed, participants, self.info.title)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        rounds = Rounds(ctx, self)
        if self.compression != "none":
            return (yield from self._run_compressed(ctx, rounds))
        yield from rounds.run_all_rounds(rounds.first_state)
        return rounds.result

    def _run_compressed(self, ctx: Context, rounds: Rounds) -> Steps[GlobalModel]:
        ternary = self.compression == "ternary"
        client_sparsifiers = []
        for _ in range(ctx.clients_count):
            client_sparsifiers.append(SparsifierWithResidual(self.keep, ternary=ternary))
        server_sparsifier = SparsifierWithResidual(self.keep, ternary=ternary)
        state = ctx.link.broadcast(rounds.first_state, phase=PHASE)  # θ_0
        client_state = state  # the clients' copy of θ_t
        for t in range(self.rounds):
            # Clients: E epochs, then the change, compressed.
            rounds.load_state_into_participants(client_state)
            yield from rounds.train_participants(t)
            messages = []
            for k, end in enumerate(rounds.copy_participant_states_with_poison()):
                change = subtract_states(end, client_state)
                messages.append(
                    sparsify_and_pack_change(change, rounds.names, client_sparsifiers[k])
                )
            received = rounds.upload_from_participants(messages)
            # Server: the mean change, compressed again. All, the server included, go on from the compressed change.
            with ctx.server():
                changes = [
                    unpack_sparse_change(message, state, rounds.names) for message in received
                ]
                mean = average_states(changes, ctx.sizes, self.average, self.assumed)
                answer = sparsify_and_pack_change(mean, rounds.names, server_sparsifier)
                state = add_states(state, unpack_sparse_change(answer, state, rounds.names))
            if t + 1 < self.rounds:
                received_answer = ctx.link.broadcast(answer, phase=PHASE)
                change = unpack_sparse_change(received_answer, client_state, rounds.names)
                client_state = add_states(client_state, change)
            yield rounds.make_progress(t, state)
        return rounds.result


class ChangeMessage(TypedDict):
    """The parameters of a change as one sparse vector, and all other tensors as they are."""

    sparse: SparseMessage
    rest: dict[str, Tensor]


def sparsify_and_pack_change(
    change: State, names_to_sparsify: list[str], sparsifier: SparsifierWithResidual
) -> ChangeMessage:
    """A change as it is sent: the parameters (`names_to_sparsify`) as one sparse vector, everything else as it is."""
    other_tensors = {
        name: tensor for name, tensor in change.items() if name not in names_to_sparsify
    }
    return ChangeMessage(
        sparse=sparsifier(flatten_state_into_vector(change, names_to_sparsify)), rest=other_tensors
    )


def unpack_sparse_change(
    message: ChangeMessage, template_state: State, sparsified_names: list[str]
) -> State:
    """The change given to `sparsify_and_pack_change`, as far as it was sent.

    `template_state` gives names, shapes and dtype.
    """
    values = unpack_largest_entries(message["sparse"], template_state[sparsified_names[0]].dtype)
    change = split_vector_into_tensors(values, template_state, sparsified_names) | message["rest"]
    return {name: change[name] for name in template_state}


def add_states(state: State, change: State) -> State:
    """state + change, name by name."""
    return {name: state[name] + change[name] for name in state}
