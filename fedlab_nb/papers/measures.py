"""What the declared studies of the texts measure beyond a run's own numbers.

A figure names a function as MEASURES does. One of an outcome returns {name: number}, and a figure
reads it as `runs/method:function.name`. One of plain numbers is a constant of a figure:
`tables = "= tables_where_large_gaps_agree_more('tables')"`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from ..methods import NetworkModel
    from ..methods.fens.model import FensModel
    from ..studies.outcome import Outcome

NumbersByName = dict[str, float]


def measure_linear_probes(outcome: Outcome) -> NumbersByName:
    """FuseFL: linear probes on the top features, trained on all training samples: of one client
    (mean over them), of the mean over the clients, and the gain of the mean; `first`: of one
    client's first layer or block.
    """
    from ..labs.fusefl.probes import (
        compute_block_outputs,
        compute_layer_outputs,
        probe_features_of_layers,
    )

    data = outcome.settings.data()
    network = cast("NetworkModel", outcome.model).module
    outputs = compute_block_outputs if outcome.options["blocks"] > 1 else compute_layer_outputs
    train = (data.x_train, data.y_train)
    test = (data.x_test, data.y_test)
    features = outputs(network, data.x_train)
    features_test = outputs(network, data.x_test)
    layers = list(probe_features_of_layers(features, features_test, train, test))
    first_clients, _ = layers[0]
    top_clients, top_mean = layers[-1]
    return {
        "each": fmean(reading.accuracy for reading in top_clients),
        "mean": top_mean.accuracy,
        "first": fmean(reading.accuracy for reading in first_clients),
    }


def measure_random_cue_accuracy(outcome: Outcome) -> NumbersByName:
    """FuseFL: accuracy on test images with a cue that is drawn at random."""
    from ..labs.fusefl.cue import make_test_sets_by_cue

    settings = outcome.settings
    data = settings.data()
    tests = make_test_sets_by_cue(data, settings.tint, settings.seed, settings.cue)
    predictions = outcome.predict(tests["untied"])
    return {"accuracy": float((predictions == data.y_test.numpy()).mean())}


def measure_largest_client_logits(outcome: Outcome) -> NumbersByName:
    """Ensemble: the `loudest` client's largest logit (mean over the test images), how many clients
    hold one class alone (`lonely`), and the share of the images that get the same answer from the
    mean of logits (`same`).
    """
    counts = np.asarray(outcome.label_counts)
    logits = outcome.test_features.reshape(len(outcome.test_labels), *counts.shape)  # [N, M, C]
    largest_logits = logits.max(2).mean(0)
    has_one_class = (counts > 0).sum(1) == 1
    answers = np.bincount(logits.mean(1).argmax(1))
    return {
        "loudest": float(largest_logits.max()),
        "lonely": float(has_one_class.sum()),
        "same": float(answers.max() / len(logits)),
    }


def measure_fens_weights(outcome: Outcome) -> NumbersByName:
    """FENS: the share of weights `below` zero; for how many classes the client with the largest
    weight holds most samples (`owners`); which share of the commonest single digit the clients hold
    that have it `alone`, and the weight that they get for it (`theirs`), 0 if there are none."""
    from ..labs.fens.trust import compare_weights_with_counts

    counts = np.asarray(outcome.label_counts)
    report: Any = outcome.report
    weights = report.weights
    like = compare_weights_with_counts(counts, weights)
    has_one_digit = (counts > 0).sum(1) == 1
    alone = counts[has_one_digit].sum(0)
    digit = int(alone.argmax())
    weights_of_holders = weights[has_one_digit, digit]
    return {
        "below": like.negative,
        "owners": like.owners,
        "alone": float(alone[digit] / counts[:, digit].sum()),
        "theirs": float(weights_of_holders.sum() / max(len(weights_of_holders), 1)),
    }


def compute_client_logits(outcome: Outcome, images: Tensor) -> Tensor:
    """FENS: the logits of each client's network, [N, M, C], in double precision."""
    model = cast("FensModel", outcome.model)
    return model.experts(images.to(outcome.settings.device)).double().cpu()


