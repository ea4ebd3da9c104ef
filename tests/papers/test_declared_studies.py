"""Declared studies: which rows hold, how they are made again, how figures are written, and that every text agrees."""

import dataclasses
import re

import pytest

from fedlab_nb.data import describe
from fedlab_nb.errors import FedlabError
from fedlab_nb.methods import METHODS
from fedlab_nb.papers.declared import figures
from fedlab_nb.papers.declared.figures import (
    ROOT,
    FigureStudy,
    describe_wrong_texts_and_claims,
    load_all_declared_studies,
    make_corrected_texts_by_changed_file,
)
from fedlab_nb.papers.points import (
    MethodSettingPoint,
    compute_point_rows,
    list_cells_grouped_by_trained_clients,
    write_stored_rows_file,
)
from fedlab_nb.studies import experiment
from fedlab_nb.studies.settings import Settings
from fedlab_nb.studies.stored_figures import format_figure_values
from fedlab_nb.studies.stored_results import load
from fedlab_nb.studies.stored_rows import make_json_key_of_row, read_stored_rows

STUDIES = load_all_declared_studies()
QUOTING = {name: study for name, study in STUDIES.items() if isinstance(study, FigureStudy)}
ACCURACY = {"a": [0.5, 0.6, 0.7], "b": [0.4, 0.52, 0.58], "c": [0.9, 0.3, 0.7]}


def make_row(method, at, accuracy, **columns):
    seeds = list(range(len(accuracy)))
    row = {"runs": "runs", "method": method, "at": at, "seeds": seeds, "made": {}}
    return row | {"accuracy": accuracy, **columns}


@pytest.fixture
def study(tmp_path):
    """A study with three methods, "a", "b" and "c", whose accuracies are ACCURACY."""
    figures = {
        "a": "runs/a",
        "b": "runs/b",
        "c": "runs/c",
        "gain": "a - b",
        "up": "runs/a:bytes_up",
        "more": "runs/a:bytes_up + up / 10",
    }
    claims = {
        "clear": "a > b",
        "noise": "a ~ c",
        "wrong": "b > a",
        "low": "gain > 0.2",
        "not_clear": "c > a",
    }
    rows = [make_row(name, {}, values, bytes_up=[2e6] * 3) for name, values in ACCURACY.items()]
    file = tmp_path / "x.json"
    write_stored_rows_file(file, {}, rows)
    quotes = {"a.py": ["a {a:mean} %, b {b:mean} %"]}
    return FigureStudy("fedlpa", file, figures=figures, claims=claims, quotes=quotes)


def test_figures_are_computed_by_seed(study):
    rows = study.load_stored_rows()
    assert study.compute_figure_values_by_seed("a", rows) == dict(enumerate(ACCURACY["a"]))
    gains = study.compute_figure_values_by_seed("gain", rows)
    assert gains == pytest.approx({0: 0.1, 1: 0.08, 2: 0.12})
    assert study.compute_figure_values_by_seed("gain / a", rows)[0] == pytest.approx(0.2)
    # axes name one run among several
    rows += [make_row("m", {"alpha": alpha, "m.k": 2}, [alpha]) for alpha in (0.1, 10)]
    assert study.compute_figure_values_by_seed("runs/m[alpha=10, k=2]", rows) == {0: 10}
    for unknown in ("d", "runs/d", "other/a", "runs/m"):
        with pytest.raises(ValueError):
            study.compute_figure_values_by_seed(unknown, rows)


@pytest.mark.parametrize(
    "figure, text",
    [("gain", "10 ± 5"), ("gain:fine", "10.0 ± 5.0"), ("gain:mean", "10"), ("a:each", "50 60 70"),
     ("gain:verdict", "clear"), ("a@0-1:each", "50 60"), ("up@0-1:counts", "2000000 2000000"),
     ("gain:above", "3"), ("up:bytes", "2 MB"), ("more:bytes", "2.2 MB"), ("a@1:mean", "60"), ("b:high", "58")],
)  # fmt: skip
def test_how_a_figure_is_written(study, figure, text):
    assert study.format_figure_values(figure, study.load_stored_rows()) == text


