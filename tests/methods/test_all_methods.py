"""What holds for every registered method: trip-wire, bytes, determinism, untouched clients, needs, knobs."""

import dataclasses
import functools
import json
from contextlib import contextmanager

import method_runs
import numpy as np
import pytest
import torch
from method_runs import in_study, small

from fedlab_nb.comm import Ledger, Link, count_payload_bytes, serialise_payload
from fedlab_nb.data import Dataset, Federation
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS, fens
from fedlab_nb.methods.base import NEEDS
from fedlab_nb.methods.context import Context
from fedlab_nb.methods.run_outputs import check_report_type_and_copy_arrays
from fedlab_nb.studies import compare, experiment, job, run
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.studies.settings import Settings, make_plans
from fedlab_nb.studies.setups import CLASSROOM, SETUPS
from fedlab_nb.studies.store import TrainedClients

NO_SERVER = {"local", "centralized"}
context = functools.partial(method_runs.context, share=0.3)


class Tripwire:
    """Stands in for the private tensors while a server step runs."""

    def __getattr__(self, name):
        raise AssertionError(f"a server step touched private data ({name})")

    def __getitem__(self, rows):
        raise AssertionError("a server step touched private data")


class Guarded(torch.Tensor):
    """Samples that a client took: an ordinary tensor, but in a server step only its size may be asked for."""

    locked = False
    SIZES = {
        torch.Tensor.shape.__get__,
        torch.Tensor.device.__get__,
        torch.Tensor.dtype.__get__,
        torch.Tensor.__len__,
    }

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if cls.locked and function not in cls.SIZES:
            raise AssertionError(f"a server step touched a client's samples ({function})")
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))


def cheap(name, **more):
    return METHODS[name].configure(**small(name), **more)


@functools.cache
def once(name):
    """The method's model in the usual setting, and its clients with their states right after local training."""
    remembered = {}

    def remember(clients):
        remembered["clients"] = clients
        remembered["states"] = [clients.state(k) for k in range(len(clients))]

    return exhaust_generator(cheap(name).run(context(remember=remember))), remembered


# ------------------------------------------------------------------------------------------------ what the server sees
@pytest.mark.parametrize("name", METHODS)
def test_no_server_step_reads_private_samples(name, monkeypatch):
    """Neither from the federation nor from what a client took of it before."""
    ctx = context()
    private, real = ctx.private, Context.server
    rows = private._select_samples
    monkeypatch.setattr(
        private,
        "_select_samples",
        lambda wanted: tuple(t.as_subclass(Guarded) for t in rows(wanted)),
    )

    @contextmanager
    def server(self):
        samples = private._x, private._y
        with real(self):
            private._x = private._y = Tripwire()
            Guarded.locked = True
            try:
                yield
            finally:
                Guarded.locked = False
                private._x, private._y = samples

    monkeypatch.setattr(Context, "server", server)
    exhaust_generator(cheap(name).run(ctx))
    assert name in NO_SERVER or ctx.server_steps > 0


def test_the_trip_wire_trips(monkeypatch):
    ctx = context()
    with ctx.server(), pytest.raises(RuntimeError, match="server step touched"):
        ctx.private.train(0)
    x, y = (t.as_subclass(Guarded) for t in ctx.private.train(0))
    monkeypatch.setattr(Guarded, "locked", True)
    assert len(x) == y.shape[0] == ctx.sizes[0]
    for touch in (
        lambda: x[0],
        lambda: x.mean(),
        lambda: torch.bincount(y),
        lambda: float(x.sum()),
        x.tolist,
    ):
        with pytest.raises(AssertionError, match="server step touched"):
            touch()


