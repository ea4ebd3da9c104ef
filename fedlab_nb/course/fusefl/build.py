"""Lesson 06, exercise 4: one fused block with its adaptors. The right function, wrong ones, hidden inputs."""

from collections.abc import Callable

import numpy as np

from ..kit.build import Build, by_name

Block = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def right(h, adaptors, shifts, blocks, biases):
    joined = np.concatenate(list(h), axis=1)  # [N, M r]: all clients' copies side by side
    outputs = []
    for k in range(len(h)):
        adapted = joined @ adaptors[k].T + shifts[k]  # [N, r]
        outputs.append(np.maximum(adapted @ blocks[k].T + biases[k], 0))  # [N, o]
    return np.stack(outputs)


# ------------------------------------------------------------------------------------------------ wrong functions
def side_by_side(h: np.ndarray) -> np.ndarray:
    """`[N, M r]` of `h [M, N, r]`."""
    return np.concatenate(list(h), axis=1)


def linear(x: np.ndarray, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """`[M, N, o]`: one linear layer for each client, of the same `x [N, i]` or each its own `x [M, N, i]`."""
    return x @ weights.transpose(0, 2, 1) + biases[:, None]


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def of(joined: np.ndarray, adaptors, shifts, blocks, biases) -> np.ndarray:
    """The right block, on another input `[N, M r]`."""
    return relu(linear(linear(joined, adaptors, shifts), blocks, biases))


def average(h, adaptors, shifts, blocks, biases):
    return relu(linear(h.mean(0), blocks, biases))


def alone(h, adaptors, shifts, blocks, biases):
    """Each client reads its own block."""
    return relu(linear(h, blocks, biases))


def rows_cut(h, adaptors, shifts, blocks, biases):
    """reshape cuts the numbers as they lie in memory, client after client, and mixes images."""
    return of(h.reshape(h.shape[1], -1), adaptors, shifts, blocks, biases)


def unit_by_unit(h, adaptors, shifts, blocks, biases):
    """Unit 0 of all clients, then unit 1 of all."""
    return of(h.transpose(1, 2, 0).reshape(h.shape[1], -1), adaptors, shifts, blocks, biases)


def other_order(h, adaptors, shifts, blocks, biases):
    return of(side_by_side(h[::-1]), adaptors, shifts, blocks, biases)


def own_first(h, adaptors, shifts, blocks, biases):
    """Each client's row begins with its own outputs."""
    m = len(h)
    rows = [np.concatenate([h[k], *(h[j] for j in range(m) if j != k)], axis=1) for k in range(m)]
    return relu(linear(linear(np.stack(rows), adaptors, shifts), blocks, biases))


def one_adaptor(h, adaptors, shifts, blocks, biases):
    """Client 0's adaptor for all."""
    return relu(linear(side_by_side(h) @ adaptors[0].T + shifts[0], blocks, biases))


def relu_after_adaptor(h, adaptors, shifts, blocks, biases):
    return relu(linear(relu(linear(side_by_side(h), adaptors, shifts)), blocks, biases))


def no_relu(h, adaptors, shifts, blocks, biases):
    return linear(linear(side_by_side(h), adaptors, shifts), blocks, biases)


def no_shift(h, adaptors, shifts, blocks, biases):
    return of(side_by_side(h), adaptors, 0 * shifts, blocks, biases)


def no_bias(h, adaptors, shifts, blocks, biases):
    return of(side_by_side(h), adaptors, shifts, blocks, 0 * biases)


def adapted_last(h, adaptors, shifts, blocks, biases):
    """The adaptor behind the block."""
    return linear(side_by_side(relu(linear(h, blocks, biases))), adaptors, shifts)


def not_transposed(h, adaptors, shifts, blocks, biases):
    """Block weights [o, r] used as if they were [r, o]."""
    adapted = linear(side_by_side(h), adaptors, shifts)
    return relu(adapted @ blocks + biases[:, None])


def merged(h, adaptors, shifts, blocks, biases):
    return right(h, adaptors, shifts, blocks, biases).mean(0)


def images_first(h, adaptors, shifts, blocks, biases):
    return right(h, adaptors, shifts, blocks, biases).transpose(1, 0, 2)


WRONG: tuple[Block, ...] = (
    average, alone, rows_cut, unit_by_unit, other_order, own_first, one_adaptor, relu_after_adaptor, no_relu, no_shift,
    no_bias, adapted_last, not_transposed, merged, images_first,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------ hidden inputs
def hidden_inputs() -> list[tuple[np.ndarray, ...]]:
    """Outputs below, adaptors and blocks: first with all sizes alike, where a wrong axis gives numbers; then mixed."""
    stream, made = np.random.default_rng(6), []
    for m, n, r, o in ((3, 3, 3, 3), (3, 5, 4, 2), (2, 4, 3, 6), (4, 6, 2, 3)):
        shapes = (m, n, r), (m, r, m * r), (m, r), (m, o, r), (m, o)
        h, *layers = (stream.normal(size=shape) for shape in shapes)
        made.append((relu(h), *layers))
    return made


FUSED = Build("fused_block", right, hidden_inputs, by_name(WRONG))
