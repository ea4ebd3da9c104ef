"""How far two lists of networks are apart."""

from fedlab_nb.models import copy_model_state


def compute_largest_difference_of_networks(networks, others):
    """The largest difference of two numbers in the states of the networks, which are compared pair by pair."""
    differences = []
    for network, other in zip(networks, others, strict=True):
        state = copy_model_state(network)
        other_state = copy_model_state(other)
        for name in state:
            differences.append(float((state[name] - other_state[name]).abs().max()))
    return max(differences)
