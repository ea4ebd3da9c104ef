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
    describe_wrong_texts,
    load_all_studies,
    make_corrected_texts,
)
from fedlab_nb.papers.points import (
    Point,
    compute_point_rows,
    list_cells_grouped_by_trained_clients,
    write_stored_rows,
)
from fedlab_nb.studies import experiment
from fedlab_nb.studies.settings import Settings
from fedlab_nb.studies.stored_figures import format_figure_values
from fedlab_nb.studies.stored_results import load
from fedlab_nb.studies.stored_rows import make_unique_row_key, read_stored_rows

STUDIES = load_all_studies()
QUOTING = {name: study for name, study in STUDIES.items() if isinstance(study, FigureStudy)}
ACCURACY = {"a": [0.5, 0.6, 0.7], "b": [0.4, 0.52, 0.58], "c": [0.9, 0.3, 0.7]}
METHODS_HERE = ["fedavg", "ensemble"]


def row_of(method, at, accuracy, runs="runs", **more):
    row = {
        "runs": runs,
        "method": method,
        "at": at,
        "seeds": list(range(len(accuracy))),
        "made": {},
    }
    return row | {"accuracy": accuracy, **more}


@pytest.fixture
def study(tmp_path):
    figures = {name: f"runs/{name}" for name in ACCURACY} | {
        "gain": "a - b",
        "up": "runs/a:bytes_up",
    }
    figures["more"] = "runs/a:bytes_up + up / 10"
    claims = {
        "clear": "a > b",
        "noise": "a ~ c",
        "wrong": "b > a",
        "low": "gain > 0.2",
        "not_clear": "c > a",
    }
    write_stored_rows(
        tmp_path / "x.json",
        {},
        [row_of(name, {}, values, bytes_up=[2e6] * 3) for name, values in ACCURACY.items()],
    )
    quotes = {"a.py": ["a {a:mean} %, b {b:mean} %"]}
    return FigureStudy("fedlpa", tmp_path / "x.json", figures=figures, claims=claims, quotes=quotes)


def test_figures_are_computed_by_seed(study):
    rows = study.load_rows()
    assert study.compute_figure_values_by_seed("a", rows) == dict(enumerate(ACCURACY["a"]))
    assert study.compute_figure_values_by_seed("gain", rows) == pytest.approx(
        {0: 0.1, 1: 0.08, 2: 0.12}
    )
    assert study.compute_figure_values_by_seed("gain / a", rows)[0] == pytest.approx(0.2)
    rows += [
        row_of("m", {"alpha": a, "m.k": 2}, [a]) for a in (0.1, 10)
    ]  # axes name one run among several
    assert study.compute_figure_values_by_seed("runs/m[alpha=10, k=2]", rows) == {0: 10}
    for unknown in ("d", "runs/d", "other/a", "runs/m"):
        with pytest.raises(ValueError):
            study.compute_figure_values_by_seed(unknown, rows)


@pytest.mark.parametrize(
    "what, words",
    [("gain", "10 ± 5"), ("gain:fine", "10.0 ± 5.0"), ("gain:mean", "10"), ("a:each", "50 60 70"),
     ("gain:verdict", "clear"), ("a@0-1:each", "50 60"), ("up@0-1:counts", "2000000 2000000"),
     ("gain:above", "3"), ("up:bytes", "2 MB"), ("more:bytes", "2.2 MB"), ("a@1:mean", "60"), ("b:high", "58")],
)  # fmt: skip
def test_how_a_figure_is_written(study, what, words):
    assert study.format_figure_values(what, study.load_rows()) == words


