"""The loop on a GPU: several clients train at the same time on CUDA streams, their gradients replayed as CUDA graphs.

For networks with large convolutions stacking is slower, because PyTorch's grouped convolution, on which the stack is
built, reaches fewer operations a second than the plain one (`tests/benchmarks/RESULTS.md`). But the steps of a single
client leave parts of the GPU idle; several clients, each on its own stream, fill it. Each client does what `loop.py`
does, kernel for kernel.
"""

from collections import deque
from collections.abc import Sequence

import torch

from ..models import Network
from .graphs import GradientGraphs, can_record_cuda_graph
from .loop import (
    ClientLossPerSample,
    FinishedEpochCounts,
    InPlaceGradientAdjustment,
    LocalTraining,
    Shard,
)
from .recipe import Recipe

LANES = 6  # clients that train at the same time; each lane holds the memory of one client's step
STEPS_AHEAD = 2  # launched steps that may be unfinished; more would delay the Stop button and the progress bar


class Lane:
    """A CUDA stream and the memory of its clients' graphs, which they can share as they run one after the other.

    `waiting`: events of the launched steps that may be unfinished.
    """

    def __init__(self) -> None:
        self.stream = torch.cuda.Stream()
        self.pool = torch.cuda.graph_pool_handle()
        self.waiting: deque[torch.cuda.Event] = deque()

    def record_step_and_wait_for_older_ones(self) -> None:
        """Record that a step has been launched, and wait until at most STEPS_AHEAD steps are unfinished."""
        event = torch.cuda.Event()
        event.record(self.stream)
        self.waiting.append(event)
        if len(self.waiting) > STEPS_AHEAD:
            self.waiting.popleft().synchronize()


def iterate_training_of_clients_on_cuda_streams(
    models: Sequence[Network],
    shards: Sequence[Shard],
    recipe: Recipe,
    shuffle_streams: Sequence[torch.Generator],
    *,
    channels_last: bool = False,
    client_numbers: Sequence[int] | None = None,
    loss: ClientLossPerSample | None = None,
    adjust: InPlaceGradientAdjustment | None = None,
    augmentation_streams: Sequence[torch.Generator] = (),
) -> FinishedEpochCounts:
    """Train `models` in place; yields the number of finished epochs.

    Arguments as in `iterate_training_of_clients_in_turn`.

    All clients take their j-th step of an epoch before any client takes its (j+1)-th. The models are up to date at the
    end of each epoch.
    """
    lanes = [Lane() for _ in range(min(LANES, len(models)))]
    main = torch.cuda.current_stream()
    largest_first = sorted(range(len(models)), key=lambda k: -len(shards[k][0]))
    work: list[tuple[LocalTraining, Lane]] = []
    for position, k in enumerate(largest_first):
        lane = lanes[position % len(lanes)]
        training = LocalTraining(
            models[k],
            shards[k],
            recipe,
            shuffle_streams[k],
            client_number=k if client_numbers is None else client_numbers[k],
            channels_last=channels_last,
            loss=loss,
            adjust=adjust,
            augmentation_stream=augmentation_streams[k] if augmentation_streams else None,
        )
        if loss is None and can_record_cuda_graph(shards[k][0].device, models[k]):
            training.gradients = GradientGraphs(training.compute_gradients, lane.pool)
        work.append((training, lane))

    try:
        for epoch in range(recipe.epochs):
            for lane in lanes:
                lane.stream.wait_stream(main)
            batches = []
            for training, lane in work:
                with torch.cuda.stream(lane.stream):
                    batches.append(training.draw_batches_of_epoch(epoch))
            step_count = len(batches[0])  # of the client with the most samples
            for step in range(step_count):
                for (training, lane), rows in zip(work, batches, strict=True):
                    if step < len(rows):
                        with torch.cuda.stream(lane.stream):
                            training.take_step(rows[step])
                        lane.record_step_and_wait_for_older_ones()
                if step + 1 < step_count:
                    yield epoch
            for lane in lanes:
                main.wait_stream(lane.stream)
            yield epoch + 1
    finally:
        for lane in lanes:
            main.wait_stream(lane.stream)
        main.synchronize()
        for training, _ in work:
            if isinstance(training.gradients, GradientGraphs):
                training.gradients.close()
    for training, _ in work:
        training.switch_model_to_eval_mode()
