"""Fed-ET's statistical claims that are safe, on the bundled digits: ordering over at least five fixed seeds.

The set-up: digits cut 60/20/20 at random into training, public and test part; 10 clients, Dirichlet, at least 4
samples each; clients' networks in turn a perceptron of 16, a CNN and a perceptron of 64; standardised inputs; 200
steps of SGD, batch 32, rate 0.05, momentum 0.9. The student is a perceptron of 256, 300 steps at the same rate.
"""

import functools

import pytest
import torch

from fedlab_nb.data import Dataset, federate, load
from fedlab_nb.methods import fedet
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.context import Context
from fedlab_nb.methods.fedet import cycled
from fedlab_nb.methods.fedet.consensus import consensus, ensemble_loss, group_means
from fedlab_nb.models import build, load_state, model_state
from fedlab_nb.rng import seed_for
from fedlab_nb.studies.experiment import finished
from fedlab_nb.training import ClientModels, Recipe, train_clients
from fedlab_nb.training.distill import Learner, ce_each

pytestmark = pytest.mark.slow

POOL = [("mlp", 16), ("cnn", 8), ("mlp", 64)]
STEPS, BATCH = 200, 32
RECIPE = Recipe(epochs=1, batch_size=BATCH, lr=0.05, momentum=0.9, weight_decay=0)


def stream(*names):
    return torch.Generator().manual_seed(seed_for(0, *names))


