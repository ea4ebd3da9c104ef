"""The papers' tables as data: a sample typed by hand from the papers, and what every table must hold."""

import math
import re
from types import SimpleNamespace

import pytest

import fedlab_nb as fl
from fedlab_nb.declared import read_toml
from fedlab_nb.methods import METHODS
from fedlab_nb.papers.cells import MEASURES, plan_table_runs, raise_unless_overrides_fit_table
from fedlab_nb.papers.published import (
    TABLES,
    PublishedNumber,
    describe_tables_and_figures_not_run,
    load_paper_table,
)
from fedlab_nb.studies.grid import Study

# (table, row, data set, setting, mean, spread), typed from the papers: corners, and what is easily mixed up.
SAMPLE = [
    ("fens:1", "FedAvg", "cifar100", "alpha = 0.01", 4.22, 0.33),
    ("fens:1", "FENS", "svhn", "alpha = 0.1", 83.64, 0.75),
    ("fens:1", "FedCVAE", "svhn", "alpha = 0.01", 69.71, 0.21),
    ("fens:1", "Co-Boosting", "cifar10", "alpha = 0.05", 41.25, 5.88),
    ("fedet:2", "MOON", "cifar10", "alpha = 0.5", 81.17, 0.41),
    ("fedet:2", "Fed-ET", "cifar100", "alpha = 0.1", 35.78, 0.45),
    ("fedet:2", "DS-FL", "sent140", "clients = 106", 63.12, 0.71),
    ("fedet:3", "Fed-ET", "cifar100", "alpha = 0.1, target = 30", 31, math.nan),
    ("fedet:3", "SCAFFOLD", "cifar10", "alpha = 0.1, target = 70", 68, math.nan),
    ("coboosting:1", "FedDF", "mnist", "alpha = 0.3", 97.66, 0.10),
    ("coboosting:1", "Co-Boosting", "cifar100", "alpha = 0.05", 19.24, 1.42),
    ("coboosting:1", "DENSE", "fashion-mnist", "alpha = 0.1", 69.43, 1.94),
    ("coboosting:2", "FedENS", "svhn", "alpha = 0.3", 80.54, 0.57),
    ("coboosting:2", "Co-Boosting", "cifar10", "alpha = 0.1", 59.86, 1.76),
    ("fusefl:2", "FuseFL K=4", "cifar10", "alpha = 0.1", 73.79, math.nan),
    ("fusefl:2", "Ensemble", "tiny-imagenet", "alpha = 0.5", 45.8, math.nan),
    ("fusefl:2", "FuseFL K=8", "cifar100", "alpha = 0.3", 39.08, math.nan),
    ("fusefl:2", "Fed-ADI", "svhn", "alpha = 0.5", 78.85, math.nan),
    ("fedlpa:1", "FedLPA", "fashion-mnist", "alpha = 0.01", 21.20, 0.67),
    ("fedlpa:1", "DENSE", "svhn", "classes_per_client = 3", 47.43, 0.40),
    ("fedlpa:1", "FedNova", "mnist", "alpha = 0.3", 67.6, 0.40),
    ("fedlpa:1", "FedProx", "cifar10", "classes_per_client = 1", 10.37, 0.01),
]  # fmt: skip


@pytest.mark.parametrize(("table", "row", "dataset", "setting", "mean", "spread"), SAMPLE)
def test_a_sample_typed_by_hand(table, row, dataset, setting, mean, spread):
    columns = [c for c in load_paper_table(table).columns if c.dataset == dataset]
    (column,) = [c for c in columns if c.setting == setting]
    number = column.numbers[row]
    assert number.mean == mean
    assert number.spread == pytest.approx(spread, rel=0, abs=0, nan_ok=True)


def test_the_tables_are_whole():
    sizes = {
        "fens:1": (7, 9), "fedet:2": (7, 5), "fedet:3": (5, 3), "coboosting:1": (6, 15), "coboosting:2": (2, 6),
        "fusefl:2": (9, 18), "fedlpa:1": (6, 36), "fens:11": (5, 9), "coboosting:13": (6, 10), "fedlpa:16": (6, 20),
    }  # fmt: skip
    number_count = 0
    missing = []
    for name in TABLES:
        table = load_paper_table(name)
        if name in sizes:
            assert (len(table.rows), len(table.columns)) == sizes[name], name
        for column in table.columns:
            number_count += len(column.numbers)
            absent_rows = [row for row in table.rows if row not in column.numbers]
            missing += [(name, column.dataset, row) for row in absent_rows]
    assert set(sizes) <= set(TABLES)
    assert missing == [
        ("fedet:2", "sent140", "MOON"), ("fedet:3", "sent140", "MOON"),
        *[("coboosting:12", "tiny-imagenet", "FedAvg")] * 3, *[("coboosting:13", "mnist-m", "FedAvg")] * 5,
        *[("coboosting:14", "pacs", "FedAvg")] * 5,
    ]  # fmt: skip
    assert number_count == 2807


def test_a_plan_names_the_tables_that_are_missing_with_their_reasons():
    lines = describe_tables_and_figures_not_run("coboosting")
    assert any(line.startswith("Table 14: ") and "PACS" in line for line in lines)
    assert any(line.startswith("Figure 2: drawn only; fl.study(") for line in lines)
    assert any(line.startswith("Figure 4, Figure 5: ") for line in lines)
    assert describe_tables_and_figures_not_run("classroom") == []
    assert set(lines) <= set(fl.plan("coboosting").notes)


