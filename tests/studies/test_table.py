"""The table of outcomes: dicts to compute with, aligned text in a terminal, a table in a notebook."""

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


def test_it_is_aligned_text_in_a_terminal_and_a_table_in_a_notebook():
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
    assert len({len(line) for line in (head, *lines)}) == 1  # the last column ends together
    page = Table([ROWS[0], {**ROWS[1], "alpha": 1.0}])._repr_html_()
    assert (
        page.startswith("<p>dataset digits") and page.count("<tr>") == 3 and "&lt;fens&gt;" in page
    )
    assert ">alpha</th>" in page and ">dataset</th>" not in page  # what varies is a column
    assert table == ROWS and isinstance(table[:1], Table) and str(Table()) == "No outcomes."


def test_outcomes_show_their_table():
    outs = compare(["local", "fedavg"], clients=3, epochs=1)
    table = outs.table()
    assert (
        table[0] == outs[0].to_json() and repr(outs) == str(table) and "<td" in outs._repr_html_()
    )
    assert f"{100 * outs[1].accuracy:.1f} %" in str(outs) and isinstance(outs, Outcomes)
