"""Names for tensors by their content and shape, for signatures. All of them are `torch.Tensor`.

N: samples, M: clients, C: classes, D: features; []: a single number, without dimensions.
"""

from torch import Tensor

Samples = Tensor  # [N, ...]: images [N, C, H, W], recordings [N, C, T] or rows [N, D]
Images = Tensor  # [N, C, H, W], or rows [N, D] where a method takes any samples for images
SingleImage = Tensor  # [C, H, W]
SampleTensor = Tensor  # [...]: one image [C, H, W], recording [C, T] or row [D]
OneSample = Tensor  # [1, ...]: one sample as models take it
PlanePoints = Tensor  # [N, 2]
FeatureMaps = Tensor  # [N, channels, H, W], within a network
Features = Tensor  # [N, D], the vectors that the last linear map reads
Labels = Tensor  # int64 [N], the class of each sample
Predictions = Tensor  # int64 [N], the class that a model names for each sample
SampleIndices = Tensor  # int64 [n], indices of n of the N samples
SampleWeights = Tensor  # [N]
ValuePerSample = Tensor  # [N]
ClientIndexPerSample = Tensor  # int64 [N], -1 where nobody has the sample
OneHotLabels = Tensor  # [N, C]
BooleanPerSample = Tensor  # bool [N]
GroupIndexPerSample = Tensor  # int64 [N]
FontIndexPerSample = Tensor  # int64 [N], which of the fonts a letter is in

Logits = Tensor  # [N, C]
ScorePerClass = Tensor  # [C]
ClassScores = Tensor  # [N, C]: logits, log-probabilities, votes or values of a regression
Probabilities = Tensor  # [N, C], each row sums to 1
ClientLogits = Tensor  # [M, N, C]
ClientLogitsBySample = Tensor  # [N, M, C]
ClientPredictions = Tensor  # int64 [M, N]
ClientFeatures = Tensor  # [M, N, D]
ClientProbabilities = Tensor  # [M, N, C]

ScalarTensor = Tensor  # []
BooleanScalar = Tensor  # bool []
ScalarLoss = Tensor  # []: the mean loss of a batch
LossPerSample = Tensor  # [N]
LossPerClient = Tensor  # [M]
LossPerStep = Tensor  # [steps]
AccuracyPerClass = Tensor  # [C], 0–1; NaN for a class without samples
AccuracyPerClient = Tensor  # [M], 0–1
AccuracyPerGroup = Tensor  # [groups], 0–1; NaN for a group without samples

ClientWeights = Tensor  # [M], or [M, C] with a weight for each class
ClientShares = Tensor  # [M], they sum to 1
ClassShares = Tensor  # [C], they sum to 1
ClientClassCounts = Tensor  # int [M, C], the samples of each class that each client has
ClientClassShares = Tensor  # [M, C], each column sums to 1
ValuePerClient = Tensor  # [M]
ValuePerClientAndClass = Tensor  # [M, C]
VoteCountsByTrueClass = Tensor  # int32 [M, C, C]: by client, true class and class voted for
VoteSharesByTrueClass = Tensor  # [M, C, C]: likewise, each row sums to 1

ClassMeans = Tensor  # [C, D]
ClassVariances = Tensor  # [C, D]
ClassCovariances = Tensor  # [C, D, D]
Covariance = Tensor  # [D, D]
ClientCovariances = Tensor  # [M, D, D]
SquareMatrix = Tensor  # [d, d]
LayerMatrix = Tensor  # [outputs, inputs], the bias as the last input where there is one
ClassifierWeights = Tensor  # [D, C]
Vector = Tensor  # [d]
ParameterVector = Tensor  # [d]: the parameters of a network, one after the other
ClientChanges = Tensor  # [M, d]: each client's parameters after training minus those before it

Noise = Tensor  # [N, nz], the input of a generator of images
ConvolutionKernel = Tensor  # [outputs, inputs, height, width]
TensorsByName = dict[str, Tensor]  # a state or a message
