"""No claim is judged by a run of another setting, quantity or budget than the paper's.

The paper's side is read here from the raw files, by another way than the package takes.
"""

import dataclasses
import functools
import itertools
from types import SimpleNamespace

import pytest

from fedlab_nb.declared import parse_toml, read_toml
from fedlab_nb.papers import TABLES, load_paper_table, paper_tables, reproduce
from fedlab_nb.papers.cells import (
    LIKE_SERVER,
    TablePlan,
    count_four_byte_numbers_sent_until_accuracy,
    plan_stored_runs,
    plan_table_runs,
    raise_unless_overrides_fit_table,
    read_test_accuracy_of_first_client_like_server,
)
from fedlab_nb.papers.claims import JUDGED, NOT_CLAIMED
from fedlab_nb.papers.comparison import (
    UNUSED_FIRST_MODELS,
    describe_differences_from_paper,
    is_same_quantity,
    make_plans_of_paper_and_ours,
    read_conditions_of_paper_and_ours,
)
from fedlab_nb.papers.published import FOLDER
from fedlab_nb.papers.reproduction import FILES, compute_key_of_runs, make_reproduction
from fedlab_nb.studies.setups import FOLDER as SETUPS_FOLDER
from fedlab_nb.studies.stored_rows import make_json_key_of_row, read_stored_rows


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
        plan, column = run.point.make_plan_of_seed(0), table.columns[run.place]
        dataset = column.dataset if column.dataset in raw_datasets(table) else run.dataset
        where = (table.name, run.row, column.setting)

        def there(name, table=table, run=run, column=column, plan=plan, dataset=dataset):
            return paper_value(name, table, run.row, column, plan.method_name, dataset)

        settings = plan.settings
        if settings.partition == "natural":
            assert not column.is_divided_at_random, where
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


@pytest.mark.slow
def test_each_judged_claim_is_of_one_quantity():
    for result in all_tables():
        content = raw_table(result.table.name)
        for claim in result.claims:
            if claim.outcome in JUDGED:
                both = [content["rows"][row] for row in (claim.better, claim.worse)]
                of_table = content.get("quantity", "accuracy")
                named = {row.get("compared_as", row.get("quantity", of_table)) for row in both}
                assert len(named) == 1, (result.table.name, claim.better, claim.worse)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_every_claim_has_its_sentence(name):
    result = reproduce(name, stored=True)
    for claim in result.claims:
        text = result.describe_claim(claim)
        assert text.count(": the paper compares ") == 1 and text.endswith(".")
        if claim.outcome in JUDGED:
            assert ". We compare them by " in text and f"; {claim.ours.n} seeds." in text
        elif claim.outcome == NOT_CLAIMED:
            assert f". That is no claim: {claim.why}." in text and claim.why
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
    ("fedlpa:6", "fashion-mnist"): {UNUSED_FIRST_MODELS},  # FedProx and SCAFFOLD
    ("fedlpa:11", "mnist"): {"epochs"},
    ("fedlpa:12", "mnist"): {"epochs"},
    ("fedlpa:13", "mnist"): {"epochs"},
    ("fedlpa:14", "mnist"): {"epochs"},
}


# Slow because it makes the plans of every run of every table.
@pytest.mark.slow
def test_nothing_else_is_of_another_setting_quantity_or_budget():
    found = {}
    for name in TABLES:
        table = load_paper_table(name)
        for run in plan_stored_runs(table, [0])[0]:
            for text in describe_differences_from_paper(table, run):
                where = (name, table.columns[run.place].dataset)
                found.setdefault(where, set()).add(text.partition(" = ")[0])
    assert found == KNOWN


def with_row(table, name, **changes):
    rows = {**table.rows, name: dataclasses.replace(table.rows[name], **changes)}
    return dataclasses.replace(table, rows=rows)


