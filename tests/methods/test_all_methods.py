"""What holds for every registered method: trip-wire, bytes, determinism, untouched clients, presets."""

import dataclasses

import numpy as np
import pytest
import torch

from fedlab_nb.comm import size
from fedlab_nb.data import federate
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.methods.context import Context
from fedlab_nb.training import Recipe

CHEAP = {"rounds": 2, "iterations": 5, "epochs": 2, "steps": 20}
NO_SERVER = {"local", "centralized"}


class Tripwire:
    """Stands in for the private tensors while a server step runs."""

    def __getattr__(self, name):
        raise AssertionError(f"a server step touched private data ({name})")

    def __getitem__(self, rows):
        raise AssertionError("a server step touched private data")


def cheap(name):
    known = {k.name: k for k in METHODS[name].fields()}
    return METHODS[name].preset(**{k: v for k, v in CHEAP.items() if k in known})


def context(clients=3, model="mlp", **options):
    federation = federate("digits", alpha=0.5, clients=clients, seed=0)
    shape = federation.dataset.input_shape
    return Context(
        federation, architectures=[(model, shape, 10, None)] * clients, recipe=Recipe(epochs=2), seed=0, **options
    )


def finish(generator):
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            return stop.value


@pytest.mark.parametrize("name", METHODS)
def test_no_server_step_reads_private_samples(name, monkeypatch):
    ctx = context()
    private, real = ctx.private, Context.server

    from contextlib import contextmanager

    @contextmanager
    def server(self):
        kept = private._x, private._y
        with real(self):
            private._x = private._y = Tripwire()
            try:
                yield
            finally:
                private._x, private._y = kept

    monkeypatch.setattr(Context, "server", server)
    finish(cheap(name).run(ctx))
    assert name in NO_SERVER or ctx.server_steps > 0


def test_the_trip_wire_trips():
    ctx = context()
    with ctx.server(), pytest.raises(RuntimeError, match="server step touched"):
        ctx.private.train(0)
    assert len(ctx.private.train(0)[1])


@pytest.mark.parametrize("name", METHODS)
def test_ledger_counts_what_was_really_sent(name, monkeypatch):
    """Every payload that passes, weighed by its serialised size, adds up to the ledger."""
    from fedlab_nb.comm import Ledger, Link, serialise

    ctx = context()
    weighed = {"up": 0, "down": 0}
    up, down, broadcast, add = Link.up, Link.down, Link.broadcast, Ledger.add
    entered = {"up": 0, "down": 0}

    def count(direction, times, payload):
        assert size(payload) == len(serialise(payload))
        weighed[direction] += times * len(serialise(payload))

    monkeypatch.setattr(Link, "up", lambda s, k, p, **o: (count("up", 1, p), up(s, k, p, **o))[1])
    monkeypatch.setattr(Link, "down", lambda s, k, p, **o: (count("down", 1, p), down(s, k, p, **o))[1])
    monkeypatch.setattr(Link, "broadcast", lambda s, p, **o: (count("down", 3, p), broadcast(s, p, **o))[1])

    def counted(self, client, direction, phase, n, messages=1):
        entered[direction] += n
        return add(self, client, direction, phase, n, messages)

    monkeypatch.setattr(Ledger, "add", counted)
    finish(cheap(name).run(ctx))
    ledger = ctx.link.ledger
    assert ledger.up == entered["up"] and ledger.down == entered["down"]
    if (
        name != "fens"
    ):  # enters its aggregator rounds in bulk; tests/methods/test_fens.py compares them with the formula
        assert ledger.up == weighed["up"] and ledger.down == weighed["down"]


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_digits_and_global_stream_untouched(name):
    state = torch.get_rng_state()
    x = torch.rand(20, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    first, second = (finish(cheap(name).run(context())).logits(x) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("name", METHODS)
def test_results_predict_and_have_features(name):
    model = finish(cheap(name).run(context()))
    x = torch.rand(5, 1, 8, 8)
    assert model.logits(x).shape == (5, 10) and model.features(x).shape[0] == 5 and model.features(x).dim() == 2
    assert isinstance(model.parameters, int) and model.parameters > 0
    assert all(isinstance(np.asarray(a), np.ndarray) for a in model.artefacts.values())


@pytest.mark.parametrize("name", METHODS)
def test_the_shared_clients_are_left_as_they_were(name):
    kept = {}

    def remember(clients):
        kept["clients"] = clients
        kept["states"] = [clients.state(k) for k in range(len(clients))]

    finish(cheap(name).run(context(remember=remember)))
    if kept:
        for k, before in enumerate(kept["states"]):
            after = kept["clients"].state(k)
            assert all(torch.equal(before[n], after[n]) for n in before)


@pytest.mark.parametrize("name", METHODS)
def test_knobs_presets_and_words(name):
    cls = METHODS[name]
    assert dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen
    assert cls.info.title and cls.info.paper and cls.info.help and cls.info.traffic and cls.info.leaks
    for preset in ("classroom", "paper"):
        cls.preset(preset)
    for knob in cls.fields():
        assert knob.label and knob.help
        for value in (knob.default, knob.paper):
            assert knob.check(name, value) == value
    with pytest.raises(UsageError):
        cls.preset(no_such_knob=1)
