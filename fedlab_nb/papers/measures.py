"""Measures for the numbers in the texts that are not among a run's own results.

A figure, which is a named number of a text, names a function by its key in MEASURES. A function
that takes an outcome returns {name: number}, and a figure reads one of these numbers as
`runs/method:function.name`. A function that takes plain values is called in a figure: `tables = "=
tables_where_large_gaps_agree_more('tables')"`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

from ..tensor_types import ClientLogitsBySample, Images

if TYPE_CHECKING:
    from ..methods import NetworkModel
    from ..methods.fedet.consensus import Weighting
    from ..methods.fens.model import FensModel
    from ..studies.outcome import Outcome


def measure_linear_probe_accuracies(
    fusefl_outcome: Outcome,
) -> dict[Literal["each", "mean", "first"], float]:
    """FuseFL: accuracy of linear probes that are trained on all training samples.

    each: on the top features of one client, mean over the clients
    mean: on the top features averaged over the clients
    first: on one client's first layer or block, mean over the clients
    """
    from ..labs.fusefl.probes import (
        compute_block_outputs_of_each_client,
        compute_layer_outputs_of_each_client,
        probe_features_of_layers,
    )

    data = fusefl_outcome.settings.load_dataset()
    network = cast("NetworkModel", fusefl_outcome.model).module
    compute_outputs = (
        compute_block_outputs_of_each_client
        if fusefl_outcome.options["blocks"] > 1
        else compute_layer_outputs_of_each_client
    )
    train = (data.x_train, data.y_train)
    test = (data.x_test, data.y_test)
    features = compute_outputs(network, data.x_train)
    features_test = compute_outputs(network, data.x_test)
    layers = list(probe_features_of_layers(features, features_test, train, test))
    first_clients, _ = layers[0]
    top_clients, top_mean = layers[-1]
    return {
        "each": fmean(reading.accuracy for reading in top_clients),
        "mean": top_mean.accuracy,
        "first": fmean(reading.accuracy for reading in first_clients),
    }


def measure_accuracy_with_random_cue(fusefl_outcome: Outcome) -> dict[Literal["accuracy"], float]:
    """FuseFL: accuracy on test images with a cue that is drawn at random."""
    from ..labs.fusefl.cue import make_test_sets_by_cue

    settings = fusefl_outcome.settings
    data = settings.load_dataset()
    tests = make_test_sets_by_cue(data, settings.tint, settings.seed, settings.cue)
    predictions = fusefl_outcome.predict(tests["untied"])
    return {"accuracy": float((predictions == data.y_test.numpy()).mean())}


def measure_client_dominance_in_ensemble(
    ensemble_outcome: Outcome,
) -> dict[Literal["loudest", "lonely", "same"], float]:
    """Ensemble: whether one client's logits decide, and which answers the mean of all logits gives.

    loudest: mean over the test images of a client's largest logit, for the client with the largest mean
    lonely:  number of clients that hold a single class
    same:    share of the test images that get the commonest answer of the mean of logits
    """
    counts = np.asarray(ensemble_outcome.label_counts)
    shape = (len(ensemble_outcome.test_labels), *counts.shape)  # [N, M, C]
    logits = ensemble_outcome.test_features.reshape(shape)
    largest_logits = logits.max(2).mean(0)
    has_one_class = (counts > 0).sum(1) == 1
    answers = np.bincount(logits.mean(1).argmax(1))
    return {
        "loudest": float(largest_logits.max()),
        "lonely": float(has_one_class.sum()),
        "same": float(answers.max() / len(logits)),
    }


def measure_trust_of_fens_weights(
    fens_outcome: Outcome,
) -> dict[Literal["below", "owners", "alone", "theirs"], float]:
    """FENS: which clients the weights trust.

    `alone` and `theirs` are about the clients that hold one digit only, and about the digit of
    which these clients hold most samples.

    below:  share of weights below zero
    owners: number of classes for which the client with the largest weight holds most samples
    alone:  share of all samples of that digit that these clients hold
    theirs: mean weight for that digit of the clients that hold one digit only; 0 if there are none
    """
    from ..labs.fens.trust import compare_weights_with_counts

    counts = np.asarray(fens_outcome.label_counts)
    report: Any = fens_outcome.report
    weights = report.weights
    comparison = compare_weights_with_counts(counts, weights)
    has_one_digit = (counts > 0).sum(1) == 1
    single_digit_counts = counts[has_one_digit].sum(0)
    digit = int(single_digit_counts.argmax())
    held_share = single_digit_counts[digit] / counts[:, digit].sum()
    single_digit_weights = weights[has_one_digit, digit]
    return {
        "below": comparison.negative,
        "owners": comparison.owners,
        "alone": float(held_share),
        "theirs": float(single_digit_weights.sum() / max(len(single_digit_weights), 1)),
    }


def compute_logits_of_fens_clients(fens_outcome: Outcome, images: Images) -> ClientLogitsBySample:
    """FENS: the logits of each client's network, [N, M, C], in double precision."""
    model = cast("FensModel", fens_outcome.model)
    return model.experts(images.to(fens_outcome.settings.device)).double().cpu()


