"""The playground without a kernel: its views, sliders, runs, pinned rows and exports."""

import base64
import csv
import gc
import json
import runpy
import threading
import time
import weakref

import pytest

from fedlab_nb.data import load
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.panels import figures, playground, runs_panel, saved, theme
from fedlab_nb.plots.words import format_data_size

PNG, SVG = b"\x89PNG\r\n\x1a\n", "<svg"
VIEWS = ("partition", "accuracy", "communication", "features", "classes")


def read_view(panel, view):
    """Read (SVG, alternative text, sentence) of a view as the page shows them."""
    frame = panel.views[view].frame
    return frame.value, frame.alt, panel.views[view].sentence.value


def test_first_view_is_complete_before_anything_is_trained(make_panel, job):
    panel = make_panel()
    data, alt, sentence = read_view(panel, "partition")
    assert data.startswith(SVG) and "α = 0.1, 10 clients, seed 0" in alt and "digits" in sentence
    assert "26.3 kB" in panel.controls.facts.value  # 6570 numbers of 4 bytes
    assert all(cls.info.title in panel.runs_panel.methods.value for cls in METHODS.values())
    assert panel.status == "idle" and "fl-status-idle" in panel._dom_classes and job.calls == []
    assert "Stored: α = 0.1, 10 clients" in alt or "stored: α = 0.1, 10 clients" in alt
    panel.views.select_view("accuracy")
    data, alt, sentence = read_view(panel, "accuracy")
    assert data.startswith(SVG) and "Stored results of" in alt and "Stored results of" in sentence
    assert "Press Run to get your own" in panel.views["accuracy"].caption.value
    for view in VIEWS[2:]:
        panel.views.select_view(view)
        assert "press Run" in panel.views[view].frame.value
    assert not panel.error and not panel.controls.error.value


def test_a_view_without_results_names_no_setting_that_is_hidden(make_panel):
    panel = make_panel(hide=["stored", "alpha", "clients"])
    for view in VIEWS[1:]:
        panel.views.select_view(view)
        text = panel.views[view].frame.value
        assert "press Run" in text
        assert "α" not in text
        assert "number of clients" not in text


@pytest.mark.slow
@pytest.mark.parametrize("model", ["auto", "cnn,mlp,mlp:16"])
def test_the_bytes_that_are_shown_before_a_run_are_those_of_its_ledger(make_panel, model):
    panel = make_panel(job=None, methods=["ensemble"], clients=4, seeds=1, epochs=1, model=model)
    panel.run(wait=True, timeout=300)
    (outcome,) = panel.outcomes
    assert f"all 4 clients {format_data_size(outcome.bytes_up)}." in panel.controls.facts.value


@pytest.mark.slow
def test_the_picture_follows_every_slider_and_keeps_its_height(make_panel):
    panel = make_panel(hide=["stored"])
    pictures = set()
    height = panel.views["partition"].frame.layout.height
    for alpha, clients in ((0.01, 10), (100, 1), (0.01, 1), (100, 50)):
        panel.controls.alpha.value, panel.controls.clients.value = alpha, clients
        data, alt, _ = read_view(panel, "partition")
        assert data.startswith(SVG) and f"α = {alpha:g}, {clients} client" in alt
        pictures.add(data)
    assert len(pictures) == 3  # with one client α makes no difference
    assert panel.views["partition"].frame.layout.height == height
    before = read_view(panel, "partition")[0]
    panel.controls.seed.value = 7
    assert read_view(panel, "partition")[0] != before and not panel.error


