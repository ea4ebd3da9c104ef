"""Files without a split: how the test set is drawn, ids that are not features, names of classes and clients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedlab_nb.data import load
from fedlab_nb.data.arrays import make_dataset_from_arrays
from fedlab_nb.data.tables import draw_fifth_of_rows_for_test
from fedlab_nb.errors import UsageError


def make_recordings(n=60, steps=24, people="abc"):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    waves = np.sin((1 + y[:, None, None]) * np.arange(steps)[:, None])
    x = rng.normal(size=(n, steps, 3)) + waves
    return {
        "x": x.astype(np.float32),
        "y": np.array(["walk", "sit"])[y],
        "client": np.array(list(people))[np.arange(n) % 3],
    }


def test_samples_without_a_split_are_split_like_the_rows_of_a_table(tmp_path):
    arrays = make_recordings()
    np.savez(tmp_path / "gait.npz", **arrays)
    for data in (load(tmp_path / "gait.npz"), make_dataset_from_arrays(arrays)):
        test = draw_fifth_of_rows_for_test((arrays["y"] == "walk").astype(int), np.arange(60) % 3)
        assert data.class_names == ("sit", "walk")
        assert data.client_names == ("a", "b", "c")
        assert data.y_test.tolist() == (arrays["y"][test] == "walk").astype(int).tolist()
        assert data.client_train.tolist() == (np.arange(60) % 3)[~test].tolist()
        assert data.client_test.tolist() == (np.arange(60) % 3)[test].tolist()
        assert data.input_shape == (3, 24)
        assert len(data.x_train) == 48


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=2, max_size=60).filter(
        lambda rows: len({client for _, client in rows}) < len(rows)
    )
)
def test_each_client_keeps_a_training_row_and_no_class_gives_more_than_a_fifth(rows):
    y = np.array([label for label, _ in rows])
    client = np.array([client for _, client in rows])
    test = draw_fifth_of_rows_for_test(y, client)
    assert test.any()
    assert set(client[~test].tolist()) == set(client.tolist())
    for label in set(y.tolist()):
        count = test[y == label].sum()
        # One row, where no class has five.
        assert count <= (y == label).sum() // 5 or test.sum() == 1


def test_a_given_split_is_kept_and_client_applies_to_training_samples():
    arrays = make_recordings()
    x = arrays["x"]
    y = arrays["y"]
    halves = {"x_train": x[:40], "y_train": y[:40], "x_test": x[40:], "y_test": y[40:]}
    data = make_dataset_from_arrays({**halves, "client": arrays["client"][:40]})
    assert data.client_names == ("a", "b", "c")
    assert len(data.x_test) == 20
    assert data.client_test is None


@pytest.mark.parametrize(
    "change", [{"y": ["sit"] * 59}, {"y": None}, {"client": ["a"] * 7}, {"y": [0.5] * 60}]
)
def test_arrays_that_do_not_fit_are_refused_in_one_sentence(change):
    with pytest.raises(UsageError) as error:
        make_dataset_from_arrays({**make_recordings(), **change})
    assert str(error.value).endswith(".")
    assert ". " not in str(error.value)


def test_ids_are_not_features_and_unknown_is_a_missing_value(tmp_path):
    rows = [
        f"P{i:03d},{'east' if i % 3 else 'west'},{i % 7},{'unknown' if i == 9 else i % 5},letter of {i},{'yn'[i % 2]}"
        for i in range(60)
    ]
    path = tmp_path / "stroke.csv"
    path.write_text("\n".join(["id,hospital,age,bmi,note,stroke", *rows]))
    data = load(path)
    assert data.input_shape == (2 + 256,)
    assert data.client_names == ("east", "west")
    assert "Left out" in data.note
    assert "id" in data.note
    path.write_text("\n".join(["id,stroke", *(f"P{i},{'yn'[i % 2]}" for i in range(60))]))
    with pytest.raises(UsageError, match="only columns for label"):
        load(path)
