"""FuseFL: bytes, frozen blocks, adaptors, the fused forward pass by hand, cuts of networks, and the report."""

import byte_formulas
import numpy as np
import pytest
import torch
from collected_steps import run_and_collect_steps
from fusefl_fixtures import (
    EXACT,
    TABLE_4,
    TABLE_13,
    make_context,
    make_random_samples,
    record_uploads_by_phase,
)
from torch import nn
from torch.nn import functional as F

from fedlab_nb.comm import count_payload_bytes, formulas
from fedlab_nb.errors import UsageError
from fedlab_nb.methods.base import NetworkModel
from fedlab_nb.methods.ensemble import Ensemble
from fedlab_nb.methods.fusefl import FuseFL, network
from fedlab_nb.methods.fusefl.blocks import ClientBlocks, cut_into_blocks, narrow_architecture
from fedlab_nb.methods.fusefl.network import FusedNetwork, FuseFLReport, Stage
from fedlab_nb.models import build, copy_model_state, count_parameters
from fedlab_nb.studies.experiment import exhaust_generator

MIB = 2**20
WIDTHS = {5: 32, 10: 20, 20: 14, 50: 9}


def assert_same(state, expected, within=0.0):
    assert state.keys() == expected.keys()
    for name in state:
        torch.testing.assert_close(state[name], expected[name], rtol=0, atol=within)


# ---------------------------------------------------------------------------------------------------------------- bytes
def count_numbers_of_parts(clients, split):
    """(numbers of each block, channels at the borders, numbers of the head) of the method's own narrow ResNet-18."""
    model = build(
        *narrow_architecture(("resnet18", (3, 32, 32), 10, 64), clients)[:3], width=WIDTHS[clients]
    )
    client = ClientBlocks(model, split)
    counts = [count_parameters(client.get_block_with_adaptor(k)) for k in range(split)]
    channels = [shape[0] for shape in client.measure_block_output_shapes()[:-1]]
    return counts, channels, count_parameters(client.classifier)


@pytest.mark.parametrize("clients", WIDTHS)
def test_stored_sizes_are_those_of_tables_4_and_13(clients):
    assert narrow_architecture(("resnet18", (3, 32, 32), 10, 64), clients)[3] == WIDTHS[clients]
    for split in (2, 4, 8):
        stored = (
            byte_formulas.count_fusefl_storage_bytes_of_all_clients(
                *count_numbers_of_parts(clients, split), clients
            )
            / MIB
        )
        assert round(stored, 2) == TABLE_4[clients][split]
        assert clients * round(stored, 2) == pytest.approx(TABLE_13[clients][split], abs=0.051)


def test_widths_of_other_networks_are_rounded():
    widths = [narrow_architecture(("mlp", (64,), 10, 64), m)[3] for m in (1, 4, 10, 10_000)]
    assert widths == [64, 32, 20, 4]
    assert narrow_architecture(("mlp", (64,), 10, None), 4) == ("mlp", (64,), 10, 32)
    assert narrow_architecture(("resnet18", (3, 32, 32), 10, 64), 7)[3] == round(64 / 7**0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "split, rounds",
    [
        (4, [0.004, 0.664, 2.083, 8.323]),
        (8, [0.004, 0.090, 0.090, 0.240, 1.239, 4.946, 5.755, 1.251]),
    ],
)
def test_a_resnet18_run_sends_the_documented_sizes_in_each_round(split, rounds):
    """Five clients, no training: parameters sent up in each round, in MiB, without batch norm's statistics."""
    ctx = make_context(5, epochs=0, dtype=torch.float32, model="resnet18", width=64)
    for k in range(5):  # images of three channels, as on CIFAR-10
        ctx.architectures[k] = ("resnet18", (3, 8, 8), 10, 64)
    ctx.private._x = ctx.private._x[:, :1].expand(-1, 3, -1, -1)
    sent = record_uploads_by_phase(ctx)
    model = exhaust_generator(FuseFL(blocks=split, head="average").run(ctx))
    for k, expected in enumerate(rounds):
        for state in sent[f"block {k + 1}"]:
            weights = {name: t for name, t in state.items() if "running" not in name}
            assert count_payload_bytes(weights) / MIB == pytest.approx(expected, abs=0.0006)
    assert count_payload_bytes(sent["classifiers"][0]) == 4 * (256 * 10 + 10)
    assert round(4 * model.parameters / MIB, 2) == TABLE_4[5][split]