# Takes its time: a whole run, and matplotlib draws every view.
def test_a_run_fills_every_view_and_the_table(make_panel):
    panel = make_panel()
    panel.controls.run.click()
    assert panel.wait(60)
    assert panel.status == "done" and "fl-status-done" in panel._dom_classes
    assert "fl-status-idle" not in panel._dom_classes
    assert panel.views.visible_view_name == "accuracy" and panel.runs_panel.tabs.value == "runs"
    expected = [("fedavg", 0), ("fedavg", 1), ("fens", 0), ("fens", 1)]
    assert [(o.method, o.settings.seed) for o in panel.outcomes] == expected
    panel.views.client.value = 3
    for view in VIEWS:
        panel.show(view)
        data, alt, sentence = read_view(panel, view)
        assert data.startswith(SVG) and "α = 0.1" in alt and len(sentence) > 40, view
        assert view == "accuracy" or "lient D" in sentence, view
        panel.views.tables.value = True
        assert panel.views.table.value.startswith("<table>"), view
    assert panel.runs_panel.runs.children[1].children[1].value.count("<span") >= 6
    assert "4 results" in panel.controls.phase.value and panel.controls.progress.value == 1
    assert not panel.error and panel.controls.stop.disabled and not panel.controls.run.disabled
    panel.controls.clients.value = 2  # client 3 is gone
    assert panel.views.display_options["client"] is None and not panel.error


@pytest.mark.slow
def test_models_of_earlier_runs_do_not_stay_in_memory(make_panel):
    panel = make_panel(job=None, methods=["fedavg", "ensemble"], seeds=1, clients=3, epochs=1)
    panel.run(wait=True)
    models = [weakref.ref(outcome.model) for outcome in panel.outcomes]
    before = panel.outcomes[0].accuracy
    panel.controls.alpha.value = 1.0
    panel.run(wait=True)
    gc.collect()
    first, _, second, _ = panel.outcomes
    assert [model() for model in models] == [None, None]
    assert first.accuracy == before != second.accuracy
    x, y = load("digits").x_test, load("digits").y_test.numpy()
    assert (first.predict(x) == y).mean() == pytest.approx(before)  # from the remembered clients


@pytest.mark.slow
def test_features_show_pca_first_and_tsne_when_it_is_ready(make_panel):
    panel = make_panel()
    panel.run(wait=True)
    with panel._guard:  # the worker cannot finish the map before the preview is looked at
        panel.views.select_view("features")
        assert "PCA maps" in read_view(panel, "features")[1]
    panel.wait(60)
    assert "PCA" not in read_view(panel, "features")[1] and "fl-mapping" not in panel._dom_classes


@pytest.mark.slow
def test_while_a_map_is_made_the_other_views_are_drawn(make_panel, monkeypatch):
    """A tab opened then shows its picture at once. After a change it is drawn again; an error is shown later."""
    gate = threading.Event()

    def compute_slowly(features):
        while not gate.is_set():
            yield time.sleep(0.01)
        return features[:, :2]

    def wait_until(condition):
        end = time.monotonic() + 20
        while not condition() and time.monotonic() < end:
            time.sleep(0.01)
        assert condition()

    monkeypatch.setattr(figures, "compute_tsne_in_subprocess", compute_slowly)
    panel = make_panel()
    for view in panel.views.views.values():
        view.frame.size = [700, 420]
    panel.run(wait=True)
    monkeypatch.setattr(panel.views["classes"].lab_view, "draw", lambda state: 1 / 0)
    panel.views.select_view("features")
    wait_until(lambda: panel.views["communication"].frame.value.startswith("<svg"))
    first_picture = panel.views["communication"].picture
    assert "communication" not in panel.views.dirty
    assert panel.views.visible_view_name == "features"
    assert not panel.error
    panel.views.select_view("communication")
    assert panel.views["communication"].picture is first_picture
    assert "fl-mapping" in panel._dom_classes
    panel.views.client.value = 1
    assert panel.views["communication"].picture is not first_picture
    panel.views.select_view("classes")
    assert "ZeroDivisionError" in panel.error
    gate.set()
    assert panel.wait(20)