def test_negative_values_have_a_true_minus_and_an_unknown_form_is_refused():
    values = {0: -0.2, 1: -0.001, 2: 0.1}
    assert format_figure_values({0: -0.2}, "mean") == "−20"
    assert format_figure_values({0: -0.001}, "mean") == "0"
    assert format_figure_values({0: 0.1}, "mean") == "10"
    assert format_figure_values(values, "each") == "−20 0 10"
    assert format_figure_values({0: -0.02, 1: -0.021, 2: -0.019}, "effect") == "costs 2 ± 0 points"
    assert format_figure_values({0: 0.2, 1: 0.21, 2: 0.22}, "effect") == "adds 21 ± 2 points"
    assert format_figure_values(values, "effect") == "makes no clear difference (−3 ± 38 points)"
    with pytest.raises(ValueError, match="no form"):
        format_figure_values({0: 1.0}, "pretty")


def test_a_claim_is_judged_by_paired_differences(study):
    rows = study.load_stored_rows()
    holds = {}
    for claim in study.claims:
        holds[claim], *_ = study.judge_claim(claim, rows)
    assert holds == {"clear": True, "noise": True, "wrong": False, "low": False, "not_clear": None}


def test_texts_are_rewritten_and_what_disagrees_is_named(study, tmp_path):
    def list_complaints(words):
        lines = describe_wrong_texts_and_claims(tmp_path, {"fedlpa": study})
        return [line for line in lines if words in line]

    page = tmp_path / "page.md"
    page.write_text(
        "It has <!--n fedlpa.a-->1 ± 1<!--/n--> %. <!--c fedlpa.clear-->"
        " <!--n all_together.a-->9<!--/n-->\n"
    )
    module = tmp_path / "a.py"
    module.write_text("# a 1 %,\n# b 2 %\n")
    with pytest.raises(ValueError, match="no place"):
        make_corrected_texts_by_changed_file(tmp_path, {"fedlpa": study})
    module.write_text('"""So a 1 %,\n    b 2 %."""\n')
    assert len(list_complaints("differs")) == 2
    for path, text in make_corrected_texts_by_changed_file(tmp_path, {"fedlpa": study}).items():
        path.write_text(text)
    assert "It has <!--n fedlpa.a-->60 ± 25<!--/n--> %." in page.read_text()
    assert "<!--n all_together.a-->9<!--/n-->" in page.read_text()  # another study's
    assert module.read_text() == '"""So a 60 %,\n    b 50 %."""\n'
    assert not list_complaints("differs")
    assert len(list_complaints("wrong")) == 2  # it does not hold, and no text says it
    assert not [line for line in list_complaints("clear (") if "not_" not in line]


@pytest.mark.parametrize(
    ("method", "gaps", "is_near"),
    [
        ("dense", [0.02, 0.03, 0.04], True),  # 3.0 ± 2.5 points: half a point to zero
        ("fedavg", [0.02, 0.03, 0.04], False),  # without a search for images that is enough
        ("dense", [0.05, 0.06, 0.07], False),  # 6.0 ± 2.5
        ("fedavg", [0.0154, 0.0254, 0.0354], True),  # 2.54 ± 2.48: a twentieth of a point
    ],
)
def test_a_claim_at_the_edge_says_so(method, gaps, is_near, tmp_path):
    """By Student's t: half the band of three values is 2.484 standard deviations, which are a point here."""
    rows = [make_row(method, {}, [0.5 + gap for gap in gaps]), make_row("local", {}, [0.5] * 3)]
    file = tmp_path / "x.json"
    write_stored_rows_file(file, {}, rows)
    figures = {"high": f"runs/{method}", "low": "runs/local", "gain": "high - low"}
    study = FigureStudy("fedlpa", file, figures=figures, claims={"ahead": "gain > 0"})
    assert study.find_method_names_read_by_expression("gain") == {method, "local"}
    page = tmp_path / "page.md"
    page.write_text("It is ahead. <!--c fedlpa.ahead-->\n")
    is_right_without = describe_wrong_texts_and_claims(tmp_path, {"fedlpa": study}) == []
    page.write_text("It is ahead. <!--c fedlpa.ahead--> (at the edge: perhaps)\n")
    is_right_with = describe_wrong_texts_and_claims(tmp_path, {"fedlpa": study}) == []
    assert is_right_with is is_near
    assert is_right_without is not is_near


