"""Fed-ET: `method` is the algorithm from top to bottom; its parts stand beside it.

Where the paper is silent or says two things: softmax outputs, not raw logits; s_div as printed, normalised over all;
KL(s_div ‖ student); heads Linear-ReLU-Linear of width r behind an adapter of each architecture's own; one first model
an architecture; one that nobody brings keeps its body and gets the head; a new optimizer every round.
Departures: a client's J batches are cut from as many shuffled passes over its samples as that takes, shuffled again.
Set-up `fedet`: VGG-9 of width 78 (20.9M) for VGG19 (20.9M), ResNets without batch norm as there; of
the public images' transforms only the idea is known; T is not printed, 230 is what Table 3 implies.
"""

from .method import FedET
