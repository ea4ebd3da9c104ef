"""How far two lists of networks are apart."""

from fedlab_nb.models import model_state


def largest_difference(these, those):
    """Of all numbers in the states of the networks, pair by pair."""
    states = zip(map(model_state, these), map(model_state, those), strict=True)
    return max(float((a[name] - b[name]).abs().max()) for a, b in states for name in a)
