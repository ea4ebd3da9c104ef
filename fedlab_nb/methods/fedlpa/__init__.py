"""FedLPA: one-shot federated learning with layer-wise posterior aggregation (NeurIPS 2024, arXiv 2310.00339).

Each client fits a Gaussian to every layer around its trained weights Θ_k = [W b] (the paper's M_k): a Laplace
approximation whose precision is the empirical Fisher, stored as a Kronecker product of two small damped factors
(Eq. 10). The server multiplies the Gaussians. The mean of the product solves, layer by layer,

    Σ_k w_k B_k Θ A_k = Σ_k w_k B_k Θ_k A_k                                                    (Eqs. 7, 11-13)

Implemented: Eq. 10 (`client.py`, `parts/kronecker.py`), Eqs. 11-14 and 16 (`server.py`, `solvers.py`,
`parts/kronecker.py`). One upload a client; of the symmetric factors only the upper triangles travel. No public data, no
distillation. With less of the precision this is `fedavg` (none of it) or `regmean` (A alone);
`fisher_merge` has the Fisher diagonal, which is not the diagonals of A and B.

Departures, and why:
- The default solver is conjugate gradients: on the digits a residual of 1e-4 takes 20 steps at most (a test). Gradient
  descent ("gd") has no step in the paper: 1/L is ours, L the largest curvature; step="official" is the authors' 2/N (N
  numbers in a layer), far shorter in wide layers, divergent where L > N.
- solver=adam goes FedFisher's way to the same solution, from the average (Jhunjhunwala et al., AISTATS 2024): stopped
  early, it stays nearer to the average. FedFisher has no prior, and picks the iterate on validation images of the
  server; here the damping stays, and `iterations` alone says when to stop.
- w_k = n_k/N as in the authors' code, not 1 as in Eq. 7; with weights that sum to 1 the prior counts about once. Linear
  regression is then exact. "uniform" follows the equations up to a factor that cancels.
- The paper has no formula for pi: 1 as in the authors' code ("one", the default), or K-FAC's ratio of traces
  ("trace"). Neither is better everywhere.
- Convolutions are scaled as published (φ = 1); the authors' code has 1/Q² ("official"). It cancels under "trace".
- The factor pass runs in eval mode on the training part as it is. Parameters without factors (batch norm) and running
  statistics, which the paper does not mention, are averaged with w_k.
- The solver's model is the answer; the authors' code logs the better of it and EA's on the test set.
- `rounds` are of FedAvg, from FedLPA's model: the paper recommends this, and does not say how FedLPA itself goes on.
- `noise` is a test of tolerance (`client.py`), not the privacy mechanism that the paper makes of it.
- The paper says that the upload has no label information; `measure_label_leak` in the report measures that it has.
- All in float32: against a float64 solve (digits, 32x32 letters; λ_damp down to 1e-6) accuracy moved by one sample.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ...training import Recipe
from ...value_types import MeanPassesPerClient
from ..base import (
    ClientWeighting,
    Context,
    GlobalModel,
    Method,
    NetworkModel,
    Progress,
    Steps,
    knob,
    make_client_weights_knob,
    register,
)
from ..memory import SquareMatricesInMemory
from ..parts.kronecker import (
    CONV_SCALES,
    PI_RULES,
    ConvScale,
    DampingSplit,
    LayerPosterior,
    copy_state_with_layers,
    list_kronecker_factor_sizes,
)
from ..parts.rounds import Rounds
from ..traffic import FederationSizes, RunBytesUpPlusDown
from .client import LocalPosterior, PosteriorUpload, measure_label_leak
from .server import FedLPAModel, FedLPAReport, average_states_and_make_layer_systems
from .solvers import (
    CG_LIMIT,
    SOLVERS,
    STEPS,
    IterateOfAllLayers,
    PosteriorByLayer,
    SolverName,
    StepRule,
    iterate_all_layers_together,
)


class SolvedLayersAndState(NamedTuple):
    """The server's result: the global `state`, tensors by name; the `systems` by layer; the `last` iterate."""

    state: dict[str, Tensor]
    systems: dict[str, LayerPosterior]
    last: IterateOfAllLayers


