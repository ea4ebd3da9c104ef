"""Figures in texts: how they are computed and written, and that every text says what its study does."""

import json
from pathlib import Path

import pytest
from studies import declared, texts
from studies.declared import Declared, cells, key_of, made_row

import fedlab_nb as fl

ROOT = Path(__file__).parents[1]
STUDIES = declared.load_all(ROOT / "notebooks" / "studies")
ACCURACY = {"a": [0.5, 0.6, 0.7], "b": [0.4, 0.52, 0.58], "c": [0.9, 0.3, 0.7]}
CLOSE = 0.012  # four of 360 test images: another machine's rounding


@pytest.fixture
def study(tmp_path):
    figures = {name: f"runs/{name}" for name in ACCURACY} | {"gain": "a - b", "up": "runs/a:bytes_up"}
    claims = {"clear": "a > b", "noise": "a ~ c", "wrong": "b > a", "low": "gain > 0.2", "not_clear": "c > a"}
    rows = [
        {"runs": "runs", "method": name, "at": {}, "seed": s, "accuracy": v, "bytes_up": 2e6, "more": {}}
        for name, values in ACCURACY.items()
        for s, v in enumerate(values)
    ]
    (tmp_path / "07_x.json").write_text(json.dumps(rows))
    return Declared(tmp_path / "07_x.toml", {}, figures, claims, {"a.py": ["a {a:mean} %, b {b:mean} %"]})


def test_figures_are_computed_by_seed(study):
    rows = study.results()
    assert study.value("a", rows) == dict(enumerate(ACCURACY["a"]))
    assert study.value("gain", rows) == pytest.approx({0: 0.1, 1: 0.08, 2: 0.12})
    assert study.value("gain / a", rows)[0] == pytest.approx(0.2)
    for unknown in ("d", "runs/d", "other/a"):
        with pytest.raises(ValueError):
            study.value(unknown, rows)


def test_axes_name_one_run_among_several(study):
    rows = [{"runs": "r", "method": "m", "at": {"alpha": a, "m.k": 2}, "seed": 0, "accuracy": a} for a in (0.1, 10)]
    assert study.value("r/m[alpha=10, k=2]", rows) == {0: 10}
    with pytest.raises(ValueError, match="more than one"):
        study.value("r/m", rows)


@pytest.mark.parametrize(
    "what, words",
    [("gain", "10 ± 5"), ("gain:fine", "10.0 ± 5.0"), ("gain:mean", "10"), ("a:each", "50 60 70"),
     ("gain:verdict", "clear"), ("a@0-1:each", "50 60"), ("up@0-1:counts", "2000000 2000000"),
     ("gain:above", "3"), ("up:MB", "2.0"), ("a@1:mean", "60"), ("b:high", "58")],
)  # fmt: skip
def test_how_a_figure_is_written(study, what, words):
    assert texts.figure(study, what) == words


def test_less_than_nothing():
    assert texts.shown({0: -0.001, 1: -0.001}, "mean") == "0" and texts.shown({0: -0.2, 1: -0.2}, "mean") == "−20"
    assert texts.shown({0: -0.2, 1: -0.001, 2: 0.1}, "each") == "−20 0 10"
    with pytest.raises(ValueError, match="no form"):
        texts.shown({0: 1.0}, "pretty")


@pytest.mark.parametrize("claim, holds", [("clear", True), ("noise", True), ("wrong", False), ("not_clear", None)])
def test_a_claim_is_judged_by_paired_differences(study, claim, holds):
    assert study.judge(claim, study.results()).holds is holds
    assert study.judge("low", study.results()).holds is False


def test_texts_are_rewritten_and_what_disagrees_is_named(study, tmp_path):
    page = "It has <!--n 07.a-->1 ± 1<!--/n--> %. <!--c 07.clear--> <!--n 08.a-->9<!--/n-->\n"
    (tmp_path / "page.md").write_text(page)
    (tmp_path / "a.py").write_text("# a 1 %,\n# b 2 %\n")
    with pytest.raises(ValueError, match="no place"):
        texts.rewrite(tmp_path, {"07": study})
    (tmp_path / "a.py").write_text('"""So a 1 %,\n    b 2 %."""\n')
    assert len([line for line in texts.complaints(tmp_path, {"07": study}) if "differs" in line]) == 2
    texts.rewrite(tmp_path, {"07": study})
    assert "It has <!--n 07.a-->60 ± 25<!--/n--> %." in (tmp_path / "page.md").read_text()
    assert "<!--n 08.a-->9<!--/n-->" in (tmp_path / "page.md").read_text()  # another study's
    assert (tmp_path / "a.py").read_text() == '"""So a 60 %,\n    b 50 %."""\n'
    lines = texts.complaints(tmp_path, {"07": study})
    assert not [line for line in lines if "differs" in line]
    assert len([line for line in lines if "wrong" in line]) == 2  # it does not hold, and no text says it
    assert not [line for line in lines if "clear (" in line and "not_" not in line]


def test_a_line_does_not_begin_with_a_comment(study, tmp_path):
    (tmp_path / "a.py").write_text("a 60 %, b 50 %")
    (tmp_path / "page.md").write_text("- <!--n 07.a-->60 ± 25<!--/n--> % is no list's beginning.\n")
    assert [line for line in texts.complaints(tmp_path, {"07": study}) if "begin" in line]


@pytest.mark.parametrize("name", STUDIES)
def test_results_are_those_of_the_declared_runs(name):
    assert STUDIES[name].stale() == []


def test_every_text_says_what_its_study_does():
    assert texts.complaints(ROOT, STUDIES) == []


def test_every_figure_of_a_text_has_a_study():
    for path in texts.pages(ROOT):
        if path.parent.name != "studies":
            assert {m["study"] for m in texts.FIGURE.finditer(path.read_text())} <= set(STUDIES), path.name


def again(study: Declared, runs: str, method: str, seed: int) -> list[tuple[float, float]]:
    """(stored, computed now) accuracies of one seed, at all points of the axes."""
    stored = {key_of(row): row for row in study.results()
              if (row["runs"], row["method"], row["seed"]) == (runs, method, seed)}  # fmt: skip
    pairs = []
    for cell in cells(study.study(runs, [seed])):
        if cell.plan.name == method:
            fl.study(method, seeds=[seed], **{k: v for k, v in cell.values.items()})
            row = made_row(runs, cell, set())
            pairs.append((stored[key_of(row)]["accuracy"], row["accuracy"]))
    return pairs


@pytest.mark.parametrize("name, runs, method, seed", [("05", "skewed", "ensemble", 3)])
def test_a_sample_of_the_rows_comes_out_again(name, runs, method, seed):
    pairs = again(STUDIES[name], runs, method, seed)
    assert pairs and all(then == pytest.approx(now, abs=CLOSE) for then, now in pairs)
