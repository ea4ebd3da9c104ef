"""Moves by hand: each sample keeps exactly one client, whatever is moved; taking moves back restores every sample."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedlab_nb.data import Move, Moves, federate, letter
from fedlab_nb.data.moves import number_of
from fedlab_nb.errors import UsageError
from fedlab_nb.studies.settings import Settings, plans_for

CLIENTS, CLASSES = 6, 4
moved = st.builds(
    Move,
    st.integers(0, CLIENTS - 1),
    st.none() | st.integers(0, CLASSES - 1),
    st.integers(0, CLIENTS - 1),
).filter(lambda move: move.client != move.to)


def by_hand(shards, labels, moves):
    """The oracle: owners of single samples, one sample after the other."""
    owner = {int(i): k for k, own in enumerate(shards) for i in own}
    for move in moves:
        mine = sorted(i for i, k in owner.items() if k == move.client)
        for i in mine:
            if (move.klass is None or labels[i] == move.klass) and not (
                i == mine[0] and all(move.klass in (None, labels[j]) for j in mine)
            ):
                owner[i] = move.to
    return [sorted(i for i, k in owner.items() if k == client) for client in range(len(shards))]


@given(st.integers(0, 2**20), st.lists(moved, max_size=50))
def test_moves_keep_every_sample_exactly_once_and_a_list_cut_short_is_the_state_before(seed, moves):
    rng = np.random.default_rng(seed)
    labels, owner = (
        rng.integers(0, CLASSES, 60),
        np.concatenate([np.arange(CLIENTS), rng.integers(0, CLIENTS, 54)]),
    )
    shards = [np.flatnonzero(owner == k) for k in range(CLIENTS)]
    held = Moves(tuple(moves)).applied(shards, labels)
    assert np.array_equal(np.sort(np.concatenate(held)), np.arange(60)) and min(map(len, held)) >= 1
    assert [own.tolist() for own in held] == by_hand(shards, labels, moves)
    text = str(Moves(tuple(moves), seed))
    assert Moves.read(text).all == tuple(moves)
    for one, other in zip(shards, Moves.read("").applied(shards, labels), strict=True):
        assert np.array_equal(one, other)


def test_what_each_move_means_by_hand():
    labels, shards = (
        np.array([0, 1, 1, 0, 2, 2]),
        [np.array([0, 1, 2]), np.array([3, 4]), np.array([5])],
    )

    def after(text):
        return [own.tolist() for own in Moves.read(text).applied(shards, labels)]

    assert after("A1>B") == [[0], [1, 2, 3, 4], [5]]
    assert after("A>C") == [[0], [3, 4], [1, 2, 5]]  # the last one stays
    assert after("C>, C2>A") == [[0, 1, 2], [3, 4], [5]]
    assert after("A>, B>A") == [[0, 4], [3], [5]]
    assert after("B*, D2>A, B=east") == [[0, 1, 2, 4], [3, 4], [5], [3]]
    assert after("A*, D>A") == [[0, 1, 2], [3, 4], [5], [0]]  # nobody holds a sample twice
    assert [number_of(letter(k)) for k in range(702)] == list(range(702))


def test_a_federation_by_hand_is_the_same_for_every_seed_and_a_name_changes_nothing():
    plain, first, other = (
        federate("digits", seed=s, moves=m)
        for s, m in ((0, ""), (0, "A4>B, D*"), (7, "0: A4>B, D*"))
    )
    assert first.partition == "own" and first.clients == 11 and first.label_counts[0, 4] == 0
    assert all(map(torch.equal, first.shards, other.shards)) and torch.equal(
        first.shards[3], first.shards[10]
    )
    assert torch.equal(first.label_counts[:10].sum(0), plain.label_counts.sum(0))
    asked = Settings.make(moves="A4>B, D*, E=east", seed=3)
    assert (asked.moves, asked.count, asked.members) == (
        "3: A4>B, D*, E=east",
        11,
        tuple(range(11)),
    )
    assert asked.federation_options()["moves"] == "3: A4>B, D*"
    keys = {
        plans_for(Settings.make(moves=m), ["fedavg"])[0].clients_key()
        for m in ("", "A=x", "A4>B", "B4>A")
    }
    assert len(keys) == 3


def test_clients_of_the_data_and_those_that_take_no_part_can_be_moved_to():
    held = federate("heart", moves="A0>B, B*", unseen="C")
    assert (held.partition, held.clients, held.ids, held.whole.clients) == (
        "own",
        4,
        (0, 1, 3, 4),
        5,
    )
    assert int(held.label_counts[0, 0]) == 0 and torch.equal(held.shards[1], held.shards[3])


@pytest.mark.parametrize("moves", ["A3", "3>B", "K>A", "A>K", "A11>B", "A>A", "A3>B;", "a>B", "A="])
def test_moves_that_cannot_be_are_one_sentence(moves):
    for make in (lambda: federate("digits", moves=moves), lambda: Settings.make(moves=moves)):
        with pytest.raises(UsageError, match="move") as error:
            make()
        assert str(error.value).count(".") == 1
