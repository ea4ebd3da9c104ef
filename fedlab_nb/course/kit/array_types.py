"""Names of the lessons' NumPy arrays by what they hold and by their shape.

M: clients, N: samples, C: classes, d: numbers of a sample. They are all `np.ndarray`; a signature with
them says what goes in and what comes out. A function that learners build keeps `np.ndarray`: its source is shown as the
solution, and has to run in the notebook, which does not know these names.
"""

import numpy as np

ClassLabels = np.ndarray  # int [N], the class of each sample
Predictions = np.ndarray  # int [N], the class that a classifier names for each sample
FlatImages = np.ndarray  # [N, d]
ImagePair = np.ndarray  # [2, d]
SingleImage = np.ndarray  # [C, H, W], C here the channels
ImageKernel = np.ndarray  # [N, n]: of each of N images with each of n others

ClientLogits = np.ndarray  # [M, N, C]
ClientProbabilities = np.ndarray  # [M, N, C], the last axis sums to 1
ClientWeights = np.ndarray  # [M]
ClientWeightGradient = np.ndarray  # [M]: of a loss, in the clients' weights
ClientImageWeights = np.ndarray  # [M, N]
ClientClassWeights = np.ndarray  # [M, C]
ClassScores = np.ndarray  # [N, C]
Probabilities = np.ndarray  # [N, C], each row sums to 1

CountPerClient = np.ndarray  # int [M]
CountPerClass = np.ndarray  # int [C]
NoisyClientClassCounts = np.ndarray  # float [M, C]
SumPerClass = np.ndarray  # [C, d]
ProductSumPerClass = np.ndarray  # [C, d, d]
ClientMoments = np.ndarray  # [M, d, d], each with gamma on its diagonal
ClientClassSums = np.ndarray  # [M, d, C]
ClassifierWeights = np.ndarray  # [d, C]

ClientMeans = np.ndarray  # [M, d]
ClientPrecisions = np.ndarray  # [M, d, d]
Vector = np.ndarray  # [d]
Covariance = np.ndarray  # [d, d]
ClientColumnSums = np.ndarray  # [M, d]: of each column of a client's rows

ClientBlockOutputs = np.ndarray  # [M, N, r]
ClientAdaptors = np.ndarray  # [M, r, M r]
ClientShifts = np.ndarray  # [M, r]
ClientBlocks = np.ndarray  # [M, o, r]
ClientBiases = np.ndarray  # [M, o]
LayerInputs = np.ndarray  # [N, i], or [M, N, i] with inputs of its own for each client
ClientLayerWeights = np.ndarray  # [M, o, i]
ClientOutputs = np.ndarray  # [M, N, o]
AnyArray = np.ndarray  # of any shape

UnitWeights = np.ndarray  # [units, inputs]: the incoming weights of each unit
UnitDistances = np.ndarray  # [units of a, units of b]
ValuePerSeed = np.ndarray  # [seeds]
PlanePoints = np.ndarray  # [n, 2]
PlanePoint = np.ndarray  # [2]
PlaneCovariance = np.ndarray  # [2, 2]
