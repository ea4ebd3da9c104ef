"""PyTorch's global switches change no result, are what they were afterwards, and never get into the store."""

import contextlib
import threading

import pytest
import torch

import fedlab_nb as fl
from fedlab_nb.data import federate, load
from fedlab_nb.errors import UsageError
from fedlab_nb.torch_switches import use_default_switches

METHODS = ["local", "fedavg", "ensemble", "afl", "fedlpa", "fens"]
SMALL = {"clients": 3, "epochs": 1, "seed": 11}


@contextlib.contextmanager
def switch_on(turn_on, turn_off):
    turn_on()
    try:
        yield
    finally:
        turn_off()


SWITCHES = {
    "float64": lambda: switch_on(
        lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32)
    ),
    "bfloat16": lambda: switch_on(
        lambda: torch.set_default_dtype(torch.bfloat16), lambda: torch.set_default_dtype(torch.float32)
    ),
    "meta device": lambda: switch_on(
        lambda: torch.set_default_device("meta"), lambda: torch.set_default_device(None)
    ),
    "device block": lambda: torch.device("meta"),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "deterministic": lambda: switch_on(
        lambda: torch.use_deterministic_algorithms(True),
        lambda: torch.use_deterministic_algorithms(False),
    ),
    "precision": lambda: switch_on(
        lambda: torch.set_float32_matmul_precision("medium"),
        lambda: torch.set_float32_matmul_precision("highest"),
    ),
}  # fmt: skip


def read_switches():
    return (
        torch.get_default_dtype(),
        torch.empty(0).device.type,
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
    )


def measure_all_methods(cache=False):
    return {
        out.method: (out.accuracy, out.ledger.total)
        for out in fl.compare(METHODS, cache=cache, **SMALL)
    }


@pytest.fixture(scope="module")
def usual():
    return measure_all_methods()


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_changes_no_result(name, usual):
    with SWITCHES[name]():
        before = read_switches()
        assert measure_all_methods() == usual
        assert read_switches() == before


def test_who_watches_a_job_has_the_own_switches_back(usual):
    with SWITCHES["float64"]():
        events = []
        for event in fl.job("fedavg", cache=False, **SMALL):
            assert torch.get_default_dtype() == torch.float64
            events.append(event)
        assert events[-1].outcome.accuracy == usual["fedavg"][0]


def test_data_and_federations_are_the_same(tmp_path):
    expected = federate("glyphs:8g", clients=3, seed=1)
    with SWITCHES["float64"](), torch.device("meta"):
        made = federate(load("glyphs:8g"), clients=3, seed=1)
        own = load({"x": [[1.5], [2.5]] * 20, "y": [0, 1] * 20})
    assert all(map(torch.equal, made.shards, expected.shards))
    assert own.x_train.dtype == torch.float32 and own.x_train.device.type == "cpu"


@pytest.mark.parametrize("name", ["float64", "precision"])
def test_another_thread_is_refused_what_belongs_to_the_process(name):
    """There the switch cannot be changed without changing it for the person's own code, too."""
    found = []

    def work():
        try:
            fl.run("fedavg", cache=False, **SMALL)
        except UsageError as error:
            found.append(str(error))

    with SWITCHES[name]():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(found) == 1 and "torch.set_" in found[0] and found[0].endswith(".")


def test_blocks_may_stand_in_one_another():
    with SWITCHES["float64"]():
        with use_default_switches():
            with use_default_switches():
                assert torch.get_default_dtype() == torch.float32
            assert torch.get_default_dtype() == torch.float32
        assert torch.get_default_dtype() == torch.float64
        with pytest.raises(ZeroDivisionError), use_default_switches():
            _ = 1 / 0
        assert torch.get_default_dtype() == torch.float64
