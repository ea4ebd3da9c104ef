"""No claim is judged by a run of another setting, quantity or budget than the paper's.

The paper's side is read here from the raw files, by another way than the package takes.
"""

import dataclasses
import functools
from types import SimpleNamespace

import pytest

from fedlab_nb.declared import parse_toml, read_toml
from fedlab_nb.papers import TABLES, load_paper_table, paper_tables, reproduce
from fedlab_nb.papers.cells import (
    TablePlan,
    check_overrides,
    count_numbers_to_target,
    plan_stored_runs,
    plan_table_runs,
)
from fedlab_nb.papers.claims import JUDGED
from fedlab_nb.papers.comparison import find_differences, is_same_quantity
from fedlab_nb.papers.published import FOLDER
from fedlab_nb.papers.reproduction import FILES, make_reproduction
from fedlab_nb.studies.setups import FOLDER as SETUPS_FOLDER
from fedlab_nb.studies.stored_rows import make_row_key, read_stored_rows


def raw_table(name):
    """A table's file with what it is `like`."""
    content = dict(read_toml(f"{FOLDER}/{name.replace(':', '-')}.toml"))
    like = content.pop("like", "")
    return {**raw_table(like), **content} if like else content


@functools.cache
def raw_setup(preset):
    return parse_toml((SETUPS_FOLDER / f"{preset}.toml").read_text(encoding="utf-8"))


def raw_lines(preset, dataset, alpha, method=""):
    """{option: value} of a set-up, its later rows over its first block."""
    content = raw_setup(preset)
    blocks = [content["all"]]
    for row in content.get("rows", []):
        when = row["when"]
        fits = dataset in when.get("dataset", [dataset]) and alpha in when.get("alpha", [alpha])
        if fits and not when.keys() - {"dataset", "alpha"}:
            blocks.append(row)
    found = {}
    for block in blocks:
        found |= block.get(method, {}) if method else block
    return {name: line[0] for name, line in found.items() if isinstance(line, list)}


def paper_value(name, table, row, column, method, dataset):
    """What the paper has for an option: the column, the row, the table, the set-up; the first that says it."""
    content = raw_table(table.name)
    settings = content["rows"][row].get("settings", {})
    values = dict(column.values)
    shared = raw_lines(table.preset, dataset, values.get("alpha", 0.1))
    own = raw_lines(table.preset, dataset, values.get("alpha", 0.1), method)
    for source in (values, settings, content.get("settings", {}), own, shared):
        for key in (name, f"{method}.{name}"):
            if key in source:
                return source[key]
    return None


@functools.cache
def all_tables():
    return paper_tables().tables


def judged_runs():
    """(table, run) of all runs that stand behind a judged claim."""
    for result in all_tables():
        rows = {(run.row, run.place): run for run in result.table_runs}
        for claim in result.claims:
            if claim.outcome not in JUDGED:
                continue
            pair = {claim.better, claim.worse}
            for ordering in result.orderings:
                if ordering.ours is not None and {ordering.better, ordering.worse} == pair:
                    place = result.table.columns.index(ordering.column)
                    for row in pair:
                        yield result.table, rows[row, place]


# Slow because it makes the plan of every judged run, the paper's and ours.
@pytest.mark.slow
def test_each_judged_claim_is_the_papers_comparison():
    """Clients, skew and budget, read off the run's plan, are what the paper's files say."""
    checked = 0
    known = set()
    for table, run in judged_runs():
        if (table.name, run.row, run.place) in known:
            continue
        known.add((table.name, run.row, run.place))
        plan, column = run.point.plan(0), table.columns[run.place]
        dataset = column.dataset if column.dataset in raw_datasets(table) else run.dataset
        where = (table.name, run.row, column.setting)

        def there(name, table=table, run=run, column=column, plan=plan, dataset=dataset):
            return paper_value(name, table, run.row, column, plan.name, dataset)

        settings = plan.settings
        if settings.partition == "natural":
            assert not column.has_drawn_clients, where
        else:
            assert settings.clients == there("clients"), where
            by_classes = "classes_per_client" in dict(column.values)
            if by_classes:
                assert settings.classes_per_client == there("classes_per_client"), where
            else:
                assert settings.alpha == there("alpha"), where
            assert (settings.partition == "classes") == by_classes, where
        for name in ("rounds", "per_round", "blocks", "rounds_before", "rounds_after"):
            if there(name) is not None and hasattr(plan.method, name):
                assert getattr(plan.method, name) == there(name), (*where, name)
                checked += 1
        for name, value in table.rows[run.row].settings.items():
            plain = name.rpartition(".")[2]
            if plain not in ("model", "local_epochs"):
                parts = (plan.method, plan.recipe, plan.settings)
                here = [getattr(part, plain) for part in parts if hasattr(part, plain)]
                assert here[0] == value, (*where, name)
                checked += 1
    assert checked > 300


