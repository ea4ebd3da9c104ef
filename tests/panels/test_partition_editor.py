"""A partition is changed by hand: buttons, Undo and Back to α; the samples of a client and class."""

import random

import numpy as np
import pytest
import torch

from fedlab_nb.data import federate, load
from fedlab_nb.panels.figures import describe_client_bytes
from fedlab_nb.panels.partition_editor import MAX_SAMPLES, make_samples_html
from fedlab_nb.studies.settings import Settings


@pytest.fixture
def panel(make):
    return make(methods=["fedavg"], seeds=1)


def shards(panel):
    return panel.state("partition").federation.shards


def same(one, other):
    return len(one) == len(other) and all(map(torch.equal, one, other))


def test_fifty_random_moves_keep_every_sample_and_undo_restores_each_state(panel, job, monkeypatch):
    monkeypatch.setattr(panel.views, "draw_visible_view", lambda: None)
    chance = random.Random(0)
    states = [shards(panel)]
    while len(panel.editor.edits.changes) < 50:
        client, to = chance.sample(range(10), 2)
        before = len(panel.editor.edits.changes)
        panel.editor.move_samples(client, chance.choice([None, *range(10)]), to)
        if len(panel.editor.edits.changes) > before:
            states.append(shards(panel))
            assert torch.equal(torch.cat(shards(panel)).sort().values, torch.arange(1237))
    panel.run(wait=True)
    asked = job.calls[-1][2]
    assert f"moves={asked['moves']!r}" in panel.code()
    kept = {name: value for name, value in asked.items() if name != "seeds"}
    assert same(Settings.make(**kept).federation().shards, states[-1])
    for state in reversed(states[:-1]):
        panel.editor.undo.click()
        assert same(shards(panel), state)
    assert "moves" not in panel.code() and same(shards(panel), federate("digits").shards)


def test_buttons_appear_with_a_client_and_do_what_they_say(panel):
    editor = panel.editor
    assert editor.row.layout.display == "none" and editor.samples.layout.display == "none"
    panel.views.client.value, panel.views.class_index.value = 3, 6
    assert editor.row.layout.display is None and editor.undo.layout.display == "none"
    assert editor.samples.value.count("<img") == MAX_SAMPLES
    assert "121 samples of class 6 at client D" in editor.samples.value
    editor.to.value = 1
    editor.give.click()
    # The view follows the samples to their new client.
    assert panel.code().count("moves='0: D6>B'") == 1 and panel.views.client.value == 1
    editor.name.value = "north, x"
    editor.double.click()
    assert editor.edits.doubled_clients == [1] and "B (north x)" in str(panel.views.client.options)
    assert panel.views.client.options[-1] == ("K (double of B)", 10) and len(shards(panel)) == 11
    assert same(shards(panel)[1:2], shards(panel)[10:])
    editor.empty.click()
    assert len(shards(panel)[1]) == 1
    assert editor.empty.disabled
    assert editor.give.disabled
    assert "2 moves" not in panel.sentence
    panel.editor.move_samples(1, None, 0)  # the last one stays
    assert len(shards(panel)[1]) == 1 and "keeps its last sample" in panel.controls.error.value
    editor.reset.click()
    assert "moves" not in panel.code() and same(shards(panel), federate("digits").shards)
    panel.views.client.value = -1
    assert editor.row.layout.display == "none"


def test_moves_stay_while_the_slider_moves_and_go_with_their_clients(panel):
    panel.editor.move_samples(3, 6, 0)
    panel.controls.alpha.value = 0.5
    panel.controls.seed.value = 4
    assert "alpha=0.5" in panel.code()
    assert "seed=4" in panel.code()
    assert "moves='0: D6>A'" in panel.code()
    assert same(shards(panel), federate("digits", alpha=0.5, moves="0: D6>A").shards)
    panel.controls.clients.value = 5
    assert "moves" not in panel.code()
    assert same(shards(panel), federate("digits", alpha=0.5, clients=5, seed=4).shards)


def test_a_panel_begins_with_moves_and_a_column_keeps_its_number_beside_who_is_away(make):
    panel = make(methods=["fedavg"], seeds=1, moves="A0>B", unseen="B")
    panel.editor.move_samples(1, None, 0)  # the second column is client C
    assert [str(move) for move in panel.editor.edits.changes] == ["A0>B", "C>A"]


def test_who_is_left_keeps_the_letter_in_all_words(make):
    panel = make(methods=["fedavg"], seeds=1, absent="B")
    panel.views.client.value, panel.views.class_index.value = 1, 6  # the second column is client C
    editor = panel.editor
    assert (editor.empty.description, editor.double.description) == ("Empty C", "Double C")
    assert "at client C" in editor.samples.value
    editor.empty.click()
    panel.editor.move_samples(1, None, 0)
    assert "Client C keeps its last" in panel.controls.error.value
    panel.run(wait=True)
    runs = panel.state("communication").runs
    panel.views.class_index.value = -1
    assert describe_client_bytes(runs, 1).startswith("Client C,")
    assert "client C holds" in panel.show("features").alt


def test_samples_are_drawn_once_α_rests(panel, monkeypatch):
    asked = []

    def request(kind, *_, is_urgent=False):
        asked.append((kind, is_urgent))

    monkeypatch.setattr(panel.controls.debouncer, "schedule_update", request)
    panel.views.client.value, panel.views.class_index.value = 3, 6
    panel.controls.alpha.value = 0.2
    assert [now for kind, now in asked if kind == "samples"] == [True, False]


@pytest.mark.parametrize("name", ["digits", "glyphs", "watch", "heart"])
def test_a_dot_shows_its_samples_of_every_kind(name):
    held = federate(load(name))
    client, class_index = (int(i) for i in np.argwhere(held.label_counts.numpy() > 0)[0])
    shown = make_samples_html(held, client, class_index)
    count = int(held.label_counts[client, class_index])
    assert shown.count("<img") == (0 if name == "heart" else min(count, MAX_SAMPLES))
    assert f"{count} sample" in shown
