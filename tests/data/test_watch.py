"""`watch` and a user's own recordings: people as clients, the split in time, the network, and every method."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import fedlab_nb as fl
from fedlab_nb.data import describe, load
from fedlab_nb.data.arrays import make_dataset_from_arrays
from fedlab_nb.data.natural import WATCH, mark_last_fifth_of_each_recording
from fedlab_nb.methods import METHODS
from fedlab_nb.models import build, count_parameters
from fedlab_nb.plots.kit import render_recording_pixels

CHEAP = {
    "rounds": 2,
    "iterations": 3,
    "epochs": 1,
    "steps": 5,
    "samples": 20,
    "distil_steps": 5,
    "one_shot_steps": 5,
}


@pytest.fixture(scope="module")
def stored():
    with np.load(WATCH) as file:
        return {key: file[key] for key in file.files}


def keep_every_nth(every=20):
    """Every n-th window, as a user's own arrays."""
    data = load("watch")
    names = ("x_train", "y_train", "x_test", "y_test", "client_train")
    return {name: getattr(data, name)[::every] for name in names}


def test_people_are_the_clients_and_each_does_every_exercise(stored):
    data = load("watch")
    fed = fl.federate("watch")
    assert (data.input_shape, data.classes) == ((6, 100), 7)
    assert describe("watch") == data.describe()
    assert fed.partition == "natural"
    assert data.client_names == tuple(f"person {k}" for k in range(1, 11))
    assert (fed.label_counts > 0).all()
    assert len(data.y_train) + len(data.y_test) == len(stored["x"])
    assert torch.equal(data.client_test.unique(), torch.arange(10))
    assert len(np.unique(stored["recording"])) == 140
    assert WATCH.stat().st_size < 2_000_000


def test_the_test_windows_end_each_recording(stored):
    test = mark_last_fifth_of_each_recording(stored["recording"])
    for number in np.unique(stored["recording"]):
        rows = test[stored["recording"] == number]
        assert rows.sum() == len(rows) // 5
        assert not np.any(np.diff(rows.astype(int)) < 0)
    y = stored["label"]
    assert load("watch").y_test.tolist() == y[test].tolist()
    assert load("watch").y_train.tolist() == y[~test].tolist()


def test_each_channel_is_standardised_over_the_training_windows(stored):
    data = load("watch")
    x = stored["x"].astype(np.float64)
    training = x[~mark_last_fifth_of_each_recording(stored["recording"])]
    by_hand = (x - training.mean((0, 2))[:, None]) / training.std((0, 2))[:, None]
    assert np.allclose(
        data.x_test.numpy(),
        by_hand[mark_last_fifth_of_each_recording(stored["recording"])],
        atol=1e-5,
    )


@pytest.mark.parametrize("k", [1, 10])
def test_a_person_left_out_is_the_test_set(k, stored):
    data = load(f"watch:{k}")
    assert len(data.y_test) == (stored["person"] == k - 1).sum()
    assert data.client_test is None
    assert data.client_names == tuple(f"person {i}" for i in range(1, 11) if i != k)
    counts_of_others = np.bincount(stored["person"])[np.arange(10) != k - 1]
    assert torch.bincount(data.client_train).tolist() == counts_of_others.tolist()


def test_channels_of_recordings_may_come_first_or_last():
    source = keep_every_nth(40)
    channels_first = make_dataset_from_arrays(source)
    channels_last = make_dataset_from_arrays(
        {key: v.transpose(1, 2) if key[0] == "x" else v for key, v in source.items()}
    )
    assert channels_first.input_shape == (6, 100)
    assert torch.equal(channels_first.x_train, channels_last.x_train)
    assert channels_first.digest == channels_last.digest
    assert channels_first.x_train.double().mean((0, 2)).abs().max() < 1e-6
    short = {key: v[:, :, :7] if key[0] == "x" else v for key, v in source.items()}
    with pytest.raises(fl.UsageError, match="recordings \\[N, C, T\\] with C below 8"):
        make_dataset_from_arrays(short)


def test_the_network_is_three_convolutions_along_time():
    net = build("cnn1d", (6, 100), 7).double()
    x = torch.randn(3, 6, 100, dtype=torch.float64)
    h = x
    for block in net.body:
        layer = next(part for part in block if isinstance(part, torch.nn.Conv2d))
        h = F.max_pool1d(F.conv1d(h, layer.weight[:, :, 0], layer.bias, padding=2).relu(), 2)
    assert torch.allclose(net(x), net.classifier(h.mean(2)), atol=1e-12)
    assert count_parameters(net) == 8471
    with pytest.raises(fl.UsageError, match="needs recordings, not images of 1x8x8; use 'mlp'"):
        build("cnn1d", (1, 8, 8), 10)
    with pytest.raises(fl.UsageError, match="at least 8 steps, not 7"):
        build("cnn1d", (6, 7), 10)


@pytest.mark.slow
def test_every_method_but_fadi_runs_on_recordings():
    knobs = {}
    for method, knobs_of_method in METHODS.items():
        for knob in knobs_of_method.fields():
            if knob.name in CHEAP:
                knobs[f"{method}.{knob.name}"] = CHEAP[knob.name]
    outcomes = {}
    errors = {}
    for event in fl.job("all", dataset=keep_every_nth(), public=0.1, epochs=1, **knobs):
        if event.outcome is not None:
            outcomes[event.method] = event.outcome
        if event.error is not None:
            errors[event.method] = event.error
    assert set(outcomes) == set(METHODS) - {"fadi"}
    assert str(errors["fadi"]).startswith("F-ADI needs images, not recordings")
    assert all(
        outcome.settings.clients == len(outcome.label_counts) == 10 for outcome in outcomes.values()
    )


def test_a_recording_is_drawn_as_one_line_for_each_channel():
    dots = render_recording_pixels(np.array([[0.0, 1.0, 1.0], [0.5, 0.5, 0.5]]), height_pixels=5)
    lines = (dots != 1).any(2)
    # 0.5 in the middle, 0 at the bottom
    assert lines[:, 0].tolist() == [False, False, True, False, True]
    assert lines[:, 1].all()
    assert lines[:, 2].tolist() == [True, False, True, False, False]
