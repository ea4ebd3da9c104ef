"""What pictures say: the sentences, the noise test against its formula, the neighbour score against a plain loop."""

from __future__ import annotations

import math
from collections import Counter
from statistics import mean, stdev

import numpy as np
import pytest

from fedlab_nb import draw
from fedlab_nb.draw import Map, Series, words


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (26280, "26.3 kB"), (1_150_000, "1.15 MB"), (5e12, "5 TB"), (5e16, "5e+04 TB")],
)
def test_data_sizes(count, text):
    assert words.data_size(count) == text


def test_small_words():
    assert words.listed(["a"]) == "a" and words.listed(["a", "b", "c"]) == "a, b and c" and words.listed([]) == ""
    assert words.plural(1, "class") == "1 class" and words.plural(2, "class") == "2 classes"
    assert words.seeds_of({0: 1, 1: 1, 2: 1}) == "seeds 0–2" and words.seeds_of({3: 1, 0: 1}) == "seeds 0, 3"
    setting = {"dataset": "/data/mine.npz", "alpha": 0.5, "clients": 1}
    assert words.setting_of(setting) == "mine.npz, α = 0.5, 1 client"
    assert words.setting_of({**setting, "partition": "iid"}) == "mine.npz, partition iid, 1 client"


def test_gaps_are_paired_by_seed_where_the_federation_is_the_same():
    a, b = {0: 0.5, 1: 0.7, 2: 0.9}, {0: 0.4, 1: 0.65, 2: 0.8}
    differences = [0.1, 0.05, 0.1]
    difference, wide = words.gap(a, b)
    assert difference == pytest.approx(mean(differences))
    assert wide == pytest.approx(2 * stdev(differences) / math.sqrt(3))
    _, unpaired = words.gap(a, b, paired=False)
    errors = [2 * stdev(v.values()) / math.sqrt(3) for v in (a, b)]
    assert unpaired == pytest.approx(math.hypot(*errors)) and unpaired > wide
    assert math.isnan(words.gap({0: 0.5}, {0: 0.4})[1])


def verdict(*rows):
    made = [Series(name, setting="s", accuracies=dict(enumerate(a)), bound=name == "Local") for name, a in rows]
    return draw.verdict(made)


def test_verdicts_say_what_is_noise():
    clear = verdict(("FENS", [0.8, 0.82, 0.84]), ("FedAvg", [0.3, 0.33, 0.33]))
    assert clear == "FENS is best with 82 %, clearly ahead of FedAvg (by 50 ± 1 points)."
    noise = verdict(("FENS", [0.8, 0.9, 0.7]), ("FedLPA", [0.82, 0.7, 0.82]), ("FedAvg", [0.1, 0.1, 0.1]))
    assert "FedLPA is 2 ± 19 points behind, which is within the noise; FedAvg is last with 10 %." in noise
    single = verdict(("FENS", [0.8]), ("FedAvg", [0.3]))
    assert "with one seed nobody can tell whether that is noise" in single
    assert verdict(("FENS", [0.8])) == "FENS reaches 80 %." and verdict() == "No result yet."
    bound = verdict(("FENS", [0.8]), ("Local", [0.9]))
    assert bound == "FENS reaches 80 %. For reference: Local 90 %."


def test_communication_compares_the_cheapest_with_the_dearest():
    rows = [Series("A", accuracies={0: 0.5}, up=1000, down=1000), Series("B", accuracies={0: 0.8}, up=4000, down=1000)]
    assert draw.communication(rows).sentence == (
        "A costs least, 2 kB up and down for all clients; B costs 2.5 times as much and is 30 points better."
    )


def neighbours_by_hand(x, y, k):
    right = 0
    for i in range(len(x)):
        order = sorted((j for j in range(len(x)) if j != i), key=lambda j: ((x[i] - x[j]) ** 2).sum())[:k]
        votes = Counter(int(y[j]) for j in order)
        most = max(votes.values())
        tied = [c for c in votes if votes[c] == most]
        ranks = {c: sum(k - r for r, j in enumerate(order) if y[j] == c) for c in tied}
        right += max(tied, key=lambda c: ranks[c]) == y[i]
    return right / len(x)


def test_neighbour_accuracy_is_what_a_loop_finds():
    rng = np.random.default_rng(0)
    for k, spread in ((10, 0.1), (10, 3.0), (3, 1.0)):
        y = rng.integers(0, 4, 60)
        x = np.eye(4)[y] + spread * rng.normal(size=(60, 4))
        assert draw.neighbour_accuracy(x, y, k) == neighbours_by_hand(x, y, k)
    apart = np.repeat([0, 1], 20)
    assert draw.neighbour_accuracy(apart[:, None] * 100.0 + rng.random((40, 1)), apart) == 1
    assert math.isnan(draw.neighbour_accuracy(np.zeros((1, 3)), np.zeros(1, int)))


def test_pca_keeps_the_variance_of_the_leading_eigenvectors():
    x = np.random.default_rng(0).normal(size=(50, 6)) * [5, 3, 1, 1, 1, 1]
    found = draw.pca(x)
    values = np.linalg.eigvalsh(np.cov(x.T))[::-1]
    assert np.allclose(found.var(0, ddof=1), values[:2]) and abs(found[:, 0] @ found[:, 1]) < 1e-9
    assert draw.pca(np.zeros((5, 1))).shape == (5, 2)


def test_tsne_gives_the_same_map_again_and_takes_degenerate_points():
    x = np.random.default_rng(0).normal(size=(40, 8))
    assert np.array_equal(draw.tsne(x), draw.tsne(x))
    for flat in (np.zeros((20, 3)), x[:3], x[:6]):
        assert draw.tsne(flat).shape == (len(flat), 2) and np.isfinite(draw.tsne(flat)).all()


def test_features_say_which_map_is_a_preview_and_what_is_left_out():
    rng = np.random.default_rng(0)
    maps = [Map(f"m{i}", rng.normal(size=(9, 2)), np.arange(9), i / 12, "PCA") for i in range(10)]
    picture = draw.features(maps, tuple("012345678"), setting="s", held=[True] * 9, who="client 1")
    assert picture.sentence.startswith("m9: 75 % of the points") or "m7" in picture.sentence
    assert "PCA preview" in picture.sentence and "2 more methods" in picture.sentence and "client 1" in picture.sentence
    assert len(picture.table) == 10