def measure_story_client_b_on_threes(
    fens_outcome: Outcome,
) -> dict[
    Literal["weight_b", "weight_c", "loud_b", "loud_c", "zero_b", "false_with", "false_without"],
    float,
]:
    """FENS on the story's day: what client B, which has no threes, contributes to class 3, beside
    C, which has most.

    weight_b, weight_c: their weights for class 3
    loud_b, loud_c: their mean logits for class 3 on threes
    zero_b: B's mean logit for class 3 on zeros
    false_with, false_without: number of test images of other digits that are called 3, with B's weight
        as it is and with B's weight set to zero
    """
    b = 1
    c = 2
    zero = 0
    three = 3
    data = fens_outcome.federation().dataset
    labels = data.y_test
    logits = compute_logits_of_fens_clients(fens_outcome, data.x_test)
    report: Any = fens_outcome.report
    weights = torch.as_tensor(report.weights).double()
    weights_without_b = weights.clone()
    weights_without_b[b, three] = 0

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
        "false_without": count_false_threes(weights_without_b),
    }


def measure_story_client_h_on_eights(
    fens_outcome: Outcome,
) -> dict[Literal["weight_h", "six_h", "read", "read_without", "false_without"], float]:
    """FENS on the story's day: what client H, which has no eights and the largest weight for them,
    contributes to class 8.

    weight_h: its weight for class 8
    six_h: its mean logit for class 8 on sixes, of which it has most
    read, read_without: number of eights among the test images that are called 8, with H's weight as
        it is and with H's weight set to zero
    false_without: number of other images that are called 8 with H's weight set to zero
    """
    h = 7
    six = 6
    eight = 8
    data = fens_outcome.federation().dataset
    labels = data.y_test
    logits = compute_logits_of_fens_clients(fens_outcome, data.x_test)
    report: Any = fens_outcome.report
    weights = torch.as_tensor(report.weights).double()
    weights_without_h = weights.clone()
    weights_without_h[h, eight] = 0
    answers = (logits * weights).sum(1).argmax(1)
    answers_without = (logits * weights_without_h).sum(1).argmax(1)
    is_eight = labels == eight
    return {
        "weight_h": float(weights[h, eight]),
        "six_h": float(logits[labels == six, h, eight].mean()),
        "read": float((answers[is_eight] == eight).sum()),
        "read_without": float((answers_without[is_eight] == eight).sum()),
        "false_without": float((answers_without[~is_eight] == eight).sum()),
    }


def count_training_samples_of_course_client(client_index: int, label: int, seed: int) -> int:
    """Count the training samples of a class that a client holds in the course's federation of
    digits (ten clients, α = 0.1)."""
    from ..data import federate

    counts = federate("digits", alpha=0.1, clients=10, seed=seed).label_counts
    return int(counts[client_index, label])


def count_test_samples(dataset: str, label_or_none_for_all: int | None = None) -> int:
    """Count the test samples of a class in a data set; of all classes if `label_or_none_for_all` is None."""
    from ..data import load

    labels = load(dataset).y_test
    if label_or_none_for_all is None:
        return len(labels)
    return int((labels == label_or_none_for_all).sum())


def compute_standard_deviation_of_share_in_points(
    share_right_0_to_1: float, sample_count: int
) -> float:
    """Compute the standard deviation, in points, of the share that is right among `sample_count`
    samples.
    """
    return 100 * (share_right_0_to_1 * (1 - share_right_0_to_1) / sample_count) ** 0.5


def measure_best_client_network_accuracy(fens_outcome: Outcome) -> dict[Literal["member"], float]:
    """FENS: `member`, the test accuracy of the best client's network alone."""
    report: Any = fens_outcome.report
    return {"member": max(report.member_accuracy)}


def measure_accuracies_of_fedet_ensemble_parts(
    fedet_outcome: Outcome,
) -> dict[Literal["alone", "least", "most", "small"], float]:
    """Fed-ET: test accuracies of the parts of the ensemble.

    alone: of one client, mean over the clients of the last round
    least, most: of the consensus, on the third of the samples with the least and with the most dissent
    small: of the averaged small models before a head is copied, mean of the last four rounds
    """
    from ..labs.fedet.dissent import (
        compute_accuracy_by_dissent_thirds,
        measure_dissent_on_test_samples,
    )

    report: Any = fedet_outcome.report
    samples = measure_dissent_on_test_samples(fedet_outcome)
    least, _, most = compute_accuracy_by_dissent_thirds(samples.dissent, samples.consensus_right)
    alone = float((report.test_logits.argmax(-1) == report.test_truth).mean())
    return {"alone": alone, "least": least, "most": most, "small": fmean(report.small_before[-4:])}


