"""The toy in the plane: each square, computed in another way; and the lessons' claims over ten seeds."""

import numpy as np
import pytest
import torch

from fedlab_nb.course import plane
from fedlab_nb.errors import UsageError
from fedlab_nb.panels import playground
from fedlab_nb.panels.plane.toy import CLASSES, CLIENTS, ToyFederation, make_toy_federation
from fedlab_nb.panels.plane.view import (
    draw_toy_federation,
    make_grid_points_of_plane,
    make_square_of_predictor,
)
from fedlab_nb.studies.statistics import difference


@pytest.fixture(scope="module")
def toy():
    return ToyFederation(0.3, seed=2)


def compute_logits_by_hand(state, x):
    """Compute the network's logits `[N, C]` in numpy, with double precision."""
    weights = [tensor.double().numpy() for tensor in state.values()]
    hidden = np.maximum(x.double().numpy() @ weights[0].T + weights[1], 0)
    return hidden @ weights[2].T + weights[3]


# ------------------------------------------------------------------------------------------------------ predictors
def test_averaged_weights_are_the_mean_by_sizes(toy):
    states = toy.clients.states()
    shares = np.array(toy.training_points_per_client) / sum(toy.training_points_per_client)
    for name, tensor in toy.averaged_network.state_dict().items():
        mean = sum(
            share * state[name].double() for share, state in zip(shares, states, strict=True)
        )
        assert torch.allclose(tensor.double(), mean, atol=1e-6)


def test_regions_of_the_average_of_predictions_are_the_argmax_of_the_means(toy):
    mean = np.mean(
        [
            compute_logits_by_hand(state, make_grid_points_of_plane())
            for state in toy.clients.states()
        ],
        axis=0,
    )
    two = np.sort(mean, 1)[:, -2:]
    clear = two[:, 1] - two[:, 0] > 1e-3  # not on a border
    shown_classes = (
        make_square_of_predictor(toy, "", toy.predict_with_mean_logits)
        .scores.reshape(-1, len(CLASSES))
        .argmax(1)
    )
    assert clear.mean() > 0.95 and (shown_classes == mean.argmax(1))[clear].all()


def test_clients_share_a_start_or_have_one_each():
    def build_first_weights(start):
        toy = ToyFederation(100, start=start)
        return [next(toy._make_untrained_network(k).parameters()) for k in range(CLIENTS)]

    common_start = build_first_weights("common")
    own_start = build_first_weights("own")
    assert torch.equal(common_start[0], common_start[1])
    assert not torch.equal(own_start[0], own_start[1])
    with pytest.raises(UsageError, match="common"):
        ToyFederation(1, start="none")


# ------------------------------------------------------------------------------------------------------ the picture


def test_sentence_and_table_agree_with_the_toy(toy):
    picture = draw_toy_federation(toy)
    right = toy.measure_test_accuracy(toy.predict_with_mean_logits)
    assert f"average of predictions {right:.0%}".replace("%", " %") in picture.sentence
    assert "α = 0.3, seed 2, common start" in picture.alt and "guessing: 33 %" in picture.sentence
    titles = [row["picture"] for row in picture.table]
    assert titles[:3] == ["Client A", "Client B", "Client C"]
    for k, row in enumerate(picture.table[:3]):
        # Held-out points are not counted.
        assert sum(row[f"points {name}"] for name in CLASSES) == toy.training_points_per_client[k]


# --------------------------------------------------------------------------------------- in the playground and lesson 2
@pytest.mark.slow
def test_the_playground_shows_the_lessons_squares_at_its_own_setting(make_panel):
    panel = make_panel(kind=playground, alpha=0.3, seed=2, clients=7)
    lesson = plane.show(alpha=0.3, seed=2)
    assert panel.show("plane").sentence == lesson.sentence
    lesson.set(start="own")
    assert panel.set("plane", start="own").sentence == lesson.sentence
    panel.controls.alpha.value = 100
    panel.controls.seed.value = 5
    lesson.set(alpha=100, seed=5)
    expected = draw_toy_federation(ToyFederation(100, seed=5, start="own")).table
    assert panel.show("plane").table == lesson.picture.table == expected
    assert lesson.sentence.startswith("α = 100: ") and not panel.error
    lesson.close()


def test_squares_of_another_setting_are_dim_while_a_hand_is_on_the_slider(make_panel):
    panel = make_panel(kind=playground, seed=4)
    panel.show("plane")
    box = panel.views["plane"].box
    assert "fl-older" not in box._dom_classes
    panel.views.frame = (900, 500)  # with a browser, tabs are drawn once the controls rest
    panel._is_dealing = True
    panel.controls.alpha.value = 1
    assert "fl-older" in box._dom_classes
    panel._is_dealing = False
    panel.show("communication")
    panel.show("plane")
    assert "fl-older" not in box._dom_classes


# ------------------------------------------------------------------------------------------------------ over ten seeds
@pytest.mark.slow
def test_the_lessons_claims_hold_over_ten_seeds():
    def measure_gap(first, second, alpha, start="common"):
        toys = {seed: make_toy_federation(alpha, seed, start) for seed in range(10)}
        a, b = (
            {k: toy.measure_test_accuracy(getattr(toy, name)) for k, toy in toys.items()}
            for name in (first, second)
        )
        return difference(a, b)

    assert (
        measure_gap("predict_with_mean_logits", "predict_with_averaged_weights", 100, "own").low
        > 0.2
    )
    assert (
        abs(measure_gap("predict_with_mean_logits", "predict_with_averaged_weights", 100).mean)
        < 0.02
    )
