"""One client's bytes in FENS, rule by rule and against the closed formula; and quantised activations."""

import pytest
import torch
from fens_runs import C, M, get_test_images, make_context, run_fens_and_collect_steps

from fedlab_nb.data import Federation, federate
from fedlab_nb.methods.fens.model import (
    RANGES,
    list_layers_to_quantise,
    measure_layer_input_ranges,
    quantise_layer_inputs_in_place,
    round_to_quantised_values,
)
from fedlab_nb.models import build
from fedlab_nb.models.state import copy_model


@pytest.fixture(scope="module")
def federation():
    return federate("digits", alpha=0.1, clients=M, seed=0)


def test_rules_without_training_send_only_what_they_need(federation):
    phases = {}
    for name in ("averaging", "weighted", "voting"):
        ctx = make_context(federation)
        run_fens_and_collect_steps(ctx, aggregator=name)
        phases[name] = ctx.link.ledger.by_phase()
    assert list(phases["averaging"]) == ["initial model", "local models"]
    assert (
        phases["weighted"]["class counts"] == (M * C * 4, 0)
        and "ensemble" not in phases["weighted"]
    )
    assert phases["voting"]["confusion matrices"] == (M * M * C * C * 4, 0)
    assert "ensemble" in phases["voting"] and "aggregator" not in phases["voting"]


def test_a_client_without_held_out_samples_gets_the_ensemble_but_no_aggregator(federation):
    samples = torch.arange(200)
    shards = (samples[:1], samples[1:80], samples[80:])
    lopsided = Federation(
        federation.dataset, shards, "dirichlet", 0.1, 0, minimum=1, moved=0, draws=1
    )
    for options in ({}, {"local_steps": 2}):
        ctx = make_context(lopsided)
        assert ctx.private.sizes("held_out")[0] == 0
        run_fens_and_collect_steps(ctx, rounds=3, **options)
        rows = {
            (row["client"], row["direction"], row["phase"]): row["messages"]
            for row in ctx.link.ledger.rows()
        }
        assert (0, "down", "ensemble") in rows and (0, "down", "aggregator") not in rows
        assert rows[1, "down", "aggregator"] == rows[2, "up", "aggregator"] == 3
    run_fens_and_collect_steps(make_context(lopsided), aggregator="voting")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bits": 3},
        {"bits": 32, "aggregator": "nn", "k": 7},
        {"aggregator": "averaging"},
        {"aggregator": "weighted"},
        {"aggregator": "voting"},
        {"proxy": "server"},
        {"without": 2},
        {"per_round": 2},
        {"activation_bits": 8},
        {"activation_bits": 8, "bits": 32, "aggregator": "averaging"},
    ],
)
def test_measured_bytes_equal_the_formula(federation, options):
    # Once with batch norm, which is not quantised.
    kind = ("resnet8", 4) if options.get("bits") == 3 else ("mlp", None)
    ctx = make_context(federation, *kind)
    traffic = run_fens_and_collect_steps(ctx, rounds=6, **options)[0].report.bytes
    assert traffic["measured"] == max(map(sum, ctx.link.ledger.by_client().values()))
    assert traffic["measured"] == traffic["formula"]
    traffic = run_fens_and_collect_steps(
        make_context(federation, *kind, init="different"), rounds=6, **options
    )[0].report.bytes
    assert traffic["measured"] == traffic["formula"]


def test_bytes_of_different_architectures_have_no_formula(federation):
    shape = federation.dataset.input_shape
    ctx = make_context(federation, epochs=0)
    ctx.architectures = [("mlp", shape, C, 8 + k) for k in range(M)]
    ctx._recall, ctx._remember = lambda: None, lambda clients: None
    fens, _ = run_fens_and_collect_steps(ctx, rounds=3)
    assert fens.report.bytes["formula"] is None and fens.report.bytes["measured"] > 0


# ------------------------------------------------------------------------------------------------ quantised activations
# The rounding against PyTorch's, the ranges against hooks, and the samples on which they are measured.


