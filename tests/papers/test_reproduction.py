"""A table run end to end on a tiny scale, the stored results, and wrong use in one sentence."""

import dataclasses
import math
import re
from pathlib import Path

import pytest

import fedlab_nb as fl
from fedlab_nb import papers
from fedlab_nb.cli import main
from fedlab_nb.errors import RunError
from fedlab_nb.methods import METHODS
from fedlab_nb.papers import TABLES, load_paper_table, paper_tables, reproduce
from fedlab_nb.papers.cells import (
    NUMBERS,
    TablePlan,
    describe_knobs_changed_from_paper,
    list_points_of_stored_tables,
    merge_runs_into_distinct_points,
    plan_stored_runs,
    plan_table_runs,
)
from fedlab_nb.papers.claims import JUDGED
from fedlab_nb.papers.durations import (
    describe_duration,
    get_duration_in_seconds_or_nan,
    insert_durations_into_text,
    read_durations_of_longer_runs,
)
from fedlab_nb.papers.estimates import estimate_seconds_of_longer_runs
from fedlab_nb.papers.points import compute_point_rows
from fedlab_nb.papers.published import count_distinct_pairs_of_tried_runs
from fedlab_nb.papers.reproduction import FILES, make_reproduction
from fedlab_nb.studies.stored_rows import make_unique_row_key, read_stored_rows

FOLDER = Path(papers.__file__).parent / "tables"
TINY = {
    "epochs": 1,
    "coboosting.epochs": 1,
    "coboosting.generator_steps": 1,
    "coboosting.images": 16,
}


# ------------------------------------------------------------------------------------------------ end to end
def test_a_table_end_to_end(tmp_path, capsys):
    result = fl.reproduce("coboosting:2", seeds=1, out=tmp_path, progress=False, **TINY)
    assert result.seeds == (0,) and {*result.dataset_by_column_index.values()} == {"digits"}
    assert (
        len(result.orderings) == 6 and result.verdict_counts["not compared"] == 6
    )  # one seed decides nothing
    outcome = fl.run("coboosting", alpha=0.05, **TINY)
    places = [i for i, c in enumerate(result.table.columns) if c.setting == "alpha = 0.05"]
    assert {result.values["Co-Boosting", i][0] for i in places} == {
        outcome.report.ensemble_curve[-1]
    }
    assert len(places) == 2 and outcome.cached  # one run stands for SVHN and for CIFAR-10
    assert len(result.results) == 2 * 3  # methods, alphas
    assert {path.name for path in tmp_path.iterdir()} == {
        "results.csv",
        "results.json",
        "table.txt",
    }
    assert "61.62 ± 1.61" in (tmp_path / "table.txt").read_text()
    pairs = [x for key, value in TINY.items() for x in ("--set", f"{key}={value}")]
    assert main(["reproduce", "coboosting:2", "--seeds", "1", "--list", *pairs]) == 0
    out = capsys.readouterr().out
    assert (
        out.startswith(repr(result)[:300])
        and len(out.splitlines()) > 20
        and "Co-Boosting over FedENS" in out
    )


def test_a_row_that_is_not_run_at_classroom_scale_says_why():
    table = load_paper_table("fusefl:3")
    absent = "FuseFL-Hetero"
    row = dataclasses.replace(table.rows[absent], why_small="it takes too long")
    table = dataclasses.replace(table, rows={**table.rows, absent: row})
    runs, why = plan_table_runs(table, "classroom", "", (0,), {})
    assert {run.row for run in runs} == {*table.rows} - {absent}
    assert {row for row, _ in why} == {absent} and {*why.values()} == {"it takes too long"}
    assert {run.row for run in plan_table_runs(table, "paper", "", (0,), {})[0]} == {*table.rows}


def test_a_table_that_takes_hours_can_be_run_and_says_so():
    table = load_paper_table("fedlpa:21")
    runs, why = plan_stored_runs(table)
    assert not runs and len(why) == sum(len(column.numbers) for column in table.columns)
    (reason,) = {*why.values()}
    duration = describe_duration(get_duration_in_seconds_or_nan("fedlpa:21", "all"))
    assert f"{duration} on one core" in reason and "fl.reproduce('fedlpa:21')" in reason
    assert duration.endswith("hours")
    assert len(plan_table_runs(table, "classroom", "", (0,), {})[0]) == len(why)
    assert reason in str(reproduce("fedlpa:21", stored=True))


