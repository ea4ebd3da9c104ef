"""Settings that a method refuses in one sentence before any work, and similar settings that it accepts."""

import math
from dataclasses import replace

import method_runs
import pytest

from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.training import Recipe

from .test_all_methods import make_federation_of_feature_rows

NO_PUBLIC = {"public": False}
ROWS = {"rows": True}
NO_HELD_OUT = {"holdout": 0.0}
MIXED = {"models": ("mlp", "cnn:6")}
ADAM = {"recipe": Recipe(optimizer="adam", lr=1e-3)}
REFUSED = [
    ("ties", {}, {"init": "different"}, "common initial model"),
    ("ties", {"rule": "task", "upload": "trimmed"}, {}, "trims nothing"),
    ("matching", {"rule": "pfnm"}, {}, "one hidden layer"),
    ("matching", {"rule": "pfnm"}, {"model": "cnn2"}, "one hidden layer"),
    ("matching", {"rule": "activations", "on": "public"}, NO_PUBLIC, "public samples"),
    ("matching", {}, {"model": "shufflenet"}, "cannot follow the units"),
    ("fusefl", {"blocks": 3}, {}, "blocks is 3"),
    ("fusefl", {}, {"models": ("cnn:6", "resnet8:6")}, "adaptor needs"),
    ("fusefl", {"blocks": 1}, MIXED, "same number"),
    ("fens", {"without": 3}, {}, "fens.without is 3"),
    ("fens", {"activation_bits": 16}, {}, "fens.activation_bits is 16"),
    ("fens", {"distil": True}, NO_PUBLIC, "public images"),
    ("fens", {}, NO_HELD_OUT, "no client has any; hold out"),
    ("fens", {"aggregator": "voting"}, NO_HELD_OUT, "no client has any; hold out"),
    ("fens", {"proxy": "reused-equal"}, NO_HELD_OUT, "no client has any; hold out"),
    ("fedet", {}, NO_PUBLIC, "unlabelled public samples.*glyphs or noise"),
    ("fedet", {"public": "glyphs"}, ROWS, "feature rows"),
    ("fedet", {"transform": True}, ROWS, "feature rows"),
    ("ensemble", {"rule": "beta"}, NO_HELD_OUT, "held-out"),
    ("ensemble", {"rule": "beta", "beta": -0.5}, {}, r"beta is -0\.5"),
    ("ensemble", {"keep": 2, "by": "diversity"}, MIXED, "diversity"),
    ("ensemble", {"keep": 2, "by": "diversity"}, NO_HELD_OUT, "held-out"),
    ("ensemble", {"keep": 2, "by": "validation"}, NO_HELD_OUT, "held-out"),
    ("afl", {"features": "client", "epsilon": 1.0}, {}, "features=client"),
    ("afl", {"features": "conv"}, ROWS, "convolutions only for images"),
    ("fedkt", {"students": 5000}, {}, "10,000"),
    ("distilled", {"images": "crops"}, ROWS, "choose random, kmeans or kip"),
    (
        "fedavg_multi",
        {"compression": "half", "per_round": 2},
        {},
        "per_round is 2; set per_round=0",
    ),
    ("scaffold", {}, ADAM, "optimizer=sgd"),
    ("fednova", {}, ADAM, "optimizer=sgd"),
    (
        "feddf",
        {"start": "average", "server_model": "cnn"},
        {},
        "architecture at every client and at the server",
    ),
    (
        "fedkd",
        {"rounds_after": 1, "server_model": "cnn"},
        {},
        "architecture at every client and at the server",
    ),
]
ACCEPTED = [
    ("matching", {"rule": "pfnm"}, {"model": "mlp1"}),
    ("matching", {"rule": "activations"}, NO_PUBLIC),
    ("fens", {"without": 2}, {}),
    ("fens", {"aggregator": "weighted"}, NO_HELD_OUT),
    ("fens", {"proxy": "reused"}, NO_HELD_OUT),
    ("fedet", {"public": "noise"}, NO_PUBLIC),
    ("fedet", {"public": "noise"}, ROWS),
    ("ensemble", {"rule": "beta", "beta": 0.1}, NO_HELD_OUT),
    ("ensemble", {"keep": 1, "by": "size"}, NO_HELD_OUT),
    ("ensemble", {"keep": 1, "by": "random"}, NO_HELD_OUT),
    ("afl", {"features": "client", "epsilon": math.inf}, {}),
    ("fedavg_multi", {"compression": "half", "per_round": 3}, {}),
    ("feddf", {"start": "average", "server_model": "mlp:64"}, {}),
    ("fedkd", {"rounds_after": 1, "rounds_before": 1, "server_model": "mlp:64"}, {}),
]


def context(public=True, rows=False, **options):
    ctx = method_runs.make_context(make_federation_of_feature_rows() if rows else None, **options)
    ctx.public = ctx.public if public else ctx.public[:0]
    return ctx


@pytest.mark.parametrize(("name", "knobs", "setting", "words"), REFUSED)
def test_refused_in_one_sentence_before_any_work(name, knobs, setting, words):
    ctx = context(**setting)
    with pytest.raises(UsageError, match=words) as error:
        replace(METHODS[name](), **knobs).validate(ctx)
    assert str(error.value).endswith(".") and ". " not in str(error.value)
    assert ctx.link.ledger.total == 0 and ctx.server_steps == 0


@pytest.mark.parametrize(("name", "knobs", "setting"), ACCEPTED)
def test_a_similar_setting_is_accepted(name, knobs, setting):
    METHODS[name](**knobs).validate(context(**setting))