def test_less_than_nothing_and_an_unknown_form():
    values = {0: -0.2, 1: -0.001, 2: 0.1}
    assert [format_figure_values({0: v}, "mean") for v in values.values()] == [
        "−20",
        "0",
        "10",
    ] and format_figure_values(values, "each") == "−20 0 10"
    assert format_figure_values({0: -0.02, 1: -0.021, 2: -0.019}, "effect") == "costs 2 ± 0 points"
    assert format_figure_values({0: 0.2, 1: 0.21, 2: 0.22}, "effect") == "adds 21 ± 2 points"
    assert format_figure_values(values, "effect") == "makes no clear difference (−3 ± 38 points)"
    with pytest.raises(ValueError, match="no form"):
        format_figure_values({0: 1.0}, "pretty")


def test_a_claim_is_judged_by_paired_differences(study):
    judged = {claim: study.judge_claim(claim, study.load_rows())[0] for claim in study.claims}
    assert judged == {"clear": True, "noise": True, "wrong": False, "low": False, "not_clear": None}


def test_texts_are_rewritten_and_what_disagrees_is_named(study, tmp_path):
    page = "It has <!--n fedlpa.a-->1 ± 1<!--/n--> %. <!--c fedlpa.clear--> <!--n all_together.a-->9<!--/n-->\n"
    (tmp_path / "page.md").write_text(page)
    (tmp_path / "a.py").write_text("# a 1 %,\n# b 2 %\n")
    with pytest.raises(ValueError, match="no place"):
        make_corrected_texts(tmp_path, {"fedlpa": study})
    (tmp_path / "a.py").write_text('"""So a 1 %,\n    b 2 %."""\n')
    assert (
        len(
            [
                line
                for line in describe_wrong_texts(tmp_path, {"fedlpa": study})
                if "differs" in line
            ]
        )
        == 2
    )
    for path, text in make_corrected_texts(tmp_path, {"fedlpa": study}).items():
        path.write_text(text)
    assert "It has <!--n fedlpa.a-->60 ± 25<!--/n--> %." in (tmp_path / "page.md").read_text()
    assert (
        "<!--n all_together.a-->9<!--/n-->" in (tmp_path / "page.md").read_text()
    )  # another study's
    assert (tmp_path / "a.py").read_text() == '"""So a 60 %,\n    b 50 %."""\n'
    lines = describe_wrong_texts(tmp_path, {"fedlpa": study})
    assert not [line for line in lines if "differs" in line]
    assert (
        len([line for line in lines if "wrong" in line]) == 2
    )  # it does not hold, and no text says it
    assert not [line for line in lines if "clear (" in line and "not_" not in line]


@pytest.mark.parametrize(
    ("method", "gaps", "near"),
    [
        ("dense", [0.02, 0.03, 0.04], True),  # 3.0 ± 2.5 points: half a point to zero
        ("fedavg", [0.02, 0.03, 0.04], False),  # without a search for images that is enough
        ("dense", [0.05, 0.06, 0.07], False),  # 6.0 ± 2.5
        ("fedavg", [0.0154, 0.0254, 0.0354], True),  # 2.54 ± 2.48: a twentieth of a point
    ],
)
def test_a_claim_at_the_edge_says_so(method, gaps, near, tmp_path):
    """By Student's t: half the band of three values is 2.484 standard deviations, and these have one of a point."""
    made = [row_of(method, {}, [0.5 + gap for gap in gaps]), row_of("local", {}, [0.5, 0.5, 0.5])]
    write_stored_rows(tmp_path / "x.json", {}, made)
    figures = {"high": f"runs/{method}", "low": "runs/local", "gain": "high - low"}
    study = FigureStudy(
        "fedlpa", tmp_path / "x.json", figures=figures, claims={"ahead": "gain > 0"}
    )
    assert study.find_methods_read_by_figure("gain") == {method, "local"}
    for words, is_said in (("", False), (" (at the edge: perhaps)", True)):
        (tmp_path / "page.md").write_text(f"It is ahead. <!--c fedlpa.ahead-->{words}\n")
        assert (describe_wrong_texts(tmp_path, {"fedlpa": study}) == []) == (is_said == near)


