"""The line between two networks and their matched units, with their pictures; the puzzles of the matching game."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fedlab_nb.labs.matching.barrier import draw_loss_or_accuracy_on_line
from fedlab_nb.labs.matching.game import (
    NOISE,
    STREAMS,
    UNITS,
    compute_tiny_network_outputs_on_grid,
    make_matching_puzzle,
    pair_units_by_swapping,
)
from fedlab_nb.labs.matching.pairs import (
    RULES,
    InterpolationLine,
    MatchedPair,
    compute_unit_cosines,
    match_networks,
    measure_interpolation_line,
)
from fedlab_nb.labs.matching.partners import draw_unit_cosines_before_and_after_matching
from fedlab_nb.methods.matching.wiring import find_unit_wiring, permute_units
from fedlab_nb.models import build, copy_model_state, load_state

EXACT = torch.float64
HILL = InterpolationLine(np.array([0.5, 2.0, 0.7]), np.array([0.9, 0.3, 0.8]))
FLAT = InterpolationLine(np.array([0.5, 0.4, 0.7]), np.array([0.9, 0.85, 0.8]))
ALIKE = np.array([[0.1, 0.9, 0.0], [0.2, 0.1, 0.6], [0.7, 0.3, -0.2]])
PAIR = MatchedPair(0, 4, "rebasin", HILL, FLAT, [ALIKE], [np.array([1, 2, 0])], "toy, seed 0")


def build_network(seed=0, name="mlp"):
    generator = torch.Generator().manual_seed(seed)
    return build(name, (1, 8, 8), 10, generator=generator, dtype=EXACT).eval()


@pytest.fixture(scope="module")
def samples():
    generator = torch.Generator().manual_seed(1)
    return torch.rand(60, 1, 8, 8, generator=generator, dtype=EXACT), torch.arange(60) % 10


def shuffle_units(module, seed=3):
    """A network that computes the same function, with its units in another order."""
    wiring = find_unit_wiring(module)
    generator = torch.Generator().manual_seed(seed)
    twin = build_network()
    orders = [torch.randperm(count, generator=generator) for count in wiring.units]
    load_state(twin, permute_units(copy_model_state(module), wiring, orders))
    return twin


# ------------------------------------------------------------------------------------------------ the line
@torch.no_grad()
def test_the_barrier_of_a_network_with_itself_is_0(samples):
    module = build_network()
    line = measure_interpolation_line(
        module, copy_model_state(module), copy_model_state(module), *samples
    )
    assert line.loss_barrier < 1e-12 and np.ptp(line.accuracy) == 0
    assert line.loss == pytest.approx(float(F.cross_entropy(module(samples[0]), samples[1])))


@torch.no_grad()
def test_the_ends_are_the_two_networks_and_the_middle_their_average(samples):
    x, y = samples
    one, other = build_network(0), build_network(5)
    between = measure_interpolation_line(
        one, copy_model_state(one), copy_model_state(other), x, y, point_count=5
    )
    average = build_network()
    other_state = copy_model_state(other)
    mean = {name: (value + other_state[name]) / 2 for name, value in copy_model_state(one).items()}
    load_state(average, mean)
    for index, module in ((0, one), (2, average), (4, other)):
        assert between.loss[index] == pytest.approx(float(F.cross_entropy(module(x), y)))
        assert between.accuracy[index] == float((module(x).argmax(1) == y).double().mean())
    assert between.accuracy_of_average == between.accuracy[2]
    assert list(between.positions_0_to_1) == [0, 0.25, 0.5, 0.75, 1]


def test_a_barrier_is_the_height_over_the_straight_line_and_never_negative():
    assert InterpolationLine(np.array([1.0, 2.5, 2.0]), np.zeros(3)).loss_barrier == 1.0
    assert InterpolationLine(np.array([1.0, 0.5, 2.0]), np.zeros(3)).loss_barrier == 0.0


# ------------------------------------------------------------------------------------------------ two clients
@pytest.mark.parametrize("rule", RULES)
@torch.no_grad()
def test_a_permuted_copy_has_a_barrier_before_and_none_after(rule, samples):
    module = build_network()
    for parameter in module.parameters():
        parameter *= 4  # so that its answers differ from image to image
    pair = match_networks(
        module, shuffle_units(module), (2, 5), rule, samples[0], module(samples[0]).argmax(1)
    )
    assert pair.before.loss_barrier > 1e-3 and pair.after.loss_barrier < 1e-12
    assert (pair.a, pair.b) == (2, 5)
    # Matching does not change what the networks compute.
    assert pair.before.loss[[0, -1]] == pytest.approx(pair.after.loss[[0, -1]])
    for alike, order in zip(pair.similarity, pair.orders, strict=True):
        if rule != "activations":  # where units that never answer may have another partner
            assert alike[np.arange(len(order)), order] == pytest.approx(1)


def test_a_pair_of_one_network_moves_nothing(samples):
    pair = match_networks(build_network(), build_network(), (0, 0), "rebasin", *samples)
    assert len(pair.orders) == 2
    assert all((order == np.arange(len(order))).all() for order in pair.orders)


@torch.no_grad()
def test_cosines_by_hand():
    one, other = build_network(0, "mlp1"), build_network(5, "mlp1")
    wiring = find_unit_wiring(one)
    u, v = (torch.cat([m.body[0][1].weight, m.body[0][1].bias[:, None]], 1) for m in (one, other))
    cosines = compute_unit_cosines(
        copy_model_state(one), copy_model_state(other), wiring, wiring.make_identity_orders(), 0
    )
    assert cosines[3, 7] == pytest.approx(float(u[3] @ v[7] / u[3].norm() / v[7].norm()))


def test_the_picture_of_a_barrier():
    for measure in ("loss", "accuracy"):
        picture = draw_loss_or_accuracy_on_line(PAIR, measure, 0.1)
        assert "toy, seed 0" in picture.alt and f"test {measure}" in picture.alt
        drawn_lines = [list(line.get_ydata()) for line in picture.figure.axes[0].lines[:2]]
        assert drawn_lines == [list(getattr(line, measure)) for line in (HILL, FLAT)]
    for number in ("1.40", "0.00", "30 %", "85 %", "90 %", "80 %"):
        assert number in f"{picture.sentence} {picture.detail}"
    assert picture.table[1] == {
        "way": 0.5, "loss as they stand": 2.0, "loss matched": 0.4, "accuracy as they stand": "30 %",
        "accuracy matched": "85 %",
    }  # fmt: skip


def test_the_picture_of_partners():
    picture = draw_unit_cosines_before_and_after_matching(PAIR, 0)
    assert "toy, seed 0" in picture.alt and "from 0.00 to 0.73" in picture.sentence
    left, right = (ax.images[0].get_array() for ax in picture.figure.axes[:2])
    assert np.diagonal(right).tolist() == [0.9, 0.7, 0.6]  # the best pair first
    assert np.diagonal(left).tolist() == [0.1, -0.2, 0.1]
    assert [row["partner of client E"] for row in picture.table] == [1, 2, 0]


# ------------------------------------------------------------------------------------------------ the game
@pytest.mark.parametrize("number", range(len(STREAMS)))
def test_every_puzzle_has_one_clear_solution_that_is_not_the_start(number):
    puzzle = make_matching_puzzle(number)
    barriers = sorted(
        (puzzle.compute_loss_barrier(order), order)
        for order in itertools.permutations(range(UNITS))
    )
    (best, order), (second, _) = barriers[:2]
    assert order == puzzle.find_order_with_lowest_barrier() and best < 0.01 and second > 0.1
    assert all(place != unit for place, unit in enumerate(order))
    assert puzzle.compute_loss_barrier(range(UNITS)) > 0.3
    # Matched units are nearly the same.
    assert np.abs(puzzle.b[list(order)] - puzzle.a).max() < 4 * NOISE


def test_the_answers_of_a_tiny_network_by_hand():
    """2 max(0, x - 1) - max(0, -x), at x = -2, 0, 2."""
    units = np.array([[[1.0, -1.0, 2.0], [-1.0, 0.0, -1.0]]])
    assert compute_tiny_network_outputs_on_grid(units)[0, [0, 40, 80]] == pytest.approx([-2, 0, 2])


def test_the_line_of_a_puzzle_starts_at_0_and_ends_alike_in_every_order():
    puzzle = make_matching_puzzle(0)
    for order in itertools.permutations(range(UNITS)):
        loss = puzzle.compute_losses_on_line(order)
        assert loss[0] == 0 and loss[-1] == pytest.approx(
            puzzle.compute_losses_on_line(range(UNITS))[-1]
        )
    assert pair_units_by_swapping((0, 1, 2, 3), 0, 2) == (2, 1, 0, 3)
    assert pair_units_by_swapping((0, 1, 2, 3), 3, 3) == (0, 1, 2, 3)
