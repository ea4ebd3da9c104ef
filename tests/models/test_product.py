"""A product of matrices by either of two libraries: the same numbers, however the matrices lie in memory."""

import pytest
import torch

from fedlab_nb.models import product as module
from fedlab_nb.models.product import LARGE, onednn, product

X86 = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability().startswith("AVX")


def matrix(rows, columns, lies, dtype):
    """Whole numbers from -4 to 4, whose products and sums float32 holds exactly."""
    stream = torch.Generator().manual_seed(rows + columns)
    numbers = torch.randint(-4, 5, (columns, rows) if lies == "transposed" else (rows, columns), generator=stream)
    numbers = numbers.to(dtype)
    return numbers.t() if lies == "transposed" else numbers


@pytest.mark.parametrize("m, k, n", [(3, 4, 5), (128, 16, 2048), (9, 30_000, 8), (16, 256, 700), (1, 3000, 1000)])
@pytest.mark.parametrize("first", ["rows", "transposed"])
@pytest.mark.parametrize("second", ["rows", "transposed"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_on_whole_numbers(m, k, n, first, second, dtype):
    a, b = matrix(m, k, first, dtype), matrix(k, n, second, dtype)
    answer = product(a, b)
    assert answer.dtype == dtype and answer.is_contiguous()
    assert torch.equal(answer.long(), a.long() @ b.long())


def test_only_large_products_of_float32_are_onednns(monkeypatch):
    asked = []

    def linear(a, b, *rest):
        asked.append(tuple(a.shape))
        return a @ b.t()

    monkeypatch.setattr(module, "onednn", lambda: linear)
    k = 64
    small, large = torch.ones(LARGE // k // k, k), torch.ones(LARGE // k // k + 1, k)
    for a in (small, large, large.double(), large.to("meta")):
        product(a, torch.ones(k, k, dtype=a.dtype, device=a.device))
    assert asked == [tuple(large.shape)]
    monkeypatch.setattr(module, "onednn", lambda: None)
    assert torch.equal(product(large, torch.ones(k, k)), torch.full((len(large), k), float(k)))


@pytest.mark.skipif(not X86, reason="oneDNN's product is used on x86 CPUs alone")
def test_pytorch_still_has_onednns_product():
    """Its name is private. Where it went away everything still works, half as fast, and this test says so."""
    assert callable(onednn())


@pytest.mark.parametrize(
    "capability, there, has", [("DEFAULT", True, False), ("AVX2", False, False), ("AVX2", True, True)]
)
def test_who_has_it(monkeypatch, capability, there, has):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: there)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert (onednn.__wrapped__() is not None) == (has and hasattr(torch.ops.mkldnn, "_linear_pointwise"))