@functools.cache
def digits(seed):
    """All 1,797 digits, standardised and cut anew: the data set, and the labels of its public part."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    x, y = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1), torch.tensor(bunch.target)
    x = (x - x.mean()) / x.std()
    train, public, test = torch.randperm(len(y), generator=stream(seed)).split([1078, 359, 360])
    names = load("digits").class_names
    return Dataset(f"digits {seed}", x[train], y[train], x[test], y[test], x[public], names, str(seed)), y[public]


def federation(seed, alpha):
    return federate(digits(seed)[0], alpha=alpha, clients=10, seed=seed, minimum=4, repair="redraw")


def shards(seed, alpha):
    fed = federation(seed, alpha)
    return [(fed.dataset.x_train[rows], fed.dataset.y_train[rows]) for rows in fed.shards]


def train(models, data, seed, steps=STEPS):
    long = [cycled(x, y, steps * BATCH, stream(seed, k)) for k, (x, y) in enumerate(data)]
    for _ in train_clients(models, long, RECIPE, seed=seed):
        pass
    return ClientModels(models)


@functools.cache
def clients(seed, alpha):
    """The ten trained clients."""
    kinds = [POOL[k % 3] for k in range(10)]
    models = [build(name, (1, 8, 8), 10, width=width, generator=stream(seed, name, width)) for name, width in kinds]
    return train(models, shards(seed, alpha), seed)


@functools.cache
def teachers(seed, alpha):
    """Their logits on the public and on the test images, `[10, N, 10]`."""
    return tuple(clients(seed, alpha).logits(x) for x in (digits(seed)[0].x_public, digits(seed)[0].x_test))


def right(labels, truth):
    return float((labels == truth).float().mean())


def mean(values):
    values = list(values)
    return sum(values) / len(values)


@functools.cache
def student(seed, alpha, labels="consensus", steps=300, samples=359, noise=False):
    """Test accuracy of a perceptron taught by the ensemble, or by the true labels, on held-out images or on noise."""
    data, truth = digits(seed)
    x, logits = data.x_public, teachers(seed, alpha)[0]
    if noise:
        low, high = float(data.x_train.min()), float(data.x_train.max())
        x = low + (high - low) * torch.rand(x.shape, generator=stream(seed, "noise"))
        logits = clients(seed, alpha).logits(x)
    vote = consensus(logits)
    net = build("mlp", (1, 8, 8), 10, width=256, generator=stream(seed, "server"))
    rows, order = torch.arange(len(x))[:samples], stream(seed, "order")
    if labels == "true":
        learner, targets = Learner(net, RECIPE, ce_each), truth[rows]
    else:
        learner = Learner(net, RECIPE, lambda at, z: ensemble_loss(z, vote.labels[at], vote.diversity[at], 0.05))
        targets = rows
    done = 0
    while done < steps:
        for _ in learner.one_pass(x[rows], targets, order, epoch=0, steps=steps - done):
            done += 1
    return right(net(data.x_test).argmax(1), data.y_test)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_the_ensemble_beats_a_single_client(alpha):
    for seed in range(5):
        votes, y = teachers(seed, alpha)[1], digits(seed)[0].y_test
        assert right(consensus(votes).labels, y) > right(votes.argmax(-1), y) + 0.1


def test_dissent_falls_as_alpha_rises():
    few, many = (mean(consensus(teachers(s, a)[0]).dissent_fraction for s in range(5)) for a in (0.5, 0.1))
    assert few < many - 0.1


def test_variance_of_softmax_outputs_beats_that_of_raw_logits():
    def score(weighting):
        return mean(right(consensus(teachers(s, 0.1)[1], weighting).labels, digits(s)[0].y_test) for s in range(8))

    assert score("softmax") > score("logit-variance") > score("logits")
    assert score("softmax") >= score("uniform")  # true on average only


def test_hot_weights_leave_fewer_effective_clients():
    at = [
        mean(float(consensus(teachers(s, 0.1)[0], temperature=t).effective_clients.mean()) for s in range(5))
        for t in (0.1, 0.5, 1.0, 2.0, 5.0)
    ]
    assert at == sorted(at, reverse=True) and at[0] > 9 and at[-1] < 8


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_little_dissent_means_a_better_consensus(alpha):
    low, high = [], []
    for seed in range(5):
        vote, y = consensus(teachers(seed, alpha)[1]), digits(seed)[0].y_test
        order = vote.mass.argsort()
        third = len(order) // 3
        low.append(right(vote.labels[order[:third]], y[order[:third]]))
        high.append(right(vote.labels[order[-third:]], y[order[-third:]]))
    assert mean(low) > mean(high) + 0.1


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_what_the_student_learns_from(alpha):
    def score(**options):
        return mean(student(seed, alpha, **options) for seed in range(5))

    held_out = score()
    assert score(noise=True) < held_out < score(labels="true")
    assert score(samples=36) < score(samples=180)
    assert score(steps=8) < score(steps=32) < held_out


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_one_round_of_averaging_is_worse_than_the_student(alpha):
    averaged = []
    for seed in range(5):
        start = build("mlp", (1, 8, 8), 10, width=256, generator=stream(seed, "common"))
        models = []
        for _ in range(10):
            models.append(build("mlp", (1, 8, 8), 10, width=256))
            load_state(models[-1], model_state(start))
        data = shards(seed, alpha)
        alone = train(models, data, seed)
        load_state(start, weighted_mean([alone.state(k) for k in range(10)], [len(y) for _, y in data]))
        averaged.append(right(start(digits(seed)[0].x_test).argmax(1), digits(seed)[0].y_test))
    assert mean(averaged) < mean(student(seed, alpha) for seed in range(5)) - 0.1


def test_the_common_head_helps_the_small_models(monkeypatch):
    """Eight rounds with five of ten clients, alpha = 0.5: averaged small models of the last four rounds, five seeds."""
    spied = []

    def spy(*arguments):
        spied.append(group_means(*arguments))
        return spied[-1]

    monkeypatch.setattr(fedet, "group_means", spy)
    small = {}
    for transfer in ("both", "none"):
        method = fedet.FedET(rounds=8, per_round=5, server="mlp", server_width=256, server_lr=0.02, transfer=transfer)
        scores = []
        for seed in range(5):
            fed = federation(seed, 0.5)
            kinds = [(name, (1, 8, 8), 10, width) for name, width in (POOL[k % 3] for k in range(10))]
            run = method.run(Context(fed, architectures=kinds, recipe=RECIPE, seed=seed, holdout=0.0))
            spied.clear()
            models = finished(run).last.after
            for table in spied[-4:]:
                votes = models.with_states(list(table.values())).logits(fed.dataset.x_test).argmax(-1)
                scores.append(right(votes, fed.dataset.y_test))
        small[transfer] = mean(scores)
    assert small["both"] > small["none"]
