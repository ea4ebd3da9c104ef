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
from fedlab_nb.methods.fisher_merge import (
    FisherMerge,
    average_states_by_fisher,
    compute_diagonal_fisher,
)
from fedlab_nb.models import build, copy_model_state
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.training import Recipe

EXACT = torch.float64


context = functools.partial(
    method_runs.make_context, share=0.3, dtype=EXACT, recipe=Recipe(lr=0.01)
)


def draw_samples(n=9, shape=(1, 8, 8)):
    g = torch.Generator().manual_seed(0)
    return torch.rand(n, *shape, generator=g, dtype=EXACT), torch.randint(10, (n,), generator=g)


# ------------------------------------------------------------------------------------------------ the formula
def test_merging_two_clients_by_hand():
    states = [{"w": torch.tensor([1.0, 2.0, 4.0])}, {"w": torch.tensor([3.0, 6.0, 0.0])}]
    fishers = [{"w": torch.tensor([3.0, 0.0, 0.0])}, {"w": torch.tensor([1.0, 5.0, 0.0])}]
    # Equal weights, hardly any damping: (3*1 + 1*3)/4; only client 2 has information; none has, so the average.
    merged = average_states_by_fisher(states, fishers, [1, 1], 1e-9)["w"]
    torch.testing.assert_close(merged, torch.tensor([1.5, 6.0, 2.0]))
    # With λ_damp = 1 and n = 1, 3: (1*4*1 + 3*2*3)/(4 + 6), (1*1*2 + 3*6*6)/(1 + 18), (4 + 0)/4.
    merged = average_states_by_fisher(states, fishers, [1, 3], 1.0)["w"]
    torch.testing.assert_close(merged, torch.tensor([2.2, 110 / 19, 1.0]))


def test_equal_fishers_and_large_damping_are_the_weighted_average():
    stream = torch.Generator().manual_seed(0)
    states = [
        {"w": torch.randn(4, 3, generator=stream, dtype=EXACT), "mean": torch.randn(3, dtype=EXACT)}
        for _ in range(3)
    ]
    equal_fisher = {"w": torch.rand(4, 3, generator=stream, dtype=EXACT)}
    average = weighted_mean(states, [1, 2, 5])
    merged = average_states_by_fisher(states, [equal_fisher] * 3, [1, 2, 5], 1e-6)
    for name in average:  # "mean" has no Fisher
        torch.testing.assert_close(merged[name], average[name], rtol=1e-12, atol=1e-12)
    unequal_fishers = [{"w": equal_fisher["w"] * k} for k in range(3)]
    torch.testing.assert_close(
        average_states_by_fisher(states, unequal_fishers, [1, 2, 5], 1e12)["w"],
        average["w"],
        rtol=1e-9,
        atol=1e-9,
    )


# ------------------------------------------------------------------------------------------------ the Fisher
@pytest.mark.slow
@pytest.mark.parametrize("labels", ["true", "model"])
@pytest.mark.parametrize(
    ("model", "width"), [("mlp", None), ("cnn", None), ("resnet8", 4), ("resnet8-gn", 16)]
)
def test_the_diagonal_fisher_equals_a_loop_over_samples(model, width, labels):
    """By autograd, one sample at a time; with labels="model" one class at a time, weighted by its probability."""
    module = build(model, (1, 8, 8), 10, width=width, dtype=EXACT)
    x, y = draw_samples()
    module.train()(x)  # so that batch norm has running statistics of these samples
    module.train()
    state = copy_model_state(module)
    fisher = compute_diagonal_fisher(module, x, y, label_source=labels, batch_size=4)
    assert module.training and all(
        torch.equal(state[n], t) for n, t in copy_model_state(module).items()
    )
    module.eval()
    expected = {name: torch.zeros_like(p) for name, p in module.named_parameters()}
    for sample, label in zip(x, y, strict=True):
        if labels == "true":
            class_weights = {int(label): 1.0}
        else:
            probabilities = module(sample[None]).detach().softmax(1)[0]
            class_weights = dict(enumerate(probabilities))
        for c, class_weight in class_weights.items():
            module.zero_grad()
            F.cross_entropy(module(sample[None]), torch.tensor([c])).backward()
            for name, parameter in module.named_parameters():
                expected[name] += class_weight * parameter.grad**2 / len(x)
    for name in expected:
        torch.testing.assert_close(fisher[name], expected[name], rtol=1e-9, atol=1e-15)
    in_one_batch = compute_diagonal_fisher(module, x, y, label_source=labels, batch_size=9)
    for name in in_one_batch:
        torch.testing.assert_close(in_one_batch[name], fisher[name], rtol=1e-9, atol=1e-15)


def test_with_many_classes_labels_are_drawn_from_the_prediction(monkeypatch):
    """Beyond MOST classes one label a sample is drawn: the mean of many draws is near the exact Fisher."""
    module, (x, y) = build("mlp", (1, 8, 8), 10, dtype=EXACT), draw_samples(4)
    exact = compute_diagonal_fisher(module, x, y, label_source="model")["classifier.bias"]
    monkeypatch.setattr(fisher_merge, "MOST", 9)
    repeated_x = x.repeat(2000, 1, 1, 1)
    repeated_y = y.repeat(2000)

    def draw_fisher():
        stream = torch.Generator().manual_seed(1)
        fisher = compute_diagonal_fisher(
            module, repeated_x, repeated_y, label_source="model", stream=stream, batch_size=8000
        )
        return fisher["classifier.bias"]

    drawn = draw_fisher()
    torch.testing.assert_close(drawn, exact, rtol=0.15, atol=0)
    assert torch.equal(drawn, draw_fisher())
    assert not torch.equal(drawn, exact)
    with pytest.raises(UsageError, match="labels of the Fisher 'drawn'"):
        compute_diagonal_fisher(module, x, y, label_source="drawn")


def test_no_samples_is_one_sentence():
    x, y = draw_samples()
    with pytest.raises(UsageError, match="0 samples"):
        compute_diagonal_fisher(build("mlp", (1, 8, 8), 10), x[:0], y[:0])


# ------------------------------------------------------------------------------------------------ the method
@pytest.mark.parametrize(("model", "width"), [("mlp", None), ("resnet8", 4)])
def test_bytes_follow_the_closed_formula(model, width):
    ctx = context(model=model, width=width, dtype=torch.float32)
    # labels="true" takes one backward pass instead of one for each class.
    out = exhaust_generator(FisherMerge(labels="true").run(ctx))
    d = sum(t.numel() for t in copy_model_state(out.module).values())
    expected = byte_formulas.count_fisher_merge_bytes(d, out.parameters)
    if model == "resnet8":
        assert d > out.parameters  # batch norm's statistics have no Fisher
    else:
        assert expected == 12 * d
    assert {up + down for up, down in ctx.link.ledger.by_client().values()} == {expected}
