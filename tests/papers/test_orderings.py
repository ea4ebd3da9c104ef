"""The verdicts, against an example worked by hand; and every ordering exactly once."""

import dataclasses
import itertools
import math

import pytest

from fedlab_nb.papers import published
from fedlab_nb.papers.claims import (
    NOT_CLAIMED,
    TWO_WAYS,
    find_claims_of_papers_own_method,
    keep_each_result_in_first_judged_claim,
)
from fedlab_nb.papers.published import (
    TABLES,
    VERDICTS,
    PaperTable,
    PublishedNumber,
    TableColumn,
    TableRow,
    list_pairwise_orderings_in_columns,
    load_paper_table,
)
from fedlab_nb.papers.reproduction import Reproduction, describe_verdicts_of_all_and_clear_orderings


def make_small_table(runs=3, less_is_better=False, **fields):
    """One column, four methods: A 60 ± 3, B 50 ± 4, C 50 ± 1, D 40 ± 12."""
    printed = {"A": "60±3", "B": "50±4", "C": "50±1", "D": "40±12"}
    numbers = {name: PublishedNumber.parse(text) for name, text in printed.items()}
    rows = {name: TableRow(name, "fedavg") for name in numbers}
    column = TableColumn("cifar10", (("alpha", 0.1),), numbers)
    fields["less_is_better"] = less_is_better
    return PaperTable("t", "T", "P", 1, "accuracy", runs, "fens", rows, (column,), **fields)


# Three seeds, t(2) = 4.30. A - B: 10, 11, 12 points: 11 ± 4.30 * 1 / sqrt(3) = 11 ± 2.5, clear, as published.
# C - D is published, D is ahead by 5, 6, 7 here: it disagrees. A - C: -1, 0, 2: 0.3 ± 3.8, noise. B - C: a tie.
OURS = {
    ("A", 0): {0: 0.60, 1: 0.61, 2: 0.62},
    ("B", 0): {0: 0.50, 1: 0.50, 2: 0.50},
    ("C", 0): {0: 0.61, 1: 0.61, 2: 0.60},
    ("D", 0): {0: 0.66, 1: 0.67, 2: 0.67},
}


def test_verdicts_worked_by_hand():
    by_pair = {
        (o.better, o.worse): o
        for o in list_pairwise_orderings_in_columns(make_small_table(), OURS, {}, {})
    }
    verdicts = {pair: o.verdict for pair, o in by_pair.items()}
    assert verdicts == {
        ("A", "B"): "agrees", ("A", "C"): "within the noise", ("A", "D"): "disagrees",
        ("B", "C"): "tie in the paper", ("B", "D"): "disagrees", ("C", "D"): "disagrees",
    }  # fmt: skip
    gap = by_pair["A", "B"].ours
    assert gap.mean == pytest.approx(0.11)
    assert gap.half_width == pytest.approx(4.3027 * 0.01 / math.sqrt(3), rel=1e-4)
    # Welch from the printed spreads: A - B 10 beyond 8.27; A - D 20 within t(2.25) = 3.88 times sqrt(3 + 48).
    assert by_pair["A", "B"].is_clear_in_paper
    assert not by_pair["C", "D"].is_clear_in_paper
    assert not by_pair["A", "D"].is_clear_in_paper
    assert {
        o.is_clear_in_paper
        for o in list_pairwise_orderings_in_columns(make_small_table(runs=0), OURS, {}, {})
    } == {None}


def test_where_less_is_better_every_ordering_is_reversed():
    table = make_small_table(less_is_better=True)
    by_pair = {
        (o.better, o.worse): o for o in list_pairwise_orderings_in_columns(table, OURS, {}, {})
    }
    assert by_pair["B", "A"].verdict == "agrees"
    assert by_pair["B", "A"].ours.mean == pytest.approx(0.11)
    assert by_pair["D", "C"].verdict == "disagrees"


def test_one_seed_decides_nothing_and_what_was_not_run_says_why():
    one_seed = {place: {0: values[0]} for place, values in OURS.items() if place[0] != "D"}
    orderings = list_pairwise_orderings_in_columns(
        make_small_table(), one_seed, {("D", 0): "it was too slow"}, {}
    )
    by_pair = {(o.better, o.worse): o for o in orderings}
    assert by_pair["A", "B"].verdict == by_pair["A", "D"].verdict == "not compared"
    assert by_pair["A", "B"].why == "one seed"
    assert by_pair["A", "D"].why == "it was too slow"


