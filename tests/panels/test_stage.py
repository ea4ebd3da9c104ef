"""The playground's stage without a browser: messages that a window sends, and the kernel's answers."""

import ast
import random
import re
import threading
import time

import numpy as np
import pytest
from fake_job import make_outcome
from stage_messages import (
    START_SETTING,
    find_last,
    open_window,
    read_owners,
    read_shards,
    request_federation,
)

from fedlab_nb.data import PartitionEdits, federate, load
from fedlab_nb.errors import UsageError
from fedlab_nb.panels import playground, stage_data
from fedlab_nb.panels.figures import draw_piles_and_results
from fedlab_nb.panels.record import MethodRun, RunRecord
from fedlab_nb.panels.stage_data import (
    collect_flights_by_method,
    describe_dataset_and_methods_for_stage,
    format_row_cells_by_column,
    make_partitions_for_alphas,
    rank_column_names_by_class_information,
)
from fedlab_nb.studies.cost import EstimatedCost

METHODS = ["fedavg", "fens"]


@pytest.fixture
def quick(monkeypatch):
    """{method: its forecast in seconds}; a test may change it."""
    seconds = {"fedavg": 0.1, "fens": 0.2}

    def forecast(arguments):
        methods, _ = arguments
        if isinstance(methods, str):
            methods = (methods,)
        return EstimatedCost(sum(seconds[method] for method in methods), 0.0, True, 0.0, 1, True)

    monkeypatch.setattr("fedlab_nb.panels.stage_panel.estimate_cost", forecast)
    return seconds


@pytest.fixture
def panel(make_panel, sent, quick):
    """A playground on a stand-in for training, which a window has opened."""
    panel = make_panel(kind=playground, seed=4)
    panel.stage_revision = 0
    open_window(panel)
    return panel


def send_train_message(panel, setting, revision, is_run):
    message = {"kind": "train", "revision": revision, "setting": setting, "isRun": is_run}
    panel._dispatch_browser_message(message)
    assert panel.wait(60)


def compute_owners(federation):
    owners = np.zeros(len(federation.dataset.y_train), dtype=np.uint16)
    for k, shard in enumerate(federation.shards):
        owners[np.asarray(shard)] = k
    return owners


def test_samples_are_sent_once_and_stay_out_of_the_saved_state(panel, sent):
    about = find_last(sent, "data")[0]["about"]
    panel._dispatch_browser_message({"kind": "samples", "digest": about["digest"]})
    content, (labels, images, test_labels, test_images) = find_last(sent, "samples")
    digits = load("digits")
    assert np.array_equal(np.frombuffer(labels, np.uint16), digits.y_train.numpy())
    assert np.array_equal(np.frombuffer(test_labels, np.uint16), digits.y_test.numpy())
    sent_images = np.frombuffer(images, np.uint8).reshape(-1, 8, 8) / 255
    assert np.abs(sent_images - digits.x_train[:, 0].numpy()).max() <= 0.5 / 255 + 1e-6
    assert len(test_images) == 64 * len(digits.y_test)
    before = len(sent)
    panel._dispatch_browser_message({"kind": "samples", "digest": "other"})
    request_federation(panel, {**START_SETTING, "alpha": 1}, 2)
    assert all(content["kind"] != "samples" for content, _ in sent[before:])
    state = panel.stage.get_state()
    state.pop("_esm")
    assert len(repr(state)) < 2000 and content["train"] == {"side": 8, "channels": 1}


