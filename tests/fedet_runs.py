"""Short runs of Fed-ET in a test."""

from fedlab_nb.methods.fedet.method import FedET

QUICK = {"one_shot_steps": 4, "server_steps": 3, "local_steps": 2, "server_width": 8}


def finish(run):
    """The final model and everything that was yielded."""
    progress = []
    while True:
        try:
            progress.append(next(run))
        except StopIteration as end:
            return end.value, progress


def run(ctx, **values):
    """The final model of a short run."""
    return finish(FedET(**{**QUICK, **values}).run(ctx))[0]
