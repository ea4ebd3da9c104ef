"""What a run of FuseFL leaves behind: clients after each round, classifiers side by side, sizes, snapshots."""

import numpy as np
import pytest
import torch
from fusefl_fixtures import context, samples, spy

from fedlab_nb.comm import size
from fedlab_nb.methods.base import NetworkModel
from fedlab_nb.methods.fusefl import FuseFL
from fedlab_nb.methods.fusefl import network as fused_model
from fedlab_nb.methods.fusefl.network import FuseFLReport
from fedlab_nb.studies.experiment import finished


# ------------------------------------------------------------------------------------------------------- clients ----
def test_clients_after_each_round_at_home_and_outside():
    ctx = context(clients=3, epochs=16)
    model = finished(FuseFL(virtual=10).run(ctx))
    x, y = samples(), torch.arange(20) % 10
    report = model.measured(x, y)
    assert np.shape(report.outside) == report.home.shape == (2, 3)
    last = model.rounds[-1]
    # The last round's clients are the fused network's branches with everyone's own classifier.
    own = sum(last.logits(x)) / 3
    torch.testing.assert_close(NetworkModel(model.module.under(model.heads["own"])).logits(x), own)
    by_hand = [(last.logits(x)[m].argmax(1) == y).double().mean().item() for m in range(3)]
    assert report.outside[-1] == pytest.approx(by_hand)
    for m in range(3):
        xs, ys = ctx.private.train(m)
        right = (last.logits(xs)[m].argmax(1) == ys).double().mean().item()
        assert report.home[-1, m] == pytest.approx(right)


def test_round_one_is_kept_as_it_was():
    """Later rounds train on from the same layers, but the models of round 1 must not move with them."""
    one = finished(FuseFL(blocks=1, head="own").run(context(epochs=3)))
    two = finished(FuseFL(blocks=2, head="own").run(context(epochs=6)))
    x = samples()
    torch.testing.assert_close(two.rounds[0].logits(x), one.rounds[0].logits(x))
    assert not torch.equal(two.rounds[0].logits(x), two.rounds[1].logits(x))


@pytest.mark.parametrize("head", ["ccvr", "average", "own"])
def test_classifiers_side_by_side(head):
    model = finished(FuseFL(head=head, virtual=20).run(context()))
    x, y = samples(), torch.arange(20) % 10
    heads = model.measured(x, y).heads
    assert set(heads) == {"own", "average"} | ({"ccvr"} if head == "ccvr" else set())
    assert heads[head] == model.accuracy(x, y)
    torch.testing.assert_close(NetworkModel(model.module.under(model.heads[head])).logits(x), model.logits(x))
    other = finished(FuseFL(head="average").run(context()))
    torch.testing.assert_close(NetworkModel(model.module.under(model.heads["average"])).logits(x), other.logits(x))


def test_large_networks_keep_no_clients(monkeypatch):
    monkeypatch.setattr(fused_model, "MOST_NUMBERS", 100)
    model = finished(FuseFL(head="own").run(context(epochs=1)))
    report = model.measured(samples(), torch.zeros(20))
    assert report.home is None and report.outside is None and report.trainable


def test_sizes_are_what_was_sent():
    ctx = context(model="cnn", width=6, dtype=torch.float32, epochs=1)
    sent = spy(ctx)
    report = finished(FuseFL(blocks=3, virtual=5, passes=1).run(ctx)).report
    for k in range(3):
        for m in range(3):
            own = report.block_numbers[k][m] + report.adaptor_numbers[k][m]
            assert 4 * own == size(sent[f"block {k + 1}"][m])
    assert report.adaptor_numbers[0] == [0, 0, 0] and min(report.adaptor_numbers[1]) > 0
    assert report.shapes[0] == [3, 4, 4] and len(report.shapes[-1]) == 1


def test_a_snapshot_tells_the_round_and_the_bytes_and_the_end_does_not():
    ctx, seen = context(epochs=4), []
    run = FuseFL(virtual=10, passes=2).run(ctx)
    while True:
        try:
            step = next(run)
        except StopIteration as end:
            model = end.value
            break
        if step.model is not None:
            seen.append((step.model.report.block, *step.model.report.sent))
    assert [block for block, *_ in seen] == sorted(block for block, *_ in seen)
    assert {block for block, *_ in seen} == {1, 2, 3}
    assert seen[-1][1:] == (ctx.link.ledger.up, ctx.link.ledger.down)
    end = model.measured(samples(), torch.zeros(20))
    assert isinstance(end, FuseFLReport) and {*end.numbers()} == {
        "widths", "trainable", "shapes", "block_numbers", "adaptor_numbers", "heads", "outside",
    } and {*end.arrays()} == {"home"}  # fmt: skip