@pytest.mark.parametrize("name", TABLES)
def test_a_row_names_a_method_or_says_why_not(name):
    table = load_paper_table(name)
    for row in table.rows.values():
        assert row.method in METHODS if row.method else row.why
        assert table.get_measure_name(row.name) in MEASURES


def test_the_papers_own_statements_hold_in_the_data():
    """What the texts say of their tables: a slip of a row or a column would break it."""
    for column in load_paper_table("fedlpa:1").columns:
        means = {row: number.mean for row, number in column.numbers.items()}
        assert max(means, key=means.get) == "FedLPA"
    leads = []
    for column in load_paper_table("fens:1").columns:
        means = {row: number.mean for row, number in column.numbers.items()}
        fens = means.pop("FENS")
        leads.append(round(fens - max(means.values()), 2))
    # the paper's column of differences
    assert leads == [15.48, 10.69, 8.73, 14.22, 26.97, 11.47, -12.36, 6.13, 11.26]
    leads = []
    for column in load_paper_table("fedet:2").columns:
        numbers = column.numbers
        leads.append(round(numbers["Fed-ET"].mean - numbers["FedAvg"].mean, 2))
    assert leads == [7.47, 6.31, 5.57, 8.46, 4.27]


def test_numbers_are_read_as_they_are_printed():
    number = PublishedNumber.parse("10.1±0.3")
    assert (number.mean, number.spread) == (10.1, 0.3)
    assert PublishedNumber.parse("-") is None
    assert PublishedNumber.parse("10.10±0.30").printed == "10.10 ± 0.30"
    assert PublishedNumber.parse("72").printed == "72"


def test_quoted_numbers_are_those_of_the_other_table_and_make_no_claim():
    """FuseFL's Table 14 quotes Co-Boosting's Table 1, which has 10 clients where it has 5."""
    table = load_paper_table("fusefl:14")
    source = load_paper_table("coboosting:1")
    source_names = {name: name.replace("CoBoosting", "Co-Boosting") for name in table.quoted}
    assert sorted(source_names.values()) == sorted(source.rows)
    source_numbers = {(c.dataset, c.setting): c.numbers for c in source.columns}
    for column in table.columns:
        numbers = source_numbers[column.dataset, column.setting]
        for name, source_name in source_names.items():
            assert column.numbers[name].mean == numbers[source_name].mean
    claimed_rows = set()
    for claim in fl.reproduce("fusefl:14", stored=True).claims:
        claimed_rows |= {claim.better, claim.worse}
    assert claimed_rows == {"FuseFL K=2", "Ensemble"}


def test_fens_is_compared_with_fedadam_in_the_same_memory():
    """Table 4 argues for twenty small networks beside FedAdam's one large one; 377 MiB are not 0.88 MiB."""
    claims = {
        frozenset({claim.better, claim.worse})
        for claim in fl.reproduce("fens:4", stored=True).claims
    }
    assert claims == {frozenset({"FENS-DS", "FedAdam"}), frozenset({"FENS-DS", "FedAdam-DS"})}


COMMAND = re.compile(r"fl\.(?:study|reproduce)\(.*?\)(?= |,|;|\.|$)")


def list_named_commands():
    """(where, command) of all that a reason tells a reader to run."""
    reasons = []  # (where, text)
    for paper, items in read_toml("papers/tables/others.toml").items():
        reasons += [(f"{paper} {item}", why) for item, (_, why) in items.items()]
    for name in TABLES:
        table = load_paper_table(name)
        texts = [table.why or table.remedy, table.note]
        texts += [row.why + row.why_small for row in table.rows.values()]
        reasons += [(name, text) for text in texts]
    commands = []
    for where, text in reasons:
        commands += [(where, command) for command in COMMAND.findall(text)]
    return commands


@pytest.mark.slow
@pytest.mark.parametrize(("where", "command"), list_named_commands())
def test_a_command_that_a_reason_names_can_be_run(where, command):
    """Every cell has a plan: data, methods and knobs are known and fit together."""

    def study(methods, **settings):
        return [cell.plan for cell in Study.declare(methods, **settings).cells()]

    def reproduce(name, stored=False, **overrides):  # what is stored has a plan, too
        raise_unless_overrides_fit_table(load_paper_table(name), overrides)
        runs, _ = plan_table_runs(load_paper_table(name), "classroom", "", [0], overrides)
        return [run.point.make_plan_of_seed(0) for run in runs]

    plans = eval(command, {"fl": SimpleNamespace(study=study, reproduce=reproduce)})
    assert plans


def test_each_paper_has_commands_for_what_is_drawn_only():
    assert len(list_named_commands()) >= 10


def test_the_digits_stand_for_every_set_that_is_not_here():
    """A table whose clients are drawn has no missing data set as its reason; AG-News has texts, and no images."""
    with_reason = set()
    for name in TABLES:
        table = load_paper_table(name)
        if table.why and any(column.is_divided_at_random for column in table.columns):
            with_reason.add(name)
    assert with_reason == {"fens:f7", "fedlpa:9"}
    for name in ("coboosting:12", "fedlpa:23", "fedlpa:24"):
        assert not load_paper_table(name).why
