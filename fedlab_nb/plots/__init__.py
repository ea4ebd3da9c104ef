"""Pictures: each function makes a `Picture` (figure, alt text, sentence, table) from plain data,
without widgets or pyplot.

draw_partition                     who holds what (`PartitionPicture` redraws in place)
draw_accuracy_bars_and_curves      bars over seeds, and the curve
draw_bytes_by_phase_and_accuracy   bytes by phase, accuracy against bytes
draw_class_and_client_accuracies   accuracy by class and by client
draw_reliability_diagrams          reliability diagrams, and the calibration error
draw_feature_maps                  PCA or t-SNE maps with a neighbour score
draw_wall_times                    wall time of methods

Every drawing begins with `drawing` and `dress`, and ends with `describe_picture`. Several also use
`write_axes_title`, `add_legend`, and the functions that put numbers into words.
"""

from .accuracy import describe_best_method, draw_accuracy_bars_and_curves
from .calibration import draw_reliability_diagrams
from .classes import draw_class_and_client_accuracies
from .communication import draw_bytes_by_phase_and_accuracy
from .embed import compute_neighbour_accuracy, project_by_pca, project_by_tsne
from .features import MAPS, FeatureMap, draw_feature_maps
from .kit import describe_picture, make_blank_picture
from .partition import PartitionPicture, draw_partition
from .series import MethodResults
from .style import (
    Picture,
    add_legend,
    drawing,
    dress,
    render_picture_png,
    render_picture_svg,
    write_axes_title,
)
from .times import MethodTime, draw_wall_times
from .words import (
    TableRows,
    build_table,
    capitalize_first_letter,
    describe_seeds,
    format_count_and_noun,
    format_data_size,
    format_mean_percent,
    format_percent,
    join_with_and,
)
