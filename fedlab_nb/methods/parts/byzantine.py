"""Byzantine clients at inference: f of M clients answer falsely when an ensemble asks them, `poison=lie:f`
(Dhasade, Farhadkhani, Guerraoui, Gupta, Jacovella, Kermarrec, Pinot: Robust Federated Inference, ICLR 2026, arXiv
2510.00310).

They train and upload honestly, as if each client kept its model and answered by itself. What they say is ours: they
know the rule and the honest answers, and all name the same class, of all C the one that harms most. If the rule is the
mean of the probabilities, that is the class that the honest clients together find second most likely, and no other lie
moves the mean as far. A rule that is trained can be taught on lies (`add_random_lies`).

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

# A logit whose probability is 1: how a probability vector (0, 1, 0) stands among logits.
CERTAIN_LOGIT = 100.0
# Stands for a logit that is for each sample the largest of the honest clients'.
MATCH_HONEST = 0.0


def choose_lie_logit(given: float, reads_probabilities: bool) -> float:
    """The logit of a lie: the `given` one (`Poison.logit`), or what goes with what the rule reads."""
    if given:
        return given
    if reads_probabilities:
        return CERTAIN_LOGIT
    return MATCH_HONEST


def compute_lie_logits(honest: Tensor, logit: float) -> Tensor:
    """`[N]`: a lie's logit for each sample; `honest`: the honest clients' logits `[H, N, C]`."""
    if logit == MATCH_HONEST:
        return honest.amax((0, 2)).clamp_min(0)
    return honest.new_full(honest.shape[1:2], logit)


def replace_answers(
    rule: Callable[[Tensor], Tensor], logits: Tensor, liars: Sequence[int], logit: float
) -> Tensor:
    """Clients' logits `[M, N, C]`, those in the rows `liars` replaced; the same tensor if there are none.

    `rule` makes scores `[N, C]` of them; `logit`: of the class that a liar names, see
    `choose_lie_logit`; its others are 0. What harms most is what leaves the class of the honest
    clients' mean least ahead of the best other one.
    """
    if not liars:
        return logits
    classes = logits.shape[-1]
    honest = logits[[k for k in range(len(logits)) if k not in liars]]
    honest_class = honest.softmax(-1).mean(0).argmax(-1)
    is_honest_class = F.one_hot(honest_class, classes).bool()
    sizes = compute_lie_logits(honest, logit)[:, None]
    margins = []
    for named_class in torch.eye(classes).to(logits):
        answers = logits.clone()
        answers[list(liars)] = sizes * named_class
        scores = rule(answers)
        best_other = scores.masked_fill(is_honest_class, -torch.inf).amax(-1)
        margins.append(scores[is_honest_class] - best_other)
    worst_class = torch.stack(margins).argmin(0)
    answers = logits.clone()
    answers[list(liars)] = sizes * F.one_hot(worst_class, classes).to(logits)
    return answers


def add_random_lies(logits: Tensor, liars: int, stream: torch.Generator, logit: float) -> Tensor:
    """Logits `[n, M, C]` in which so many clients lie, drawn anew for each sample.

    They name the class that the others together find second most likely. This is what a rule is
    trained on beside honest answers. `logit`: of a lie, see `choose_lie_logit`.
    """
    samples, clients, classes = logits.shape
    is_drawn = torch.rand(samples, clients, generator=stream).argsort(1) < liars
    is_liar = is_drawn.to(logits.device)[..., None]
    second = (logits.softmax(-1) * ~is_liar).sum(1).topk(2).indices[:, 1]
    if logit == MATCH_HONEST:
        sizes = logits.masked_fill(is_liar, -torch.inf).amax((1, 2)).clamp_min(0)
    else:
        sizes = logits.new_full((samples,), logit)
    lies = sizes[:, None] * F.one_hot(second, classes).to(logits)
    return torch.where(is_liar, lies[:, None], logits)


def certify_predictions(probabilities: Tensor, liars: int) -> Tensor:
    """`[N]`: whether no `liars` of the clients can change the class of the mean of honest
    `probabilities [M, N, C]`."""
    clients = len(probabilities)
    top = probabilities.mean(0).argmax(-1)
    of_top = probabilities.gather(-1, top.expand(clients, -1)[..., None])
    differences = (of_top - probabilities).sort(0).values  # D_k, ascending over the clients
    margins = differences[: clients - liars].sum(0) - liars  # [N, C]
    is_top = F.one_hot(top, probabilities.shape[-1]).bool()
    return ((margins > 0) | is_top).all(-1)
