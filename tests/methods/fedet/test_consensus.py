"""Fed-ET's weights, consensus and loss against other derivations and numbers made by hand: F1 to F9, in float64."""

import math

import pytest
import torch
import torch.nn.functional as F
from fedet_runs import soft_label

from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fedet.consensus import (
    compute_consensus,
    compute_diversity_regularised_losses,
)

M, B, N = 5, 7, 4  # all different, so that a wrong axis cannot pass


def logits(seed=0, m=M, b=B, n=N, scale=2.0):
    return scale * torch.randn(
        m, b, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def outputs_as_logits(*outputs):
    """Clients' probabilities for one sample, as logits `[m, 1, N]`."""
    return torch.tensor(outputs, dtype=torch.float64)[:, None].log()


def test_f1_variance_is_affine_in_the_collision_probability():
    vote, p = compute_consensus(logits()), logits().softmax(-1)
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


def test_f2_blind_to_labels_and_equivariant_in_clients():
    z, classes, clients = logits(), torch.tensor([2, 0, 3, 1]), torch.tensor([4, 2, 0, 1, 3])
    vote, other, permuted = (
        compute_consensus(z),
        compute_consensus(z[..., classes]),
        compute_consensus(z[clients]),
    )
    torch.testing.assert_close(vote.weights, other.weights)
    torch.testing.assert_close(vote.weights[clients], permuted.weights)
    torch.testing.assert_close(vote.distribution[:, classes], other.distribution)
    torch.testing.assert_close(vote.distribution, permuted.distribution)
    loud = compute_consensus(outputs_as_logits([0.97, 0.01, 0.01, 0.01], [0.01, 0.01, 0.97, 0.01]))
    torch.testing.assert_close(
        loud.weights, torch.full_like(loud.weights, 0.5)
    )  # right or wrong, equally loud


def test_f3_saturated_or_flat_outputs_count_alike():
    sure = 200.0 * F.one_hot(torch.tensor([[0], [1], [1], [3]]), N).double()
    torch.testing.assert_close(
        compute_consensus(sure).weights, torch.full((4, 1), 0.25, dtype=torch.float64)
    )
    for dtype in (torch.float32, torch.float64):
        flat = torch.full((3, 2, N), 1.7, dtype=dtype)
        flat[:, 1] = logits()[:3, 0].to(dtype)
        vote = compute_consensus(flat)
        torch.testing.assert_close(vote.weights[:, 0], torch.full((3,), 1 / 3, dtype=dtype))
        assert vote.distribution.isfinite().all() and vote.weights[:, 1].std() > 0.01
        assert vote.labels[0] == 0  # a tie: the lowest class


def test_f4_hot_weights_are_those_of_raw_logits_and_cold_ones_equal():
    z = logits()
    raw = z.var(-1, correction=0)
    t = 1e4
    torch.testing.assert_close(
        (z / t).softmax(-1).var(-1, correction=0) * (N * t) ** 2, raw, rtol=1e-3, atol=0
    )
    torch.testing.assert_close(
        compute_consensus(z, temperature=t).weights, raw / raw.sum(0), rtol=1e-3, atol=0
    )
    by_logits = compute_consensus(z, weighting="logit-variance")
    torch.testing.assert_close(by_logits.weights, raw / raw.sum(0))
    torch.testing.assert_close(by_logits.outputs, z.softmax(-1))  # the weights alone change
    torch.testing.assert_close(
        compute_consensus(z, temperature=1e-4).weights,
        torch.full((M, B), 1 / M, dtype=torch.float64),
    )
    torch.testing.assert_close(z.log_softmax(-1).var(-1), z.var(-1))


@pytest.mark.parametrize("strength", [0.0, 0.05, 0.5, 2.0])
def test_f5_gradient_of_the_student(strength):
    vote = compute_consensus(logits())
    student = logits(seed=1, m=1)[0].requires_grad_()
    compute_diversity_regularised_losses(
        student, vote.labels, vote.diversity, strength
    ).sum().backward()
    p, mass = student.detach().softmax(-1), vote.mass[:, None]
    by_hand = (1 + strength * mass) * p - F.one_hot(vote.labels, N) - strength * vote.diversity
    torch.testing.assert_close(student.grad, by_hand)


@pytest.mark.parametrize("strength", [0.05, 0.5])
def test_f6_the_loss_is_a_cross_entropy_with_a_soft_label(strength):
    vote = compute_consensus(logits())
    q = soft_label(vote.labels, vote.diversity, strength)
    torch.testing.assert_close(q.sum(-1), torch.ones(B, dtype=torch.float64))
    rest = []
    for seed in (1, 2):
        student = logits(seed=seed, m=1)[0]
        whole = compute_diversity_regularised_losses(student, vote.labels, vote.diversity, strength)
        rest.append(
            whole - (1 + strength * vote.mass) * F.cross_entropy(student, q, reduction="none")
        )
    torch.testing.assert_close(*rest)  # does not depend on the student
    assert vote.mass.max() > 0.3
    # The dissenters' share of the target: q* without its part on e_y. At most (ω_div = 1) 4.8 or 33 per cent.
    share = (q - F.one_hot(vote.labels, N) / (1 + strength * vote.mass)[:, None]).sum(-1)
    torch.testing.assert_close(share, strength * vote.mass / (1 + strength * vote.mass))
    assert share.max() < {0.05: 0.048, 0.5: 0.334}[strength]


def test_f7_below_one_the_dissenters_never_overrule():
    vote = compute_consensus(logits(b=2000))
    for strength in (0.05, 0.5, 0.999):
        assert torch.equal(
            soft_label(vote.labels, vote.diversity, strength).argmax(-1), vote.labels
        )
    odd = compute_consensus(outputs_as_logits([0.97, 0.01, 0.01, 0.01], [0.02, 0.94, 0.02, 0.02]))
    assert (
        odd.labels.item() == 0 and soft_label(odd.labels, odd.diversity, 3.0).argmax().item() == 1
    )


def test_f8_the_printed_divergence_can_be_negative_but_not_without_end():
    vote = compute_consensus(logits())
    mass = vote.mass
    # The least value over all students is at p = s_div / ω_div, and is ω_div log ω_div.
    student = (vote.diversity / mass[:, None]).log()
    least = compute_diversity_regularised_losses(
        student, vote.labels, vote.diversity, 1.0
    ) - F.cross_entropy(student, vote.labels, reduction="none")
    torch.testing.assert_close(least, torch.xlogy(mass, mass))
    assert (least < 0).any()
    others = logits(seed=3, m=1)[0]
    divergence = compute_diversity_regularised_losses(
        others, vote.labels, vote.diversity, 1.0
    ) - compute_diversity_regularised_losses(others, vote.labels, vote.diversity, 0.0)
    assert (divergence >= torch.xlogy(mass, mass) - 1e-12).all()


def test_f9_everybody_can_dissent():
    vote = compute_consensus(outputs_as_logits([0.5, 0.45, 0.05], [0.05, 0.45, 0.5]))
    torch.testing.assert_close(
        vote.distribution, torch.tensor([[0.275, 0.45, 0.275]], dtype=torch.float64)
    )
    assert vote.labels.item() == 1 and vote.dissent.all() and vote.mass.item() == pytest.approx(1)
    assert vote.dissent_fraction == 1


def test_by_hand_with_plain_loops():
    z = logits()
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
        against = [k for k in range(M) if max(range(N), key=lambda c: p[k][c]) != y]
        div = [sum(alpha[k] * p[k][c] for k in against) for c in range(N)]
        assert vote.weights[:, b].tolist() == pytest.approx(alpha)
        assert vote.distribution[b].tolist() == pytest.approx(s) and vote.labels[b].item() == y
        assert vote.diversity[b].tolist() == pytest.approx(div)
        assert vote.dissent[:, b].nonzero().flatten().tolist() == against
        assert vote.mass[b].item() == pytest.approx(sum(alpha[k] for k in against))
        agreeing = sum(alpha[k] for k in range(M) if k not in against)
        assert vote.mass[b].item() + agreeing == pytest.approx(1)
        student = logits(seed=9, m=1)[0, b]
        lp = F.log_softmax(student, -1).tolist()
        loss = -lp[y] + 0.3 * sum(t * (math.log(t) - lp[c]) for c, t in enumerate(div) if t > 0)
        mine = compute_diversity_regularised_losses(
            student[None], vote.labels[b : b + 1], vote.diversity[b : b + 1], 0.3
        )
        assert mine.item() == pytest.approx(loss)


def test_without_dissent_the_loss_is_the_cross_entropy():
    same = logits(m=1).expand(M, -1, -1)
    vote = compute_consensus(same)
    torch.testing.assert_close(vote.weights, torch.full((M, B), 1 / M, dtype=torch.float64))
    assert not vote.dissent.any() and not vote.mass.any() and not vote.diversity.any()
    student = logits(seed=1, m=1)[0]
    plain = F.cross_entropy(student, vote.labels, reduction="none")
    assert torch.equal(
        compute_diversity_regularised_losses(student, vote.labels, vote.diversity, 0.5), plain
    )
    mixed = compute_consensus(logits())
    bare = F.cross_entropy(
        student, mixed.labels, reduction="none"
    )  # λ = 0: bit for bit, whatever the dissent
    assert torch.equal(
        compute_diversity_regularised_losses(student, mixed.labels, mixed.diversity, 0.0), bare
    )


def test_effective_clients():
    vote = compute_consensus(outputs_as_logits([0.97, 0.01, 0.01, 0.01], [0.25] * 4, [0.25] * 4))
    assert vote.effective_clients.item() == pytest.approx(1)
    many = compute_consensus(logits())
    assert ((many.effective_clients >= 1) & (many.effective_clients <= M)).all()
    torch.testing.assert_close(many.effective_clients, 1 / (many.weights**2).sum(0))


def test_variants():
    z = logits()
    paper = compute_consensus(z)
    own = compute_consensus(z, normalise="dissenters")
    somebody = paper.dissent.any(0)
    assert somebody.any()
    torch.testing.assert_close(
        own.diversity[somebody], (paper.diversity / paper.mass[:, None])[somebody]
    )
    torch.testing.assert_close(own.mass, paper.mass)
    agreed = logits(m=1).expand(M, -1, -1)
    assert not compute_consensus(agreed, normalise="dissenters").diversity.any()
    uniform = compute_consensus(agreed, normalise="dissenters-or-uniform").diversity
    torch.testing.assert_close(uniform, torch.full_like(uniform, 1 / N))
    equal = compute_consensus(z, weighting="uniform")
    torch.testing.assert_close(equal.distribution, z.softmax(-1).mean(0))
    summed, variance = compute_consensus(z, weighting="logits"), z.var(-1)
    weights = (variance / variance.sum(0))[..., None]
    torch.testing.assert_close(summed.distribution, (weights * z).sum(0).softmax(-1))
    for wrong in ({"weighting": "variance"}, {"normalise": "none"}):
        with pytest.raises(UsageError):
            compute_consensus(z, **wrong)