@pytest.mark.parametrize("name", METHODS)
def test_ledger_counts_what_was_really_sent(name, monkeypatch):
    """Every payload that passes, weighed by its serialised size, adds up to the ledger, and nothing else is in it."""
    ctx = context()
    weighed, entered = {"up": 0, "down": 0}, {"up": 0, "down": 0}
    up, down, broadcast, add, record_round_bytes = (
        Link.up,
        Link.down,
        Link.broadcast,
        Ledger.add,
        fens.training.record_bytes_of_round,
    )

    def count(direction, times, payload):
        assert count_payload_bytes(payload) == len(serialise_payload(payload))
        weighed[direction] += times * len(serialise_payload(payload))

    def rounds(
        ledger, members, message
    ):  # FENS enters a tiny round at once, for all clients that take part
        for direction in ("down", "up"):
            count(direction, len(members), message)
        record_round_bytes(ledger, members, message)

    def counted(self, client, direction, phase, n, messages=1):
        entered[direction] += n
        return add(self, client, direction, phase, n, messages)

    monkeypatch.setattr(Link, "up", lambda s, k, p, **o: (count("up", 1, p), up(s, k, p, **o))[1])
    monkeypatch.setattr(
        Link, "down", lambda s, k, p, **o: (count("down", 1, p), down(s, k, p, **o))[1]
    )
    monkeypatch.setattr(
        Link, "broadcast", lambda s, p, **o: (count("down", 3, p), broadcast(s, p, **o))[1]
    )
    monkeypatch.setattr(fens.training, "record_bytes_of_round", rounds)
    monkeypatch.setattr(Ledger, "add", counted)
    exhaust_generator(cheap(name).run(ctx))
    ledger = ctx.link.ledger
    assert (
        (ledger.up, ledger.down)
        == (entered["up"], entered["down"])
        == (weighed["up"], weighed["down"])
    )


