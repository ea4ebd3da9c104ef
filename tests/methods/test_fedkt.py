"""FedKT: the votes of teachers and students, the effect and the cost of noise, bytes, and a claim about accuracy."""

import functools

import method_runs
import pytest
import torch
from byte_formulas import count_fedkt_bytes

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

CLIENTS = 4


@pytest.fixture(scope="module")
def federation():
    return federate("digits", alpha=0.3, clients=CLIENTS, seed=0)


context = functools.partial(method_runs.make_context, epochs=3)


def run_and_record(method, ctx):
    """The final model, the student models that the server received, and {"logits": ..., "labels": ...} of its vote."""
    vote = {}
    real_label = type(method).label_queries_by_noisy_student_votes

    def record_vote(self, ctx, logits):
        vote["logits"] = logits
        vote["labels"], report = real_label(self, ctx, logits)
        return vote["labels"], report

    owners = []
    states = []
    real_up = ctx.link.up

    def record_upload(k, payload, **phase):
        state = real_up(k, payload, **phase)
        owners.append(k)
        states.append(state)
        return state

    ctx.link.up = record_upload
    object.__setattr__(method, "label_queries_by_noisy_student_votes", record_vote.__get__(method))
    model = exhaust_generator(method.run(ctx))
    modules = [ctx.build(ctx.architectures[k], torch.Generator().manual_seed(0)) for k in owners]
    return model, ClientModels(modules).with_states(states), vote


QUICK = {"epochs": 2}


def test_one_student_and_one_teacher_a_client_give_the_votes_of_the_ensemble(federation):
    ctx = context(federation)
    _, students, vote = run_and_record(FedKT(students=1, teachers=1, **QUICK), ctx)
    assert torch.equal(
        vote["labels"], RuledEnsemble(students, "votes").logits(ctx.public).argmax(1)
    )


def label_by_loops(logits, consistent):
    """The server's labels from the students' logits [M, s, T, C], one sample and one vote at a time."""
    labels = []
    for i in range(logits.shape[2]):
        counts = logits[:, :, i].softmax(-1).mean((0, 1)).double()
        for client_votes in logits[:, :, i].argmax(-1).tolist():
            if not consistent or len(set(client_votes)) == 1:
                for c in client_votes:
                    counts[c] += 1
        labels.append(int(counts.argmax()))
    return labels


@pytest.mark.parametrize("consistent", [True, False])
def test_clients_whose_students_disagree_do_not_count(consistent):
    logits = 3 * torch.randn(5, 3, 200, 4, generator=torch.Generator().manual_seed(0))
    method = FedKT(students=3, consistent=consistent)
    labels, report = method.label_queries_by_noisy_student_votes(None, logits)
    assert labels.tolist() == label_by_loops(logits, consistent)
    votes = logits.argmax(-1)
    is_consistent = (votes == votes[:, :1]).all(1)  # [M, T]: all students of the client vote alike
    assert report.consistent == pytest.approx(is_consistent.sum().item() / 1000)
    assert report.queries == 200
    assert report.epsilon is None
    assert labels.tolist() != label_by_loops(logits, not consistent)


def test_teachers_parts_cover_a_clients_samples_once_and_small_clients_have_fewer(federation):
    ctx = context(federation)
    partition = FedKT(students=2, teachers=3)._split_client_samples_among_teachers
    for k, i, parts in partition(ctx, 1):
        assert k == 1 and i in (0, 1) and len(parts) == 3
        x = torch.cat([x for x, _ in parts]).flatten(1)
        all_samples = ctx.private.train(1)[0].flatten(1)
        assert len(x) == ctx.sizes[1]
        assert torch.equal(x.sum(1).sort().values, all_samples.sum(1).sort().values)
        sizes = [len(y) for _, y in parts]
        assert max(sizes) - min(sizes) <= 1
    (_, _, parts_of_student_0), (_, _, parts_of_student_1) = partition(ctx, 1)
    assert not torch.equal(parts_of_student_0[0][0], parts_of_student_1[0][0])
    ctx.private._train[1] = ctx.private._train[1][:2]  # a client of two samples
    assert [len(parts) for _, _, parts in partition(ctx, 1)] == [2, 2]


def test_teachers_vote_once_each_and_ties_go_to_the_more_probable():
    logits = torch.tensor([[[4.0, 0, 0]], [[0, 9.0, 0]], [[3.0, 0, 2.0]]])  # two vote for 0
    assert FedKT().label_queries_by_teacher_votes(logits, None).tolist() == [0]
    assert FedKT().label_queries_by_teacher_votes(logits[:2], None).tolist() == [1]  # a tie


