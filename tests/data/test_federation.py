"""Federation: counts and skew of its shards, the held-out split, and clients whose images carry a spurious cue."""

import dataclasses

import pytest
import torch

from fedlab_nb.data import Dataset, federate, load
from fedlab_nb.errors import UsageError


def make_toy_dataset(n=60, classes=3, images=True):
    x = torch.arange(n, dtype=torch.float32) / n
    if images:
        x = x[:, None, None, None].expand(n, 1, 8, 8).contiguous()
    else:
        x = x[:, None].expand(n, 4).contiguous()
    y = torch.arange(n) % classes
    return Dataset("toy", x, y, x[:6], y[:6], None, tuple("abc"[:classes]), "id")


def test_counts_sizes_and_skew_agree_with_the_shards():
    fed = federate("digits", alpha=0.1, clients=10, seed=3)
    y = fed.dataset.y_train
    counts = torch.stack([torch.bincount(y[shard], minlength=10) for shard in fed.shards])
    assert torch.equal(fed.label_counts, counts)
    assert torch.equal(fed.sizes, counts.sum(1))
    assert torch.equal(fed.label_counts.sum(0), torch.bincount(y))
    assert int(fed.sizes.min()) >= fed.minimum == 10
    assert (fed.clients, fed.classes, fed.seed, fed.alpha, fed.partition) == (
        10,
        10,
        3,
        0.1,
        "dirichlet",
    )
    assert fed.dataset is load("digits")  # no copy
    assert 0 < fed.skew.jensen_shannon < 1 < fed.skew.effective_classes < 10


def test_smaller_alpha_is_more_skewed():
    skews = [federate("digits", alpha=alpha, clients=10).skew for alpha in (0.01, 0.1, 1.0, 100.0)]
    assert [s.jensen_shannon for s in skews] == sorted(
        (s.jensen_shannon for s in skews), reverse=True
    )
    assert [s.effective_classes for s in skews] == sorted(s.effective_classes for s in skews)


def test_the_same_seed_gives_the_same_shards_and_a_federation_is_immutable():
    federation, same_seed, other_seed = (
        federate(make_toy_dataset(), clients=4, seed=s) for s in (5, 5, 6)
    )
    assert all(map(torch.equal, federation.shards, same_seed.shards))
    assert not all(
        a.shape == b.shape and torch.equal(a, b)
        for a, b in zip(federation.shards, other_seed.shards, strict=True)
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        federation.alpha = 1.0


@pytest.mark.parametrize("fraction", [0, 0.001, 0.1, 0.5, 1])
def test_split_holds_out_the_promised_share(fraction):
    fed = federate(make_toy_dataset(20), clients=10, partition="quantity", alpha=1.0, seed=1)
    for shard, (train, held_out) in zip(fed.shards, fed.split(fraction), strict=True):
        n = len(shard)
        assert torch.equal(torch.cat([train, held_out]).sort().values, shard)
        assert torch.equal(train.sort().values, train)
        assert torch.equal(held_out.sort().values, held_out)
        expected = 0 if n < 2 or fraction == 0 else min(n - 1, max(1, round(fraction * n)))
        assert len(held_out) == expected
    second_split = federate(
        make_toy_dataset(20), clients=10, partition="quantity", alpha=1.0, seed=1
    ).split(fraction)
    for parts, same_parts in zip(fed.split(fraction), second_split, strict=True):
        assert all(map(torch.equal, parts, same_parts))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cue", "words"),
    [
        ("tint", "tinted by label (strength 0.7)"),
        ("shape", "shape goes with the label (strength 0.7)"),
    ],
)
def test_spurious_clients_alone_carry_the_cue(cue, words):
    data = load("glyphs", n_train=200, n_test=20, n_public=20)
    options = {"clients": 4, "partition": "iid", "spurious": [2, 0, 2], "tint": 0.7, "cue": cue}
    fed = federate(data, **options)
    second_run = federate(data, **options)
    plain = federate(data, clients=4, partition="iid")
    changed = (fed.dataset.x_train != data.x_train).flatten(1).any(1)
    for k, shard in enumerate(fed.shards):
        assert changed[shard].all() if k in (0, 2) else not changed[shard].any()
    assert (fed.spurious, fed.tint, fed.cue) == ((0, 2), 0.7, cue)
    assert words in fed.dataset.note
    assert fed.dataset.x_test is data.x_test
    assert fed.dataset.x_public is data.x_public
    assert torch.equal(second_run.dataset.x_train, fed.dataset.x_train)
    assert plain.dataset is data
    assert plain.spurious == ()
    assert plain.tint == 0.0
    assert all(map(torch.equal, plain.shards, fed.shards))
    changes = {"tint": 0.8}, {"spurious": [0]}, {"cue": "tint" if cue == "shape" else "shape"}
    digests_of_changes = [federate(data, **options | change).dataset.digest for change in changes]
    assert len({data.digest, fed.dataset.digest, *digests_of_changes}) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(spurious=(4,)), "spurious is 4, .* from 0 to 3"),
        (dict(spurious=1), "spurious is 1, .* list"),
        (dict(spurious=(0,), tint=2), "tint is 2"),
        (dict(seed=0.5), "seed is 0.5"),
    ],
)
def test_wrong_arguments_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        federate(make_toy_dataset(), **{"clients": 4, **options})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(x_train=torch.zeros(60, 1, 8, 8, dtype=torch.float64)), "must be float32 and int64"),
        (
            dict(y_train=torch.zeros(59, dtype=torch.int64)),
            r"x_train has shape \(60, 1, 8, 8\) and y_train \(59,\)",
        ),
        (
            dict(y_test=torch.full((6,), 3)),
            r"y_test has labels from 3 to 3, but they must lie in 0..2",
        ),
        (
            dict(x_test=torch.zeros(6, 1, 9, 9)),
            r"x_test has samples of shape \(1, 9, 9\), but those of x_train have",
        ),
    ],
)
def test_a_dataset_whose_parts_do_not_fit_is_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        dataclasses.replace(make_toy_dataset(), **changes)
