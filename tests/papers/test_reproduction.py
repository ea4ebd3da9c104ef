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
    describe_knobs_changed_from_paper_setup,
    list_points_of_stored_tables,
    merge_runs_into_distinct_points,
    plan_stored_runs,
    plan_table_runs,
)
from fedlab_nb.papers.claims import JUDGED
from fedlab_nb.papers.durations import (
    describe_duration_in_words,
    get_seconds_of_ten_seeds_or_nan,
    read_durations_of_longer_runs,
    replace_duration_placeholders_in_text,
)
from fedlab_nb.papers.estimates import estimate_seconds_of_ten_seeds_of_table
from fedlab_nb.papers.points import compute_point_rows
from fedlab_nb.papers.published import count_distinct_pairs_of_tried_runs
from fedlab_nb.papers.reproduction import FILES, make_reproduction
from fedlab_nb.studies.stored_rows import make_json_key_of_row, read_stored_rows

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
    assert result.seeds == (0,)
    assert set(result.dataset_by_column_index.values()) == {"digits"}
    assert len(result.orderings) == 6
    assert result.ordering_count_by_verdict["not compared"] == 6  # one seed decides nothing
    outcome = fl.run("coboosting", alpha=0.05, **TINY)
    assert outcome.cached
    columns = result.table.columns
    places = [i for i, column in enumerate(columns) if column.setting == "alpha = 0.05"]
    assert len(places) == 2  # one run stands for SVHN and for CIFAR-10
    for i in places:
        assert result.values["Co-Boosting", i][0] == outcome.report.ensemble_curve[-1]
    assert len(result.results) == 2 * 3  # methods, alphas
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {"results.csv", "results.json", "table.txt"}
    assert "61.62 ± 1.61" in (tmp_path / "table.txt").read_text()
    command = ["reproduce", "coboosting:2", "--seeds", "1", "--list"]
    for name, value in TINY.items():
        command += ["--set", f"{name}={value}"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert out.startswith(repr(result)[:300])
    assert len(out.splitlines()) > 20
    assert "Co-Boosting over FedENS" in out


def test_a_row_that_is_not_run_at_classroom_scale_says_why():
    table = load_paper_table("fusefl:3")
    absent = "FuseFL-Hetero"
    row = dataclasses.replace(table.rows[absent], why_small="it takes too long")
    table = dataclasses.replace(table, rows={**table.rows, absent: row})
    runs, why = plan_table_runs(table, "classroom", "", (0,), {})
    assert {run.row for run in runs} == {*table.rows} - {absent}
    assert {row for row, _ in why} == {absent}
    assert set(why.values()) == {"it takes too long"}
    assert {run.row for run in plan_table_runs(table, "paper", "", (0,), {})[0]} == {*table.rows}


def test_a_table_that_takes_hours_can_be_run_and_says_so():
    table = load_paper_table("fedlpa:21")
    runs, why = plan_stored_runs(table)
    assert not runs
    assert len(why) == sum(len(column.numbers) for column in table.columns)
    (reason,) = {*why.values()}
    duration = describe_duration_in_words(get_seconds_of_ten_seeds_or_nan("fedlpa:21", "all"))
    assert f"{duration} on one core" in reason
    assert "fl.reproduce('fedlpa:21')" in reason
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
    """Within a factor of ten, for the speed of machines and a forecast's error."""
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path))
    for name, seconds_of in read_durations_of_longer_runs().items():
        for key, seconds in seconds_of.items():
            now = estimate_seconds_of_ten_seeds_of_table(
                name, load_paper_table(name).longer[key], 0, {}
            )
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
    assert describe_duration_in_words(seconds) == words


def test_a_duration_that_was_not_estimated_is_unknown_in_a_text():
    text = replace_duration_placeholders_in_text("in {time of none} on one core", "fens:1")
    assert text == "in an unknown time on one core"


def test_what_a_network_cannot_do_is_not_run(capsys):
    """The perceptron has two layers to cut; so FuseFL with K = 4 and 8 says why, and the rest goes on."""
    table = load_paper_table("fusefl:2")
    runs, _ = plan_table_runs(table, "classroom", "digits", (0,), {"epochs": 1})
    runs = [run for run in runs if table.columns[run.place].setting == "alpha = 0.5"]
    runs = [run for run in runs if run.row.startswith("FuseFL")]
    rows = [row for _, row in compute_point_rows(merge_runs_into_distinct_points(runs))]
    result = make_reproduction(table, TablePlan(runs, {}), rows, scale="classroom", seeds=(0,))
    assert len(rows) == 3
    assert {row for row, _ in result.values} == {"FuseFL K=2"}
    assert {row for row, _ in result.why} == {"FuseFL K=4", "FuseFL K=8"}
    assert all("mlp has 2 layers" in reason for reason in result.why.values())


