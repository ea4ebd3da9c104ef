"""The toy in the plane: what each square shows, computed in another way; the claims of the lessons over ten seeds."""

import numpy as np
import pytest
import torch

from fedlab_nb.course import plane
from fedlab_nb.course.plane.panel import make_grid, make_square
from fedlab_nb.course.plane.toy import CLASSES, CLIENTS, Toy, toy_at
from fedlab_nb.errors import UsageError
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
        mean = sum(
            share * state[name].double() for share, state in zip(shares, states, strict=True)
        )
        assert torch.allclose(tensor.double(), mean, atol=1e-6)


def test_regions_of_the_average_of_predictions_are_the_argmax_of_the_means(made):
    mean = np.mean([by_hand(state, make_grid()) for state in made.clients.states()], axis=0)
    two = np.sort(mean, 1)[:, -2:]
    clear = two[:, 1] - two[:, 0] > 1e-3  # not on a border
    drawn = make_square(made, "", made.predictions).scores.reshape(-1, len(CLASSES)).argmax(1)
    assert clear.mean() > 0.95 and (drawn == mean.argmax(1))[clear].all()


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
    picture = plane.picture(made)
    right = made.accuracy(made.predictions)
    assert f"average of predictions {right:.0%}".replace("%", " %") in picture.sentence
    assert "α = 0.3, seed 2, common start" in picture.alt and "guessing: 33 %" in picture.sentence
    titles = [row["picture"] for row in picture.table]
    assert titles[:3] == ["Client A", "Client B", "Client C"]
    for k, row in enumerate(picture.table[:3]):
        assert (
            sum(row[f"points {name}"] for name in CLASSES) == made.sizes[k]
        )  # held-out points play no part there


# ------------------------------------------------------------------------------------------------------ over ten seeds
@pytest.mark.slow
def test_what_the_lessons_say_of_ten_seeds():
    def gap(first, second, alpha, start="common"):
        toys = {seed: toy_at(alpha, seed, start) for seed in range(10)}
        a, b = (
            {k: toy.accuracy(getattr(toy, name)) for k, toy in toys.items()}
            for name in (first, second)
        )
        return difference(a, b)

    assert (
        gap("predictions", "weights", 100, "own").low > 0.2
        and abs(gap("predictions", "weights", 100).mean) < 0.02
    )