def raw_datasets(table):
    return raw_setup(table.preset)["datasets"]


def test_each_judged_claim_is_of_one_quantity():
    for result in all_tables():
        content = raw_table(result.table.name)
        for claim in result.claims:
            if claim.outcome in JUDGED:
                both = [content["rows"][row] for row in (claim.better, claim.worse)]
                named = {row.get("quantity", content.get("quantity", "accuracy")) for row in both}
                assert len(named) == 1, (result.table.name, claim.better, claim.worse)


@pytest.mark.parametrize("name", TABLES)
def test_every_claim_has_its_sentence(name):
    result = reproduce(name, stored=True)
    for claim in result.claims:
        text = result.describe_claim(claim)
        assert text.count(": the paper compares ") == 1 and text.endswith(".")
        if claim.outcome in JUDGED:
            assert ". We compare them by " in text and f"; {claim.ours.n} seeds." in text
        else:
            assert f". We do not: {claim.why.rstrip('.')}." in text and claim.why


# All that is run and is not the paper's comparison: (table, data set in the paper): the options that differ.
KNOWN = {
    ("fens:1", "cifar100"): {"rounds"},  # the paper has 1,000 rounds there, the digits 500
    ("fens:11", "cifar100"): {"rounds"},
    ("fedet:2", "cifar10"): {"clients", "rounds", "per_round"},
    ("fedet:2", "cifar100"): {"clients", "rounds", "per_round"},
    ("fedet:3", "cifar10"): {"clients", "rounds", "per_round"},
    ("fedet:3", "cifar100"): {"clients", "rounds", "per_round"},
    ("fedet:4", "cifar10"): {"clients", "rounds", "per_round"},
    ("fedet:4", "cifar100"): {"clients", "rounds", "per_round"},
    ("fedet:5", "cifar10"): {"clients", "rounds", "per_round"},
    ("fedlpa:11", "mnist"): {"epochs"},
    ("fedlpa:12", "mnist"): {"epochs"},
    ("fedlpa:13", "mnist"): {"epochs"},
    ("fedlpa:14", "mnist"): {"epochs"},
}


# Slow because it makes the plans of every run of every table.
def test_nothing_else_is_of_another_setting_quantity_or_budget():
    found = {}
    for name in TABLES:
        table = load_paper_table(name)
        for run in plan_stored_runs(table, [0])[0]:
            for text in find_differences(table, run):
                where = (name, table.columns[run.place].dataset)
                found.setdefault(where, set()).add(text.partition(" = ")[0])
    assert found == KNOWN


def with_row(table, name, **changes):
    rows = {**table.rows, name: dataclasses.replace(table.rows[name], **changes)}
    return dataclasses.replace(table, rows=rows)


def differences_of(table, row):
    runs = [run for run in plan_stored_runs(table, [0])[0] if run.row == row]
    return {text for run in runs for text in find_differences(table, run)}


def test_another_budget_is_found():
    table = load_paper_table("fens:9")
    assert differences_of(table, "NN") == set()
    short = dataclasses.replace(table, classroom={})
    assert differences_of(short, "NN") == {"rounds = 50 here, 500 in the paper"}
    table = load_paper_table("fusefl:3")
    assert differences_of(table, "FuseFL") == set()
    halved = with_row(table, "FuseFL", classroom={"fusefl.blocks": 2})
    assert differences_of(halved, "FuseFL") == {"blocks = 2 here, 4 in the paper"}


def test_another_setting_is_found():
    table = load_paper_table("fens:9")
    fewer = dataclasses.replace(table, classroom={**table.classroom, "clients": 10})
    assert differences_of(fewer, "NN") == {"clients = 10 here, 20 in the paper"}
    table = load_paper_table("coboosting:18")
    other = with_row(table, "server, μ = 0.01", classroom={"mu": 1})
    assert differences_of(other, "server, μ = 0.01") == {"mu = 1 here, 0.1 in the paper"}


def test_a_setting_of_ones_own_is_compared_too():
    """The classroom has fewer clients and rounds than Fed-ET's paper; with the paper's values its claims count."""
    table = load_paper_table("fedet:2")
    texts = {
        text for run in plan_stored_runs(table, [0])[0] for text in find_differences(table, run)
    }
    assert "clients = 10 here, 100 in the paper" in texts
    given = {"clients": 100, "per_round": 10, "rounds": 230}
    check_overrides(table, given)
    runs, _ = plan_table_runs(table, "classroom", "", [0], given)
    found = {
        run.row: find_differences(table, run)
        for run in runs
        if table.columns[run.place].dataset == "cifar10"
    }
    assert found.pop("DS-FL") == ["rounds = 230 here, 100 in the paper"]
    assert set(found) == {"FedAvg", "FedProx", "SCAFFOLD", "MOON", "FedDF", "Fed-ET"}
    assert not any(found.values())