def test_runs_that_take_long_are_made_on_demand_and_then_stay(tmp_path):
    """`later`: wanted by nobody who does not ask, and kept true once their rows are there."""
    runs = {"short": {"methods": ["afl"], "alpha": 1.0, "seeds": [0]}}
    later = {"long": {"methods": ["gauss"], "alpha": 1.0, "seeds": [0], "core_minutes": 40}}
    study = FigureStudy("x", tmp_path / "x.json", runs=runs, later=later)

    def wanted(study):
        return [(point.runs, point.method) for point in study.list_points(study.load_rows())]

    assert wanted(study) == [("short", "afl")]
    assert wanted(study.make_study_with_later_runs()) == [("short", "afl"), ("long", "gauss")]
    (_, long) = study.make_study_with_later_runs().list_points()
    row = {"runs": "long", "method": "gauss", "at": dict(long.at), "seeds": [0], "made": {}}
    columns = dict.fromkeys(long.columns, [0.5])
    write_stored_rows(study.path, {}, [{**row, "data": long.data_digest, **columns}])
    assert wanted(study) == [("short", "afl"), ("long", "gauss")]
    assert study.describe_stale_rows() == [
        "x/short/afl: rows are missing or have other settings; run python -m fedlab_nb.papers.declared x"
    ]
    write_stored_rows(
        study.path,
        {},
        [{**row, "data": long.data_digest, "made": {"gauss.head": "none"}, **columns}],
    )
    assert any(line.startswith("x/long/gauss: ") for line in study.describe_stale_rows())


# ------------------------------------------------------------------------------------------------ what is stored
@pytest.fixture(autouse=True)
def methods_with_results(monkeypatch):
    """A method that has just come has no stored results yet, and makes nothing else stale: `test_complete` asks."""
    for name in METHODS.keys() - set(load("digits").methods):
        monkeypatch.delitem(METHODS, name)


@pytest.fixture(scope="module", params=["fedlpa", "stored-glyphs16g", "tuning-digits", "tables"])
def family(request):
    """A study of each kind, and its stored rows."""
    return STUDIES[request.param], STUDIES[request.param].load_rows()


@pytest.mark.parametrize("name", STUDIES)
def test_stored_rows_hold(name):
    assert STUDIES[name].describe_stale_rows() == []


def test_a_row_of_other_data_does_not_hold():
    """Also where the other data are Fed-ET's public images. A row that does not say its data was made with the same."""
    asked = {"dataset": "digits", "fedet.public": "glyphs", "alpha": 0.1}
    point = Point("r", "fedet", {}, Settings.make(**asked), [0])
    own, letters = describe("digits").digest, describe("glyphs").digest
    assert point.data_digest == f"{own}+{letters}"
    row = {"seeds": [0], "made": point.options, "data": point.data_digest}
    assert point.is_current_row(row) and point.is_current_row(
        {**row, "data": point.data_digest} | {"on": "elsewhere"}
    )
    assert not point.is_current_row({**row, "data": own}) and not point.is_current_row(
        {**row, "data": "glyphs 1"}
    )
    del row["data"]
    assert point.is_current_row(row)


@pytest.mark.slow
def test_every_text_says_what_its_study_does():
    assert describe_wrong_texts(ROOT, QUOTING) == []


def test_every_figure_of_a_text_has_a_study_and_no_line_begins_with_one():
    """Markdown takes a line that begins with a comment for HTML."""
    for path in figures.list_markdown_texts(ROOT):
        text = path.read_text()
        assert {m["study"] for m in figures.FIGURE.finditer(text)} <= set(QUOTING), path.name
        assert not re.search(r"^\s*(?:[-*>]\s+|\d+\.\s+)?<!--[nc] ", text, re.MULTILINE), path.name


def with_field(monkeypatch, name, default, about):
    """FedLPA with another field, or with another default of one that it has."""
    own = METHODS["fedlpa"]
    field = (name, float, dataclasses.field(default=default, metadata=about))
    newer = dataclasses.make_dataclass(own.__name__, [field], bases=(own,), frozen=True)
    newer.__module__ = own.__module__
    monkeypatch.setitem(METHODS, "fedlpa", newer)


