"""FedOV: the vote by hand, outliers made of a client's own images, and one additional output."""

import functools

import method_runs
import pytest
import torch
from collected_steps import run_and_collect_steps
from method_runs import make_torch_generator
from torch import nn

from fedlab_nb.data import federate
from fedlab_nb.methods import fedov as outliers
from fedlab_nb.methods.fedov import FedOV, OpenSetVote
from fedlab_nb.models import build
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.training import ClientModels, Recipe

context = functools.partial(method_runs.make_context, alpha=0.3)


class ConstantModel(nn.Module):
    """A model that gives every sample the same probabilities."""

    def __init__(self, *probabilities):
        super().__init__()
        self.row = nn.Parameter(torch.tensor(probabilities).log())

    def forward(self, x):
        return self.row.expand(len(x), -1) + 3.0  # a constant, which the softmax removes


# ------------------------------------------------------------------------------------------------ the vote
def test_the_vote_by_hand():
    """Two clients that mostly answer "unknown" do not outvote one that knows the class."""
    vote = OpenSetVote(
        ClientModels(
            [
                ConstantModel(0.1, 0.0001, 0.8999),
                ConstantModel(0.1, 0.0001, 0.8999),
                ConstantModel(0.0001, 0.6, 0.3999),
            ]
        )
    )
    x = torch.rand(4, 3)
    torch.testing.assert_close(vote.logits(x).exp(), torch.tensor([[0.2001, 0.6002]]).expand(4, 2))
    assert vote.predict(x).tolist() == [1] * 4
    assert vote.features(x).shape == (4, 3 * 3) and vote.parameters == 9


def test_only_the_most_confident_clients_vote():
    """The two with the least "unknown" give 0.3 + 0.1 for class 0, 0.2 + 0.6 for class 1; the third does not vote."""
    models = [
        ConstantModel(0.3, 0.2, 0.5),
        ConstantModel(0.45, 0.05, 0.5001),
        ConstantModel(0.1, 0.6, 0.3),
    ]
    two_voters = OpenSetVote(ClientModels(models), voters=2)
    torch.testing.assert_close(
        two_voters.logits(torch.rand(4, 3)).exp(), torch.tensor([[0.4, 0.8]]).expand(4, 2)
    )
    x = torch.rand(2, 3)
    for voters in (0, 3, 9):
        all_voters = OpenSetVote(ClientModels(models), voters)
        torch.testing.assert_close(
            all_voters.logits(x), OpenSetVote(ClientModels(models)).logits(x)
        )


# ------------------------------------------------------------------------------------------------ outliers
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 13)])
@pytest.mark.parametrize("corrupt", outliers.WAYS)
def test_every_corruption_keeps_shape_and_range_and_changes_the_image(corrupt, shape):
    x = torch.rand(6, *shape, generator=make_torch_generator())
    before = x.clone()
    stream = make_torch_generator(1)
    corrupted = torch.stack([corrupt(x, i, stream) for i in range(6)])
    assert corrupted.shape == x.shape
    assert torch.equal(x, before)
    assert corrupted.min() >= x.min()
    assert corrupted.max() <= x.max()
    assert (corrupted != x).flatten(1).any(1).float().mean() > 0.6


def test_quarters_by_hand():
    x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    arrangements = {
        tuple(
            outliers.copy_image_with_quarters_rotated(x, 0, make_torch_generator(s))
            .flatten()
            .tolist()
        )
        for s in range(20)
    }
    assert arrangements == {(2, 3, 4, 1), (3, 4, 1, 2), (4, 1, 2, 3)}


def test_halves_by_hand():
    # A single image is joined with itself upside down, [[4, 3], [2, 1]].
    x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    arrangements = {
        tuple(
            outliers.copy_image_with_half_of_another(x, 0, make_torch_generator(s))
            .flatten()
            .tolist()
        )
        for s in range(20)
    }
    assert arrangements == {(1, 2, 2, 1), (1, 3, 3, 1)}