def test_runs_that_take_long_are_made_on_demand_and_then_stay(tmp_path):
    """`later`: runs that are made only on demand, and kept true once their rows are stored."""
    runs = {"short": {"methods": ["afl"], "alpha": 1.0, "seeds": [0]}}
    later = {"long": {"methods": ["gauss"], "alpha": 1.0, "seeds": [0], "core_minutes": 40}}
    study = FigureStudy("x", tmp_path / "x.json", runs=runs, later=later)

    def list_runs(study):
        return [(point.runs, point.method) for point in study.list_points(study.load_stored_rows())]

    assert list_runs(study) == [("short", "afl")]
    assert list_runs(study.make_study_with_later_runs()) == [("short", "afl"), ("long", "gauss")]
    (_, long) = study.make_study_with_later_runs().list_points()
    row = {
        "runs": "long",
        "method": "gauss",
        "at": dict(long.at),
        "seeds": [0],
        "made": {},
        "data": long.digest_of_datasets,
        **dict.fromkeys(long.columns, [0.5]),
    }
    write_stored_rows_file(study.path, {}, [row])
    assert list_runs(study) == [("short", "afl"), ("long", "gauss")]
    assert study.describe_methods_with_missing_or_stale_rows() == [
        "x/short/afl: rows are missing or have other settings; run python -m fedlab_nb.papers.declared x"
    ]
    write_stored_rows_file(study.path, {}, [{**row, "made": {"gauss.head": "none"}}])
    assert any(
        line.startswith("x/long/gauss: ")
        for line in study.describe_methods_with_missing_or_stale_rows()
    )


# ------------------------------------------------------------------------------------------------ what is stored
@pytest.fixture(autouse=True)
def methods_with_results(monkeypatch):
    """A new method without stored results must not make these tests fail: `test_complete` asks for its results."""
    for name in METHODS.keys() - set(load("digits").methods):
        monkeypatch.delitem(METHODS, name)


@pytest.fixture(scope="module", params=["fedlpa", "stored-glyphs16g", "tuning-digits", "tables"])
def family(request):
    """A study of each kind, and its stored rows."""
    return STUDIES[request.param], STUDIES[request.param].load_stored_rows()


# Takes its time: a large study has hundreds of rows, and each row's setting is made again.
@pytest.mark.parametrize("name", STUDIES)
def test_stored_rows_hold(name):
    assert STUDIES[name].describe_methods_with_missing_or_stale_rows() == []


def test_a_row_of_other_data_does_not_hold():
    """Also where other data are Fed-ET's public images. A row that does not name its data counts as of the same."""
    settings = {"dataset": "digits", "fedet.public": "glyphs", "alpha": 0.1}
    point = MethodSettingPoint("r", "fedet", {}, Settings.make(**settings), [0])
    digits = describe("digits").digest
    letters = describe("glyphs").digest
    assert point.digest_of_datasets == f"{digits}+{letters}"
    row = {"seeds": [0], "made": point.current_option_values, "data": point.digest_of_datasets}
    assert point.is_current_row(row)
    assert point.is_current_row({**row, "on": "elsewhere"})
    assert not point.is_current_row({**row, "data": digits})
    assert not point.is_current_row({**row, "data": "glyphs 1"})
    del row["data"]
    assert point.is_current_row(row)


@pytest.mark.slow
def test_every_text_says_what_its_study_does():
    assert describe_wrong_texts_and_claims(ROOT, QUOTING) == []


def test_every_figure_of_a_text_has_a_study_and_no_line_begins_with_one():
    """Markdown takes a line that begins with a comment for HTML."""
    for path in figures.list_markdown_files_that_may_cite_figures(ROOT):
        text = path.read_text()
        assert {m["study"] for m in figures.FIGURE.finditer(text)} <= set(QUOTING), path.name
        assert not re.search(r"^\s*(?:[-*>]\s+|\d+\.\s+)?<!--[nc] ", text, re.MULTILINE), path.name


def change_fedlpa_field(monkeypatch, name, default, metadata):
    """Give FedLPA another field, or another default of one that it has."""
    fedlpa = METHODS["fedlpa"]
    field = (name, float, dataclasses.field(default=default, metadata=metadata))
    changed = dataclasses.make_dataclass(fedlpa.__name__, [field], bases=(fedlpa,), frozen=True)
    changed.__module__ = fedlpa.__module__
    monkeypatch.setitem(METHODS, "fedlpa", changed)


