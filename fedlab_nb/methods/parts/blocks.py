"""A network in K blocks, and M clients' blocks fused side by side (FuseFL, Eqs. 1, 4 and 6).

    F = classifier . H^K ... H^1                          one network, cut
    H_fus^k(x) = [H_1^k(A_1^k(x)), ..., H_M^k(A_M^k(x))]  one `Stage`: M branches that read the same joined input
    F_fus = classifier . sum_m H_fus^K ... H_fus^1        a `FusedNetwork`

A branch is client m's adaptor and block, a plain Sequential. Fused stages are frozen for good: no gradient, eval mode,
and nothing here ever writes to them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from ...errors import UsageError
from ...models import MODELS, Network, build, load_state
from ...models.build import Network as _Network  # noqa: F401
from .adaptors import join

MERGES = {"sum": "the clients' last features added up", "mean": "their mean"}

# Widths that the paper used for clients of a network of width 64, by the number of clients.
PAPER_WIDTHS = {5: 32, 10: 20, 20: 14, 50: 9}
