"""What all labs share: their views before a run, and runs as a view's work, with seeds, progress and failures."""

from __future__ import annotations

import re
from html import unescape

import pytest
from collected_steps import run_and_collect_steps
from matplotlib.text import Text

from fedlab_nb.errors import UsageError
from fedlab_nb.labs import lab
from fedlab_nb.labs.runs import plan_runs, run_method_on_all_seeds, run_planned_runs

SETTINGS = {"dataset": "digits", "alpha": 0.5, "clients": 2, "seed": 0, "seeds": 2, "epochs": 1}
VIEWS = {  # of each lab; those that wait for a run stand before the bar
    "afl": "forget image | skew budget size", "coboosting": "hand weights images | switches",
    "distilled": "sent | budget", "fedet": "expert dissent target rounds traffic | public",
    "fedlpa": "factors damping solver leak | plane inverted", "fens": "trust sample forget | cost",
    "fusefl": "steps cue halves probes |", "gauss": "pictures sent | heads",
    "matching": "barrier partners | game",
}  # fmt: skip


@pytest.fixture(scope="module", params=VIEWS)
def system_and_lab(request):
    """A system and its lab, before a run; opened once for the tests that only look at it."""
    panel = lab(request.param, clients=3)
    yield request.param, panel
    panel.close()


# Slow because each lab is opened and each view drawn; the first one imports what labs need.
@pytest.mark.slow
def test_before_a_run_a_view_has_its_picture_or_says_what_to_do(system_and_lab):
    system, panel = system_and_lab
    waiting, ready = [names.split() for names in VIEWS[system].split("|")]
    assert set(panel.lab_views) == {*waiting, *ready}
    for name in waiting:
        assert panel.show(name) is None, name
        assert "press run" in panel.views[name].frame.value.lower(), name
    for name in ready:
        assert panel.show(name).sentence and panel.error == "", name
        assert not panel.show(name).waits, f"{name} waits for its button"
    for name, view in panel.lab_views.items():
        labelled = [control for control in view.controls if hasattr(control, "description")]
        assert all(control.description for control in labelled), name
        assert len(view.title) <= 20


def is_sentence(text):
    return text[:1].isupper() and text.endswith(".")


@pytest.mark.slow
def test_a_view_that_waits_says_for_what_and_a_button_has_a_tooltip(system_and_lab):
    system, panel = system_and_lab
    waiting, _, _ = VIEWS[system].partition("|")
    for name in waiting.split():
        summary = panel.lab_views[name].summary
        assert is_sentence(summary), name
        assert panel.show(name) is None
        assert f"Press Run. {summary}" in unescape(panel.views[name].frame.value)
    for name, view in panel.lab_views.items():
        if view.work_label:
            assert is_sentence(view.work_help), name
            tooltip = panel.views[name].button.tooltip  # symbols are explained at its end
            assert tooltip.startswith(view.work_help)


@pytest.mark.parametrize("system", ["fens", "fedet", "coboosting", "fusefl", "fedlpa"])
# Slow because every system is run in its lab; the first one imports what labs need.
@pytest.mark.slow
def test_one_client_is_enough(system, closing):
    quick = {"coboosting.epochs": 2} if system == "coboosting" else {}
    panel = closing(lab(system, clients=1, epochs=1, methods=[], seeds=1, **quick))
    panel.run(wait=True)
    for name in panel.lab_views:
        assert panel.show(name).sentence and panel.error == "", name
        if name != "forget":  # which needs another client
            assert not panel.show(name).waits, f"{name} waits for its button"


QUICK = {
    "coboosting": {"coboosting.epochs": 2, "coboosting.generator_steps": 2}, "fedet": {"one_shot_steps": 10},
    "fusefl": {"fusefl.passes": 2, "fusefl.virtual": 20}, "fens": {"fens.rounds": 4},
}  # fmt: skip
VIEWS_WITHOUT_CLIENTS = {"plane", "game"}  # their A and B are no clients of the run
CLIENT_NAME = re.compile(r"[Cc]lients? ([A-D])\b|^([A-D])$")


def find_client_letters(picture):
    """The letters of all clients that a picture names in its sentence, table, alternative text and drawing."""
    texts = [picture.sentence, picture.alt]
    for row in picture.table:
        texts += [str(cell) for cell in (*row, *row.values())]
    if picture.figure is not None:
        texts += [text.get_text() for text in picture.figure.findobj(Text)]
    letters = set()
    for text in texts:
        for in_words, alone in CLIENT_NAME.findall(text):
            letters.add(in_words or alone)
    return letters


@pytest.mark.slow  # every view of every lab
@pytest.mark.parametrize("system", VIEWS)
def test_a_client_keeps_its_name_in_every_view_while_another_is_absent(
    system, closing, monkeypatch
):
    monkeypatch.setattr("fedlab_nb.panels.views.SOON", 0)  # no view's work begins by itself
    settings = {"clients": 4, "absent": "1,", "epochs": 1, "methods": [], "seeds": 1}
    panel = closing(lab(system, **settings, **QUICK.get(system, {})))
    panel.run(wait=True)
    panel.views.client.value = 2
    letters_by_view = {}
    for name in panel.lab_views.keys() - VIEWS_WITHOUT_CLIENTS:
        picture = panel.show(name)
        view = panel.lab_views[name]
        menus = [menu for menu in view.controls if ("client D", 2) in getattr(menu, "options", ())]
        for menu in menus:
            menu.value = 2
            picture = panel.show(name)
        if menus and view.work_label:
            panel.work(name)
            picture = panel.show(name)
        letters = find_client_letters(picture)
        if letters:
            letters_by_view[name] = letters
    assert letters_by_view
    for name, letters in letters_by_view.items():
        assert "D" in letters and "B" not in letters, name


def test_one_run_gives_every_seed_and_its_progress():
    outcomes, steps = run_and_collect_steps(
        run_method_on_all_seeds("fedavg", SETTINGS, "plain", 1, 3)
    )
    assert sorted(outcomes) == [0, 1]
    assert all(outcome.method == "fedavg" for outcome in outcomes.values())
    parts = [part for part, _, _ in steps]
    assert parts == sorted(parts)
    assert parts[0] >= 100
    assert parts[-1] == 200
    assert {total for _, total, _ in steps} == {300}
    assert all(words.startswith("plain, ") for _, _, words in steps)


def test_tries_differ_in_their_choice_alone_and_a_failure_ends_them():
    settings = {**SETTINGS, "seeds": 1, "fens.rounds": 9}  # of another method, which does not run
    planned = plan_runs("fedavg", settings, {"two": {}, "three": {"clients": 3}})
    outcomes, _ = run_and_collect_steps(run_planned_runs(planned))
    assert outcomes["two"][0].settings.clients == 2
    assert outcomes["three"][0].settings.clients == 3
    with pytest.raises(UsageError):
        run_and_collect_steps(
            run_planned_runs(plan_runs("fedavg", settings, {"none": {"clients": 0}}))
        )
