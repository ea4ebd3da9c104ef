"""Fed-ET's weights, consensus and loss against other derivations and numbers by hand, in float64. F1 to F9 are facts
that follow from its formulas."""

import math

import pytest
import torch
import torch.nn.functional as F
from fedet_runs import make_soft_labels

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fedet.consensus import (
    compute_consensus,
    compute_diversity_regularised_losses,
)

M, B, N = 5, 7, 4  # all different, so that a wrong axis cannot pass


def draw_logits(seed=0, m=M, b=B, n=N, scale=2.0):
    return scale * torch.randn(
        m, b, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def make_logits_of_probabilities(*outputs):
    """Clients' probabilities for one sample, as logits `[m, 1, N]`."""
    return torch.tensor(outputs, dtype=torch.float64)[:, None].log()


def test_f1_weights_are_affine_in_the_collision_probability():
    vote, p = compute_consensus(draw_logits()), draw_logits().softmax(-1)
    collision = ((p**2).sum(-1) - 1 / N) / N
    torch.testing.assert_close(vote.weights, collision / collision.sum(0))
    for n, most in [(2, 0.25), (10, 0.09), (100, 0.0099)]:
        one_hot = F.one_hot(torch.tensor(0), n).double()
        assert (
            ((one_hot**2).sum() - 1 / n).item() / n
            == pytest.approx(most)
            == one_hot.var(correction=0).item()
        )
    q = torch.tensor([0.3, 0.7], dtype=torch.float64)
    assert q.var(correction=0).item() == pytest.approx((0.3 - 0.5) ** 2)


def test_f2_weights_ignore_the_order_of_classes_and_follow_that_of_clients():
    z = draw_logits()
    classes = torch.tensor([2, 0, 3, 1])
    clients = torch.tensor([4, 2, 0, 1, 3])
    vote = compute_consensus(z)
    other_classes = compute_consensus(z[..., classes])
    other_clients = compute_consensus(z[clients])
    torch.testing.assert_close(vote.weights, other_classes.weights)
    torch.testing.assert_close(vote.weights[clients], other_clients.weights)
    torch.testing.assert_close(vote.distribution[:, classes], other_classes.distribution)
    torch.testing.assert_close(vote.distribution, other_clients.distribution)
    confident = compute_consensus(
        make_logits_of_probabilities([0.97, 0.01, 0.01, 0.01], [0.01, 0.01, 0.97, 0.01])
    )
    # Whether right or wrong, equally confident clients have equal weights.
    torch.testing.assert_close(confident.weights, torch.full_like(confident.weights, 0.5))


def test_f3_saturated_or_constant_outputs_have_equal_weights():
    saturated = 200.0 * F.one_hot(torch.tensor([[0], [1], [1], [3]]), N).double()
    torch.testing.assert_close(
        compute_consensus(saturated).weights, torch.full((4, 1), 0.25, dtype=torch.float64)
    )
    for dtype in (torch.float32, torch.float64):
        constant = torch.full((3, 2, N), 1.7, dtype=dtype)
        constant[:, 1] = draw_logits()[:3, 0].to(dtype)
        vote = compute_consensus(constant)
        torch.testing.assert_close(vote.weights[:, 0], torch.full((3,), 1 / 3, dtype=dtype))
        assert vote.distribution.isfinite().all() and vote.weights[:, 1].std() > 0.01
        assert vote.labels[0] == 0  # a tie: the lowest class


def test_f4_at_high_temperature_weights_are_those_of_logits_and_at_low_ones_equal():
    z = draw_logits()
    raw = z.var(-1, correction=0)
    t = 1e4
    torch.testing.assert_close(
        (z / t).softmax(-1).var(-1, correction=0) * (N * t) ** 2, raw, rtol=1e-3, atol=0
    )
    torch.testing.assert_close(
        compute_consensus(z, weight_temperature=t).weights, raw / raw.sum(0), rtol=1e-3, atol=0
    )
    by_logits = compute_consensus(z, weighting="logit-variance")
    torch.testing.assert_close(by_logits.weights, raw / raw.sum(0))
    torch.testing.assert_close(by_logits.outputs, z.softmax(-1))  # the weights alone change
    torch.testing.assert_close(
        compute_consensus(z, weight_temperature=1e-4).weights,
        torch.full((M, B), 1 / M, dtype=torch.float64),
    )
    torch.testing.assert_close(z.log_softmax(-1).var(-1), z.var(-1))


@pytest.mark.parametrize("strength", [0.0, 0.05, 0.5, 2.0])
def test_f5_the_students_gradient_in_closed_form(strength):
    vote = compute_consensus(draw_logits())
    student = draw_logits(seed=1, m=1)[0].requires_grad_()
    compute_diversity_regularised_losses(
        student, vote.labels, vote.diversity, strength
    ).sum().backward()
    p, mass = student.detach().softmax(-1), vote.mass[:, None]
    by_hand = (1 + strength * mass) * p - F.one_hot(vote.labels, N) - strength * vote.diversity
    torch.testing.assert_close(student.grad, by_hand)


@pytest.mark.parametrize("strength", [0.05, 0.5])
def test_f6_the_loss_is_a_cross_entropy_with_a_soft_label(strength):
    vote = compute_consensus(draw_logits())
    q = make_soft_labels(vote.labels, vote.diversity, strength)
    torch.testing.assert_close(q.sum(-1), torch.ones(B, dtype=torch.float64))
    remainders = []
    for seed in (1, 2):
        student = draw_logits(seed=seed, m=1)[0]
        losses = compute_diversity_regularised_losses(
            student, vote.labels, vote.diversity, strength
        )
        remainders.append(
            losses - (1 + strength * vote.mass) * F.cross_entropy(student, q, reduction="none")
        )
    # What remains does not depend on the student.
    torch.testing.assert_close(*remainders)
    assert vote.mass.max() > 0.3
    # The dissenters' share of the target: q* without its part on e_y. At most (ω_div = 1) 4.8 or 33 per cent.
    share = (q - F.one_hot(vote.labels, N) / (1 + strength * vote.mass)[:, None]).sum(-1)
    torch.testing.assert_close(share, strength * vote.mass / (1 + strength * vote.mass))
    assert share.max() < {0.05: 0.048, 0.5: 0.334}[strength]


def test_f7_below_strength_1_dissenters_never_overrule_the_consensus():
    vote = compute_consensus(draw_logits(b=2000))
    for strength in (0.05, 0.5, 0.999):
        assert torch.equal(
            make_soft_labels(vote.labels, vote.diversity, strength).argmax(-1), vote.labels
        )
    with_dissent = compute_consensus(
        make_logits_of_probabilities([0.97, 0.01, 0.01, 0.01], [0.02, 0.94, 0.02, 0.02])
    )
    assert (
        with_dissent.labels.item() == 0
        and make_soft_labels(with_dissent.labels, with_dissent.diversity, 3.0).argmax().item() == 1
    )


def test_f8_the_papers_divergence_can_be_negative_but_is_bounded():
    vote = compute_consensus(draw_logits())
    mass = vote.mass
    # The smallest value over all students is at p = s_div / ω_div, and is ω_div log ω_div.
    student = (vote.diversity / mass[:, None]).log()
    smallest = compute_diversity_regularised_losses(
        student, vote.labels, vote.diversity, 1.0
    ) - F.cross_entropy(student, vote.labels, reduction="none")
    torch.testing.assert_close(smallest, torch.xlogy(mass, mass))
    assert (smallest < 0).any()
    other_student = draw_logits(seed=3, m=1)[0]
    divergence = compute_diversity_regularised_losses(
        other_student, vote.labels, vote.diversity, 1.0
    ) - compute_diversity_regularised_losses(other_student, vote.labels, vote.diversity, 0.0)
    assert (divergence >= torch.xlogy(mass, mass) - 1e-12).all()


def test_f9_all_clients_can_dissent():
    vote = compute_consensus(make_logits_of_probabilities([0.5, 0.45, 0.05], [0.05, 0.45, 0.5]))
    torch.testing.assert_close(
        vote.distribution, torch.tensor([[0.275, 0.45, 0.275]], dtype=torch.float64)
    )
    assert vote.labels.item() == 1 and vote.dissent.all() and vote.mass.item() == pytest.approx(1)
    assert vote.dissent_fraction == 1


def test_consensus_and_loss_equal_plain_loops():
    z = draw_logits()
    vote = compute_consensus(z)
    for b in range(B):
        p = [
            [math.exp(v) / sum(math.exp(u) for u in z[k, b].tolist()) for v in z[k, b].tolist()]
            for k in range(M)
        ]
        variance = [sum((v - 1 / N) ** 2 for v in row) / N for row in p]
        alpha = [v / sum(variance) for v in variance]
        s = [sum(alpha[k] * p[k][c] for k in range(M)) for c in range(N)]
        y = max(range(N), key=lambda c: s[c])
        dissenters = [k for k in range(M) if max(range(N), key=lambda c: p[k][c]) != y]
        div = [sum(alpha[k] * p[k][c] for k in dissenters) for c in range(N)]
        assert vote.weights[:, b].tolist() == pytest.approx(alpha)
        assert vote.distribution[b].tolist() == pytest.approx(s) and vote.labels[b].item() == y
        assert vote.diversity[b].tolist() == pytest.approx(div)
        assert vote.dissent[:, b].nonzero().flatten().tolist() == dissenters
        assert vote.mass[b].item() == pytest.approx(sum(alpha[k] for k in dissenters))
        agreeing = sum(alpha[k] for k in range(M) if k not in dissenters)
        assert vote.mass[b].item() + agreeing == pytest.approx(1)
        student = draw_logits(seed=9, m=1)[0, b]
        log_probabilities = F.log_softmax(student, -1).tolist()
        loss = -log_probabilities[y] + 0.3 * sum(
            t * (math.log(t) - log_probabilities[c]) for c, t in enumerate(div) if t > 0
        )
        computed = compute_diversity_regularised_losses(
            student[None], vote.labels[b : b + 1], vote.diversity[b : b + 1], 0.3
        )
        assert computed.item() == pytest.approx(loss)


def test_without_dissent_the_loss_is_the_cross_entropy():
    equal_logits = draw_logits(m=1).expand(M, -1, -1)
    vote = compute_consensus(equal_logits)
    torch.testing.assert_close(vote.weights, torch.full((M, B), 1 / M, dtype=torch.float64))
    assert not vote.dissent.any() and not vote.mass.any() and not vote.diversity.any()
    student = draw_logits(seed=1, m=1)[0]
    expected = F.cross_entropy(student, vote.labels, reduction="none")
    assert torch.equal(
        compute_diversity_regularised_losses(student, vote.labels, vote.diversity, 0.5), expected
    )
    with_dissent = compute_consensus(draw_logits())
    # With λ = 0 it is so bit for bit, whatever the dissent.
    cross_entropy = F.cross_entropy(student, with_dissent.labels, reduction="none")
    assert torch.equal(
        compute_diversity_regularised_losses(
            student, with_dissent.labels, with_dissent.diversity, 0.0
        ),
        cross_entropy,
    )


def test_effective_clients_by_hand_and_within_their_bounds():
    vote = compute_consensus(
        make_logits_of_probabilities([0.97, 0.01, 0.01, 0.01], [0.25] * 4, [0.25] * 4)
    )
    assert vote.effective_clients.item() == pytest.approx(1)
    of_random_logits = compute_consensus(draw_logits())
    assert (
        (of_random_logits.effective_clients >= 1) & (of_random_logits.effective_clients <= M)
    ).all()
    torch.testing.assert_close(
        of_random_logits.effective_clients, 1 / (of_random_logits.weights**2).sum(0)
    )


def test_variants_of_weighting_and_normalisation():
    z = draw_logits()
    paper = compute_consensus(z)
    normalised = compute_consensus(z, dissent_normaliser="dissenters")
    has_dissent = paper.dissent.any(0)
    assert has_dissent.any()
    torch.testing.assert_close(
        normalised.diversity[has_dissent], (paper.diversity / paper.mass[:, None])[has_dissent]
    )
    torch.testing.assert_close(normalised.mass, paper.mass)
    without_dissent = draw_logits(m=1).expand(M, -1, -1)
    assert not compute_consensus(without_dissent, dissent_normaliser="dissenters").diversity.any()
    uniform = compute_consensus(
        without_dissent, dissent_normaliser="dissenters-or-uniform"
    ).diversity
    torch.testing.assert_close(uniform, torch.full_like(uniform, 1 / N))
    unweighted = compute_consensus(z, weighting="uniform")
    torch.testing.assert_close(unweighted.distribution, z.softmax(-1).mean(0))
    summed = compute_consensus(z, weighting="logits")
    variance = z.var(-1)
    weights = (variance / variance.sum(0))[..., None]
    torch.testing.assert_close(summed.distribution, (weights * z).sum(0).softmax(-1))
    for wrong in ({"weighting": "variance"}, {"dissent_normaliser": "none"}):
        with pytest.raises(UsageError):
            compute_consensus(z, **wrong)
