"""How the classroom recipe was chosen: on a validation part of the digits' training images, never on test images.

A fifth of the training images takes the place of the test set; each candidate recipe runs on it with several seeds and
two alphas. Not a test: `python tests/benchmarks/choose_classroom.py` prints the table.
"""

import dataclasses

import numpy as np
import torch

from fedlab_nb.data import Dataset, load
from fedlab_nb.rng import numpy_rng
from fedlab_nb.study import experiment, job

METHODS = ["fedavg", "ensemble", "fens", "fedlpa", "fedavg_multi"]
RECIPES = [  # lr, epochs, momentum, batch size; the first was taken
    (0.05, 40, 0.9, 32), (0.05, 20, 0.9, 32), (0.01, 40, 0.9, 32), (0.01, 60, 0.9, 32), (0.02, 40, 0.9, 32),
    (0.02, 80, 0.9, 16), (0.1, 40, 0.0, 32), (0.1, 40, 0.0, 16),
]  # fmt: skip


def validation_digits() -> Dataset:
    """Digits with a fifth of the training images as `x_test`, the rest as `x_train`; the real test images are gone."""
    digits = load("digits")
    order = torch.from_numpy(numpy_rng(0, "validation").permutation(len(digits.y_train)))
    held, kept = order[: len(order) // 5], order[len(order) // 5 :]
    return dataclasses.replace(
        digits,
        x_train=digits.x_train[kept],
        y_train=digits.y_train[kept],
        x_test=digits.x_train[held],
        y_test=digits.y_train[held],
        digest="digits, validation",
    )


def scores(methods=METHODS, seeds: int = 4, **settings) -> dict[str, float]:
    """Mean validation accuracy of each method."""
    found: dict[str, list[float]] = {}
    for event in job(methods, cache=False, seeds=seeds, seed=100, **settings):
        if event.error is not None:
            raise event.error
        if event.outcome is not None:
            found.setdefault(event.method, []).append(event.outcome.accuracy)
    return {name: float(np.mean(values)) for name, values in found.items()}


def main() -> None:
    digits = validation_digits()
    experiment.load = lambda name: digits
    experiment._federation.cache_clear()
    print("   lr  epochs  momentum  batch  alpha  " + "  ".join(f"{name:>12s}" for name in METHODS))
    for lr, epochs, momentum, batch in RECIPES:
        for alpha in (0.1, 1.0):
            found = scores(alpha=alpha, lr=lr, epochs=epochs, momentum=momentum, batch_size=batch)
            row = "  ".join(f"{found[name]:12.3f}" for name in METHODS)
            print(f"{lr:5.2f}  {epochs:6d}  {momentum:8.1f}  {batch:5d}  {alpha:5.1f}  {row}", flush=True)


if __name__ == "__main__":
    main()