def test_a_panel_sends_its_first_window_s_data_when_it_is_displayed(make_panel, sent, quick):
    """A kernel that is busy with other cells answers nobody. Once a window is open, nothing of it would be saved."""
    panel = make_panel(kind=playground, seed=4)
    assert panel.stage.opening == {}
    panel._ipython_display_()
    opening = panel.stage.opening
    assert set(opening) == {"data", "samples", "federation", "stored", "partitions"}
    labels = load("digits").y_train.numpy()
    assert np.array_equal(np.frombuffer(opening["samples"]["buffers"][0], np.uint16), labels)
    alphas = opening["partitions"]["content"]["alphas"]
    owners = np.frombuffer(opening["partitions"]["buffers"][0], np.uint16).reshape(len(alphas), -1)
    assert np.array_equal(
        owners[alphas.index(1)], compute_owners(federate("digits", alpha=1, clients=10, seed=4))
    )
    panel.controls.alpha.value = 0.5  # by the next cell, before a window is there
    opening = panel.stage.opening
    assert opening["data"]["content"]["about"]["setting"] == {**START_SETTING, "alpha": 0.5}
    expected = federate("digits", alpha=0.5, clients=10, seed=4).shards
    sent_samples = np.frombuffer(opening["federation"]["buffers"][0], np.uint32)
    assert np.array_equal(sent_samples, np.concatenate([np.sort(shard) for shard in expected]))
    panel._dispatch_browser_message({"kind": "opened"})
    panel.controls.alpha.value = 2
    assert panel.stage.opening == {}


def test_a_person_s_own_samples_are_not_saved_with_the_widget(make_panel, sent, tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"x_train": rng.random((20, 8, 8)), "y_train": np.arange(20) % 2}
    arrays |= {"x_test": rng.random((10, 8, 8)), "y_test": np.arange(10) % 2}
    np.savez(tmp_path / "mine.npz", **arrays)
    panel = make_panel(kind=playground, dataset=str(tmp_path / "mine.npz"), clients=2)
    panel._ipython_display_()
    assert panel.stage.opening == {} and not panel.error


def test_the_partition_is_that_of_federate_and_names_the_question_that_it_answers(panel, sent):
    for revision, alpha in enumerate((0.05, 0.7, 10), start=2):
        request_federation(panel, {**START_SETTING, "alpha": alpha}, revision)
        content, _ = find_last(sent, "federation")
        assert content["setting"] == {**START_SETTING, "alpha": alpha}
        assert content["question"] == f"window {revision}"
        expected = compute_owners(federate("digits", alpha=alpha, clients=10, seed=4))
        assert np.array_equal(read_owners(sent), expected)
        assert panel.controls.alpha.value == alpha


def test_a_setting_beyond_a_limit_is_answered_with_the_setting_at_the_limit(panel, sent):
    request_federation(panel, {**START_SETTING, "clients": 10_000}, 2)
    content, _ = find_last(sent, "federation")
    largest_count = panel.controls.clients.max
    assert content["setting"] == {**START_SETTING, "clients": largest_count}
    assert len(content["sizes"]) == largest_count and content["question"] == "window 2"


def test_a_window_that_opens_later_leaves_the_others_alone(panel, sent):
    panel._dispatch_browser_message({"kind": "open", "view": "second"})
    content, _ = find_last(sent, "data")
    assert content["view"] == "second"
    panel._dispatch_browser_message(
        {"kind": "samples", "view": "second", "digest": content["about"]["digest"]}
    )
    assert find_last(sent, "samples")[0]["view"] == "second"
    panel.controls.methods.chosen_method_names = ["fedavg"]  # this concerns all windows
    assert find_last(sent, "data")[0]["view"] == ""


def read_partitions(sent):
    """Read the last partitions sent ahead: {α: owners}."""
    content, (buffer,) = find_last(sent, "partitions")
    owners = np.frombuffer(buffer, np.uint16).reshape(len(content["alphas"]), -1)
    return content, dict(zip(content["alphas"], owners, strict=True))


def wait_for_partitions(sent):
    deadline = time.monotonic() + 30
    while not find_last(sent, "partitions")[0]["alphas"]:
        assert time.monotonic() < deadline, "no partitions were sent ahead"
        time.sleep(0.02)
    return read_partitions(sent)


def test_partitions_sent_ahead_for_every_alpha_are_those_of_federate(panel, sent):
    content, owners = wait_for_partitions(sent)
    assert (content["clients"], content["seed"]) == (10, 4)
    assert list(owners) == find_last(sent, "data")[0]["about"]["alphas"]
    for alpha, owners_at_alpha in owners.items():
        expected = compute_owners(federate("digits", alpha=alpha, clients=10, seed=4))
        assert np.array_equal(owners_at_alpha, expected), alpha


