"""Partitions: disjoint covers with a promised minimum, whatever the setting; and small cases worked out by hand.

Label skew: against values worked out by hand and against mutual information computed another way.
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
    choose_minimum_samples,
    convert_shares_to_sizes,
    measure_skew,
    partition_samples,
)
from fedlab_nb.errors import RunError, UsageError
from fedlab_nb.rng import make_numpy_generator


def rng(seed=0):
    return np.random.default_rng(seed)


@st.composite
def cases(draw):
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


@settings(max_examples=300, deadline=None)
@given(cases())
def test_every_partition_is_a_disjoint_cover_with_its_minimum(case):
    labels, classes, clients, seed, options = case
    dealt = partition_samples(
        labels, classes, clients, make_numpy_generator(seed, "partition"), **options
    )
    again = partition_samples(
        labels, classes, clients, make_numpy_generator(seed, "partition"), **options
    )
    assert len(dealt.shards) == clients
    assert sorted(np.concatenate(dealt.shards).tolist()) == list(range(len(labels)))
    assert all((np.diff(shard) > 0).all() for shard in dealt.shards)
    assert (
        min(map(len, dealt.shards))
        >= options.get("minimum", choose_minimum_samples(len(labels), clients))
        == dealt.minimum
    )
    assert dealt.draws == 1
    assert 0 <= dealt.moved < len(labels)
    assert (dealt.moved > 0) == ("moved" in dealt.note)
    assert all((a == b).all() for a, b in zip(dealt.shards, again.shards, strict=True))


@pytest.mark.parametrize("partition", RULES)
@pytest.mark.parametrize("alpha", [1e-300, 1e-3, 1e3, 1e300])
def test_extreme_alpha_and_one_client_per_sample(partition, alpha):
    labels = np.arange(400) % 10
    for clients in (1, 7, 399, 400):
        dealt = partition_samples(labels, 10, clients, rng(), partition=partition, alpha=alpha)
        assert sum(map(len, dealt.shards)) == 400
        assert min(map(len, dealt.shards)) >= 1
    assert partition_samples(labels, 10, 1, rng(), partition=partition, alpha=alpha).shards[
        0
    ].tolist() == list(range(400))


class Fixed:
    """A stand-in for a generator: Dirichlet draws written by hand, nothing shuffled."""

    def __init__(self, *shares):
        self.shares = list(shares)

    def dirichlet(self, alpha):
        return np.array(self.shares.pop(0))

    def permutation(self, n):
        return np.arange(n)


def test_dirichlet_by_hand():
    # N/M = 4. Class 0 (6 samples) is cut at .5, .75 -> 3, 1, 2: floor(3), floor(4.5) = 4, 6.
    # Nobody is full. Class 1 (6 samples) by (.5, .5, 0) -> 3, 3: client 0 now holds 6, client 1 holds 4, both full.
    labels = np.array([0] * 6 + [1] * 6)
    owner = assign_by_dirichlet(labels, 3, Fixed([0.5, 0.25, 0.25], [0.5, 0.5, 0.0]), 1.0)
    assert owner.tolist() == [0, 0, 0, 1, 2, 2, 0, 0, 0, 1, 1, 1]


def test_a_full_client_gets_nothing_of_later_classes():
    # Client 0 takes all of class 0 and so holds N/M = 4; of class 1 its share .6 goes to the others, .3 : .1 = 3 : 1.
    labels = np.array([0] * 4 + [1] * 4 + [2] * 4)
    owner = assign_by_dirichlet(labels, 3, Fixed([1, 0, 0], [0.6, 0.3, 0.1], [0, 0, 1]), 1.0)
    assert owner.tolist() == [0] * 4 + [1, 1, 1, 2] + [2] * 4


def test_when_all_mass_lies_on_full_clients_the_class_goes_to_the_others():
    labels = np.array([0] * 4 + [1] * 4)
    # The third draw is over the one client with room
    owner = assign_by_dirichlet(labels, 2, Fixed([1, 0], [1, 0], [1.0]), 1.0)
    assert owner.tolist() == [0] * 4 + [1] * 4


def test_dirichlet_shares_have_the_moments_of_the_distribution():
    # Var p_k = (1/M)(1 - 1/M) / (M alpha + 1): the fall in variance with alpha is what the slider shows.
    for alpha in (0.1, 1.0, 10.0):
        p = np.array([rules.draw_symmetric_dirichlet(rng(s), alpha, 5) for s in range(2000)])
        assert p.mean() == pytest.approx(0.2)
        assert p.var() == pytest.approx(0.2 * 0.8 / (5 * alpha + 1), rel=0.1)


def test_classes_gives_client_i_class_i_and_cuts_evenly():
    labels = np.arange(100) % 10
    one = partition_samples(labels, 10, 10, rng(), partition="classes", classes_per_client=1)
    assert [set(labels[shard]) for shard in one.shards] == [{c} for c in range(10)]
    twenty = partition_samples(labels, 10, 20, rng(), partition="classes", classes_per_client=1)
    assert [set(labels[shard]) for shard in twenty.shards] == [{c % 10} for c in range(20)]
    assert {len(shard) for shard in twenty.shards} == {5}


@pytest.mark.parametrize("seed", range(5))
def test_classes_prefers_classes_that_nobody_holds(seed):
    labels = np.arange(600) % 6
    # 3 x 2 = 6: exactly one holder for each class
    owner, note = rules.assign_fixed_number_of_classes(labels, 3, rng(seed), 2)
    held = [set(labels[owner == k]) for k in range(3)]
    assert note == ""
    assert [len(h) for h in held] == [2, 2, 2]
    assert set().union(*held) == set(range(6))
    assert all(k in held[k] for k in range(3))


def test_classes_left_over_are_dealt_out_and_said_so():
    labels = np.arange(100) % 10
    dealt = partition_samples(labels, 10, 3, rng(), partition="classes", classes_per_client=2)
    assert [len(set(labels[shard])) for shard in dealt.shards] == [4, 3, 3]
    assert (
        dealt.note
        == "3 clients with 2 classes each cover 6 of 10 classes; the other 4 were dealt out in turn."
    )


def test_quantity_sizes_follow_alpha_and_contents_do_not():
    labels = np.arange(5000) % 10
    spread = {}
    for alpha in (0.1, 1.0, 100.0):
        sizes = np.array(
            [
                np.bincount(rules.assign_by_quantity(5000, 10, rng(s), alpha), minlength=10)
                for s in range(50)
            ]
        )
        assert (sizes.sum(axis=1) == 5000).all()
        spread[alpha] = sizes.std()
    assert spread[0.1] > 2 * spread[1.0] > 4 * spread[100.0]
    dealt = partition_samples(labels, 10, 3, rng(), partition="quantity", alpha=10.0)
    assert all(np.bincount(labels[shard]).max() < 0.15 * len(shard) for shard in dealt.shards)


@settings(max_examples=50, deadline=None)
@given(cases(), st.data())
def test_client_dirichlet_gives_exactly_the_sizes_asked_for(case, data):
    labels, classes, clients, seed, options = case
    ends = sorted(
        data.draw(st.lists(st.integers(0, len(labels)), min_size=clients - 1, max_size=clients - 1))
    )
    sizes = np.diff([0, *ends, len(labels)])
    owner = rules.assign_by_client_dirichlet(labels, classes, sizes, rng(seed), options["alpha"])
    assert np.bincount(owner, minlength=clients).tolist() == sizes.tolist()


def test_client_dirichlet_sizes_are_equal_and_each_client_has_its_own_mix():
    labels = np.arange(1003) % 10
    for alpha in (1e-3, 0.1, 100):
        dealt = partition_samples(labels, 10, 10, rng(), partition="client_dirichlet", alpha=alpha)
        assert sorted(map(len, dealt.shards)) == [100] * 7 + [101] * 3
        assert dealt.moved == 0
    # Var q_kc = (1/C)(1 - 1/C) / (C alpha + 1) of the mixes; samples are plenty, so the shards show them.
    labels = np.repeat(np.arange(4), 100_000)
    sizes = np.full(50, 400)
    left = np.arange(len(labels))[:: len(labels) // sizes.sum()]
    owner = rules.assign_by_client_dirichlet(labels[left], 4, sizes, rng(1), 5.0)
    mixes = np.stack([np.bincount(labels[left][owner == k], minlength=4) for k in range(50)]) / 400
    assert 0.5 < mixes.var() / (0.25 * 0.75 / (4 * 5.0 + 1)) < 1.5


def test_a_class_that_has_run_out_counts_no_more():
    # One client wants class 0 alone (5 samples are there) and has room for 8: it gets all of class 0, then others.
    class Wishes(Fixed):
        def permutation(self, n):
            return np.arange(n) if isinstance(n, int) else n

        def random(self, n):
            return np.full(n, 0.5)

    labels = np.array([0] * 5 + [1] * 5)
    owner = rules.assign_by_client_dirichlet(
        labels, 2, np.array([8, 2]), Wishes([1.0, 0.0], [0.0, 1.0], [1.0]), 1.0
    )
    assert owner[:5].tolist() == [0] * 5
    assert np.bincount(owner[5:]).tolist() == [3, 2]


@pytest.mark.parametrize("partition", SIZED)
def test_lognormal_sizes_spread_with_sigma(partition):
    labels = np.arange(5000) % 10
    spread = []
    for sigma in (0, 0.4, 1.2):
        dealt = [
            partition_samples(
                labels, 10, 10, rng(s), partition=partition, alpha=1.0, size_sigma=sigma
            )
            for s in range(20)
        ]
        spread.append(
            np.mean([np.std(np.log([len(shard) for shard in each.shards])) for each in dealt])
        )
    assert spread[0] < spread[1] < spread[2]
    # Exactly lognormal but for rounding: E of std over 10 draws is 0.97 sigma
    if partition == "client_dirichlet":
        assert spread[0] == 0
        assert spread[1] == pytest.approx(0.4, rel=0.15)
        assert spread[2] == pytest.approx(1.2, rel=0.2)


def test_cut_counts_never_feeds_a_share_of_zero():
    assert convert_shares_to_sizes(np.array([1 / 3, 1 / 3, 1 / 3, 0]), 3).tolist() == [1, 1, 1, 0]
    for seed in range(200):
        p = rng(seed).random(9)
        p[-1] = p[3] = 0
        counts = convert_shares_to_sizes(p / p.sum(), 1000)
        assert counts[-1] == counts[3] == 0
        assert counts.sum() == 1000


def test_redraw_repeats_until_the_minimum_holds_and_stops_at_its_bound(monkeypatch):
    labels = np.arange(1000) % 10
    dealt = partition_samples(labels, 10, 10, rng(3), alpha=0.1, minimum=20, repair="redraw")
    assert dealt.draws > 1
    assert dealt.moved == 0
    assert min(map(len, dealt.shards)) >= 20
    monkeypatch.setattr(rules, "MOST_DRAWS", 5)
    with pytest.raises(
        RunError, match="None of 5 draws of the dirichlet .* at least 10 of the 1000 samples; use"
    ):
        partition_samples(labels, 10, 50, rng(), alpha=0.001, repair="redraw")


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
def test_wrong_arguments(options, message):
    options = {"clients": 4, **options}
    with pytest.raises(UsageError, match=message):
        partition_samples(np.arange(40) % 4, 4, options.pop("clients"), rng(), **options)


# ------------------------------------------------------------------------------------------------------------- skew
def test_ends_of_the_scale():
    assert measure_skew(np.array([[3, 0, 0], [0, 3, 0], [0, 0, 3]])) == Skew(1.0, 1.0)
    even = measure_skew(np.full((4, 10), 7))
    assert even.jensen_shannon == pytest.approx(0, abs=1e-15)
    assert even.effective_classes == pytest.approx(10)


def test_empty_clients_and_a_single_class():
    assert measure_skew(np.array([[4, 0], [0, 0], [0, 4]])) == Skew(1.0, 1.0)
    assert measure_skew(np.array([[4, 0], [9, 0]])) == Skew(0.0, 1.0)
    assert measure_skew(np.zeros((2, 3))) == Skew(0.0, 0.0)


@settings(max_examples=100, deadline=None)
@given(
    arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(2, 6)), elements=st.integers(0, 20))
)
def test_equals_mutual_information_over_label_entropy(counts):
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
    if (counts.sum(0) > 0).sum() > 1:  # of one class alone the entropy is 0, but for rounding
        assert skew.jensen_shannon == pytest.approx(information / entropy, abs=1e-9)
        assert skew.jensen_shannon <= math.log(len(counts)) / entropy + 1e-9
    assert 1 - 1e-9 <= skew.effective_classes <= counts.shape[1] + 1e-9
