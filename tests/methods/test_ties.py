"""Task arithmetic, TIES and DARE: merged numbers by hand, limiting cases, DARE's expectation, bytes, the report."""

import byte_formulas
import pytest
import torch

from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.ties import (
    Ties,
    compute_share_of_sign_conflicts,
    compute_sign_elected_mean,
    trim_to_largest_changes,
)
from fedlab_nb.models import copy_model_state
from fedlab_nb.studies.experiment import exhaust_generator

from .test_fisher_merge import EXACT, context

HALVES = torch.tensor([0.5, 0.5])


def merge(method, clients=3, seed=None, **options):
    """The merged state, the clients' states and the context."""
    remembered = options.pop("remembered", [])
    ctx = context(clients=clients, remembered=remembered, **options)
    if seed is not None:
        ctx.seed = seed
    return copy_model_state(exhaust_generator(method.run(ctx)).module), remembered[0], ctx


def assert_states_close(actual, expected, atol=1e-12):
    for name, tensor in actual.items():
        torch.testing.assert_close(tensor, expected[name], rtol=0, atol=atol)


# ------------------------------------------------------------------------------------------------ by hand
def test_sign_elected_mean_of_two_clients_by_hand():
    changes = torch.tensor([[4.0, -3.0, 1.0, 0.0, 2.0, 0.0], [2.0, 1.0, -1.0, 5.0, -2.0, 0.0]])
    # Column by column: same signs, their mean; the larger change wins; a tie in size and in number; one client alone;
    # again a tie; no change at all.
    torch.testing.assert_close(
        compute_sign_elected_mean(changes, HALVES), torch.tensor([3.0, -3.0, 0.0, 5.0, 0.0, 0.0])
    )
    # Client 2 has three times the weight: (4 + 6)/4; 3 against 3, a tie; -3 beats 1; 5; -6 beats 2.
    shares = torch.tensor([0.25, 0.75])
    torch.testing.assert_close(
        compute_sign_elected_mean(changes, shares), torch.tensor([2.5, 0.0, -1.0, 5.0, -2.0, 0.0])
    )
    assert compute_share_of_sign_conflicts(changes) == pytest.approx(3 / 6)


def test_where_changes_sum_to_0_the_sign_of_most_clients_wins():
    changes = torch.tensor([[1.0], [1.0], [-2.0]])
    torch.testing.assert_close(
        compute_sign_elected_mean(changes, torch.ones(3) / 3), torch.tensor([1.0])
    )


def test_trimming_keeps_each_clients_largest_changes():
    changes = torch.tensor([[3.0, -5.0, 1.0, 2.0, 0.5], [1.0, 2.0, -9.0, 4.0, 3.0]])
    largest = torch.tensor([[3.0, -5.0, 0.0, 0.0, 0.0], [0.0, 0.0, -9.0, 4.0, 0.0]])
    assert torch.equal(trim_to_largest_changes(changes, 0.4), largest)
    assert torch.equal(trim_to_largest_changes(changes, 1.0), changes)


# ------------------------------------------------------------------------------------------------ limits
@pytest.mark.parametrize("weights", ["samples", "uniform"])
def test_task_arithmetic_with_scale_1_is_the_average_and_with_0_the_start(weights):
    merged, states, ctx = merge(Ties(rule="task", weights=weights))
    assert_states_close(
        merged, weighted_mean(states, ctx.sizes if weights == "samples" else [1] * 3)
    )
    nothing, _, ctx = merge(Ties(rule="task", scale=0.0))
    assert_states_close(nothing, copy_model_state(ctx.initial_model()))


def test_the_expectation_of_dares_random_dropping_is_the_change():
    ctx = context()
    change = torch.linspace(-2, 3, 40, dtype=EXACT)
    method = Ties(drop=0.75)
    mean = torch.zeros_like(change)
    for seed in range(2000):
        ctx.seed = seed
        thinned = method._drop_random_entries_and_rescale(change, ctx, 1)
        assert bool(((thinned == 0) | (thinned == 4 * change)).all())
        mean += thinned / 2000
    # The mean of 2000 draws of an entry t has the standard deviation |t| (3 / 2000)^½; the bound is 4.5 of them.
    assert ((mean - change).abs() <= 4.5 * change.abs() * (3 / 2000) ** 0.5).all()


def test_dare_is_task_arithmetic_without_dropping_alone():
    plain, states, _ = merge(Ties(rule="task"))
    assert_states_close(merge(Ties(rule="task", drop=0.0), remembered=[states])[0], plain)
    with_dropping, _, _ = merge(Ties(rule="task", drop=0.9), remembered=[states])
    assert max((with_dropping[n] - plain[n]).abs().max() for n in plain) > 0.01
    second_run, _, _ = merge(Ties(rule="task", drop=0.9), remembered=[states])
    assert_states_close(with_dropping, second_run, atol=0)


def test_running_statistics_are_averaged():
    merged, states, ctx = merge(Ties(), model="cnn2")
    average = weighted_mean(states, ctx.sizes)
    names = [n for n in merged if "running" in n]
    assert names and all(torch.equal(merged[n], average[n]) for n in names)


# ------------------------------------------------------------------------------------------------ uploads
def test_a_trimmed_upload_gives_the_same_merge_to_16_bits():
    dense, states, ctx = merge(Ties())
    sparse, _, _ = merge(Ties(upload="trimmed"), remembered=[states])
    start = copy_model_state(ctx.initial_model())
    largest = max((states[k][n] - start[n]).abs().max() for k in range(3) for n in start)
    assert_states_close(sparse, dense, atol=float(largest) * 2**-11)
    assert max((sparse[n] - dense[n]).abs().max() for n in dense) > 0


@pytest.mark.parametrize("keep", [0.01, 0.2, 1.0])
def test_bytes_of_a_trimmed_upload(keep):
    states, ctx = merge(Ties(keep=keep, upload="trimmed"), dtype=torch.float32)[1:]
    start = copy_model_state(ctx.initial_model())
    for k, (up, down) in ctx.link.ledger.by_client().items():
        change = torch.cat([(states[k][n] - start[n]).flatten() for n in start])
        d = len(change)
        positions = change.abs().topk(max(1, round(keep * d))).indices.sort().values.tolist()
        assert up == byte_formulas.count_trimmed_change_bytes(positions, d, keep)
        assert down == byte_formulas.count_model_bytes_one_way(d)


# -------------------------------------------------------------------------------------------- the report
def test_the_report_counts_sign_conflicts():
    remembered = []
    ctx = context(remembered=remembered)
    model = exhaust_generator(Ties(keep=0.3).run(ctx))
    start = copy_model_state(ctx.initial_model())
    signs = [torch.cat([(s[n] - start[n]).flatten() for n in start]).sign() for s in remembered[0]]
    signs = torch.stack(signs)
    has_conflict = (signs == 1).any(0) & (signs == -1).any(0)
    assert model.report.conflicts == pytest.approx(has_conflict.double().mean().item())
    assert model.report.conflicts_left < model.report.conflicts
    assert model.report.kept == pytest.approx(0.3, abs=1e-3)
    x, y = torch.rand(30, 1, 8, 8, dtype=EXACT), torch.arange(30) % 10
    assert model.complete_report_on_test_samples(x, y).get_accuracies_under_other_rules() == {
        "plain average": model.average.accuracy(x, y)
    }
