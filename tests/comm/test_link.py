"""The link: payloads arrive as copies, and the ledger counts exactly the bytes that were serialised."""

import json

import numpy as np
import pytest
import safetensors.torch
import torch
from byte_formulas import count_ccvr_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from fedlab_nb.comm import (
    Ledger,
    Link,
    QuantisedTensor,
    count_payload_bytes,
    formulas,
    pack_upper_triangle,
    quantise,
    quantise_state,
    serialise_payload,
)
from fedlab_nb.errors import UsageError
from fedlab_nb.models import build, copy_model_state

ARRAYS = npst.arrays(
    st.sampled_from(["float32", "float64", "float16", "int64", "int32", "uint8", "bool"]),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
)
HEADER = st.none() | st.integers() | st.text(max_size=3) | st.booleans()
PAYLOADS = st.recursive(
    ARRAYS | HEADER,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def convert_to_tensors(tree):
    if isinstance(tree, np.ndarray):
        return torch.from_numpy(tree.copy())
    if isinstance(tree, dict):
        return {name: convert_to_tensors(part) for name, part in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(map(convert_to_tensors, tree))
    return tree


def list_arrays(tree):
    if isinstance(tree, np.ndarray):
        return [tree]
    if isinstance(tree, dict):
        items = list(tree.values())
    elif isinstance(tree, (list, tuple)):
        items = list(tree)
    else:
        items = []
    arrays = []
    for item in items:
        arrays += list_arrays(item)
    return arrays


def is_same(a, b):
    if isinstance(a, torch.Tensor):
        return (
            a.dtype == b.dtype
            and a.shape == b.shape
            and serialise_payload(a) == serialise_payload(b)
        )
    if isinstance(a, dict):
        if type(b) is not dict or list(a) != list(b):
            return False
        return all(is_same(a[name], b[name]) for name in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(is_same, a, b))
    return a == b


# Takes its time: many examples, since payloads are nested and of every type.
@settings(deadline=None, max_examples=200)
@given(PAYLOADS)
def test_the_bytes_are_those_of_the_arrays_and_the_payload_arrives(tree):
    payload = convert_to_tensors(tree)
    link = Link(3)
    body = b"".join(array.tobytes() for array in list_arrays(tree))
    assert serialise_payload(payload) == body
    assert count_payload_bytes(payload) == len(body)
    assert is_same(link.up(1, payload, phase="a"), payload)
    assert is_same(link.broadcast(payload, phase="b"), payload)
    assert link.ledger.up == len(body)
    assert link.ledger.down == 3 * len(body)
    assert link.ledger.total == 4 * len(body)


@pytest.mark.parametrize("name", ["mlp", "cnn", "resnet8"])
def test_the_bytes_of_a_model_are_those_that_safetensors_writes(name):
    state = copy_model_state(build(name, (1, 16, 16), 10))
    state["steps"] = torch.tensor([1, 2, 3])
    written = safetensors.torch.save(state)
    header = 8 + int.from_bytes(written[:8], "little")
    assert count_payload_bytes(state) == len(serialise_payload(state)) == len(written) - header


def test_strided_expanded_and_differentiable_tensors_are_sent():
    base = torch.arange(6.0).reshape(2, 3).requires_grad_()
    assert serialise_payload(base.T) == np.arange(6, dtype="float32").reshape(2, 3).T.tobytes()
    expanded = torch.zeros(1).expand(10)
    assert count_payload_bytes(expanded) == len(serialise_payload(expanded)) == 40
    received = Link(1).up(0, {"w": base * 2, "p": torch.nn.Parameter(torch.ones(2))}, phase="x")
    assert not any(t.requires_grad or t.grad_fn for t in received.values())
    assert type(received["p"]) is torch.Tensor


@pytest.mark.parametrize("send", ["up", "down", "broadcast"])
def test_the_received_payload_shares_no_memory(send):
    link = Link(2)
    payload = {
        "w": torch.ones(3),
        "parts": [torch.ones(2), (torch.ones(1),)],
        "q": quantise(torch.ones(4)),
        "n": 3,
    }
    if send == "broadcast":
        received = link.broadcast(payload, phase="x")
    else:
        received = getattr(link, send)(0, payload, phase="x")
    payload["w"].zero_()
    payload["parts"][0].zero_()
    payload["parts"][1][0].zero_()
    payload["q"].codes.zero_()
    payload["q"].scale.zero_()
    payload["parts"].append(None)
    payload["n"] = 4
    assert received["w"].eq(1).all()
    assert received["parts"][0].eq(1).all()
    assert received["parts"][1][0].eq(1).all()
    assert isinstance(received["q"], QuantisedTensor)
    assert received["q"].dequantise().allclose(torch.ones(4))
    assert len(received["parts"]) == 2
    assert received["n"] == 3
    received["w"].fill_(5)
    assert payload["w"].eq(0).all()


def test_eight_bit_weights_take_a_quarter_of_the_bytes_and_doubles_twice():
    state = copy_model_state(build("cnn", (1, 28, 28), 10))
    weights = {name: t for name, t in state.items() if t.ndim >= 2}
    assert count_payload_bytes(quantise_state(weights)) == count_payload_bytes(
        weights
    ) // 4 + 4 * len(weights)
    assert (
        count_payload_bytes({name: t.double() for name, t in state.items()})
        == 2 * count_payload_bytes(state)
        == 8 * 44_426
    )


def test_ledger_sums_by_client_and_phase():
    link = Link(3)
    link.up(2, torch.zeros(10), phase="models")
    link.down(0, [torch.zeros(5)], phase="ensemble")
    for _ in range(4):
        link.up(2, {"g": torch.zeros(1)}, phase="aggregator")
    link.down(np.int64(2), None, phase="aggregator")
    ledger = link.ledger
    assert (ledger.up, ledger.down, ledger.total) == (56, 20, 76)
    assert ledger.by_client() == {0: (0, 20), 1: (0, 0), 2: (56, 0)}
    assert ledger.by_phase() == {"models": (40, 0), "ensemble": (0, 20), "aggregator": (16, 0)}
    assert ledger.rows() == [
        {"client": 2, "direction": "up", "phase": "models", "bytes": 40, "messages": 1},
        {"client": 0, "direction": "down", "phase": "ensemble", "bytes": 20, "messages": 1},
        {"client": 2, "direction": "up", "phase": "aggregator", "bytes": 16, "messages": 4},
        {"client": 2, "direction": "down", "phase": "aggregator", "bytes": 0, "messages": 1},
    ]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.sampled_from(["up", "down"]),
            st.sampled_from(["a", "b"]),
            st.integers(0, 9**20),
        )
    )
)
def test_ledger_survives_json_and_its_sums_agree(messages):
    ledger = Ledger(5)
    for message in messages:
        ledger.add(*message)
    restored = Ledger.from_json(json.loads(json.dumps(ledger.to_json())))
    assert restored == ledger
    assert restored.rows() == ledger.rows()
    assert restored.up == ledger.up
    assert restored.down == ledger.down
    for sums in (ledger.by_client(), ledger.by_phase()):
        assert sum(up for up, _ in sums.values()) == ledger.up
        assert sum(down for _, down in sums.values()) == ledger.down
    assert ledger.total == sum(message[3] for message in messages)
    assert sum(row["messages"] for row in ledger.rows()) == len(messages)


