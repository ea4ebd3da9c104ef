"""Local training of clients (loop and stacked backends), and evaluation. Knows nothing of methods, widgets or files."""

from .backend import BACKENDS, find_fastest_backend
from .clients import ClientModels
from .evaluate import (
    cache_passes,
    compute_accuracy,
    compute_class_accuracies,
    compute_client_accuracies,
    compute_group_accuracies,
    run_cached,
    run_in_chunks,
)
from .local import Tick, train_clients, train_to_end
from .recipe import Recipe