def test_claims_worked_by_hand():
    """A is the paper's own: ahead of B by 10, of C by 10, of D by 20 there; here +11 ± 2.5, +0.3 ± 3.8, -5.7 ± 1.4."""
    table = make_small_table(own="A")
    claims = find_claims_of(table, OURS)
    assert [(c.better, c.worse, c.outcome) for c in claims] == [
        ("A", "B", "holds"), ("A", "C", "within the noise"), ("A", "D", "reversed")
    ]  # fmt: skip
    assert [c.ours.mean for c in claims] == pytest.approx([0.11, 0.01 / 3, -0.17 / 3], abs=1e-5)
    assert find_claims_of(make_small_table(), OURS) == []  # no row is the paper's own
    assert [c.outcome for c in find_claims_of(table, {})] == ["not tried"] * 3
    claims = find_claims_of(make_small_table(own="A", less_is_better=True), OURS)
    assert [(c.better, c.outcome) for c in claims] == [
        ("B", "holds"), ("C", "within the noise"), ("D", "reversed"),
    ]  # fmt: skip


def find_claims_of(table, values):
    return find_claims_of_papers_own_method(
        table, list(list_pairwise_orderings_in_columns(table, values, {}, {})), values
    )


def make_two_row_table(paper_gaps, our_gaps, **fields):
    """A table of A, the paper's own, and B; and our values of it.

    paper_gaps: for each column, by how many points A is ahead in the paper
    our_gaps: for each column, by which share A is ahead of B here, a tenth of a point more in the
        second of two seeds; None without a run
    """
    columns = []
    values = {}
    for place, (paper_gap, our_gap) in enumerate(zip(paper_gaps, our_gaps, strict=True)):
        numbers = {
            "A": PublishedNumber.parse(str(50 + paper_gap)),
            "B": PublishedNumber.parse("50"),
        }
        columns.append(TableColumn(str(place), (("alpha", 0.1),), numbers))
        if our_gap is not None:
            values["A", place] = {0: 0.5 + our_gap, 1: 0.501 + our_gap}
            values["B", place] = {0: 0.5, 1: 0.5}
    rows = {"A": TableRow("A", "fens"), "B": TableRow("B", "fedavg")}
    fields["own"] = "A"
    table = PaperTable("t", "T", "P", 1, "in %", 0, "fens", rows, tuple(columns), **fields)
    return table, values


def judge(paper_gaps, our_gaps, same_runs=(), name="t", **fields):
    """The claims of such a table.

    same_runs: places that have one run of A and one of B
    name: tables of another name have other runs
    """
    table, values = make_two_row_table(paper_gaps, our_gaps, **fields)
    runs = {}
    for row, place in values:
        runs[row, place] = (name, row, "same" if place in same_runs else place)
    return find_claims_of_papers_own_method(
        table, list(list_pairwise_orderings_in_columns(table, values, {}, runs)), values
    )


def list_outcomes(paper_gaps, our_gaps):
    return [claim.outcome for claim in judge(paper_gaps, our_gaps)]


def test_a_claim_is_the_mean_over_the_columns_and_a_run_counts_once():
    """Two columns that stand on the same runs, and one of its own: A is ahead by 2, 2 and 6 here, by a 20th more."""
    (claim,) = judge((4, 4, 2), (0.02, 0.02, 0.06), same_runs=(0, 1))
    assert (claim.better, claim.outcome) == ("A", "holds")
    assert claim.ours.mean == pytest.approx(0.0405)
    assert len(claim.results) == len(claim.lead_band_of_each_result) == 2


CLEAR = (0.02, 0.06)  # A is ahead by 2.05 ± 0.64 points, and by 6.05 ± 0.64


def test_each_column_is_judged_by_the_papers_sign_in_it():
    assert list_outcomes((4, 2), CLEAR) == ["holds"]
    assert list_outcomes((-4, -2), CLEAR) == ["reversed"]
    # A is ahead in one of them there, in both here: two claims.
    assert list_outcomes((4, -2), CLEAR) == ["holds", "reversed"]
    assert list_outcomes((4, 2), (0.06, -0.02)) == ["mixed"]
    assert list_outcomes((4, 2), (0.06, 0)) == ["holds"]  # the other one is within the noise


def test_two_leaders_are_two_claims():
    """The row that a claim names first is ahead in all of its columns there."""
    first, second = judge((4, -2, 3), (0.06, -0.02, 0.04))  # all as published
    assert (first.better, first.worse, first.outcome) == ("A", "B", "holds")
    assert (second.better, second.worse, second.outcome) == ("B", "A", "holds")
    assert first.ours.mean == pytest.approx((0.0605 + 0.0405) / 2)
    assert second.ours.mean == pytest.approx(0.0195)
    for claim in (first, second):
        assert {ordering.better for ordering in claim.orderings} == {claim.better}
        assert len(claim.results) == len(claim.orderings)
    assert first.key != second.key
    untried = judge((4, -2), (None, None))
    assert [(claim.better, claim.outcome) for claim in untried] == [
        ("A", "not tried"),
        ("B", "not tried"),
    ]


