"""A panel on data that name their clients: it uses these, or deals the samples out if that is chosen."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedlab_nb.data import add_dataset, federate, load

LABELS = np.arange(60) % 3
DATA_WITH_CLIENTS = {"x_train": np.eye(3)[LABELS], "y_train": LABELS, "x_test": np.eye(3)[LABELS], "y_test": LABELS,
       "client_train": np.repeat(["north", "south"], 30)}  # fmt: skip
pytestmark = pytest.mark.usefixtures("forget_names")


def read_facts(panel):
    return panel.controls.facts.value


@pytest.mark.slow
def test_own_clients_are_used_until_another_way_is_chosen(make_panel, job):
    panel = make_panel(dataset=DATA_WITH_CLIENTS, methods=["fedavg"], seeds=1)
    c = panel.controls
    assert "The 2 clients are the data set&#x27;s own: north, south." in read_facts(panel)
    assert [text for text, _ in panel.views.client.options[1:]] == ["A (north)", "B (south)"]
    assert c.alpha.disabled and c.clients.disabled and c.dealing.layout.display is None
    assert c.clients.value == 2, "the slider says how many there are"
    c.alpha.value = 1.0  # a disabled slider deals nothing out
    assert "north, south" in read_facts(panel) and panel.status != "error"
    panel.run(wait=True)
    assert job.calls[-1][2].items() >= {"partition": "natural", "clients": 2}.items()
    assert "# 'own-" in panel.code() and "fl.add_dataset('own-" in panel.code()

    c.dealing.value = "client_dirichlet"
    assert not c.alpha.disabled and "north" not in read_facts(panel)
    assert c.clients.value == 10, "what was chosen before"
    c.clients.value = 5
    panel.run(wait=True)
    assert [text for text, _ in panel.views.client.options[1:]] == list("ABCDE")
    assert job.calls[-1][2].items() >= {"partition": "client_dirichlet", "clients": 5}.items()
    c.dataset.value = "digits"
    panel._worker.wait_until_all_jobs_end(60)
    assert c.dealing.layout.display == "none" and "partition" not in c.read_settings_for_study_job()


@pytest.mark.slow
def test_a_panel_takes_a_federation_or_a_named_data_set_with_its_clients(make_panel):
    add_dataset("mine", DATA_WITH_CLIENTS, title="My patients")
    panel = make_panel(dataset="mine", partition="iid")
    assert not panel.controls.alpha.disabled and "north" not in read_facts(panel)
    assert ("My patients", "mine") in panel.controls.dataset.options
    shards = federate("digits", clients=3, seed=4).shards
    panel = make_panel(federation=federate("digits", indices=shards, seed=4), fixed={"clients": 3})
    assert "The 3 clients are the data set&#x27;s own: 0, 1, 2." in read_facts(panel)
    assert panel.controls.seed.value == 4
    panel.controls.dealing.value = "dirichlet"
    assert panel.controls.clients.disabled and not panel.controls.alpha.disabled


def test_natural_without_ids_is_one_sentence_in_the_panel(make_panel):
    panel = make_panel(partition="natural")
    assert "does not name its clients" in panel.controls.error.value


@pytest.mark.slow
def test_letters_can_be_dealt_out_by_their_fonts(make_panel, job):
    data = replace(
        load("digits"), name="drawn", font_train=torch.arange(len(load("digits").y_train)) % 12
    )
    panel = make_panel(dataset=data, methods=["fedavg"], seeds=1, clients=4)
    c = panel.controls
    assert c.dealing.value == "dirichlet"
    assert c.dealing.layout.display is None
    assert "partition" not in c.read_settings_for_study_job()
    c.dealing.value = "fonts"
    assert c.alpha.disabled and not c.clients.disabled and "its own fonts" in read_facts(panel)
    panel.run(wait=True)
    assert job.calls[-1][2].items() >= {"partition": "fonts", "clients": 4}.items()
