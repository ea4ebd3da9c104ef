"""`server_model`: the server's student has an architecture of its own, and nothing else changes."""

import functools
from dataclasses import replace

import method_runs
import pytest

from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.studies import run
from fedlab_nb.studies.experiment import exhaust_generator

from .test_all_methods import cheap

STUDENTS = [name for name, cls in METHODS.items() for k in cls.fields() if k.name == "server_model"]
context = functools.partial(method_runs.make_context, epochs=1)


def finish(method, ctx):
    method.validate(ctx)
    return exhaust_generator(method.run(ctx))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "clients"), [*((name, ("mlp", "cnn")) for name in STUDENTS), ("dense", ("mlp",))]
)
def test_the_student_has_the_given_architecture_and_bytes_are_the_same(name, clients):
    auto_ctx = context(models=clients)
    lenet_ctx = context(models=clients)
    knobs = {"distilled": {"server": "network"}, "feddf": {"rounds": 1}}.get(name, {})
    method = replace(cheap(name), **knobs)
    auto = finish(method, auto_ctx)
    lenet = finish(replace(method, server_model="lenet5:3"), lenet_ctx)
    assert auto.module.architecture[0] == "mlp"
    assert lenet.module.architecture == ("lenet5", (1, 8, 8), 10, 3)
    assert auto_ctx.link.ledger == lenet_ctx.link.ledger


def test_the_server_model_is_a_setting_and_part_of_the_store_key():
    setting = {"clients": 3, "epochs": 1, "server_model": "cnn:3", "feddf.epochs": 1}
    out = run("feddf", **setting)
    assert out.options["server_model"] == "cnn:3" and out.model.module.architecture[0] == "cnn"
    from_store = run("feddf", **setting)
    assert from_store.cached and from_store.accuracy == out.accuracy
    assert (
        out.plan.hash_settings_of_local_training()
        == run("fedavg", clients=3, epochs=1).plan.hash_settings_of_local_training()
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("cnm", "did you mean 'cnn'"),
        ("cnn,mlp", "must be one model"),
        ("cnn:0", "width"),
        ("cnn:999", "width of cnn"),
    ],
)
def test_a_wrong_model_is_one_sentence(value, message):
    with pytest.raises(UsageError, match=message):
        METHODS["dense"].configure(server_model=value)


@pytest.mark.parametrize("name", [name for name in STUDENTS if METHODS[name].convolutional])
def test_a_convolutional_server_gets_the_knobs_of_convolutions(name):
    cls = METHODS[name]
    usual = {knob.name: knob.default for knob in cls.fields()}
    assert cls.configure(server_model="cnn:12") == cls(
        **usual | cls.convolutional | {"server_model": "cnn:12"}
    )
    for perceptron in ("auto", "mlp"):
        assert cls.configure(server_model=perceptron) == cls(**usual | {"server_model": perceptron})
