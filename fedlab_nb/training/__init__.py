"""Local training of clients (loop and stacked backends), and evaluation. Knows nothing of methods, widgets or files."""

from .backend import BACKENDS, auto_backend
from .clients import ClientModels
from .evaluate import (
    accuracy,
    class_accuracy,
    client_accuracy,
    group_accuracy,
    in_chunks,
    once,
    one_pass,
)
from .local import Tick, train_clients, trained
from .recipe import Recipe