def test_another_quantity_is_found():
    table = load_paper_table("coboosting:2")
    other = with_row(table, "Co-Boosting", measure="accuracy")
    assert differences_of(other, "Co-Boosting") == {
        "accuracy of the server's model here, accuracy of the ensemble in the paper"
    }
    assert is_same_quantity("accuracy", "accuracy of the ensemble")
    assert not is_same_quantity("accuracy of the ensemble", "accuracy")
    assert not is_same_quantity("best", "accuracy of the ensemble")


def test_local_epochs_count_where_the_table_sets_them():
    """Table 11 has 10 of 200: on the digits 2 of 40, on MNIST's images, which have 29, it would be 1."""
    table = load_paper_table("fedlpa:11")
    runs = [run for run in plan_stored_runs(table, [0])[0] if run.row == "FedLPA"]
    found = {run.dataset: find_differences(table, run) for run in runs}
    assert found == {"digits": [], "mnist:5k": ["epochs = 2 here, 10 in the paper"]}
    assert (
        differences_of(load_paper_table("fedlpa:17"), "FedOV") == set()
    )  # as many as in the paper
    assert differences_of(load_paper_table("fedlpa:1"), "FedLPA") == set()  # it sets none


def test_the_step_of_the_weights_is_compared_at_the_server_alone():
    result = reproduce("coboosting:18", stored=True)
    assert {(c.better, c.worse) for c in result.claims} == {
        ("server, μ = 0.05", "server, μ = 0.01"),
        ("server, μ = 0.1", "server, μ = 0.01"),
        ("server, μ = 0.01", "server, μ = 0.005"),
    }
    assert result.table.rows["server, μ = 0.01"].settings == {"mu": 0.1}  # divided by ten clients


def test_a_row_that_another_table_has_is_claimed_there():
    """FENS' Table 9 calls FedENS of Table 1 "Averaging", with the same numbers in print."""
    one, other = (
        {c.setting: c for c in load_paper_table(name).columns if c.dataset == "cifar10"}
        for name in ("fens:1", "fens:9")
    )
    for setting, column in other.items():
        assert column.numbers["Averaging"] == one[setting].numbers["FedENS"]
        assert column.numbers["NN"] == one[setting].numbers["FENS"]
    assert "Averaging" not in {c.worse for c in reproduce("fens:9", stored=True).claims}


def test_one_round_of_scaffold_is_that_of_fedavg_and_counts_once():
    for name in ("fedlpa:1", "fedlpa:2"):
        one, other = (
            next(c for c in reproduce(name, stored=True).claims if c.worse == row)
            for row in ("SCAFFOLD", "FedAvg")
        )
        assert one.numbers == other.numbers


def test_numbers_to_a_target_are_counted_until_it_is_reached():
    """Two points of a curve: 40 bytes at 60 %, 100 bytes at 70 %."""
    history = [
        {"phase": "round", "bytes": 40, "accuracy": 0.6},
        {"phase": "round", "bytes": 100, "accuracy": 0.7},
    ]
    outcome = SimpleNamespace(history=history, bytes_up=200, bytes_down=200)
    assert [count_numbers_to_target(outcome, target) for target in (50, 65, 70)] == [10, 25, 25]
    assert count_numbers_to_target(outcome, 71) is None


def test_a_target_that_is_not_reached_is_no_number():
    """Two seeds of a made-up row: one reached the target after 5,000 numbers, the other one never did."""
    table = load_paper_table("fedet:3")
    runs, _ = plan_stored_runs(table, [0, 1])
    runs = [run for run in runs if run.label == "numbers to target 70"]
    rows = []
    for run in {run.point.key: run for run in runs}.values():
        point = run.point
        values = [5000, None] if run.row == "Fed-ET" else [7000, 9000]
        row = {"runs": point.runs, "method": point.method, "at": dict(point.at), "seeds": [0, 1]}
        rows.append({**row, "made": {}, run.label: values})
    assert len({make_row_key(row) for row in rows}) == 5
    result = make_reproduction(table, TablePlan(runs, {}), rows, scale="classroom", seeds=(0, 1))
    place = runs[0].place
    assert result.values["Fed-ET", place] == {0: 5000}
    assert result.unreached == {("Fed-ET", place): [1]}
    assert "target not reached, 1 of 2 seeds" in repr(result)
    assert {c.outcome for c in result.claims} == {"not comparable"}
    assert all("Fed-ET: target not reached, 1 of 2 seeds" in c.why for c in result.claims)


def test_the_stored_targets_say_on_how_many_seeds_they_were_reached():
    """Reached is what the best accuracy of the same run says, which another table stores."""
    _, rows = read_stored_rows(FILES[0])
    label, seen = "numbers to target 70", 0
    for row in rows:
        if label in row:
            reached = [best >= 0.7 for best in row["best"]]
            assert [value is not None for value in row[label]] == reached
            seen += 1
    assert seen == 5
    text = repr(reproduce("fedet:3", stored=True))
    assert "target not reached" in text
