"""FedMA: matched layers by hand, copies of one network, its limits, and its bytes."""

from dataclasses import replace

import pytest
import torch
from method_runs import make_context
from torch import tensor

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.matching.fedma import FedMA
from fedlab_nb.methods.matching.wiring import find_unit_wiring, permute_units
from fedlab_nb.models import build, copy_model_state, load_state
from fedlab_nb.models.state import copy_model
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.training import Recipe, iterate_training_of_clients_in_place


def test_matching_two_units_by_hand():
    """Client B has A's units in the other order, a little longer. With little noise, distant units are not matched."""
    ours = tensor([[1.0, 0.0], [0.0, 1.0]])
    theirs = tensor([[0.0, 1.2], [1.2, 0.0]])
    layer, positions = FedMA(sigma=1.0, gamma=1.0).match_and_average_client_layers([ours, theirs])
    torch.testing.assert_close(layer, tensor([[1.1, 0.0], [0.0, 1.1]]))
    assert [client_positions.tolist() for client_positions in positions] == [[0, 1], [1, 0]]
    # One unit each, v and w, precision p = 1/sigma^2, spread and mass 1, two clients. They are matched if
    # p^2 (v + w)^2 / (1 + 2 p) - p^2 v^2 / (1 + p) + 2 log(1 / 1)  >  p^2 w^2 / (1 + p) + 2 log(1 / 2)
    # For w = 0 and v = 1, p^2 / (1 + p) - p^2 / (1 + 2 p) = p^3 / ((1 + p) (1 + 2 p)) < 2 log 2: p < 3.93.
    for p, units in ((3.9, 1), (4.0, 2)):
        layer, positions = FedMA(sigma=p**-0.5, sweeps=0).match_and_average_client_layers(
            [tensor([[1.0]]), tensor([[0.0]])]
        )
        assert len(layer) == units and positions[1].tolist() == [units - 1]


@pytest.mark.parametrize(("model", "units"), [("mlp", [64, 32]), ("cnn", [6, 16, 120, 84])])
def test_permuted_copies_are_fused_to_the_network(model, units):
    """Without training, three permuted copies of a network are fused to it, whatever classes the clients have."""
    ctx = make_context(clients=3, epochs=0, dtype=torch.float64, model=model)
    network = build(model, (1, 8, 8), 10, dtype=torch.float64)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0))
    wiring = find_unit_wiring(network)
    models = []
    for k in range(3):
        models.append(copy_model(network))
        orders = [
            torch.randperm(n, generator=torch.Generator().manual_seed(k)) for n in wiring.units
        ]
        load_state(models[k], permute_units(copy_model_state(network), wiring, orders))
    ctx.send_initial_models = lambda: models
    x = torch.rand(50, 1, 8, 8, dtype=torch.float64)
    expected = network(x)
    out = exhaust_generator(FedMA().run(ctx))
    assert out.report.units == units and out.report.shared == [1.0] * len(units)
    # Class shares are float32.
    torch.testing.assert_close(out.module(x), expected, rtol=1e-6, atol=1e-6)


def test_without_any_match_logits_are_those_of_the_clients_weighted_by_class():
    """For an infinite mass all units stay separate, so that logits are Σ_k w_kc f_kc (here without any training)."""
    ctx = make_context(clients=3, epochs=0, dtype=torch.float64)
    models = [ctx.build(ctx.architectures[0], torch.Generator().manual_seed(k)) for k in range(3)]
    client_models = [copy_model(model) for model in models]
    ctx.send_initial_models = lambda: models
    out = exhaust_generator(FedMA(gamma=1e9).run(ctx))
    assert out.report.units == [192, 96] and out.report.shared == [0.0, 0.0]
    x = torch.rand(50, 1, 8, 8, dtype=torch.float64)
    counts = torch.stack(
        [torch.bincount(ctx.private.train(k)[1], minlength=10) for k in range(3)]
    ).double()
    shares = torch.where(
        counts.sum(0) > 0, counts / counts.sum(0).clamp_min(1), torch.full_like(counts, 1 / 3)
    )
    by_hand = sum(share * model(x) for share, model in zip(shares, client_models, strict=True))
    # Class shares are float32.
    torch.testing.assert_close(out.module(x), by_hand, rtol=1e-6, atol=1e-6)


def test_fused_layers_are_frozen():
    """One client: its layers stay as they were uploaded, as in a loop that freezes one layer after the other."""
    ctx = make_context(clients=1, epochs=7, recipe=Recipe(weight_decay=0), dtype=torch.float64)
    model = ctx.initial_model()
    x, y = ctx.private.train(0)
    out = exhaust_generator(FedMA().run(ctx))
    for n, epochs in enumerate((2, 2, 3)):
        stream = f"batches of layer {n + 1}" if n else "batches"
        recipe = replace(ctx.recipe, epochs=epochs)

        def freeze_first_layers(clients, parameters, gradients, n=n):
            for gradient in gradients[: 2 * n]:
                gradient.zero_()

        options = {"seed": ctx.seed, "backend": "loop", "stream": stream}
        exhaust_generator(
            iterate_training_of_clients_in_place(
                [model], [(x, y)], recipe, adjust=freeze_first_layers, **options
            )
        )
    has_class = torch.bincount(y, minlength=10) > 0
    z = torch.rand(20, 1, 8, 8, dtype=torch.float64)
    torch.testing.assert_close(
        out.module(z)[:, has_class], model(z)[:, has_class], rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize(("gamma", "first", "second"), [(1.0, 64, 32), (1e9, 192, 96)])
def test_bytes_by_hand(gamma, first, second):
    """64 inputs, 64 and 32 own units, 10 classes: layers and classifiers up; the network, layers and places down."""
    ctx = make_context(clients=3, dtype=torch.float32)
    assert exhaust_generator(FedMA(gamma=gamma).run(ctx)).report.units == [first, second]
    up = 4 * (64 * 65 + 32 * (first + 1) + 10 * (second + 1) + 10)
    down = 4 * (64 * 65 + 32 * 65 + 10 * 33 + first * 65 + 64 + second * (first + 1) + 32)
    assert set(ctx.link.ledger.by_client().values()) == {(up, down)}


@pytest.mark.parametrize("model", ["vgg11", "resnet8"])
def test_other_networks_are_refused(model):
    with pytest.raises(UsageError, match="one layer without"):
        FedMA().validate(make_context(model=model, clients=2))
