"""Pictures: one function each, from plain data to a `Picture` (figure, alt, sentence, table). No
widgets, no pyplot.

draw_partition          who holds what (`Partition` redraws in place)
draw_accuracy           bars over seeds, and the curve
draw_communication      bytes by phase, accuracy against bytes
draw_class_accuracies   accuracy by class and by client
draw_calibration        reliability diagrams, and the calibration error
draw_feature_maps       PCA or t-SNE maps with a neighbour score
draw_times              wall time of methods

With what every drawing begins and ends: `drawing`, `dress`, `heading`, `legend`,
`describe_picture`, and numbers in words.
"""

from .accuracy import describe_best_method, draw_accuracy
from .calibration import draw_calibration
from .classes import draw_class_accuracies
from .communication import draw_communication
from .embed import compute_neighbour_accuracy, pca, tsne
from .features import MAPS, Map, draw_feature_maps
from .kit import describe_picture, make_blank_picture
from .partition import Partition, draw_partition
from .series import Series
from .style import Picture, drawing, dress, heading, legend, png, svg
from .times import draw_times
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
