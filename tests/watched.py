"""Run a generator to its end in a test that looks at its steps, too;
`studies.experiment.exhaust_generator` gives the end."""


def watched(work):
    """What `work` returns, and everything that it yields."""
    steps = []
    while True:
        try:
            steps.append(next(work))
        except StopIteration as end:
            return end.value, steps
