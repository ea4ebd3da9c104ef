"""Lesson 03, FENS: the aggregator's sum for one sample, and phase 2 as one run of Adam, with the reader's numbers."""

from collections.abc import Mapping

import torch
from torch.nn.functional import cross_entropy

from ...methods.fens import Fens
from ...methods.fens.aggregators import per_class
from ...methods.fens.training import Proxy
from ...panels import Panel
from ...study import Outcome
from ..kit.view import Card, worked


def first(panel: Panel) -> Outcome:
    """FENS' outcome of the first seed in the panel's last run."""
    return panel.state("trust").outcome


def sum_for_one(panel: Panel) -> Card:
    """The two sums for the first test sample that the average gets wrong and FENS right, term by term."""
    outcome = first(panel)
    if outcome.report.weights is None:
        return worked("This sum has one weight a client and class: take the aggregator “per_class”, and Run.")
    data = outcome.federation().dataset
    z = outcome.model.experts(data.x_test.to(outcome.settings.device)).double().cpu()
    table = torch.from_numpy(outcome.report.weights).double()
    average, fens, y = z.mean(1), (z * table).sum(1), data.y_test
    samples = ((average.argmax(1) != y) & (fens.argmax(1) == y)).nonzero().flatten()
    if not len(samples):
        return worked("With this run there is no test sample that FENS gets right and the average wrong.")
    i, names = int(samples[0]), data.class_names
    right, wrong = int(y[i]), int(average[i].argmax())
    lines = [f"Test sample {i} is a {names[right]}. Two of the ten sums:"]
    for c in (wrong, right):
        terms = " ".join(f"{round(float(v)):+d}" for v in z[i, :, c])
        lines.append(f"average, class {names[c]}: ({terms}) / {len(table)} = {average[i, c]:.1f}")
    for c in (wrong, right):
        big = int((table[:, c] * z[i, :, c]).abs().argmax())
        lines.append(
            f"FENS, class {names[c]}: {fens[i, c]:.1f}; its largest term is client {big}'s, "
            f"λ · f = {table[big, c]:.2f} · {z[i, big, c]:.1f} = {table[big, c] * z[i, big, c]:.1f}"
        )
    return worked(*lines, f"The average says {names[wrong]}, FENS says {names[right]}.")


def identity(panel: Panel, rounds: int = 20) -> Card:
    """Phase 2 client by client, and one Adam on the pooled samples: how far apart, with J = 1 and with J = 2."""
    outcome = first(panel)
    federation, experts = outcome.federation(), outcome.model.experts
    x, y = federation.dataset.x_train.to(outcome.settings.device), federation.dataset.y_train
    held = [rows for _, rows in federation.split(outcome.plan.holdout) if len(rows)]
    proxies = {i: Proxy(experts.fresh(x[rows]).double().cpu(), y[rows]) for i, rows in enumerate(held)}
    far = {steps: apart(proxies, rounds, steps) for steps in (1, 2)}
    exact = "less than 10⁻¹²" if far[1] < 1e-12 else f"{far[1]:.1g}"
    return worked(
        f"We compare {rounds} rounds of phase 2 between {len(proxies)} clients with {rounds} steps of Adam on all "
        f"{sum(map(len, held))} proxy samples in one place. The {proxies[0].logits[0].numel()} weights differ by "
        f"{exact} with J = 1 local step, and by up to {far[2]:.1g} with J = 2."
    )


def apart(proxies: Mapping[int, Proxy], rounds: int, steps: int) -> float:
    """The largest difference between λ of FENS' rounds of J = `steps`, and λ of `rounds` steps of Adam."""
    z, y, _ = Proxy.joined(list(proxies.values()))
    rule, plan = per_class(*z.shape[1:]).double(), Fens(rounds=rounds, local_steps=steps, batch=10**6)
    w = rule.table.detach().clone().requires_grad_()
    m = v = torch.zeros_like(w)
    for _ in range(rounds):  # Adam without bias correction; the client's rate is η_l = 1
        (g,) = torch.autograd.grad(cross_entropy((z * w).sum(1), y), w)
        m, v = 0.9 * m - 0.1 * g, 0.99 * v + 0.01 * g**2
        w = (w + plan.eta_s * m / (v.sqrt() + 1e-3)).detach().requires_grad_()
    for _ in plan.train_aggregator(rule, proxies, lambda client: torch.Generator(), at_once=False):
        pass
    return float((w - rule.table).detach().abs().max())
