"""Means over seeds for the picture of classes and its table, with numbers worked by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from fedlab_nb.plots.classes import average_accuracies_over_seeds


def test_a_value_that_is_not_known_is_left_out_of_its_mean():
    first = SimpleNamespace(per_class={0: [0.5, None, 1.0], 1: [0.7, 0.2, 0.0]})
    second = SimpleNamespace(per_class={3: [0.25, float("nan"), 0.75]})
    means = average_accuracies_over_seeds([first, second], "per_class")
    np.testing.assert_allclose(means, [[0.6, 0.2, 0.5], [0.25, np.nan, 0.75]])


def test_rows_of_fewer_clients_are_filled_with_nan():
    first = SimpleNamespace(per_client={0: [0.5, 0.5], 1: [1.0, 0.0, 0.25]})
    second = SimpleNamespace(per_client={0: [0.1]})
    nothing = SimpleNamespace(per_client={})
    means = average_accuracies_over_seeds([first, second, nothing], "per_client")
    nan = np.nan
    np.testing.assert_allclose(means, [[0.75, 0.25, 0.25], [0.1, nan, nan], [nan, nan, nan]])
