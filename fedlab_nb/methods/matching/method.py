"""Neuron matching: put every client's hidden units into the same order, then average.

Units of a hidden layer have no names: in another order, with the weights that read them in that order too, they compute
the same function. So two networks that have learnt the same can differ in every weight, and their average mixes
strangers. The server finds for each client k the orders P_k in which its units fit those of a reference, the client
with the most samples, and averages θ̄ = Σ_k w_k P_k(θ_k). No data. Rules:

- greedy: OT-Fusion (Singh & Jaggi, NeurIPS 2020), layer by layer by the weights that come in. With equal widths and
  the same mass for every unit their optimal transport is an assignment of one unit to one; widths are equal here.
- rebasin: Git Re-Basin (Ainsworth, Hayase & Srinivasa, ICLR 2023), weight matching, which looks at the weights that
  come in and go out, layer after layer until nothing gains.
- activations: by the correlation of the units' activations on the same inputs (`on`: public samples, or noise).
- pfnm: PFNM (Yurochkin et al., ICML 2019), for one hidden layer, `pfnm.py`. It needs C class counts a client, and its
  network can have more hidden units than a client's.

`sweeps`: afterwards each client in turn is matched with the average of the others, as in Git Re-Basin's MergeMany.

Departures: the papers match two networks at a time, or go on from the average; here all are matched with one client
first. Running statistics of batch norm move with their units and are averaged, and not estimated anew (REPAIR, which
needs data). FedMA, PFNM layer by layer, trains between the layers: more than one round, and not here.

What to expect: with different initial models and little skew, nearly all of what the plain average loses comes back.
With one common initial model the units still know their places. And under strong label skew matching brings nothing:
units that fit each other do not make clients agree on classes that they never saw.
"""

from ...errors import demand
from ..base import GlobalModel, Method, Progress, Steps, client_weights_knob, knob, register, weighted_mean
from ..context import Context
from ..parts.frozen_ensemble import class_count_weights
from .matcher import Matcher
from .neurons import grown, one_hidden_layer
from .report import MatchedModel, MatchingReport
from .wiring import wiring_of

RULES = ("rebasin", "greedy", "activations", "pfnm")


@register(
    "matching",
    title="Neuron matching",
    paper="Ainsworth et al., ICLR 2023; Singh & Jaggi, NeurIPS 2020; Yurochkin et al., ICML 2019",
    needs=["one architecture"],
    leaks="each client's model and sample count (pfnm: class counts too)",
)
class Matching(Method):
    """Put the clients' hidden units into the same order, then average the weights."""

    rule: str = knob("rebasin", "Rule", options=RULES)
    sweeps: int = knob(3, "Sweeps", low=0, high=20)
    weights: str = client_weights_knob("w_k")
    on: str = knob("noise", "Activations on", options=("public", "noise"))
    sigma: float = knob(1.0, "Noise of neurons", symbol="σ", low=1e-3, high=1e3, log=True)
    sigma0: float = knob(1.0, "Spread of neurons", symbol="σ_0", low=1e-3, high=1e3, log=True)
    gamma: float = knob(1.0, "Mass", symbol="γ", low=1e-6, high=1e9, log=True)

    report = MatchingReport

    def validate(self, ctx: Context) -> None:
        super().validate(ctx)
        network = ctx.initial_model()
        wiring_of(network)  # refuses layers that it cannot follow
        demand(
            self.rule != "pfnm" or one_hidden_layer(network),
            "PFNM matches networks with one hidden layer; set model=mlp1, or choose another rule.",
        )
        demand(
            self.rule != "activations" or self.on != "public" or ctx.has("public"),
            "Activations need public samples, but this data set has none; set public=0.1 or another data set, or "
            "matching.on=noise.",
        )

    def run(self, ctx: Context) -> Steps[GlobalModel]:
        # Clients: train alone and upload once (pfnm: and count their labels).
        uploaded = yield from ctx.one_upload()
        shares = class_count_weights(ctx) if self.rule == "pfnm" else None
        # Server: match, then average.
        with ctx.server():
            sizes = ctx.sizes if self.weights == "samples" else [1] * ctx.clients_count
            average = ctx.new_model(weighted_mean(uploaded.states(), sizes))
            if shares is not None:
                module, report = grown(uploaded, shares, self.sigma, self.sigma0, self.gamma, self.sweeps)
            else:
                matcher = Matcher(ctx, uploaded, self.rule, self.on)
                for done in matcher.steps(sizes, self.sweeps):
                    yield Progress("matching", done, ctx.clients_count * (1 + self.sweeps))
                reordered = matcher.reordered(uploaded.states())
                module, report = ctx.new_model(weighted_mean(reordered, sizes)), matcher.report()
            return MatchedModel(module, report, average, uploaded)
