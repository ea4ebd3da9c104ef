"""FedKT: who votes for what, what noise changes and costs, what travels; and what is safe to say of its accuracy."""

import functools

import method_runs
import pytest
import torch
from byte_formulas import fedkt_bytes

from fedlab_nb.data import federate
from fedlab_nb.methods.ensemble import RuledEnsemble
from fedlab_nb.methods.fedkt import (
    FedKT,
    compute_data_dependent_epsilon,
    compute_worst_case_epsilon,
)
from fedlab_nb.studies import compare
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.training import ClientModels

M = 4


@pytest.fixture(scope="module")
def federation():
    return federate("digits", alpha=0.3, clients=M, seed=0)


context = functools.partial(method_runs.context, epochs=3)


def ended(method, ctx):
    """The final model, and what the server got and labelled: (students' models, labels)."""
    seen, real = {}, type(method).label_queries_by_noisy_student_votes

    def aggregate(self, ctx, logits):
        seen["logits"] = logits
        seen["labels"], report = real(self, ctx, logits)
        return seen["labels"], report

    sent, up = [], ctx.link.up
    ctx.link.up = lambda k, payload, **phase: (
        sent.append((k, up(k, payload, **phase))) or sent[-1][1]
    )
    object.__setattr__(method, "label_queries_by_noisy_student_votes", aggregate.__get__(method))
    model = exhaust_generator(method.run(ctx))
    owners = [k for k, _ in sent]
    modules = [ctx.build(ctx.architectures[k], torch.Generator().manual_seed(0)) for k in owners]
    return model, ClientModels(modules).with_states([state for _, state in sent]), seen


QUICK = {"epochs": 2}


def test_one_student_of_one_teacher_each_is_the_ensemble_that_votes(federation):
    ctx = context(federation)
    _, students, seen = ended(FedKT(students=1, teachers=1, **QUICK), ctx)
    assert torch.equal(
        seen["labels"], RuledEnsemble(students, "votes").logits(ctx.public).argmax(1)
    )


def slow_labels(logits, consistent):
    """The server's labels by loops, from students' logits [M, s, T, C]."""
    labels = []
    for i in range(logits.shape[2]):
        counts = logits[:, :, i].softmax(-1).mean((0, 1)).double()
        for party in logits[:, :, i].argmax(-1).tolist():
            if not consistent or len(set(party)) == 1:
                for c in party:
                    counts[c] += 1
        labels.append(int(counts.argmax()))
    return labels


@pytest.mark.parametrize("consistent", [True, False])
def test_clients_whose_students_disagree_do_not_count(consistent):
    logits = 3 * torch.randn(5, 3, 200, 4, generator=torch.Generator().manual_seed(0))
    method = FedKT(students=3, consistent=consistent)
    labels, report = method.label_queries_by_noisy_student_votes(None, logits)
    assert labels.tolist() == slow_labels(logits, consistent)
    named = logits.argmax(-1)
    agree = sum(len(set(named[k, :, i].tolist())) == 1 for k in range(5) for i in range(200))
    assert (
        report.consistent == pytest.approx(agree / 1000)
        and report.queries == 200
        and report.epsilon is None
    )
    assert labels.tolist() != slow_labels(logits, not consistent)


def test_the_parts_are_a_disjoint_cover_and_small_clients_have_fewer(federation):
    ctx = context(federation)
    for k, i, parts in FedKT(students=2, teachers=3)._split_client_samples_among_teachers(ctx, 1):
        assert k == 1 and i in (0, 1) and len(parts) == 3
        x = torch.cat([x for x, _ in parts]).flatten(1)
        whole = ctx.private.train(1)[0].flatten(1)
        assert len(x) == ctx.sizes[1] and torch.equal(
            x.sum(1).sort().values, whole.sum(1).sort().values
        )
        assert max(len(y) for _, y in parts) - min(len(y) for _, y in parts) <= 1
    ((_, _, first), (_, _, second)) = FedKT(
        students=2, teachers=3
    )._split_client_samples_among_teachers(ctx, 1)
    assert not torch.equal(first[0][0], second[0][0])
    ctx.private._train[1] = ctx.private._train[1][:2]
    assert [
        len(parts)
        for *_, parts in FedKT(students=2, teachers=3)._split_client_samples_among_teachers(ctx, 1)
    ] == [
        2,
        2,
    ]


