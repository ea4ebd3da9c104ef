"""FedOV: the vote by hand, outliers that are the client's own material, one output more on the link."""

import functools

import method_runs
import pytest
import torch
from method_runs import seeded
from torch import nn

from fedlab_nb.data import federate
from fedlab_nb.methods import fedov as outliers
from fedlab_nb.methods.fedov import FedOV, OpenSetVote
from fedlab_nb.models import build
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.training import ClientModels, Recipe

context = functools.partial(method_runs.context, alpha=0.3)


class Says(nn.Module):
    """A model that gives everything the same probabilities."""

    def __init__(self, *probabilities):
        super().__init__()
        self.row = nn.Parameter(torch.tensor(probabilities).log())

    def forward(self, x):
        return self.row.expand(len(x), -1) + 3.0  # a constant that the softmax takes away again


# ------------------------------------------------------------------------------------------------ the vote
def test_the_vote_by_hand():
    """Two strangers who mostly say "unknown" do not outvote one who knows."""
    vote = OpenSetVote(
        ClientModels(
            [Says(0.1, 0.0001, 0.8999), Says(0.1, 0.0001, 0.8999), Says(0.0001, 0.6, 0.3999)]
        )
    )
    x = torch.rand(4, 3)
    torch.testing.assert_close(vote.logits(x).exp(), torch.tensor([[0.2001, 0.6002]]).expand(4, 2))
    assert vote.predict(x).tolist() == [1] * 4
    assert vote.features(x).shape == (4, 3 * 3) and vote.parameters == 9


def test_only_the_surest_vote():
    """The two that call it unknown least: 0.3 + 0.1 for class 0, 0.2 + 0.6 for class 1; the third has 0.45, 0.05."""
    models = [Says(0.3, 0.2, 0.5), Says(0.45, 0.05, 0.5001), Says(0.1, 0.6, 0.3)]
    two = OpenSetVote(ClientModels(models), voters=2)
    torch.testing.assert_close(
        two.logits(torch.rand(4, 3)).exp(), torch.tensor([[0.4, 0.8]]).expand(4, 2)
    )
    x = torch.rand(2, 3)
    for voters in (0, 3, 9):
        everyone = OpenSetVote(ClientModels(models), voters)
        torch.testing.assert_close(everyone.logits(x), OpenSetVote(ClientModels(models)).logits(x))


# ------------------------------------------------------------------------------------------------ outliers
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 13)])
@pytest.mark.parametrize("way", outliers.WAYS)
def test_every_destruction_keeps_shape_and_range_and_changes_the_image(way, shape):
    x = torch.rand(6, *shape, generator=seeded())
    before, stream = x.clone(), seeded(1)
    made = torch.stack([way(x, i, stream) for i in range(6)])
    assert made.shape == x.shape and torch.equal(x, before)
    assert made.min() >= x.min() and made.max() <= x.max()
    assert (made != x).flatten(1).any(1).float().mean() > 0.6


def test_quarters_by_hand():
    x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    arrangements = {
        tuple(outliers.shuffle_quarters(x, 0, seeded(s)).flatten().tolist()) for s in range(20)
    }
    assert arrangements == {(2, 3, 4, 1), (3, 4, 1, 2), (4, 1, 2, 3)}


def test_halves_by_hand():
    x = torch.tensor(
        [[[[1.0, 2.0], [3.0, 4.0]]]]
    )  # alone, it is joined with itself upside down: [[4, 3], [2, 1]]
    arrangements = {
        tuple(outliers.join_image_halves(x, 0, seeded(s)).flatten().tolist()) for s in range(20)
    }
    assert arrangements == {(1, 2, 2, 1), (1, 3, 3, 1)}


def test_cut_paste_only_moves_what_is_there():
    x = torch.arange(64.0).view(1, 1, 8, 8)
    out = outliers.cut_and_paste_patch(x, 0, seeded(3))
    changed = (out != x)[0, 0].nonzero()
    assert len(changed) and set(out.flatten().tolist()) <= set(x.flatten().tolist())
    shift = (out - x)[0, 0][changed[:, 0], changed[:, 1]]
    assert len(shift.unique()) == 1  # a patch moved as a whole


def test_rows_keep_their_columns():
    x = torch.arange(20.0).view(5, 4)
    made = outliers.make_outlier_images(x, seeded())
    assert made.shape == x.shape and not torch.equal(made, x)
    assert torch.equal(made % 4, x % 4)  # column c holds numbers of column c


def test_harder_outliers_by_hand():
    """A linear model: the gradient of -log p(unknown) to x is Σ_c p_c w_c - w_unknown, of which the sign counts."""
    model = build("mlp", (6,), 4, dtype=torch.float64)
    x = torch.randn(5, 6, generator=seeded(), dtype=torch.float64)
    now = x.clone()
    for _ in range(3):
        now.requires_grad_()
        (gradient,) = torch.autograd.grad(-model(now).log_softmax(1)[:, 3].sum(), now)
        now = (now + 0.002 * gradient.sign()).detach()
    model.train()
    made = outliers.move_outliers_towards_known_classes(model, x, 3, 3, chunk_size=2)
    torch.testing.assert_close(made, now, rtol=0, atol=1e-12)
    assert model.training and all(p.grad is None for p in model.parameters())
    assert outliers.move_outliers_towards_known_classes(model, x[:0], 3, 3).shape == (0, 6)


# ------------------------------------------------------------------------------------------------ the method
@pytest.mark.parametrize(
    "options", [{"fresh": True}, {"adversarial": 2}, {"fresh": True, "adversarial": 1}]
)
def test_new_outliers_every_epoch(options):
    """As many epochs, the same bytes, the same digits again; and another model than with outliers drawn once."""
    plain, ctx = context(), context()
    before, after = (
        exhaust_generator(FedOV().run(plain)),
        exhaust_generator(FedOV(**options).run(ctx)),
    )
    assert plain.link.ledger.by_client() == ctx.link.ledger.by_client()
    x = torch.rand(5, 1, 8, 8, generator=seeded())
    assert not torch.equal(before.logits(x), after.logits(x))
    assert torch.equal(
        after.logits(x), exhaust_generator(FedOV(**options).run(context())).logits(x)
    )
    steps = list(FedOV(**options).run(context()))
    shown = [
        (s.done, s.total) for s in steps if s.phase == "open-set training" and s.model is not None
    ]
    assert shown == [(1, 2), (2, 2)]


def test_bytes_are_two_models_with_one_output_more():
    ctx = context()
    out = exhaust_generator(FedOV().run(ctx))
    d = sum(p.numel() for p in build("mlp", (1, 8, 8), 11).parameters())
    assert set(ctx.link.ledger.by_client().values()) == {(4 * d, 4 * d)} and out.parameters == 3 * d
    assert out.logits(torch.rand(5, 1, 8, 8)).shape == (5, 10)


def test_clients_learn_to_know_their_own_and_to_refuse_what_is_destroyed():
    federation = federate("digits", alpha=0.3, clients=3, seed=0)
    ctx = context()
    ctx.recipe = Recipe(epochs=40)
    out = exhaust_generator(FedOV().run(ctx))
    for k in range(3):
        x, _ = ctx.private.held_out(k)
        junk = outliers.make_outlier_images(x, seeded(5))
        unknown, known = (
            out.clients.logits(part)[k].softmax(-1)[:, -1].mean() for part in (junk, x)
        )
        assert unknown > known + 0.3
    assert out.accuracy(federation.dataset.x_test, federation.dataset.y_test) > 0.7
