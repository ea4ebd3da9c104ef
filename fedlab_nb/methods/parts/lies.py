"""Liars at inference: f of M clients answer falsely when an ensemble asks them, `poison=lie:f` (Dhasade, Farhadkhani,
Guerraoui, Gupta, Jacovella, Kermarrec, Pinot: Robust Federated Inference, ICLR 2026, arXiv 2510.00310).

They train and upload honestly, as if each client kept its model and answered by itself. What they say is ours: all name
with certainty the class that the honest clients together find second most likely. No other lie moves the mean of the
probabilities as far towards another class.

A certificate holds whatever the liars say. Let p_k be the honest answers of all M clients, y the class of their mean,
and D_k = p_ky - p_kj. Liars can turn a D_k into -1 at worst, and do so where it is largest; so no f liars make j beat y
if the M - f smallest D_k sum to more than f. The paper's certificate is in terms of a margin; this one is exact.

Left out: the paper's DeepSet aggregator, which is trained on lies, and the attacks that search for a lie by gradients.
"""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

SURE = 100.0  # a logit that makes a probability 1


def with_lies(logits: Tensor, liars: Sequence[int]) -> Tensor:
    """Clients' logits `[M, N, C]`, those in the rows `liars` replaced; the same tensor if there are none."""
    if not liars:
        return logits
    honest = [k for k in range(len(logits)) if k not in liars]
    second = logits[honest].softmax(-1).mean(0).topk(2).indices[:, 1]
    lies = SURE * F.one_hot(second, logits.shape[-1]).to(logits)
    told = logits.clone()
    told[list(liars)] = lies
    return told


def certified(probabilities: Tensor, liars: int) -> Tensor:
    """`[N]`: whether no `liars` of the clients can change the class of the mean of honest `probabilities [M, N, C]`."""
    top = probabilities.mean(0).argmax(-1)
    own = probabilities.gather(-1, top.expand(len(probabilities), -1)[..., None])
    ahead = (own - probabilities).sort(0).values[: len(probabilities) - liars].sum(0) - liars  # [N, C]
    safe = (ahead > 0) | F.one_hot(top, probabilities.shape[-1]).bool()
    return safe.all(-1)
