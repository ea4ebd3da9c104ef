"""Run a generator to its end, and keep its steps; `studies.experiment.exhaust_generator` gives the end alone."""


def watched(work):
    """(what `work` returns, everything that it yields)"""
    steps = []
    while True:
        try:
            steps.append(next(work))
        except StopIteration as end:
            return end.value, steps