def test_columns_that_take_hours_say_so_and_the_others_are_stored():
    table = load_paper_table("fedlpa:16")
    runs, why = plan_stored_runs(table)
    assert {table.columns[run.place].dataset for run in runs} == {
        "fashion-mnist",
        "cifar10",
        "svhn",
    }
    assert {table.columns[place].dataset for _, place in why} == {"mnist"}
    (reason,) = {*why.values()}
    assert "fl.reproduce('fedlpa:16', dataset='mnist')" in reason
    asked, _ = plan_table_runs(table, "classroom", "mnist", (0,), {})
    assert {run.dataset for run in asked} == {"mnist:5k"}
    assert len(asked) == len(why)


def test_every_time_that_a_reason_names_was_estimated():
    """No table's file has a time in words, each place for one is filled, and a reason of time is one of hours."""
    estimated = read_durations_of_longer_runs()
    for name in TABLES:
        content = (FOLDER / f"{name.replace(':', '-')}.toml").read_text(encoding="utf-8")
        for line in content.splitlines():
            if line.startswith(("note", "remedy", "why")):
                time_in_words = re.search(r"\b(\d+|an?|two|three|about) (minutes?|hours?)\b", line)
                assert not time_in_words, (name, line)
        table = load_paper_table(name)
        assert set(estimated.get(name, {})) == set(table.longer), name
        texts = " ".join([table.note, table.remedy])
        assert "{" not in texts and "unknown" not in texts
        too_long = ["all"] if table.too_long else list(table.too_long_on)
        for key in too_long:
            assert estimated[name][key] > 3600, (name, key)
    assert set(estimated) <= set(TABLES)


# Slow because it plans the runs of all long tables.
@pytest.mark.slow
def test_estimated_times_are_those_of_the_forecast(tmp_path, monkeypatch):
    """Up to the speed of machines, and to a forecast's error: a factor of ten."""
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path))
    for name, seconds_of in read_durations_of_longer_runs().items():
        for key, seconds in seconds_of.items():
            now = estimate_seconds_of_longer_runs(name, load_paper_table(name).longer[key], 0, {})
            assert seconds / 10 < now < 10 * seconds, (name, key, now)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "about 1 minute"),
        (130, "about 2 minutes"),
        (1900, "about 30 minutes"),
        (3700, "about an hour"),
        (6000, "about 2 hours"),
        (40_000, "about 10 hours"),
        (477_565, "about 130 hours"),
        (math.nan, "an unknown time"),
    ],
)
def test_a_duration_in_words(seconds, words):
    assert describe_duration(seconds) == words
    assert (
        insert_durations_into_text("in {time of none} on one core", "fens:1")
        == "in an unknown time on one core"
    )


def test_what_a_network_cannot_do_is_not_run(capsys):
    """The perceptron has two layers to cut; so FuseFL with K = 4 and 8 says why, and the rest goes on."""
    table = load_paper_table("fusefl:2")
    runs, _ = plan_table_runs(table, "classroom", "digits", (0,), {"epochs": 1})
    some = [
        run
        for run in runs
        if run.row.startswith("FuseFL") and table.columns[run.place].setting == "alpha = 0.5"
    ]
    made = [row for _, row in compute_point_rows(merge_runs_into_distinct_points(some))]
    result = make_reproduction(table, TablePlan(some, {}), made, scale="classroom", seeds=(0,))
    assert len(made) == 3 and {row for row, _ in result.values} == {"FuseFL K=2"}
    assert {row for row, _ in result.why} == {"FuseFL K=4", "FuseFL K=8"}
    assert all("mlp has 2 layers" in reason for reason in result.why.values())


def test_which_runs_each_scale_asks_for():
    table = load_paper_table("fens:1")
    everywhere, why = plan_table_runs(table, "classroom", "", (0,), {})
    assert {run.dataset for run in everywhere} == {"digits"} and not why and len(everywhere) == 63
    assert len({run.point.key for run in everywhere}) == 21  # one run stands for three data sets
    own, why = plan_table_runs(table, "classroom", "svhn", (0,), {})
    assert {table.columns[run.place].dataset for run in own} == {run.dataset for run in own} == {
        "svhn"
    } and len(own) == 21
    assert set(why.values()) == {"svhn alone was asked for"}
    et, why = plan_table_runs(load_paper_table("fedet:2"), "classroom", "", (0,), {})
    assert {run.row for run in et} == {
        "FedAvg",
        "FedProx",
        "SCAFFOLD",
        "MOON",
        "FedDF",
        "DS-FL",
        "Fed-ET",
    }
    assert any(
        "no data set sent140" in reason or "sent140 comes with" in reason for reason in why.values()
    )
    once = [
        r
        for r in plan_table_runs(load_paper_table("fedlpa:1"), "classroom", "", (3,), {})[0]
        if r.row == "FedProx"
    ]
    method = once[0].point.cells[0].plan.method
    assert (method.rounds, method.local_epochs) == (1, once[0].point.cells[0].plan.recipe.epochs)
    assert (
        once[-1].point.cells[0].plan.settings.partition == "classes"
        and once[-1].point.cells[0].seed == 3
    )


