"""The loop on a card: every client trains on a CUDA stream beside the others', its gradient replayed as a graph.

For networks whose convolutions fill a card the stack is the slower way: PyTorch's grouped convolution, which it
rests on, reaches fewer operations a second than the plain convolution (`tests/benchmarks/RESULTS.md`). A single
client's step leaves parts of the card idle, though, and several clients on streams of their own fill them. Each client
does what `loop.py` does, kernel for kernel.
"""

from collections import deque
from collections.abc import Generator, Sequence

import torch

from ..models import Network
from .graphs import GradientGraphs, can_record
from .loop import Adjust, LocalTraining, Loss, Shard
from .recipe import Recipe

LANES = 6  # clients at a time; each lane keeps the memory of one client's step
STEPS_AHEAD = 2  # steps that may wait on the card: more would delay Stop and the progress bar


class Lane:
    """A CUDA stream, and the memory that the graphs of its clients share, since they run one after the other.

    `waiting`: events of the steps that the card may not have done yet.
    """

    def __init__(self) -> None:
        self.stream = torch.cuda.Stream()
        self.pool = torch.cuda.graph_pool_handle()
        self.waiting: deque[torch.cuda.Event] = deque()

    def mark_step(self) -> None:
        """Note that a step has been launched, and wait until at most STEPS_AHEAD steps are still to be done."""
        event = torch.cuda.Event()
        event.record(self.stream)
        self.waiting.append(event)
        if len(self.waiting) > STEPS_AHEAD:
            self.waiting.popleft().synchronize()


def train_on_streams(
    models: Sequence[Network],
    shards: Sequence[Shard],
    recipe: Recipe,
    streams: Sequence[torch.Generator],
    *,
    channels_last: bool = False,
    positions: Sequence[int] | None = None,
    loss: Loss | None = None,
    adjust: Adjust | None = None,
    augmentation_streams: Sequence[torch.Generator] = (),
) -> Generator[int, None, None]:
    """Train `models` in place, as `train_loop` does (its arguments, its results); yield the finished epochs.

    All clients take their j-th step of an epoch before one takes its (j+1)-th. The models are up to date at the end
    of each epoch.
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
            streams[k],
            position=k if positions is None else positions[k],
            channels_last=channels_last,
            loss=loss,
            adjust=adjust,
            augmentation_stream=augmentation_streams[k] if augmentation_streams else None,
        )
        if loss is None and can_record(shards[k][0].device, models[k]):
            training.gradients = GradientGraphs(training.compute_gradients, lane.pool)
        work.append((training, lane))

    try:
        for epoch in range(recipe.epochs):
            for lane in lanes:
                lane.stream.wait_stream(main)
            batches = []
            for training, lane in work:
                with torch.cuda.stream(lane.stream):
                    batches.append(training.start_epoch(epoch))
            step_count = len(batches[0])  # of the client with the most samples
            for step in range(step_count):
                for (training, lane), rows in zip(work, batches, strict=True):
                    if step < len(rows):
                        with torch.cuda.stream(lane.stream):
                            training.take_step(rows[step])
                        lane.mark_step()
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
        training.finish()
