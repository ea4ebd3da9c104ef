"""Names of NumPy arrays by what they hold and by their shape: N samples, M clients, C classes.

They are all `np.ndarray`; a signature with them says what goes in and what comes out.
"""

import numpy as np

Coordinates = np.ndarray  # float64, from -1 to 1
SampleArray = np.ndarray  # [N, C, H, W], [N, C, T] or [N, D]
ImageArray = np.ndarray  # [N, C, H, W]
NumberOrNanPerRow = np.ndarray  # float64 [N], nan where there is no value
FeatureArray = np.ndarray  # float [N, D], nan where there is no value
LabelArray = np.ndarray  # int64 [N], the class of each sample
IndexArray = np.ndarray  # int64 [n], indices of samples
ClientOfSample = np.ndarray  # int64 [N], the client that holds each sample
GroupOfSample = np.ndarray  # int64 [N]
BooleanPerSample = np.ndarray  # bool [N]
BooleanPerClass = np.ndarray  # bool [C]
CountPerClass = np.ndarray  # int64 [C]
CountPerClient = np.ndarray  # int64 [M]
SharePerClient = np.ndarray  # float [M], they sum to 1
Shares = np.ndarray  # float, they sum to 1 along the last axis
ClientClassCountArray = np.ndarray  # int [M, C], the samples of each class that each client has
ClientClassShares = np.ndarray  # float [M, C], each row sums to 1
Colours = np.ndarray  # float [N, channels], 0–1
Coverage = np.ndarray  # float [N, H, W]: the share of each pixel that a figure covers, 0–1
NumberPerImage = np.ndarray  # float [N]
PointPerImage = np.ndarray  # float [N, 2], x and y from -1 to 1
SignedDistances = np.ndarray  # float [..., 64, 64]: to the outline of a letter, negative inside
DistanceAtEachPoint = np.ndarray  # float [N, H, W], in cells, negative inside a letter
LetterMasks = np.ndarray  # bool [letters, fonts, 64, 64], True inside the letter
PixelMasks = np.ndarray  # bool [..., n, n]
FontIndices = np.ndarray  # int64 [N], which of the fonts a letter is in
ColumnSums = np.ndarray  # float64 [3, D]: of each column count, sum and sum of squares
StructuredArray = np.ndarray  # [N] of records with named fields
PixelsAndLabelRows = np.ndarray  # float32 [N, pixels + 1], the class in the last column
TextOrNoneArray = np.ndarray  # object [N], texts and None
FontOfSample = np.ndarray  # int64 [N], -1 for a sample that no client gets
GreyValues = np.ndarray  # the shape of the images, but with a single channel
SquaredDistances = np.ndarray  # int64 [..., n, n], in cells
PictureArray = np.ndarray  # [C, H, W]
