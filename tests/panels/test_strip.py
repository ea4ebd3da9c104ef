"""A lab's strip of the stage: strip, menus and pictures share the selected client and class."""

import random

import pytest
from javascript import run_javascript
from stage_messages import START_SETTING, find_last, open_window, read_owners, request_federation

from fedlab_nb.data import federate
from fedlab_nb.panels import LabPanel, playground
from fedlab_nb.panels.figures import PLAYGROUND
from fedlab_nb.panels.stage_data import NOBODY as NO_OWNER
from fedlab_nb.panels.views import NOBODY


@pytest.fixture
def strip(make_panel, sent):
    panel = make_panel(kind=lambda **options: LabPanel(PLAYGROUND, **options), seed=4)
    open_window(panel)
    return panel


def list_sent(sent, kind):
    return [content for content, _ in sent if content["kind"] == kind]


def test_the_stage_of_a_lab_is_a_strip(strip, sent):
    about = find_last(sent, "data")[0]["about"]
    assert about["isStrip"] and not about["hasSettings"]
    assert strip.views.box.children[0] is strip.stage


def test_the_strip_speaks_of_clients_as_its_panel_does(strip, sent):
    people = find_last(sent, "data")[0]["about"]["people"]
    assert (people["one"], people["many"], people["kind"]) == ("client", "clients", "digit")


@pytest.mark.parametrize(("story", "word"), [(True, "office"), (False, "client")])
def test_only_a_stage_that_tells_the_story_has_post_offices(make_panel, sent, story, word):
    """Whatever a teacher hides: a panel without the menu of data sets is not yet the one of lesson 1."""
    open_window(make_panel(kind=playground, seed=4, hide=["stored", "dataset"], story=story))
    assert find_last(sent, "data")[0]["about"]["people"]["one"] == word


@pytest.mark.slow
def test_a_selection_on_the_strip_changes_the_panel_and_is_not_sent_back(strip, sent):
    sent.clear()
    strip._dispatch_browser_message({"kind": "selection", "client": 3, "class_index": 7})
    state = strip.state("partition")
    assert (state.client, state.class_index) == (3, 7)
    frames = [view.frame.selection for view in strip.views.views.values()]
    assert frames == [{"client": 3, "class_index": 7}] * len(frames)
    assert list_sent(sent, "selection") == []
    strip._dispatch_browser_message({"kind": "selection", "client": None, "class_index": 7})
    assert strip.views.client.value == NOBODY and strip.views.class_index.value == 7
    assert list_sent(sent, "selection") == []


@pytest.mark.slow
def test_a_selection_in_a_menu_or_a_picture_is_sent_to_the_strip(strip, sent):
    sent.clear()
    strip.views.client.value = 2
    picked = {"count": 1, "method": None, "client": 2, "class_index": 5, "none": False}
    strip.views["partition"].frame.picked = picked
    selections = [
        (message["client"], message["class_index"]) for message in list_sent(sent, "selection")
    ]
    assert selections[0] == (2, None) and selections[-1] == (2, 5)
    strip.views["partition"].frame.picked = {"count": 2, "none": True}
    assert (strip.state("partition").client, list_sent(sent, "selection")[-1]["client"]) == (
        None,
        None,
    )


@pytest.mark.slow
def test_an_unknown_client_selects_nobody(strip):
    strip._dispatch_browser_message({"kind": "selection", "client": 99, "class_index": None})
    assert strip.state("partition").client is None


@pytest.mark.slow
def test_an_echo_of_the_strip_sets_no_control(strip, sent):
    """The slider has moved on while the window still answers to where it was."""
    strip.controls.alpha.value = 0.5
    alpha = strip.state("partition").settings["alpha"]
    echo = {
        "kind": "deal",
        "revision": 2,
        "question": "echo",
        "setting": START_SETTING,
        "isEcho": True,
    }
    strip._dispatch_browser_message(echo)
    assert strip.state("partition").settings["alpha"] == alpha != START_SETTING["alpha"]
    content, _ = find_last(sent, "federation")
    assert content["question"] == "echo" and content["setting"]["alpha"] == alpha
    strip.controls.hidden_settings["moves"] = "A>B"
    strip._apply_control_values()
    strip._dispatch_browser_message(echo)
    assert strip.state("partition").settings["moves"] == "A>B"


def test_a_pile_that_is_thrown_changes_the_partition_and_nothing_else(strip, sent):
    strip.controls.alpha.value = 0.5
    move = {"from": 4, "label": None, "to": 3}
    request_federation(strip, {**START_SETTING, "moves": [move]}, 2)  # as the window knew α before
    settings = strip.state("partition").settings
    assert settings["alpha"] == strip.controls.alpha.value != START_SETTING["alpha"]
    assert settings["moves"] == "E>D"
    alone = federate("digits", alpha=settings["alpha"], clients=10, seed=4, moves="E>D")
    owners = read_owners(sent)
    for k, shard in enumerate(alone.shards):
        assert (owners[shard] == k).all()
    assert (owners != NO_OWNER).all()


def test_edits_without_a_gesture_are_kept_until_all_is_undone(strip):
    """A double is made with the buttons under “Who holds what”, then a pile is thrown, then all is taken back."""
    strip.controls.hidden_settings["moves"] = "A*"
    strip._apply_control_values()
    request_federation(
        strip, {**START_SETTING, "clients": 11, "moves": [{"from": 4, "label": None, "to": 3}]}, 2
    )
    assert strip.state("partition").settings["moves"] == "A*, E>D"
    strip.controls.hidden_settings["moves"] = "B>C"
    strip._apply_control_values()
    moves = [{"from": 1, "label": None, "to": 2}, {"from": 3, "label": 6, "to": 4}]
    request_federation(strip, {**START_SETTING, "moves": moves}, 3)
    assert strip.state("partition").settings["moves"] == "B>C, D6>E"


def test_a_press_on_a_mark_selects_the_same_in_the_browser_and_in_python(strip):
    """Both follow the same presses, one after another, on marks of clients, classes, both, and of methods."""
    rng = random.Random(3)
    kinds = [(0, None, None), (None, 1, None), (0, 1, None), (2, 1, None), (0, None, "FENS")]
    presses = [rng.choice(kinds) for _ in range(60)]
    expected = []
    frame = strip.views["partition"].frame
    for number, (client, class_index, method) in enumerate(presses, 1):
        press = {"client": client, "class_index": class_index, "method": method, "none": False}
        frame.picked = {"count": number, **press}
        state = strip.state("partition")
        expected.append([state.client, state.class_index])
    selected = run_javascript(
        "selection",
        "let now = NO_SELECTION; return presses.map(([client, classIndex, method]) => {"
        " now = chooseMark(now, { client, classIndex }, method);"
        " return [now.client, now.classIndex]; });",
        presses=presses,
    )
    assert selected == expected
