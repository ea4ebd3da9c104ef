"""Lesson 05, Co-Boosting: one step of EE and the weights of GHS with small numbers; a program that drags sliders."""

from __future__ import annotations

import math

import numpy as np
import torch

from fedlab_nb.methods.parts import boosting
from fedlab_nb.panels.labs.coboosting_hand import correct

from .view import Card


def one_step() -> Card:
    """One step of EE on one image, three clients, two classes, as the method does it."""
    logits = torch.tensor([[[3.0, 0.0]], [[-1.0, 2.0]], [[1.0, 0.0]]], dtype=torch.float64)  # [M, N, C]
    label, w, mu = torch.tensor([0]), torch.full((3,), 1 / 3, dtype=torch.float64), 0.1
    total = torch.einsum("m,mnc->nc", w, logits) / w.sum()
    p = total.softmax(1)[0]
    gradient = boosting.weight_gradient(logits, label, w)
    after = boosting.sign_step(w, gradient, mu)
    told_ = ", ".join(f"{g:+.2f}" for g in gradient.tolist())
    return Card(
        "worked",
        "One image with label 0; the logits of three clients are (3, 0), (−1, 2) and (1, 0), w = (⅓, ⅓, ⅓).\n"
        f"A_w = ({total[0, 0]:.2f}, {total[0, 1]:.2f}), σ(A_w) = ({p[0]:.2f}, {p[1]:.2f}), loss −ln {p[0]:.2f} = "
        f"{-math.log(p[0]):.2f}.\n"
        f"Gradient: ({told_}). Weighted with w it sums to {float(w @ gradient) + 0.0:.2f}: nobody rises unless another "
        f"falls.\nStep by μ = {mu:g} against the sign: w = ({', '.join(f'{v:.2f}' for v in after.tolist())}), shares "
        f"({', '.join(f'{v:.2f}' for v in (after / after.sum()).tolist())}).",
    )


def two_images() -> Card:
    """GHS: an easy and a hard image in the generator's loss."""
    rows, losses = [], []
    for name, p in (("easy", 0.95), ("hard", 0.2)):
        losses.append(((1 - p) * -math.log(p), -math.log(p)))
        rows.append(f"{name}: p = {p:g}, CE = {losses[-1][1]:.2f}, d = {1 - p:.2f}, d · CE = {losses[-1][0]:.3g}")
    (easy, plain), (hard, plain_hard) = losses
    return Card(
        "worked",
        "\n".join(rows) + f"\nThe hard image counts {plain_hard / plain:.0f} times as much as the easy one with plain "
        f"cross-entropy, {hard / easy:.0f} times with GHS.",
    )


def climb(logits: np.ndarray, labels: np.ndarray, sweeps: int = 3, levels: int = 11) -> np.ndarray:
    """Weights `[M]` that were good on client logits `[N, M, C]`: slider by slider, the best of `levels` places each."""
    w, best = np.full(logits.shape[1], 0.5), -1.0
    for _ in range(sweeps):
        for k in range(len(w)):
            for level in np.linspace(0, 1, levels):
                tried = w.copy()
                tried[k] = level
                found = float((correct(logits, tried) == labels).mean())
                if found > best:
                    w, best = tried, found
    return w