def test_teachers_vote_once_each_and_ties_go_to_the_more_probable():
    logits = torch.tensor([[[4.0, 0, 0]], [[0, 9.0, 0]], [[3.0, 0, 2.0]]])  # two say 0
    assert FedKT().label_queries_by_teacher_votes(logits, None).tolist() == [0]
    assert FedKT().label_queries_by_teacher_votes(logits[:2], None).tolist() == [1]  # a tie


def test_noise_leaves_as_gamma_grows_and_rules_as_it_shrinks(federation):
    logits = 3 * torch.randn(9, 2, 300, 5, generator=torch.Generator().manual_seed(0))
    ctx, plain = context(federation), FedKT().label_queries_by_noisy_student_votes(None, logits)[0]
    votes = consistent_votes(logits)
    decided = votes.topk(2, 1).values.diff(dim=1)[:, 0] != 0
    sharp = FedKT(privacy="server", gamma=1e6).label_queries_by_noisy_student_votes(ctx, logits)[0]
    assert torch.equal(sharp[decided], plain[decided]) and decided.sum() > 100
    blurred, report = FedKT(privacy="server", gamma=0.01).label_queries_by_noisy_student_votes(
        ctx, logits
    )
    assert (
        report.changed == pytest.approx(float((blurred != plain).double().mean()))
        and report.changed > 0.5
    )


def consistent_votes(logits):
    """Consistent counts, [T, C]."""
    named = logits.argmax(-1)
    counts = torch.zeros(logits.shape[2], logits.shape[3])
    for party in named:
        for i in (party == party[0]).all(0).nonzero()[:, 0]:
            counts[i, party[0, i]] += len(party)
    return counts


@pytest.mark.parametrize("privacy", ["server", "client"])
def test_epsilon_is_that_of_its_queries(federation, privacy):
    ctx = context(federation)
    method = FedKT(privacy=privacy, gamma=0.02, queries=50, students=2, **QUICK)
    model, _, seen = ended(method, ctx)
    report = model.report
    assert report.queries == 50 == len(seen["labels"])
    assert report.epsilon_simple == pytest.approx(2 * 2 * 0.02 * 50)  # 2 s γ T
    cost, times = (0.08, 50) if privacy == "server" else (0.04, 100)
    assert report.epsilon == pytest.approx(compute_worst_case_epsilon(cost, times, 1e-5))
    assert report.epsilon <= report.epsilon_simple
    if privacy == "server":
        assert report.epsilon_measured == compute_data_dependent_epsilon(
            consistent_votes(seen["logits"]), 0.02, 0.08, 1e-5
        )
    else:
        assert report.epsilon_measured is None and report.changed is None


def test_bytes_are_the_students_and_nothing_goes_down(federation):
    for students in (1, 3):
        ctx = context(federation)
        model, *_ = ended(FedKT(students=students, **QUICK), ctx)
        assert ctx.link.ledger.by_phase() == {
            "students": (M * fedkt_bytes(model.parameters, students), 0)
        }


def test_mixed_architectures_a_single_client_and_single_samples(federation):
    mixed, *_ = ended(
        FedKT(server_model="mlp:8", **QUICK), context(federation, models=("mlp", "cnn"))
    )
    assert mixed.parameters < 2000
    alone = federate("digits", alpha=0.3, clients=1, seed=0)
    model, students, seen = ended(FedKT(students=1, **QUICK), context(alone))
    assert torch.equal(seen["labels"], students.logits(context(alone).public)[0].argmax(1))
    many = context(federate("digits", alpha=0.05, clients=40, seed=0))
    many.private._train[3] = many.private._train[3][:1]
    assert exhaust_generator(FedKT(**QUICK).run(many)).logits(many.public).shape == (
        len(many.public),
        10,
    )


def test_the_stack_and_the_loop_agree(federation):
    x = federation.dataset.x_test
    models = [
        exhaust_generator(
            FedKT(**QUICK).run(context(federation, backend=backend, dtype=torch.float64))
        ).logits(x.double())
        for backend in ("loop", "stacked")
    ]
    assert torch.allclose(*models, atol=1e-7)


@pytest.mark.slow
def test_less_noise_is_better_and_without_noise_it_beats_averaging():
    setting = {"alpha": 0.1, "clients": 10, "seed": 100, "seeds": 3}
    plain, averaged = (
        compare("fedkt", **setting).mean("fedkt"),
        compare("fedavg", **setting).mean("fedavg"),
    )
    noisy = {
        g: compare("fedkt", privacy="server", gamma=g, **setting).mean("fedkt") for g in (0.1, 0.5)
    }
    assert (
        plain >= averaged + 0.10 and noisy[0.1] <= noisy[0.5] - 0.10 and noisy[0.5] < plain - 0.05
    )