@pytest.mark.parametrize("adaptor", ["conv", "average"])
@pytest.mark.parametrize("head", ["ccvr", "average", "own"])
@pytest.mark.parametrize("split", [1, 2, 4])
def test_the_ledger_equals_the_formulas(split, head, adaptor):
    ctx = make_context(model="cnn", width=6, dtype=torch.float32, epochs=1)
    sent = record_uploads_by_phase(ctx)
    fused = exhaust_generator(
        FuseFL(blocks=split, adaptor=adaptor, head=head, virtual=5, passes=1).run(ctx)
    )
    kind = narrow_architecture(ctx.architectures[0], 3)
    client = ClientBlocks(build(*kind[:3], width=kind[3]), split)
    counts = [count_parameters(client.get_block_with_adaptor(k)) for k in range(split)]
    channels = [shape[0] for shape in client.measure_block_output_shapes()[:-1]]
    classifier = count_parameters(client.classifier)
    features = client.classifier.in_features
    down = byte_formulas.count_fusefl_download_bytes(
        counts, channels, 3, adaptor, calibrated=head == "ccvr"
    )
    down += formulas.count_model_bytes_one_way(sum(counts) + classifier)  # the initial model
    up = byte_formulas.count_fusefl_upload_bytes(counts, channels, classifier, 3, adaptor)
    for k, (sent_up, sent_down) in ctx.link.ledger.by_client().items():
        present = len(ctx.private.train(k)[1].unique())
        statistics = 0
        if head == "ccvr":
            statistics = 4 * 10 + byte_formulas.count_ccvr_bytes(features, present, symmetric=True)
        assert (sent_up, sent_down) == (up + statistics, down)
    assert all(len(payloads) == 3 for payloads in sent.values())  # every block is sent once
    heads = 3 if head == "own" else 1
    stored = byte_formulas.count_fusefl_storage_bytes_of_all_clients(
        counts, channels, heads * classifier, 3, adaptor
    )
    assert 4 * fused.parameters == stored
    assert ctx.server_steps >= split + 1


# -------------------------------------------------------------------------------------------------------- frozen blocks
@pytest.mark.slow
@pytest.mark.parametrize("frozen_norm", ["owner", "batch"])
@pytest.mark.parametrize("cache", [True, False])
def test_frozen_blocks_do_not_change(monkeypatch, cache, frozen_norm):
    """Blocks of the final model equal the uploaded ones bit for bit, batch-norm statistics included."""
    monkeypatch.setattr(network, "CACHE_BYTES", 2**30 if cache else 0)
    ctx = make_context(model="resnet8", width=4, epochs=3)
    sent = record_uploads_by_phase(ctx)
    fused = exhaust_generator(
        FuseFL(blocks=3, frozen_norm=frozen_norm, virtual=10, passes=1).run(ctx)
    ).module
    for k, stage in enumerate(fused.stages):
        assert not any(p.requires_grad or p.grad is not None for p in stage.parameters())
        for m, branch in enumerate(stage.branches):
            assert_same(copy_model_state(branch), sent[f"block {k + 1}"][m])
    assert any("running_mean" in name for name in sent["block 1"][0])
    before = copy_model_state(fused)
    fused.train()(make_random_samples())  # even in train mode
    assert_same(copy_model_state(fused), before)


@pytest.mark.slow
@pytest.mark.parametrize("adaptor", ["conv", "average"])
def test_cached_and_recomputed_features_give_the_same_model(monkeypatch, adaptor):
    models = []
    for cache in (2**30, 0):
        monkeypatch.setattr(network, "CACHE_BYTES", cache)
        method = FuseFL(blocks=3, adaptor=adaptor, virtual=10, merge="sum")
        models.append(exhaust_generator(method.run(make_context(model="cnn", width=6))))
    states = [copy_model_state(model.module) for model in models]
    heads = [
        {name: state.pop(name) for name in list(state) if state[name].shape[:1] == (10,)}
        for state in states
    ]
    assert_same(*states, within=1e-9)
    # The calibration's steps amplify rounding: 3e-9 with PyTorch 2.14.1.
    assert_same(*heads, within=1e-8)


