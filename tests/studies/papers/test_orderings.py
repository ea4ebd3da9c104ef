"""The verdicts, against an example worked by hand; and every ordering exactly once."""

import dataclasses
import itertools
import math

import pytest

from fedlab_nb.studies.papers import published
from fedlab_nb.studies.papers.published import (
    TABLES,
    VERDICTS,
    Column,
    Number,
    PaperTable,
    Row,
    claims,
    orderings,
    paper_table,
)
from fedlab_nb.studies.papers.reproduction import Reproduction, totals


def small(runs=3, less=False):
    """One column, four methods: A 60 ± 3, B 50 ± 4, C 50 ± 1, D 40 ± 12."""
    published = {name: Number.of(text) for name, text in {"A": "60±3", "B": "50±4", "C": "50±1", "D": "40±12"}.items()}
    rows = {name: Row(name, "fedavg") for name in published}
    column = Column("cifar10", (("alpha", 0.1),), published)
    return PaperTable("t", "T", "P", 1, "accuracy", runs, "fens", rows, (column,), less_is_better=less)


# Three seeds, t(2) = 4.30. A - B: 10, 11, 12 points: 11 ± 4.30 * 1 / sqrt(3) = 11 ± 2.5, clear, as published.
# C - D is published, D is ahead by 5, 6, 7 here: it disagrees. A - C: -1, 0, 2: 0.3 ± 3.8, noise. B - C: a tie.
OURS = {
    ("A", 0): {0: 0.60, 1: 0.61, 2: 0.62},
    ("B", 0): {0: 0.50, 1: 0.50, 2: 0.50},
    ("C", 0): {0: 0.61, 1: 0.61, 2: 0.60},
    ("D", 0): {0: 0.66, 1: 0.67, 2: 0.67},
}


def test_verdicts_worked_by_hand():
    by_pair = {(o.better, o.worse): o for o in orderings(small(), OURS, {}, {})}
    verdicts = {pair: o.verdict for pair, o in by_pair.items()}
    assert verdicts == {
        ("A", "B"): "agrees", ("A", "C"): "within the noise", ("A", "D"): "disagrees",
        ("B", "C"): "tie in the paper", ("B", "D"): "disagrees", ("C", "D"): "disagrees",
    }  # fmt: skip
    gap = by_pair["A", "B"].ours
    assert gap.mean == pytest.approx(0.11) and gap.half_width == pytest.approx(4.3027 * 0.01 / math.sqrt(3), rel=1e-4)
    # Welch from the printed spreads: A - B 10 beyond 8.27; A - D 20 within t(2.25) = 3.88 times sqrt(3 + 48).
    clear = {pair for pair, o in by_pair.items() if o.clear_there}
    assert ("A", "B") in clear and ("C", "D") not in clear and ("A", "D") not in clear
    assert {o.clear_there for o in orderings(small(runs=0), OURS, {}, {})} == {None}


def test_where_less_is_better_all_turns_round():
    by_pair = {(o.better, o.worse): o for o in orderings(small(less=True), OURS, {}, {})}
    assert by_pair["B", "A"].verdict == "agrees" and by_pair["B", "A"].ours.mean == pytest.approx(0.11)
    assert by_pair["D", "C"].verdict == "disagrees"


def test_one_seed_decides_nothing_and_what_was_not_run_says_why():
    one = {at: {0: values[0]} for at, values in OURS.items() if at[0] != "D"}
    by_pair = {(o.better, o.worse): o for o in orderings(small(), one, {("D", 0): "it was too slow"}, {})}
    assert by_pair["A", "B"].verdict == by_pair["A", "D"].verdict == "not run"
    assert (by_pair["A", "B"].why, by_pair["A", "D"].why) == ("one seed", "it was too slow")


