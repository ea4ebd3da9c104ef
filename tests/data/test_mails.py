"""`mails`: mailing lists as clients, a list left out, rows of hashed word counts, and a linear classifier of spam."""

import numpy as np
import pytest
import torch

import fedlab_nb as fl
from fedlab_nb.data import describe, load
from fedlab_nb.data.natural import LEFT_OUT, LISTS, MAILS


def read_stored():
    with np.load(MAILS) as file:
        return {key: file[key] for key in file.files}


def test_the_lists_are_the_clients_with_their_own_share_of_spam():
    data = load("mails")
    raw = read_stored()
    assert (data.input_shape, data.class_names, data.client_names) == (
        (512,),
        ("ham", "spam"),
        LISTS,
    )
    assert describe("mails") == data.describe()
    assert len(data.y_train) + len(data.y_test) == 6046
    for k in range(len(LISTS)):
        for c in range(2):
            count = int(((raw["source"] == k) & (raw["spam"] == c)).sum())
            assert int(((data.client_test == k) & (data.y_test == c)).sum()) == count // 5
            assert int(((data.client_train == k) & (data.y_train == c)).sum()) == count - count // 5
    assert MAILS.stat().st_size < 1_000_000
    assert set(raw) == {"counts", "spam", "source"}  # and no texts
    assert raw["counts"].dtype == np.uint8
    assert raw["counts"].max() == 7


def test_a_row_holds_the_logarithms_of_its_counts_scaled_to_one_length():
    data = load("mails:fork")
    raw = read_stored()
    is_fork = raw["source"] == LISTS.index("fork")
    logs = np.log(1 + raw["counts"][is_fork].astype(float))
    by_hand = logs / np.sqrt((logs**2).mean(1, keepdims=True))
    assert np.allclose(data.x_test.numpy(), by_hand, atol=1e-5)
    assert data.y_test.tolist() == raw["spam"][is_fork].tolist()
    assert "fork" not in data.client_names
    assert data.client_test is None


@pytest.mark.parametrize(
    ("name", "left_out"), [(name, client) for name, client in LEFT_OUT.items() if client in LISTS]
)
def test_a_list_left_out_is_the_test_set(name, left_out):
    data = load(name)
    k = LISTS.index(left_out)
    counts = np.bincount(read_stored()["source"])
    assert len(data.y_test) == counts[k]
    assert data.client_names == tuple(name for name in LISTS if name != left_out)
    assert torch.bincount(data.client_train).tolist() == [n for i, n in enumerate(counts) if i != k]
    assert data.digest != load("mails").digest


def test_afl_over_the_lists_recognises_spam():
    out = fl.run("afl", dataset="mails")
    assert out.settings.clients == 6
    assert out.accuracy > 0.95
    assert out.auc > 0.98
    assert 0 < out.worst_client <= out.balanced_accuracy + 0.05
