"""The context of a running method: its clients' private data (client side only), the link, public
data, random streams.

A server step cannot read private data by mistake: inside `with ctx.server():` every access to a client's samples
through `ctx.private` (`PrivateData`) raises. Test images are not here at all.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from ..comm import Link
from ..comm.link import Payload
from ..data import Federation, compute_normalisation
from ..data.transform import InputScale
from ..errors import SAMPLES, RunError
from ..models import (
    Network,
    build,
    copy_model_state,
    load_state,
    parse_architecture,
    prepend_input_normalisation_in_place,
)
from ..models.build import choose_default_width
from ..models.network import Architecture
from ..models.state import ModelState, are_all_finite, copy_model
from ..rng import draw_laplace_noise_of_scale_1, make_torch_generator
from ..tensor_types import SampleIndices
from ..training import ClientModels, EpochProgress, Recipe, iterate_training_of_clients_in_place
from ..training.backend import BackendChoice
from ..training.local import TrainingOption
from ..training.loop import LabelledSamples, Shard
from ..value_types import ClientIndex, WithBlock
from .poison import Poison
from .run_outputs import ClientsAlone, Progress, Steps, report_progress

StateByClient = Mapping[ClientIndex, ModelState]
SampleCountPerClient = list[int]  # n_k of each client
# A requirement of a method.
Need = Literal["public", "one architecture", "images"]


# -------------------------------------------------------------------------------------------------------------- private
# The clients' samples, which no server step can read.


class PrivateData:
    """The clients' samples, on the device; client side only.

    Each client's shard is split once into a training part and a held-out part. `train(k)`,
    `held_out(k)` and `everything(k)` return `(x [n, ...], y [n])`. They raise RuntimeError while a
    server step runs.

    holdout: the held-out share of each shard
    poison, poisoned: the labels of the clients `poisoned` are flipped if `poison` is of that kind
    data_noise: scale of the Laplace noise, drawn from `stream`, that is added to all samples once; 0 for none
    """

    def __init__(
        self,
        federation: Federation,
        holdout: float,
        device: torch.device,
        dtype: torch.dtype,
        poison: Poison = Poison(),  # noqa: B008  (frozen)
        poisoned: Sequence[int] = (),
        data_noise: float = 0.0,
        stream: torch.Generator | None = None,
    ) -> None:
        samples = federation.dataset.x_train
        if data_noise:
            assert stream is not None
            samples = samples.double() + data_noise * draw_laplace_noise_of_scale_1(
                samples.shape, stream
            )
        self._x = samples.to(device, dtype)
        labels = federation.dataset.y_train.to(device)
        poisoned_shards = [federation.shards[k] for k in poisoned]
        self._y = poison.copy_labels_with_shards_flipped(
            labels, poisoned_shards, federation.classes
        )
        self._train = []
        self._held_out = []
        for train_rows, held_out_rows in federation.split(holdout):
            self._train.append(train_rows)
            self._held_out.append(held_out_rows)
        self.locked = False
        self.held_out_used = False  # whether the method has asked for held-out samples

    def _select_samples(self, sample_indices: SampleIndices) -> LabelledSamples:
        if self.locked:
            raise RuntimeError("A server step touched a client's private samples.")
        sample_indices = sample_indices.to(self._y.device)
        return LabelledSamples(self._x[sample_indices], self._y[sample_indices])

    def train(self, client: ClientIndex) -> LabelledSamples:
        return self._select_samples(self._train[client])

    def held_out(self, client: ClientIndex) -> LabelledSamples:
        self.held_out_used = True
        return self._select_samples(self._held_out[client])

    def everything(self, client: ClientIndex) -> LabelledSamples:
        self.held_out_used = True
        rows = torch.cat([self._train[client], self._held_out[client]])
        return self._select_samples(rows.sort().values)

    def sizes(self, part: Literal["train", "held_out"] = "train") -> SampleCountPerClient:
        """Return the number of samples in each client's `train` or `held_out` part. A server step
        may read it, too.
        """
        client_rows = self._train if part == "train" else self._held_out
        return [len(rows) for rows in client_rows]


class Context:
    """The context of one run of one method, see the docstring of this file. `studies` makes it."""

    def __init__(
        self,
        federation: Federation,
        *,
        architectures: Sequence[Architecture],
        recipe: Recipe,
        seed: int,
        holdout: float = 0.1,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        backend: BackendChoice = "auto",
        init: Literal["same", "different"] = "same",
        scale: InputScale = "none",
        poison: str = "none",
        recall: Callable[[], list[dict[str, Tensor]] | None] = lambda: None,
        remember: Callable[[ClientModels], None] = lambda clients: None,
        train: Callable[[list[Network], list[Shard]], Iterator[EpochProgress]] | None = None,
    ) -> None:
        self.device = torch.device(device)
        self.dtype = dtype
        self.seed = seed
        self.recipe = recipe
        self.backend = backend
        self.init = init
        self.clients_count = federation.clients
        self.ids = list(federation.ids)  # the clients' numbers in the whole federation
        self.architectures = list(architectures[: self.clients_count])
        # The architectures of absent clients, which get the initial model and nothing else.
        self._absent_architectures = architectures[self.clients_count :]
        self.classes = federation.classes
        self.input_shape = federation.dataset.input_shape
        self.kind = SAMPLES[len(self.input_shape)]  # "images", "recordings" or "feature rows"
        public = federation.dataset.x_public
        if public is None:
            public = federation.dataset.x_train[:0]  # no samples
        self.public = public.to(self.device, dtype)
        self.poison = Poison.parse(poison, self.clients_count)
        self.poisoned = self.poison.choose_poisoned_clients(self.clients_count, seed)
        self.private = PrivateData(
            federation,
            holdout,
            self.device,
            dtype,
            self.poison,
            self.poisoned,
            recipe.data_noise,
            self.generator("data noise"),
        )
        self.link = Link(self.clients_count, len(self._absent_architectures))
        self._recall = recall
        self._remember = remember
        self._train = train or self.train
        # The mean and deviation by which the networks' first layer normalises its input; None if it does not.
        self._scale = compute_normalisation(scale, federation.dataset.x_train)
        self.server_steps = 0
        self._initial_models: dict[tuple, Network] = {}

    # ------------------------------------------------------------------ the federation
    def has(self, requirement: Need) -> bool:
        """Whether this run meets `requirement`, a key of `base.NEEDS`."""
        offers = {
            "public": len(self.public) > 0,
            "one architecture": len(set(self.architectures)) == 1,
            "images": self.kind == "images",
        }
        return offers[requirement]

    @property
    def sizes(self) -> SampleCountPerClient:
        """n_k, the number of samples in each client's training part."""
        return self.private.sizes()

    @property
    def largest_client(self) -> ClientIndex:
        """The client with the most samples; the first one if there are several."""
        return self.sizes.index(max(self.sizes))

    def generator(self, *names: str | int) -> torch.Generator:
        """Make the random stream `names` of this run's seed."""
        return make_torch_generator(self.seed, *names)

    @contextmanager
    def server(self) -> WithBlock:
        """Mark the server part. Inside the block, reading private data raises RuntimeError."""
        self.server_steps += 1
        self.private.locked = True
        try:
            yield
        finally:
            self.private.locked = False

    # ------------------------------------------------------------------ models
    def initial_model(
        self, client: ClientIndex = 0, architecture: Architecture | None = None, *stream_names: str
    ) -> Network:
        """Return the untrained model of `client`: the server's common one, or, with
        init="different", its own.

        architecture: replaces the client's architecture
        stream_names: the beginning of the random stream's name; "init", the architecture and, with init="different",
            the client follow
        """
        architecture = architecture or self.architectures[client]
        client_ids = () if self.init == "same" else (self.ids[client],)
        key = (architecture, *stream_names, *client_ids)
        if key not in self._initial_models:
            stream = self.generator(*stream_names, "init", architecture[0], *client_ids)
            self._initial_models[key] = self.build(architecture, stream)
        return copy_model(self._initial_models[key])

    def build(self, architecture: Architecture, stream: torch.Generator) -> Network:
        """Build an untrained network for images in [0, 1]. Its first layer normalises them by the
        run's `scale`.
        """
        name, input_shape, classes, width = architecture
        model = build(
            name,
            input_shape,
            classes,
            width=width,
            generator=stream,
            device=self.device,
            dtype=self.dtype,
        )
        if self._scale:
            model = prepend_input_normalisation_in_place(model, *self._scale)
        return model

    def server_architecture(self, model_text: str = "auto") -> Architecture:
        """Return (name, input_shape, classes, width) of the server's own network.

        model_text: the network's name as a setting has it; "auto" is the first client's
        Raises UsageError if there is no such network, or if it cannot take these samples.
        """
        if model_text == "auto":
            return self.architectures[0]
        return parse_architecture(model_text, self.input_shape, self.classes)

    def is_architecture_of_all_clients(self, server_model_text: str) -> bool:
        """Whether the server's own network has the architecture of all clients."""
        names_and_widths = set()
        for name, _, _, width in (self.server_architecture(server_model_text), *self.architectures):
            names_and_widths.add((name, width or choose_default_width(name, self.input_shape)))
        return len(names_and_widths) == 1

    def new_model(self, state: Mapping[str, Tensor]) -> Network:
        """Make a network of the first client's architecture with the weights `state`."""
        model = self.initial_model()
        load_state(model, state)
        return model

    def send_initial_models(
        self, architectures: Sequence[Architecture] = (), *stream_names: str
    ) -> list[Network]:
        """Send the initial model to every client, absent ones too (phase "initial model"), and
        return the clients' models.

        With init="different" each client draws its own, and nothing is sent.

        architectures, stream_names: as for `initial_model`
        """
        kinds = architectures or self.architectures
        models = [self.initial_model(k, kind, *stream_names) for k, kind in enumerate(kinds)]
        if self.init != "same":
            return models
        for k, model in enumerate(models):
            load_state(model, self.link.down(k, copy_model_state(model), phase="initial model"))
        for k, kind in enumerate(self._absent_architectures, self.clients_count):
            if architectures:
                kind = architectures[0]
            state = copy_model_state(self.initial_model(0, kind, *stream_names))
            self.link.down(k, state, phase="initial model")
        return models

    # ------------------------------------------------------------------ local training
    def local_training(self) -> Steps[ClientModels]:
        """Run the client part that one-shot methods share: each client gets the initial model and
        trains it alone.

        The trained models are cached by the run's settings. A run that finds them in the cache has
        the same results as one that trains. They are cached before poisoned clients change theirs.
        """
        models = self.send_initial_models()
        epochs = self.recipe.epochs
        starts = self.copy_initial_states_of_poisoned_clients(models)
        states = self._recall()
        if states is not None:
            for model, state in zip(models, states, strict=True):
                load_state(model, state)
            clients = ClientModels(models)
            yield Progress("local training", epochs, epochs, {"remembered": 1})
            return self.replace_poisoned_models(clients, starts)
        yield Progress("local training", 0, epochs)
        shards: list[Shard] = [self.private.train(k) for k in range(self.clients_count)]
        ticks = self._train(models, shards)
        yield from report_progress(
            "local training", ticks, lambda: ClientsAlone(ClientModels(models))
        )
        clients = ClientModels(models)
        self.check_finite(clients)
        self._remember(clients)
        return self.replace_poisoned_models(clients, starts)

    def train(
        self, models: Sequence[Network], shards: Sequence[Shard], **options: TrainingOption
    ) -> Iterator[EpochProgress]:
        """Train every client alone, by the run's recipe. `models` are changed in place.

        options: arguments of `iterate_training_of_clients_in_place` in place of the run's
        """
        options.setdefault("recipe", self.recipe)
        options.setdefault("seed", self.seed)
        options.setdefault("ids", self.ids)
        options.setdefault("backend", self.backend)
        return iterate_training_of_clients_in_place(models, shards, **options)

    def further_training(
        self, phase: str, models: Sequence[Network], **options: TrainingOption
    ) -> Steps[ClientModels]:
        """Train every client's model in `models` further, and return the models as they are sent."""
        starts = self.copy_initial_states_of_poisoned_clients(models)
        shards = [self.private.train(k) for k in range(self.clients_count)]
        yield from report_progress(phase, self.train(models, shards, **options))
        clients = ClientModels(models)
        self.check_finite(clients)
        return self.replace_poisoned_models(clients, starts)

    def copy_initial_states_of_poisoned_clients(self, models: Sequence[Network]) -> StateByClient:
        """Copy the poisoned clients' states before they train, for `replace_poisoned_models`. Empty if no
        client changes its model.
        """
        if not self.poison.changes_models:
            return {}
        return {k: copy_model_state(models[k]) for k in self.poisoned}

    def replace_poisoned_models(
        self, clients: ClientModels, initial_states: StateByClient
    ) -> ClientModels:
        """Return the clients' models as they are sent: those of poisoned clients are changed.

        initial_states: what `copy_initial_states_of_poisoned_clients` returned before the training
        """
        if not initial_states:
            return clients
        states = []
        for k in range(len(clients)):
            if k in initial_states:
                states.append(self.make_upload(k, initial_states[k], clients.module(k)))
            else:
                states.append(clients.state(k))
        return clients.with_states(states)

    def make_upload(
        self, client: ClientIndex, start_state: Mapping[str, Tensor], trained_model: nn.Module
    ) -> ModelState:
        """Make the state that `client` sends: that of its `trained_model`, or a poisoned one.

        start_state: the model's state before the training
        """
        end = copy_model_state(trained_model)
        if client not in self.poisoned or not self.poison.changes_models:
            return end
        parameters = [name for name, _ in trained_model.named_parameters()]
        return self.poison.make_poisoned_state(start_state, end, parameters)

    def collect(
        self, step_name: str, make_message: Callable[[int], Payload], phase: str = ""
    ) -> Steps[list[Payload]]:
        """Send `make_message(k)` from each client k, and return what the server receives.

        step_name: the name of this step in the progress
        phase: its name in the ledger; "" for `step_name`
        """
        received = []
        for k in range(self.clients_count):
            received.append(self.link.up(k, make_message(k), phase=phase or step_name))
            yield Progress(step_name, k + 1, self.clients_count)
        return received

    def one_upload(self) -> Steps[ClientModels]:
        """Run the client part of most one-shot methods: `local_training`, then `upload`."""
        clients = yield from self.local_training()
        return self.upload(clients)

    def upload(self, clients: ClientModels, members: Sequence[int] | None = None) -> ClientModels:
        """Send each client's model to the server (phase "local models"), and return what the server
        receives.

        members: the clients that send, in this order; None for all
        """
        if members is None:
            members = range(len(clients))
        received = {k: self.link.up(k, clients.state(k), phase="local models") for k in members}
        modules = [clients.module(k) for k in received]
        return ClientModels(modules).with_states(list(received.values()))

    def check_finite(self, clients: ClientModels) -> None:
        """Raise RunError if a client's weights are not finite (its training diverged)."""
        # First one check of all clients, since every check waits for the graphics card.
        if torch.stack([are_all_finite(module.parameters()) for module in clients.modules]).all():
            return
        rate = f"lr={self.recipe.lr:g}"
        for k, module in enumerate(clients.modules):
            check_training_is_finite(module.parameters(), f"Local training of client {k}", rate)


def check_training_is_finite(
    numbers_to_check: Iterable[Tensor], training_name: str, learning_rate_text: str
) -> None:
    """Raise RunError if `numbers_to_check` are not all finite.

    The message says that `training_name` diverged with `learning_rate_text`, such as "lr=0.1".
    """
    if not are_all_finite(numbers_to_check):
        raise RunError(
            f"{training_name} diverged with {learning_rate_text}: its numbers are no longer "
            "finite; use a smaller rate."
        )
