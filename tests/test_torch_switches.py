"""PyTorch's global switches change no result, and are afterwards as they were before."""

import contextlib
import threading

import pytest
import torch

import fedlab_nb as fl
from fedlab_nb.data import federate, load
from fedlab_nb.errors import UsageError
from fedlab_nb.torch_switches import use_default_torch_switches

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
def usual_results():
    return measure_all_methods()


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_changes_no_result(name, usual_results):
    with SWITCHES[name]():
        before = read_switches()
        assert measure_all_methods() == usual_results
        assert read_switches() == before


def test_between_the_steps_of_a_job_the_caller_s_switches_are_set(usual_results):
    with SWITCHES["float64"]():
        events = []
        for event in fl.job("fedavg", cache=False, **SMALL):
            assert torch.get_default_dtype() == torch.float64
            events.append(event)
        assert events[-1].outcome.accuracy == usual_results["fedavg"][0]


def test_data_and_federations_are_the_same(tmp_path):
    expected = federate("glyphs:8g", clients=3, seed=1)
    with SWITCHES["float64"](), torch.device("meta"):
        federation = federate(load("glyphs:8g"), clients=3, seed=1)
        own_data = load({"x": [[1.5], [2.5]] * 20, "y": [0, 1] * 20})
    assert all(map(torch.equal, federation.shards, expected.shards))
    assert own_data.x_train.dtype == torch.float32 and own_data.x_train.device.type == "cpu"


@pytest.mark.parametrize("name", ["float64", "precision"])
def test_a_run_in_another_thread_is_refused_while_a_switch_of_the_process_is_on(name):
    """To change it for the run would change it for the person's own code, too."""
    errors = []

    def work():
        try:
            fl.run("fedavg", cache=False, **SMALL)
        except UsageError as error:
            errors.append(str(error))

    with SWITCHES[name]():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(errors) == 1 and "torch.set_" in errors[0] and errors[0].endswith(".")


def test_blocks_with_default_switches_may_be_nested():
    with SWITCHES["float64"]():
        with use_default_torch_switches():
            with use_default_torch_switches():
                assert torch.get_default_dtype() == torch.float32
            assert torch.get_default_dtype() == torch.float32
        assert torch.get_default_dtype() == torch.float64
        with pytest.raises(ZeroDivisionError), use_default_torch_switches():
            _ = 1 / 0
        assert torch.get_default_dtype() == torch.float64
