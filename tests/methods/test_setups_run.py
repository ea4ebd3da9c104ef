"""Every method of every set-up from end to end: fewer steps and thinner networks, everything else as declared."""

import dataclasses

import numpy as np
import pytest

from fedlab_nb.methods import METHODS
from fedlab_nb.studies import experiment, job
from fedlab_nb.studies.clients import TrainedClients
from fedlab_nb.studies.settings import Settings, plans_for
from fedlab_nb.studies.setups import CLASSROOM, SETUPS

# What a fast run needs less of.
FEWER = {
    "rounds": 1, "iterations": 3, "epochs": 2, "steps": 3, "generator_steps": 2, "passes": 2, "distil_steps": 2,
    "server_epochs": 1, "samples": 20, "server_steps": 2, "one_shot_steps": 2, "server_width": 4, "virtual": 20,
    "local_epochs": 1, "per_round": 1, "local_steps": 2, "latent": 8, "hidden": 8, "images": 16, "adversarial": 1,
}  # fmt: skip
MIXED, ONE = "resnet18:2,cnn:2", "vgg9:4"
NARROW = {"fens": "resnet8:2", "fedet": MIXED, "coboosting": "cnn3:4", "fusefl": "resnet18:2", "fedlpa": "cnn:4"}


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Noise in the form of CIFAR-10: 48 training, 20 test and 24 public images, four classes."""
    path = tmp_path_factory.mktemp("data") / "tiny.npz"
    stream = np.random.default_rng(0)

    def noise(n):
        return stream.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)

    labels = {"y_train": np.arange(48) % 4, "y_test": np.arange(20) % 4}
    np.savez(path, x_train=noise(48), x_test=noise(20), x_public=noise(24), **labels)
    return str(path)


def fewer(name):
    """Qualified settings that make the method fast."""
    knobs = {k.name: k for k in METHODS[name].fields()}
    small = {key: value for key, value in FEWER.items() if key in knobs}
    if isinstance(getattr(knobs.get("width"), "default", None), int):
        small["width"] = 4
    return {f"{name}.{key}": value for key, value in small.items()}


@pytest.mark.parametrize("preset", [name for name in SETUPS if name != CLASSROOM])
def test_every_method_runs_in_its_set_up(images, preset, monkeypatch):
    monkeypatch.setattr(experiment, "_remembered", TrainedClients())
    for model in (MIXED, ONE) if preset == "fedet" else (NARROW[preset],):
        names = [n for n in SETUPS[preset].methods if model != ONE or "one architecture" in METHODS[n].info.needs]
        if model == MIXED:
            names = [n for n in names if "one architecture" not in METHODS[n].info.needs]
        setting = {"dataset": images, "preset": preset, "clients": 2, "alpha": 1.0, "epochs": 1, "model": model}
        small = {key: value for name in names for key, value in fewer(name).items()}
        works = {work.name: work for work in plans_for(Settings.make(**setting), names)}
        done = {}
        for event in job(names, cache=False, **setting, **small):
            assert event.error is None, (event.method, event.error)
            if event.outcome is not None:
                done[event.method] = event.outcome
        assert list(done) == names
        for name, outcome in done.items():
            assert outcome.recipe == works[name].recipe and 0 <= outcome.accuracy <= 1
            options = dataclasses.asdict(works[name].method)
            assert outcome.options == {**options, **{k.partition(".")[2]: v for k, v in fewer(name).items()}}, name