# Slow because pictures of eight maps are drawn.
@pytest.mark.slow
def test_maps_of_more_methods_than_one_picture_holds_are_chosen(make_panel):
    """Eight maps fit into a picture. A menu leads to the others, and is hidden where there are none."""
    names = [
        "fedavg",
        "ensemble",
        "fens",
        "fedlpa",
        "fusefl",
        "fedet",
        "dense",
        "feddf",
        "local",
        "centralized",
    ]
    panel = make_panel(methods=names, seeds=1)
    panel.run(wait=True)
    menu = panel.views["features"].lab_view.maps

    def list_titles(picture):
        return [ax.get_title(loc="left") for ax in picture.figure.axes]

    first = list_titles(panel.show("features"))
    assert [text for text, _ in menu.options] == ["1 to 8 of 10", "9 to 10 of 10"]
    assert menu.layout.display is None
    second = list_titles(panel.set("features", maps=8))
    assert "FENS" in first
    assert "FENS" not in second
    assert "Centralized" in second
    assert "Centralized" not in first
    panel.controls.methods.chosen_method_names = ["fedavg", "fens"]
    panel.run(wait=True)
    assert "FENS" in list_titles(panel.show("features"))
    assert menu.value == 0
    assert menu.layout.display == "none"


@pytest.mark.slow
def test_pinned_rows_stay_beside_new_runs(make_panel):
    panel = make_panel()
    panel.run(wait=True)
    panel.runs_panel.runs.children[2].children[0].value = True  # FENS of run 1
    panel.controls.alpha.value = 1
    assert "press Run" in panel.views["accuracy"].caption.value
    panel.run(wait=True)
    assert "FENS (run 1, α = 0.1)" in read_view(panel, "accuracy")[1]
    assert "run_1 = fl.compare(['fens'], dataset='digits', alpha=0.1" in panel.code()
    panel.runs_panel.clear.click()
    assert [row.method for row in panel.state("accuracy").runs.rows] == ["fens"]
    panel.run(wait=True)
    assert [row.run for row in panel.state("accuracy").runs.shown_rows] == [3, 3, 1]
    assert not panel.error


# Slow because nine runs of a panel are drawn.
@pytest.mark.slow
def test_of_many_runs_the_last_rows_and_pinned_ones_stay_listed(make_panel):
    panel = make_panel()
    for run in range(1, 10):
        panel.run(wait=True)
        if run == 1:
            panel.runs_panel.runs.children[2].children[0].value = True
    listed = panel.runs_panel.runs
    more_button = panel.runs_panel.more
    several = len(panel.methods)
    rows_before = listed.children
    # The heading, the last rows, and the pinned row of the first run.
    assert len(rows_before) == 1 + runs_panel.MAX_ROWS + 1 and rows_before[-1].children[0].value
    assert more_button.description == f"Show all {9 * several} rows"
    more_button.click()
    assert len(listed.children) == 1 + 9 * several and listed.children[1] is rows_before[1]
    more_button.click()
    assert listed.children == rows_before and not panel.error
    panel.runs_panel.clear.click()
    assert len(listed.children) == 2 and more_button.layout.display == "none"


@pytest.mark.slow
def test_code_is_python_that_does_what_run_does(make_panel, job):
    panel = make_panel(alpha=0.5, epochs=7, partition="dirichlet")
    panel.run(wait=True)
    call = {}
    source = panel.code().replace("import fedlab_nb as fl", "").replace("outs.table()", "")
    fake = type(
        "fl",
        (),
        {"compare": staticmethod(lambda methods, **kw: call.update(methods=methods, **kw))},
    )
    exec(source, {"fl": fake})
    methods, seeds, settings = job.calls[-1]
    assert call == {"methods": methods, "seeds": seeds, **settings} and settings["epochs"] == 7