def test_a_new_option_with_a_default_makes_no_row_stale(family, monkeypatch):
    """FedLPA gets a knob that no stored row knows."""
    study, rows = family
    with_field(monkeypatch, "brand_new", 0.5, {"label": "new"})
    assert any(row["method"] == "fedlpa" for row in rows)
    assert study.list_missing_points(rows) == []


def test_another_default_makes_the_rows_stale_that_were_made_with_the_old_one(monkeypatch):
    study = STUDIES["fedlpa"]
    rows = study.load_rows()
    damping = next(
        field for field in dataclasses.fields(METHODS["fedlpa"]) if field.name == "damping"
    )
    with_field(monkeypatch, "damping", 0.5, damping.metadata)
    stale = {point.key for point in study.list_missing_points(rows)}
    assert (
        stale
        == {
            make_unique_row_key(r)
            for r in rows
            if r["method"] == "fedlpa" and "fedlpa.damping" not in r["at"]
        }
        != set()
    )


# Slow because a study's points are made once for each change of a row.
@pytest.mark.slow
def test_other_values_and_other_seeds_do_not_hold(family):
    study, rows = family
    (first, *rest) = rows
    for change in ({"made": {**first["made"], "gone": 1}}, {"seeds": first["seeds"][:-1]}):
        assert [point.key for point in study.list_missing_points([{**first, **change}, *rest])] == [
            make_unique_row_key(first)
        ]
    if study.name.startswith("tuning"):
        return
    fewer = {name: value for name, value in first.items() if name != "accuracy"}
    assert [point.key for point in study.list_missing_points([fewer, *rest])] == [
        make_unique_row_key(first)
    ]
    assert study.list_missing_points([{**fewer, "failed": "it diverged"}, *rest]) == []


# ------------------------------------------------------------------------------------------------ made again
@pytest.fixture
def small(tmp_path):
    runs = {
        "r": {
            "methods": METHODS_HERE,
            "clients": [2, 3],
            "alpha": 1.0,
            "seeds": [0, 1],
            "epochs": 1,
        }
    }
    return FigureStudy(
        "small", tmp_path / "small.json", runs=runs, columns=("accuracy", "nll"), decimals=4
    )


def test_making_computes_what_is_missing_and_methods_anew(small):
    seen = []

    def watch(event):
        if event.outcome is not None:
            seen.append((event.method, event.outcome.settings.clients, event.seed))

    first = dataclasses.replace(
        small, runs={"r": {**small.runs["r"], "methods": ["fedavg"], "clients": 2}}
    )
    assert first.compute_missing_rows(watch=watch) == {} and len(seen) == 2
    assert small.compute_missing_rows(watch=watch) == {} and len(seen) == 2 + 6
    rows = small.load_rows()
    assert (
        [row["accuracy"] for row in rows] and small.describe_stale_rows() == [] and len(rows) == 4
    )
    assert {(row["method"], row["at"]["clients"]) for row in rows} == {
        (m, c) for m in METHODS_HERE for c in (2, 3)
    }
    assert small.compute_missing_rows(watch=watch) == {} and len(seen) == 8
    assert small.compute_missing_rows(recomputed_methods=["ensemble"], watch=watch) == {} and {
        method for method, *_ in seen[8:]
    } == {"ensemble"}
    assert small.load_rows() == rows and read_stored_rows(small.path)[0]["command"].endswith(
        "declared small"
    )
    (stamp,) = {row["on"] for row in rows}
    assert "torch" in stamp and read_stored_rows(small.path)[0]["on"] == {stamp: 4}


