"""What holds for every registered method: no private data at the server, counted bytes, determinism, needs, knobs."""

import dataclasses
import functools
import json
from contextlib import contextmanager

import method_runs
import numpy as np
import pytest
import torch
from method_runs import make_fast_knobs, make_fast_study_settings

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
from fedlab_nb.studies.store import TrainedClientsCache

NO_SERVER = {"local", "centralized"}
context = functools.partial(method_runs.make_context, share=0.3)


class Tripwire:
    """Stands in for the private tensors while a server step runs."""

    def __getattr__(self, name):
        raise AssertionError(f"a server step touched private data ({name})")

    def __getitem__(self, rows):
        raise AssertionError("a server step touched private data")


class GuardedTensor(torch.Tensor):
    """A client's samples: an ordinary tensor, of which a server step may read the size alone."""

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


def cheap(name, **knobs):
    """The method with knobs that make it fast."""
    return METHODS[name].configure(**make_fast_knobs(name), **knobs)


@functools.cache
def run_once(name):
    """The method's model in the default setting, its clients, and their states right after local training."""
    remembered = {}

    def remember(clients):
        remembered["clients"] = clients
        remembered["states"] = [clients.state(k) for k in range(len(clients))]

    return exhaust_generator(cheap(name).run(context(remember=remember))), remembered


# ------------------------------------------------------------------------------------------------ what the server sees
@pytest.mark.parametrize("name", METHODS)
def test_no_server_step_reads_private_samples(name, monkeypatch):
    """Neither from the federation nor from tensors that a client selected earlier."""
    ctx = context()
    private = ctx.private
    real_server = Context.server
    select_samples = private._select_samples

    def select_guarded_samples(rows):
        return tuple(tensor.as_subclass(GuardedTensor) for tensor in select_samples(rows))

    monkeypatch.setattr(private, "_select_samples", select_guarded_samples)

    @contextmanager
    def server(self):
        samples = private._x, private._y
        with real_server(self):
            private._x = private._y = Tripwire()
            GuardedTensor.locked = True
            try:
                yield
            finally:
                GuardedTensor.locked = False
                private._x, private._y = samples

    monkeypatch.setattr(Context, "server", server)
    exhaust_generator(cheap(name).run(ctx))
    assert name in NO_SERVER or ctx.server_steps > 0


def test_the_trip_wire_trips(monkeypatch):
    ctx = context()
    with ctx.server(), pytest.raises(RuntimeError, match="server step touched"):
        ctx.private.train(0)
    x, y = (t.as_subclass(GuardedTensor) for t in ctx.private.train(0))
    monkeypatch.setattr(GuardedTensor, "locked", True)
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
def test_the_ledger_counts_the_bytes_that_were_sent(name, monkeypatch):
    """The serialised sizes of all payloads add up to the ledger, and it holds no other entry."""
    ctx = context()
    serialised = {"up": 0, "down": 0}
    entered = {"up": 0, "down": 0}
    real_up = Link.up
    real_down = Link.down
    real_broadcast = Link.broadcast
    real_add = Ledger.add
    real_record_round = fens.training.record_bytes_of_round_without_sending

    def count(direction, receivers, payload):
        size = len(serialise_payload(payload))
        assert count_payload_bytes(payload) == size
        serialised[direction] += receivers * size

    def up(self, client, payload, **options):
        count("up", 1, payload)
        return real_up(self, client, payload, **options)

    def down(self, client, payload, **options):
        count("down", 1, payload)
        return real_down(self, client, payload, **options)

    def broadcast(self, payload, **options):
        count("down", ctx.clients_count, payload)
        return real_broadcast(self, payload, **options)

    def record_round(ledger, members, message):
        """FENS enters a small round in one call, for all clients that take part."""
        for direction in ("down", "up"):
            count(direction, len(members), message)
        real_record_round(ledger, members, message)

    def add(self, client, direction, phase, n, messages=1):
        entered[direction] += n
        return real_add(self, client, direction, phase, n, messages)

    monkeypatch.setattr(Link, "up", up)
    monkeypatch.setattr(Link, "down", down)
    monkeypatch.setattr(Link, "broadcast", broadcast)
    monkeypatch.setattr(fens.training, "record_bytes_of_round_without_sending", record_round)
    monkeypatch.setattr(Ledger, "add", add)
    exhaust_generator(cheap(name).run(ctx))
    ledger = ctx.link.ledger
    assert {"up": ledger.up, "down": ledger.down} == entered == serialised