def test_a_column_counts_where_the_papers_own_numbers_say_who_is_ahead():
    """Of two shares of 10,000 images at 50 % and 51 %, 1.96 standard errors of the difference are 1.386 points."""
    table, _ = make_two_row_table((1, 1.3, 1.4, 2), (None,) * 4)
    claimed = [
        ordering.is_claimed for ordering in list_pairwise_orderings_in_columns(table, {}, {}, {})
    ]
    assert claimed == [False, False, True, True]
    assert list_outcomes((4, 1), (0.06, -0.02)) == ["holds"]  # 1 point there says nothing
    assert list_outcomes((1, 1), CLEAR) == [NOT_CLAIMED]
    assert list_outcomes((0,), (0.02,)) == [NOT_CLAIMED]
    # With spreads, the intervals as they are printed: 60 ± 3 and 50 ± 4, 50 ± 1; 40 ± 12 reaches up to 52.
    by_pair = {
        (o.better, o.worse): o.is_claimed
        for o in list_pairwise_orderings_in_columns(make_small_table(), OURS, {}, {})
    }
    assert by_pair == {
        ("A", "B"): True, ("A", "C"): True, ("A", "D"): True,
        ("B", "C"): False, ("B", "D"): False, ("C", "D"): False,
    }  # fmt: skip


def test_a_run_that_stands_for_columns_of_two_signs_does_not_count():
    """One run of ours cannot agree with a paper that has A ahead on one data set and B on another one."""
    (claim,) = judge((4, -9), (0.02, 0.02), same_runs=(0, 1))
    assert (claim.outcome, claim.why) == (NOT_CLAIMED, TWO_WAYS)
    (claim,) = judge((4, -9, 3), (0.02, 0.02, -0.06), same_runs=(0, 1))
    assert (claim.better, claim.outcome, len(claim.lead_band_of_each_result)) == (
        "A",
        "reversed",
        1,
    )


def test_the_columns_that_count_say_who_is_ahead():
    (claim,) = judge((2, -9), (0.02, None))  # all columns: B; the compared one: A
    assert (claim.better, claim.worse, claim.outcome) == ("A", "B", "holds")
    (claim,) = judge((-2, -9), (None, None))
    assert (claim.better, claim.outcome, claim.results) == ("B", "not tried", ())
    assert judge((4,), (0.02,), inferred=["B"]) == []


def test_a_number_that_is_quoted_from_another_paper_is_no_claim_in_its_column():
    table, values = make_two_row_table((4, 4), (0.02, 0.06))
    first, second = table.columns
    quoted = dataclasses.replace(second, quoted=frozenset({"B"}))
    table = dataclasses.replace(table, columns=(first, quoted))
    orderings = list(list_pairwise_orderings_in_columns(table, values, {}, {}))
    assert [ordering.verdict for ordering in orderings] == ["agrees", "not compared"]
    assert orderings[1].why == "B: its published number is another paper's, of another setting"
    (claim,) = find_claims_of_papers_own_method(table, orderings, values)
    assert claim.outcome == "holds" and claim.ours.mean == pytest.approx(0.0205)
    table = dataclasses.replace(table, columns=(quoted,))
    assert (
        find_claims_of_papers_own_method(
            table, list(list_pairwise_orderings_in_columns(table, values, {}, {})), values
        )
        == []
    )


def test_a_result_that_two_tables_have_counts_once():
    """It is known by its numbers, under whatever name a method does the same, and by its runs, whose stored numbers can
    differ by rounding."""
    (wide,) = judge((4, 2), (0.02, 0.06), name="wide")
    # the other way round: a repetition all the same
    (again,) = judge((-4,), (0.02,), name="again")
    (untried,) = judge((4,), (None,))
    (more,) = judge((4, 4), (0.02, 0.03), name="more")  # one that is known, and one that is new
    (rounded,) = judge((4,), (0.0203,), name="wide")  # the runs of `wide`
    (other,) = judge((4,), (0.0203,), name="other")
    assert again.outcome == "reversed" and len(more.results) == 2
    counted = keep_each_result_in_first_judged_claim([wide, again, untried, more, rounded])
    assert [claim.table for claim in counted] == [wide.table, more.table]
    assert counted[0] == wide
    # Of `more` the result that `wide` does not have is left: 3.05 points.
    assert counted[1].results == more.results[1:]
    assert counted[1].ours.mean == pytest.approx(0.0305)
    assert more.ours.mean == pytest.approx(0.0255)
    assert keep_each_result_in_first_judged_claim([wide, other]) == [wide, other]
    counted = keep_each_result_in_first_judged_claim([again, wide, wide])
    assert [claim.results for claim in counted] == [again.results, wide.results[1:]]
    assert keep_each_result_in_first_judged_claim([untried]) == []


