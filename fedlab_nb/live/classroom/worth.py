"""What a class's messages are worth.

Every way to combine them, what each message adds to the others, and what the sums of a message give
away.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypedDict

import numpy as np
import torch
from torch import Tensor

from ...methods import METHODS, afl, gauss
from ...methods.ensemble import RuledEnsemble
from ...methods.parts.averages import average_states
from ...models import load_state
from ...tensor_types import Labels, Predictions
from ...training import ClientModels
from .messages import (
    PIXELS,
    SIDE,
    FlatDigits0To1,
    LabelledDrawings,
    Message,
    build_untrained_class_network,
    convert_class_sums_to_ridge_sums,
)

FlatDigitArray = np.ndarray  # [n, 64], pixels about 0–1

AFL = METHODS["afl"]()  # with the default values of its knobs, as in the course
GAUSS = METHODS["gauss"]()
MAX_SHOWN_IMAGES = 8  # a phone shows this many of the images that are right thanks to its message
SHOUTING_FACTOR = 20  # a network shouts if its logits are this many times the median network's
# {title: rule} of the ways to average networks, and of the ways to let them vote.
AVERAGES = {"FedAvg": "mean", "FedAvg, median": "median"}
VOTES = {"Mean of logits": "logits", "Ensemble": "probabilities", "Ensemble, median": "median"}

# What the screens call each way to combine messages, by the method's title in the package. A question adds the phrase.
WAYS = {
    "Local only": {"name": "One alone", "phrase": "one office's network"},
    "FedAvg": {"name": "FedAvg", "phrase": "all averaged into one"},
    "FedAvg, median": {"name": "FedAvg median", "phrase": "the median network"},
    "Mean of logits": {"name": "Loud vote", "phrase": "shouting counts"},
    "Ensemble": {"name": "Equal vote", "phrase": "all count the same"},
    "Ensemble, median": {"name": "Median vote", "phrase": "the middle voice counts"},
    "FENS": {"name": "FENS", "phrase": "a vote with learnt weights"},
    "AFL": {"name": "AFL", "phrase": "all sums, added up"},
    "Gaussian heads": {"name": "Gaussian", "phrase": "all sums, as bell curves"},
}


def describe_combination(method_title: str) -> str:
    """Describe a way to combine messages as an option of a question: "AFL: all sums, added up"."""
    return f"{WAYS[method_title]['name']}: {WAYS[method_title]['phrase']}"


class Prediction(NamedTuple):
    """What one way of combining messages predicts.

    students: number of students whose messages are combined
    classes:  predicted classes `[N]`; of local models `[M, N]`
    """

    students: int
    classes: Predictions


# {title of a method: the predicted class of each image}
ClassesByTitle = dict[str, Tensor]
# {title of a method: what it predicts}
PredictionByTitle = dict[str, Prediction]
# {seat: size of its network's logits, divided by that of the median network}
LogitSizeBySeat = dict[int, float]


class MessageContribution(TypedDict):
    """What one message adds to all others.

    way:        title of the method by which this was measured
    with_it:    number of right answers with the message
    without_it: number of right answers without it
    images:     number of images
    helped:     indices of the images that are right only with the message
    harmed:     number of images that are right only without it
    classes:    {class of the sender: [images, right with it, right without it]}
    """

    way: str
    with_it: int
    without_it: int
    images: int
    helped: list[int]
    harmed: int
    classes: dict[int, list[int]]


class ClassMeanMap(TypedDict):
    """The means of all students' digits in a plane.

    points: (seat, class, x 0–1, y 0–1) of each mean
    share:  share of the variance that the two axes explain, 0–1
    alike:  number of means for which the nearest mean of another student is of the same digit; the
            distance is that of all 64 pixels
    """

    points: list[tuple[int, int, float, float]]
    share: float
    alike: int


def collect_test_drawings(messages: Iterable[Message]) -> LabelledDrawings:
    """Collect the drawings that the messages give for testing: images `[N, 64]`, labels `[N]`."""
    images = [torch.empty(0, PIXELS)]
    labels = [torch.empty(0, dtype=torch.long)]
    for message in messages:
        images.append(message.x)
        labels.append(message.y)
    return LabelledDrawings(torch.cat(images), torch.cat(labels))


def predict_classes_by_all_combinations(
    messages: Sequence[Message], images: FlatDigits0To1
) -> PredictionByTitle:
    """Predict the class of each image `images [N, 64]` in every way that the messages allow, by title."""
    predictions: PredictionByTitle = {}
    senders = [m for m in messages if m.network is not None]
    if senders:
        for title, classes in predict_classes_by_networks(senders, images).items():
            predictions[title] = Prediction(len(senders), classes)
    sums = [m.sums for m in messages if m.sums is not None]
    if sums:
        total = sum(sums[1:], sums[0])
        afl_classes = predict_classes_by_afl(total, len(sums), images)
        predictions["AFL"] = Prediction(len(sums), afl_classes)
        compute_scores = gauss.make_class_scorer(total, GAUSS.head, GAUSS.shrinkage)
        predictions["Gaussian heads"] = Prediction(len(sums), compute_scores(images).argmax(1))
    return predictions


def predict_classes_by_networks(
    messages_with_network: Sequence[Message], images: FlatDigits0To1
) -> ClassesByTitle:
    """Predict the class of each image `images [N, 64]` by the networks: each alone, averaged, and by vote.

    The predictions `[N]` are by title; those of "Local only" are `[M, N]`, one row a network.
    """
    images = images.view(-1, 1, SIDE, SIDE)
    clients = ClientModels([m.network for m in messages_with_network])
    sizes = [sum(m.counts) for m in messages_with_network]
    predictions = {"Local only": clients.logits(images).argmax(-1)}
    for title, rule in AVERAGES.items():
        average = build_untrained_class_network()
        load_state(average, average_states(clients.states(), sizes, rule, 0))
        predictions[title] = ClientModels([average]).logits(images)[0].argmax(1)
    for title, rule in VOTES.items():
        ensemble = RuledEnsemble(clients, rule, cut=(len(messages_with_network) - 1) // 2)
        predictions[title] = ensemble.logits(images).argmax(1)
    return predictions


def predict_classes_by_afl(
    total_sums: gauss.ClassSums, client_count: int, images: FlatDigits0To1
) -> Predictions:
    """Predict the class of each image `images [N, 64]` by AFL, from the added sums of `client_count` clients."""
    weights = afl.solve_classifier_weights(
        convert_class_sums_to_ridge_sums(total_sums), client_count, 0.0, AFL.rho
    )
    return afl.compute_linear_scores(images.double(), weights).argmax(1)


def measure_relative_logit_sizes(
    messages_with_network: Sequence[Message], images: FlatDigits0To1
) -> LogitSizeBySeat:
    """Measure how large each network's logits are on images `images [N, 64]`: {seat: relative size}.

    The relative size is the size of a network's logits divided by that of the median network.
    """
    if not messages_with_network:
        return {}
    clients = ClientModels([m.network for m in messages_with_network])
    sizes = clients.logits(images.view(-1, 1, SIDE, SIDE)).abs().amax(-1).median(1).values
    median_size = float(sizes.median().clamp(min=1e-9))
    return {
        m.seat: float(size) / median_size
        for m, size in zip(messages_with_network, sizes, strict=True)
    }


def count_right_answers_with_and_without_message(
    messages: Sequence[Message], seat: int, images: FlatDigits0To1, labels: Labels
) -> MessageContribution:
    """Count the right answers with and without the message of `seat`, on images `images [N, 64]` of
    classes `labels [N]`.

    A message with sums is measured by AFL, once with the sums of all messages and once without those
    of this seat. A message without sums is measured by the ensemble of networks, in the same way. If
    nothing is left without the message, all answers without it count as wrong.
    """
    message = next(m for m in messages if m.seat == seat)
    others = [m for m in messages if m.seat != seat]
    if message.sums is not None:
        way = "AFL"
        all_sums = [m.sums for m in messages if m.sums is not None]
        other_sums = [m.sums for m in others if m.sums is not None]
        total_of_all = sum(all_sums[1:], all_sums[0])
        with_it = predict_classes_by_afl(total_of_all, len(all_sums), images)
        without_it = None
        if other_sums:
            total_of_others = sum(other_sums[1:], other_sums[0])
            without_it = predict_classes_by_afl(total_of_others, len(other_sums), images)
    else:
        way = "Ensemble"
        with_it = predict_classes_by_ensemble_if_any_network(messages, images)
        without_it = predict_classes_by_ensemble_if_any_network(others, images)
    is_right_with = with_it == labels
    if without_it is None:
        is_right_without = torch.zeros_like(is_right_with)
    else:
        is_right_without = without_it == labels
    classes = {}
    for c in np.flatnonzero(message.counts).tolist():
        is_of_class = labels == c
        image_count = int(is_of_class.sum())
        right_with = int((is_right_with & is_of_class).sum())
        right_without = int((is_right_without & is_of_class).sum())
        classes[c] = [image_count, right_with, right_without]
    return {
        "way": way,
        "with_it": int(is_right_with.sum()),
        "without_it": int(is_right_without.sum()),
        "images": len(labels),
        "helped": (is_right_with & ~is_right_without).nonzero()[:, 0].tolist(),
        "harmed": int((is_right_without & ~is_right_with).sum()),
        "classes": classes,
    }


def predict_classes_by_ensemble_if_any_network(
    messages: Sequence[Message], images: FlatDigits0To1
) -> Predictions | None:
    """Predict the class of each image `images [N, 64]` by the ensemble; None if no message has a network."""
    senders = [m for m in messages if m.network is not None]
    if not senders:
        return None
    ensemble = RuledEnsemble(ClientModels([m.network for m in senders]), "probabilities", cut=0)
    return ensemble.logits(images.view(-1, 1, SIDE, SIDE)).argmax(1)


def project_class_means_into_plane(messages: Iterable[Message]) -> ClassMeanMap:
    """Project the mean of each student's drawings of each digit into a plane.

    The axes of the plane are the first two principal axes of all drawings. They follow from the added
    sums, as they would from the drawings themselves.
    """
    senders = [m for m in messages if m.sums is not None]
    if not senders:
        return {"points": [], "share": 0, "alike": 0}
    total = sum((m.sums for m in senders[1:]), senders[0].sums)
    # The principal axes: mean [64] and covariance [64, 64] from the sums.
    moments = convert_class_sums_to_ridge_sums(total).moments
    moments = moments / moments[-1, -1]  # the last entry is the number of drawings
    overall_mean = moments[-1, :-1]
    covariance = moments[:-1, :-1] - torch.outer(overall_mean, overall_mean)
    variances, axes = torch.linalg.eigh(covariance)  # in ascending order
    axes = axes[:, [-1, -2]]
    largest = axes.abs().argmax(0, keepdim=True)
    axes = axes * axes.gather(0, largest).sign()  # an eigenvector's sign is arbitrary
    # One row for each student and class that the student has drawn.
    seats: list[int] = []
    classes: list[int] = []
    for message in senders:
        sender_classes = message.sums.counts.nonzero()[:, 0].tolist()
        seats += [message.seat] * len(sender_classes)
        classes += sender_classes
    means = torch.cat([m.sums.means[m.sums.counts > 0] for m in senders])
    seat_of_row = torch.tensor(seats)
    class_of_row = torch.tensor(classes)
    # The nearest mean of another student.
    is_same_student = seat_of_row == seat_of_row[:, None]
    distances = torch.cdist(means, means).masked_fill(is_same_student, torch.inf)
    class_of_nearest = class_of_row[distances.argmin(1)]
    has_neighbour = distances.isfinite().any(1)
    is_alike = (class_of_nearest == class_of_row) & has_neighbour
    points = (means - overall_mean) @ axes
    extent = (points.amax(0) - points.amin(0)).clamp(min=1e-12)
    points = (points - points.amin(0)) / extent
    share = float(variances[-2:].sum() / variances.sum().clamp(min=1e-12))
    return {
        "points": [*zip(seats, classes, *points.T.tolist(), strict=True)],
        "share": share,
        "alike": int(is_alike.sum()),
    }


def generate_samples_with_same_sums(
    class_sums: gauss.ClassSums, class_index: int, rng: np.random.Generator
) -> FlatDigitArray:
    """Draw random rows `[n, d]` with the same sum and the same Σ x xᵀ as the n samples of a class.

    X = 1 μᵀ + U diag(√λ) Vᵀ. Here V diag(λ) Vᵀ = Σ x xᵀ − n μ μᵀ, whose rank is at most n − 1, and
    the columns of U are orthonormal and orthogonal to 1. Every such U gives the same sums; this one
    is random.

    So the sums determine the samples up to a rotation in n − 1 dimensions. This does not hide
    drawings: their pixels are whole sixteenths, and almost no rotation leaves them whole. `recover.js`
    recovers fifteen drawings of a digit in a moment, exact to the pixel.
    """
    n = int(class_sums.counts[class_index])
    mean = class_sums.means[class_index].numpy()
    scatter = class_sums.second[class_index].numpy() - n * np.outer(mean, mean)
    eigenvalues, axes = np.linalg.eigh(scatter)
    rank = min(n - 1, len(mean))
    if rank:
        scaled_axes = axes[:, -rank:] * np.sqrt(eigenvalues[-rank:].clip(0))
    else:
        scaled_axes = np.zeros((len(mean), 0))
    columns = np.column_stack([np.ones(n), rng.standard_normal((n, rank))])
    orthonormal_columns = np.linalg.qr(columns)[0]
    u = orthonormal_columns[:, 1:]  # without the first column, that of 1
    return mean + u @ scaled_axes.T
