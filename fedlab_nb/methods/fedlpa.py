"""FedLPA: one-shot federated learning with layer-wise posterior aggregation (NeurIPS 2024, arXiv 2310.00339).

Each client fits a Gaussian to every layer around its trained weights M_k = [W b]: a Laplace approximation whose
precision is the empirical Fisher, stored as a Kronecker product of two small damped factors (Eq. 10). The server
multiplies the Gaussians. The mean of the product solves, layer by layer,

    Σ_k w_k B_k M A_k = Σ_k w_k B_k M_k A_k                                                    (Eqs. 7, 11-13)

Implemented: Eq. 10 (`parts/kronecker.py`), Eqs. 11-14 and 16 (`parts/posterior.py`). One upload a client; of the
symmetric factors only the upper triangles travel. No public data, no distillation.

Departures, and why:
- The default solver is conjugate gradients: on the digits 5-7 steps reach a residual of 1e-6, where the paper's 10,000
  of gradient descent ("gd") reach 5e-3. Its step is 1/L, not the authors' fixed one, which diverges when L is large.
- w_k = n_k/N as in the authors' code, not 1 as in Eq. 7; with weights that sum to 1 the prior counts about once. Linear
  regression is then exact. "uniform" follows the equations up to a factor that cancels.
- The paper has no formula for pi: 1 as in the authors' code, or K-FAC's ratio of traces ("trace").
- Convolutions are scaled as published (c = 1); the authors' code has 1/T² ("official"). It cancels under "trace".
- The factor pass runs in eval mode on the training part as it is. Parameters without factors (batch norm) and running
  statistics, which the paper does not mention, are averaged with w_k.
- The solver's model is the answer; the authors' code logs the better of it and EA's on the test set.
- Everything is in the run's own type, float32: against a float64 solve (digits, 32x32 letters; λ down to 1e-6, both π)
  no accuracy moved by more than one test sample, in about half the time.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..comm import from_upper_triangle, upper_triangle
from ..models import model_state
from .base import GlobalModel, Method, NetworkModel, Progress, knob, register, weighted_mean
from .context import Context
from .parts.kronecker import (
    CONV_SCALES,
    PI_RULES,
    Factors,
    damped,
    damping_ratio,
    kronecker_factors,
    layer_matrix,
    with_layers,
)
from .parts.posterior import CG_LIMIT, SOLVERS, Posterior, steps


@register(
    "fedlpa",
    title="FedLPA",
    paper="Liu et al., NeurIPS 2024",
    rounds="one-shot",
    traffic="2 S_θ + Σ d(d+1)/2 floats of the factors",
    needs=["one architecture"],
    extra="one more pass over the training data",
    leaks="each client's model, sample count, the mean and second moments of its inputs, and (last B) its classes",
)
@dataclass(frozen=True)
class FedLPA(Method):
    """Upload each layer with a Gaussian around it, multiply the Gaussians."""

    damping: float = knob(
        1e-3,
        "Damping",
        "Prior precision. Small: every client counts only where its data speak; large: plain averaging.",
        symbol="λ",
        low=1e-6,
        high=1e-1,
        log=True,
    )
    pi: str = knob(
        "one",
        "Damping split",
        "How the two factors share the damping: evenly, or by their traces. It matters much, in either direction.",
        symbol="π",
        options=PI_RULES,
    )
    solver: str = knob(
        "cg",
        "Solver",
        "Conjugate gradients (exact), gradient descent (the paper's), or the closed-form shortcut EA (biased).",
        options=SOLVERS,
        paper="gd",
    )
    iterations: int = knob(
        1000,
        "Gradient steps",
        "Steps of gradient descent on the server; the other solvers need none.",
        symbol="T",
        low=0,
        high=20_000,
        paper=10_000,
    )
    conv_scale: str = knob(
        "one",
        "Scale of convolutions",
        "How a convolution's T positions share their scale between A and B: c = 1, 1/T or 1/T².",
        symbol="c",
        options=CONV_SCALES,
    )
    weights: str = knob(
        "samples",
        "Weights",
        "How much each client counts: in proportion to its samples (n_k/N), or all the same.",
        symbol="w_k",
        options=("samples", "uniform"),
    )

    def run(self, ctx: Context) -> Generator[Progress, None, GlobalModel]:
        clients = yield from ctx.local_training()
        received, notes = [], []
        for k in range(ctx.clients_count):
            upload, note = self.posterior_of_client(clients.module(k), *ctx.private.train(k))
            received.append(ctx.link.up(k, upload, phase="posteriors"))
            notes.append(note)
            yield Progress("factor pass", k + 1, ctx.clients_count)
        with ctx.server():
            return (yield from self.aggregate(ctx, received, notes))

    # ------------------------------------------------------------------ client part
    def posterior_of_client(self, module: nn.Module, x: Tensor, y: Tensor) -> tuple[dict, list[tuple[float, float]]]:
        """What client k sends: its state and the upper triangles of its damped factors, with n_k in the header.

        Beside it, for the reader and not sent: mean diagonal of the undamped B and the damping added to it, by layer.
        """
        triangles, note = {}, []
        for name, factors in kronecker_factors(module, x, y, conv_scale=self.conv_scale).items():
            pi = damping_ratio(factors, self.pi)
            precision = damped(factors, self.damping, pi)
            triangles[name] = {"a": upper_triangle(precision.a), "b": upper_triangle(precision.b)}
            note.append((factors.b.diagonal().mean().item(), self.damping**0.5 / pi))
        return {"samples": len(x), "state": model_state(module), "factors": triangles}, note

    # ------------------------------------------------------------------ server part
    def aggregate(self, ctx: Context, received: list[dict], notes: list) -> Generator[Progress, None, GlobalModel]:
        """Solve all layers side by side, one iteration of each at a time; layers that are done wait for the others."""
        trust = [r["samples"] if self.weights == "samples" else 1 for r in received]
        average = weighted_mean([r["state"] for r in received], trust)
        systems = {name: _system(received, name, trust) for name in received[0]["factors"]}
        running = {name: steps(system, self.solver, self.iterations) for name, system in systems.items()}
        total = {"gd": self.iterations, "cg": CG_LIMIT, "ea": 0}[self.solver]
        matrices: dict[str, Tensor] = {}
        curves: dict[str, list[Tensor]] = {name: [] for name in running}
        iteration = 0
        while running:
            for name in list(running):
                step = next(running[name], None)
                if step is None:
                    del running[name]
                else:
                    matrices[name] = step.matrix
                    curves[name].append(step.residual)
            doubled = iteration & (iteration - 1) == 0  # 0, 1, 2, 4, 8, …: models for a curve over the logarithm
            if running and (doubled or iteration % 10 == 0):
                worst = max(curve[-1].item() for curve in curves.values())
                model = NetworkModel(ctx.new_model(with_layers(average, matrices))) if doubled else None
                yield Progress("solve", iteration, max(total, 1), {"residual": worst}, model)
            iteration += 1
        return NetworkModel(
            ctx.new_model(with_layers(average, matrices)),
            artefacts=_artefacts(systems, curves, notes, f"{next(iter(systems))}.bias" in average),
            numbers={
                "layers": list(curves),
                "iterations": {name: len(curve) - 1 for name, curve in curves.items()},
                "residual": {name: curve[-1].item() for name, curve in curves.items()},
            },
        )


def _system(received: list[dict], layer: str, trust: list[int]) -> Posterior:
    """One layer's linear system from what the clients sent."""
    states, triangles = [r["state"] for r in received], [r["factors"][layer] for r in received]
    matrices = [layer_matrix(state, layer) for state in states]
    factors = [Factors(from_upper_triangle(t["a"]), from_upper_triangle(t["b"])) for t in triangles]
    return Posterior.of(matrices, factors, [n / sum(trust) for n in trust])


def _artefacts(systems: Mapping[str, Posterior], curves: Mapping, notes: list, biased: bool) -> dict[str, Any]:
    """Arrays for the lesson; the layers of a column are in `numbers["layers"]`.

    `residual.<layer>` [steps]: relative residual of each iterate. `b_diagonal` [K, layers]: mean diagonal of the
    undamped B, beside `b_damping` [K, layers], what was added to it: where it is the larger, damping has taken over.
    `input_column` [K, i], if the first layer has a bias: last column of its A without the corner, which is the client's
    mean input (of a convolution: its mean patch). `output_diagonal` [K, C]: diagonal of the last layer's B, as sent.
    """
    first, last = (list(systems.values())[at] for at in (0, -1))
    arrays = {f"residual.{name}": torch.stack(curve).cpu().numpy() for name, curve in curves.items()}
    arrays["b_diagonal"], arrays["b_damping"] = np.moveaxis(np.array(notes), -1, 0)
    if biased:
        arrays["input_column"] = first.a[:, :-1, -1].cpu().numpy()
    arrays["output_diagonal"] = last.b.diagonal(dim1=1, dim2=2).cpu().numpy()
    return arrays