@pytest.mark.slow
def test_a_new_option_with_a_default_makes_no_row_stale(family, monkeypatch):
    """FedLPA gets a knob that no stored row knows."""
    study, rows = family
    change_fedlpa_field(monkeypatch, "brand_new", 0.5, {"label": "new"})
    assert any(row["method"] == "fedlpa" for row in rows)
    assert study.list_missing_and_stale_points(rows) == []


def test_another_default_makes_the_rows_stale_that_were_made_with_the_old_one(monkeypatch):
    study = STUDIES["fedlpa"]
    rows = study.load_stored_rows()
    (damping,) = (f for f in dataclasses.fields(METHODS["fedlpa"]) if f.name == "damping")
    change_fedlpa_field(monkeypatch, "damping", 0.5, damping.metadata)
    stale = {point.key for point in study.list_missing_and_stale_points(rows)}
    rows_of_fedlpa = [row for row in rows if row["method"] == "fedlpa"]
    with_default = [row for row in rows_of_fedlpa if "fedlpa.damping" not in row["at"]]
    assert with_default
    assert stale == {make_json_key_of_row(row) for row in with_default}


# Slow because a study's points are made once for each change of a row.
@pytest.mark.slow
def test_other_values_and_other_seeds_do_not_hold(family):
    study, rows = family
    first, *rest = rows

    def list_missing_keys(row):
        """The keys of the missing points, with this row in the place of the first one."""
        return [point.key for point in study.list_missing_and_stale_points([row, *rest])]

    key = make_json_key_of_row(first)
    assert list_missing_keys({**first, "made": {**first["made"], "gone": 1}}) == [key]
    assert list_missing_keys({**first, "seeds": first["seeds"][:-1]}) == [key]
    if study.name.startswith("tuning"):
        return
    without_accuracy = {name: value for name, value in first.items() if name != "accuracy"}
    assert list_missing_keys(without_accuracy) == [key]
    assert list_missing_keys({**without_accuracy, "failed": "it diverged"}) == []


# ------------------------------------------------------------------------------------------------ made again
@pytest.fixture
def small(tmp_path):
    """A study of two methods with two and three clients, two seeds each: eight runs."""
    settings = {"clients": [2, 3], "alpha": 1.0, "seeds": [0, 1], "epochs": 1}
    runs = {"r": {"methods": ["fedavg", "ensemble"], **settings}}
    file = tmp_path / "small.json"
    return FigureStudy("small", file, runs=runs, columns=("accuracy", "nll"), decimals=4)


def test_what_is_missing_is_computed_and_a_named_method_once_more(small):
    made = []  # (method, clients, seed) of each run

    def watch(event):
        if event.outcome is not None:
            made.append((event.method, event.outcome.settings.clients, event.seed))

    first_runs = {"r": {**small.runs["r"], "methods": ["fedavg"], "clients": 2}}
    first = dataclasses.replace(small, runs=first_runs)
    assert first.compute_and_store_missing_rows(watch=watch) == {}
    assert len(made) == 2
    assert small.compute_and_store_missing_rows(watch=watch) == {}
    assert len(made) == 2 + 6
    rows = small.load_stored_rows()
    assert all(row["accuracy"] for row in rows)
    assert small.describe_methods_with_missing_or_stale_rows() == []
    assert len(rows) == 4
    assert {(row["method"], row["at"]["clients"]) for row in rows} == {
        ("fedavg", 2), ("fedavg", 3), ("ensemble", 2), ("ensemble", 3),
    }  # fmt: skip
    assert small.compute_and_store_missing_rows(watch=watch) == {}
    assert len(made) == 8
    assert small.compute_and_store_missing_rows(recomputed_methods=["ensemble"], watch=watch) == {}
    assert {method for method, *_ in made[8:]} == {"ensemble"}
    assert small.load_stored_rows() == rows
    head, _ = read_stored_rows(small.path)
    assert head["command"].endswith("declared small")
    (stamp,) = {row["on"] for row in rows}
    assert "torch" in stamp
    assert head["on"] == {stamp: 4}


def test_a_failure_is_reported_and_the_other_runs_are_stored(small, monkeypatch):
    monkeypatch.setattr(METHODS["fedavg"], "run", lambda self, ctx: 1 / 0)
    failed = small.compute_and_store_missing_rows()
    assert len(failed) == 2
    for key, reason in failed.items():
        assert "fedavg" in key
        assert "division" in reason
    accuracies = {"fedavg": [], "ensemble": []}
    for row in small.load_stored_rows():
        accuracies[row["method"]].append(row["accuracy"])
    assert accuracies["fedavg"] == [[None, None], [None, None]]
    assert all(min(values) > 0 for values in accuracies["ensemble"])


