"""Pictures: one function each, from plain data to a `Picture` (figure, alt, sentence, table). No widgets, no pyplot.

partition       who holds what (`Partition` redraws in place)   accuracy   bars over seeds, and the curve
communication   bytes by phase, accuracy against bytes          features   PCA or t-SNE maps with a neighbour score
classes         accuracy by class and by client
calibration     reliability diagrams, and the calibration error   times   wall time of methods

With what every drawing begins and ends: `drawing`, `dress`, `heading`, `legend`, `describe_picture`, and numbers in
words.
"""

from .accuracy import accuracy, verdict
from .calibration import calibration
from .classes import classes
from .communication import communication
from .embed import neighbour_accuracy, pca, tsne
from .features import MAPS, Map, features
from .kit import describe_picture, make_blank_picture
from .partition import Partition, partition
from .series import Series
from .style import Picture, drawing, dress, heading, legend, png, svg
from .times import times
from .words import (
    build_table,
    capitalize,
    data_size,
    describe_seeds,
    join_words,
    mean_percent,
    percent,
    plural,
)
