"""Liars at inference: f of M clients answer falsely when an ensemble asks them, `poison=lie:f` (Dhasade, Farhadkhani,
Guerraoui, Gupta, Jacovella, Kermarrec, Pinot: Robust Federated Inference, ICLR 2026, arXiv 2510.00310).

They train and upload honestly, as if each client kept its model and answered by itself. What they say is ours: they
know the rule and the honest answers, and all name the same class, of all C the one that harms most. If the rule is the
mean of the probabilities, that is the class that the honest clients together find second most likely, and no other lie
moves the mean as far. A rule that is trained can be taught on lies (`taught`).

What a liar can send depends on what the rule reads. Of a probability vector the most that one can say is 1 for one
class. Logits have no such limit: a rule that adds them up is moved as far as the largest logit that it accepts. Here a
liar's is as large as the largest that an honest client gives for the same sample, so that its size gives nobody away;
`poison=lie:f:LOGIT` takes another size. (The clients of the paper's public code send probability vectors.)

A certificate holds whatever the liars say. Let p_k be the honest answers of all M clients, y the class of their mean,
and D_k = p_ky - p_kj. Liars can turn a D_k into -1 at worst, and do so where it is largest; so no f liars make j beat y
if the M - f smallest D_k sum to more than f. The paper's certificate is in terms of a margin; this one is exact.

Left out: attacks that search among uncertain answers by gradients, and liars who disagree with one another.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

CERTAIN = (
    100.0  # a logit whose probability is 1: how a probability vector (0, 1, 0) stands among logits
)
HONEST_LARGEST = 0.0  # a lie's logit: for each sample the largest of the honest clients'


def lie_logit(given: float, reads_probabilities: bool) -> float:
    """The logit of a lie: the `given` one (`Poison.logit`), or what goes with what the rule reads."""
    if given:
        return given
    return CERTAIN if reads_probabilities else HONEST_LARGEST


def lie_sizes(honest: Tensor, logit: float) -> Tensor:
    """`[N]`: a lie's logit for each sample; `honest`: the honest clients' logits `[H, N, C]`."""
    if logit == HONEST_LARGEST:
        return honest.amax((0, 2)).clamp_min(0)
    return honest.new_full(honest.shape[1:2], logit)


def with_lies(
    rule: Callable[[Tensor], Tensor], logits: Tensor, liars: Sequence[int], logit: float
) -> Tensor:
    """Clients' logits `[M, N, C]`, those in the rows `liars` replaced; the same tensor if there are none.

    `rule` makes scores `[N, C]` of them; `logit`: of the class that a liar names, see `lie_logit`; its others are 0.
    What harms most is what leaves the class of the honest clients' mean least ahead of the best other one.
    """
    if not liars:
        return logits
    honest = logits[[k for k in range(len(logits)) if k not in liars]]
    classes = logits.shape[-1]
    sizes = lie_sizes(honest, logit)[:, None]
    right = F.one_hot(honest.softmax(-1).mean(0).argmax(-1), classes).bool()
    ahead = []
    for lie in torch.eye(classes).to(logits):
        told = logits.clone()
        told[list(liars)] = sizes * lie
        scores = rule(told)
        ahead.append(scores[right] - scores.masked_fill(right, -torch.inf).amax(-1))
    told = logits.clone()
    told[list(liars)] = sizes * F.one_hot(torch.stack(ahead).argmin(0), classes).to(logits)
    return told


def taught(logits: Tensor, liars: int, stream: torch.Generator, logit: float) -> Tensor:
    """Logits `[n, M, C]` in which so many clients, drawn anew for each sample, name the class that the others together
    find second most likely: what a rule is trained on beside honest answers. `logit`: of a lie, see `lie_logit`.
    """
    samples, clients, classes = logits.shape
    drawn = torch.rand(samples, clients, generator=stream).argsort(1) < liars
    lying = drawn.to(logits.device)[..., None]
    second = (logits.softmax(-1) * ~lying).sum(1).topk(2).indices[:, 1]
    sizes = logits.new_full((samples,), logit)
    if logit == HONEST_LARGEST:
        sizes = logits.masked_fill(lying, -torch.inf).amax((1, 2)).clamp_min(0)
    lies = sizes[:, None] * F.one_hot(second, classes).to(logits)
    return torch.where(lying, lies[:, None], logits)


def certified(probabilities: Tensor, liars: int) -> Tensor:
    """`[N]`: whether no `liars` of the clients can change the class of the mean of honest `probabilities [M, N, C]`."""
    top = probabilities.mean(0).argmax(-1)
    own = probabilities.gather(-1, top.expand(len(probabilities), -1)[..., None])
    ahead = (own - probabilities).sort(0).values[: len(probabilities) - liars].sum(
        0
    ) - liars  # [N, C]
    safe = (ahead > 0) | F.one_hot(top, probabilities.shape[-1]).bool()
    return safe.all(-1)
