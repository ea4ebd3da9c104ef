"""Local training of clients (loop and stacked backends), and evaluation. Knows nothing of methods, widgets or files."""

from .backend import BACKENDS, auto_backend
from .clients import ClientModels
from .evaluate import (
    accuracy,
    cache_passes,
    class_accuracy,
    client_accuracy,
    group_accuracy,
    run_cached,
    run_in_chunks,
)
from .local import Tick, train_clients, train_to_end
from .recipe import Recipe
