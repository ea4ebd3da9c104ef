"""Run a generator to its end, and keep its steps; `studies.experiment.exhaust_generator` gives the end alone."""


def run_and_collect_steps(generator):
    """Run a generator to its end: (what it returns, the list of all that it yields)."""
    steps = []
    while True:
        try:
            steps.append(next(generator))
        except StopIteration as end:
            return end.value, steps
