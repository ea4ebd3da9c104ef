"""Digests of what must be the same on every machine: data sets that need no download, tables and
arrays of one's own, the constants of `standardise`, and fifty federations.

    python tests/data_digests.py            # prints them, as JSON
    python tests/data_digests.py --write    # makes them the ones that tests/data/test_everywhere.py compares with

`SETTINGS` are environments in which libraries add numbers in other orders. `compute_digests_in_new_process` gives
the digests of a process in one of them.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fedlab_nb.data import add_public_part, compute_normalisation, federate, load
from fedlab_nb.data.digits import SOURCES
from fedlab_nb.data.glyphs import NAMES as GLYPHS
from fedlab_nb.data.natural import NAMES as NATURAL
from fedlab_nb.papers.tuning import make_dataset_with_validation_images_as_test

EXPECTED = Path(__file__).with_name("data") / "digests.json"
OTHER_PROCESSOR = {
    "ATEN_CPU_CAPABILITY": "default",  # PyTorch's own loops without AVX
    "MKL_CBWR": "COMPATIBLE",  # MKL as on the oldest processor
    "ONEDNN_MAX_CPU_ISA": "SSE41",  # oneDNN likewise
}
SETTINGS = {
    "default": {},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "avx512": {"ATEN_CPU_CAPABILITY": "avx512"},
    "one thread": {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
    "another processor": OTHER_PROCESSOR,
}
TABLE_WORDS = ("the mail is here", "no mail today", "a red pill for you", "see you at the mail")


def hash_parts(*parts: object) -> str:
    """A digest of arrays and tensors, with their types and shapes, and of other values by their text."""
    total = hashlib.sha256()
    for part in parts:
        if part is None or isinstance(part, str | int | float):
            total.update(repr(part).encode())
            continue
        array = np.ascontiguousarray(part)
        total.update(f"{array.dtype.newbyteorder('=')} {array.shape}".encode())
        total.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
    return total.hexdigest()[:16]


def hash_dataset(dataset) -> str:
    """A digest of all that a data set holds."""
    parts = [dataset.x_train, dataset.y_train, dataset.x_test, dataset.y_test, dataset.x_public]
    parts += [dataset.y_public, dataset.client_train, dataset.client_test, dataset.font_train]
    return hash_parts(*parts, dataset.digest)


def hash_federation(federation) -> str:
    """A digest of shards, held-out samples, and images, which a cue may have changed."""
    parts = [*federation.shards]
    for train, held_out in federation.split(0.1):
        parts += [train, held_out]
    return hash_parts(*parts, federation.moved, federation.draws, federation.dataset.x_train)


def list_offline_dataset_names() -> list[str]:
    """The data sets that need no download and whose package is here."""
    installed = [name for name in SOURCES if find_spec(SOURCES[name].package)]
    return [*installed, *GLYPHS, *NATURAL]


def make_own_data() -> dict[str, object]:
    """Rows, recordings and a table, whose numbers are standardised and whose words are hashed."""
    random = np.random.PCG64(7)
    n = 211
    numbers = (random.random_raw(n * 7) >> np.uint64(11)).astype(np.float64) / 2.0**53
    rows = np.reshape(numbers, (n, 7)) * 1e3 - 400
    waves = np.reshape((random.random_raw(n * 3 * 20) >> np.uint64(40)).astype(float), (n, 3, 20))
    labels = np.arange(n) % 3
    lines = ["age,colour,text,site,label"]
    for i in range(n):
        age = "" if i % 17 == 0 else f"{rows[i, 0]:.3f}"
        text = f"{TABLE_WORDS[i % 4]} number {i}"
        lines.append(f"{age},{('red', 'blue', 'green')[i * i % 3]},{text},site {i % 5},{i % 2}")
    return {
        "rows": {"x": rows, "y": labels},
        "recordings": {"x": waves, "y": labels, "client": labels},
        "table": "\n".join(lines),
    }


def list_federation_settings() -> list[dict]:
    """Fifty federations: every partition and every option that draws random numbers."""
    settings = []
    for seed in range(5):
        for alpha in (0.01, 0.1, 1.0, 100.0):
            settings.append({"dataset": "digits", "alpha": alpha, "clients": 10, "seed": seed})
        settings.append({"dataset": "glyphs:16g", "alpha": 0.1, "clients": 20, "seed": seed})
        settings.append({"dataset": "glyphs:16g", "partition": "fonts", "clients": 5, "seed": seed})
    for seed in range(3):
        common = {"dataset": "digits", "seed": seed}
        settings.append({**common, "partition": "client_dirichlet", "alpha": 0.1})
        settings.append({**common, "partition": "classes", "classes_per_client": 3})
        settings.append({**common, "partition": "quantity", "alpha": 0.5})
        settings.append({**common, "partition": "iid", "share": 0.3})
        settings.append({**common, "partition": "dirichlet", "size_sigma": 1.0})
    common = {"dataset": "digits", "alpha": 0.5, "clients": 5}
    settings.append({**common, "repair": "redraw"})
    settings.append({**common, "spurious": (0, 1), "cue": "tint"})
    settings.append({"dataset": "glyphs", "clients": 4, "spurious": (2,), "cue": "tint"})
    settings.append({"dataset": "glyphs", "clients": 4, "spurious": (0, 3), "cue": "shape"})
    settings.append({"dataset": "watch", "share": 0.5})
    return settings


def compute_digests_by_name() -> dict[str, str]:
    """{what: its digest} on this machine, in this process."""
    result = {f"data {name}": hash_dataset(load(name)) for name in list_offline_dataset_names()}
    data_by_kind = make_own_data()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        table.write_text(data_by_kind["table"], encoding="utf-8")
        loaded = load(table)
        # Without the data set's own digest, which depends on the options of its file.
        result["own table"] = hash_parts(
            loaded.x_train, loaded.y_train, loaded.x_test, loaded.y_test
        )
    for name in ("rows", "recordings"):
        result[f"own {name}"] = hash_dataset(federate(data_by_kind[name], clients=None).dataset)
    for name in ("digits", "glyphs:16g", "glyphs"):
        result[f"standardise {name}"] = hash_parts(
            *compute_normalisation("standardise", load(name).x_train)
        )
    result["public part"] = hash_dataset(add_public_part(load("digits"), 0.2))
    result["validation images"] = hash_dataset(
        make_dataset_with_validation_images_as_test("digits")
    )
    for number, settings in enumerate(list_federation_settings()):
        result[f"federation {number}"] = hash_federation(federate(**settings))
    return result


def compute_digests_in_new_process(setting: str) -> dict[str, str]:
    """`compute_digests_by_name()` of a process of its own, under one of SETTINGS."""
    environment = {key: value for key, value in os.environ.items() if "NUM_THREADS" not in key}
    command = [sys.executable, __file__]
    environment |= SETTINGS[setting]
    output = subprocess.check_output(command, env=environment, text=True)
    return json.loads(output)


def has_avx512() -> bool:
    """Whether PyTorch's loops for AVX-512 run here; elsewhere the setting would end the process."""
    import torch

    return "AVX512" in torch.backends.cpu.get_cpu_capability()


if __name__ == "__main__":
    text = json.dumps(compute_digests_by_name(), indent=1)
    if "--write" in sys.argv:
        EXPECTED.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)
