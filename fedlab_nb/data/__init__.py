"""Data: load a dataset, share it out among clients, measure the skew.

>>> from fedlab_nb.data import federate
>>> fed = federate("digits", alpha=0.1, clients=10, seed=0)  # smaller alpha is more skewed
>>> fed.label_counts.shape
torch.Size([10, 10])
"""

from .cues import CUES, tint_background
from .dataset import Dataset, Description
from .edits import Edit, Edits, letter
from .federation import (
    Federation,
    check_fonts,
    client_list,
    client_text,
    federate,
    members,
    natural_or,
    plain,
)
from .partition import PARTITIONS, REPAIRS, RULES, SIZED, Skew, shares, skew_of
from .public import checked_public, describe_with_public, with_public
from .registry import (
    DATASETS,
    DatasetInfo,
    add_dataset,
    describe,
    in_memory,
    is_name,
    is_path,
    load,
    title_of,
)
from .transform import SEEN, augmentation_part, checked_transform, constants, scale_part
