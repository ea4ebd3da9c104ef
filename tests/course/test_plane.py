"""The toy in the plane: what each square shows, computed in another way; the claims of the lessons over ten seeds."""

import numpy as np
import pytest
import torch

from fedlab_nb.course import plane
from fedlab_nb.course.plane.squares import VIEWS, grid, on_grid
from fedlab_nb.course.plane.toy import CLASSES, CLIENTS, Toy, toy_at
from fedlab_nb.errors import UsageError
from fedlab_nb.methods.fens.aggregators import WeightedSum
from fedlab_nb.studies.statistics import difference


@pytest.fixture(scope="module")
def made():
    return Toy(0.3, seed=2)


def by_hand(state, x):
    """The network in double precision numpy: logits `[N, C]`."""
    weights = [tensor.double().numpy() for tensor in state.values()]
    hidden = np.maximum(x.double().numpy() @ weights[0].T + weights[1], 0)
    return hidden @ weights[2].T + weights[3]


# ------------------------------------------------------------------------------------------------------ predictors
def test_averaged_weights_are_the_mean_by_sizes(made):
    states, shares = made.clients.states(), np.array(made.sizes) / sum(made.sizes)
    for name, tensor in made.average.state_dict().items():
        mean = sum(share * state[name].double() for share, state in zip(shares, states, strict=True))
        assert torch.allclose(tensor.double(), mean, atol=1e-6)


def test_regions_of_the_average_of_predictions_are_the_argmax_of_the_means(made):
    mean = np.mean([by_hand(state, grid()) for state in made.clients.states()], axis=0)
    two = np.sort(mean, 1)[:, -2:]
    clear = two[:, 1] - two[:, 0] > 1e-3  # not on a border
    drawn = on_grid(made.predictions).reshape(-1, len(CLASSES)).argmax(1)
    assert clear.mean() > 0.95 and (drawn == mean.argmax(1))[clear].all()


def test_fens_trains_its_weights_on_held_out_points_alone(made):
    lam = made.rule.weights()
    assert lam.shape == (CLIENTS, len(CLASSES)) and not torch.allclose(lam, torch.tensor(1 / CLIENTS))

    def loss(rule):
        x, y = (torch.cat(parts) for parts in zip(*made.held_out, strict=True))
        return torch.nn.functional.cross_entropy(rule(made.each(x)), y)

    even = WeightedSum(torch.full((CLIENTS, 1), 1 / CLIENTS), len(CLASSES), trained=False)
    assert loss(made.rule) < loss(even)
    other = Toy(0.3, seed=2)
    other.shards = [(x + 1, y) for x, y in other.shards]  # what the networks were trained on plays no part
    assert torch.equal(other.rule.weights(), lam)


def test_starts():
    def first(start):
        toy = Toy(100, start=start)
        return [next(toy._network(k).parameters()) for k in range(CLIENTS)]

    common, own = first("common"), first("own")
    assert torch.equal(common[0], common[1]) and not torch.equal(own[0], own[1])
    with pytest.raises(UsageError, match="common"):
        Toy(1, start="none")


# ------------------------------------------------------------------------------------------------------ the picture


def test_the_words_say_what_is_seen(made):
    picture = plane.picture(made, tuple(VIEWS))
    right = made.accuracy(made.predictions)
    assert f"average of predictions {right:.0%}".replace("%", " %") in picture.sentence
    assert "α = 0.3, seed 2, common start" in picture.alt and "guessing: 33 %" in picture.sentence
    titles = [row["picture"] for row in picture.table]
    assert titles[:3] == ["Client 0", "Client 1", "Client 2"] and titles[-1] == "λ, client 2"
    for k, row in enumerate(picture.table[:3]):
        assert [row[f"points {name}"] for name in CLASSES] == made.federation.label_counts[k].tolist()
    row = plane.picture(made, ["clients"]).table[0]
    assert sum(row[f"points {name}"] for name in CLASSES) == made.sizes[0]  # held-out points play no part there


# ------------------------------------------------------------------------------------------------------ over ten seeds
def test_the_card_compares_seed_by_seed():
    toys = [toy_at(1, seed) for seed in range(10)]
    gaps = [toy.accuracy(toy.fens) - toy.accuracy(toy.predictions) for toy in toys]
    half = 2.262 * np.std(gaps, ddof=1) / 10**0.5
    card = repr(plane.over_seeds("fens", "predictions", [(1, "common")]))
    assert f"difference {100 * np.mean(gaps):+.0f} ± {100 * half:.0f} points" in card and "α = 1, common start" in card
    with pytest.raises(UsageError, match="weights"):
        plane.over_seeds("client", "fens")


@pytest.mark.slow
def test_what_the_lessons_say_of_ten_seeds():
    def gap(first, second, alpha, start="common"):
        toys = {seed: toy_at(alpha, seed, start) for seed in range(10)}
        a, b = ({k: toy.accuracy(getattr(toy, name)) for k, toy in toys.items()} for name in (first, second))
        return difference(a, b)

    assert gap("predictions", "weights", 100, "own").low > 0.2 and abs(gap("predictions", "weights", 100).mean) < 0.02
    assert gap("fens", "predictions", 0.1).low > 0.1 and abs(gap("fens", "predictions", 100).mean) < 0.02
