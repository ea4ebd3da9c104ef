"""Several trainings at a time, each on a core of its own: for steps that are long enough to be worth a thread.

Clients share nothing until their training has ended. One core each keeps the cores busier than all cores on every
operation does, and waits for nobody on a machine that others use too. PyTorch lets go of Python's lock during an
operation, so threads suffice.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import torch

PATIENCE = 0.02  # seconds between two yields, so that a caller can stop


def side_by_side(trainings: Sequence[Iterator[int]], stops: Sequence[int], workers: int) -> Iterator[int]:
    """Run `trainings`, generators of finished epochs, on `workers` threads; yields finished epochs as they do.

    One worker is the caller's own thread. All have finished epoch e of `stops` (ascending, the last one is the end)
    when e is yielded for the first time; in between one may be ahead of another. Those that come first begin first.
    Closing stops each between two of its steps; an error in one stops all and is raised.
    """
    stop, cores = threading.Event(), torch.get_num_threads()
    done = [0] * len(trainings)

    def advance(i: int, target: int) -> None:
        while done[i] < target and not stop.is_set():
            done[i] = next(trainings[i])

    def finish(i: int, target: int) -> None:
        for _ in trainings[i]:  # nothing is left but to clean up
            pass

    if workers == 1:
        for target in stops:
            for i in range(len(trainings)):
                while done[i] < target:
                    done[i] = next(trainings[i])
                    yield max(0, min(min(done), target - 1))
                if target == stops[-1]:
                    finish(i, target)
            yield target
        return

    def everywhere(work: Callable[[int, int], None], target: int) -> Iterator[int]:
        waiting = {pool.submit(work, i, target) for i in range(len(trainings))}
        while waiting:
            ended, waiting = wait(waiting, PATIENCE, FIRST_COMPLETED)
            for future in ended:
                future.result()
            yield max(0, min(min(done), target - 1))

    pool = ThreadPoolExecutor(workers, "training", initializer=torch.set_num_threads, initargs=(1,))
    try:
        for target in stops:
            yield from everywhere(advance, target)
            if target == stops[-1]:
                yield from everywhere(finish, target)
            yield target
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        torch.set_num_threads(cores)  # the workers' choice is also what threads to come would begin with