def test_a_warm_start_continues_from_the_last_round(monkeypatch):
    """Without training after the fusion, the second block has the weights of the first round or, without a warm start,
    the same new weights at all clients."""
    real_train = FuseFL._train_block_and_above_in_place

    def train_in_first_round_alone(self, ctx, models, inputs, k):
        if k == 0:
            yield from real_train(FuseFL(blocks=1), ctx, models, inputs, 0)

    one_block = FuseFL(blocks=1, adaptor="average", head="own")
    first_round = exhaust_generator(one_block.run(make_context(epochs=2))).module.stages[0]
    trained = [branch[1][0].weight for branch in first_round.branches]
    monkeypatch.setattr(FuseFL, "_train_block_and_above_in_place", train_in_first_round_alone)
    for warm_start in (True, False):
        method = FuseFL(adaptor="average", head="own", warm_start=warm_start)
        second = exhaust_generator(method.run(make_context(epochs=2))).module.stages[1]
        weights = [branch[0][0].weight for branch in second.branches]
        is_unchanged = all(torch.equal(a, b) for a, b in zip(weights, trained, strict=True))
        assert is_unchanged == warm_start
        assert torch.equal(weights[0], weights[1]) != warm_start


# -------------------------------------------------------------------------------------- forward pass by hand, one block
def test_the_fused_forward_pass_by_hand():
    """Two clients, two blocks of an MLP, conv adaptor, sum, classifier: written out with F.linear."""
    ctx = make_context(clients=2, epochs=2)
    model = exhaust_generator(FuseFL(virtual=10, merge="sum").run(ctx))
    state = copy_model_state(model.module)
    x = make_random_samples()
    flat = x.flatten(1)

    def layer(name, h):
        return F.linear(h, state[f"{name}.weight"], state[f"{name}.bias"])

    joint = torch.cat([layer(f"stages.0.branches.{m}.0.1", flat).relu() for m in (0, 1)], dim=1)
    client_features = [
        layer(f"stages.1.branches.{m}.1.0", layer(f"stages.1.branches.{m}.0", joint)).relu()
        for m in (0, 1)
    ]
    torch.testing.assert_close(model.features(x), client_features[0] + client_features[1])
    torch.testing.assert_close(
        model.logits(x), layer("heads.0", client_features[0] + client_features[1])
    )
    # The width 16 / sqrt(2) = 11, and inputs from both clients' 11 units.
    assert state["stages.1.branches.0.0.weight"].shape == (11, 22)


@pytest.mark.parametrize("merge", ["sum", "mean"])
def test_one_block_is_isolated_training(merge):
    """One block of full width and each client's own classifier: the ensemble."""
    fused = exhaust_generator(
        FuseFL(blocks=1, width="full", head="own", merge=merge).run(make_context())
    )
    ensemble = exhaust_generator(Ensemble(rule="logits").run(make_context()))
    x = make_random_samples()
    torch.testing.assert_close(fused.logits(x), ensemble.logits(x))
    features = ensemble.clients.features(x).sum(0)
    torch.testing.assert_close(fused.features(x), features if merge == "sum" else features / 3)
    average = exhaust_generator(
        FuseFL(blocks=1, width="full", head="average").run(make_context())
    ).module.heads[0]
    weights = torch.stack([ensemble.clients.module(k).classifier.weight for k in range(3)])
    torch.testing.assert_close(average.weight, weights.mean(0))  # not weighted by samples


@pytest.mark.parametrize("split", [1, 2, 4])
def test_one_client_with_average_adaptor_is_its_network(split):
    network = build("cnn", (1, 8, 8), 10, dtype=EXACT)
    client = ClientBlocks(network, split)
    fused = FusedNetwork(
        [Stage([client.get_block_with_adaptor(k)]) for k in range(split)],
        [network.classifier],
        "average",
        "sum",
    )
    torch.testing.assert_close(fused(make_random_samples()), network(make_random_samples()))


