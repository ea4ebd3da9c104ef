"""Partitions: disjoint covers with a promised minimum for every setting, and small cases worked out by hand.

Label skew: values by hand, and mutual information over label entropy.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedlab_nb.data import partition as rules
from fedlab_nb.data.partition import (
    RULES,
    SIZED,
    Skew,
    assign_by_dirichlet,
    choose_default_minimum_per_client,
    convert_shares_to_sizes,
    measure_skew,
    partition_samples,
)
from fedlab_nb.errors import RunError, UsageError
from fedlab_nb.rng import make_numpy_generator


def make_rng(seed=0):
    return np.random.default_rng(seed)


@st.composite
def draw_cases(draw):
    classes = draw(st.integers(2, 8))
    labels = np.array(draw(st.lists(st.integers(0, classes - 1), min_size=1, max_size=120)))
    clients = draw(st.one_of(st.integers(1, len(labels)), st.just(len(labels))))
    options = dict(
        partition=draw(st.sampled_from(sorted(RULES))),
        alpha=10.0 ** draw(st.floats(-3, 3)),
        classes_per_client=draw(st.integers(1, classes)),
    )
    if options["partition"] in SIZED and draw(st.booleans()):
        options["size_sigma"] = draw(st.floats(0, 10))
    if draw(st.booleans()):
        options["minimum"] = draw(st.integers(1, len(labels) // clients))
    return labels, classes, clients, draw(st.integers(0, 2**31)), options


# Takes its time: many examples, since every rule of partition meets every size.
@settings(max_examples=300, deadline=None)
@given(draw_cases())
def test_every_partition_is_a_disjoint_cover_with_its_minimum(case):
    labels, classes, clients, seed, options = case
    partition = partition_samples(
        labels, classes, clients, make_numpy_generator(seed, "partition"), **options
    )
    second_run = partition_samples(
        labels, classes, clients, make_numpy_generator(seed, "partition"), **options
    )
    assert len(partition.shards) == clients
    assert sorted(np.concatenate(partition.shards).tolist()) == list(range(len(labels)))
    assert all((np.diff(shard) > 0).all() for shard in partition.shards)
    assert partition.minimum == options.get(
        "minimum", choose_default_minimum_per_client(len(labels), clients)
    )
    assert min(map(len, partition.shards)) >= partition.minimum
    assert partition.draws == 1
    assert 0 <= partition.moved < len(labels)
    assert (partition.moved > 0) == ("moved" in partition.note)
    assert all((a == b).all() for a, b in zip(partition.shards, second_run.shards, strict=True))


@pytest.mark.parametrize("partition", RULES)
@pytest.mark.parametrize("alpha", [1e-300, 1e-3, 1e3, 1e300])
def test_extreme_alpha_and_one_client_per_sample(partition, alpha):
    labels = np.arange(400) % 10
    for clients in (1, 7, 399, 400):
        dealt = partition_samples(labels, 10, clients, make_rng(), partition=partition, alpha=alpha)
        assert sum(map(len, dealt.shards)) == 400
        assert min(map(len, dealt.shards)) >= 1
    one_client = partition_samples(labels, 10, 1, make_rng(), partition=partition, alpha=alpha)
    assert one_client.shards[0].tolist() == list(range(400))


class FixedDraws:
    """Stands for a generator: its Dirichlet draws are given, and it shuffles nothing."""

    def __init__(self, *shares):
        self.shares = list(shares)

    def dirichlet(self, alpha):
        return np.array(self.shares.pop(0))

    def permutation(self, n):
        return np.arange(n)


def test_dirichlet_by_hand():
    # N/M = 4. The 6 samples of class 0 are cut at .5 and .75, floor(3) = 3 and floor(4.5) = 4: 3, 1 and 2 samples.
    # No client is full. The 6 samples of class 1 by (.5, .5, 0): 3 and 3; clients 0 and 1 now have 6 and 4, both full.
    labels = np.array([0] * 6 + [1] * 6)
    owner = assign_by_dirichlet(labels, 3, FixedDraws([0.5, 0.25, 0.25], [0.5, 0.5, 0.0]), 1.0)
    assert owner.tolist() == [0, 0, 0, 1, 2, 2, 0, 0, 0, 1, 1, 1]


def test_a_full_client_gets_nothing_of_later_classes():
    # Client 0 takes all of class 0 and so has N/M = 4; its share .6 of class 1 goes to the others, .3 : .1 = 3 : 1.
    labels = np.array([0] * 4 + [1] * 4 + [2] * 4)
    owner = assign_by_dirichlet(labels, 3, FixedDraws([1, 0, 0], [0.6, 0.3, 0.1], [0, 0, 1]), 1.0)
    assert owner.tolist() == [0] * 4 + [1, 1, 1, 2] + [2] * 4


def test_where_only_full_clients_have_a_share_the_class_goes_to_the_others():
    labels = np.array([0] * 4 + [1] * 4)
    # The third draw is for the only client that is not full.
    owner = assign_by_dirichlet(labels, 2, FixedDraws([1, 0], [1, 0], [1.0]), 1.0)
    assert owner.tolist() == [0] * 4 + [1] * 4


def test_dirichlet_shares_have_the_moments_of_the_distribution():
    # Var p_k = (1/M)(1 - 1/M) / (M alpha + 1).
    for alpha in (0.1, 1.0, 10.0):
        p = np.array([rules.draw_symmetric_dirichlet(make_rng(s), alpha, 5) for s in range(2000)])
        assert p.mean() == pytest.approx(0.2)
        assert p.var() == pytest.approx(0.2 * 0.8 / (5 * alpha + 1), rel=0.1)


def test_classes_gives_client_i_class_i_and_cuts_evenly():
    labels = np.arange(100) % 10
    ten_clients = partition_samples(
        labels, 10, 10, make_rng(), partition="classes", classes_per_client=1
    )
    assert [set(labels[shard]) for shard in ten_clients.shards] == [{c} for c in range(10)]
    twenty_clients = partition_samples(
        labels, 10, 20, make_rng(), partition="classes", classes_per_client=1
    )
    assert [set(labels[shard]) for shard in twenty_clients.shards] == [{c % 10} for c in range(20)]
    assert {len(shard) for shard in twenty_clients.shards} == {5}


@pytest.mark.parametrize("seed", range(5))
def test_classes_prefers_classes_that_no_client_has(seed):
    labels = np.arange(600) % 6
    # 3 clients with 2 classes each: exactly one client for each of 6 classes.
    owner, note = rules.assign_fixed_number_of_classes_per_client(labels, 3, make_rng(seed), 2)
    classes_of_client = [set(labels[owner == k]) for k in range(3)]
    assert note == ""
    assert [len(classes) for classes in classes_of_client] == [2, 2, 2]
    assert set().union(*classes_of_client) == set(range(6))
    assert all(k in classes_of_client[k] for k in range(3))


def test_remaining_classes_are_assigned_in_turn_and_the_note_says_so():
    labels = np.arange(100) % 10
    dealt = partition_samples(labels, 10, 3, make_rng(), partition="classes", classes_per_client=2)
    assert [len(set(labels[shard])) for shard in dealt.shards] == [4, 3, 3]
    assert (
        dealt.note
        == "3 clients with 2 classes each cover 6 of 10 classes; the other 4 were dealt out in turn."
    )


def test_alpha_spreads_the_sizes_of_quantity_and_leaves_the_classes_mixed():
    labels = np.arange(5000) % 10
    spread = {}
    for alpha in (0.1, 1.0, 100.0):
        sizes = np.array(
            [
                np.bincount(
                    rules.assign_with_lognormal_client_sizes(5000, 10, make_rng(s), alpha),
                    minlength=10,
                )
                for s in range(50)
            ]
        )
        assert (sizes.sum(axis=1) == 5000).all()
        spread[alpha] = sizes.std()
    assert spread[0.1] > 2 * spread[1.0] > 4 * spread[100.0]
    dealt = partition_samples(labels, 10, 3, make_rng(), partition="quantity", alpha=10.0)
    assert all(np.bincount(labels[shard]).max() < 0.15 * len(shard) for shard in dealt.shards)


@settings(max_examples=50, deadline=None)
@given(draw_cases(), st.data())
def test_client_dirichlet_gives_exactly_the_given_sizes(case, data):
    labels, classes, clients, seed, options = case
    cuts = sorted(
        data.draw(st.lists(st.integers(0, len(labels)), min_size=clients - 1, max_size=clients - 1))
    )
    sizes = np.diff([0, *cuts, len(labels)])
    owner = rules.assign_by_client_dirichlet(
        labels, classes, sizes, make_rng(seed), options["alpha"]
    )
    assert np.bincount(owner, minlength=clients).tolist() == sizes.tolist()


def test_client_dirichlet_gives_equal_sizes_and_different_class_mixes():
    labels = np.arange(1003) % 10
    for alpha in (1e-3, 0.1, 100):
        dealt = partition_samples(
            labels, 10, 10, make_rng(), partition="client_dirichlet", alpha=alpha
        )
        assert sorted(map(len, dealt.shards)) == [100] * 7 + [101] * 3
        assert dealt.moved == 0
    # Mixes have Var q_kc = (1/C)(1 - 1/C) / (C alpha + 1); no class runs out here, so the shards follow their mixes.
    labels = np.repeat(np.arange(4), 100_000)
    sizes = np.full(50, 400)
    rows = np.arange(len(labels))[:: len(labels) // sizes.sum()]
    owner = rules.assign_by_client_dirichlet(labels[rows], 4, sizes, make_rng(1), 5.0)
    mixes = np.stack([np.bincount(labels[rows][owner == k], minlength=4) for k in range(50)]) / 400
    assert 0.5 < mixes.var() / (0.25 * 0.75 / (4 * 5.0 + 1)) < 1.5


def test_an_exhausted_class_is_replaced_by_the_others():
    # One client of 8 samples draws class 0 alone, which has 5: it gets all of class 0, then samples of class 1.
    class FixedMixes(FixedDraws):
        def permutation(self, n):
            return np.arange(n) if isinstance(n, int) else n

        def random(self, n):
            return np.full(n, 0.5)

    labels = np.array([0] * 5 + [1] * 5)
    owner = rules.assign_by_client_dirichlet(
        labels, 2, np.array([8, 2]), FixedMixes([1.0, 0.0], [0.0, 1.0], [1.0]), 1.0
    )
    assert owner[:5].tolist() == [0] * 5
    assert np.bincount(owner[5:]).tolist() == [3, 2]


@pytest.mark.parametrize("partition", SIZED)
def test_lognormal_sizes_spread_with_sigma(partition):
    labels = np.arange(5000) % 10
    options = {"partition": partition, "alpha": 1.0}
    spread = []
    for sigma in (0, 0.4, 1.2):
        deviations = []
        for seed in range(20):
            dealt = partition_samples(labels, 10, 10, make_rng(seed), size_sigma=sigma, **options)
            deviations.append(np.std(np.log([len(shard) for shard in dealt.shards])))
        spread.append(np.mean(deviations))
    assert spread[0] < spread[1] < spread[2]
    # Lognormal but for rounding; the mean of the standard deviation of 10 draws is 0.97 sigma.
    if partition == "client_dirichlet":
        assert spread[0] == 0
        assert spread[1] == pytest.approx(0.4, rel=0.15)
        assert spread[2] == pytest.approx(1.2, rel=0.2)


def test_a_share_of_0_gets_no_sample():
    assert convert_shares_to_sizes(np.array([1 / 3, 1 / 3, 1 / 3, 0]), 3).tolist() == [1, 1, 1, 0]
    for seed in range(200):
        p = make_rng(seed).random(9)
        p[-1] = p[3] = 0
        counts = convert_shares_to_sizes(p / p.sum(), 1000)
        assert counts[-1] == counts[3] == 0
        assert counts.sum() == 1000


def test_redraw_repeats_until_the_minimum_holds_and_stops_at_its_bound(monkeypatch):
    labels = np.arange(1000) % 10
    dealt = partition_samples(labels, 10, 10, make_rng(3), alpha=0.1, minimum=20, repair="redraw")
    assert dealt.draws > 1
    assert dealt.moved == 0
    assert min(map(len, dealt.shards)) >= 20
    monkeypatch.setattr(rules, "MOST_DRAWS", 5)
    with pytest.raises(
        RunError, match="None of 5 draws of the dirichlet .* at least 10 of the 1000 samples; use"
    ):
        partition_samples(labels, 10, 50, make_rng(), alpha=0.001, repair="redraw")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(alpha=0), "alpha is 0"),
        (dict(alpha="0.1"), "alpha is '0.1'"),
        (dict(clients=41), "clients is 41, .* from 1 to 40"),
        (dict(partition="dirichlett"), "did you mean 'dirichlet'"),
        (dict(repair="fix"), "Unknown repair 'fix'"),
        (dict(minimum=11), "minimum is 11, .* from 1 to 10"),
        (dict(classes_per_client=5), "classes_per_client is 5, .* from 1 to 4"),
        (dict(size_sigma=-1), "size_sigma is -1"),
        (dict(size_sigma=1, partition="iid"), "'iid' has no lognormal sizes"),
        (dict(partition="natural"), "Unknown partition 'natural'"),
    ],
)
def test_wrong_arguments_are_refused(options, message):
    options = {"clients": 4, **options}
    with pytest.raises(UsageError, match=message):
        partition_samples(np.arange(40) % 4, 4, options.pop("clients"), make_rng(), **options)


# ------------------------------------------------------------------------------------------------------------- skew
def test_skew_is_1_for_disjoint_and_0_for_equal_clients():
    assert measure_skew(np.array([[3, 0, 0], [0, 3, 0], [0, 0, 3]])) == Skew(1.0, 1.0)
    even = measure_skew(np.full((4, 10), 7))
    assert even.jensen_shannon == pytest.approx(0, abs=1e-15)
    assert even.effective_classes == pytest.approx(10)


def test_skew_of_empty_clients_and_of_a_single_class():
    assert measure_skew(np.array([[4, 0], [0, 0], [0, 4]])) == Skew(1.0, 1.0)
    assert measure_skew(np.array([[4, 0], [9, 0]])) == Skew(0.0, 1.0)
    assert measure_skew(np.zeros((2, 3))) == Skew(0.0, 0.0)


@settings(max_examples=100, deadline=None)
@given(
    arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(2, 6)), elements=st.integers(0, 20))
)
def test_skew_is_mutual_information_over_label_entropy(counts):
    if counts.sum() == 0:
        return
    joint = counts / counts.sum()
    k = joint.sum(axis=1)
    y = joint.sum(axis=0)
    information = sum(
        joint[i, c] * math.log(joint[i, c] / (k[i] * y[c]))
        for i, c in zip(*np.nonzero(joint), strict=True)
    )
    entropy = -sum(p * math.log(p) for p in y if p > 0)
    skew = measure_skew(counts)
    if (counts.sum(0) > 0).sum() > 1:  # with a single class the entropy is 0 but for rounding
        assert skew.jensen_shannon == pytest.approx(information / entropy, abs=1e-9)
        assert skew.jensen_shannon <= math.log(len(counts)) / entropy + 1e-9
    assert 1 - 1e-9 <= skew.effective_classes <= counts.shape[1] + 1e-9