@pytest.mark.parametrize(
    "data",
    [
        {},
        None,
        {"clients": 2},
        {"clients": 0, "rows": []},
        {"clients": 2, "rows": 3},
        {
            "clients": 2,
            "rows": [{"client": 2, "direction": "up", "phase": "a", "bytes": 1, "messages": 1}],
        },
        {
            "clients": 2,
            "rows": [{"client": 0, "direction": "up", "phase": "a", "bytes": -1, "messages": 1}],
        },
        {
            "clients": 2,
            "rows": [
                {"client": 0, "direction": "sideways", "phase": "a", "bytes": 1, "messages": 1}
            ],
        },
        {"clients": 2, "rows": [{"client": 0, "direction": "up", "phase": "a", "bytes": 1}]},
    ],
)
def test_data_that_are_not_a_ledger_are_refused(data):
    with pytest.raises(UsageError):
        Ledger.from_json(data)


@pytest.mark.parametrize("client", [-1, 3, True, 0.5, "0", None])
def test_a_client_that_does_not_exist_is_refused(client):
    link = Link(3)
    with pytest.raises(UsageError, match="whole number from 0 to 2"):
        link.up(client, torch.zeros(1), phase="x")
    assert link.ledger == Ledger(3)


@pytest.mark.parametrize(
    "payload",
    [
        0.5,
        np.zeros(3),
        object(),
        {"a": [1.5]},
        {(1, 2): torch.zeros(1)},
        torch.zeros(2, device="meta"),
        {1, 2},
        b"x",
    ],
)
def test_a_payload_that_cannot_be_counted_is_refused_and_leaves_no_entry(payload):
    link = Link(1)
    with pytest.raises(UsageError):
        link.up(0, payload, phase="x")
    with pytest.raises(UsageError):
        link.broadcast(payload, phase="x")
    assert link.ledger.rows() == []


def test_a_phase_needs_a_name():
    with pytest.raises(UsageError, match="phase's name"):
        Link(1).up(0, torch.zeros(1), phase="")
    with pytest.raises(UsageError, match="clients is 0"):
        Link(0)


# ------------------------------------------------------------------------------------------------ closed formulas
# Against the numbers printed in the papers, and against messages that were sent.

MIB = 2**20


def test_fens_byte_ratios_are_those_printed_in_the_paper():
    assert formulas.compute_fens_bytes_relative_to_one_shot(
        4_932_344, 20, 8450, 500
    ) == pytest.approx(4.3566, abs=5e-5)
    assert formulas.compute_fens_bytes_relative_to_one_shot(
        5_311_064, 20, 2000, 1000
    ) == pytest.approx(3.8766, abs=5e-5)
    for rounds, ratio in [(0, 3.50), (175, 3.80), (467, 4.30), (500, 4.36)]:
        assert formulas.compute_fens_bytes_relative_to_one_shot(
            4_932_344, 20, 8450, rounds
        ) == pytest.approx(ratio, abs=0.005)
    assert formulas.count_fens_bytes_per_client(4_932_344, 20, 8450, 500) / MIB == pytest.approx(
        163.9, abs=0.05
    )
    assert formulas.compute_fens_bytes_relative_to_one_shot(10**6, 20, 0, 0, bits=32) == 1 + 20 / 2


def test_bytes_of_ccvr_statistics_are_those_printed_and_those_sent():
    assert count_ccvr_bytes(256, 10) / MIB == pytest.approx(2.5, abs=0.05)
    assert count_ccvr_bytes(256, 100) / MIB == pytest.approx(25.1, abs=0.05)
    link = Link(1)
    link.up(
        0,
        [(torch.zeros(5), pack_upper_triangle(torch.eye(5))) for _ in range(3)],
        phase="statistics",
    )
    assert link.ledger.up == count_ccvr_bytes(5, 3, symmetric=True)
