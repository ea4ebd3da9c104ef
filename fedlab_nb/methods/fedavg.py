"""One-round FedAvg (McMahan et al., AISTATS 2017): θ̄ = Σ_k (n_k / N) θ_k, once, after full local training.

Batch-norm statistics are averaged with the same weights. n_k is the size of client k's training part; it travels in the
message's header. `average` takes a robust average in place of it (`parts/averages.py`), which does not know n_k.
"""

from .base import Context, GlobalModel, Method, NetworkModel, Steps, client_weights_knob, register
from .parts.averages import assumed_knob, average_knob, averaged, check_average


@register(
    "fedavg",
    title="FedAvg, one round",
    group="Average weights",
    paper="McMahan et al., AISTATS 2017",
    needs=["one architecture"],
    leaks="each client's model and sample count",
)
class FedAvg(Method):
    """Upload once, and average the weights."""

    weights: str = client_weights_knob("w_k")
    average: str = average_knob()
    assumed: int = assumed_knob()

    def validate(self, ctx: Context) -> None:
        super().validate(ctx)
        check_average(self.average, self.assumed, ctx.clients_count, self.info.title)

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        uploaded = yield from ctx.one_upload()
        sizes = ctx.sizes if self.weights == "samples" else [1] * ctx.clients_count
        with ctx.server():
            return NetworkModel(ctx.new_model(averaged(uploaded.states(), sizes, self.average, self.assumed)))
