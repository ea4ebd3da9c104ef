"""Lesson 05, exercise 4: one step of ensemble enhancement (EE). The right function, wrong ones, hidden inputs."""

from collections.abc import Callable

import numpy as np

from ..kit.build import Build, by_name

Step = Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]


def right(logits, labels, w, eta):
    ensemble = np.einsum("m,mnc->nc", w, logits) / w.sum()
    p = np.exp(ensemble - ensemble.max(axis=1, keepdims=True))
    p = p / p.sum(axis=1, keepdims=True)
    error = (p - np.eye(p.shape[1])[labels]) / len(labels)  # the gradient of the loss in the ensemble's logits
    gradient = np.einsum("nc,mnc->m", error, (logits - ensemble) / w.sum())
    return np.clip(w - eta * np.sign(gradient), 0, 1)


# ------------------------------------------------------------------------------------------------ wrong functions
def softmax(z: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(z - z.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def slope(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, axis: int = 1) -> np.ndarray:
    """The gradient `[M]` of the loss in w; `axis`: of the ensemble's softmax, right is 1 (the classes)."""
    ensemble = np.einsum("m,mnc->nc", w, logits) / w.sum()
    error = softmax(ensemble, axis) - np.eye(logits.shape[2])[labels]
    return np.einsum("nc,mnc->m", error / len(labels), logits - ensemble) / w.sum()


def moved(w: np.ndarray, gradient: np.ndarray, eta: float) -> np.ndarray:
    return np.clip(w - eta * np.sign(gradient), 0, 1)


def uphill(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    return moved(w, -slope(logits, labels, w), eta)


def no_sign(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    return np.clip(w - eta * slope(logits, labels, w), 0, 1)


def not_clipped(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    return w - eta * np.sign(slope(logits, labels, w))


def no_upper_limit(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    return np.maximum(not_clipped(logits, labels, w, eta), 0)


def shares(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    """The right weights, divided by their sum."""
    after = right(logits, labels, w, eta)
    return after / after.sum()


def from_shares(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    """The step is taken from the shares w / Σ w."""
    return right(logits, labels, w / w.sum(), eta)


def sum_of_logits(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    """The ensemble is not divided by the sum of the weights."""
    error = softmax(np.einsum("m,mnc->nc", w, logits)) - np.eye(logits.shape[2])[labels]
    return moved(w, np.einsum("nc,mnc->m", error, logits), eta)


def constant_sum(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    """The ensemble is divided by the sum, but the gradient takes this sum as a constant."""
    error = softmax(np.einsum("m,mnc->nc", w, logits) / w.sum()) - np.eye(logits.shape[2])[labels]
    return moved(w, np.einsum("nc,mnc->m", error, logits), eta)


def equal_weights(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    """The gradient at equal weights."""
    return moved(w, slope(logits, labels, np.ones(len(w))), eta)


def probabilities(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    """The ensemble takes the mean of probabilities."""
    own = softmax(logits)[:, np.arange(len(labels)), labels]  # [M, N]
    return moved(w, 1 - (own / (w @ own / w.sum())).mean(1), eta)


def over_images(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    """The softmax goes over the images."""
    return moved(w, slope(logits, labels, w, axis=0), eta)


def no_labels(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    """The first bracket of the gradient without e_y."""
    ensemble = np.einsum("m,mnc->nc", w, logits) / w.sum()
    return moved(w, np.einsum("nc,mnc->m", softmax(ensemble), logits - ensemble), eta)


def label_before(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    """Classes are counted from 1."""
    return right(logits, labels - 1, w, eta)


def other_order(logits: np.ndarray, labels: np.ndarray, w: np.ndarray, eta: float) -> np.ndarray:
    return moved(w, slope(logits, labels, w)[::-1], eta)


WRONG: tuple[Step, ...] = (
    uphill, no_sign, not_clipped, no_upper_limit, shares, from_shares, sum_of_logits, constant_sum, equal_weights,
    probabilities, over_images, no_labels, label_before, other_order,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------ hidden inputs
def hidden_inputs() -> list[tuple[np.ndarray, np.ndarray, np.ndarray, float]]:
    """Logits [M, N, C], labels [N], weights [M], two of them near 0 and 1, and a step. No gradient is near 0, so that
    its sign can also be found by small changes of the weights."""
    stream, made = np.random.default_rng(5), []
    for m, n, c in ((3, 4, 4), (4, 6, 3), (5, 3, 3), (3, 7, 2), (6, 8, 5)) * 4:
        logits, labels = 2 * stream.normal(size=(m, n, c)), stream.integers(0, c, n)
        w = stream.permutation(np.r_[0.03, 0.97, stream.uniform(0.2, 0.8, m - 2)])
        if np.abs(slope(logits, labels, w)).min() > 0.02:
            made.append((logits, labels, w, 0.1))
    return made


STEP = Build("ee_step", right, hidden_inputs, by_name(WRONG))