def test_two_rows_that_are_the_same_run_are_not_compared():
    table, values = make_two_row_table((4,), (0.02,))
    runs = {("A", 0): "one run", ("B", 0): "one run"}
    (ordering,) = list_pairwise_orderings_in_columns(table, values, {}, runs)
    assert (ordering.verdict, ordering.why) == ("not compared", "both rows are the same run here")


def test_a_row_that_repeats_the_numbers_of_another_one_is_no_second_result():
    table, values = make_two_row_table((4,), (0.02,))
    rows = {**table.rows, "C": TableRow("C", "scaffold")}
    column = table.columns[0]
    numbers = {**column.numbers, "C": column.numbers["B"]}
    table = dataclasses.replace(
        table, rows=rows, columns=(dataclasses.replace(column, numbers=numbers),)
    )
    values = {**values, ("C", 0): dict(values["B", 0])}
    claims = find_claims_of(table, values)
    assert [claim.worse for claim in claims] == ["B", "C"]
    assert [claim.worse for claim in keep_each_result_in_first_judged_claim(claims)] == ["B"]


def test_what_is_of_another_comparison_is_not_judge():
    table, values = make_two_row_table((4, 4), (0.02, 0.06))
    differences = {("B", 1): "rounds = 20 here, 100 in the paper"}
    orderings = list(list_pairwise_orderings_in_columns(table, values, {}, {}, differences))
    assert [ordering.verdict for ordering in orderings] == ["agrees", "not compared"]
    assert orderings[1].why == "B: rounds = 20 here, 100 in the paper"
    (claim,) = find_claims_of_papers_own_method(table, orderings, values)
    assert claim.outcome == "holds"
    assert claim.ours.mean == pytest.approx(0.0205)
    differences = {("A", 0): "x", ("B", 1): "y"}
    orderings = list(list_pairwise_orderings_in_columns(table, values, {}, {}, differences))
    (claim,) = find_claims_of_papers_own_method(table, orderings, values)
    assert (claim.outcome, claim.why) == ("not comparable", "A: x; B: y")


def test_rows_of_another_quantity_are_no_pair():
    table, values = make_two_row_table((4,), (0.02,))
    rows = {**table.rows, "B": dataclasses.replace(table.rows["B"], quantity="bytes")}
    table = dataclasses.replace(table, rows=rows)
    assert list(list_pairwise_orderings_in_columns(table, values, {}, {})) == []
    assert find_claims_of(table, values) == []


@pytest.mark.parametrize("name", TABLES)
def test_every_ordering_is_listed_exactly_once(name):
    table = load_paper_table(name)

    def get_quantity(row):
        return table.rows[row].compared_as or table.get_quantity_name(row)

    expected = set()
    for place, column in enumerate(table.columns):
        if not column.is_shown_only:
            for row, other in itertools.combinations(column.numbers, 2):
                if get_quantity(row) == get_quantity(other):
                    expected.add((place, frozenset((row, other))))
    orderings = list(list_pairwise_orderings_in_columns(table, {}, {}, {}))
    listed = [(table.columns.index(o.column), frozenset((o.better, o.worse))) for o in orderings]
    assert table.own in ("", *table.rows)
    assert len(listed) == len(expected)
    assert set(listed) == expected
    for ordering in orderings:
        better = ordering.column.numbers[ordering.better].mean
        worse = ordering.column.numbers[ordering.worse].mean
        assert better <= worse if table.less_is_better else better >= worse
        assert ordering.verdict in ("not compared", "tie in the paper")


def test_the_words_are_made_from_the_verdicts():
    result = Reproduction(make_small_table(), "classroom", (0, 1, 2), OURS, {})
    counts = dict(zip(VERDICTS, (1, 3, 1, 1, 0), strict=True))
    assert result.ordering_count_by_verdict == counts
    assert published.count_orderings_by_verdict(result.orderings) == counts
    assert published.count_distinct_pairs_of_tried_runs(result.orderings) == 5
    verdicts = "agrees 1, disagrees 3, within the noise 1, tie in the paper 1"
    assert published.describe_verdict_counts(result.orderings) == verdicts
    assert describe_verdicts_of_all_and_clear_orderings(result.orderings).startswith("6 orderings")
    shown = ("60 ± 3", "61.0 ± 2.5", verdicts, "agrees 1, within the noise 1.", "5 pairs of runs")
    for words in shown:
        assert words in repr(result)
        assert words in result._repr_html_()
    assert len(result.listing().splitlines()) == 1 + 6