def test_the_digits_stand_for_all_data_sets_of_a_table_and_one_can_be_asked_for():
    table = load_paper_table("fens:1")
    runs, why = plan_table_runs(table, "classroom", "", (0,), {})
    assert {run.dataset for run in runs} == {"digits"}
    assert not why
    assert len(runs) == 63
    assert len({run.point.key for run in runs}) == 21  # one run stands for three data sets
    runs, why = plan_table_runs(table, "classroom", "svhn", (0,), {})
    assert {table.columns[run.place].dataset for run in runs} == {"svhn"}
    assert {run.dataset for run in runs} == {"svhn"}
    assert len(runs) == 21
    assert set(why.values()) == {"svhn alone was asked for"}


def test_a_data_set_that_is_not_here_is_the_reason_why_its_column_is_not_run():
    runs, why = plan_table_runs(load_paper_table("fedet:2"), "classroom", "", (0,), {})
    rows = {"FedAvg", "FedProx", "SCAFFOLD", "MOON", "FedDF", "DS-FL", "Fed-ET"}
    assert {run.row for run in runs} == rows
    reasons = " ".join(why.values())
    assert "no data set sent140" in reasons or "sent140 comes with" in reasons


def test_a_method_of_many_rounds_has_one_round_in_a_one_shot_table():
    runs, _ = plan_table_runs(load_paper_table("fedlpa:1"), "classroom", "", (3,), {})
    cells = [run.point.cells[0] for run in runs if run.row == "FedProx"]
    plan = cells[0].plan
    assert plan.method.rounds == 1
    assert plan.method.local_epochs == plan.recipe.epochs
    assert cells[-1].plan.settings.partition == "classes"
    assert cells[-1].seed == 3


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
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err
    assert err.strip().endswith(".")


# ------------------------------------------------------------------------------------------------ what is stored
@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_the_stored_results_are_whole(large):
    _, stored = read_stored_rows(FILES[large])
    rows = {make_json_key_of_row(row): row for row in stored}
    planned = list_points_of_stored_tables(is_for_large_datasets=large)
    points = {point.key: point for point in planned}
    assert all(("mnist:5k" in key) == large for key in points)
    assert set(rows) == set(points)
    assert {row["method"] for row in rows.values()} <= set(METHODS)
    for key, row in rows.items():
        if "failed" not in row:
            for name in points[key].columns:
                assert len(row[name]) == len(row["seeds"]), (key, name)
    assert FILES[large].stat().st_size < 500_000


def test_stored_results_show_without_a_run():
    summary = paper_tables()
    assert [r.table.name for r in summary.tables] == list(TABLES)
    ordering_counts = {
        "fens:1": 189,
        "fedet:2": 99,
        "fedet:3": 26,
        "coboosting:1": 225,
        "coboosting:2": 6,
        "fusefl:2": 648,
        "fedlpa:1": 540,
    }
    results = {result.table.name: result for result in summary.tables}
    for name, count in ordering_counts.items():
        assert len(results[name].orderings) == count, name
    for result in summary.tables:
        text = repr(result)
        datasets = result.dataset_by_column_index
        assert sum(result.ordering_count_by_verdict.values()) == len(result.orderings)
        assert ("stored results" in text) == bool(datasets)
        assert ("those of mnist:5k took" in text) == ("mnist:5k" in datasets.values())
    assert "orderings" in repr(summary)
    assert summary._repr_html_().count("<details ") == 5