def test_noise_vanishes_for_a_large_gamma_and_dominates_for_a_small_one(federation):
    logits = 3 * torch.randn(9, 2, 300, 5, generator=torch.Generator().manual_seed(0))
    ctx = context(federation)
    noiseless, _ = FedKT().label_queries_by_noisy_student_votes(None, logits)
    votes = count_consistent_votes(logits)
    has_no_tie = votes.topk(2, 1).values.diff(dim=1)[:, 0] != 0
    hardly_noisy, _ = FedKT(privacy="server", gamma=1e6).label_queries_by_noisy_student_votes(
        ctx, logits
    )
    assert torch.equal(hardly_noisy[has_no_tie], noiseless[has_no_tie]) and has_no_tie.sum() > 100
    mostly_noise, report = FedKT(privacy="server", gamma=0.01).label_queries_by_noisy_student_votes(
        ctx, logits
    )
    changed = (mostly_noise != noiseless).double().mean()
    assert report.changed == pytest.approx(float(changed))
    assert report.changed > 0.5


def count_consistent_votes(logits):
    """Votes [T, C] of the clients whose students all agree."""
    votes = logits.argmax(-1)
    counts = torch.zeros(logits.shape[2], logits.shape[3])
    for client_votes in votes:
        for i in (client_votes == client_votes[0]).all(0).nonzero()[:, 0]:
            counts[i, client_votes[0, i]] += len(client_votes)
    return counts


@pytest.mark.parametrize("privacy", ["server", "client"])
def test_epsilon_is_that_of_its_queries(federation, privacy):
    ctx = context(federation)
    method = FedKT(privacy=privacy, gamma=0.02, queries=50, students=2, **QUICK)
    model, _, vote = run_and_record(method, ctx)
    report = model.report
    assert report.queries == 50 == len(vote["labels"])
    assert report.epsilon_simple == pytest.approx(2 * 2 * 0.02 * 50)  # 2 s γ T
    # A label costs 2 s γ where the server adds the noise, and 2 γ for each of s students where clients do.
    cost, queries = (0.08, 50) if privacy == "server" else (0.04, 100)
    assert report.epsilon == pytest.approx(compute_worst_case_epsilon(cost, queries, 1e-5))
    assert report.epsilon <= report.epsilon_simple
    if privacy == "server":
        assert report.epsilon_measured == compute_data_dependent_epsilon(
            count_consistent_votes(vote["logits"]), 0.02, 0.08, 1e-5
        )
    else:
        assert report.epsilon_measured is None and report.changed is None


def test_students_are_all_that_is_sent(federation):
    for students in (1, 3):
        ctx = context(federation)
        model, *_ = run_and_record(FedKT(students=students, **QUICK), ctx)
        assert ctx.link.ledger.by_phase() == {
            "students": (CLIENTS * count_fedkt_bytes(model.parameters, students), 0)
        }


@pytest.mark.slow
def test_mixed_architectures_a_single_client_and_single_samples(federation):
    mixed, *_ = run_and_record(
        FedKT(server_model="mlp:8", **QUICK), context(federation, models=("mlp", "cnn"))
    )
    assert mixed.parameters < 2000
    one_client = federate("digits", alpha=0.3, clients=1, seed=0)
    model, students, vote = run_and_record(FedKT(students=1, **QUICK), context(one_client))
    assert torch.equal(vote["labels"], students.logits(context(one_client).public)[0].argmax(1))
    forty_clients = context(federate("digits", alpha=0.05, clients=40, seed=0))
    forty_clients.private._train[3] = forty_clients.private._train[3][:1]
    assert exhaust_generator(FedKT(**QUICK).run(forty_clients)).logits(
        forty_clients.public
    ).shape == (
        len(forty_clients.public),
        10,
    )


def test_stacked_and_looped_training_agree(federation):
    x = federation.dataset.x_test
    logits = {}
    for backend in ("loop", "stacked"):
        ctx = context(federation, backend=backend, dtype=torch.float64)
        logits[backend] = exhaust_generator(FedKT(**QUICK).run(ctx)).logits(x.double())
    assert torch.allclose(logits["loop"], logits["stacked"], atol=1e-7)


@pytest.mark.slow
def test_less_noise_is_better_and_without_noise_it_beats_averaging():
    setting = {"alpha": 0.1, "clients": 10, "seed": 100, "seeds": 3}
    fedavg = compare("fedavg", **setting).mean("fedavg")
    noiseless = compare("fedkt", **setting).mean("fedkt")
    noisy = {}
    for gamma in (0.1, 0.5):
        noisy[gamma] = compare("fedkt", privacy="server", gamma=gamma, **setting).mean("fedkt")
    assert noiseless >= fedavg + 0.10
    assert noisy[0.1] <= noisy[0.5] - 0.10
    assert noisy[0.5] < noiseless - 0.05