def test_partitions_sent_ahead_are_withdrawn_at_once_when_they_are_no_longer_true(panel, sent):
    wait_for_partitions(sent)
    before = len(sent)
    request_federation(panel, {**START_SETTING, "alpha": 1}, 2)
    assert all(content["kind"] != "partitions" for content, _ in sent[before:])
    request_federation(panel, {**START_SETTING, "clients": 5}, 3)
    withdrawn = [content for content, _ in sent[before:] if content["kind"] == "partitions"]
    assert withdrawn[0]["alphas"] == []
    content, owners = wait_for_partitions(sent)
    assert content["clients"] == 5 and owners[1].max() == 4
    panel.controls.hidden_settings["moves"] = "C*"  # a double: the stage has no gesture for it
    panel._apply_control_values()
    assert find_last(sent, "partitions")[0]["alphas"] == []


def test_an_impossible_alpha_is_left_out_and_many_samples_are_dealt_for_few_alphas(monkeypatch):
    about = {"dataset": "digits", "public": 0, "clients": 10, "seed": 4}
    alphas = [0.05, 0.2, 0.3]

    def refuse(dataset, alpha, **options):
        if alpha == 0.2:
            raise UsageError("not so")
        return federate(dataset, alpha=alpha, **options)

    monkeypatch.setattr(stage_data, "federate", refuse)
    assert make_partitions_for_alphas(about, alphas).alphas == (0.05, 0.3)
    monkeypatch.setattr(stage_data, "MOST_OWNERS", 3 * 1437 - 1)
    assert make_partitions_for_alphas(about, alphas).alphas == stage_data.PREVIEWED


def test_a_double_and_its_original_both_hold_their_samples(make_panel, sent):
    panel = make_panel(kind=playground, seed=4, moves="C*, A>")
    panel.stage_revision = 0
    panel._dispatch_browser_message({"kind": "open"})
    setting = find_last(sent, "data")[0]["about"]["setting"]
    assert setting["clients"] == 11
    request_federation(panel, setting, 1)
    expected = federate("digits", alpha=0.1, clients=10, seed=4, moves="C*, A>").shards
    sent_shards = read_shards(sent)
    assert [shard.tolist() for shard in sent_shards] == [
        np.sort(shard).tolist() for shard in expected
    ]
    assert sent_shards[2].tolist() == sent_shards[10].tolist() and len(sent_shards[0]) == 1


def test_settings_that_python_changes_are_sent_to_the_stage(panel, sent):
    panel.controls.alpha.value = 0.5
    assert find_last(sent, "setting")[0]["setting"] == {**START_SETTING, "alpha": 0.5}
    panel.controls.seed.value = 7
    assert find_last(sent, "setting")[0]["setting"]["seed"] == 7


def draw_random_throw(rng, clients, classes):
    """Draw a random move of a pile, or of a class of it, to another client."""
    giver, taker = rng.sample(range(clients), 2)
    label = rng.choice([None, *range(classes)])
    return {"from": giver, "label": label, "to": taker}


def format_move(move):
    label = "" if move["label"] is None else move["label"]
    return f"{'ABCDEFGHIJ'[move['from']]}{label}>{'ABCDEFGHIJ'[move['to']]}"