def draw_images(n=6):
    return torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("bits", [2, 5, 8])
@pytest.mark.parametrize("ends", [(-1.5, 2.0), (0.0, 3.0), (-0.2, 0.0)])
def test_rounding_equals_pytorchs(bits, ends):
    x = torch.linspace(-3, 3, 1001)
    low, high = torch.tensor(ends)
    scale = (ends[1] - ends[0]) / (2**bits - 1)
    theirs = torch.fake_quantize_per_tensor_affine(
        x, scale, round(-ends[0] / scale), 0, 2**bits - 1
    )
    ours = round_to_quantised_values(x, low, high, bits)
    assert ((ours - theirs).abs() < 1e-5).double().mean() > 0.995  # ties may differ
    inside = x[(x >= low) & (x <= high)]
    error = (round_to_quantised_values(inside, low, high, bits) - inside).abs().max()
    assert error <= scale * 1.001  # half a step, and half a step of the zero point
    assert (
        round_to_quantised_values(x, torch.tensor(0.0), torch.tensor(0.0), bits).abs().max() < 1e-30
    )


@pytest.mark.parametrize("model", ["mlp", "cnn", "resnet8:4"])
def test_ranges_are_the_smallest_and_largest_input_of_each_layer(model):
    name, _, width = model.partition(":")
    module = build(name, (1, 8, 8), 10, width=int(width) if width else None).eval()
    inputs_by_layer = []
    for layer in list_layers_to_quantise(module):
        layer.register_forward_pre_hook(
            lambda layer, inputs: inputs_by_layer.append(inputs[0].detach())
        )
    ranges = measure_layer_input_ranges(module, draw_images())
    assert ranges.tolist() == [
        [min(0.0, float(x.min())), max(0.0, float(x.max()))] for x in inputs_by_layer
    ]
    fine, coarse = (
        quantise_layer_inputs_in_place(copy_model(module), ranges, bits)(draw_images())
        for bits in (8, 2)
    )
    exact = module(draw_images())
    assert 0 < (fine - exact).abs().max() < (coarse - exact).abs().max()


def test_quantised_activations_of_a_perceptron_by_hand():
    module = build("mlp", (1, 8, 8), 10).eval()
    ranges = measure_layer_input_ranges(module, draw_images())
    layers, x = list_layers_to_quantise(module), draw_images().flatten(1)
    for index, (layer, (low, high)) in enumerate(zip(layers, ranges, strict=True)):
        x = layer(round_to_quantised_values(x, low, high, 4))
        x = x.relu() if index + 1 < len(layers) else x
    torch.testing.assert_close(
        quantise_layer_inputs_in_place(copy_model(module), ranges, 4)(draw_images()), x
    )


def test_clients_measure_ranges_on_their_held_out_samples(federation):
    ctx, plain_ctx = make_context(federation), make_context(federation)
    fens, _ = run_fens_and_collect_steps(ctx, rounds=3, activation_bits=8)
    without_activations, _ = run_fens_and_collect_steps(plain_ctx, rounds=3)
    layers = len(list_layers_to_quantise(fens.experts.clients.module(0)))
    assert ctx.link.ledger.by_phase()[RANGES] == (M * 8 * layers, 0)
    bytes_down = ctx.link.ledger.by_phase()["ensemble"][1]
    plain_bytes_down = plain_ctx.link.ledger.by_phase()["ensemble"][1]
    assert bytes_down - plain_bytes_down == M * M * 8 * layers
    models = [plain_ctx.initial_model(k) for k in range(M)]
    for k, (model, state) in enumerate(zip(models, ctx._recall(), strict=True)):
        model.load_state_dict(state)
        ranges = measure_layer_input_ranges(model.eval(), ctx.private.held_out(k)[0])
        model.load_state_dict(without_activations.experts.clients.state(k))  # the quantised weights
        expected = quantise_layer_inputs_in_place(model, ranges, 8)(get_test_images(federation))
        torch.testing.assert_close(expected, fens.experts(get_test_images(federation))[:, k])
