"""Task arithmetic, TIES and DARE: numbers by hand, their limits, expectations, bytes."""

import byte_formulas
import pytest
import torch

from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.ties import (
    Ties,
    compute_share_of_sign_conflicts,
    compute_sign_elected_mean,
    keep_largest_changes,
)
from fedlab_nb.models import model_state
from fedlab_nb.studies.experiment import exhaust_generator

from .test_fisher_merge import EXACT, context

HALVES = torch.tensor([0.5, 0.5])


def result(method, clients=3, seed=None, **options):
    """The merged state, the clients' states and the context."""
    remembered = options.pop("remembered", [])
    ctx = context(clients=clients, remembered=remembered, **options)
    if seed is not None:
        ctx.seed = seed
    return model_state(exhaust_generator(method.run(ctx)).module), remembered[0], ctx


def close(one, other, **limits):
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, other[name], **(limits or {"rtol": 0, "atol": 1e-12}))


# ------------------------------------------------------------------------------------------------ by hand
def test_two_clients_by_hand():
    changes = torch.tensor([[4.0, -3.0, 1.0, 0.0, 2.0, 0.0], [2.0, 1.0, -1.0, 5.0, -2.0, 0.0]])
    # Agreement; the larger wins alone; a draw of sizes and of heads; one speaks; a draw; nobody speaks.
    torch.testing.assert_close(
        compute_sign_elected_mean(changes, HALVES), torch.tensor([3.0, -3.0, 0.0, 5.0, 0.0, 0.0])
    )
    # Client 2 counts three times as much: (4 + 6)/4; 3 against 3, a draw; -3 wins over 1; 5; -6 over 2.
    shares = torch.tensor([0.25, 0.75])
    torch.testing.assert_close(
        compute_sign_elected_mean(changes, shares), torch.tensor([2.5, 0.0, -1.0, 5.0, -2.0, 0.0])
    )
    assert compute_share_of_sign_conflicts(changes) == pytest.approx(3 / 6)


def test_a_sum_of_0_goes_to_the_sign_of_most_clients():
    changes = torch.tensor([[1.0], [1.0], [-2.0]])
    torch.testing.assert_close(
        compute_sign_elected_mean(changes, torch.ones(3) / 3), torch.tensor([1.0])
    )


def test_trimming_keeps_the_largest_of_each_client():
    changes = torch.tensor([[3.0, -5.0, 1.0, 2.0, 0.5], [1.0, 2.0, -9.0, 4.0, 3.0]])
    largest = torch.tensor([[3.0, -5.0, 0.0, 0.0, 0.0], [0.0, 0.0, -9.0, 4.0, 0.0]])
    assert torch.equal(keep_largest_changes(changes, 0.4), largest)
    assert torch.equal(keep_largest_changes(changes, 1.0), changes)


# ------------------------------------------------------------------------------------------------ limits
@pytest.mark.parametrize("weights", ["samples", "uniform"])
def test_task_arithmetic_with_scale_1_is_the_average_and_with_0_the_start(weights):
    merged, states, ctx = result(Ties(rule="task", weights=weights))
    close(merged, weighted_mean(states, ctx.sizes if weights == "samples" else [1] * 3))
    nothing, _, ctx = result(Ties(rule="task", scale=0.0))
    close(nothing, model_state(ctx.initial_model()))


def test_the_expectation_of_dare_is_the_change():
    ctx, change = context(), torch.linspace(-2, 3, 40, dtype=EXACT)
    method, mean = Ties(drop=0.75), torch.zeros_like(change)
    for seed in range(2000):
        ctx.seed = seed
        drawn = method._drop_random_entries(change, ctx, 1)
        assert bool(((drawn == 0) | (drawn == 4 * change)).all())
        mean += drawn / 2000
    # Of one entry t the standard deviation over 2000 draws is |t| (3 / 2000)^½.
    assert ((mean - change).abs() <= 4.5 * change.abs() * (3 / 2000) ** 0.5).all()


def test_dare_without_dropping_is_task_arithmetic_and_with_it_is_not():
    plain, states, _ = result(Ties(rule="task"))
    close(result(Ties(rule="task", drop=0.0), remembered=[states])[0], plain)
    drawn, _, _ = result(Ties(rule="task", drop=0.9), remembered=[states])
    assert max((drawn[n] - plain[n]).abs().max() for n in plain) > 0.01
    again, _, _ = result(Ties(rule="task", drop=0.9), remembered=[states])
    close(drawn, again, rtol=0, atol=0)


def test_running_statistics_are_averaged():
    merged, states, ctx = result(Ties(), model="cnn2")
    average = weighted_mean(states, ctx.sizes)
    names = [n for n in merged if "running" in n]
    assert names and all(torch.equal(merged[n], average[n]) for n in names)


# ------------------------------------------------------------------------------------------------ uploads
def test_a_trimmed_upload_is_the_whole_one_to_16_bits():
    whole, states, ctx = result(Ties())
    sparse, _, _ = result(Ties(upload="trimmed"), remembered=[states])
    start = model_state(ctx.initial_model())
    largest = max((states[k][n] - start[n]).abs().max() for k in range(3) for n in start)
    close(sparse, whole, rtol=0, atol=float(largest) * 2**-11)
    assert max((sparse[n] - whole[n]).abs().max() for n in whole) > 0


@pytest.mark.parametrize("keep", [0.01, 0.2, 1.0])
def test_bytes_of_a_trimmed_upload(keep):
    states, ctx = result(Ties(keep=keep, upload="trimmed"), dtype=torch.float32)[1:]
    start = model_state(ctx.initial_model())
    for k, (up, down) in ctx.link.ledger.by_client().items():
        change = torch.cat([(states[k][n] - start[n]).flatten() for n in start])
        d = len(change)
        positions = change.abs().topk(max(1, round(keep * d))).indices.sort().values.tolist()
        assert up == byte_formulas.trimmed_change_bytes(positions, d, keep)
        assert down == byte_formulas.count_model_bytes_one_way(d)


# -------------------------------------------------------------------------------------------- what is reported, refused
def test_the_report_counts_conflicts():
    remembered = []
    ctx = context(remembered=remembered)
    model = exhaust_generator(Ties(keep=0.3).run(ctx))
    start = model_state(ctx.initial_model())
    signs = [torch.cat([(s[n] - start[n]).flatten() for n in start]).sign() for s in remembered[0]]
    both = sum(
        1 for column in zip(*(s.tolist() for s in signs), strict=True) if {1.0, -1.0} <= set(column)
    )
    assert model.report.conflicts == pytest.approx(both / len(signs[0]))
    assert model.report.conflicts_left < model.report.conflicts
    assert model.report.kept == pytest.approx(0.3, abs=1e-3)
    x, y = torch.rand(30, 1, 8, 8, dtype=EXACT), torch.arange(30) % 10
    assert model.measured(x, y).others() == {"plain average": model.average.accuracy(x, y)}