# Takes its time: fifty throws and fifty undos, each a new federation.
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fifty_throws_keep_every_sample_once_and_undo_restores_each(panel, sent, seed):
    rng = random.Random(seed)
    federation = federate("digits", alpha=0.1, clients=10, seed=4)
    labels = federation.dataset.y_train.numpy()
    moves = []
    owners_after_each = [read_owners(sent)]
    for revision in range(2, 52):
        moves = [*moves, draw_random_throw(rng, 10, 10)]
        request_federation(panel, {**START_SETTING, "moves": moves}, revision)
        owners_after_each.append(read_owners(sent))
        assert owners_after_each[-1].shape == labels.shape and owners_after_each[-1].max() < 10
    text = ", ".join(format_move(move) for move in moves)
    assert panel._state.settings["moves"] == text
    expected = np.zeros(len(labels), dtype=np.uint16)
    counted = np.zeros(len(labels), dtype=int)
    shards = [np.asarray(shard) for shard in federation.shards]
    for k, shard in enumerate(PartitionEdits.parse(text).apply_to_shards(shards, labels)):
        expected[shard] = k
        counted[shard] += 1
    assert (counted == 1).all() and np.array_equal(owners_after_each[-1], expected)
    panel_of_link = playground(link=panel.link())
    assert np.array_equal(compute_owners(panel_of_link._state.federation), owners_after_each[-1])
    panel_of_link.close()
    call = ast.parse(panel.code()).body[1].value
    arguments_of_code = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
    settings = {name: arguments_of_code[name] for name in ("alpha", "clients", "seed", "moves")}
    assert np.array_equal(compute_owners(federate("digits", **settings)), owners_after_each[-1])
    for count in reversed(range(50)):
        request_federation(panel, {**START_SETTING, "moves": moves[:count]}, 100 + count)
        assert np.array_equal(read_owners(sent), owners_after_each[count])
    assert not panel.error and "moves" not in panel._state.settings


def test_the_playground_has_no_editor_beside_the_piles(panel):
    assert panel.editor is None
    parts = panel.views["partition"].box.children
    assert not any("fl-editor" in part._dom_classes for part in parts)


def test_a_tab_of_another_setting_is_dim_at_once(panel):
    """While a slider moves tabs are not drawn, and are dim until they are."""
    send_train_message(panel, START_SETTING, 1, is_run=True)
    view = panel.views["communication"]
    assert "fl-older" not in view.box._dom_classes
    request_federation(panel, {**START_SETTING, "alpha": 0.5}, 2)
    assert "fl-older" in view.box._dom_classes
    request_federation(panel, START_SETTING, 3)
    assert "fl-older" not in view.box._dom_classes


def test_nothing_trains_before_the_first_gesture(panel, job):
    for revision, alpha in enumerate((0.2, 0.3), start=2):
        request_federation(panel, {**START_SETTING, "alpha": alpha}, revision)
    assert job.calls == [] and panel.status == "idle"


def test_letting_go_trains_one_seed_of_the_quick_methods_and_the_others_are_older(
    panel, sent, job, quick, monkeypatch
):
    send_train_message(panel, START_SETTING, 1, is_run=True)
    assert find_last(sent, "job")[0]["text"] == "Run 1 is done: 4 results."
    assert job.calls[-1][:2] == (METHODS, 2)
    results, _ = find_last(sent, "results")
    assert results["seeds"] == {"fedavg": 2, "fens": 2} and results["older"] == []
    quick["fens"] = 5.0
    send_train_message(panel, {**START_SETTING, "alpha": 1}, 2, is_run=False)
    assert job.calls[-1][:2] == (["fedavg"], 1)
    results, _ = find_last(sent, "results")
    assert results["seeds"] == {"fedavg": 1, "fens": 2} and results["older"] == ["fens"]
    assert results["setting"] == {**START_SETTING, "alpha": 1} and results["isFinal"]
    text = find_last(sent, "job")[0]["text"]
    assert re.fullmatch(r"One seed took \d+\.\d s\.", text)
    monotonic = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + 60)
    panel._dispatch_browser_message({"kind": "opened"})  # a second window, a minute later
    assert find_last(sent, "job")[0]["text"] == text
    panel.controls.epochs.value = 3  # nothing that the stage has a control for
    assert find_last(sent, "results")[0]["older"] == METHODS
    assert "fl-older" in panel.views["communication"].box._dom_classes


@pytest.mark.slow
def test_of_runs_that_follow_the_hand_the_record_keeps_the_last_one(panel, job):
    send_train_message(panel, START_SETTING, 1, is_run=True)
    for revision, alpha in enumerate((1, 2, 3), start=2):
        send_train_message(panel, {**START_SETTING, "alpha": alpha}, revision, is_run=False)
    rows = [(row.run, row.method, row.is_quick_run) for row in panel._state.runs.rows]
    assert rows == [
        (1, "fedavg", False),
        (1, "fens", False),
        (4, "fedavg", True),
        (4, "fens", True),
    ]