WRONG = """fedlpa|fedlpa:1 --scale half|fedlpa:1 --scale 0|fedlpa:1 --dataset digit|fedlpa:1 --seeds 0
fedlpa:1 --workers 0|fedlpa:1 --set alpha=0.1|fedlpa:1 --set epoch=1|fedlpa:1 --set dense.epoch=1|
fedlpa:1 --set fens.rounds=3|coboosting:2 --dataset svhn --seeds 1"""


@pytest.mark.parametrize("words", re.split(r"[|\n]", WRONG))
def test_wrong_use_is_one_sentence(words, capsys, monkeypatch):
    def offline(name):
        raise RunError(f"{name} could not be had.")

    monkeypatch.setattr("fedlab_nb.papers.reproduction.load", offline)
    assert main(["reproduce", *words.split()]) == (1 if "svhn" in words else 2)
    out, err = capsys.readouterr()
    assert (
        out == ""
        and len(err.strip().splitlines()) == 1
        and "Traceback" not in err
        and err.strip().endswith(".")
    )


# ------------------------------------------------------------------------------------------------ what is stored
@pytest.mark.parametrize("large", [False, True])
def test_the_stored_results_are_whole(large):
    _, stored = read_stored_rows(FILES[large])
    rows, points = (
        {make_unique_row_key(row): row for row in stored},
        {point.key: point for point in list_points_of_stored_tables(has_large_datasets=large)},
    )
    assert all(("mnist:5k" in key) == large for key in points)
    assert set(rows) == set(points) and {row["method"] for row in rows.values()} <= set(METHODS)
    for key, row in rows.items():
        assert "failed" in row or all(
            len(row[name]) == len(row["seeds"]) for name in points[key].columns
        )
    assert FILES[large].stat().st_size < 500_000


def test_stored_results_show_without_a_run():
    summary = paper_tables()
    assert [r.table.name for r in summary.tables] == list(TABLES)
    main = ("fens:1", "fedet:2", "fedet:3", "coboosting:1", "coboosting:2", "fusefl:2", "fedlpa:1")
    assert [len(r.orderings) for r in summary.tables if r.table.name in main] == [
        189,
        99,
        26,
        225,
        6,
        648,
        540,
    ]
    for r in summary.tables:
        assert sum(r.verdict_counts.values()) == len(r.orderings) and (
            "stored results" in repr(r)
        ) == bool(r.dataset_by_column_index)
        assert ("those of mnist:5k took" in repr(r)) == (
            "mnist:5k" in r.dataset_by_column_index.values()
        )
    assert "orderings" in repr(summary) and summary._repr_html_().count("<details ") == 5


# Slow where it is the first to ask for all tables with their stored results.
@pytest.mark.slow
def test_the_list_has_every_table_and_figure_with_a_verdict_or_a_reason(coarse):
    """Counted in the papers: 17 tables and 9 figures of FENS, 6 and 2, 19 and 5, 14 and 5, 25 and 4."""
    summary = paper_tables()
    assert [len(grid) - 1 for grid in summary.grid_by_paper.values()] == [26, 8, 24, 19, 29]
    for grid in summary.grid_by_paper.values():
        numbers = [(row[0].split()[0], int(row[0].split()[1])) for row in grid[1:]]
        for kind in ("Table", "Figure"):
            own = [n for k, n in numbers if k == kind]
            assert own == list(range(1, len(own) + 1))
        for _, here, verdict, title in grid[1:]:
            assert title and ("seeds" in here or here == "no" or here.startswith("none of "))
            assert not verdict or "seeds" in here
    aside = [c for c in summary.claims if c.outcome not in JUDGED]
    assert sum(summary.outcome_counts.values()) == len(summary.distinct_claims) + len(aside)
    picture = summary.plot()
    drawn = [line for line in picture.figure.axes[0].lines if len(line.get_xdata())]
    assert sum(line.get_markersize() > 5 for line in drawn) == sum(summary.outcome_counts.values())
    assert len(drawn) == len(summary.claims) == len(picture.table)


