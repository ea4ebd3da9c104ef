"""Names of the arrays that the labs compute with by what they hold and by their shape.

N: samples, M: clients, C: classes, d: features, S: images that a client sent, T: epochs. They are all
`np.ndarray`; a signature with them says what goes in and what comes out. `plots/array_types.py` has more.
"""

import numpy as np

ClassifierWeightsWithBiasRow = np.ndarray  # [d + 1, C], the last row is the bias
AccuracyOrNanPerClass = np.ndarray  # [C], 0–1; nan for a class without samples
ChangePerClientAndClass = np.ndarray  # [M, C], of accuracies 0–1; nan where it is not known

ClientLogitsBySample = np.ndarray  # [N, M, C]
ClientLogits = np.ndarray  # [M, N, C]
ClientOutputs = np.ndarray  # [M, C], the clients' logits or probabilities for one sample
ClassScores = np.ndarray  # [N, C]
ScorePerClass = np.ndarray  # [C], of one sample
ProbabilityPerClass = np.ndarray  # [C], of one sample; they sum to 1
Predictions = np.ndarray  # int [N], the class that a model names for each sample
DissentPerSample = np.ndarray  # [N]
NumberPerClient = np.ndarray  # [M]

ClientWeights = np.ndarray  # [M]
ClientShares = np.ndarray  # [M], they sum to 1
WeightsByEpoch = np.ndarray  # [T, M]
WeightSharesByEpoch = np.ndarray  # [T, M], each row sums to 1
SharePerClass = np.ndarray  # [C], 0–1
MemberRows = np.ndarray  # [members, C], a row for each client that takes part
MemberClients = np.ndarray  # int [members], the index of each client that takes part

Images = np.ndarray  # [N, channels, H, W], or features [N, d]
ImagePerClass = np.ndarray  # [C, channels, H, W]
MeanImage = np.ndarray  # [channels, H, W]
SentImageArray = np.ndarray  # [S, ...]
SentLabels = np.ndarray  # int [S], the class of each image sent
CountPerSentImage = np.ndarray  # int [S]
BooleanPerSentImage = np.ndarray  # bool [S]
PairIndices = np.ndarray  # int [pairs], which of the S images sent

ClassMeans = np.ndarray  # [C, d]
GaussianDeviations = np.ndarray  # [draws, C, d], what each draw adds to the means
SymmetricMatrix = np.ndarray  # [d, d]

TinyNetworks = np.ndarray  # [T, units, 3]: for each unit its weight, bias and output weight
ValuePerUnit = np.ndarray  # [...], or a single number
UnitNumbers = np.ndarray  # [3]: a unit's weight, bias and output weight
NetworkOutputs = np.ndarray  # [T, X], at X inputs
UnitOutputs = np.ndarray  # [..., X], at X inputs
LossPerPoint = np.ndarray  # [points], along the line between two networks
PositionPerPoint = np.ndarray  # [points], 0 at the first network, 1 at the second