@pytest.mark.slow
def test_a_run_after_one_without_results_has_its_own_setting(panel, sent, job):
    send_train_message(panel, START_SETTING, 1, is_run=False)
    job.gate.clear()
    panel._dispatch_browser_message(
        {"kind": "train", "revision": 2, "setting": {**START_SETTING, "alpha": 1}}
    )
    panel._dispatch_browser_message({"kind": "stop"})
    job.gate.set()
    panel.wait()
    send_train_message(panel, {**START_SETTING, "alpha": 3}, 3, is_run=False)
    content, _ = find_last(sent, "results")
    assert content["setting"]["alpha"] == 3 and content["accuracies"]


def test_slow_methods_wait_for_run(panel, sent, job, quick):
    quick.update(fedavg=2.0, fens=2.0)
    send_train_message(panel, {**START_SETTING, "alpha": 1}, 2, is_run=False)
    assert job.calls == [] and panel.status == "idle"
    assert find_last(sent, "job")[0]["isRunning"] is False


def test_stop_ends_a_run_at_once_and_a_hand_does_not(panel, sent, job):
    job.gate.clear()
    message = {"kind": "train", "revision": 1, "setting": START_SETTING, "isRun": True}
    panel._dispatch_browser_message(message)
    content, _ = find_last(sent, "job")
    assert panel.status == "running" and content["isRunning"] and content["isRun"]
    panel._dispatch_browser_message(
        {"kind": "train", "revision": 2, "setting": {**START_SETTING, "alpha": 1}}
    )
    assert len(job.calls) == 1 and panel.status == "running"
    assert np.array_equal(read_owners(sent), compute_owners(federate("digits", alpha=1, seed=4)))
    panel._dispatch_browser_message({"kind": "stop"})
    assert panel.status == "stopped" and find_last(sent, "job")[0]["isRunning"] is False
    job.gate.set()


@pytest.mark.slow
def test_one_seed_that_a_hand_asks_for_during_a_run_follows_the_run(panel, sent, job):
    job.gate.clear()
    panel._dispatch_browser_message(
        {"kind": "train", "revision": 1, "setting": START_SETTING, "isRun": True}
    )
    panel._dispatch_browser_message(
        {"kind": "train", "revision": 2, "setting": {**START_SETTING, "alpha": 1}}
    )
    assert [seeds for _, seeds, _ in job.calls] == [2]  # the run goes on
    job.gate.set()
    assert panel.wait(60)
    assert [(seeds, settings["alpha"]) for _, seeds, settings in job.calls] == [(2, 0.1), (1, 1)]
    results, _ = find_last(sent, "results")
    assert results["setting"]["alpha"] == 1 and results["isFinal"]
    assert find_last(sent, "job")[0]["isRunning"] is False


@pytest.mark.slow
def test_after_stop_or_a_gesture_that_is_undone_nothing_is_left_to_train(panel, job):
    job.gate.clear()
    changed = {**START_SETTING, "alpha": 1}
    panel._dispatch_browser_message(
        {"kind": "train", "revision": 1, "setting": START_SETTING, "isRun": True}
    )
    panel._dispatch_browser_message({"kind": "train", "revision": 2, "setting": changed})
    panel._dispatch_browser_message({"kind": "train", "revision": 1, "setting": START_SETTING})
    job.gate.set()
    assert panel.wait(60) and len(job.calls) == 1
    job.gate.clear()
    panel._dispatch_browser_message(
        {"kind": "train", "revision": 1, "setting": START_SETTING, "isRun": True}
    )
    panel._dispatch_browser_message({"kind": "train", "revision": 2, "setting": changed})
    panel._dispatch_browser_message({"kind": "stop"})
    job.gate.set()
    assert panel.wait(60) and len(job.calls) == 2 and panel.status == "stopped"


