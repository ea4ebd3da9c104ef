"""`server_model`: the network that the server distils is another one than the clients', and nothing else changes."""

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
context = functools.partial(method_runs.context, epochs=1)


def finish(method, ctx):
    method.validate(ctx)
    return exhaust_generator(method.run(ctx))


@pytest.mark.parametrize(
    ("name", "clients"), [*((name, ("mlp", "cnn")) for name in STUDENTS), ("dense", ("mlp",))]
)
def test_the_student_is_what_was_asked_for_and_bytes_are_the_same(name, clients):
    auto, other = context(models=clients), context(models=clients)
    knobs = {"distilled": {"server": "network"}, "feddf": {"rounds": 1}}.get(name, {})
    method = replace(cheap(name), **knobs)
    first = finish(method, auto)
    asked = finish(replace(method, server_model="lenet5:3"), other)
    assert first.module.architecture[0] == "mlp" and asked.module.architecture == (
        "lenet5",
        (1, 8, 8),
        10,
        3,
    )
    assert auto.link.ledger == other.link.ledger


def test_from_the_settings_and_through_the_store():
    asked = {"clients": 3, "epochs": 1, "server_model": "cnn:3", "feddf.epochs": 1}
    out = run("feddf", **asked)
    assert out.options["server_model"] == "cnn:3" and out.model.module.architecture[0] == "cnn"
    again = run("feddf", **asked)
    assert again.cached and again.accuracy == out.accuracy
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