# Slow where it is the first to ask for all tables with their stored results.
@pytest.mark.slow
def test_what_is_not_run_has_a_reason_and_each_reason_is_said_once(coarse):
    summary = paper_tables()
    for paper, grid in summary.grid_by_paper.items():
        lines = summary.reasons_by_paper[paper]
        reasons = [line.split(": ", 1)[1] for line in lines]
        assert len(set(reasons)) == len(reasons)
        explained = set()
        for line in lines:
            for kinds, numbers in re.findall(
                r"(Table|Figure)s? ([^:]*?)(?=, Figure|$)", line.split(": ")[0]
            ):
                numbers = re.sub(r"\([^)]*\)", "", numbers)
                explained |= {f"{kinds} {number}" for number in re.findall(r"\d+", numbers)}
        for item, here, *_ in grid[1:]:
            parts = re.fullmatch(r"(\d+) of (\d+) numbers, .*", here)
            is_complete = parts is not None and parts[1] == parts[2]
            assert (item in explained) != is_complete, (paper, item, here)


def test_real_data_stand_for_their_own_columns():
    """heart is run as it is, MNIST's columns at classroom scale on 5,000 of its images."""
    runs, why = plan_table_runs(load_paper_table("fens:15"), "classroom", "", (0,), {})
    assert {run.dataset for run in runs} == {"heart"} and not why and len(runs) == 7
    assert {run.point.cells[0].plan.settings.partition for run in runs} == {"natural"}
    runs, why = plan_table_runs(load_paper_table("fedlpa:18"), "classroom", "mnist:5k", (0,), {})
    assert {run.dataset for run in runs} == {"mnist:5k"} and not why
    runs, why = plan_table_runs(load_paper_table("coboosting:9"), "classroom", "mnist", (0,), {})
    assert {run.dataset for run in runs} == {"mnist:5k"} and len(runs) == 6 and len(why) == 12
    assert {
        run.dataset
        for run in plan_table_runs(load_paper_table("coboosting:9"), "paper", "mnist", (0,), {})[0]
    } == {"mnist"}


@pytest.mark.parametrize("name", TABLES)
def test_no_row_departs_from_its_paper_in_a_rule_that_the_table_does_not_name(name):
    """Rules are what chooses among ways of doing something; the line under the table is made from the difference."""
    table = load_paper_table(name)
    there = describe_knobs_changed_from_paper(table, plan_stored_runs(table, [0])[0])
    rules = {(row, knob) for row, of in there.items() for knob in of.keys() - NUMBERS.keys()}
    named = {
        f"*.{knob}" if f"*.{knob}" in table.differs else f"{row}.{knob}" for row, knob in rules
    }
    assert named == set(table.differs)
    (line,) = [
        part
        for part in reproduce(name, stored=True).make_paragraphs_and_grids()
        if part[:4] == "Rows"
    ] or [""]
    assert all(words in line for of in there.values() for words in of.values())


def test_a_rule_of_ones_own_is_seen_and_the_papers_own_are_none():
    table = load_paper_table("coboosting:2")
    assert set(
        describe_knobs_changed_from_paper(
            table, plan_table_runs(table, "classroom", "", (0,), {"ensemble.rule": "votes"})[0]
        )
    ) > {"FedENS"}
    assert (
        describe_knobs_changed_from_paper(table, plan_table_runs(table, "paper", "", (0,), {})[0])
        == {}
    )


def test_totals_count_pairs_of_runs():
    """FedENS - Co-Boosting was run at three α, and each of them stands for two data sets."""
    boosting, fens = (reproduce(name, stored=True) for name in ("coboosting:2", "fens:1"))
    assert (
        count_distinct_pairs_of_tried_runs(boosting.orderings) == 3
        and boosting.verdict_counts["agrees"] == 6
        and count_distinct_pairs_of_tried_runs(fens.orderings) == 63
    )


def test_the_picture_has_a_dot_for_each_ordering(coarse):
    result = reproduce("fens:1", stored=True)
    picture = result.plot()
    tried = sum(
        result.verdict_counts[verdict] for verdict in ("agrees", "disagrees", "within the noise")
    )
    assert (
        len(picture.table)
        == tried
        == sum(len(line.get_xdata()) for line in picture.figure.axes[0].lines[:3])
    )
    assert str(result.verdict_counts["agrees"]) in picture.sentence
