"""On a GPU only: achieved matrix rate as a share of the card's own, and kernel launches a step."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode
from training import VARIANTS, Clients, Workload

WORKS = [Workload("glyphs", model, 20, 0.1, 3, 32, 3) for model in ("cnn", "resnet8")]


def matmul_rate(size: int = 8192, seconds: float = 2.0) -> float:
    """FLOP/s of this card's fp32 (TF32 where it is allowed) matrix product."""
    a = torch.randn(size, size, device="cuda")
    a @ a
    torch.cuda.synchronize()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(10):
            a @ a
        torch.cuda.synchronize()
        count += 10
    return count * 2 * size**3 / (time.perf_counter() - start)


def card_lines(seed: int, samples: int) -> Iterator[str]:
    """A table of FLOP/s, share of the matrix rate and launches."""
    rate = matmul_rate()
    yield f"\n## The card\n\nMatrix product in float32: {rate / 1e12:.1f} TFLOP/s.\n"
    yield "| workload | variant | TFLOP/s | share of it | kernel launches a client step |\n|---|---|---|---|---|"
    for work in WORKS:
        clients = Clients(work, seed, samples, "cuda")
        batch = 32
        steps = work.epochs * sum(-(-len(y) // batch) for _, y in clients.shards)
        x, y = clients.shards[0]
        model = clients.fresh()[0]
        with FlopCounterMode(display=False) as counter:
            torch.nn.functional.cross_entropy(model(x[:batch]), y[:batch]).backward()
        flops = counter.get_total_flops() / len(x[:batch]) * work.epochs * sum(len(y) for _, y in clients.shards)
        for variant in VARIANTS:
            clients.train(variant)
            spent = clients.train(variant)
            with profile(activities=[ProfilerActivity.CUDA]) as seen:
                clients.train(variant)
            launches = sum(e.count for e in seen.key_averages() if e.device_type.name == "CUDA")
            share = flops / spent / rate
            yield f"| {work.name} | {variant} | {flops / spent / 1e12:.2f} | {share:.1%} | {launches / steps:.1f} |"
