"""A partition is changed by hand: buttons, Undo and Back to α; the samples of a client and class."""

import random

import numpy as np
import pytest
import torch

from fedlab_nb.data import federate, load
from fedlab_nb.panels.figures import describe_bytes_of_client_or_empty
from fedlab_nb.panels.partition_editor import MAX_SAMPLES, make_samples_html
from fedlab_nb.studies.settings import Settings


@pytest.fixture
def panel(make_panel):
    return make_panel(methods=["fedavg"], seeds=1)


def read_shards(panel):
    return panel.state("partition").federation.shards


def hold_equal_samples(one, other):
    return len(one) == len(other) and all(map(torch.equal, one, other))


@pytest.mark.slow
def test_fifty_random_moves_keep_every_sample_and_undo_restores_each_state(panel, job, monkeypatch):
    monkeypatch.setattr(panel.views, "draw_visible_view_if_out_of_date", lambda: None)
    rng = random.Random(0)
    states = [read_shards(panel)]
    while len(panel.editor.edits.changes) < 50:
        client, receiver = rng.sample(range(10), 2)
        before = len(panel.editor.edits.changes)
        panel.editor.move_samples(client, rng.choice([None, *range(10)]), receiver)
        if len(panel.editor.edits.changes) > before:
            states.append(read_shards(panel))
            assert torch.equal(torch.cat(read_shards(panel)).sort().values, torch.arange(1237))
    panel.run(wait=True)
    settings = job.calls[-1][2]
    assert f"moves={settings['moves']!r}" in panel.code()
    settings_of_run = {name: value for name, value in settings.items() if name != "seeds"}
    assert hold_equal_samples(Settings.make(**settings_of_run).make_federation().shards, states[-1])
    for state in reversed(states[:-1]):
        panel.editor.undo.click()
        assert hold_equal_samples(read_shards(panel), state)
    assert "moves" not in panel.code() and hold_equal_samples(
        read_shards(panel), federate("digits").shards
    )


@pytest.mark.slow
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
    assert panel.views.client.options[-1] == ("K (double of B)", 10)
    assert len(read_shards(panel)) == 11
    assert hold_equal_samples(read_shards(panel)[1:2], read_shards(panel)[10:])
    editor.empty.click()
    assert len(read_shards(panel)[1]) == 1
    assert editor.empty.disabled
    assert editor.give.disabled
    assert "2 moves" not in panel.sentence
    panel.editor.move_samples(1, None, 0)  # the last one stays
    assert len(read_shards(panel)[1]) == 1 and "keeps its last sample" in panel.controls.error.value
    editor.reset.click()
    assert "moves" not in panel.code() and hold_equal_samples(
        read_shards(panel), federate("digits").shards
    )
    panel.views.client.value = -1
    assert editor.row.layout.display == "none"


@pytest.mark.slow
def test_moves_stay_while_alpha_changes_and_go_with_their_clients(panel):
    panel.editor.move_samples(3, 6, 0)
    panel.controls.alpha.value = 0.5
    panel.controls.seed.value = 4
    assert "alpha=0.5" in panel.code()
    assert "seed=4" in panel.code()
    assert "moves='0: D6>A'" in panel.code()
    assert hold_equal_samples(
        read_shards(panel), federate("digits", alpha=0.5, moves="0: D6>A").shards
    )
    panel.controls.clients.value = 5
    assert "moves" not in panel.code()
    assert hold_equal_samples(
        read_shards(panel), federate("digits", alpha=0.5, clients=5, seed=4).shards
    )


def test_a_panel_begins_with_moves_and_columns_count_present_clients_alone(make_panel):
    panel = make_panel(methods=["fedavg"], seeds=1, moves="A0>B", unseen="B")
    panel.editor.move_samples(1, None, 0)  # the second column is client C
    assert [str(move) for move in panel.editor.edits.changes] == ["A0>B", "C>A"]


@pytest.mark.slow
def test_a_client_keeps_its_letter_in_all_texts_while_another_is_absent(make_panel):
    panel = make_panel(methods=["fedavg"], seeds=1, absent="B")
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
    assert describe_bytes_of_client_or_empty(runs, 1).startswith("Client C,")
    assert "client C holds" in panel.show("features").alt


def test_images_of_samples_are_drawn_once_alpha_rests(panel, monkeypatch):
    requests = []

    def request(kind, *_, runs_at_once_in_caller=False):
        requests.append((kind, runs_at_once_in_caller))

    monkeypatch.setattr(panel.controls.debouncer, "schedule_update", request)
    panel.views.client.value, panel.views.class_index.value = 3, 6
    panel.controls.alpha.value = 0.2
    assert [
        runs_at_once_in_caller for kind, runs_at_once_in_caller in requests if kind == "samples"
    ] == [True, False]


# Takes its time: the letters are drawn when their data are first loaded.
@pytest.mark.parametrize("name", ["digits", "glyphs", "watch", "heart"])
def test_a_dot_shows_the_samples_of_each_kind_of_data(name):
    federation = federate(load(name))
    client, class_index = (int(i) for i in np.argwhere(federation.label_counts.numpy() > 0)[0])
    html = make_samples_html(federation, client, class_index)
    count = int(federation.label_counts[client, class_index])
    assert html.count("<img") == (0 if name == "heart" else min(count, MAX_SAMPLES))
    assert f"{count} sample" in html
