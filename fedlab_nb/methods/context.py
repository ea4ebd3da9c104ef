"""What a running method can reach: its clients' private data (client side only), the link, public data, random streams.

`ctx.private` is the trip-wire (`PrivateData`): inside `with ctx.server():` any touch of a client's samples raises, so a
server step that peeks cannot pass unnoticed. Test images are not here at all.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..comm import Link
from ..data import Federation, find_normalisation
from ..errors import SAMPLES, RunError
from ..models import Network, build, load_state, model_state, normalise_inputs, parse_architecture
from ..models.build import choose_default_width
from ..models.network import Architecture
from ..models.state import all_finite, copy_model
from ..rng import draw_laplace_noise, generator
from ..training import ClientModels, Recipe, Tick, train_clients
from ..training.loop import Shard
from .poison import Poison
from .run_outputs import ClientsAlone, Progress, Steps, report_progress

# -------------------------------------------------------------------------------------------------------------- private
# The clients' samples, and the trip-wire: no server step can read them.


class PrivateData:
    """The clients' samples, on the device; client side only.

    Each client's shard is split once into a training part and a held-out part (`holdout`, a share). `train(k)`,
    `held_out(k)` and `everything(k)` give `(x [n, ...], y [n])`; they raise RuntimeError while a server step runs.
    The labels of `poisoned` clients are flipped where the `poison` is one of labels. With `data_noise` every sample is
    seen with Laplace noise of this scale, drawn once from `stream`, so that nothing ever reads it without.
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
            samples = samples.double() + data_noise * draw_laplace_noise(samples.shape, stream)
        self._x = samples.to(device, dtype)
        labels = federation.dataset.y_train.to(device)
        poisoned_shards = [federation.shards[k] for k in poisoned]
        self._y = poison.flip_labels(labels, poisoned_shards, federation.classes)
        self._train = []
        self._held_out = []
        for train_rows, held_out_rows in federation.split(holdout):
            self._train.append(train_rows)
            self._held_out.append(held_out_rows)
        self.locked = False
        self.held_out_used = False  # whether the method has asked for held-out samples

    def _select_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        if self.locked:
            raise RuntimeError("A server step touched a client's private samples.")
        rows = rows.to(self._y.device)
        return self._x[rows], self._y[rows]

    def train(self, client: int) -> tuple[Tensor, Tensor]:
        return self._select_rows(self._train[client])

    def held_out(self, client: int) -> tuple[Tensor, Tensor]:
        self.held_out_used = True
        return self._select_rows(self._held_out[client])

    def everything(self, client: int) -> tuple[Tensor, Tensor]:
        self.held_out_used = True
        return self._select_rows(
            torch.cat([self._train[client], self._held_out[client]]).sort().values
        )

    def sizes(self, part: str = "train") -> list[int]:
        """Samples of each client in its `train` or `held_out` part (numbers, not samples: always allowed)."""
        client_rows = self._train if part == "train" else self._held_out
        return [len(rows) for rows in client_rows]


