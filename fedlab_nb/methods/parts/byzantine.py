"""Byzantine clients at inference: f of M clients answer falsely when an ensemble asks them,
`poison=lie:f` (Dhasade, Farhadkhani, Guerraoui, Gupta, Jacovella, Kermarrec, Pinot: Robust
Federated Inference, ICLR 2026, arXiv 2510.00310).

They train and upload honestly. Only their answers are false, as if each client kept its model and
predicted itself. The attack is ours, not the paper's: the liars know the rule and the honest
answers, and all name the same class, the one that does most harm. If the rule is the mean of the
probabilities, this is the class that the honest clients together find second most likely, and no
other lie moves the mean as far. A trained rule can also be trained on lies
(`replace_answers_of_random_liars`).

The worst lie depends on what the rule reads. In a probability vector it is 1 for one class. Logits
have no such limit: a rule that adds them up can be moved as far as the largest logit that it
accepts. Here a liar's logit is as large as the largest one of an honest client for the same sample,
so that its size does not reveal the liar; `poison=lie:f:LOGIT` sets another size. (The clients of
the paper's public code send probability vectors.)

A certificate holds for any answers of the liars. Let p_k be the honest answers of all M clients, y
the class of their mean, j another class, and D_k = p_ky - p_kj. A liar can lower its own D_k to -1
at worst, and the worst f liars are those with the largest D_k. So no f liars can make j beat y if
the M - f smallest D_k sum to more than f. The paper's certificate uses a margin; this one is exact.

Left out: attacks that search among uncertain answers by gradients, and liars who disagree with one another.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from ...tensor_types import (
    BooleanPerSample,
    ClassScores,
    ClientLogits,
    ClientLogitsBySample,
    ClientProbabilities,
    ValuePerSample,
)
from ..context import ClientIndex

# A logit so large that its probability is 1: the probability vector (0, 1, 0) is sent as the logits (0, 100, 0).
CERTAIN_LOGIT = 100.0
# A marker in place of a logit: "for each sample, the largest logit of an honest client".
MATCH_HONEST = 0.0


def choose_lie_logit(chosen_logit_or_0: float, rule_reads_probabilities: bool) -> float:
    """The logit of a lie: the chosen one (`Poison.logit`) if it is not 0, else the one for what the rule reads.

    That is CERTAIN_LOGIT for probabilities, and MATCH_HONEST for logits.
    """
    if chosen_logit_or_0:
        return chosen_logit_or_0
    if rule_reads_probabilities:
        return CERTAIN_LOGIT
    return MATCH_HONEST


def compute_lie_logit_per_sample(
    honest_logits: ClientLogits, lie_logit_or_0_to_match_honest: float
) -> ValuePerSample:
    """A lie's logit for each sample, `[N]`; `honest_logits [H, N, C]` are the honest clients'."""
    if lie_logit_or_0_to_match_honest == MATCH_HONEST:
        return honest_logits.amax((0, 2)).clamp_min(0)
    return honest_logits.new_full(honest_logits.shape[1:2], lie_logit_or_0_to_match_honest)


def replace_answers_of_liars(
    combine_logits: Callable[[ClientLogits], ClassScores],
    client_logits: ClientLogits,
    liar_indices: Sequence[ClientIndex],
    lie_logit_or_0_to_match_honest: float,
) -> ClientLogits:
    """`client_logits [M, N, C]` with the rows of the `liar_indices` replaced; the same tensor if there are
    none.

    combine_logits: the ensemble's rule, logits `[M, N, C]` -> scores `[N, C]`
    lie_logit_or_0_to_match_honest: the logit of the class that a liar names (see `choose_lie_logit`); 0: the largest
        logit of an honest client for the same sample. The liar's other logits are 0

    The liars name the class for which the honest clients' class is least ahead of the best other
    one.
    """
    if not liar_indices:
        return client_logits
    classes = client_logits.shape[-1]
    honest_clients = [k for k in range(len(client_logits)) if k not in liar_indices]
    honest = client_logits[honest_clients]
    honest_class = honest.softmax(-1).mean(0).argmax(-1)
    is_honest_class = F.one_hot(honest_class, classes).bool()
    sizes = compute_lie_logit_per_sample(honest, lie_logit_or_0_to_match_honest)[:, None]
    margins = []
    for named_class in torch.eye(classes).to(client_logits):
        answers = client_logits.clone()
        answers[list(liar_indices)] = sizes * named_class
        scores = combine_logits(answers)
        best_other = scores.masked_fill(is_honest_class, -torch.inf).amax(-1)
        margins.append(scores[is_honest_class] - best_other)
    worst_class = torch.stack(margins).argmin(0)
    answers = client_logits.clone()
    answers[list(liar_indices)] = sizes * F.one_hot(worst_class, classes).to(client_logits)
    return answers


def replace_answers_of_random_liars(
    client_logits: ClientLogitsBySample,
    liars_per_sample: int,
    stream: torch.Generator,
    lie_logit_or_0_to_match_honest: float,
) -> ClientLogitsBySample:
    """`client_logits [n, M, C]` in which `liars_per_sample` clients lie, drawn anew for each sample.

    They name the class that the other clients together find second most likely. A rule can be
    trained on these answers as well as on honest ones. `lie_logit_or_0_to_match_honest`: see `choose_lie_logit`.
    """
    samples, clients, classes = client_logits.shape
    is_drawn = torch.rand(samples, clients, generator=stream).argsort(1) < liars_per_sample
    is_liar = is_drawn.to(client_logits.device)[..., None]
    second = (client_logits.softmax(-1) * ~is_liar).sum(1).topk(2).indices[:, 1]
    if lie_logit_or_0_to_match_honest == MATCH_HONEST:
        sizes = client_logits.masked_fill(is_liar, -torch.inf).amax((1, 2)).clamp_min(0)
    else:
        sizes = client_logits.new_full((samples,), lie_logit_or_0_to_match_honest)
    lies = sizes[:, None] * F.one_hot(second, classes).to(client_logits)
    return torch.where(is_liar, lies[:, None], client_logits)


def are_predictions_safe_from_liars(
    client_probabilities: ClientProbabilities, liar_count: int
) -> BooleanPerSample:
    """Whether each prediction is safe from `liar_count` liars, whichever clients they are, `[N]`.

    The prediction is the class of the mean of the honest `client_probabilities [M, N, C]`.
    """
    clients = len(client_probabilities)
    top = client_probabilities.mean(0).argmax(-1)
    top_probabilities = client_probabilities.gather(-1, top.expand(clients, -1)[..., None])
    # D_k, ascending over the clients
    differences = (top_probabilities - client_probabilities).sort(0).values
    margins = differences[: clients - liar_count].sum(0) - liar_count  # [N, C]
    is_top = F.one_hot(top, client_probabilities.shape[-1]).bool()
    return ((margins > 0) | is_top).all(-1)
