"""The capstone's report, and the leaderboard of a class: order, ties, and lines that are no report's."""

import json

import pytest

from fedlab_nb.cli import main
from fedlab_nb.course.capstone.report import Report, Try, leaderboard
from fedlab_nb.errors import RunError, UsageError


# -------------------------------------------------------------------------------------------------------- the report
def make_report(**changes):
    tries = (
        Try(1, "fedavg", {}, {0: 0.30, 1: 0.34, 2: 0.32}, 52_560),
        Try(2, "fens", {"rounds": "20"}, {0: 0.80, 1: 0.82, 2: 0.81}, 99_000),
    )
    fields = {
        "code": "OAK", "name": "Ada | B", "number": 1, "facts": ("2 clients.", "Budget 100 bytes."), "tries": tries,
        "validation_images": 247, "choice": 1, "argument": "It is <cheap> & good.", "bytes": 52_560, "budget": 60_000,
        "test": {100: 0.30, 101: 0.34, 102: 0.32}, "test_images": 360, "leaks": "each client's model", "version": "1.2",
    }  # fmt: skip
    return Report(**{**fields, **changes})


def test_the_report_has_every_number():
    report = make_report()
    text = report.build_markdown()
    rows = [line for line in text.splitlines() if line.startswith(("| 1", "| 2"))]
    assert rows == [
        "| 1 | FedAvg, one round | as usual | 32.0 ± 5.0 | 52560 | yes |",
        "| 2 | FENS | rounds = 20 | 81.0 ± 2.5 | 99000 | no |",
    ]
    assert text.startswith("# Capstone OAK: Ada | B\n")
    assert report.submission_order_in_words in text
    assert "- Budget 100 bytes.\n" in text
    assert "247 validation images" in text
    assert "Try 1: FedAvg, one round (as usual).\n\n> It is <cheap>" in text
    assert "32.0 ± 5.0 % (95 % band of Student's t, seeds 100–102, 360 test images)" in text
    assert "52560 of 60000 (88 % of the budget)" in text
    assert "each client's model" in text
    assert "fedlab_nb 1.2" in text
    page = report.build_page_html()
    assert page.startswith("<!doctype html>")
    assert "http" not in page
    assert "<script" not in page
    assert "It is &lt;cheap&gt; &amp; good." in page
    assert "Ada | B" in page
    assert page.count("<th>") == 6
    assert page.count("<td>") == 12


def test_a_report_is_saved_with_its_line_for_the_leaderboard(tmp_path):
    report = make_report()
    file = report.save(tmp_path / "new")
    names = {path.name for path in file.parent.iterdir()}
    assert names == {f"capstone_OAK_Ada-B_1.{ending}" for ending in ("md", "html", "jsonl")}
    assert file.read_text() == report.build_markdown()
    assert json.loads(file.with_suffix(".jsonl").read_text()) == {
        "format": "fedlab_nb capstone 1", "code": "OAK", "name": "Ada | B", "submission": 1, "method": "fedavg",
        "title": "FedAvg, one round", "knobs": {}, "test": {"100": 0.30, "101": 0.34, "102": 0.32}, "bytes": 52_560,
        "budget": 60_000, "tries": 2, "version": "1.2",
    }  # fmt: skip
    assert make_report(number=2, earlier=(0.3,)).save(tmp_path / "new") != file
    with pytest.raises(RunError, match="The report cannot be written to"):
        report.save(file)


# --------------------------------------------------------------------------------------------------- the leaderboard
def save_reports(folder, *reports):
    for i, report in enumerate(reports):
        report.save(folder / str(i))


def make_report_of(name, *test_accuracies, **changes):
    test = {100 + i: accuracy for i, accuracy in enumerate(test_accuracies)}
    return make_report(name=name, test=test, **changes)


def test_order_and_ties_of_the_leaderboard(tmp_path):
    save_reports(
        tmp_path,
        make_report_of("Bo", 0.70, 0.72, 0.71, bytes=40_000),
        make_report_of("Ada", 0.80, 0.90, 0.85, bytes=50_000),
        # within the noise of Ada, with fewer bytes
        make_report_of("Cy", 0.81, 0.87, 0.84, bytes=30_000),
        make_report_of("Di", 0.60, 0.62, 0.61),
        make_report_of("Ada", 0.99, 0.99, 0.99, number=2, earlier=(0.85,)),
        make_report_of("Eve", 0.50, 0.50, 0.50, code="ELM"),
    )
    board = leaderboard(tmp_path)
    assert board.list_code_words() == ["ELM", "OAK"]
    assert [row[:2] for row in board.make_ranked_rows_without_header("OAK")] == [
        ["1=", "Cy"], ["1=", "Ada"], ["3", "Bo"], ["4", "Di"], ["submission 2", "Ada"],
    ]  # fmt: skip
    assert board.describe_shared_ranks("OAK") == [
        "Rank 1 is shared: within the noise of Ada: Cy -1 ± 5 points. Fewer bytes come first."
    ]
    assert board.make_ranked_rows_without_header("ELM") == [
        ["1", "Eve", "FedAvg, one round", "as usual", "50.0 ± 0.0", "52560", "88 %", "2"]
    ]
    assert "OAK: 5 reports, budget 60000 bytes of a client." in repr(board)
    assert board.describe_shared_ranks("ELM") == []


def test_the_command_prints_the_table_and_counts_a_copy_once(tmp_path, capsys):
    ada = make_report_of("Ada", 0.8, 0.9, 0.85)
    bo = make_report_of("Bo", 0.7, 0.8, 0.75)
    save_reports(tmp_path, ada, bo)
    file_of_ada = next((tmp_path / "0").glob("*.jsonl"))
    assert main(["leaderboard", str(tmp_path), str(file_of_ada), "--table", "markdown"]) == 0
    out = capsys.readouterr().out
    assert "| 1 | Ada | FedAvg, one round |" in out
    assert "| 2 | Bo |" in out
    assert "2 reports" in out
    assert main(["leaderboard", str(tmp_path), "--table", "html"]) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "Line 1 of .* is not from a report: it is not JSON"),
        ('{"a": 1}', "does not begin with the format"),
        ('{"format": "fedlab_nb capstone 1"}', "no 'test'"),
        (
            make_report().build_leaderboard_json_line().replace("0.34", "34"),
            "not shares from 0 to 1",
        ),
        (
            make_report().build_leaderboard_json_line().replace("52560", "60001"),
            "60001 bytes of a budget of 60000",
        ),
        ("", "There is no report in"),
    ],
)
def test_a_file_that_is_not_from_a_report_is_one_sentence(tmp_path, capsys, text, words):
    (tmp_path / "a.jsonl").write_text(text + "\n")
    assert main(["leaderboard", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.strip().endswith(".")
    with pytest.raises(UsageError, match=words):
        leaderboard(tmp_path)
