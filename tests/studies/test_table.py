"""The table of outcomes: a list of dicts, aligned text in a terminal, HTML in a notebook."""

import numpy as np
import pandas
import pytest

from fedlab_nb.cli import main
from fedlab_nb.studies import Outcomes, Table, compare

ROW = {
    "dataset": "digits",
    "alpha": 0.1,
    "clients": 10,
    "preset": "classroom",
    "device": "cpu",
    "partition": "iid",
}
ROWS = [
    {
        "method": "fedavg",
        "seed": 0,
        **ROW,
        "accuracy": 0.8342,
        "bytes_up": 262800,
        "bytes_down": 0,
        "cached": True,
    },
    {
        "method": "<fens>",
        "seed": 11,
        **ROW,
        "accuracy": 0.9,
        "bytes_up": 1_500_000,
        "bytes_down": 26280,
    },
]


def test_a_table_is_aligned_text_in_a_terminal_and_html_in_a_notebook():
    table = Table(ROWS)
    shared, head, *lines = str(table).splitlines()
    assert (
        shared
        == "dataset digits, partition iid, alpha 0.1, clients 10, preset classroom, device cpu"
    )
    assert head.split() == ["method", "seed", "accuracy", "up", "down"]
    assert [line.split()[:4] for line in lines] == [
        ["fedavg", "0", "83.4", "%"],
        ["<fens>", "11", "90.0", "%"],
    ]
    assert len({len(line) for line in (head, *lines)}) == 1  # the last column is aligned
    page = Table([ROWS[0], {**ROWS[1], "alpha": 1.0}])._repr_html_()
    assert (
        page.startswith("<p>dataset digits") and page.count("<tr>") == 3 and "&lt;fens&gt;" in page
    )
    assert ">alpha</th>" in page and ">dataset</th>" not in page  # values that differ are a column
    assert table == ROWS and isinstance(table[:1], Table) and str(Table()) == "No outcomes."


def test_outcomes_show_their_table():
    outs = compare(["local", "fedavg"], clients=3, epochs=1)
    table = outs.table()
    assert (
        table[0] == outs[0].to_json() and repr(outs) == str(table) and "<td" in outs._repr_html_()
    )
    assert f"{100 * outs[1].accuracy:.1f} %" in str(outs) and isinstance(outs, Outcomes)


def test_with_unequal_classes_balanced_accuracy_comes_first_and_there_is_a_confusion_table(
    tmp_path, capsys
):
    rng = np.random.default_rng(1)
    ill = np.arange(200) % 8 == 0
    rows = pandas.DataFrame(
        {"a": rng.normal(size=200) + 3 * ill, "ill": np.where(ill, "yes", "no")}
    )
    rows.to_csv(tmp_path / "mine.csv", index=False)
    settings = {"dataset": tmp_path / "mine.csv", "clients": 2, "epochs": 5, "alpha": 10}
    outs = compare(["fedavg", "afl"], **settings)
    head = outs.table().make_paragraphs_and_tables()[-1][0]
    assert head.index("balanced accuracy") + 1 == head.index("accuracy")
    assert outs.table()[:1].make_paragraphs_and_tables()[-1][0] == head
    for out in outs:
        table = out.confusion()
        assert table.to_numpy().sum() == len(out.test_labels)
        assert np.trace(table) / table.to_numpy().sum() == pytest.approx(out.accuracy)
        shares = np.diag(table) / table.sum(axis=1)
        assert shares.mean() == pytest.approx(out.balanced_accuracy)
        assert list(table.index) == list(table.columns) == ["no", "yes"]
    even = compare(["fedavg"], clients=2, epochs=1, share=0.2)
    assert "balanced accuracy" not in even.table().make_paragraphs_and_tables()[-1][0]
    command = ["run", "fedavg", "--dataset", str(tmp_path / "mine.csv"), "--clients", "2"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert text.index("balanced accuracy") < text.index("  accuracy") < text.index("which answer")