@pytest.mark.slow
@pytest.mark.parametrize("is_run", [True, False])
def test_one_seed_is_trained_after_a_view_s_own_work(panel, job, is_run):
    """Also where the newest run was one that followed a hand."""
    send_train_message(panel, START_SETTING, 1, is_run=is_run)
    calls = len(job.calls)
    gate = threading.Event()
    ends = []

    def end(job_end, *_):
        ends.append(job_end)
        panel._status.show_job_end(job_end, None)

    with panel._guard:
        panel._status.show_job_start()
        panel._start_job(lambda: gate.wait(60), lambda _: None, end)
    changed = {**START_SETTING, "alpha": 2}
    panel._dispatch_browser_message({"kind": "train", "revision": 2, "setting": changed})
    assert len(job.calls) == calls
    gate.set()
    assert panel.wait(60) and ends == ["done"]
    assert job.calls[-1][1] == 1 and job.calls[-1][2]["alpha"] == 2


@pytest.mark.slow
def test_a_view_s_own_work_can_be_stopped_on_the_stage(panel, sent, job, monkeypatch):
    """Also after a single seed, whose job ends before anybody could press Stop."""
    send_train_message(panel, START_SETTING, 1, is_run=False)
    kind = panel.views["features"].lab_view

    def work(state):
        job.gate.wait(60)
        yield 1, 1, "a step"

    for name, value in {"is_ready": bool, "planned_runs": lambda _: {}, "work": work}.items():
        monkeypatch.setattr(kind, name, value, raising=False)
    job.gate.clear()
    panel._start_button_job("features")
    content, _ = find_last(sent, "job")
    assert content["isRunning"] and content["isRun"]
    panel._dispatch_browser_message({"kind": "stop"})
    assert find_last(sent, "job")[0]["isRunning"] is False
    job.gate.set()
    assert panel.wait(60)


@pytest.mark.slow
def test_run_pressed_while_one_seed_is_trained_follows_it(panel, job):
    job.gate.clear()
    panel._dispatch_browser_message({"kind": "train", "revision": 1, "setting": START_SETTING})
    panel._dispatch_browser_message(
        {"kind": "train", "revision": 1, "setting": START_SETTING, "isRun": True}
    )
    panel._dispatch_browser_message(
        {"kind": "train", "revision": 1, "setting": START_SETTING, "isRun": True}
    )
    job.gate.set()
    assert panel.wait(60)
    assert [seeds for _, seeds, _ in job.calls] == [1, 2]


def test_an_error_is_an_alert_on_the_stage(panel, sent, job):
    job.fails = {"fens": ValueError("no such luck")}
    send_train_message(panel, START_SETTING, 1, is_run=True)
    content, _ = find_last(sent, "job")
    assert content["isAlert"] and "no such luck" in content["text"]


def test_answers_are_the_models_predictions(make_panel, sent):
    panel = make_panel(
        kind=playground, job=None, methods=["local", "ensemble"], clients=3, epochs=1
    )
    setting = {"alpha": 0.1, "clients": 3, "seed": 0, "moves": []}
    panel._dispatch_browser_message({"kind": "open"})
    request_federation(panel, setting, 1)
    send_train_message(panel, setting, 1, is_run=False)
    results, (buffer,) = find_last(sent, "results")
    digits = load("digits")
    names = results["names"]
    assert names == ["local", "logits", "ensemble", 0, 1, 2]
    answers = np.frombuffer(buffer, np.uint16).reshape(len(names), -1)
    local, ensemble = panel.outcomes
    assert np.array_equal(answers[2], ensemble.predict(digits.x_test))
    assert results["each"] == pytest.approx(local.report.each_client)
    accuracies = (answers == digits.y_test.numpy()).mean(1)
    assert accuracies[1] == pytest.approx(results["accuracies"]["logits"])
    panel._dispatch_browser_message({"kind": "ask", "image": "5"})
    content, (shares, _) = find_last(sent, "answers")
    shares = np.frombuffer(shares, np.float32).reshape(len(names), 10)
    assert content["names"] == names and shares.sum(1) == pytest.approx(1, abs=1e-5)
    assert shares[3:].argmax(1).tolist() == answers[3:, 5].tolist()
    pixels = digits.x_test[5].flatten().tolist()
    panel._dispatch_browser_message({"kind": "ask", "image": "a" * 64, "pixels": pixels})
    _, (answers_to_drawing, _) = find_last(sent, "answers")
    assert np.frombuffer(answers_to_drawing, np.float32) == pytest.approx(
        shares.flatten(), abs=1e-5
    )


