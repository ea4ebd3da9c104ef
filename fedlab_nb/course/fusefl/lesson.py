"""FuseFL: its exercises, and a number that is read from a picture."""

from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

import numpy as np

from ...plots import Picture
from ...studies import Outcome, Outcomes
from ...studies.lesson_runs import MANY, percent, runs  # noqa: F401 percent for the notebook
from ..kit import Build, Verdict, exercises
from ..kit.array_types import (
    AnyArray,
    ClientAdaptors,
    ClientBiases,
    ClientBlockOutputs,
    ClientBlocks,
    ClientLayerWeights,
    ClientOutputs,
    ClientShifts,
    LayerInputs,
)
from ..kit.claims import (
    CLEAR,
    find_accuracy_gaps_between_variants,
    make_grouping_by_options,
    make_mean_and_bars_functions,
    make_verdict_on_missing_runs,
)
from ..kit.missing_name import make_getattr_for_missing_names

__getattr__ = make_getattr_for_missing_names(__name__)

_, halves = make_mean_and_bars_functions(__name__, "halves")


def compute_accuracy_percent_of_cue_clients_without_cue(picture: Picture) -> int:
    """Compute the mean accuracy of the cue clients on test images without a cue, in whole per cent.

    picture: of the view, whose table has the accuracies
    """
    accuracies = []
    for row in picture.table:
        if row["cue"] == "yes":
            percent_text = row["test, without a cue"].split()[0]
            accuracies.append(int(percent_text))
    return round(mean(accuracies))


# ------------------------------------------------------------------------------ 1: calibration
MILD = 0.3  # the smallest α of exercise 1; the lesson itself prints the result at 0.1


def check_calibration_raises_accuracy(outcomes: Sequence[Outcome]) -> Verdict:
    """Judge the claim of exercise 1: in one setting the calibrated classifier is clearly better than the
    averaged one.

    The setting is found on validation images; only for it are the test images used.
    """
    mild = [o for o in outcomes if o.method == "fusefl" and o.settings.alpha >= MILD]

    def describe(shared: tuple) -> str:
        conditions, *options = shared
        return f"α = {conditions[0].alpha:g}, K = {dict(options)['blocks']}"

    grouping = make_grouping_by_options("fusefl", "head")
    found = []
    for gap in find_accuracy_gaps_between_variants(mild, grouping, "ccvr", "average", describe):
        if gap.kind == CLEAR:
            tested = gap.test_gap.mean_with_band_in_points
            measured = gap.describe("both classifiers")
            return Verdict(
                "right",
                f"Calibrated − averaged at {measured}. On the test images: {tested} points.",
            )
        if gap.accuracy_differences:
            found.append(gap.describe("both classifiers"))
    wanted = "a setting in which the calibrated classifier is clearly better than the averaged one"
    nothing = f"no runs of both classifiers at the same α, {MILD:g} or more"
    return make_verdict_on_missing_runs([wanted], found, nothing)


def run_solution() -> Outcomes:
    """Run what supports the claim of exercise 1."""
    outcomes = []
    for knobs in ({}, {"head": "average"}):
        outcomes += runs("fusefl", 1, clients=5, seeds=MANY, **knobs)
    return Outcomes(outcomes)


# ---------------------------------------------------------------------------- the function to build
def compute_fused_block_outputs(
    outputs_below: np.ndarray,
    adaptor_weights: np.ndarray,
    adaptor_biases: np.ndarray,
    block_weights: np.ndarray,
    block_biases: np.ndarray,
) -> np.ndarray:
    # [N, M r]: all clients' outputs side by side
    joined = np.concatenate(list(outputs_below), axis=1)
    outputs = []
    for k in range(len(outputs_below)):
        adapted = joined @ adaptor_weights[k].T + adaptor_biases[k]  # [N, r]
        outputs.append(np.maximum(adapted @ block_weights[k].T + block_biases[k], 0))  # [N, o]
    return np.stack(outputs)


def apply_one_linear_layer_per_client(
    inputs: LayerInputs, weights: ClientLayerWeights, biases: ClientBiases
) -> ClientOutputs:
    """Apply one linear layer for each client: the outputs are `[M, N, o]`.

    inputs: `[N, i]`, the same for all clients, or `[M, N, i]`, those of each client
    """
    return inputs @ weights.transpose(0, 2, 1) + biases[:, None]


def apply_relu(x: AnyArray) -> AnyArray:
    return np.maximum(x, 0)