# ------------------------------------------------------------------------------------------------ results
@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_digits_and_global_stream_untouched(name):
    state = torch.get_rng_state()
    x = torch.rand(20, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    again = exhaust_generator(cheap(name).run(context()))
    assert torch.equal(once(name)[0].logits(x), again.logits(x))
    assert torch.equal(state, torch.get_rng_state())


@pytest.fixture(scope="module")
def in_company():
    """All methods on one federation, the clients trained once for all of them."""
    return {o.method: o for o in compare(list(METHODS), **in_study(*METHODS))}


@pytest.mark.parametrize("name", METHODS)
def test_alone_in_company_cached_or_not_gives_the_same_digits(name, in_company):
    setting = in_study(name)
    there, alone, again = in_company[name], run(name, cache=False, **setting), run(name, **setting)
    assert again.cached and not alone.cached
    assert (
        alone.accuracy == there.accuracy == again.accuracy
        and alone.ledger == there.ledger == again.ledger
    )
    assert np.array_equal(alone.test_features, there.test_features)
    assert np.array_equal(again.test_features, there.test_features)


@pytest.mark.parametrize("name", METHODS)
def test_a_result_predicts_survives_the_store_and_leaves_the_shared_clients_as_they_were(name):
    """Plain values are the same after JSON, arrays hold numbers, and the whole is of the type that is declared."""
    model, remembered = once(name)
    x, y = torch.rand(20, 1, 8, 8), torch.arange(20) % 10
    assert (
        model.logits(x).shape == (20, 10)
        and model.features(x).shape[0] == 20
        and model.features(x).dim() == 2
    )
    assert isinstance(model.parameters, int) and model.parameters > 0
    report = check_report_type_and_copy_arrays(model.measured(x, y), METHODS[name].report)
    values = report.numbers()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert all(
        array.dtype.kind in "biuf" and array.flags.owndata for array in report.arrays().values()
    )
    again = METHODS[name].report(**values, **report.arrays())
    assert (
        type(again) is METHODS[name].report
        and again.get_fields_that_are_not_none().keys()
        == report.get_fields_that_are_not_none().keys()
    )
    for k, before in enumerate(remembered.get("states", [])):
        after = remembered["clients"].state(k)
        assert all(torch.equal(before[n], after[n]) for n in before)


# ------------------------------------------------------------------------------------------------ needs
def rows_of_features():
    stream = torch.Generator().manual_seed(0)
    x, y = torch.randn(90, 7, generator=stream), torch.arange(90) % 3
    data = Dataset("rows", x, y, x[:9], y[:9], x[:20], ("a", "b", "c"), "rows")
    return Federation(data, tuple(torch.arange(90).split(30)), "dirichlet", 1.0, 0, 0, 1, "")


def without(need):
    """A setting that lacks `need`."""
    if need == "images":
        return context(federation=rows_of_features())
    if need == "one architecture":
        return context(models=("mlp", "cnn"))
    ctx = context()
    ctx.public = ctx.public[:0]
    return ctx


@pytest.mark.parametrize("need", NEEDS)
@pytest.mark.parametrize("name", METHODS)
def test_what_is_needed_is_said_at_once_and_nothing_else_is_needed(name, need):
    """One sentence before any work, or a run to its end."""
    ctx, method = without(need), cheap(name)
    assert not ctx.has(need)
    try:
        method.validate(ctx)
    except UsageError as error:
        sentence = str(error)
        assert (
            sentence.endswith(".")
            and ". " not in sentence
            and "\n" not in sentence
            and len(sentence) < 300
        )
        assert need not in METHODS[name].info.needs or METHODS[name].info.title in sentence
        assert ctx.link.ledger.total == 0 and ctx.server_steps == 0
    else:
        assert need not in METHODS[name].info.needs
        model = exhaust_generator(method.run(ctx))
        x = torch.zeros(4, *ctx.input_shape)
        assert model.logits(x).shape == (4, ctx.classes)


# ------------------------------------------------------------------------------------------------ knobs


@pytest.mark.parametrize("name", METHODS)
def test_knobs_and_words(name):
    cls = METHODS[name]
    assert cls.info.title and cls.info.paper and cls.info.help and cls.info.traffic
    assert cls.configure() == cls()
    convolutional = cls.configure(convolutions=True)
    assert {
        k.name for k in cls.fields() if getattr(convolutional, k.name) != k.default
    } == cls.convolutional.keys()
    for knob in cls.fields():
        assert knob.label and knob.help
        assert knob.convert_and_check(name, knob.default) == knob.default
    for name, value in cls.convolutional.items():  # what is given wins
        assert getattr(cls.configure(convolutions=True, **{name: 2 * value}), name) == 2 * value
    with pytest.raises(UsageError):
        cls.configure(no_such_knob=1)


# ------------------------------------------------------------------------------------------------ set-ups
# Every method of every set-up from end to end: fewer steps and thinner networks, everything else as declared.

MIXED, ONE = "resnet18:2,cnn:2", "vgg9:4"
NARROW = {
    "fens": "resnet8:2",
    "fedet": MIXED,
    "coboosting": "cnn3:4",
    "fusefl": "resnet18:2",
    "fedlpa": "cnn:4",
}


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Noise in the form of CIFAR-10: 48 training, 20 test and 24 public images, four classes."""
    path = tmp_path_factory.mktemp("data") / "tiny.npz"
    stream = np.random.default_rng(0)

    def noise(n):
        return stream.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)

    labels = {"y_train": np.arange(48) % 4, "y_test": np.arange(20) % 4}
    np.savez(path, x_train=noise(48), x_test=noise(20), x_public=noise(24), **labels)
    return str(path)


@pytest.mark.parametrize("preset", [name for name in SETUPS if name != CLASSROOM])
@pytest.mark.slow
def test_every_method_runs_in_its_set_up(images, preset, monkeypatch):
    monkeypatch.setattr(experiment, "_trained_clients", TrainedClients())
    # With oneDNN, the backward pass of PyTorch 2.13 and 2.14 writes beyond its memory, on some processors, in residual
    # networks as narrow as these.
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    for model in (MIXED, ONE) if preset == "fedet" else (NARROW[preset],):
        names = [
            n
            for n in SETUPS[preset].methods
            if model != ONE or "one architecture" in METHODS[n].info.needs
        ]
        if model == MIXED:
            names = [n for n in names if "one architecture" not in METHODS[n].info.needs]
        setting = {
            "dataset": images,
            "preset": preset,
            "clients": 2,
            "alpha": 1.0,
            "epochs": 1,
            "model": model,
        }
        knobs = {f"{name}.{key}": value for name in names for key, value in small(name).items()}
        works = {work.method_name: work for work in make_plans(Settings.make(**setting), names)}
        done = {}
        for event in job(names, cache=False, **setting, **knobs):
            assert event.error is None, (event.method, event.error)
            if event.outcome is not None:
                done[event.method] = event.outcome
        assert list(done) == names
        for name, outcome in done.items():
            assert outcome.recipe == works[name].recipe and 0 <= outcome.accuracy <= 1
            options = dataclasses.asdict(works[name].method)
            assert outcome.options == {**options, **small(name)}, name
