"""The two references: each client alone, without a federation, and below it centralized training.
Neither is a bound: methods can be worse than local models.

The reported accuracy is the mean over the clients of each model's accuracy on the global test set,
for all classes and for each. A client's own accuracy is that of its model on its own samples. The
best single client is reported, too. It is chosen on the clients' pooled held-out parts, never on
the test set, and `predict` uses its model.
"""

from dataclasses import dataclass

import torch

from ..tensor_types import Labels, Samples
from ..training import ClientModels
from ..training.calibration import measure_calibration
from ..training.evaluate import CachedFunction
from ..value_types import Accuracy0To1
from .base import (
    Context,
    GlobalModel,
    Method,
    NetworkModel,
    Report,
    Steps,
    register,
    report_progress,
)
from .run_outputs import ResultsOnTestSamples
from .traffic import FLOAT, FederationSizes, RunBytesUpPlusDown


@dataclass(frozen=True, eq=False)
class LocalReport(Report):
    """The accuracies of the clients' own models.

    best_client: the client that is best on held-out data
    each_client, best_client_accuracy: accuracies on test samples, `[M]` and that of the best client
    """

    best_client: int | None = None
    each_client: list[float] | None = None
    best_client_accuracy: float | None = None


class LocalModels(NetworkModel):
    """M separate models: `accuracy` is their mean; `predict` and `features` are those of the `best`
    one.
    """

    def __init__(self, clients: ClientModels, best: int) -> None:
        super().__init__(clients.module(best))
        self.clients = clients
        self.best = best
        self.client_logits = CachedFunction(clients.logits)  # [M, N, C]

    def complete_report_on_test_samples(self, samples: Samples, labels: Labels) -> LocalReport:
        accuracies = self.compute_accuracy_of_each_client(samples, labels)
        return LocalReport(self.best, accuracies, accuracies[self.best])

    def compute_accuracy_of_each_client(
        self, samples: Samples, labels: Labels
    ) -> list[Accuracy0To1]:
        """Accuracy of every client's own model, `[M]`."""
        return (self.client_logits(samples).argmax(-1) == labels).double().mean(1).tolist()

    def compute_test_results(self, samples: Samples, labels: Labels) -> ResultsOnTestSamples:
        """Compute the scores of the best model. Accuracy and calibration are those of all models
        together.
        """
        logits = self.client_logits(samples)
        calibrated = measure_calibration(logits, labels, self.score_kind)
        return ResultsOnTestSamples(
            logits[self.best], self.accuracy(samples, labels), calibrated, logits.argmax(-1)
        )

    def accuracy(self, samples: Samples, labels: Labels) -> Accuracy0To1:
        accuracies = self.compute_accuracy_of_each_client(samples, labels)
        return sum(accuracies) / len(accuracies)


@register(
    "local",
    title="Local only",
    group="References",
    paper="reference",
    rounds="none",
    traffic="S_θ (the initial model)",
    sends="",
    leaks="nothing leaves a client",
)
class Local(Method):
    """Each client alone. The accuracy is the mean over the clients. Held-out data choose the best one."""

    report = LocalReport
    sends_models = False

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        return RunBytesUpPlusDown(sizes.models_down)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        clients = yield from ctx.local_training()
        has_held_out = sum(ctx.private.sizes("held_out")) > 0
        read_samples = ctx.private.held_out if has_held_out else ctx.private.train
        samples = [read_samples(k) for k in range(ctx.clients_count)]
        x = torch.cat([x for x, _ in samples])
        y = torch.cat([y for _, y in samples])
        correct = (clients.logits(x).argmax(-1) == y).sum(1)
        return LocalModels(clients, int(correct.argmax()))


# --------------------------------------------------------------------------------------------------------- centralized
# One model on all clients' samples in one place. A reference, not a bound: other methods can be ahead.
#
# No federated method may do this, since all samples leave their owners. The ledger has the cost: the samples are
# sent up, as the tensors that are trained on and not as 8-bit pixels. All of each client's data is used, also the
# held-out part.


@register(
    "centralized",
    title="Centralized",
    group="References",
    paper="reference",
    rounds="none",
    traffic="the samples themselves",
    needs=["one architecture"],
    sends="all its samples",
    leaks="everything",
)
class Centralized(Method):
    """One model is trained on all samples in one place, for reference."""

    trains_locally = False
    sends_models = False

    def bytes_sent(self, sizes: FederationSizes) -> RunBytesUpPlusDown:
        sample_bytes = FLOAT * sizes.numbers + 8  # the label is a whole number of 64 bits
        return RunBytesUpPlusDown(sizes.samples * sample_bytes)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        received = []
        for k in range(ctx.clients_count):
            received.append(ctx.link.up(k, ctx.private.everything(k), phase="raw samples"))
        x = torch.cat([x for x, _ in received])
        y = torch.cat([y for _, y in received])
        model = ctx.initial_model(0)
        ticks = ctx.train([model], [(x, y)], ids=None, stream="centralized")
        return (
            yield from report_progress("centralized training", ticks, lambda: NetworkModel(model))
        )