@register(
    "fedlpa",
    title="FedLPA",
    group="Average weights",
    paper="Liu et al., NeurIPS 2024",
    rounds="one-shot (then T of FedAvg, if wanted)",
    traffic="2 S_θ + Σ d(d+1)/2 floats of the factors",
    needs=["one architecture"],
    extra="one more pass over the training data",
    sends="its network + two factors a layer",
    leaks="each client's model, sample count, the mean and second moments of its inputs, and (last B) its classes",
    forgets="its Gaussian leaves the product, which is solved again",
)
class FedLPA(Method):
    """Upload each layer with a Gaussian around it. The server multiplies the Gaussians."""

    damping: float = knob(1e-3, "Damping", symbol="λ_damp", low=1e-6, high=1e-1, log=True)
    pi: DampingSplit = knob("one", "Damping split", symbol="π", options=PI_RULES)
    solver: SolverName = knob("cg", "Solver", options=SOLVERS)
    iterations: int = knob(1000, "Gradient steps", symbol="T_gd", low=0, high=20_000)
    step: StepRule = knob("1/L", "Step", options=STEPS)
    conv_scale: ConvScale = knob("one", "Scale of convolutions", symbol="φ", options=CONV_SCALES)
    weights: ClientWeighting = make_client_weights_knob("w_k")
    noise: float = knob(0.0, "Noise", low=0, high=1)
    rounds: int = knob(0, "Rounds after", symbol="T", low=0, high=1000)
    local_epochs: int = knob(2, "Epochs per round", symbol="E", low=1, high=1000)

    report = FedLPAReport

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        factors = sizes.count_bytes_from_all_clients(sizes.input_triangles + sizes.output_triangles)
        rounds = 2 * self.rounds * sizes.models_up
        return RunBytesUpPlusDown(sizes.one_shot_bytes.bytes + factors + rounds)

    def local_passes(
        self, recipe: Recipe, client_sample_counts: Sequence[float]
    ) -> MeanPassesPerClient:
        return float(recipe.epochs + self.rounds * self.local_epochs)

    def square_matrices(self, ctx: Context) -> list[SquareMatricesInMemory]:
        """Both factors of every layer, one of each per client."""
        return list_kronecker_factor_sizes(ctx)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: local training, then one more pass over the samples for the factors.
        clients = yield from ctx.local_training()
        posteriors: list[LocalPosterior] = []

        def measure_and_damp(k: int) -> PosteriorUpload:
            """Client k's message: the damped factors. The undamped ones stay with the client."""
            x, y = ctx.private.train(k)
            posterior = LocalPosterior.measure(clients.module(k), x, y, self.conv_scale)
            posteriors.append(posterior)
            stream = ctx.generator("fedlpa", "noise", k)
            return posterior.make_upload(self.damping, self.pi, self.noise, stream)

        # Link: models and factors go up.
        received = yield from ctx.collect("factor pass", measure_and_damp, phase="posteriors")
        # Server: the mean of the product of the Gaussians.
        with ctx.server():
            state, systems, last_iterate = yield from self.solve_layers_and_average_rest(
                ctx, received
            )
        if self.rounds:
            state = yield from Rounds(ctx, self).run_all_rounds(state)
        report = self._make_report(ctx, systems, last_iterate)
        return FedLPAModel(ctx.new_model(state), report, posteriors)

    # ------------------------------------------------------------------ server part
    def solve_layers_and_average_rest(
        self, ctx: Context, received: list[PosteriorUpload]
    ) -> Steps[SolvedLayersAndState]:
        """Solve every layer's linear system; the solution is the global model's layer, all else is averaged."""
        average, systems = average_states_and_make_layer_systems(received, self.weights)
        total = self._choose_iteration_limit()
        for iterate in iterate_all_layers_together(
            systems, self.solver, self.iterations, self.step
        ):
            if iterate.is_step_count_power_of_two or iterate.iteration % 10 == 0:
                snapshot = None
                if iterate.is_step_count_power_of_two:
                    network = ctx.new_model(copy_state_with_layers(average, iterate.matrices))
                    snapshot = NetworkModel(network, FedLPAReport.from_iterate(iterate))
                metrics = {"residual": iterate.worst_relative_residual}
                yield Progress("solve", iterate.iteration, max(total, 1), metrics, snapshot)
        return SolvedLayersAndState(
            copy_state_with_layers(average, iterate.matrices), systems, iterate
        )

    def _choose_iteration_limit(self) -> int:
        if self.solver == "cg":
            return CG_LIMIT
        if self.solver == "ea":
            return 0
        return self.iterations

    def _make_report(
        self, ctx: Context, systems: PosteriorByLayer, iterate: IterateOfAllLayers
    ) -> FedLPAReport:
        """For pictures and lessons, not part of the algorithm: it also reads labels that no client has sent."""
        counts = []
        for k in range(ctx.clients_count):
            _, labels = ctx.private.train(k)
            counts.append(torch.bincount(labels, minlength=ctx.classes))
        train_counts = torch.stack(counts).cpu()
        last_layer = list(systems.values())[-1]
        diagonals = last_layer.b.diagonal(dim1=1, dim2=2).cpu()  # as they were sent
        leak = measure_label_leak(diagonals, train_counts)
        report = FedLPAReport.from_iterate(iterate)
        return replace(report, label_leak=leak, train_counts=train_counts.numpy())
