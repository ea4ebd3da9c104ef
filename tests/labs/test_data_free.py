"""The labs of DENSE, F-DAFL and F-ADI: their images after a run."""

import pytest

import fedlab_nb as fl
from fedlab_nb.labs import data_free


@pytest.mark.parametrize("method", data_free.KNOBS)
def test_images_of_every_epoch_are_shown(method):
    panel = fl.lab(method, clients=3, epochs=1, methods=[], **{f"{method}.epochs": 2})
    assert panel.show("images") is None and "Press Run" in panel.views["images"].frame.value
    panel.run(wait=True)
    picture = panel.show("images")
    assert panel.error == "" and "epoch 2 of 2" in picture.alt and len(picture.table) == 2
    panel.lab_views["images"].epoch.index = 0
    assert "epoch 1 of 2" in panel.views["images"].picture.alt
    panel.close()
