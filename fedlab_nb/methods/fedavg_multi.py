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

from ..comm.codec import Sparsifier, restore
from ..errors import demand
from .base import Context, GlobalModel, Steps, knob, register
from .parts.averages import assumed_knob, average_knob, averaged, check_average, named, vector
from .parts.rounds import PHASE, ROUNDS, Iterative, Rounds, State, difference


@register("fedavg_multi", **ROUNDS, title="FedAvg, T rounds", paper="McMahan et al., AISTATS 2017")
class FedAvgMulti(Iterative):
    """Average the weights again and again: T rounds of short local training."""

    compression: str = knob("none", "Compression", options=("none", "half", "ternary"))
    average: str = average_knob()
    assumed: int = assumed_knob()
    keep: float = knob(0.04, "Kept share", symbol="p", low=0.001, high=1, log=True)

    def refuse(self, ctx: Context) -> None:
        super().refuse(ctx)
        everyone = not self.per_round or self.per_round >= ctx.clients_count
        fits = self.compression == "none" or everyone
        demand(
            fits,
            f"Compression needs all clients, but per_round is {self.per_round}; set per_round=0.",
        )
        taking_part = ctx.clients_count if everyone else self.per_round
        check_average(self.average, self.assumed, taking_part, self.info.title)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        rounds = Rounds(ctx, self)
        if self.compression != "none":
            return (yield from self._compressed(ctx, rounds))
        yield from rounds.averaging(rounds.start)
        return rounds.result

    def _compressed(self, ctx: Context, rounds: Rounds) -> Steps[GlobalModel]:
        ends = [
            Sparsifier(self.keep, ternary=self.compression == "ternary")
            for _ in range(ctx.clients_count + 1)
        ]
        *clients, server = ends
        state = held = ctx.link.broadcast(
            rounds.start, phase=PHASE
        )  # θ_0; `held` is what the clients have
        for t in range(self.rounds):
            # Clients: E epochs, then the change, compressed.
            rounds.load(held)
            yield from rounds.train(t)
            changes = [difference(end, held) for end in rounds.states()]
            received = rounds.up(
                pack(change, rounds.names, end)
                for change, end in zip(changes, clients, strict=True)
            )
            # Server: the mean change, compressed again; it is what everyone, the server included, goes on from.
            with ctx.server():
                changes = [unpack(message, state, rounds.names) for message in received]
                mean = averaged(changes, ctx.sizes, self.average, self.assumed)
                answer = pack(mean, rounds.names, server)
                state = moved(state, unpack(answer, state, rounds.names))
            if t + 1 < self.rounds:
                held = moved(
                    held, unpack(ctx.link.broadcast(answer, phase=PHASE), held, rounds.names)
                )
            yield rounds.end(t, state)
        return rounds.result


Message = dict[str, dict]


def pack(change: State, names: list[str], sparsifier: Sparsifier) -> Message:
    """A change as it is sent: the parameters (`names`) as one sparse vector, everything else as it is."""
    whole = {name: t for name, t in change.items() if name not in names}
    return {"sparse": sparsifier(vector(change, names)), "whole": whole}


def unpack(message: Message, like: State, names: list[str]) -> State:
    """The change that `pack` was given, as far as it was sent; `like` gives names, shapes and dtype."""
    sent = named(restore(message["sparse"], like[names[0]].dtype), like, names) | message["whole"]
    return {name: sent[name] for name in like}


def moved(state: State, change: State) -> State:
    """state + change, name by name."""
    return {name: state[name] + change[name] for name in state}
