"""The classroom of neuron matching: the barrier, who is matched with whom, a game by hand, ways to average."""
