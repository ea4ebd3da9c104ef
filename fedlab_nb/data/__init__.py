"""Data: load a dataset, partition it among clients, measure the skew.

>>> from fedlab_nb.data import federate
>>> fed = federate("digits", alpha=0.1, clients=10, seed=0)  # smaller alpha is more skewed
>>> fed.label_counts.shape
torch.Size([10, 10])
"""

from .cues import CUES, tint_background
from .dataset import Dataset, DatasetDescription
from .edits import PartitionEdit, PartitionEdits, format_client_letters
from .federation import (
    Federation,
    check_font_partition_settings,
    choose_partition_and_check_settings,
    federate,
    format_client_list_as_setting,
    list_present_clients,
    parse_client_indices,
    replace_objects_by_names_in_settings,
)
from .partition import (
    PARTITIONS,
    REPAIRS,
    RULES,
    SIZED,
    Skew,
    apportion_total_by_counts,
    measure_skew,
)
from .public import (
    add_public_part,
    convert_and_check_public_choice,
    describe_dataset_with_public_part,
)
from .registry import (
    DATASETS,
    DatasetInfo,
    add_dataset,
    describe,
    find_dataset_in_memory,
    find_dataset_title,
    is_dataset_name,
    is_dataset_path,
    load,
)
from .transform import (
    SEEN,
    compute_normalisation,
    order_transform_parts,
    parse_augmentation,
    parse_input_scale,
)