def test_a_failure_is_told_and_the_rest_is_kept(small, monkeypatch):
    monkeypatch.setattr(METHODS["fedavg"], "run", lambda self, ctx: 1 / 0)
    failed = small.compute_missing_rows()
    assert len(failed) == 2 and all(
        "fedavg" in key and "division" in why for key, why in failed.items()
    )
    assert [row["accuracy"] for row in small.load_rows() if row["method"] == "fedavg"] == [
        [None, None]
    ] * 2
    assert all(min(row["accuracy"]) > 0 for row in small.load_rows() if row["method"] == "ensemble")


def test_a_column_may_be_a_path_or_a_measure(small):
    out = experiment.run("fens", clients=2, epochs=1, alpha=1)
    assert (
        small.read_column_value("calibration.nll", out) == out.nll
        and small.read_column_value("report.heads.ccvr", out) is None
    )
    assert small.read_column_value("per_class.-1", out) == out.per_class[-1]
    measured = dataclasses.replace(small, measures="fedlab_nb.papers.measures")
    assert measured.read_column_value("best.member", out) == max(out.report.member_accuracy)


SAMPLES = [
    ("coboosting", "ensemble", {"alpha": 0.1}, 0.012),
    ("stored-digits", "regmean", {"alpha": 0.1, "clients": 10}, 0.02),
    ("tuning-digits", "fedlpa", {"try": 3, "alpha": 0.1}, 0.005),
    ("tables", "fednova", {"alpha": 0.1}, 0.02), ("tables", "fusefl", {"alpha": 0.1}, 0.02),
]  # fmt: skip


def comes_out_again(study, point, close, seeds):
    """Another processor adds up in another order; `close`: a few images are allowed."""
    (then,) = [row for row in study.load_rows() if make_unique_row_key(row) == point.key]
    ((_, now),) = compute_point_rows(
        [dataclasses.replace(point, seeds=point.seeds[:seeds])], study.decimals
    )
    assert now["accuracy"] == pytest.approx(then["accuracy"][:seeds], abs=close)
    for column in {"bytes_up", "bytes_down", "parameters"} & set(now):
        assert now[column] == then[column][:seeds]


@pytest.mark.parametrize(
    ("name", "method", "at", "close"), SAMPLES, ids=lambda value: str(value)[:20]
)
# Slow because methods are run in full, as the stored row was; of a table all points are made first.
@pytest.mark.slow
def test_a_sample_of_the_rows_comes_out_again(name, method, at, close):
    """Of the first of these points: two seeds."""
    study = STUDIES[name]
    point = next(
        p
        for p in study.list_points(study.load_rows())
        if p.method == method and {**p.at, **at} == dict(p.at)
    )
    comes_out_again(study, point, close, 2)


CHAOTIC = {"dense": 0.2, "fdafl": 0.2, "coboosting": 0.2}  # rounding alone moves single seeds


@pytest.mark.slow
@pytest.mark.parametrize("runs", STUDIES["holds"].runs)
def test_what_holds_rests_on_runs_that_come_out_again(runs):
    """Of each group of runs behind the claims of the methods, the last point of each method: one seed."""
    study = STUDIES["holds"]
    for point in {p.method: p for p in study.list_points() if p.runs == runs}.values():
        comes_out_again(study, point, CHAOTIC.get(point.method, 0.03), 1)


def test_what_cannot_be_read_is_one_sentence(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    for name in ("none.json", "other.json"):
        with pytest.raises(FedlabError, match=f"The stored results in {name} cannot be read"):
            read_stored_rows(tmp_path / name)


def test_runs_that_share_their_clients_are_neighbours():
    """Clients are trained once, for methods of one study and for several numbers of a table."""
    asked = [Settings.make(clients=clients) for clients in (2, 3)]
    points = [Point("r", m, {}, s, [0, 1]) for m in ("fedavg", "ensemble") for s in asked]
    cells = list_cells_grouped_by_trained_clients(points)
    at = [(cell.plan.settings.clients, cell.seed, cell.plan.method_name) for cell in cells]
    assert at == [
        (c, seed, m) for c, seed in ((2, 0), (2, 1), (3, 0), (3, 1)) for m in ("fedavg", "ensemble")
    ]
