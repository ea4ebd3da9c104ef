"""Memory that grows with the square of a width is checked beforehand: one sentence before anything is allocated."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from fedlab_nb import run
from fedlab_nb.errors import RunError, UsageError
from fedlab_nb.methods import memory
from fedlab_nb.methods.memory import (
    SquareMatricesInMemory,
    check_matrices_fit_in_memory,
    get_free_memory_in_bytes,
    read_free_container_bytes,
)

CPU = torch.device("cpu")
WIDE_DATA = {
    "x": np.random.default_rng(0).normal(size=(40, 300)).astype("float32"),
    "y": np.arange(40) % 2,
}
# Bytes of the square matrices by hand: 3 clients, 300 columns (301 with the ones), 2 classes, and 8 d² for a triangle.
BYTES_BY_HAND = {
    ("afl",): 2 * 3 * 301**2 * 8 + 8 * 301**2,
    ("gauss", "head", "qda"): 3 * 2 * 300**2 * 8 + 8 * 300**2,
    ("gauss", "head", "lda"): 3 * 300**2 * 8 + 8 * 300**2,
    ("regmean", "model", "mlp1:4"): 2 * 3 * (301**2 + 5**2) * 4 + 8 * 301**2,
    ("fedlpa", "model", "mlp1:4"): 2 * 3 * (301**2 + 4**2 + 5**2 + 2**2) * 4 + 8 * 301**2,
}


@pytest.mark.parametrize("case", BYTES_BY_HAND, ids=" ".join)
def test_a_run_that_would_not_fit_is_one_sentence_with_the_sizes(case, monkeypatch):
    method, *option = case
    setting = {"clients": 3, "epochs": 1, "dataset": WIDE_DATA, "cache": False, "device": "cpu"}
    if option:
        knob, value = option
        setting[knob] = value
    monkeypatch.setattr(memory, "get_free_memory_in_bytes", lambda device: BYTES_BY_HAND[case])
    run(method, **setting)
    monkeypatch.setattr(memory, "get_free_memory_in_bytes", lambda device: BYTES_BY_HAND[case] - 1)
    with pytest.raises(
        UsageError, match=r"30[01] x 30[01] numbers .* GB in all, and .* GB are free"
    ):
        run(method, **setting)


@pytest.mark.parametrize("method, option", [("gauss", {"head": "nb"}), ("fedavg", {})])
def test_methods_without_square_matrices_are_not_refused(method, option, monkeypatch):
    monkeypatch.setattr(memory, "get_free_memory_in_bytes", lambda device: 0)
    run(method, clients=3, epochs=1, dataset=WIDE_DATA, cache=False, device="cpu", **option)


def test_the_sentence_counts_all_parts_and_names_the_largest(monkeypatch):
    monkeypatch.setattr(memory, "get_free_memory_in_bytes", lambda device: 10**9)
    with pytest.raises(
        UsageError, match=r"7 matrices of 20,000 x 20,000 .* 25\.6 GB in all.* 1\.0 GB"
    ):
        check_matrices_fit_in_memory(
            "AFL", [SquareMatricesInMemory(1, 3), SquareMatricesInMemory(7, 20_000)], CPU
        )
    monkeypatch.setattr(memory, "get_free_memory_in_bytes", lambda device: None)
    check_matrices_fit_in_memory("AFL", [SquareMatricesInMemory(10**9, 20_000)], CPU)


def test_an_allocation_that_still_fails_is_one_sentence(monkeypatch):
    def fail(method, ctx):
        torch.empty(2**55)
        yield

    monkeypatch.setattr("fedlab_nb.methods.fedavg.FedAvg.run", fail)
    with pytest.raises(
        RunError, match=r"ran out of memory on cpu, where it asked for [\d,]+\.\d GB"
    ):
        run("fedavg", clients=2, cache=False, device="cpu")


def test_the_memory_limit_of_a_container_is_read(tmp_path):
    assert read_free_container_bytes(tmp_path) is None
    for name, text in {
        "max": "2000",
        "current": "900",
        "stat": "anon 5\ninactive_file 300",
    }.items():
        (tmp_path / f"memory.{name}").write_text(text)
    assert read_free_container_bytes(tmp_path) == 1400
    (tmp_path / "memory.max").write_text("max\n")
    assert read_free_container_bytes(tmp_path) is None


@pytest.mark.skipif(sys.platform != "linux", reason="a process limit as Linux has it")
# Slow because the limit is set in a new Python process, which imports PyTorch.
@pytest.mark.slow
def test_free_memory_is_positive_and_below_the_process_limit():
    code = (
        "import resource, torch; from fedlab_nb.methods.memory import get_free_memory_in_bytes\n"
        "resource.setrlimit(resource.RLIMIT_AS, (14_000_000 * 1024,) * 2)\n"
        "print(get_free_memory_in_bytes(torch.device('cpu')))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert 0 < int(process.stdout) < 14_000_000 * 1024
    assert 0 < get_free_memory_in_bytes(CPU)
