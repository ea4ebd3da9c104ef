"""`public`: a share of the training set, all of it for the clients, or another data set; "own" changes nothing."""

import numpy as np
import pytest
import torch

from fedlab_nb.data import load
from fedlab_nb.errors import UsageError
from fedlab_nb.studies import run
from fedlab_nb.studies.settings import Settings, make_plans


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """A person's file of 120 digits without a public part."""
    data = load("digits")
    path = tmp_path_factory.mktemp("own") / "mine.npz"
    parts = {
        f"{a}_{b}": getattr(data, f"{a}_{b}")[:120].numpy() for a in "xy" for b in ("train", "test")
    }
    np.savez(path, **parts)
    return str(path)


def sort_samples(*parts):
    """The samples as a sorted list of byte strings."""
    return sorted(x.numpy().tobytes() for part in parts for x in part)


def test_own_is_the_data_set_itself():
    assert Settings.make().data() is load("digits")
    assert Settings.make().describe_dataset().digest == load("digits").digest


def test_a_share_cuts_the_whole_set_in_two():
    digits = load("digits")
    data = Settings.make(public="0.25", seed=3).data()
    assert (len(data.x_train), len(data.x_public)) == (1078, 359)  # of 1,437
    assert sort_samples(data.x_train, data.x_public) == sort_samples(
        digits.x_train, digits.x_public
    )
    label_of_image = {
        x.numpy().tobytes(): int(y) for x, y in zip(digits.x_train, digits.y_train, strict=True)
    }
    labelled = zip(data.x_public, data.y_public.tolist(), strict=True)
    assert all(label_of_image.get(x.numpy().tobytes(), y) == y for x, y in labelled)
    # One cut for all seeds
    assert torch.equal(data.x_public, Settings.make(public=0.25, seed=4).data().x_public)


def test_without_public_data_the_clients_share_the_whole_set():
    settings = Settings.make(public=0)
    assert settings.data().x_public is None
    assert int(settings.federation().sizes.sum()) == settings.describe_dataset().n_train == 1437


def test_another_set_comes_whole_and_without_labels(mine):
    data = Settings.make(public=mine).data()
    assert sort_samples(data.x_public) == sort_samples(load(mine).x_train)
    assert data.y_public is None
    assert len(data.x_train) == 1437
    assert (
        run("feddf", public=mine, holdout=0, epochs=1, clients=3, cache=False).validation_on == ""
    )


@pytest.mark.parametrize("choice", ["own", 0.0, 0.3, "file"])
def test_a_description_knows_sizes_and_digest_beforehand(choice, mine):
    settings = Settings.make(public=mine if choice == "file" else choice)
    data = settings.data()
    about = settings.describe_dataset()
    public = 0 if data.x_public is None else len(data.x_public)
    assert (about.n_train, about.n_public, about.digest) == (len(data.x_train), public, data.digest)


def test_each_choice_is_another_setting(mine):
    keys = {
        make_plans(Settings.make(public=p), ["feddf"])[0].hash_settings_of_run()
        for p in ("own", 0, 0.1, 0.2, mine)
    }
    assert len(keys) == 5


@pytest.mark.parametrize(
    "choice, words",
    [
        (1, "from 0 to 0.9"),
        ("glyphs", "choose like samples"),
        ("digits", "itself"),
        ("letters", "public data"),
        ("noise", "fedet."),
    ],
)
def test_a_wrong_choice_is_one_sentence(choice, words):
    with pytest.raises(UsageError, match=words):
        Settings.make(public=choice)
