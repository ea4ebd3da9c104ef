"""Partition `fonts`: each font goes to one client, and the recorded fonts are those in which letters are drawn."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlab_nb.data import describe, federate, glyphs, load
from fedlab_nb.data.partition import partition_by_fonts
from fedlab_nb.data.public import add_public_part
from fedlab_nb.errors import UsageError
from fedlab_nb.studies.settings import Settings

SMALL = {"n_train": 300, "n_test": 10, "n_public": 60}


@settings(deadline=None)
@given(st.data())
def test_every_sample_is_assigned_once_and_every_font_to_one_client(data):
    fonts = np.array(
        data.draw(st.lists(st.integers(-1, 15), min_size=1).filter(lambda fonts: max(fonts) >= 0))
    )
    present = np.unique(fonts[fonts >= 0])
    clients = data.draw(st.integers(1, len(present)))
    seed = data.draw(st.integers(0, 99))
    dealt = partition_by_fonts(fonts, clients, np.random.default_rng(seed))
    assert sorted(np.concatenate(dealt.shards).tolist()) == np.flatnonzero(fonts >= 0).tolist()
    held = [set(fonts[shard].tolist()) for shard in dealt.shards]
    assert sum(map(len, held)) == len(present) == len(set().union(*held))
    assert max(map(len, held)) - min(map(len, held)) <= 1
    assert dealt.minimum == min(map(len, dealt.shards)) >= 1


def test_the_recorded_fonts_are_those_in_which_letters_are_drawn(monkeypatch):
    fonts_by_call = []
    fields = np.broadcast_to(np.arange(16.0)[None, :, None, None], (10, 16, 2, 2))

    def draw_letter(field, size, **pose):
        fonts_by_call.append(field[:, 0, 0])
        return np.zeros((len(field), size, size))

    monkeypatch.setattr(glyphs, "load_signed_distances_of_letters", lambda: fields)
    monkeypatch.setattr(glyphs, "compute_letter_coverage", draw_letter)
    for block in range(2):
        glyphs.draw_block_of_256_images(
            256 * block, glyphs.make_random_stream_of_block("train", 3, block), 8
        )
    # Each block draws the clutter first, then the letters.
    fonts_of_letters = np.concatenate(fonts_by_call[1::2])
    assert (
        fonts_of_letters[:400].tolist()
        == glyphs.draw_font_indices_of_images(400, "train", 3).tolist()
    )
    assert len(np.unique(fonts_of_letters)) == 16


def test_clients_of_glyphs_have_different_fonts():
    data = load("glyphs:16g", **SMALL)
    fed = federate(data, partition="fonts", clients=5, seed=1)
    held = [set(data.font_train[shard].tolist()) for shard in fed.shards]
    assert sorted(map(len, held)) == [3, 3, 3, 3, 4]
    assert len(set().union(*held)) == 16
    assert sorted(torch.cat(fed.shards).tolist()) == list(range(300))
    assert "3 to 4 of 16" in fed.note
    assert fed.skew.jensen_shannon < 0.1
    assert describe("glyphs").n_fonts == 16
    half = federate(data, partition="fonts", clients=5, seed=1, share=0.5)
    assert sum(map(len, half.shards)) == 150
    for shard, fonts in zip(half.shards, held, strict=True):
        assert set(data.font_train[shard].tolist()) <= fonts


def test_public_letters_without_a_font_belong_to_no_client():
    data = add_public_part(load("glyphs:16g", **SMALL), 0.0)
    fed = federate(data, partition="fonts", clients=16)
    assert len(data.y_train) == 360
    assert sorted(torch.cat(fed.shards).tolist()) == list(range(300))
    assert len(add_public_part(load("glyphs:16g", **SMALL), 0.1).font_train) == 324


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(dataset="digits"), "the data set 'digits' has none"),
        (dict(dataset="glyphs", minimum=20), "minimum cannot be set with partition 'fonts'"),
        (dict(dataset="glyphs", size_sigma=1), "no lognormal sizes"),
    ],
)
def test_impossible_settings_are_refused_in_one_sentence(options, message):
    with pytest.raises(UsageError, match=message):
        Settings.make(partition="fonts", **options)
    with pytest.raises(UsageError, match="the samples are in 16 fonts"):
        federate("glyphs", partition="fonts", clients=17)
