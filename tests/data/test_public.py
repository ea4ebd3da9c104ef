"""`public`: the data set's own public part, a share of the training set, none, or another data set."""

import numpy as np
import pytest
import torch

from fedlab_nb.data import load
from fedlab_nb.errors import UsageError
from fedlab_nb.studies import run
from fedlab_nb.studies.settings import Settings, make_plans


@pytest.fixture(scope="module")
def digits_file(tmp_path_factory):
    """A user's file of 120 digits without a public part."""
    data = load("digits")
    path = tmp_path_factory.mktemp("own") / "mine.npz"
    names = ("x_train", "y_train", "x_test", "y_test")
    np.savez(path, **{name: getattr(data, name)[:120].numpy() for name in names})
    return str(path)


def sort_samples(*parts):
    """The samples as a sorted list of byte strings."""
    return sorted(x.numpy().tobytes() for part in parts for x in part)


def test_own_keeps_the_public_part_of_the_data_set():
    assert Settings.make().load_dataset() is load("digits")
    assert Settings.make().describe_dataset().digest == load("digits").digest


def test_a_share_splits_training_and_public_part_together():
    digits = load("digits")
    data = Settings.make(public="0.25", seed=3).load_dataset()
    assert (len(data.x_train), len(data.x_public)) == (1078, 359)  # of 1,437
    assert sort_samples(data.x_train, data.x_public) == sort_samples(
        digits.x_train, digits.x_public
    )
    label_of_image = {
        x.numpy().tobytes(): int(y) for x, y in zip(digits.x_train, digits.y_train, strict=True)
    }
    labelled = zip(data.x_public, data.y_public.tolist(), strict=True)
    assert all(label_of_image.get(x.numpy().tobytes(), y) == y for x, y in labelled)
    # The same split for all seeds
    assert torch.equal(data.x_public, Settings.make(public=0.25, seed=4).load_dataset().x_public)


def test_without_public_data_the_clients_share_all_samples():
    settings = Settings.make(public=0)
    assert settings.load_dataset().x_public is None
    assert (
        int(settings.make_federation().sizes.sum()) == settings.describe_dataset().n_train == 1437
    )


def test_another_data_set_is_used_completely_and_without_labels(digits_file):
    data = Settings.make(public=digits_file).load_dataset()
    assert sort_samples(data.x_public) == sort_samples(load(digits_file).x_train)
    assert data.y_public is None
    assert len(data.x_train) == 1437
    assert (
        run("feddf", public=digits_file, holdout=0, epochs=1, clients=3, cache=False).validation_on
        == ""
    )


@pytest.mark.parametrize("choice", ["own", 0.0, 0.3, "file"])
def test_a_description_states_sizes_and_digest_without_loading(choice, digits_file):
    settings = Settings.make(public=digits_file if choice == "file" else choice)
    data = settings.load_dataset()
    about = settings.describe_dataset()
    public = 0 if data.x_public is None else len(data.x_public)
    assert (about.n_train, about.n_public, about.digest) == (len(data.x_train), public, data.digest)


def test_each_choice_has_another_store_key(digits_file):
    keys = {
        make_plans(Settings.make(public=p), ["feddf"])[0].hash_settings_of_run()
        for p in ("own", 0, 0.1, 0.2, digits_file)
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
def test_a_wrong_choice_is_refused_in_one_sentence(choice, words):
    with pytest.raises(UsageError, match=words):
        Settings.make(public=choice)