def test_claims_worked_by_hand():
    """A is the paper's own: ahead of B by 10, of C by 10, of D by 20 there; here +11 ± 2.5, +0.3 ± 3.8, -5.7 ± 1.4."""
    table = dataclasses.replace(small(), own="A")
    made = claims(table, list(orderings(table, OURS, {}, {})), OURS)
    assert [(c.better, c.worse, c.outcome) for c in made] == [
        ("A", "B", "holds"), ("A", "C", "within the noise"), ("A", "D", "reversed")
    ]  # fmt: skip
    assert [c.ours.mean for c in made] == pytest.approx([0.11, -0.00333 + 0.0066667, -0.0566667], abs=1e-5)
    assert claims(small(), list(orderings(small(), OURS, {}, {})), OURS) == []  # no row is the paper's own
    untried = claims(table, list(orderings(table, {}, {}, {})), {})
    assert [c.outcome for c in untried] == ["not tried"] * 3
    less = dataclasses.replace(small(less=True), own="A")  # A sends most, there and here
    made = claims(less, list(orderings(less, OURS, {}, {})), OURS)
    assert [(c.better, c.outcome) for c in made] == [("B", "holds"), ("C", "within the noise"), ("D", "reversed")]


def test_a_claim_is_the_mean_over_the_columns_and_a_run_counts_once():
    """Two columns that stand on the same runs, and one of its own: A is ahead by 4 and by -1 there, by 2 and 6 here."""
    numbers = [{"A": Number.of(str(50 + gap)), "B": Number.of("50")} for gap in (4, 4, -1)]
    columns = tuple(Column(d, (("alpha", 0.1),), of) for d, of in zip("xyz", numbers, strict=True))
    table = PaperTable(
        "t", "T", "P", 1, "", 0, "fens", {n: Row(n, m) for n, m in (("A", "fens"), ("B", "fedavg"))}, columns, own="A"
    )
    values = {("A", p): {0: 0.5 + gap, 1: 0.501 + gap} for p, gap in enumerate((0.02, 0.02, 0.06))}
    values |= {("B", p): {0: 0.5, 1: 0.5} for p in range(3)}
    of = orderings(table, values, {}, {("A", 1): ("A", 0), ("B", 1): ("B", 0)})
    (claim,) = claims(table, list(of), values)
    assert (claim.better, claim.outcome) == ("A", "holds") and claim.ours.mean == pytest.approx(0.0405)


@pytest.mark.parametrize("name", TABLES)
def test_every_ordering_is_listed_exactly_once(name):
    table = paper_table(name)
    expected = {
        (place, frozenset(pair))
        for place, column in enumerate(table.columns)
        if not column.plain
        for pair in itertools.combinations(column.numbers, 2)
    }
    listed = [(table.columns.index(o.column), frozenset((o.better, o.worse))) for o in orderings(table, {}, {}, {})]
    assert table.own in ("", *table.rows)
    assert len(listed) == len(expected) and set(listed) == expected
    for o in orderings(table, {}, {}, {}):
        ahead = o.column.numbers[o.better].mean - o.column.numbers[o.worse].mean
        assert (ahead <= 0 if table.less_is_better else ahead >= 0) and o.verdict in ("not run", "tie in the paper")


def test_the_words_are_made_from_the_verdicts():
    result = Reproduction(small(), "classroom", "digits", (0, 1, 2), OURS, {})
    assert result.counts == dict(zip(VERDICTS, (1, 3, 1, 1, 0), strict=True)) == published.counts(result.orderings)
    assert published.pairs(result.orderings) == 5
    verdicts = "agrees 1, disagrees 3, within the noise 1, tie in the paper 1"
    assert published.tally(result.orderings) == verdicts and totals(result.orderings).startswith("6 orderings")
    for shown in ("60 ± 3", "61.0 ± 2.5", verdicts, "agrees 1, within the noise 1.", "5 pairs of runs"):
        assert shown in repr(result) and shown in result._repr_html_()
    assert len(result.listing().splitlines()) == 1 + 6
