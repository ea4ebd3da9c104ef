"""Data: load a dataset, share it out among clients, measure the skew.

>>> from fedlab_nb.data import federate
>>> fed = federate("digits", alpha=0.1, clients=10, seed=0)  # smaller alpha is more skewed
>>> fed.label_counts.shape
torch.Size([10, 10])
"""

from .cues import CUES, tint_background
from .dataset import Dataset, Description
from .edits import Edit, Edits, format_letters
from .federation import (
    Federation,
    check_font_partition,
    choose_partition,
    federate,
    format_clients,
    list_present_clients,
    parse_clients,
    to_plain_settings,
)
from .partition import PARTITIONS, REPAIRS, RULES, SIZED, Skew, apportion, measure_skew
from .public import add_public_part, check_public_choice, describe_with_public_part
from .registry import (
    DATASETS,
    DatasetInfo,
    add_dataset,
    describe,
    find_in_memory,
    find_title,
    is_name,
    is_path,
    load,
)
from .transform import SEEN, check_transform, find_normalisation, parse_augmentation, parse_scale
