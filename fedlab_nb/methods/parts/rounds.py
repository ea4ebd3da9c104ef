"""The round loop that the iterative methods share: the clients' part of a round, and the points of the live curve.

A method's `run` stays its own algorithm; `Rounds` has the lines that are the same in all of them:

    rounds = Rounds(ctx, self)
    state = rounds.first_state  # θ_0
    for t in range(self.rounds):
        rounds.draw_and_set_participants(t)  # S_t, the clients of this round
        rounds.load_state_into_participants(rounds.broadcast_to_participants(state))  # θ_t down, to each of them
        yield from rounds.train_participants(t)  # clients: E local epochs
        received = rounds.upload_from_participants(rounds.copy_participant_states_with_poison())  # θ_k up
        with ctx.server():
            state = weighted_mean(received, rounds.participant_sample_counts)  # θ_{t+1} = Σ_k (n_k/N) θ_k
        yield rounds.make_progress(t, state)
    return rounds.result

S_t is every client, or m of them (`per_round`), drawn uniformly without replacement from a random stream of its own, so
that all methods of one seed meet the same clients in the same rounds. N is then the samples of S_t, and only S_t's
bytes are counted. The recipe's optimizer starts afresh in every round. A state is the parameters and batch norm's
running statistics, by name. The statistics are averaged like weights, by samples, whatever a method does to
parameters: they are averages themselves, and a step that overshoots could make a variance negative.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from ...comm.link import Payload
from ...errors import UsageError
from ...models import copy_model_state, load_state
from ...tensor_types import Features
from ...training import Recipe, run_in_chunks
from ...training.local import TrainingOption
from ...training.loop import Shard
from ...value_types import ClientIndex, MeanPassesPerClient
from ..base import Context, KnobField, Method, NetworkModel, Progress, Steps, knob
from ..context import check_training_is_finite
from ..run_outputs import should_record_curve_point
from ..traffic import FederationSizes, RunBytesUpPlusDown
from .averages import MeanMedianTrimmedOrKrum, average_states

# ------------------------------------------------------------------------------------------------------------ iterative
# The knobs that all methods of many rounds have, and what the tables say about them.

# Of a method of T rounds with one architecture, for `register`.
ROUNDS: dict[str, Any] = {
    "rounds": "T rounds",
    "traffic": "2 S_θ T",
    "leaks": "each client's model and sample count, every round",
    "needs": ["one architecture"],
    "back": "the new network",
}


def make_local_epochs_knob(default_epochs: int) -> KnobField:
    """The field `local_epochs` of an iterative method."""
    return knob(default_epochs, "Epochs per round", symbol="E", low=1, high=1000)


@dataclass(frozen=True)
class Iterative(Method):
    """The numbers that every iterative method has.

    FENS gives its iterative baselines up to 100 rounds of 2 local epochs. Here a client of the digits has so few
    samples that 2 epochs are about 8 steps of SGD, and 20 such rounds end far below what the rounds could reach: 10
    epochs are the default (4 for SCAFFOLD), five times the passes of a one-shot method. With 2 epochs the local work
    of 20 rounds is that of one shot (`local_passes`).
    """

    trains_locally = False

    rounds: int = knob(20, "Rounds", symbol="T", low=1, high=1000)
    local_epochs: int = make_local_epochs_knob(10)
    per_round: int = knob(0, "Clients per round", symbol="m", low=0, high=10_000)

    # Whether it computes the mean gradient from how far a client has moved, for which clients must train by SGD.
    counts_steps: ClassVar[bool] = False

    def refuse(self, ctx: Context) -> None:
        if self.counts_steps and ctx.recipe.optimizer != "sgd":
            raise UsageError(
                f"{self.info.title} counts SGD steps, not those of {ctx.recipe.optimizer}; set optimizer=sgd."
            )

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        taking_part = self.per_round or sizes.clients
        return RunBytesUpPlusDown(2 * sizes.models_up * self.rounds * taking_part / sizes.clients)

    def local_passes(
        self, recipe: Recipe, client_sample_counts: Sequence[float]
    ) -> MeanPassesPerClient:
        participation = min(
            self.per_round or len(client_sample_counts), len(client_sample_counts)
        ) / len(client_sample_counts)
        return self.rounds * self.local_epochs * participation


PHASE = "rounds"

State = dict[str, Tensor]
ParameterState = dict[str, Tensor]  # without running statistics
ClientValue = TypeVar("ClientValue")  # what there is one of for each client
FunctionOfServerAndClientStates = Callable[[State, list[State]], State]


def draw_participants_of_round(
    ctx: Context, participant_count_or_0_for_all: int, round_index: int
) -> list[ClientIndex]:
    """S_t, ascending: so many of the clients, uniformly; all, without a draw, if the count is 0 or not below M."""
    if not participant_count_or_0_for_all or participant_count_or_0_for_all >= ctx.clients_count:
        return list(range(ctx.clients_count))
    order = torch.randperm(ctx.clients_count, generator=ctx.generator("participants", round_index))
    return sorted(order[:participant_count_or_0_for_all].tolist())


class Rounds:
    """The clients of one run of `method`, which has `rounds` and `local_epochs`, and the state of its curve.

    `first_state` is θ_0; `participants` are the clients of this round in ascending order, m of them if the method has a
    `per_round` = m that is not 0; `result` is the model of the last point of the curve.
    """

    def __init__(self, ctx: Context, method: Any) -> None:
        self.ctx = ctx
        self.rounds = method.rounds
        self.recipe = replace(ctx.recipe, epochs=method.local_epochs)
        self.participants = list(range(ctx.clients_count))
        self.rule: MeanMedianTrimmedOrKrum = getattr(method, "average", "mean")
        self.assumed = getattr(method, "assumed", 0)
        per_round = getattr(method, "per_round", 0) or ctx.clients_count
        self.per_round = min(per_round, ctx.clients_count)
        self.models = [ctx.initial_model() for _ in range(ctx.clients_count)]
        self.shards = [ctx.private.train(k) for k in range(ctx.clients_count)]
        self.first_state = copy_model_state(self.models[0])
        self.received = self.first_state
        self.names = [name for name, _ in self.models[0].named_parameters()]
        self.result: NetworkModel

    # ------------------------------------------------------------------ the clients of a round
    def draw_and_set_participants(self, round_index: int) -> list[ClientIndex]:
        """Draw S_t, the clients of round t; without a draw where all take part."""
        self.participants = draw_participants_of_round(self.ctx, self.per_round, round_index)
        return self.participants

    def select_values_of_participants(self, values: Sequence[ClientValue]) -> list[ClientValue]:
        """The participants' values, from one value a client."""
        return [values[k] for k in self.participants]

    @property
    def participant_sample_counts(self) -> list[int]:
        """n_k of the participants."""
        return self.select_values_of_participants(self.ctx.sizes)

    # ------------------------------------------------------------------ clients (the participants)
    def broadcast_to_participants(self, payload: Payload) -> Payload:
        """The server's payload to each participant; returns what they receive, one copy for all."""
        return self.ctx.link.broadcast(payload, phase=PHASE, clients=self.participants)

    def load_state_into_participants(self, state: State) -> None:
        """The participants go on from `state`, as they received it."""
        self.received = state
        for model in self.select_values_of_participants(self.models):
            load_state(model, state)

    def copy_participant_states_with_poison(self) -> list[State]:
        """The participants' states now, as they send them: a poisoned client changes its own."""
        states = []
        for k in self.participants:
            states.append(self.ctx.make_upload(k, self.received, self.models[k]))
        return states

    def compute_features_of_participants(self) -> list[Features]:
        """Features of their own training samples, `[n_k, D]`, by their models as they are now (in eval mode)."""
        features = []
        for k in self.participants:
            x = self.shards[k][0]
            features.append(run_in_chunks(self.models[k].eval().features, x))
        return features

    def train_participants(
        self,
        round_index: int,
        shards_or_empty_for_own: Sequence[Shard] = (),
        **options: TrainingOption,
    ) -> Steps[None]:
        """The local epochs of a round t.

        `options`: `loss` or `adjust`, as `training/loop.py` has them; they number the clients by their places among the
        participants. `shards_or_empty_for_own`: in place of their own, with further columns that the loss needs.
        """
        # The first round draws the same batches as local training does, so that one round can equal a one-shot method.
        options.setdefault(
            "stream", "batches" if round_index == 0 else f"batches of round {round_index}"
        )
        options.setdefault("recipe", self.recipe)
        options.setdefault("ids", self.select_values_of_participants(self.ctx.ids))
        models = self.select_values_of_participants(self.models)
        epochs = self.recipe.epochs
        for tick in self.ctx.train(
            models,
            shards_or_empty_for_own or self.select_values_of_participants(self.shards),
            **options,
        ):
            yield Progress(PHASE, round_index * epochs + tick.done, self.rounds * epochs)

    def upload_from_participants(self, payloads: Iterable[Payload]) -> list[Payload]:
        """The participants' payloads to the server, one each; returns what the server receives."""
        received = []
        for k, payload in zip(self.participants, payloads, strict=True):
            received.append(self.ctx.link.up(k, payload, phase=PHASE))
        return received

    # ------------------------------------------------------------------ server
    def select_parameters_without_buffers(self, state: State) -> ParameterState:
        """The part of a state that gradients move: the same tensors, without running statistics."""
        return {name: state[name] for name in self.names}

    @property
    def participant_shares(self) -> list[float]:
        """p_k = n_k / N of the participants; they sum to 1."""
        return [n / sum(self.participant_sample_counts) for n in self.participant_sample_counts]

    def average_client_states(self, server_state: State, client_states: list[State]) -> State:
        """FedAvg's server: θ_{t+1} = Σ_k (n_k/N) θ_k, or the method's other `average`;
        `server_state` is θ_t, not used."""
        return average_states(
            client_states, self.participant_sample_counts, self.rule, self.assumed
        )

    def run_all_rounds(
        self,
        start_state: State,
        make_train_options: Callable[[State], dict[str, TrainingOption]] | None = None,
        compute_server_state: FunctionOfServerAndClientStates | None = None,
    ) -> Steps[State]:
        """FedAvg: all rounds from `start_state`, θ_0; returns θ_T.

        make_train_options: θ_t to further arguments of `train_participants`
        compute_server_state: θ_t and the list of θ_k to θ_{t+1}, in place of the average
        """
        compute_server_state = compute_server_state or self.average_client_states
        state = start_state
        for t in range(self.rounds):
            # Clients: E epochs from the model they receive.
            self.draw_and_set_participants(t)
            received = self.broadcast_to_participants(state)
            self.load_state_into_participants(received)
            options = make_train_options(received) if make_train_options else {}
            yield from self.train_participants(t, **options)
            ends = self.upload_from_participants(self.copy_participant_states_with_poison())
            # Server: the weighted average, or another step.
            with self.ctx.server():
                state = compute_server_state(state, ends)
            yield self.make_progress(t, state)
        return state

    def make_progress(self, round_index: int, server_state: State) -> Progress:
        """The progress at the end of round t, after which the `server_state` is θ_{t+1}.

        RunError if the state is not finite: some client's training diverged.
        """
        check_training_is_finite(
            server_state.values(), f"Round {round_index + 1}", f"lr={self.recipe.lr:g}"
        )
        snapshot = None
        if should_record_curve_point(round_index + 1, self.rounds):
            snapshot = NetworkModel(self.ctx.new_model(server_state))
            self.result = snapshot
        done = (round_index + 1) * self.recipe.epochs
        total = self.rounds * self.recipe.epochs
        return Progress(PHASE, done, total, {"round": round_index + 1}, model=snapshot)


def count_effective_steps(sample_count: int, recipe: Recipe) -> float:
    """‖a_k‖₁: by how many plain gradients a client of `sample_count` samples has moved, θ_t - θ_k = η Σ_j a_kj g_j.

    With J steps at a constant rate and momentum β it is [J - β (1 - β^J) / (1 - β)] / (1 - β) (Wang et al., NeurIPS
    2020), and J without momentum. Weight decay counts as a part of the gradient. Computed as the distance that SGD
    moves by gradients that are all 1.
    """
    steps = math.ceil(sample_count / recipe.batch_size)
    distance = 0.0
    velocity = 0.0
    for epoch in range(recipe.epochs):
        for _ in range(steps):
            velocity = recipe.momentum * velocity + 1
            distance += recipe.compute_learning_rate(epoch) / recipe.lr * velocity
    return distance


def subtract_states(end_state: State, start_state: State) -> State:
    """end - start, name by name."""
    return {name: end_state[name] - start_state[name] for name in start_state}