def measure_consensus_accuracies_by_weights_and_dissent(
    fedet_outcome: Outcome,
) -> dict[Literal["paper", "own", "equal", "least", "middle", "most"], float]:
    """Fed-ET: test accuracies of the consensus.

    paper, own, equal: with the paper's weights, with those of the run, and with equal ones
    least, middle, most: with the run's weights, on the thirds of the samples by their dissent
    """
    from ..labs.fedet.dissent import (
        compute_accuracy_by_dissent_thirds,
        measure_dissent_on_test_samples,
    )
    from ..labs.fedet.votes import (
        compute_consensus_accuracy,
        compute_consensus_on_test_samples,
        get_weighting_and_temperature,
    )

    def measure_accuracy(weighting: Weighting, temperature: float) -> float:
        return compute_consensus_accuracy(
            *compute_consensus_on_test_samples(fedet_outcome, weighting, temperature)
        )

    samples = measure_dissent_on_test_samples(fedet_outcome)
    least, middle, most = compute_accuracy_by_dissent_thirds(
        samples.dissent, samples.consensus_right
    )
    own_weighting, own_temperature = get_weighting_and_temperature(fedet_outcome.options)
    return {
        "paper": measure_accuracy("softmax", 1.0),
        "own": measure_accuracy(own_weighting, own_temperature),
        "equal": measure_accuracy("uniform", 1.0),
        "least": least,
        "middle": middle,
        "most": most,
    }


def measure_shares_of_sent_images_copied_or_near(
    outcome_of_sent_images: Outcome,
) -> dict[Literal["own", "near"], float]:
    """Distilled data: how much the images that clients send resemble their training images.

    own: share of the images that are one of the client's own, pixel by pixel
    near: share of the images that are nearer to one of the client's images than these are to each
        other
    """
    from ..labs.distilled.sent_images import find_nearest_images_of_all_clients

    attacks = find_nearest_images_of_all_clients(outcome_of_sent_images)
    sent = sum(len(neighbours.labels) for neighbours in attacks)
    copies = sum(int(neighbours.are_exact_copies.sum()) for neighbours in attacks)
    nearer_than_own_images_count = sum(
        neighbours.nearer_than_own_images_count for neighbours in attacks
    )
    return {"own": copies / sent, "near": nearer_than_own_images_count / sent}


def measure_accuracy_on_all_training_samples(outcome: Outcome) -> dict[Literal["own"], float]:
    """Any model: `own`, its accuracy on the training samples of all clients. Compared with the test
    accuracy it shows how much was memorised.
    """
    data = outcome.settings.load_dataset()
    return {"own": float((outcome.predict(data.x_train) == data.y_train.numpy()).mean())}


@cache
def count_tables_with_ten_tried_orderings_or_agreeing_more(
    counted: Literal["tables", "more"],
) -> int:
    """Count the papers' tables in which at least ten orderings of two methods were tested.

    counted: "tables" for all of them; "more" for those where the half of the orderings with the larger
        published gaps agrees with our runs more often than the other half
    """
    from .published import TABLES, TRIED
    from .reproduction import reproduce

    tables_agreeing_more = 0
    tables = 0
    for name in TABLES:
        pairs = [pair for pair in reproduce(name, stored=True).orderings if pair.verdict in TRIED]
        if len(pairs) < 10:
            continue
        median_gap = median(pair.published_gap_in_table_unit for pair in pairs)
        large_gap_agreements = [
            pair.verdict == "agrees"
            for pair in pairs
            if pair.published_gap_in_table_unit > median_gap
        ]
        small_gap_agreements = [
            pair.verdict == "agrees"
            for pair in pairs
            if pair.published_gap_in_table_unit <= median_gap
        ]
        tables += 1
        if fmean(large_gap_agreements) > fmean(small_gap_agreements):
            tables_agreeing_more += 1
    if counted == "more":
        return tables_agreeing_more
    return tables


@cache
def count_paper_claims_with_outcome(outcome_or_all_or_counted: str) -> int:
    """Count the claims of the papers' tables.

    outcome_or_all_or_counted: one of `claims.OUTCOMES`, and each result counts once; or "counted" for all claims that
        count; or "all" for all claims
    """
    from .all_tables import paper_tables

    tables = paper_tables()
    if outcome_or_all_or_counted == "all":
        return len(tables.claims)
    if outcome_or_all_or_counted == "counted":
        return len(tables.distinct_claims)
    return tables.claim_count_by_outcome[outcome_or_all_or_counted]


# By their names in the figures' files. The names are also columns of the stored rows.
MEASURES: Mapping[str, Callable[..., float | Mapping[Any, float]]] = {
    "probes": measure_linear_probe_accuracies,
    "confused": measure_accuracy_with_random_cue,
    "shouting": measure_client_dominance_in_ensemble,
    "trusted": measure_trust_of_fens_weights,
    "threes": measure_story_client_b_on_threes,
    "eights": measure_story_client_h_on_eights,
    "best": measure_best_client_network_accuracy,
    "members": measure_accuracies_of_fedet_ensemble_parts,
    "voted": measure_consensus_accuracies_by_weights_and_dissent,
    "shown": measure_shares_of_sent_images_copied_or_near,
    "by_heart": measure_accuracy_on_all_training_samples,
    "count_held": count_training_samples_of_course_client,
    "spread_of_share": compute_standard_deviation_of_share_in_points,
    "tables_where_large_gaps_agree_more": count_tables_with_ten_tried_orderings_or_agreeing_more,
    "claims_of_the_papers": count_paper_claims_with_outcome,
    "count_test_samples": count_test_samples,
}