# Slow where it is the first to ask for all tables with their stored results.
@pytest.mark.slow
def test_the_list_has_every_table_and_figure_with_a_verdict_or_a_reason(low_resolution):
    """Counted in the papers: 17 tables and 9 figures of FENS, 6 and 2, 19 and 5, 14 and 5, 25 and 4."""
    summary = paper_tables()
    assert [len(grid) - 1 for grid in summary.grid_by_paper.values()] == [26, 8, 24, 19, 29]
    for grid in summary.grid_by_paper.values():
        _, *rows = grid
        for kind in ("Table", "Figure"):
            numbers = [int(row[0].split()[1]) for row in rows if row[0].split()[0] == kind]
            assert numbers == list(range(1, len(numbers) + 1))
        for _, here, verdict, title in rows:
            assert title
            assert "seeds" in here or here == "no" or here.startswith("none of ")
            if verdict:
                assert "seeds" in here
    not_judged = [claim for claim in summary.claims if claim.outcome not in JUDGED]
    assert sum(summary.claim_count_by_outcome.values()) == len(summary.distinct_claims) + len(
        not_judged
    )
    picture = summary.plot()
    drawn = [line for line in picture.figure.axes[0].lines if len(line.get_xdata())]
    assert sum(line.get_markersize() > 5 for line in drawn) == sum(
        summary.claim_count_by_outcome.values()
    )
    assert len(drawn) == len(summary.claims) == len(picture.table)


# Slow where it is the first to ask for all tables with their stored results.
@pytest.mark.slow
def test_what_is_not_run_has_a_reason_and_each_reason_is_said_once(low_resolution):
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
    assert {run.dataset for run in runs} == {"heart"}
    assert not why
    assert len(runs) == 7
    assert {run.point.cells[0].plan.settings.partition for run in runs} == {"natural"}
    runs, why = plan_table_runs(load_paper_table("fedlpa:18"), "classroom", "mnist:5k", (0,), {})
    assert {run.dataset for run in runs} == {"mnist:5k"}
    assert not why
    table = load_paper_table("coboosting:9")
    runs, why = plan_table_runs(table, "classroom", "mnist", (0,), {})
    assert {run.dataset for run in runs} == {"mnist:5k"}
    assert len(runs) == 6
    assert len(why) == 12
    runs, _ = plan_table_runs(table, "paper", "mnist", (0,), {})
    assert {run.dataset for run in runs} == {"mnist"}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_no_row_departs_from_its_paper_in_a_rule_that_the_table_does_not_name(name):
    """A rule chooses among ways of doing something. The line under the table is made from the difference."""
    table = load_paper_table(name)
    runs, _ = plan_stored_runs(table, [0])
    changed = describe_knobs_changed_from_paper_setup(table, runs)  # {row: {knob: words}}
    paragraphs = reproduce(name, stored=True).make_paragraphs_and_tables()
    lines = [paragraph for paragraph in paragraphs if paragraph[:4] == "Rows"]
    assert len(lines) <= 1
    line = lines[0] if lines else ""
    named = set()
    for row, words_of_knobs in changed.items():
        for knob, words in words_of_knobs.items():
            assert words in line
            if knob not in NUMBERS:
                is_named_for_all = f"*.{knob}" in table.differs
                named.add(f"*.{knob}" if is_named_for_all else f"{row}.{knob}")
    assert named == set(table.differs)


def test_a_rule_of_ones_own_is_seen_and_the_paper_s_rules_are_no_change():
    table = load_paper_table("coboosting:2")
    runs, _ = plan_table_runs(table, "classroom", "", (0,), {"ensemble.rule": "votes"})
    assert set(describe_knobs_changed_from_paper_setup(table, runs)) > {"FedENS"}
    runs, _ = plan_table_runs(table, "paper", "", (0,), {})
    assert describe_knobs_changed_from_paper_setup(table, runs) == {}


def test_totals_count_pairs_of_runs():
    """FedENS - Co-Boosting was run at three α, and each of them stands for two data sets."""
    coboosting = reproduce("coboosting:2", stored=True)
    fens = reproduce("fens:1", stored=True)
    assert count_distinct_pairs_of_tried_runs(coboosting.orderings) == 3
    assert coboosting.ordering_count_by_verdict["agrees"] == 6
    assert count_distinct_pairs_of_tried_runs(fens.orderings) == 63


def test_the_picture_has_a_dot_for_each_ordering(low_resolution):
    result = reproduce("fens:1", stored=True)
    picture = result.plot()
    counts = result.ordering_count_by_verdict
    tried = counts["agrees"] + counts["disagrees"] + counts["within the noise"]
    assert len(picture.table) == tried
    assert sum(len(line.get_xdata()) for line in picture.figure.axes[0].lines[:3]) == tried
    assert str(result.ordering_count_by_verdict["agrees"]) in picture.sentence