# ------------------------------------------------------------------------------------------------ results
@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_digits_and_leaves_the_global_generator_alone(name):
    state = torch.get_rng_state()
    x = torch.rand(20, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    second_run = exhaust_generator(cheap(name).run(context()))
    assert torch.equal(run_once(name)[0].logits(x), second_run.logits(x))
    assert torch.equal(state, torch.get_rng_state())


@pytest.fixture(scope="module")
def outcomes_of_all_methods():
    """All methods on one federation, the clients trained once for all of them."""
    return {
        outcome.method: outcome
        for outcome in compare(list(METHODS), **make_fast_study_settings(*METHODS))
    }


# Takes its time: the first one waits for `in_company`, which runs every method.
@pytest.mark.parametrize("name", METHODS)
def test_a_run_alone_with_others_or_from_the_cache_gives_the_same_digits(
    name, outcomes_of_all_methods
):
    setting = make_fast_study_settings(name)
    with_others = outcomes_of_all_methods[name]
    alone = run(name, cache=False, **setting)
    from_cache = run(name, **setting)
    assert from_cache.cached and not alone.cached
    assert alone.accuracy == with_others.accuracy == from_cache.accuracy
    assert alone.ledger == with_others.ledger == from_cache.ledger
    assert np.array_equal(alone.test_features, with_others.test_features)
    assert np.array_equal(from_cache.test_features, with_others.test_features)


@pytest.mark.parametrize("name", METHODS)
def test_a_result_predicts_and_survives_the_store_and_leaves_the_shared_clients_alone(name):
    """Plain values are the same after JSON, arrays hold numbers, and the report has its declared type."""
    model, remembered = run_once(name)
    x, y = torch.rand(20, 1, 8, 8), torch.arange(20) % 10
    assert model.logits(x).shape == (20, 10)
    assert model.features(x).shape[0] == 20
    assert model.features(x).dim() == 2
    assert isinstance(model.parameters, int) and model.parameters > 0
    report = check_report_type_and_copy_arrays(
        model.complete_report_on_test_samples(x, y), METHODS[name].report
    )
    values = report.get_plain_fields()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert all(
        array.dtype.kind in "biuf" and array.flags.owndata
        for array in report.get_array_fields().values()
    )
    restored = METHODS[name].report(**values, **report.get_array_fields())
    assert type(restored) is METHODS[name].report
    restored_fields = restored.get_fields_that_are_not_none().keys()
    assert restored_fields == report.get_fields_that_are_not_none().keys()
    for k, before in enumerate(remembered.get("states", [])):
        after = remembered["clients"].state(k)
        assert all(torch.equal(before[n], after[n]) for n in before)


# ------------------------------------------------------------------------------------------------ needs
def make_federation_of_feature_rows():
    stream = torch.Generator().manual_seed(0)
    x, y = torch.randn(90, 7, generator=stream), torch.arange(90) % 3
    data = Dataset("rows", x, y, x[:9], y[:9], x[:20], ("a", "b", "c"), "rows")
    return Federation(data, tuple(torch.arange(90).split(30)), "dirichlet", 1.0, 0, 0, 1, "")


def make_context_lacking(need):
    """A setting that lacks `need`."""
    if need == "images":
        return context(federation=make_federation_of_feature_rows())
    if need == "one architecture":
        return context(models=("mlp", "cnn"))
    ctx = context()
    ctx.public = ctx.public[:0]
    return ctx


@pytest.mark.parametrize("need", NEEDS)
@pytest.mark.parametrize("name", METHODS)
def test_a_method_refuses_what_lacks_its_needs_before_any_work_and_runs_on_everything_else(
    name, need
):
    """Either one sentence before any work, or a run to its end."""
    ctx, method = make_context_lacking(need), cheap(name)
    assert not ctx.has(need)
    try:
        method.validate(ctx)
    except UsageError as error:
        sentence = str(error)
        assert sentence.endswith(".")
        assert ". " not in sentence
        assert "\n" not in sentence
        assert len(sentence) < 300
        assert need not in METHODS[name].info.needs or METHODS[name].info.title in sentence
        assert ctx.link.ledger.total == 0 and ctx.server_steps == 0
    else:
        assert need not in METHODS[name].info.needs
        model = exhaust_generator(method.run(ctx))
        x = torch.zeros(4, *ctx.input_shape)
        assert model.logits(x).shape == (4, ctx.classes)


# ------------------------------------------------------------------------------------------------ knobs


@pytest.mark.parametrize("name", METHODS)
def test_knobs_and_texts_are_complete_and_defaults_valid(name):
    cls = METHODS[name]
    assert cls.info.title and cls.info.paper and cls.info.traffic
    assert cls.info.help.endswith("."), "a sentence that is cut short"
    assert cls.configure() == cls()
    convolutional = cls.configure(convolutions=True)
    assert {
        k.name for k in cls.fields() if getattr(convolutional, k.name) != k.default
    } == cls.convolutional.keys()
    for knob in cls.fields():
        assert knob.label and knob.help
        assert knob.convert_and_check(name, knob.default) == knob.default
    for name, value in cls.convolutional.items():  # a given value wins
        assert getattr(cls.configure(convolutions=True, **{name: 2 * value}), name) == 2 * value
    with pytest.raises(UsageError):
        cls.configure(no_such_knob=1)


# ------------------------------------------------------------------------------------------------ set-ups
# Every method of every set-up from start to end, with fewer steps and narrower networks; all else as declared.

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
    monkeypatch.setattr(experiment, "_trained_clients", TrainedClientsCache())
    # With oneDNN, the backward pass of PyTorch 2.13 and 2.14 writes beyond its memory, on some processors, in residual
    # networks as narrow as these.
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    models = (MIXED, ONE) if preset == "fedet" else (NARROW[preset],)
    for model in models:
        names = []
        for method_name in SETUPS[preset].methods:
            needs_one_architecture = "one architecture" in METHODS[method_name].info.needs
            if model == ONE and not needs_one_architecture:
                continue
            if model == MIXED and needs_one_architecture:
                continue
            names.append(method_name)
        setting = {
            "dataset": images,
            "preset": preset,
            "clients": 2,
            "alpha": 1.0,
            "epochs": 1,
            "model": model,
        }
        knobs = {
            f"{name}.{key}": value for name in names for key, value in make_fast_knobs(name).items()
        }
        plans = {plan.method_name: plan for plan in make_plans(Settings.make(**setting), names)}
        outcomes = {}
        for event in job(names, cache=False, **setting, **knobs):
            assert event.error is None, (event.method, event.error)
            if event.outcome is not None:
                outcomes[event.method] = event.outcome
        assert list(outcomes) == names
        for name, outcome in outcomes.items():
            assert outcome.recipe == plans[name].recipe and 0 <= outcome.accuracy <= 1
            options = dataclasses.asdict(plans[name].method)
            assert outcome.options == {**options, **make_fast_knobs(name)}, name
