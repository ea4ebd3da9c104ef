"""A user's own data and clients: arrays, registered names, client ids, lists of indices, and the share in use."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlab_nb.data import (
    add_dataset,
    describe,
    federate,
    find_dataset_in_memory,
    load,
    registry,
    replace_objects_by_names_in_settings,
)
from fedlab_nb.data.arrays import (
    convert_index_lists_to_client_of_sample,
    encode_client_ids,
    hash_dataset_content,
    make_dataset_from_arrays,
)
from fedlab_nb.errors import UsageError

X = np.linspace(0, 1, 60 * 4).reshape(60, 4).astype("float32")
Y = np.arange(60) % 3
ARRAYS = {"x_train": X, "y_train": Y, "x_test": X[:9], "y_test": Y[:9]}
IDS = np.repeat(["north", "south", "east"], [10, 20, 30])
pytestmark = pytest.mark.usefixtures("forget_names")


# ------------------------------------------------------------------------------------------------------ arrays
def test_arrays_and_a_file_of_them_give_the_same_data(tmp_path):
    arrays = {**ARRAYS, "x_public": X[:5], "client_train": IDS}
    np.savez(tmp_path / "own.npz", **arrays)
    file = load(tmp_path / "own.npz")
    dataset = make_dataset_from_arrays(arrays)
    for name in ("x_train", "y_train", "x_test", "y_test", "x_public", "client_train"):
        assert torch.equal(getattr(file, name), getattr(dataset, name)), name
    assert dataset.client_names == file.client_names == ("east", "north", "south")
    assert dataset.note == file.note
    assert describe(tmp_path / "own.npz").n_clients == 3


def test_torch_tensors_and_lists_are_the_same_data():
    dataset = make_dataset_from_arrays(ARRAYS)
    tensors = {name: torch.from_numpy(array) for name, array in ARRAYS.items()}
    for same in (tensors, {**ARRAYS, "x_public": None}, {**ARRAYS, "y_train": Y.tolist()}):
        assert make_dataset_from_arrays(same).digest == dataset.digest
    assert make_dataset_from_arrays({**ARRAYS, "y_train": (Y + 1) % 3}).digest != dataset.digest
    assert make_dataset_from_arrays({**ARRAYS, "client_train": IDS}).digest != dataset.digest


def test_a_dataset_copies_the_arrays():
    x = np.zeros((60, 1, 8, 8), np.float32)
    dataset = make_dataset_from_arrays({**ARRAYS, "x_train": x, "x_test": x[:9]})
    x[:] = 1
    assert not dataset.x_train.any()


def test_the_digest_depends_on_the_tensors():
    dataset = make_dataset_from_arrays(ARRAYS)
    before = hash_dataset_content(dataset)
    dataset.y_train[0] = 2
    assert hash_dataset_content(dataset) != before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(x_test=None), "lack x_test"),
        (dict(x_tests=X), "did you mean 'x_test'"),
        (dict(y_train=Y[:-1]), "but y_train has 59 labels"),
        (dict(x_train=[[1.0], [2.0, 3.0]]), "The array x_train cannot be used"),
        (dict(client_train=IDS[1:]), r"client_train has shape \(59,\), but it must be \[60\]"),
        (dict(client_train=np.linspace(0, 1, 60)), "client_train holds float64"),
    ],
)
def test_one_sentence_for_each_unusable_array(changes, message):
    with pytest.raises(UsageError, match=message) as caught:
        make_dataset_from_arrays({**ARRAYS, **changes})
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------------------------------ names
def test_a_registered_name_works_wherever_a_data_set_is_named(tmp_path):
    assert add_dataset("mine", ARRAYS) == "mine"
    assert load("mine").name == "mine"
    about = describe("mine")
    assert (about.input_shape, about.classes, about.n_train, about.n_test, about.n_clients) == (
        (4,),
        3,
        60,
        9,
        0,
    )
    assert federate("mine", clients=3).dataset is load("mine") is find_dataset_in_memory("mine")
    add_dataset("mine", {**ARRAYS, "client_train": IDS})  # the same name again is the new data
    assert federate("mine").partition == "natural"
    assert describe("mine").digest != about.digest
    np.savez(tmp_path / "own.npz", **ARRAYS)
    add_dataset("filed", tmp_path / "own.npz", title="From a file")
    assert load("filed") is load(tmp_path / "own.npz")
    assert find_dataset_in_memory("filed") is None
    assert registry.DATASETS["filed"].title == "From a file"


def test_a_digest_given_by_the_user_is_not_trusted():
    dataset = make_dataset_from_arrays(ARRAYS)
    other_dataset = make_dataset_from_arrays({**ARRAYS, "y_train": (Y + 1) % 3})
    names = set()
    for data in (dataset, other_dataset, dataset):
        with_false_digest = replace(data, digest="mine")
        names.add(replace_objects_by_names_in_settings({"dataset": with_false_digest})["dataset"])
    assert len(names) == 2
    assert len({describe(name).digest for name in names}) == 2


def test_objects_in_settings_are_replaced_by_names():
    assert replace_objects_by_names_in_settings({"alpha": 1}) == {"alpha": 1}
    assert replace_objects_by_names_in_settings({"dataset": "digits"}) == {"dataset": "digits"}
    assert replace_objects_by_names_in_settings({"dataset": load("digits")}) == {
        "dataset": "digits"
    }
    assert replace_objects_by_names_in_settings({"dataset": ["digits", ARRAYS]})["dataset"] == [
        "digits",
        replace_objects_by_names_in_settings({"dataset": ARRAYS})["dataset"],
    ]
    fed = federate("digits", clients=3, seed=5)
    settings_of_federation = replace_objects_by_names_in_settings({"federation": fed, "epochs": 2})
    assert settings_of_federation["seed"] == 5
    assert settings_of_federation.pop("epochs") == 2
    assert all(map(torch.equal, federate(**settings_of_federation).shards, fed.shards))


@pytest.mark.parametrize("name", ["digits", "a/b", "mine.npz", "", "a b", 3])
def test_names_that_are_not_allowed_are_refused(name):
    with pytest.raises(UsageError, match="cannot be a data set's name"):
        add_dataset(name, ARRAYS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(dataset=3), "A int is not a data set; give a name"),
        (
            dict(federation=federate("digits", clients=3), alpha=1),
            "alpha=1 contradicts the federation, which has alpha=0.1; leave it out",
        ),
        (dict(dataset=federate("digits", clients=3)), "write federation= instead"),
        (dict(dataset=["digits", federate("digits", clients=3)]), "write federation= instead"),
        (dict(dataset=(X, Y, X, Y)), "A ndarray is not a data set"),
    ],
)
def test_wrong_sources_are_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        replace_objects_by_names_in_settings(settings)


# -------------------------------------------------------------------------------------------------- clients of the data
@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.integers(-5, 5)), min_size=1, max_size=40), st.booleans())
def test_natural_clients_follow_the_ids(ids, as_text):
    ids = np.array(ids).astype(str) if as_text else np.array(ids)
    client, names = encode_client_ids(ids, len(ids))
    assert [names[k] for k in client] == [str(i) for i in ids.tolist()]
    assert len(set(names)) == len(names)
    n = len(ids)
    x = np.zeros((n + 1, 2)) + np.arange(n + 1)[:, None]
    y = {"y_train": np.arange(n) % 2 if n > 1 else [1], "y_test": np.zeros(n + 1, int)}
    fed = federate({"x_train": x[:n], "x_test": x, "client_train": ids, **y}, seed=n)
    assert fed.partition == "natural"
    assert fed.clients == len(names)
    assert fed.moved == 0
    for name, shard in zip(fed.dataset.client_names, fed.shards, strict=True):
        assert shard.tolist() == [i for i in range(n) if str(ids[i]) == name]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(-1, 4), min_size=60, max_size=60).filter(lambda o: max(o) >= 0),
    st.integers(0, 9),
)
def test_lists_of_indices_become_the_shards(owner, seed):
    lists = [[i for i in range(60) if owner[i] == k] for k in sorted(set(owner)) if k >= 0]
    shuffled = [np.random.default_rng(seed).permutation(rows) for rows in lists]
    fed = federate(make_dataset_from_arrays(ARRAYS), indices=shuffled, seed=seed)
    assert [shard.tolist() for shard in fed.shards] == lists
    assert fed.minimum == min(map(len, lists))
    assert int(fed.label_counts.sum()) == sum(map(len, lists))


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([[0, 1], [1]], "Client 1 has the index 1 that is already given"),
        ([[0], [60]], "Client 1 has the index 60"),
        ([[-1]], "Client 0 has the index -1"),
        ([[0], []], "client 1 must be one row"),
        ([[0.5]], "client 0 are float64"),
        ([], "indices is empty"),
        ("01", "indices is a str"),
    ],
)
def test_wrong_indices_are_refused(indices, message):
    with pytest.raises(UsageError, match=message):
        convert_index_lists_to_client_of_sample(indices, 60)
    with pytest.raises(UsageError, match=message):
        federate(make_dataset_from_arrays(ARRAYS), indices=indices)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(alpha=1), "alpha cannot be set"),
        (dict(clients=4), "clients is 4"),
        (
            dict(partition="natural", size_sigma=1, repair="redraw"),
            "repair and size_sigma cannot be set",
        ),
    ],
)
def test_natural_clients_refuse_settings_of_a_partition(options, message):
    data = make_dataset_from_arrays({**ARRAYS, "client_train": IDS})
    with pytest.raises(UsageError, match=message):
        federate(data, **options)
    # With partition="natural" alpha has no effect, as with "iid".
    assert federate(data, partition="natural", alpha=7, clients=3).clients == 3
    assert federate(data, partition="dirichlet", alpha=1, clients=4).clients == 4


# ------------------------------------------------------------------------------------------------------ share
@settings(max_examples=50, deadline=None)
@given(
    st.floats(0.1, 1),
    st.sampled_from(["dirichlet", "client_dirichlet", "iid", "classes"]),
    st.integers(0, 99),
)
def test_a_share_of_the_samples_is_partitioned(share, partition, seed):
    data = make_dataset_from_arrays(ARRAYS)
    fed, second_run = (
        federate(data, share=share, partition=partition, clients=4, seed=seed) for _ in range(2)
    )
    used = torch.cat(fed.shards).tolist()
    assert len(used) == len(set(used)) == round(share * 60)
    assert fed.share == share
    assert min(map(len, fed.shards)) >= fed.minimum
    assert all(map(torch.equal, fed.shards, second_run.shards))


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9])
def test_a_share_of_natural_clients_is_a_share_of_each(share):
    data = make_dataset_from_arrays({**ARRAYS, "client_train": IDS})
    all_samples = federate(data)
    share_of_samples = federate(data, share=share)
    for shard, part_of_shard in zip(all_samples.shards, share_of_samples.shards, strict=True):
        assert len(part_of_shard) == max(1, round(share * len(shard)))
        assert set(part_of_shard.tolist()) <= set(shard.tolist())


def test_a_public_share_leaves_the_other_samples_with_their_clients():
    from fedlab_nb.data import add_public_part

    data = make_dataset_from_arrays(
        {**ARRAYS, "client_train": IDS, "x_public": X[:6], "y_public": Y[:6]}
    )
    # The public part joins the training set and belongs to no client.
    dataset = add_public_part(data, 0.0)
    assert len(dataset.y_train) == 66
    assert sum(map(len, federate(dataset).shards)) == 60
    dataset = add_public_part(data, 0.3)
    client_of_row = {
        tuple(row): k
        for row, k in zip(data.x_train.tolist(), data.client_train.tolist(), strict=True)
    }
    assert len(dataset.y_train) == 46
    assert len(dataset.x_public) == 20
    clients_before_and_after = [
        (client_of_row[tuple(row)], k)
        for row, k in zip(dataset.x_train.tolist(), dataset.client_train.tolist(), strict=True)
    ]
    assert all(after in (-1, before) for before, after in clients_before_and_after)
    assert sum(after >= 0 for _, after in clients_before_and_after) >= 40
    with pytest.raises(UsageError, match="which leaves client 'a' without a training sample"):
        add_public_part(
            make_dataset_from_arrays({**ARRAYS, "client_train": ["a", *["b"] * 59]}), 0.9
        )