@pytest.mark.parametrize(
    "epochs, epochs_by_block",
    [(11, [3, 3, 5]), (3, [1] * 3), (2, [1] * 3), (1, [1] * 3), (0, [0] * 3)],
)
def test_epochs_are_divided_among_blocks_and_none_is_untrained(
    monkeypatch, epochs, epochs_by_block
):
    trainings = []

    def record(models, shards, recipe, stream, **options):
        trainings.append((recipe.epochs, recipe.lr, stream))
        return iter(())

    method = FuseFL(blocks=3, head="own", fused_rate=0.5)
    ctx = make_context(model="cnn", width=6, epochs=epochs)
    monkeypatch.setattr(ctx, "train", record)
    exhaust_generator(method.run(ctx))
    assert [block_epochs for block_epochs, _, _ in trainings] == epochs_by_block
    assert method._count_progress_steps(ctx) == sum(epochs_by_block)
    assert [lr for _, lr, _ in trainings] == [0.02, 0.01, 0.01]
    assert trainings[0][2] == "batches"  # the first round is the shared local training


def test_calibration_can_use_the_clients_rate():
    ctx = make_context()

    def get_head_weights(**options):
        fused = exhaust_generator(
            FuseFL(virtual=20, passes=1, **options).run(make_context())
        ).module
        return fused.heads[0].weight

    by_client_rate = get_head_weights(client_rate=True, rate=9.0)
    assert torch.equal(by_client_rate, get_head_weights(rate=ctx.recipe.lr))
    assert FuseFL().rate != ctx.recipe.lr


def test_calibration_changes_the_head_alone():
    plain = exhaust_generator(FuseFL(head="average").run(make_context())).module
    calibrated = exhaust_generator(FuseFL(virtual=50).run(make_context())).module
    assert_same(copy_model_state(plain.stages), copy_model_state(calibrated.stages))
    assert not torch.equal(plain.heads[0].weight, calibrated.heads[0].weight)


# ----------------------------------------------------------------------------------------------------- cuts of networks
def test_resnet18_is_cut_as_in_the_paper():
    network = build("resnet18", (3, 8, 8), 10, width=4)
    places = {
        split: [len(block) for block in cut_into_blocks(network, split)]
        for split in (1, 2, 3, 4, 8, 10)
    }
    assert places == {
        1: [10],
        2: [5, 5],
        3: [1, 4, 5],
        4: [1, 4, 2, 3],
        8: [1, 1, 1, 1, 2, 2, 1, 1],
        10: [1] * 10,
    }


@pytest.mark.parametrize(
    "name", ["mlp", "cnn", "lenet5", "resnet8", "resnet10", "resnet18", "resnet26", "vgg9"]
)
def test_every_cut_keeps_every_layer_in_order(name):
    network = build(name, (1, 8, 8), 3, width=4, dtype=EXACT).eval()
    layers = list(network.body)
    for split in range(1, len(layers) + 1):
        parts = cut_into_blocks(network, split)
        assert len(parts) == split and all(parts)
        assert [layer for block in parts for layer in block] == layers
        # The last block of the paper's cut of ResNet-18 into eight has no parameters.
        if split < len(layers) and (name, split) != ("resnet18", 8):
            for block in parts:
                assert any(p.numel() for layer in block for p in layer.parameters())
    with pytest.raises(UsageError, match="layers to cut between"):
        cut_into_blocks(network, len(layers) + 1)


@pytest.mark.slow
@pytest.mark.parametrize("adaptor", ["conv", "average"])
@pytest.mark.parametrize("models", ["cnn,lenet5", "resnet10,resnet18"])
def test_clients_with_different_networks(models, adaptor):
    ctx = make_context(model=models, width=6, epochs=2)
    model = exhaust_generator(FuseFL(adaptor=adaptor, virtual=10).run(ctx))
    assert model.logits(make_random_samples()).shape == (20, 10)


def test_different_initial_weights_are_not_sent():
    ctx = make_context(init="different", epochs=1)
    exhaust_generator(FuseFL(virtual=5, passes=1).run(ctx))
    assert "initial model" not in ctx.link.ledger.by_phase()


def test_a_network_can_be_rebuilt_from_its_parts():
    network = build("cnn", (1, 8, 8), 10, dtype=EXACT)
    upper = ClientBlocks(network, 4).make_network_from_block_upwards(2)
    assert isinstance(upper, nn.Module) and upper.classifier is network.classifier
    torch.testing.assert_close(
        upper(network.body[:2](make_random_samples())), network(make_random_samples())
    )