def test_a_row_of_a_table_is_written_as_in_its_file():
    heart = load("heart")
    cells = format_row_cells_by_column(heart.schema, heart.x_test[0].numpy())
    assert list(cells.items())[:4] == [
        ("age", "63"),
        ("sex", "m"),
        ("cp", "typical"),
        ("trestbps", "145"),
    ]
    assert cells["oldpeak"] == "2.3" and cells["ca"] == "0"
    digits = load("digits")
    assert format_row_cells_by_column(digits.schema, digits.x_test[0].numpy()) == {}


def test_a_missing_cell_is_left_out_and_does_not_read_as_the_mean():
    heart = load("heart")
    row = heart.x_test[0].numpy().copy()
    row[0] = 0  # the age
    row[1:3] = 0  # the sex
    cells = format_row_cells_by_column(heart.schema, row)
    assert "age" not in cells and "sex" not in cells and cells["cp"] == "typical"


def test_the_column_that_tells_most_about_the_class_comes_first():
    heart = load("heart")
    labels = np.array([0, 0, 1, 1])
    x = np.zeros((4, 25), np.float32)
    x[:, 0] = [0, 1, 0, 1]  # age: nothing
    x[:, 1], x[:, 2] = [1, 1, 0, 0], [0, 0, 1, 1]  # sex: everything
    x[:, 7] = [0, 1, 1, 2]  # trestbps: half of its variance lies between the classes
    assert rank_column_names_by_class_information(heart.schema, x, labels) == [
        "sex",
        "trestbps",
        "age",
    ]
    assert rank_column_names_by_class_information(load("digits").schema, x, labels) == []


def list_children(widget):
    return getattr(widget, "children", ())


def test_a_missing_file_leaves_the_fields_and_a_sentence(tmp_path):
    panel = playground(dataset=str(tmp_path / "nope.csv"))
    panel.wait()
    assert panel.stage.layout.display == "none"
    assert panel._settings_box.layout.display is None
    (trouble,) = [box for box in panel.children if panel.controls.error in list_children(box)]
    assert trouble.layout.display is None and "does not exist" in panel.controls.error.value
    panel.controls.dataset.value = "digits"
    panel.wait()
    assert panel.stage.layout.display is None and trouble.layout.display == "none"


def test_a_recording_is_shown_before_anybody_is_trained(make_panel, sent):
    panel = make_panel(kind=playground, job=None, dataset="watch", methods=["local"], epochs=1)
    panel._dispatch_browser_message({"kind": "open"})
    panel._dispatch_browser_message({"kind": "ask", "image": "1", "pixels": []})
    content, buffers = find_last(sent, "answers")
    recording = load("watch").x_test[1].numpy()
    assert content["channels"] == len(recording) and content["names"] == []
    assert np.array_equal(np.frombuffer(buffers[1], np.float32).reshape(recording.shape), recording)


def test_a_row_is_shown_before_anybody_is_trained(make_panel, sent):
    heart = load("heart")
    panel = make_panel(kind=playground, dataset="heart", seed=4)
    panel._dispatch_browser_message({"kind": "ask", "image": "1", "pixels": []})
    content, _ = find_last(sent, "answers")
    assert content["names"] == [] and content["setting"] is None
    cells = format_row_cells_by_column(heart.schema, heart.x_test[1].numpy())
    assert dict(content["row"]) == cells
    ranking = rank_column_names_by_class_information(
        heart.schema, heart.x_train.numpy(), heart.y_train.numpy()
    )
    assert [name for name, _ in content["row"]] == [name for name in ranking if name in cells]
    sent.clear()
    panel._dispatch_browser_message({"kind": "ask", "image": "99999", "pixels": []})
    assert sent == []