def test_a_column_may_be_a_path_or_a_measure(small):
    out = experiment.run("fens", clients=2, epochs=1, alpha=1)
    assert small.read_column_value("calibration.nll", out) == out.nll
    assert small.read_column_value("report.heads.ccvr", out) is None
    assert small.read_column_value("per_class.-1", out) == out.per_class[-1]
    measured = dataclasses.replace(small, measures="fedlab_nb.papers.measures")
    assert measured.read_column_value("best.member", out) == max(out.report.member_accuracy)


SAMPLES = [
    ("coboosting", "ensemble", {"alpha": 0.1}, 0.012),
    ("stored-digits", "regmean", {"alpha": 0.1, "clients": 10}, 0.02),
    ("tuning-digits", "fedlpa", {"try": 3, "alpha": 0.1}, 0.005),
    ("tables", "fednova", {"alpha": 0.1}, 0.02), ("tables", "fusefl", {"alpha": 0.1}, 0.02),
]  # fmt: skip


def assert_point_comes_out_again(study, point, tolerance, seed_count):
    """Run the first seeds of a point once more and compare them with the stored row.

    tolerance: of an accuracy; another processor adds up in another order, which moves a few images
    """
    (stored,) = [row for row in study.load_stored_rows() if make_json_key_of_row(row) == point.key]
    first_seeds = dataclasses.replace(point, seeds=point.seeds[:seed_count])
    ((_, fresh),) = compute_point_rows([first_seeds], study.decimals)
    assert fresh["accuracy"] == pytest.approx(stored["accuracy"][:seed_count], abs=tolerance)
    for column in {"bytes_up", "bytes_down", "parameters"} & set(fresh):
        assert fresh[column] == stored[column][:seed_count]


@pytest.mark.parametrize(
    ("name", "method", "at", "tolerance"), SAMPLES, ids=lambda value: str(value)[:20]
)
# Slow because methods are run in full, as the stored row was; of a table all points are made first.
@pytest.mark.slow
def test_a_sample_of_the_rows_comes_out_again(name, method, at, tolerance):
    """Two seeds of the first point of the method that has these settings."""
    study = STUDIES[name]
    points = [p for p in study.list_points(study.load_stored_rows()) if p.method == method]
    point = next(p for p in points if at.items() <= dict(p.at).items())
    assert_point_comes_out_again(study, point, tolerance, 2)


# Tolerances of methods whose single seeds are moved far by rounding alone.
CHAOTIC = {"dense": 0.2, "fdafl": 0.2, "coboosting": 0.2}


@pytest.mark.slow
@pytest.mark.parametrize("runs", STUDIES["holds"].runs)
def test_what_holds_rests_on_runs_that_come_out_again(runs):
    """Of each group of runs behind the claims of the methods, the last point of each method: one seed."""
    study = STUDIES["holds"]
    last_points = {point.method: point for point in study.list_points() if point.runs == runs}
    for method, point in last_points.items():
        assert_point_comes_out_again(study, point, CHAOTIC.get(method, 0.03), 1)


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    for name in ("none.json", "other.json"):
        with pytest.raises(FedlabError, match=f"The stored results in {name} cannot be read"):
            read_stored_rows(tmp_path / name)


def test_runs_that_share_their_clients_are_neighbours():
    """Clients are trained once, for methods of one study and for several numbers of a table."""
    points = []
    for method in ("fedavg", "ensemble"):
        for clients in (2, 3):
            points.append(
                MethodSettingPoint("r", method, {}, Settings.make(clients=clients), [0, 1])
            )
    cells = list_cells_grouped_by_trained_clients(points)
    assert [(cell.plan.settings.clients, cell.seed, cell.plan.method_name) for cell in cells] == [
        (2, 0, "fedavg"), (2, 0, "ensemble"), (2, 1, "fedavg"), (2, 1, "ensemble"),
        (3, 0, "fedavg"), (3, 0, "ensemble"), (3, 1, "fedavg"), (3, 1, "ensemble"),
    ]  # fmt: skip
