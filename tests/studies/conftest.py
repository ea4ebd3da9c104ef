"""For each test of this folder an empty store, and no trained clients in memory."""

import pytest

from fedlab_nb.studies import experiment
from fedlab_nb.studies.store import TrainedClientsCache


@pytest.fixture(autouse=True)
def empty_store(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path_factory.mktemp("store")))
    monkeypatch.setattr(experiment, "_trained_clients", TrainedClientsCache())