def measure_client_b_on_threes(outcome: Outcome) -> NumbersByName:
    """FENS on the story's day: what client B, which has no threes, does for them, beside C, which
    has most.

    The weights of B and C for class 3; their mean logits for it on threes, and B's on zeros; how
    many test images of other digits are called 3 as it is, and with B's weight set to zero.
    """
    b = 1
    c = 2
    zero = 0
    three = 3
    data = outcome.federation().dataset
    labels = data.y_test
    logits = compute_client_logits(outcome, data.x_test)
    report: Any = outcome.report
    weights = torch.as_tensor(report.weights).double()
    without = weights.clone()
    without[b, three] = 0

    def count_false_threes(client_weights: Tensor) -> float:
        answers = (logits * client_weights).sum(1).argmax(1)
        return float(((answers == three) & (labels != three)).sum())

    return {
        "weight_b": float(weights[b, three]),
        "weight_c": float(weights[c, three]),
        "loud_b": float(logits[labels == three, b, three].mean()),
        "loud_c": float(logits[labels == three, c, three].mean()),
        "zero_b": float(logits[labels == zero, b, three].mean()),
        "false_with": count_false_threes(weights),
        "false_without": count_false_threes(without),
    }


def measure_client_h_on_eights(outcome: Outcome) -> NumbersByName:
    """FENS on the story's day: what client H, which has no eights and the largest weight for them,
    does.

    The weight of H for class 8; its mean logit for it on sixes, of which it has most; how many of
    the eights among the test images are read as such, as it is and with H's weight set to zero,
    and how many other images are called 8 without it.
    """
    h = 7
    six = 6
    eight = 8
    data = outcome.federation().dataset
    labels = data.y_test
    logits = compute_client_logits(outcome, data.x_test)
    report: Any = outcome.report
    weights = torch.as_tensor(report.weights).double()
    without = weights.clone()
    without[h, eight] = 0
    answers = (logits * weights).sum(1).argmax(1)
    answers_without = (logits * without).sum(1).argmax(1)
    is_eight = labels == eight
    return {
        "weight_h": float(weights[h, eight]),
        "six_h": float(logits[labels == six, h, eight].mean()),
        "read": float((answers[is_eight] == eight).sum()),
        "read_without": float((answers_without[is_eight] == eight).sum()),
        "false_without": float((answers_without[~is_eight] == eight).sum()),
    }


def count_client_samples(client: int, label: int, seed: int) -> int:
    """Count the training samples of a class that a client holds in the course's federation of
    digits (ten clients, α = 0.1)."""
    from ..data import federate

    counts = federate("digits", alpha=0.1, clients=10, seed=seed).label_counts
    return int(counts[client, label])


def count_test_samples(dataset: str, label: int | None = None) -> int:
    """Count the test samples of a class in a data set; None: of all classes."""
    from ..data import load

    labels = load(dataset).y_test
    return len(labels) if label is None else int((labels == label).sum())


def compute_standard_deviation_of_share(share_right: float, sample_count: int) -> float:
    """Compute the standard deviation, in points, of the share that is right among `sample_count` samples."""
    return 100 * (share_right * (1 - share_right) / sample_count) ** 0.5


def measure_best_member_accuracy(outcome: Outcome) -> NumbersByName:
    """FENS: test accuracy of the best `member` alone."""
    report: Any = outcome.report
    return {"member": max(report.member_accuracy)}


def measure_member_accuracies(outcome: Outcome) -> NumbersByName:
    """Fed-ET: shares of test samples that are right: a client `alone`, mean of the last round; the
    consensus in the thirds with the `least` and the `most` dissent; the `small` averaged models,
    before a head is copied, mean of the last four rounds."""
    from ..labs.fedet.dissent import compute_accuracy_by_thirds, measure_dissent_on_test_samples

    report: Any = outcome.report
    samples = measure_dissent_on_test_samples(outcome)
    least, _, most = compute_accuracy_by_thirds(samples.dissent, samples.consensus_right)
    alone = float((report.test_logits.argmax(-1) == report.test_truth).mean())
    return {"alone": alone, "least": least, "most": most, "small": fmean(report.small_before[-4:])}


