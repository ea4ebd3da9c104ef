"""Everything that crosses between clients and server, counted in bytes: the link, its ledger, the
codecs."""

from .codec import (
    QuantisedTensor,
    dequantise_state,
    pack_upper_triangle,
    quantise,
    quantise_state,
    unpack_upper_triangle,
)
from .link import Ledger, Link, count_payload_bytes, serialise_payload
