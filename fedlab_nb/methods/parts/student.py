"""The server's student: a network of its own that learns from the clients' answers, and never travels."""

from ...models import Network
from ...models.state import copied
from ...training import Recipe
from ..base import NetworkModel, Report
from ..context import Context


def student_recipe(epochs: int, batch: int, lr: float) -> Recipe:
    """SGD with momentum 0.9, weight decay 1e-4, cosine over the epochs: DENSE's student in Co-Boosting's code."""
    return Recipe(epochs, batch, lr=lr, momentum=0.9, weight_decay=1e-4, schedule="cosine")


def new_student(ctx: Context, method: str, model: str) -> Network:
    """The server's network, `model` (see `ctx.server_architecture`), freshly drawn: not an average, as clients' may
    differ.

    In eval mode, so that images made against it before it has learnt anything leave its batch norm alone.
    """
    return ctx.build(ctx.server_architecture(model), ctx.generator(method, "student")).eval()


def snapshot(student: Network, report: Report | None = None) -> NetworkModel:
    """The student as it is now; training goes on with the original."""
    return NetworkModel(copied(student), report)