class Context:
    """One run of one method. Made by `study`; see the module docstring."""

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
        backend: str = "auto",
        init: str = "same",
        scale: str = "none",
        poison: str = "none",
        recall: Callable[[], list[dict[str, Tensor]] | None] = lambda: None,
        remember: Callable[[ClientModels], None] = lambda clients: None,
        train: Callable[[list[Network], list[Shard]], Iterator[Tick]] | None = None,
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
        # Of absent clients: they get the initial model, and nothing else.
        self._absent_architectures = architectures[self.clients_count :]
        self.classes = federation.classes
        self.input_shape = federation.dataset.input_shape
        self.kind = SAMPLES[len(self.input_shape)]  # "images", "recordings" or "feature rows"
        public = federation.dataset.x_public
        if public is None:
            public = federation.dataset.x_train[:0]  # no samples
        self.public = public.to(self.device, dtype)
        self.poison = Poison.parse(poison, self.clients_count)
        self.poisoned = self.poison.choose_clients(self.clients_count, seed)
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
        self._scale = find_normalisation(
            scale, federation.dataset.x_train
        )  # of the networks' first layer
        self.server_steps = 0
        self._initial_models: dict[tuple, Network] = {}

    # ------------------------------------------------------------------ the federation
    def has(self, need: str) -> bool:
        """Whether this run offers `need` (a key of base.NEEDS)."""
        offers = {
            "public": len(self.public) > 0,
            "one architecture": len(set(self.architectures)) == 1,
            "images": self.kind == "images",
        }
        return offers[need]

    @property
    def sizes(self) -> list[int]:
        """n_k: samples in each client's training part."""
        return self.private.sizes()

    @property
    def largest_client(self) -> int:
        """The client with the most samples; the first of several such."""
        return self.sizes.index(max(self.sizes))

    def generator(self, *names: object) -> torch.Generator:
        """The random stream `names` of this run's seed."""
        return generator(self.seed, *names)

    @contextmanager
    def server(self) -> Iterator[None]:
        """The server part: inside, touching private data raises."""
        self.server_steps += 1
        self.private.locked = True
        try:
            yield
        finally:
            self.private.locked = False

    # ------------------------------------------------------------------ models
    def initial_model(
        self, k: int = 0, architecture: Architecture | None = None, *names: str
    ) -> Network:
        """The untrained model of client k: the server's common one, or, with init="different", the client's own.

        `architecture`: instead of the client's; `names`: of the random stream, before "init".
        """
        architecture = architecture or self.architectures[k]
        client = () if self.init == "same" else (self.ids[k],)
        key = (architecture, *names, *client)
        if key not in self._initial_models:
            stream = self.generator(*names, "init", architecture[0], *client)
            self._initial_models[key] = self.build(architecture, stream)
        return copy_model(self._initial_models[key])

    def build(self, architecture: Architecture, stream: torch.Generator) -> Network:
        """A network for images in [0, 1], which its first layer brings to the run's scale."""
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
            model = normalise_inputs(model, *self._scale)
        return model

    def server_architecture(self, model: str = "auto") -> Architecture:
        """(name, input_shape, classes, width) of the server's own network: `model`, or for "auto" the first client's.

        UsageError if there is no such network or it cannot take these samples.
        """
        if model == "auto":
            return self.architectures[0]
        return parse_architecture(model, self.input_shape, self.classes)

    def has_clients_architecture(self, model: str) -> bool:
        """Whether the server's own network is of the one architecture that all clients have."""
        kinds = set()
        for name, _, _, width in (self.server_architecture(model), *self.architectures):
            kinds.add((name, width or choose_default_width(name, self.input_shape)))
        return len(kinds) == 1

    def new_model(self, state: Mapping[str, Tensor]) -> Network:
        """A network of the first client's architecture with the weights `state`."""
        model = self.initial_model()
        load_state(model, state)
        return model

    def send_initial_models(
        self, architectures: Sequence[Architecture] = (), *names: str
    ) -> list[Network]:
        """Every client gets the initial model (phase "initial model"); returns the clients' models.

        With init="different" each client draws its own and nothing is sent. Absent clients get theirs, too.
        `architectures`, `names`: as in `initial_model`.
        """
        kinds = architectures or self.architectures
        models = [self.initial_model(k, kind, *names) for k, kind in enumerate(kinds)]
        if self.init != "same":
            return models
        for k, model in enumerate(models):
            load_state(model, self.link.down(k, model_state(model), phase="initial model"))
        for k, kind in enumerate(self._absent_architectures, self.clients_count):
            if architectures:
                kind = architectures[0]
            state = model_state(self.initial_model(0, kind, *names))
            self.link.down(k, state, phase="initial model")
        return models

    # ------------------------------------------------------------------ local training
    def local_training(self) -> Steps[ClientModels]:
        """Client part that the one-shot methods share: initial model down, then each client trains alone on its
        training part.

        Done once for a setting and cached; a cached training is indistinguishable from a fresh one. What is cached is
        what each client has trained; a poisoned client changes its model afterwards.
        """
        models = self.send_initial_models()
        epochs = self.recipe.epochs
        starts = self.copy_poisoned_starts(models)
        states = self._recall()
        if states is not None:
            for model, state in zip(models, states, strict=True):
                load_state(model, state)
            clients = ClientModels(models)
            yield Progress("local training", epochs, epochs, {"remembered": 1})
            return self.apply_poison(clients, starts)
        yield Progress("local training", 0, epochs)
        shards: list[Shard] = [self.private.train(k) for k in range(self.clients_count)]
        ticks = self._train(models, shards)
        yield from report_progress(
            "local training", ticks, lambda: ClientsAlone(ClientModels(models))
        )
        clients = ClientModels(models)
        self.check_finite(clients)
        self._remember(clients)
        return self.apply_poison(clients, starts)

    def train(
        self, models: Sequence[Network], shards: Sequence[Shard], **options: Any
    ) -> Iterator[Tick]:
        """Every client trains alone, by the run's recipe; `models` are changed in place.

        `options`: of `train_clients`, where they differ from the run's.
        """
        options.setdefault("recipe", self.recipe)
        options.setdefault("seed", self.seed)
        options.setdefault("ids", self.ids)
        options.setdefault("backend", self.backend)
        return train_clients(models, shards, **options)

    def further_training(
        self, phase: str, models: Sequence[Network], **options: Any
    ) -> Steps[ClientModels]:
        """Every client trains its model of `models`, by `train`; all of them as they are sent."""
        starts = self.copy_poisoned_starts(models)
        shards = [self.private.train(k) for k in range(self.clients_count)]
        yield from report_progress(phase, self.train(models, shards, **options))
        clients = ClientModels(models)
        self.check_finite(clients)
        return self.apply_poison(clients, starts)

    def copy_poisoned_starts(self, models: Sequence[Network]) -> dict[int, dict[str, Tensor]]:
        """The states of the untrained models whose poisoned clients will change what they send.

        They are what `apply_poison` starts from; empty where no client changes its model.
        """
        if not self.poison.changes_models:
            return {}
        return {k: model_state(models[k]) for k in self.poisoned}

    def apply_poison(
        self, clients: ClientModels, starts: Mapping[int, dict[str, Tensor]]
    ) -> ClientModels:
        """The clients' models as they are sent: trained from `starts`, those of poisoned clients are changed."""
        if not starts:
            return clients
        states = []
        for k in range(len(clients)):
            if k in starts:
                states.append(self.make_upload(k, starts[k], clients.module(k)))
            else:
                states.append(clients.state(k))
        return clients.with_states(states)

    def make_upload(
        self, client: int, start: Mapping[str, Tensor], model: nn.Module
    ) -> dict[str, Tensor]:
        """The state that client k sends of a `model` that it has trained from `start`: changed, if it is poisoned."""
        end = model_state(model)
        if client not in self.poisoned or not self.poison.changes_models:
            return end
        parameters = [name for name, _ in model.named_parameters()]
        return self.poison.change_state(start, end, parameters)

    def collect(
        self, what: str, message: Callable[[int], Any], phase: str = ""
    ) -> Steps[list[Any]]:
        """Each client sends `make_message(k)`; returns what the server receives.

        `what`: the name of this step in the progress; `phase`: in the ledger, where it is another.
        """
        received = []
        for k in range(self.clients_count):
            received.append(self.link.up(k, message(k), phase=phase or what))
            yield Progress(what, k + 1, self.clients_count)
        return received

    def one_upload(self) -> Steps[ClientModels]:
        """Client part and link of most one-shot methods: `local_training`, then `upload`."""
        return self.upload((yield from self.local_training()))

    def upload(self, clients: ClientModels, members: Sequence[int] | None = None) -> ClientModels:
        """Each client's model goes up, once (phase "local models"); the models as the server receives them.

        `members`: only theirs, in this order (None: everybody's).
        """
        if members is None:
            members = range(len(clients))
        received = {k: self.link.up(k, clients.state(k), phase="local models") for k in members}
        modules = [clients.module(k) for k in received]
        return ClientModels(modules).with_states(list(received.values()))

    def check_finite(self, clients: ClientModels) -> None:
        """Raise RunError if a client's weights are not finite (its training diverged)."""
        # One question for all clients first: on a graphics card each one waits for the device.
        if torch.stack([all_finite(module.parameters()) for module in clients.modules]).all():
            return
        rate = f"lr={self.recipe.lr:g}"
        for k, module in enumerate(clients.modules):
            check_finite(module.parameters(), f"Local training of client {k}", rate)


def check_finite(numbers: Iterable[Tensor], what: str, rate: str) -> None:
    """RunError if `numbers` are not finite: it says that `what`, with the learning rate `rate`, diverged."""
    if not all_finite(numbers):
        raise RunError(
            f"{what} diverged with {rate}: its numbers are no longer finite; use a smaller rate."
        )
