"""A user's own data and federations in `run`, studies, the store, workers and the command line."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import fedlab_nb as fl
from fedlab_nb.cli import main
from fedlab_nb.data import federate, load, registry
from fedlab_nb.methods import METHODS
from fedlab_nb.studies.cluster import send_in_memory_datasets_to_workers
from fedlab_nb.studies.grid import Study
from fedlab_nb.studies.settings import Settings

Y = np.arange(72) % 3
X = (np.random.default_rng(0).random((72, 5)) + Y[:, None]).astype("float32")
ARRAYS = {"x_train": X, "y_train": Y, "x_test": X[:30], "y_test": Y[:30]}
IDS = np.repeat(["a", "b", "c", "d"], [30, 20, 12, 10])
CHEAP = {
    "rounds": 2,
    "iterations": 3,
    "epochs": 1,
    "steps": 5,
    "samples": 20,
    "distil_steps": 5,
    "one_shot_steps": 5,
}
QUICK = {"epochs": 1}
pytestmark = pytest.mark.usefixtures("forget_names")


@pytest.fixture
def file(tmp_path):
    """The arrays as a file that names its clients."""
    np.savez(tmp_path / "mine.npz", **ARRAYS, client_train=IDS)
    return str(tmp_path / "mine.npz")


@pytest.mark.slow
def test_every_method_runs_on_a_users_data_or_says_what_it_lacks():
    knobs = {}
    for method, method_class in METHODS.items():
        for knob in method_class.fields():
            if knob.name in CHEAP:
                knobs[f"{method}.{knob.name}"] = CHEAP[knob.name]
    outcomes = {}
    errors = {}
    for event in fl.job(
        "all", dataset={**ARRAYS, "client_train": IDS}, public=0.1, **QUICK, **knobs
    ):
        if event.outcome is not None:
            outcomes[event.method] = event.outcome
        if event.error is not None:
            errors[event.method] = event.error
    assert set(outcomes) | set(errors) == set(METHODS)
    assert all(
        outcome.settings.partition == "natural" and len(outcome.label_counts) == 4
        for outcome in outcomes.values()
    )
    assert list(errors) == ["fadi"] and isinstance(errors["fadi"], fl.UsageError)
    assert str(errors["fadi"]).startswith("F-ADI needs images, not feature rows")
    with_public = ["feddf", "fedkd", "dsfl", "fedet"]
    for event in fl.job(with_public, dataset={**ARRAYS, "client_train": IDS}, **QUICK):
        text = str(event.error)
        assert "needs unlabelled public" in text and "public=0.1" in text and text.endswith(".")


def test_a_run_of_a_federation_equals_that_of_its_settings():
    fed = federate("digits", alpha=0.3, clients=4, seed=3)
    by_federation = fl.run("local", federation=fed, **QUICK)
    by_settings = fl.run("local", alpha=0.3, clients=4, seed=3, **QUICK)
    assert (by_federation.accuracy, by_federation.bytes_up) == (
        by_settings.accuracy,
        by_settings.bytes_up,
    )
    assert np.array_equal(by_federation.label_counts, by_settings.label_counts)
    assert all(map(torch.equal, by_federation.federation().shards, fed.shards))
    assert by_federation.settings.seed == 3
    assert by_federation.settings.partition == "dirichlet"
    assert by_federation.settings.clients == 4


def test_a_federation_built_by_hand_is_not_drawn_again():
    """Whether its shards were changed after `federate` or it has no origin: its shards are used as they are."""
    fed = federate("digits", alpha=0.3, clients=4, seed=3)
    shards = tuple(shard[:9] for shard in fed.shards)
    changed = replace(fed, shards=shards)
    for by_hand in (changed, replace(changed, origin={})):
        outcome = fl.run("local", federation=by_hand, **QUICK)
        assert all(map(torch.equal, outcome.federation().shards, shards))
        assert (outcome.settings.seed, outcome.settings.partition) == (3, "natural")
        with pytest.raises(fl.UsageError, match="alpha=0.1 contradicts the federation"):
            fl.run("local", federation=by_hand, alpha=0.1)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("call", [fl.run, fl.compare, fl.study, fl.job])
def test_a_federation_is_refused_as_a_data_set(call, several):
    fed = federate("digits", clients=4)
    with pytest.raises(fl.UsageError, match="write federation= instead"):
        call("local", dataset=[fed, "digits"] if several else fed)


def test_lists_of_indices_and_contents_of_arrays_are_store_keys():
    lists = [range(0, 30), [31, 35, 40], list(range(50, 90))]
    outcome = fl.run("fedavg", federation=federate("digits", indices=lists), **QUICK)
    second_run = fl.run("fedavg", federation=federate(load("digits"), indices=lists), **QUICK)
    other_order = fl.run("fedavg", federation=federate("digits", indices=lists[::-1]), **QUICK)
    assert second_run.cached and not other_order.cached and not outcome.cached
    assert [shard.tolist() for shard in second_run.federation().shards] == [
        list(rows) for rows in lists
    ]
    assert fl.run("fedavg", dataset=ARRAYS, clients=3, **QUICK).settings.partition == "dirichlet"
    fl.add_dataset("renamed", ARRAYS)
    # The key depends on the content, not on the name.
    assert fl.run("fedavg", dataset="renamed", clients=3, **QUICK).cached


def test_an_outcome_refuses_other_data_under_the_same_name():
    fl.add_dataset("mine", ARRAYS)
    outcome = fl.run("fedavg", dataset="mine", clients=3, **QUICK)
    fl.add_dataset("mine", {**ARRAYS, "y_train": (Y + 1) % 3})
    with pytest.raises(
        fl.UsageError, match="The name 'mine' now belongs to other data than in this run"
    ):
        outcome.federation()


def test_settings_without_effect_are_not_in_the_keys():
    plain = Settings.make()
    explicit = Settings.make(size_sigma=0, share="1", minimum=0, repair="move", partition=None)
    options = {"partition": "dirichlet", "alpha": 0.1, "clients": 10, "seed": 0}
    assert plain.list_nondefault_federation_options() == options
    assert explicit.list_nondefault_federation_options() == options


def test_natural_clients_are_not_partitioned_by_accident(file):
    wrong = (
        dict(alpha=1),
        dict(clients=5),
        dict(partition="natural", clients="5"),
        dict(partition="natural", minimum=5),
    )
    for dataset in (file, {**ARRAYS, "client_train": IDS}):
        for settings in wrong:
            with pytest.raises(fl.UsageError, match=next(reversed(settings))):
                fl.run("fedavg", dataset=dataset, **settings)
    # As a panel passes them on.
    settings_from_keywords = Settings.make(**Settings.make(dataset=file).to_keywords())
    assert (
        settings_from_keywords == Settings.make(dataset=file)
        and settings_from_keywords.clients == 4
    )


def test_a_study_accepts_data_in_memory_and_sends_them_to_workers():
    results = fl.study(["fedavg"], dataset=[ARRAYS, "digits"], clients=3, **QUICK)
    assert len(results) == 2 and not results.failed and results.axes == ("dataset",)
    grid = Study.declare(["fedavg"], dataset={**ARRAYS, "client_train": IDS}, epochs=[1, 2])
    (name,) = grid.shared["dataset"]
    plugins = []

    class Client:
        def register_plugin(self, plugin, name):
            plugins.append(plugin)

    pytest.importorskip("dask")
    send_in_memory_datasets_to_workers(Client(), grid.cells())
    data = load(name)
    registry._added.clear()
    plugins[0].setup(None)  # as when a worker starts
    assert load(name).digest == data.digest and load(name).client_names == data.client_names
    with pytest.raises(fl.UsageError, match="alpha cannot be set"):
        Study.declare(["fedavg"], dataset=name, alpha=[0.1, 1]).cells()


# ------------------------------------------------------------------------------------------------------ command line
def test_the_command_line_uses_the_clients_of_the_file_and_says_so(file, capsys):
    words = ["run", "fedavg", "--json", "--dataset", file, "--set", "epochs=1"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["partition"] == "natural" and json.loads(out)["clients"] == 4
    assert err == f"fedlab-nb: {file} names its clients: its own 4 are used.\n"
    assert main([*words, "--partition", "natural"]) == 0 and capsys.readouterr().err == ""
    assert main([*words, "--alpha", "1"]) == 2
    assert "leave that out, or set partition='dirichlet'" in capsys.readouterr().err
    assert main([*words, "--alpha", "1", "--partition", "dirichlet", "--clients", "3"]) == 0
    assert json.loads(capsys.readouterr().out)["clients"] == 3


def test_the_command_line_explains_the_columns_of_a_table(capsys, tmp_path):
    table = tmp_path / "wards.csv"
    table.write_text(
        "age,ward,ill\n"
        + "".join(f"{30 + i % 7},{'ab'[i % 2]},{'yn'[i % 3 == 0]}\n" for i in range(40))
    )
    assert main(["run", "gauss", "--json", "--clients", "2", "--dataset", str(table)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert err.startswith(
        "fedlab-nb: wards.csv: The label is column 'ill'. 1 column of numbers is standardised"
    )


@pytest.mark.slow
def test_partition_options_of_the_command_line(capsys):
    words = ["run", "fedavg", "--json", "--clients", "5", "--set", "epochs=1"]
    assert (
        main([*words, "--partition", "client_dirichlet", "--size-sigma", "0.4", "--share", "0.5"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["partition"] == "client_dirichlet"
    assert main([*words, "--repair", "redraw", "--minimum", "247", "--alpha", "0.01"]) == 1
    err = capsys.readouterr().err
    assert "None of 1000 draws of the dirichlet partition" in err and "use repair='move'" in err