def differences_of(table, row):
    runs = [run for run in plan_stored_runs(table, [0])[0] if run.row == row]
    return {text for run in runs for text in describe_differences_from_paper(table, run)}


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
        text
        for run in plan_stored_runs(table, [0])[0]
        for text in describe_differences_from_paper(table, run)
    }
    assert "clients = 10 here, 100 in the paper" in texts
    given = {"clients": 100, "per_round": 10, "rounds": 230}
    raise_unless_overrides_fit_table(table, given)
    runs, _ = plan_table_runs(table, "classroom", "", [0], given)
    found = {
        run.row: describe_differences_from_paper(table, run)
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
    found = {run.dataset: describe_differences_from_paper(table, run) for run in runs}
    short = ["epochs = 2 (usual: 29) here, 10 (usual: 200) in the paper"]
    assert found == {"digits": [], "mnist:5k": short}
    assert (
        differences_of(load_paper_table("fedlpa:17"), "FedOV") == set()
    )  # as many as in the paper
    assert differences_of(load_paper_table("fedlpa:1"), "FedLPA") == set()  # it sets none


def test_the_step_of_the_weights_is_compared_at_the_server_alone():
    result = reproduce("coboosting:18", stored=True)
    assert {claim.outcome for claim in result.claims} == {
        NOT_CLAIMED
    }  # "it does not have a significant impact"
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


def find_claim(name, row):
    """The claim of a table about its own row and another one."""
    (claim,) = [c for c in reproduce(name, stored=True).claims if row in (c.better, c.worse)]
    return claim


@pytest.mark.slow
def test_one_round_of_scaffold_is_that_of_fedavg_and_counts_once():
    for name in ("fedlpa:1", "fedlpa:2", "fedlpa:6"):
        of_fedavg = {result.numbers for result in find_claim(name, "FedAvg").results}
        of_scaffold = {result.numbers for result in find_claim(name, "SCAFFOLD").results}
        assert of_scaffold <= of_fedavg, name
    counted = [(c.table.name, c.worse) for c in paper_tables().distinct_claims]
    assert ("fedlpa:6", "SCAFFOLD") not in counted


def test_first_models_of_their_own_are_no_setting_of_methods_whose_server_sends_one():
    table = load_paper_table("fedlpa:6")
    for row in table.rows:
        expected = {UNUSED_FIRST_MODELS} if row in ("FedProx", "SCAFFOLD") else set()
        assert differences_of(table, row) == expected, row


def test_the_paper_of_fens_reports_the_best_round_of_its_methods_of_many_rounds():
    """Appendix B.2: "We run FL training until convergence and report the best accuracy achieved"."""
    checked = 0
    for name in TABLES:
        content = raw_table(name)
        in_rounds = {"fedadam", "fedavg_multi", "fednova", "fedprox", "fedyogi", "scaffold"}
        if not name.startswith("fens") or content.get("why"):
            continue
        for row, fields in content["rows"].items():
            if fields["method"] in in_rounds and fields.get("settings", {}).get("rounds") != 1:
                assert fields["measure"] == fields["quantity"] == "best", (name, row)
                checked += 1
    assert checked == 15
    text = reproduce("fens:10", stored=True).describe_claim(find_claim("fens:10", "SCAFFOLD"))
    assert "accuracy (FENS) and best accuracy over the rounds (SCAFFOLD) on cifar10" in text


def test_what_the_paper_does_not_give_is_said_of_the_row_that_lacks_it():
    """Table 8 gives FENS' rounds for heart disease; those of the others are given for images and language alone."""
    text = reproduce("fens:14", stored=True).describe_claim(find_claim("fens:14", "FedAvg"))
    assert "FedAvg: rounds = 100 (not given)" in text
    assert "FENS: rounds = 50." in text


def test_local_is_the_client_whose_network_the_server_has():
    for name in ("coboosting:3", "coboosting:15"):
        table = load_paper_table(name)
        assert table.rows["Local"].measure == LIKE_SERVER
    table = load_paper_table("coboosting:3")
    runs = [run for run in plan_stored_runs(table, [0])[0] if run.place == 0]
    (local,) = [run for run in runs if run.row == "Local"]
    (server,) = [run for run in runs if run.row == "Co-Boosting"]
    for of_clients, of_server in zip(
        make_plans_of_paper_and_ours(table, local),
        make_plans_of_paper_and_ours(table, server),
        strict=True,
    ):
        names = [name for name, *_ in of_clients.architectures]
        assert of_server.method.server_model in ("auto", *names)
    assert of_clients.architectures == of_server.architectures
    # Three clients with three networks: the second one has the server's.
    architectures = [("mlp", (1, 8, 8), 10, width) for width in (16, 24, 32)]
    report = SimpleNamespace(each_client=[0.1, 0.2, 0.3])
    outcome = SimpleNamespace(plan=SimpleNamespace(architectures=architectures), report=report)
    assert read_test_accuracy_of_first_client_like_server(outcome, "mlp:24") == 0.2
    assert read_test_accuracy_of_first_client_like_server(outcome, "auto") == 0.1


def test_one_model_is_not_called_an_ensemble():
    table = load_paper_table("fens:3")
    quantities = {}
    for run in plan_stored_runs(table, [0])[0]:
        quantities[run.row] = read_conditions_of_paper_and_ours(table, run).ours.quantity
    assert quantities == {
        "FENS": "accuracy of the ensemble",
        "FENS distilled": "accuracy of the server's model",
    }


def test_numbers_that_two_papers_print_are_one_papers_own():
    """A column that has three numbers or more of another paper's column is quoted, and says so."""
    found = set()
    columns = []
    for name in TABLES:
        for column in load_paper_table(name).columns:
            means = {row: number.mean for row, number in column.numbers.items()}
            columns.append((name, column, means))
    for (name, column, means), (other_name, _, other_means) in itertools.permutations(columns, 2):
        if name.partition(":")[0] != "fusefl" or other_name.startswith("fusefl"):
            continue
        common = set(means.values()) & set(other_means.values())
        if len(common) >= 3:
            rows = {row for row, mean in means.items() if mean in common}
            assert rows <= column.quoted, (name, column.setting, other_name)
            found.add((name, column.dataset))
    datasets = ("mnist", "fashion-mnist", "svhn", "cifar10", "cifar100")
    assert found == {("fusefl:5", "cifar10"), *(("fusefl:14", dataset) for dataset in datasets)}
    (claim,) = [c for c in reproduce("fusefl:5", stored=True).claims if c.worse == "DENSE"]
    assert ("cifar10", "alpha = 0.5, clients = 50") not in {
        (ordering.column.dataset, ordering.column.setting) for ordering in claim.orderings
    }


def test_the_same_runs_under_two_names_are_one_result():
    """Co-Boosting with all its parts, and with ε = 32/255, is Co-Boosting; their stored numbers differ by rounding."""
    runs = set()
    for name, row in (("coboosting:1", "Co-Boosting"), ("coboosting:7", "all")):
        result = reproduce(name, stored=True)
        (run,) = [
            run
            for run in result.table_runs
            if run.row == row
            and result.table.columns[run.place].dataset == "svhn"
            and run.point.settings.alpha == 0.05
        ]
        runs.add(compute_key_of_runs(run.point))
    assert len(runs) == 1


# Each was judged by the paper's sign in the mean over the columns: in some of them the paper has the other one ahead.
def test_claims_that_were_judged_by_the_wrong_sign():
    assert find_claim("fens:10", "FedAdam").outcome == NOT_CLAIMED
    assert find_claim("fens:10", "FedYogi").outcome == NOT_CLAIMED
    assert find_claim("fens:14", "FedYogi").outcome == NOT_CLAIMED  # "on par"
    assert find_claim("fens:15", "Client 0").outcome == NOT_CLAIMED
    assert find_claim("coboosting:1", "FedDF").outcome == "holds"
    assert find_claim("fedlpa:25", "5000 steps").outcome == "within the noise"


# α for which the paper has each of two aggregators clearly ahead, from the numbers of its Table 9.
def test_two_leaders_of_one_table_have_a_claim_each():
    result = reproduce("fens:9", stored=True)
    claims = [claim for claim in result.claims if {claim.better, claim.worse} == {"NN", "MoE"}]
    settings = {}
    for claim in claims:
        settings[claim.better] = [ordering.column.setting for ordering in claim.orderings]
        sentence = result.describe_claim(claim)
        assert f"the paper compares {claim.better} (ahead) and {claim.worse} by" in sentence
        assert f"the paper has {claim.worse} ahead there, which is another claim" in sentence
        for setting in settings[claim.better]:
            assert setting in sentence
    assert settings == {"MoE": ["alpha = 0.01"], "NN": ["alpha = 0.1"]}


def test_a_vote_has_no_rounds_and_a_network_has():
    result = reproduce("fens:9", stored=True)
    (claim,) = [c for c in result.claims if c.worse == "Polychotomous voting"]
    sentence = result.describe_claim(claim)
    assert (
        "NN: aggregator = nn, rounds = 500; Polychotomous voting: aggregator = voting." in sentence
    )
    assert "aggregator = voting, rounds" not in sentence
    assert load_paper_table("fens:9").not_given == ["Linear.rounds", "MoE.rounds"]


@pytest.mark.slow
def test_the_row_that_a_claim_names_first_is_ahead_in_all_its_columns():
    keys = set()
    for result in all_tables():
        for claim in result.claims:
            assert claim.key not in keys
            keys.add(claim.key)
            for ordering in claim.orderings:
                better = ordering.column.numbers[claim.better].mean
                worse = ordering.column.numbers[claim.worse].mean
                assert better != worse
                assert (better < worse) == result.table.less_is_better, claim.key


@pytest.mark.slow
def test_what_claims_share_changes_no_outcome():
    """The signs of the picture are by all columns of a table, the counts by each result once: they agree."""
    tables = paper_tables()
    outcomes = {claim.key: claim.outcome for claim in tables.claims}
    known_numbers = set()
    known_runs = set()
    for claim in tables.distinct_claims:
        assert claim.results
        assert claim.outcome == outcomes[claim.key], claim.key
        for result in claim.results:
            assert result.numbers not in known_numbers and result.runs not in known_runs
        known_numbers.update(result.numbers for result in claim.results)
        known_runs.update(result.runs for result in claim.results)


def test_numbers_to_a_target_are_counted_until_it_is_reached():
    """Two points of a curve: 40 bytes at 60 %, 100 bytes at 70 %."""
    history = [
        {"phase": "round", "bytes": 40, "accuracy": 0.6},
        {"phase": "round", "bytes": 100, "accuracy": 0.7},
    ]
    outcome = SimpleNamespace(history=history, bytes_up=200, bytes_down=200)
    assert [
        count_four_byte_numbers_sent_until_accuracy(outcome, target) for target in (50, 65, 70)
    ] == [
        10,
        25,
        25,
    ]
    assert count_four_byte_numbers_sent_until_accuracy(outcome, 71) is None


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
    assert len({make_json_key_of_row(row) for row in rows}) == 5
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
