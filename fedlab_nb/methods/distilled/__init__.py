"""Distilled data: a few images a class go up instead of a network. `method.py` reads like the algorithm."""

from .method import Distilled