def measure_vote_accuracies(outcome: Outcome) -> NumbersByName:
    """Fed-ET: for how many test samples the consensus is right: with the `paper`'s weights, the
    run's `own` and `equal` ones; with the run's own in the thirds of the samples with the `least`,
    `middle` and `most` dissent.
    """
    from ..labs.fedet.dissent import compute_accuracy_by_thirds, measure_dissent_on_test_samples
    from ..labs.fedet.votes import (
        compute_consensus_accuracy,
        compute_consensus_on_test_samples,
        get_weighting_and_temperature,
    )

    rules = {
        "paper": ("softmax", 1.0),
        "own": get_weighting_and_temperature(outcome.options),
        "equal": ("uniform", 1.0),
    }
    shares = {}
    for name, rule in rules.items():
        shares[name] = compute_consensus_accuracy(
            *compute_consensus_on_test_samples(outcome, *rule)
        )
    samples = measure_dissent_on_test_samples(outcome)
    least, middle, most = compute_accuracy_by_thirds(samples.dissent, samples.consensus_right)
    return {**shares, "least": least, "middle": middle, "most": most}


def measure_shares_of_copied_images(outcome: Outcome) -> NumbersByName:
    """Distilled data: which share of the images that clients send are `own` ones, pixel by pixel,
    and which share is `near`: nearer to one of the client's images than these are to each other.
    """
    from ..labs.distilled.sent_images import find_nearest_images_of_all_clients

    attacks = find_nearest_images_of_all_clients(outcome)
    sent = sum(len(neighbours.labels) for neighbours in attacks)
    copies = sum(int(neighbours.is_copy.sum()) for neighbours in attacks)
    close_image_count = sum(neighbours.close_image_count for neighbours in attacks)
    return {"own": copies / sent, "near": close_image_count / sent}


def measure_memorised_share(outcome: Outcome) -> NumbersByName:
    """Any model: the share of all clients' training samples that are right (`own`), which beside
    the test accuracy says how much was learnt by heart."""
    data = outcome.settings.data()
    return {"own": float((outcome.predict(data.x_train) == data.y_train.numpy()).mean())}


@cache
def count_tables_with_ten_tried_orderings(counted: Literal["tables", "more"]) -> int:
    """Count the papers' tables with ten orderings or more that were tried.

    counted: "tables": all of them;   "more": those where the half of the orderings with the larger
        published gaps agrees more often than the other half
    """
    from .published import TABLES, TRIED
    from .reproduction import reproduce

    agrees_more = 0
    tables = 0
    for name in TABLES:
        pairs = [pair for pair in reproduce(name, stored=True).orderings if pair.verdict in TRIED]
        if len(pairs) < 10:
            continue
        border = median(pair.published_gap for pair in pairs)
        large = [pair.verdict == "agrees" for pair in pairs if pair.published_gap > border]
        small = [pair.verdict == "agrees" for pair in pairs if pair.published_gap <= border]
        tables += 1
        if fmean(large) > fmean(small):
            agrees_more += 1
    return {"tables": tables, "more": agrees_more}[counted]


@cache
def count_paper_claims_with_outcome(claim_outcome: str) -> int:
    """Count the claims of the papers' tables with an outcome of `claims.OUTCOMES`, each result once.

    "all": how many there are;   "counted": how many count
    """
    from .all_tables import paper_tables

    tables = paper_tables()
    return {
        **tables.outcome_counts,
        "all": len(tables.claims),
        "counted": len(tables.distinct_claims),
    }[claim_outcome]


# By their names in the files of figures, which are also the columns of the stored rows.
MEASURES: Mapping[str, Callable[..., float | NumbersByName]] = {
    "probes": measure_linear_probes,
    "confused": measure_random_cue_accuracy,
    "shouting": measure_largest_client_logits,
    "trusted": measure_fens_weights,
    "threes": measure_client_b_on_threes,
    "eights": measure_client_h_on_eights,
    "best": measure_best_member_accuracy,
    "members": measure_member_accuracies,
    "voted": measure_vote_accuracies,
    "shown": measure_shares_of_copied_images,
    "by_heart": measure_memorised_share,
    "count_held": count_client_samples,
    "spread_of_share": compute_standard_deviation_of_share,
    "tables_where_large_gaps_agree_more": count_tables_with_ten_tried_orderings,
    "claims_of_the_papers": count_paper_claims_with_outcome,
    "count_test_samples": count_test_samples,
}
