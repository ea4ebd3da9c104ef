"""Edits of a federation: each sample keeps exactly one client, the short text, edits of a value, and runs with them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from javascript import run_javascript

import fedlab_nb as fl
from fedlab_nb.data import PartitionEdit, PartitionEdits, federate, format_client_letters
from fedlab_nb.data.edits import parse_client_letters_to_index
from fedlab_nb.errors import UsageError
from fedlab_nb.studies.settings import Settings, make_plans

CLIENTS = 6
CLASSES = 4
moves_strategy = st.builds(
    PartitionEdit,
    st.integers(0, CLIENTS - 1),
    st.none() | st.integers(0, CLASSES - 1),
    st.integers(0, CLIENTS - 1),
).filter(lambda move: move.client != move.to)


def apply_by_hand(shards, labels, moves):
    """The expected shards: the owner of each sample, changed one sample at a time."""
    owner = {}
    for client, shard in enumerate(shards):
        for sample in shard:
            owner[int(sample)] = client
    for move in moves:
        held = sorted(sample for sample, client in owner.items() if client == move.client)
        leaving = [i for i in held if move.label is None or labels[i] == move.label]
        if leaving == held:
            leaving = leaving[1:]  # the first one stays
        for sample in leaving:
            owner[sample] = move.to
    return [
        sorted(sample for sample, k in owner.items() if k == client)
        for client in range(len(shards))
    ]


@given(st.integers(0, 2**20), st.lists(moves_strategy, max_size=50))
def test_moves_keep_every_sample_exactly_once_and_equal_a_loop_over_samples(seed, moves):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, 60)
    owner = np.concatenate([np.arange(CLIENTS), rng.integers(0, CLIENTS, 54)])
    shards = [np.flatnonzero(owner == k) for k in range(CLIENTS)]
    edited = PartitionEdits(tuple(moves)).apply_to_shards(shards, labels)
    assert np.array_equal(np.sort(np.concatenate(edited)), np.arange(60))
    assert min(map(len, edited)) >= 1
    assert [shard.tolist() for shard in edited] == apply_by_hand(shards, labels, moves)
    text = str(PartitionEdits(tuple(moves), seed))
    assert PartitionEdits.parse(text).changes == tuple(moves)
    for shard, unedited in zip(
        shards, PartitionEdits.parse("").apply_to_shards(shards, labels), strict=True
    ):
        assert np.array_equal(shard, unedited)


def test_each_kind_of_edit_by_hand():
    labels = np.array([0, 1, 1, 0, 2, 2])
    shards = [np.array([0, 1, 2]), np.array([3, 4]), np.array([5])]

    def apply_edits_text(text):
        return [
            shard.tolist() for shard in PartitionEdits.parse(text).apply_to_shards(shards, labels)
        ]

    assert apply_edits_text("A1>B") == [[0], [1, 2, 3, 4], [5]]
    assert apply_edits_text("A>C") == [[0], [3, 4], [1, 2, 5]]  # the last one stays
    assert apply_edits_text("C>, C2>A") == [[0, 1, 2], [3, 4], [5]]
    assert apply_edits_text("A>, B>A") == [[0, 4], [3], [5]]
    assert apply_edits_text("B*, D2>A, B=east") == [[0, 1, 2, 4], [3, 4], [5], [3]]
    # Nobody holds a sample twice.
    assert apply_edits_text("A*, D>A") == [
        [0, 1, 2],
        [3, 4],
        [5],
        [0],
    ]
    assert [parse_client_letters_to_index(format_client_letters(k)) for k in range(702)] == list(
        range(702)
    )


def test_an_edited_federation_is_the_same_for_every_seed_and_a_client_name_changes_nothing():
    plain = federate("digits", seed=0)
    federation = federate("digits", seed=0, moves="A4>B, D*")
    with_another_seed = federate("digits", seed=7, moves="0: A4>B, D*")
    assert federation.partition == "own"
    assert federation.clients == 11
    assert federation.label_counts[0, 4] == 0
    assert all(map(torch.equal, federation.shards, with_another_seed.shards))
    assert torch.equal(federation.shards[3], federation.shards[10])
    assert torch.equal(federation.label_counts[:10].sum(0), plain.label_counts.sum(0))
    settings_by_name = Settings.make(moves="A4>B, D*, E=east", seed=3)
    assert (
        settings_by_name.moves,
        settings_by_name.client_count,
        settings_by_name.participating_clients,
    ) == (
        "3: A4>B, D*, E=east",
        11,
        tuple(range(11)),
    )
    assert settings_by_name.list_nondefault_federation_options()["moves"] == "3: A4>B, D*"
    keys = {
        make_plans(Settings.make(moves=moves), ["fedavg"])[0].hash_settings_of_local_training()
        for moves in ("", "A=x", "A4>B", "B4>A")
    }
    assert len(keys) == 3


def test_samples_can_be_moved_to_natural_and_to_unseen_clients():
    federation = federate("heart", moves="A0>B, B*", unseen="C")
    assert (federation.partition, federation.clients, federation.ids, federation.whole.clients) == (
        "own",
        4,
        (0, 1, 3, 4),
        5,
    )
    assert int(federation.label_counts[0, 0]) == 0
    assert torch.equal(federation.shards[1], federation.shards[3])


@pytest.mark.parametrize("moves", ["A3", "3>B", "K>A", "A>K", "A11>B", "A>A", "A3>B;", "a>B", "A="])
def test_impossible_moves_are_refused_in_one_sentence(moves):
    for make in (lambda: federate("digits", moves=moves), lambda: Settings.make(moves=moves)):
        with pytest.raises(UsageError, match="move") as error:
            make()
        assert str(error.value).count(".") == 1


# ------------------------------------------------------------------------------------------------------ the short text
VECTORS = json.loads(Path(__file__).with_name("edits.json").read_text(encoding="utf-8"))
names_strategy = st.text(
    st.characters(codec="utf-8", exclude_characters=",", exclude_categories=("Z", "C")), min_size=1
)
edits_strategy = st.one_of(
    moves_strategy,
    st.builds(PartitionEdit, st.integers(0, 700), st.none() | st.integers(0, 99), st.none()),
    st.builds(PartitionEdit, st.integers(0, 700), is_double=st.just(True)),
    st.builds(PartitionEdit, st.integers(0, 700), name=names_strategy),
)


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["text"] for vector in VECTORS])
def test_a_text_and_its_edits_are_the_same_in_both_directions(vector):
    edits = PartitionEdits(
        tuple(PartitionEdit(**edit) for edit in vector["edits"]), vector.get("seed")
    )
    assert PartitionEdits.parse(vector["text"]) == edits
    assert str(edits) == vector["text"]


def test_the_page_reads_the_same_texts_as_python():
    """The page cannot show doubled or renamed clients: it omits these edits and lists them under `leftOut`."""
    code = (
        "return vectors.map(({ text, seed = 4 }) =>"
        " readMoves(text, { clients: 30, classes: 10, seed }))"
    )
    assert run_javascript("text federation", code, vectors=VECTORS) == [
        vector["page"] for vector in VECTORS
    ]


def test_the_page_writes_what_it_reads():
    plain = [vector for vector in VECTORS if not vector["page"]["leftOut"] and "seed" not in vector]
    code = "return pages.map(({ moves }) => writeMoves(moves))"
    written = run_javascript("text federation", code, pages=[vector["page"] for vector in plain])
    assert written == [vector["text"] for vector in plain]
    assert len(plain) >= 7


@given(st.lists(edits_strategy, max_size=20), st.none() | st.integers(0, 10**6))
def test_edits_survive_their_text(changes, seed):
    edits = PartitionEdits(tuple(changes), seed)
    assert PartitionEdits.parse(str(edits)) == edits


# ----------------------------------------------------------------------------------------------------- edits of a value
def test_edits_of_a_value_equal_those_of_the_text():
    original = federate("digits", alpha=0.1, clients=10, seed=4)
    changed = original.move("A", "B", label=3).move(2, None).double("D").rename("E", "north")
    by_text = federate("digits", seed=4, moves="4: A3>B, C>, D*, E=north")
    assert str(changed.edits) == "4: A3>B, C>, D*, E=north"
    assert changed.clients == 11
    assert all(map(torch.equal, changed.shards, by_text.shards))
    assert original.edits == PartitionEdits()
    assert original.clients == 10  # the original is unchanged
    assert changed.move("north", "K").edits.changes[-1] == PartitionEdit(4, None, 10)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.none() | st.integers(0, 9), st.integers(0, 4)).filter(
            lambda move: move[0] != move[2]
        ),
        max_size=8,
    )
)
def test_moves_of_a_federation_keep_every_sample_exactly_once(moves):
    federation = federate("digits", alpha=0.1, clients=5, seed=1)
    samples = sorted(torch.cat(federation.shards).tolist())
    for client, label, receiver in moves:
        federation = federation.move(client, receiver, label=label)
    assert sorted(torch.cat(federation.shards).tolist()) == samples
    assert min(map(len, federation.shards)) >= 1


def test_labels_and_clients_are_given_by_index_or_by_name():
    heart = federate("heart")
    name = heart.dataset.class_names[1]
    names = heart.dataset.client_names
    by_name = heart.move(names[0], names[1], label=name)
    by_number = heart.move("A", 1, label=1)
    assert by_name.edits == by_number.edits
    assert by_name.edits.changes[0].label == 1
    assert all(map(torch.equal, by_name.shards, by_number.shards))


def test_federations_of_index_lists_and_with_absent_clients_can_be_edited():
    of_index_lists = federate("digits", indices=[[0, 1, 2], [5, 8], [9]]).move("A", "C")
    assert [shard.tolist() for shard in of_index_lists.shards] == [[0], [5, 8], [1, 2, 9]]
    with_absent_client = federate("digits", clients=4, absent=1).double("A")
    assert with_absent_client.absent == (3,)
    assert with_absent_client.ids == (0, 1, 2, 4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.move("K", "A"), "Unknown client 'K'"),
        (lambda f: f.move("A", 10), "client is 10"),
        (lambda f: f.move("A", "A"), "Client A cannot give samples to itself"),
        (lambda f: f.move("A", "B", label="ten"), "Unknown class 'ten'"),
        (lambda f: f.move("A", "B", label=10), "label is 10"),
        (lambda f: f.rename("A", "a, b"), "'a, b' cannot be a client's name"),
        (lambda f: f.rename("A", " "), "' ' cannot be a client's name"),
        (lambda f: replace(f, origin={}).move("A", "B"), "was put together by hand"),
    ],
)
def test_an_impossible_edit_is_refused_in_one_sentence(change, words):
    with pytest.raises(UsageError, match=words):
        change(federate("digits"))


def test_a_run_uses_the_federation_for_all_its_seeds():
    federation = federate("digits", alpha=0.1, clients=5, seed=4).move("A", "B", label=3)
    outcomes = fl.run("gauss", federation=federation, seeds=3)
    assert [outcome.settings.seed for outcome in outcomes] == [4, 5, 6]
    for outcome in outcomes:
        assert outcome.settings.moves == "4: A3>B"
        assert np.array_equal(outcome.label_counts, federation.label_counts.numpy())
    fixed = fl.compare("gauss", federation=federate("digits", clients=5, seed=4), seed=0, seeds=2)
    counts_of_seed_0, counts_of_seed_1 = (outcome.label_counts for outcome in fixed)
    assert np.array_equal(counts_of_seed_0, counts_of_seed_1)
    assert len(fl.study("gauss", federation=federation, seeds=2)) == 2


def test_a_federation_without_edits_equals_its_settings():
    federation = federate("digits", alpha=0.3, clients=4, seed=3, share=0.5, absent="B")
    settings_of_federation = Settings.make(federation=federation)
    settings_by_name = Settings.make(alpha=0.3, clients=4, seed=3, share=0.5, absent="B")
    assert (
        settings_of_federation.list_nondefault_federation_options()
        == settings_by_name.list_nondefault_federation_options()
    )
    assert replace(settings_of_federation, moves="") == settings_by_name
    assert settings_of_federation.moves == "3:"
    later = replace(settings_of_federation, seed=7).make_federation()
    assert later.seed == 7
    assert all(map(torch.equal, later.shards, federation.shards))


@pytest.mark.parametrize(
    ("contradiction", "words"),
    [
        (
            {"alpha": 0.5},
            "alpha=0.5 contradicts the federation, which has alpha=0.1; leave it out.",
        ),
        ({"clients": 9}, "clients=9 contradicts"),
        ({"moves": "A>B"}, "moves='A>B' contradicts"),
        ({"dataset": "glyphs:16g"}, "dataset='glyphs:16g' contradicts"),
        ({"partition": "iid"}, "partition='iid' contradicts"),
        ({"absent": 1}, "absent=1 contradicts"),
        ({"federation": "digits"}, "federation is a str, but it must be what fl.federate returns"),
    ],
)
def test_settings_that_contradict_the_federation_are_refused_in_one_sentence(contradiction, words):
    federation = federate("digits")
    with pytest.raises(UsageError, match=words):
        Settings.make(**{"federation": federation, **contradiction})
    same = Settings.make(federation=federation, alpha="0.1", clients=10, dataset="digits")
    assert same == Settings.make(federation=federation)