def feed_mean_of_clients_by_mistake(
    outputs_below: ClientBlockOutputs,
    adaptor_weights: ClientAdaptors,
    adaptor_biases: ClientShifts,
    block_weights: ClientBlocks,
    block_biases: ClientBiases,
) -> ClientOutputs:
    return apply_relu(
        apply_one_linear_layer_per_client(outputs_below.mean(0), block_weights, block_biases)
    )


def feed_own_outputs_only_by_mistake(
    outputs_below: ClientBlockOutputs,
    adaptor_weights: ClientAdaptors,
    adaptor_biases: ClientShifts,
    block_weights: ClientBlocks,
    block_biases: ClientBiases,
) -> ClientOutputs:
    """Make the mistake that each client reads the outputs of its own block alone."""
    return apply_relu(apply_one_linear_layer_per_client(outputs_below, block_weights, block_biases))


def fuse_blocks_by_reshaping_by_mistake(
    outputs_below: ClientBlockOutputs,
    adaptor_weights: ClientAdaptors,
    adaptor_biases: ClientShifts,
    block_weights: ClientBlocks,
    block_biases: ClientBiases,
) -> ClientOutputs:
    """Make the mistake of joining with `reshape`.

    It takes the numbers as they lie in memory, client after client, and so mixes images.
    """
    joined = outputs_below.reshape(outputs_below.shape[1], -1)
    adapted = apply_one_linear_layer_per_client(joined, adaptor_weights, adaptor_biases)
    return apply_relu(apply_one_linear_layer_per_client(adapted, block_weights, block_biases))


def fuse_blocks_with_relu_after_adaptor_by_mistake(
    outputs_below: ClientBlockOutputs,
    adaptor_weights: ClientAdaptors,
    adaptor_biases: ClientShifts,
    block_weights: ClientBlocks,
    block_biases: ClientBiases,
) -> ClientOutputs:
    joined = np.hstack(outputs_below)
    adapted = apply_relu(apply_one_linear_layer_per_client(joined, adaptor_weights, adaptor_biases))
    return apply_relu(apply_one_linear_layer_per_client(adapted, block_weights, block_biases))


def fuse_blocks_without_final_relu_by_mistake(
    outputs_below: ClientBlockOutputs,
    adaptor_weights: ClientAdaptors,
    adaptor_biases: ClientShifts,
    block_weights: ClientBlocks,
    block_biases: ClientBiases,
) -> ClientOutputs:
    joined = np.hstack(outputs_below)
    adapted = apply_one_linear_layer_per_client(joined, adaptor_weights, adaptor_biases)
    return apply_one_linear_layer_per_client(adapted, block_weights, block_biases)


SLIPS = {
    "average": feed_mean_of_clients_by_mistake,
    "alone": feed_own_outputs_only_by_mistake,
    "rows_cut": fuse_blocks_by_reshaping_by_mistake,
    "relu_after_adaptor": fuse_blocks_with_relu_after_adaptor_by_mistake,
    "no_relu": fuse_blocks_without_final_relu_by_mistake,
}


# M, N, r, o. In the first case all are equal, so that a wrong axis gives numbers; in the others it fails.
SIZES = ((3, 3, 3, 3), (3, 5, 4, 2), (2, 4, 3, 6), (4, 6, 2, 3))


class FusedBlockArguments(NamedTuple):
    """The arguments of a call of `compute_fused_block_outputs`."""

    outputs_below: ClientBlockOutputs  # [M, N, r] outputs of the blocks below
    adaptor_weights: ClientAdaptors  # [M, r, M r]
    adaptor_biases: ClientShifts  # [M, r]
    block_weights: ClientBlocks  # [M, o, r]
    block_biases: ClientBiases  # [M, o]


def draw_random_fused_block_arguments(
    random_stream: np.random.Generator,
    client_count: int,
    image_count: int,
    input_count: int,
    output_count: int,
) -> FusedBlockArguments:
    """Draw outputs of the blocks below, adaptors and blocks."""
    joined_count = client_count * input_count
    outputs_below = apply_relu(random_stream.normal(size=(client_count, image_count, input_count)))
    adaptor_weights = random_stream.normal(size=(client_count, input_count, joined_count))
    adaptor_biases = random_stream.normal(size=(client_count, input_count))
    block_weights = random_stream.normal(size=(client_count, output_count, input_count))
    block_biases = random_stream.normal(size=(client_count, output_count))
    return FusedBlockArguments(
        outputs_below, adaptor_weights, adaptor_biases, block_weights, block_biases
    )


q1, q2 = exercises(
    __name__,
    q1=(check_calibration_raises_accuracy, run_solution),
    q2=Build(compute_fused_block_outputs, SIZES, draw_random_fused_block_arguments, SLIPS),
)
