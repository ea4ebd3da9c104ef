"""Whom to ask: which k of M clients upload their model for an ensemble.

Guha, Talwalkar, Smith, *One-Shot Federated Learning*, 2019 (arXiv 1902.11175), the first paper on the subject: keep
those who are best on their own held-out samples ("validation", the paper's CV), those with the most samples ("size"),
or any ("random"). Under label skew the first rule fails: a client with one class is always right about its own samples.
"diversity" is DeDES (Wang et al., TMLR 2023): cluster the models by their weights, and take the best of each cluster.

Clients send their score and n_k, 8 bytes; under "diversity" their last layer too, which is what is clustered; under
"random" nothing. The server answers with yes or no, and only the chosen upload. In both papers the server sets the
thresholds, or has all models; here every model that is not chosen stays at home. A client without held-out samples
scores 0. Ties go to more samples, then to the lower number.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...training import ClientModels, in_chunks
from ..context import Context

BY = ("validation", "size", "random", "diversity")
PASSES = 50  # of k-means, at most


def chosen_clients(ctx: Context, clients: ClientModels, keep: int, by: str, stream: str) -> list[int]:
    """The numbers of the `keep` clients (0: all; more than M: all) that may upload, ascending; `by` one of BY.

    `stream` names the random stream. Call it outside `ctx.server()`.
    """
    count = ctx.clients_count
    if not 0 < keep < count:
        return list(range(count))
    if by == "random":
        with ctx.server():
            chosen = torch.randperm(count, generator=ctx.generator(stream, "selection"))[:keep].tolist()
    else:
        # Clients: how good and how many; the last layer, where it is looked at. Link, server: the choice.
        received = []
        for k in range(count):
            own: dict[str, Any] = {"scores": score(ctx, clients, k)}
            if by == "diversity":
                own["last layer"] = list(clients.module(k).classifier.state_dict().values())
            received.append(ctx.link.up(k, own, phase="scores"))
        with ctx.server():
            accuracy, sizes = torch.stack([one["scores"] for one in received]).double().T.tolist()
            first = sizes if by == "size" else accuracy
            ranked = sorted(range(count), key=lambda k: (-first[k], -sizes[k], k))
            chosen = ranked[:keep]
            if by == "diversity":
                vectors = torch.stack([torch.cat([t.flatten() for t in one["last layer"]]) for one in received])
                chosen = best_of_clusters(clusters(vectors, keep, ranked[0]), ranked, keep)
    for k in range(count):
        ctx.link.down(k, k in chosen, phase="scores")
    return sorted(chosen)


def score(ctx: Context, clients: ClientModels, k: int) -> Tensor:
    """Client side: its model's accuracy on its own held-out samples, 0–1, and n_k; `[2]`, float32."""
    x, y = ctx.private.held_out(k)
    right = (in_chunks(clients.module(k), x).argmax(1) == y).float().mean() if len(x) else x.new_zeros(())
    return torch.stack([right.float(), right.new_tensor(ctx.sizes[k]).float()])


def clusters(vectors: Tensor, count: int, first: int) -> Tensor:
    """k-means on `vectors [M, D]`: the cluster of each, `[M]`, 0 … count - 1; some may be empty.

    The start is row `first`, then each time the row that is farthest from all centres so far, so that nothing is drawn.
    """
    vectors = vectors.double()
    starts = vectors[[first]]
    while len(starts) < count:
        farthest = torch.cdist(vectors, starts).min(1).values.argmax()
        starts = torch.cat([starts, vectors[farthest][None]])
    centres, member = starts, torch.cdist(vectors, starts).argmin(1)
    for _ in range(PASSES):
        members = torch.nn.functional.one_hot(member, count).double()  # [M, count]
        sizes = members.sum(0)[:, None]
        centres = torch.where(sizes > 0, members.T @ vectors / sizes.clamp_min(1), centres)
        before, member = member, torch.cdist(vectors, centres).argmin(1)
        if torch.equal(before, member):
            break
    return member


def best_of_clusters(member: Tensor, ranked: Sequence[int], keep: int) -> list[int]:
    """The first of each cluster in the order `ranked`; where clusters are empty, the next ones fill up to `keep`."""
    cluster = member.tolist()
    best = [k for at, k in enumerate(ranked) if cluster[k] not in {cluster[j] for j in ranked[:at]}]
    return (best + [k for k in ranked if k not in best])[:keep]