# Slow because every view is drawn as a file.
@pytest.mark.slow
def test_export_writes_csv_json_and_pictures_and_overwrites_nothing(make_panel, tmp_path):
    panel = make_panel()
    panel.run(wait=True)
    panel.runs_panel.folder.value = str(tmp_path / "mine")
    panel.runs_panel.export.click()
    assert "runs.csv" in panel.runs_panel.written.value and not panel.error
    with open(tmp_path / "mine/runs.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows] == ["fedavg", "fedavg", "fens", "fens"]
    record = json.loads((tmp_path / "mine/runs.json").read_text(encoding="utf-8"))
    assert float(rows[0]["accuracy"]) == record[0]["accuracy"]
    assert record[0]["ledger"]["clients"] == 10
    for name in (*VIEWS, "handout"):
        assert (tmp_path / f"mine/{name}.png").read_bytes().startswith(PNG)
        assert b"<svg" in (tmp_path / f"mine/{name}.svg").read_bytes()[:600]
    assert panel.export(tmp_path / "mine") == tmp_path / "mine-2"
    (tmp_path / "file").write_text("here already")
    panel.runs_panel.folder.value = str(tmp_path / "file" / "below")
    panel.runs_panel.export.click()
    assert "choose another folder" in panel.controls.error.value


# Slow because the panel's runs are real ones, and are all computed twice more.
@pytest.mark.slow
def test_the_exported_script_computes_every_run_again(make_panel, tmp_path, capsys):
    panel = make_panel(job=None, methods=["local", "fedavg"], clients=3, seeds=2, epochs=1)
    panel.run(wait=True, timeout=300)
    panel.controls.alpha.value, panel.controls.seeds.value = 1, 1
    panel.run(wait=True, timeout=300)
    folder = panel.export(tmp_path / "mine")
    assert (folder / "reproduce.py").read_text(encoding="utf-8").count("fl.compare(") == 3
    runpy.run_path(str(folder / "reproduce.py"))
    head, *lines, end = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        *(["1", method, seed] for seed in "01" for method in ("local", "fedavg")),
        *(["2", method, "0"] for method in ("local", "fedavg")),
    ]
    assert all(line.split()[3] == line.split()[5] for line in lines), lines
    assert end.startswith("All 6 results")
    rows = (folder / "runs.csv").read_text(encoding="utf-8")
    accuracy = next(csv.DictReader(rows.splitlines()))["accuracy"]
    (folder / "runs.csv").write_text(rows.replace(f",{accuracy},", ",0.123,", 1), encoding="utf-8")
    runpy.run_path(str(folder / "reproduce.py"))
    assert "1 of 6 results differ" in capsys.readouterr().out


@pytest.mark.slow
def test_saved_outputs_can_be_read_without_a_kernel(make_panel, monkeypatch):
    panel = make_panel()
    panel.run(wait=True)
    data, metadata = panel._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(PNG)
    assert "α = 0.1" in metadata["image/png"]["alt"]
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == panel.model_id
    assert "FENS" in data["text/plain"]
    assert "\n" not in data["text/plain"]
    assert "0x" not in data["text/plain"]
    assert repr(panel) == data["text/plain"]
    outputs = []
    monkeypatch.setattr(saved, "display", lambda data, **_: outputs.append(data))
    panel._ipython_display_()
    assert [sorted(output) for output in outputs] == [
        ["application/vnd.jupyter.widget-view+json", "text/plain"],
        ["image/png", "text/html", "text/plain"],
        ["text/html", "text/plain"],
    ]
    assert all(output["text/plain"] for output in outputs)


@pytest.mark.parametrize(("name", "value", "says"), [
    ("alpha", 0, "alpha"), ("clients", 101, "clients"), ("methods", ["fenz"], "fens"), ("dataset", "digit", "digits"),
    ("device", "tpu", "device"), ("hide", ["lamp"], "control"),
])  # fmt: skip
def test_wrong_starting_values_are_refused(name, value, says):
    with pytest.raises(UsageError, match=says):
        playground(**{name: value})


@pytest.mark.slow
def test_running_a_cell_again_stops_the_worker_of_its_last_panel(make_panel, job, monkeypatch):
    executions = iter([("cell-1", 1), ("cell-1", 1), ("cell-2", 2), ("cell-1", 3)])
    monkeypatch.setattr(saved, "find_running_cell", lambda: next(executions))
    job.gate.clear()
    first = make_panel()
    second = make_panel()
    other = make_panel()
    for panel in (first, second, other):
        panel.run()
    make_panel()  # cell-1 again
    job.gate.set()
    for panel in (first, second, other):
        assert panel.wait(60)
    assert [first.status, second.status, other.status] == ["stopped", "stopped", "done"]


def test_closing_a_panel_closes_all_that_it_is_made_of(make_panel):
    panel = make_panel()
    parts = theme.list_nested_widgets([panel])
    assert len(parts) > 100
    panel.close()
    assert all(part.comm is None for part in parts)
