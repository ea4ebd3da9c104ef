"""Training clients in parallel threads: the same result as one after the other, in step at curve points, stoppable."""

import copy
import threading

import pytest
import torch

from fedlab_nb.models import build
from fedlab_nb.training import (
    Recipe,
    iterate_training_of_clients_in_place,
    train_clients_in_place,
)
from fedlab_nb.training.backend import (
    choose_parallel_group_count,
    count_usable_cores,
    run_trainings_in_parallel_threads,
    use_torch_settings_for_run,
)
from fedlab_nb.training.local import split_clients_largest_first
from tests.training.test_backends import compute_largest_difference_of_networks, make_clients


@pytest.fixture
def two_cores():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


def list_training_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("training")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "sizes", "parts"),
    [(20, (1, 70, 33, 32, 5, 64), 6), (8, (1, 70, 33, 32, 5, 64, 20, 3, 9, 40), 2)],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_auto_and_the_loop_agree(two_cores, threads, side, sizes, parts):
    """Large images: each client is a part. Small images: two stacks of five clients. On one core the parts run in
    turn. Auto's ticks come in order."""
    torch.set_num_threads(threads)
    models, shards = make_clients("cnn", (1, side, side), sizes=sizes)
    expected_parts = 1 if threads == 1 and side == 20 else parts
    assert (
        choose_parallel_group_count("cpu", models[0], (1, side, side), len(models))
        == expected_parts
    )
    twins = copy.deepcopy(models)
    recipe = Recipe(epochs=14, batch_size=16)
    ticks = list(iterate_training_of_clients_in_place(models, shards, recipe, seed=0))
    epochs = [tick.done for tick in ticks]
    assert (
        epochs == sorted(epochs)
        and epochs[-1] == 14
        and sum(tick.has_current_models for tick in ticks) == 12
    )
    # On one thread: two would wait for each other while another process computes.
    with use_torch_settings_for_run("cpu", (1, 8, 8)):
        train_clients_in_place(twins, shards, recipe, seed=0, backend="loop")
    torch.set_num_threads(2)
    assert compute_largest_difference_of_networks(models, twins) < 1e-9
    assert not any(model.training for model in models)


def test_all_clients_are_in_step_at_every_curve_point(two_cores):
    """Where a tick has current models, every client's model is that of the tick's epoch."""
    models, shards = make_clients("cnn", (1, 20, 20), sizes=(40, 8, 24))
    for tick in iterate_training_of_clients_in_place(
        models, shards, Recipe(epochs=3, batch_size=8), seed=0
    ):
        if tick.has_current_models:
            twins, _ = make_clients("cnn", (1, 20, 20), sizes=(40, 8, 24))
            recipe = Recipe(epochs=tick.done, batch_size=8)
            train_clients_in_place(twins, shards, recipe, seed=0, backend="loop")
            assert compute_largest_difference_of_networks(models, twins) < 1e-9


def test_parallel_training_can_be_stopped(two_cores):
    models, shards = make_clients("cnn", (1, 20, 20))
    steps = iterate_training_of_clients_in_place(
        models, shards, Recipe(epochs=10_000, batch_size=4), seed=0
    )
    for _ in range(3):
        next(steps)
    assert list_training_threads()
    steps.close()
    assert not list_training_threads()


def test_an_error_in_one_thread_stops_all(two_cores):
    def fails():
        yield 0
        raise ValueError("a client failed")

    def endless():
        while True:
            yield 0

    with pytest.raises(ValueError, match="a client failed"):
        list(run_trainings_in_parallel_threads([endless(), fails()], [5], 2))
    assert not list_training_threads()


def test_clients_are_split_by_size():
    shards = [(torch.zeros(n),) for n in (10, 90, 30, 70, 50, 20)]
    assert split_clients_largest_first(range(6), shards, 6) == [[1], [3], [4], [2], [5], [0]]
    assert split_clients_largest_first(range(6), shards, 2) == [[1, 3, 4], [2, 5, 0]]
    assert split_clients_largest_first([2, 3, 4], shards, 2) == [[3], [4, 2]]
    assert split_clients_largest_first([3, 4], shards, 1) == [[3, 4]]


def test_the_number_of_parts_follows_cores_and_network(two_cores):
    mlp = build("mlp", (1, 8, 8), 10)
    cnn = build("cnn", (1, 8, 8), 10)
    large_cnn = build("cnn", (1, 28, 28), 10)
    # Steps of an MLP are short, so it takes many clients before a second part pays.
    assert [choose_parallel_group_count("cpu", mlp, (1, 8, 8), m) for m in (20, 49, 50)] == [
        1,
        1,
        2,
    ]
    assert [choose_parallel_group_count("cpu", cnn, (1, 8, 8), m) for m in (1, 5, 10, 50)] == [
        1,
        1,
        2,
        10,
    ]
    assert [choose_parallel_group_count("cpu", large_cnn, (1, 28, 28), m) for m in (1, 2, 50)] == [
        1,
        2,
        50,
    ]
    assert choose_parallel_group_count("cuda", cnn, (1, 28, 28), 20) == 1
    with use_torch_settings_for_run("cpu", (1, 8, 8)):
        assert torch.get_num_threads() == 1 and count_usable_cores() == 2
    assert count_usable_cores() == torch.get_num_threads() == 2