def test_cut_and_paste_moves_one_patch_of_the_image():
    x = torch.arange(64.0).view(1, 1, 8, 8)
    out = outliers.copy_image_with_patch_pasted(x, 0, make_torch_generator(3))
    changed = (out != x)[0, 0].nonzero()
    assert len(changed) and set(out.flatten().tolist()) <= set(x.flatten().tolist())
    shift = (out - x)[0, 0][changed[:, 0], changed[:, 1]]
    assert len(shift.unique()) == 1  # a patch moved as a whole


def test_outliers_of_feature_rows_keep_each_column():
    x = torch.arange(20.0).view(5, 4)
    rows = outliers.make_outlier_images(x, make_torch_generator())
    assert rows.shape == x.shape and not torch.equal(rows, x)
    assert torch.equal(rows % 4, x % 4)  # column c holds numbers of column c


def test_harder_outliers_by_hand():
    """A linear model: the gradient of -log p(unknown) to x is Σ_c p_c w_c - w_unknown, of which the sign counts."""
    model = build("mlp", (6,), 4, dtype=torch.float64)
    x = torch.randn(5, 6, generator=make_torch_generator(), dtype=torch.float64)
    expected = x.clone()
    for _ in range(3):
        expected.requires_grad_()
        (gradient,) = torch.autograd.grad(-model(expected).log_softmax(1)[:, 3].sum(), expected)
        expected = (expected + 0.002 * gradient.sign()).detach()
    model.train()
    moved = outliers.move_outliers_towards_known_classes(model, x, 3, 3, chunk_size=2)
    torch.testing.assert_close(moved, expected, rtol=0, atol=1e-12)
    assert model.training and all(p.grad is None for p in model.parameters())
    assert outliers.move_outliers_towards_known_classes(model, x[:0], 3, 3).shape == (0, 6)


# ------------------------------------------------------------------------------------------------ the method
@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"fresh": True}, {"adversarial": 2}, {"fresh": True, "adversarial": 1}]
)
def test_fresh_or_adversarial_outliers_change_the_model_but_no_bytes(options):
    """Against outliers that are drawn once: as many epochs, the same bytes, another model; a second run is equal."""
    plain, ctx = context(), context()
    model_of_fixed_outliers = exhaust_generator(FedOV().run(plain))
    model = exhaust_generator(FedOV(**options).run(ctx))
    assert plain.link.ledger.by_client() == ctx.link.ledger.by_client()
    x = torch.rand(5, 1, 8, 8, generator=make_torch_generator())
    assert not torch.equal(model_of_fixed_outliers.logits(x), model.logits(x))
    second_model, steps = run_and_collect_steps(FedOV(**options).run(context()))
    assert torch.equal(model.logits(x), second_model.logits(x))
    epochs = [
        (step.done, step.total)
        for step in steps
        if step.phase == "open-set training" and step.model is not None
    ]
    assert epochs == [(1, 2), (2, 2)]


def test_bytes_are_two_models_with_one_output_more():
    ctx = context()
    out = exhaust_generator(FedOV().run(ctx))
    d = sum(p.numel() for p in build("mlp", (1, 8, 8), 11).parameters())
    assert set(ctx.link.ledger.by_client().values()) == {(4 * d, 4 * d)} and out.parameters == 3 * d
    assert out.logits(torch.rand(5, 1, 8, 8)).shape == (5, 10)


@pytest.mark.slow
def test_clients_call_corrupted_images_unknown_more_often_than_their_own():
    federation = federate("digits", alpha=0.3, clients=3, seed=0)
    ctx = context()
    ctx.recipe = Recipe(epochs=40)
    out = exhaust_generator(FedOV().run(ctx))
    for k in range(3):
        x, _ = ctx.private.held_out(k)
        corrupted = outliers.make_outlier_images(x, make_torch_generator(5))
        unknown_if_corrupted = out.clients.logits(corrupted)[k].softmax(-1)[:, -1].mean()
        unknown_if_real = out.clients.logits(x)[k].softmax(-1)[:, -1].mean()
        assert unknown_if_corrupted > unknown_if_real + 0.3
    assert out.accuracy(federation.dataset.x_test, federation.dataset.y_test) > 0.7