# ------------------------------------------------------------------------------------------------------------- clients
def test_accuracies_of_clients_after_each_round_at_home_and_on_the_test_set():
    ctx = make_context(clients=3, epochs=16)
    model = exhaust_generator(FuseFL(virtual=10).run(ctx))
    x, y = make_random_samples(), torch.arange(20) % 10
    report = model.complete_report_on_test_samples(x, y)
    assert np.shape(report.outside) == report.home.shape == (2, 3)
    last_round = model.rounds[-1]
    # After the last round the clients are the fused network's branches, each with its own classifier.
    mean_logits = sum(last_round.logits(x)) / 3
    torch.testing.assert_close(
        NetworkModel(model.module.copy_with_heads(model.heads["own"])).logits(x), mean_logits
    )
    by_hand = [(last_round.logits(x)[m].argmax(1) == y).double().mean().item() for m in range(3)]
    assert report.outside[-1] == pytest.approx(by_hand)
    for m in range(3):
        xs, ys = ctx.private.train(m)
        accuracy = (last_round.logits(xs)[m].argmax(1) == ys).double().mean().item()
        assert report.home[-1, m] == pytest.approx(accuracy)


def test_models_of_round_one_do_not_change_later():
    """Later rounds train the same layers further, but the stored models of round 1 must not change with them."""
    one_round = exhaust_generator(FuseFL(blocks=1, head="own").run(make_context(epochs=3)))
    two_rounds = exhaust_generator(FuseFL(blocks=2, head="own").run(make_context(epochs=6)))
    x = make_random_samples()
    torch.testing.assert_close(two_rounds.rounds[0].logits(x), one_round.rounds[0].logits(x))
    assert not torch.equal(two_rounds.rounds[0].logits(x), two_rounds.rounds[1].logits(x))


@pytest.mark.parametrize("head", ["ccvr", "average", "own"])
def test_the_report_compares_the_classifiers(head):
    model = exhaust_generator(FuseFL(head=head, virtual=20).run(make_context()))
    x, y = make_random_samples(), torch.arange(20) % 10
    heads = model.complete_report_on_test_samples(x, y).heads
    expected = {"own", "average", "ccvr"} if head == "ccvr" else {"own", "average"}
    assert set(heads) == expected
    assert heads[head] == model.accuracy(x, y)
    torch.testing.assert_close(
        NetworkModel(model.module.copy_with_heads(model.heads[head])).logits(x), model.logits(x)
    )
    by_average = exhaust_generator(FuseFL(head="average").run(make_context()))
    torch.testing.assert_close(
        NetworkModel(model.module.copy_with_heads(model.heads["average"])).logits(x),
        by_average.logits(x),
    )


def test_for_large_networks_no_clients_are_kept(monkeypatch):
    monkeypatch.setattr(network, "MOST_NUMBERS", 100)
    model = exhaust_generator(FuseFL(head="own").run(make_context(epochs=1)))
    report = model.complete_report_on_test_samples(make_random_samples(), torch.zeros(20))
    assert report.home is None and report.outside is None


def test_reported_shapes_are_those_of_the_first_clients_blocks():
    ctx = make_context(model="cnn", width=6, dtype=torch.float32, epochs=1)
    report = exhaust_generator(FuseFL(blocks=3, virtual=5, passes=1).run(ctx)).report
    assert (
        report.widths == [3, 3, 3] and report.shapes[0] == [3, 4, 4] and len(report.shapes[-1]) == 1
    )


def test_snapshots_report_round_and_bytes_and_the_final_report_does_not():
    ctx = make_context(epochs=4)
    model, steps = run_and_collect_steps(FuseFL(virtual=10, passes=2).run(ctx))
    snapshots = [
        (step.model.report.block, *step.model.report.sent)
        for step in steps
        if step.model is not None
    ]
    assert [block for block, *_ in snapshots] == sorted(block for block, *_ in snapshots)
    assert {block for block, *_ in snapshots} == {1, 2, 3}
    assert snapshots[-1][1:] == (ctx.link.ledger.up, ctx.link.ledger.down)
    final_report = model.complete_report_on_test_samples(make_random_samples(), torch.zeros(20))
    assert isinstance(final_report, FuseFLReport) and {"block", "sent"}.isdisjoint(
        final_report.get_plain_fields()
    )
