"""Fisher merging against numbers worked out by hand, its Fisher against a loop over samples, its bytes."""

import functools

import byte_formulas
import method_runs
import pytest
import torch
import torch.nn.functional as F

from fedlab_nb.errors import UsageError
from fedlab_nb.methods import fisher_merge
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.fisher_merge import FisherMerge, compute_diagonal_fisher, merge_by_fisher
from fedlab_nb.models import build, model_state
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.training import Recipe

EXACT = torch.float64


context = functools.partial(method_runs.context, share=0.3, dtype=EXACT, recipe=Recipe(lr=0.01))


def samples(n=9, shape=(1, 8, 8)):
    g = torch.Generator().manual_seed(0)
    return torch.rand(n, *shape, generator=g, dtype=EXACT), torch.randint(10, (n,), generator=g)


# ------------------------------------------------------------------------------------------------ the formula
def test_two_clients_by_hand():
    states = [{"w": torch.tensor([1.0, 2.0, 4.0])}, {"w": torch.tensor([3.0, 6.0, 0.0])}]
    fishers = [{"w": torch.tensor([3.0, 0.0, 0.0])}, {"w": torch.tensor([1.0, 5.0, 0.0])}]
    # Equal weights, no damping but in the third place: (3*1 + 1*3)/4; only the second knows; nobody knows.
    merged = merge_by_fisher(states, fishers, [1, 1], 1e-9)["w"]
    torch.testing.assert_close(merged, torch.tensor([1.5, 6.0, 2.0]))
    # With λ_damp = 1 and n = 1, 3: (1*4*1 + 3*2*3)/(4 + 6), (1*1*2 + 3*6*6)/(1 + 18), (4 + 0)/4.
    merged = merge_by_fisher(states, fishers, [1, 3], 1.0)["w"]
    torch.testing.assert_close(merged, torch.tensor([2.2, 110 / 19, 1.0]))


def test_equal_fishers_and_large_damping_are_the_weighted_average():
    g = torch.Generator().manual_seed(0)
    states = [
        {"w": torch.randn(4, 3, generator=g, dtype=EXACT), "mean": torch.randn(3, dtype=EXACT)}
        for _ in range(3)
    ]
    same = {"w": torch.rand(4, 3, generator=g, dtype=EXACT)}
    average = weighted_mean(states, [1, 2, 5])
    merged = merge_by_fisher(states, [same] * 3, [1, 2, 5], 1e-6)
    for name in average:  # "mean" has no Fisher
        torch.testing.assert_close(merged[name], average[name], rtol=1e-12, atol=1e-12)
    unequal = [{"w": same["w"] * k} for k in range(3)]
    torch.testing.assert_close(
        merge_by_fisher(states, unequal, [1, 2, 5], 1e12)["w"], average["w"], rtol=1e-9, atol=1e-9
    )


# ------------------------------------------------------------------------------------------------ the Fisher
@pytest.mark.parametrize("labels", ["true", "model"])
@pytest.mark.parametrize(
    ("model", "width"), [("mlp", None), ("cnn", None), ("resnet8", 4), ("resnet8-gn", 16)]
)
def test_the_diagonal_against_a_loop_over_samples(model, width, labels):
    """By autograd, a sample and (labels="model") a class at a time, weighted by the class's own probability."""
    module = build(model, (1, 8, 8), 10, width=width, dtype=EXACT)
    x, y = samples()
    module.train()(x)  # batch norm gets statistics of its own
    module.train()
    state = model_state(module)
    fisher = compute_diagonal_fisher(module, x, y, label_source=labels, batch_size=4)
    assert module.training and all(torch.equal(state[n], t) for n, t in model_state(module).items())
    module.eval()
    expected = {name: torch.zeros_like(p) for name, p in module.named_parameters()}
    for sample, label in zip(x, y, strict=True):
        chances = module(sample[None]).detach().softmax(1)[0]
        for c in [int(label)] if labels == "true" else range(10):
            module.zero_grad()
            F.cross_entropy(module(sample[None]), torch.tensor([c])).backward()
            for name, parameter in module.named_parameters():
                expected[name] += (
                    parameter.grad**2 / len(x) * (1 if labels == "true" else chances[c])
                )
    for name in expected:
        torch.testing.assert_close(fisher[name], expected[name], rtol=1e-9, atol=1e-15)
    for name, value in compute_diagonal_fisher(
        module, x, y, label_source=labels, batch_size=9
    ).items():
        torch.testing.assert_close(value, fisher[name], rtol=1e-9, atol=1e-15)


def test_with_many_classes_labels_are_drawn_from_the_prediction(monkeypatch):
    """Beyond MOST classes one label a sample: the mean over many draws is the exact expectation, and draws repeat."""
    module, (x, y) = build("mlp", (1, 8, 8), 10, dtype=EXACT), samples(4)
    exact = compute_diagonal_fisher(module, x, y, label_source="model")["classifier.bias"]
    monkeypatch.setattr(fisher_merge, "MOST", 9)
    many = x.repeat(2000, 1, 1, 1), y.repeat(2000)
    one, again = (
        compute_diagonal_fisher(
            module, *many, label_source="model", stream=torch.Generator().manual_seed(1), batch_size=8000
        )["classifier.bias"]
        for _ in range(2)
    )  # fmt: skip
    torch.testing.assert_close(one, exact, rtol=0.15, atol=0)
    assert torch.equal(one, again) and not torch.equal(one, exact)
    with pytest.raises(UsageError, match="labels of the Fisher 'drawn'"):
        compute_diagonal_fisher(module, x, y, label_source="drawn")


def test_no_samples_is_one_sentence():
    x, y = samples()
    with pytest.raises(UsageError, match="0 samples"):
        compute_diagonal_fisher(build("mlp", (1, 8, 8), 10), x[:0], y[:0])


# ------------------------------------------------------------------------------------------------ the method
@pytest.mark.parametrize(("model", "width"), [("mlp", None), ("resnet8", 4)])
def test_bytes_follow_the_closed_formula(model, width):
    ctx = context(model=model, width=width, dtype=torch.float32)
    out = exhaust_generator(
        FisherMerge(labels="true").run(ctx)
    )  # a pass instead of one for each class
    d = sum(t.numel() for t in model_state(out.module).values())
    expected = byte_formulas.fisher_merge_bytes(d, out.parameters)
    assert d > out.parameters if model == "resnet8" else expected == 12 * d
    assert {up + down for up, down in ctx.link.ledger.by_client().values()} == {expected}
