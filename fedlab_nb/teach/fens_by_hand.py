"""Lesson 03, FENS: the aggregator's sum for one sample, and phase 2 as one run of Adam, with the reader's numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import cross_entropy

from fedlab_nb.data import federate, load
from fedlab_nb.methods.parts import phase2
from fedlab_nb.methods.parts.aggregators import per_class

from .view import Card


def first(panel: Any) -> Any:
    """FENS' outcome of the first seed in the panel's last run."""
    outcomes = panel.record.find("fens").outcomes
    return outcomes[min(outcomes)]


def sum_for_one(panel: Any) -> Card:
    """The two sums for the first test sample that the average gets wrong and FENS right, term by term."""
    outcome = first(panel)
    if "aggregator_weights" not in outcome.artefacts:
        return Card("worked", "This sum has one weight a client and class: take the aggregator “per_class”, and Run.")
    data = load(outcome.setting["dataset"])
    z = outcome.model.experts(data.x_test.to(outcome.setting["device"])).double().cpu()
    table = torch.from_numpy(outcome.artefacts["aggregator_weights"]).double()
    average, fens, y = z.mean(1), (z * table).sum(1), data.y_test
    found = ((average.argmax(1) != y) & (fens.argmax(1) == y)).nonzero().flatten()
    if not len(found):
        return Card("worked", "With this run there is no test sample that FENS gets right and the average wrong.")
    i = int(found[0])
    right, wrong = int(y[i]), int(average[i].argmax())
    lines = [f"Test sample {i} is a {data.class_names[right]}. Two of the ten sums:"]
    for c in (wrong, right):
        name = data.class_names[c]
        terms = " ".join(f"{round(float(v)):+d}" for v in z[i, :, c])
        lines.append(f"average, class {name}: ({terms}) / {len(table)} = {average[i, c]:.1f}")
    for c in (wrong, right):
        name, big = data.class_names[c], int((table[:, c] * z[i, :, c]).abs().argmax())
        lines.append(
            f"FENS, class {name}: {fens[i, c]:.1f}; its largest term is client {big}'s, "
            f"λ · z = {table[big, c]:.2f} · {z[i, big, c]:.1f} = {table[big, c] * z[i, big, c]:.1f}"
        )
    lines.append(f"The average says {data.class_names[wrong]}, FENS says {data.class_names[right]}.")
    return Card("worked", "\n".join(lines))


def identity(panel: Any, rounds: int = 20) -> Card:
    """Phase 2 client by client, and one Adam on the pooled samples: how far apart, with K = 1 and with K = 2."""
    outcome = first(panel)
    told = outcome.setting
    fed = federate(told["dataset"], alpha=told["alpha"], clients=told["clients"], seed=told["seed"])
    held = [rows for _, rows in fed.split(told["holdout"])]
    x, y = fed.dataset.x_train, fed.dataset.y_train
    device = told["device"]
    proxies = [phase2.Proxy(outcome.model.experts.fresh(x[k].to(device)).double().cpu(), y[k]) for k in held if len(k)]
    far = {steps: _apart(proxies, rounds, steps) for steps in (1, 2)}
    exact = "less than 10⁻¹²" if far[1] < 1e-12 else f"{far[1]:.1g}"
    return Card(
        "worked",
        f"{rounds} rounds between {len(proxies)} clients, one after the other, against {rounds} steps of one Adam on "
        f"all {sum(len(p.labels) for p in proxies)} proxy samples in one place: the {proxies[0].logits[0].numel()} "
        f"weights differ by {exact} with K = 1 local step, and by up to {far[2]:.1g} with K = 2.",
    )


def _apart(proxies: list[phase2.Proxy], rounds: int, steps: int) -> float:
    _, clients, classes = proxies[0].logits.shape
    rule = per_class(clients, classes).double()
    plan = phase2.Plan(rounds, steps, batch=10**6)
    batches = [phase2.draw_batches(len(p.labels), 10**6, rounds * steps, torch.Generator()) for p in proxies]
    z, y = (torch.cat(parts) for parts in zip(*((p.logits, p.labels) for p in proxies), strict=True))
    w = rule.table.detach().clone().requires_grad_()
    m = v = torch.zeros_like(w)
    for _ in range(rounds):  # Adam without bias correction; the client's rate is η_l = 1
        (g,) = torch.autograd.grad(cross_entropy((z * w).sum(1), y), w)
        m, v = 0.9 * m - 0.1 * g, 0.99 * v + 0.01 * g**2
        w = (w + plan.eta_s * m / (v.sqrt() + 1e-3)).detach().requires_grad_()
    for _ in phase2.rounds_by_client(rule, proxies, batches, plan):
        pass
    return float((w - rule.table).detach().abs().max())