def test_a_file_s_own_description_is_shown_on_the_stage(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"x_train": rng.random((20, 8, 8)), "y_train": np.arange(20) % 2}
    arrays |= {"x_test": rng.random((10, 8, 8)), "y_test": np.arange(10) % 2}
    np.savez(
        tmp_path / "class.npz", client_train=np.arange(20) // 10, about="These are you.", **arrays
    )
    federation = federate(tmp_path / "class.npz")
    assert describe_dataset_and_methods_for_stage(federation, METHODS)["about"] == "These are you."
    assert (
        describe_dataset_and_methods_for_stage(federate("digits", clients=2), METHODS)["about"]
        == ""
    )


def test_flights_are_those_of_the_setting_s_own_seed(job):
    """Each method flies its newest run, if that run has this setting and this seed."""
    state = {"dataset": "digits", "alpha": 0.1, "clients": 3, "seed": 4}

    def make_row(run, method, seeds, **changes):
        settings = {**state, **changes}
        outcomes = {seed: make_outcome(method, seed, settings) for seed in seeds}
        return MethodRun(run, method, settings=settings, epochs=1, outcomes=outcomes)

    first = make_row(1, "fedavg", [4])
    newest = make_row(3, "fedavg", [4, 5])
    # So that the bytes of one seed differ from those of the other.
    newest.outcomes[4].ledger.add(0, "up", "local models", 500)
    rows = [
        first,
        make_row(2, "fens", [4], alpha=0.5),  # another setting
        newest,
        make_row(3, "ensemble", [5]),  # not this seed
        make_row(3, "gauss", []),  # no result
    ]
    names = ["fedavg", "fens", "ensemble", "gauss", "afl"]
    flights = collect_flights_by_method(RunRecord(tuple(rows), 3), names, state)
    assert list(flights) == ["fedavg"]
    legs = {leg["phase"]: leg for leg in flights["fedavg"]["legs"]}
    sent = 1000 + len("fedavg")
    assert legs["local models"]["bytes"] == [sent + 500, sent, sent]
    assert collect_flights_by_method(
        RunRecord(tuple(rows), 3), names, {**state, "alpha": 0.5}
    ).keys() == {"fens"}
    other_knob = make_row(4, "fedavg", [4], **{"fens.rounds": 9})  # of another method: the same run
    flights = collect_flights_by_method(RunRecord((*rows, other_knob), 4), ["fedavg"], state)
    assert flights["fedavg"]["legs"][1]["bytes"] == [sent] * 3
    assert collect_flights_by_method(RunRecord(), names, state) == {}


def test_the_still_has_the_samples_of_a_known_data_set_and_none_of_a_persons_own(
    make_panel, sent, quick, tmp_path, monkeypatch
):
    """A still is saved in the notebook."""
    image_arrays = []

    def draw(state, images, scores):
        image_arrays.append(images)
        return draw_piles_and_results(state, images, scores)

    monkeypatch.setattr("fedlab_nb.panels.stage_panel.draw_piles_and_results", draw)
    digits = load("digits")
    x = np.concatenate([digits.x_train.numpy(), digits.x_test.numpy()])
    y = np.concatenate([digits.y_train.numpy(), digits.y_test.numpy()])
    path = tmp_path / "mine.npz"
    np.savez(path, x=x, y=y)
    make_panel(kind=playground, seed=4).still()
    make_panel(kind=playground, seed=4, dataset=str(path)).still()
    known_images, own_images = image_arrays
    assert known_images.shape == (len(digits.y_train), 8, 8, 1)
    assert own_images is None


def test_the_still_has_scores_of_the_present_setting_alone(make_panel, sent, quick):
    panel = make_panel(
        kind=playground, job=None, seed=4, clients=3, methods=["local"], seeds=1, epochs=1
    )
    assert panel._list_client_accuracies_or_empty() == []
    panel.run(wait=True, timeout=100)
    assert len(panel._list_client_accuracies_or_empty()) == 3
    assert "Accuracy, seed 4" in panel.still().sentence
    panel.controls.alpha.value = 1.0
    assert panel._list_client_accuracies_or_empty() == []
