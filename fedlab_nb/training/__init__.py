"""Local training of clients (loop and stacked backends), and evaluation; independent of methods, widgets and files."""

from .backend import BACKENDS, find_fastest_backend
from .clients import ClientModels
from .evaluate import (
    cache_forward_passes,
    compute_accuracy,
    compute_class_accuracies,
    compute_client_accuracies_from_class_accuracies,
    compute_group_accuracies,
    run_in_chunks,
    run_in_chunks_with_cache,
)
from .local import (
    EpochProgress,
    iterate_training_of_clients_in_place,
    train_clients_in_place,
)
from .recipe import Recipe
