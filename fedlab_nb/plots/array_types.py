"""Names for arrays that are drawn, by their content and shape.

They are all `np.ndarray`; the names say in a signature what a function takes and returns. N: samples,
M: clients, C: classes. Shares and accuracies are from 0 to 1.
"""

import numpy as np

FeatureRows = np.ndarray  # [N, D]
SampleLabels = np.ndarray  # int [N], the class of each sample
SampleIndices = np.ndarray  # int [n], places of samples among N
ValuePerSample = np.ndarray  # [N]
ClientIndexPerSample = np.ndarray  # int [N]; a number beyond the last client: nobody has the sample
BooleanPerSample = np.ndarray  # bool [N]
MapPoints = np.ndarray  # [N, 2]
PrincipalComponents = np.ndarray  # [N, dimensions]

MethodAccuracies = np.ndarray  # [methods, columns], nan where it is not known
MethodClassAccuracies = np.ndarray  # [methods, C], nan where it is not known
MethodClientAccuracies = np.ndarray  # [methods, M], nan where it is not known
AccuracyPerMethod = np.ndarray  # [methods], nan where it is not known
AnyAccuracies = np.ndarray  # of any shape, nan where it is not known
ValuePerBin = np.ndarray  # [bins], nan for an empty bin
CountPerBin = np.ndarray  # int [bins]

ClientClassCounts = np.ndarray  # int [M, C], the samples of each class that each client has
NoisyClientClassCounts = np.ndarray  # float [M, C]
CountPerClient = np.ndarray  # int [M]
CountPerClass = np.ndarray  # int [C]
ClientClassValues = np.ndarray  # [M, C], nan where there is none
HeatMapValues = np.ndarray  # [rows, columns], nan where there is none

SampleArray = np.ndarray  # an image [channels, H, W], a recording [channels, T] or features [D]
Recording = np.ndarray  # [channels, T]
ByteImages = np.ndarray  # uint8 [N, side, side, 1 or 3]
ByteImage = np.ndarray  # uint8 [side, side, 1 or 3]
PixelArray = np.ndarray  # [height, width, 1 or 3], 0–1
ColourPixels = np.ndarray  # [height, width, 3], 0–1

GridScores = np.ndarray  # [G, G, C], on a grid of the plane, the first axis upward
PlanePoints = np.ndarray  # [n, 2]
PlanePoint = np.ndarray  # [2]
