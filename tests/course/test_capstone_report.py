"""The capstone's report, and the leaderboard of a class: order, ties, and lines that are no report's."""

import json

import pytest

from fedlab_nb.cli import main
from fedlab_nb.course.capstone.report import Report, Try, leaderboard
from fedlab_nb.errors import RunError, UsageError


# -------------------------------------------------------------------------------------------------------- the report
def report(**changes):
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
    text = report().build_markdown()
    rows = [line for line in text.splitlines() if line.startswith(("| 1", "| 2"))]
    assert rows == [
        "| 1 | FedAvg, one round | as usual | 32.0 ± 5.0 | 52560 | yes |",
        "| 2 | FENS | rounds = 20 | 81.0 ± 2.5 | 99000 | no |",
    ]
    assert (
        text.startswith("# Capstone OAK: Ada | B\n")
        and report().submission_order_in_words in text
        and "- Budget 100 bytes.\n" in text
    )
    assert (
        "247 validation images" in text
        and "Try 1: FedAvg, one round (as usual).\n\n> It is <cheap>" in text
    )
    assert "32.0 ± 5.0 % (95 % band of Student's t, seeds 100–102, 360 test images)" in text
    assert (
        "52560 of 60000 (88 % of the budget)" in text
        and "each client's model" in text
        and "fedlab_nb 1.2" in text
    )
    page = report().build_page_html()
    assert page.startswith("<!doctype html>") and "http" not in page and "<script" not in page
    assert "It is &lt;cheap&gt; &amp; good." in page and "Ada | B" in page
    assert page.count("<th>") == 6 and page.count("<td>") == 12


def test_a_report_is_saved_with_its_line(tmp_path):
    file = report().save(tmp_path / "new")
    names = {p.name for p in file.parent.iterdir()}
    assert names == {f"capstone_OAK_Ada-B_1.{ending}" for ending in ("md", "html", "jsonl")}
    assert file.read_text() == report().build_markdown()
    assert json.loads(file.with_suffix(".jsonl").read_text()) == {
        "format": "fedlab_nb capstone 1", "code": "OAK", "name": "Ada | B", "submission": 1, "method": "fedavg",
        "title": "FedAvg, one round", "knobs": {}, "test": {"100": 0.30, "101": 0.34, "102": 0.32}, "bytes": 52_560,
        "budget": 60_000, "tries": 2, "version": "1.2",
    }  # fmt: skip
    assert report(number=2, earlier=(0.3,)).save(tmp_path / "new") != file
    with pytest.raises(RunError, match="The report cannot be written to"):
        report().save(file)


# --------------------------------------------------------------------------------------------------- the leaderboard
def lines(folder, *reports):
    for i, made in enumerate(reports):
        made.save(folder / str(i))
    return leaderboard(folder)


def handed(name, *shares, **changes):
    return report(name=name, test={100 + i: share for i, share in enumerate(shares)}, **changes)


def test_order_and_ties_of_the_leaderboard(tmp_path):
    made = lines(
        tmp_path,
        handed("Bo", 0.70, 0.72, 0.71, bytes=40_000),
        handed("Ada", 0.80, 0.90, 0.85, bytes=50_000),
        handed("Cy", 0.81, 0.87, 0.84, bytes=30_000),  # within the noise of Ada, with fewer bytes
        handed("Di", 0.60, 0.62, 0.61),
        handed("Ada", 0.99, 0.99, 0.99, number=2, earlier=(0.85,)),
        handed("Eve", 0.50, 0.50, 0.50, code="ELM"),
    )
    assert made.list_code_words() == ["ELM", "OAK"]
    assert [row[:2] for row in made.make_table_rows("OAK")] == [
        ["1=", "Cy"], ["1=", "Ada"], ["3", "Bo"], ["4", "Di"], ["submission 2", "Ada"],
    ]  # fmt: skip
    assert made.describe_shared_ranks("OAK") == [
        "Rank 1 is shared: within the noise of Ada: Cy −1 ± 5 points. Fewer bytes come first.".replace(
            "−", "-"
        )
    ]
    assert made.make_table_rows("ELM") == [
        ["1", "Eve", "FedAvg, one round", "as usual", "50.0 ± 0.0", "52560", "88 %", "2"]
    ]
    assert (
        "OAK: 5 reports, budget 60000 bytes of a client." in repr(made)
        and made.describe_shared_ranks("ELM") == []
    )


def test_the_command_prints_the_table(tmp_path, capsys):
    lines(tmp_path, handed("Ada", 0.8, 0.9, 0.85), handed("Bo", 0.7, 0.8, 0.75))
    one = next((tmp_path / "0").glob("*.jsonl"))
    assert main(["leaderboard", str(tmp_path), str(one), "--table", "markdown"]) == 0
    out = capsys.readouterr().out
    assert (
        "| 1 | Ada | FedAvg, one round |" in out and "| 2 | Bo |" in out and "2 reports" in out
    )  # a copy counts once
    assert main(["leaderboard", str(tmp_path), "--table", "html"]) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "Line 1 of .* is not from a report: it is not JSON"),
        ('{"a": 1}', "does not begin with the format"),
        ('{"format": "fedlab_nb capstone 1"}', "no 'test'"),
        (report().build_leaderboard_line().replace("0.34", "34"), "not shares from 0 to 1"),
        (
            report().build_leaderboard_line().replace("52560", "60001"),
            "60001 bytes of a budget of 60000",
        ),
        ("", "There is no report in"),
    ],
)
def test_what_is_no_report_is_one_sentence(tmp_path, capsys, text, words):
    (tmp_path / "a.jsonl").write_text(text + "\n")
    assert main(["leaderboard", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and err.strip().endswith(".")
    with pytest.raises(UsageError, match=words):
        leaderboard(tmp_path)
