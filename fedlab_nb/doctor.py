"""`fedlab-nb doctor`: device, versions, and what works here, each shown by trying it."""

import os
import platform
import time
from importlib import metadata

from .errors import UsageError

PACKAGES = ("torch", "torchvision", "numpy", "pandas", "matplotlib", "scikit-learn", "ipywidgets", "jupyterlab")


def doctor() -> int:
    """Print one line a fact; 0 if training works here, 1 if not."""
    from . import __version__

    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    print(f"fedlab-nb {__version__}, Python {platform.python_version()}, {machine}")
    for name in PACKAGES:
        try:
            fact(name, metadata.version(name))
        except metadata.PackageNotFoundError:
            fact(name, f"missing: pip install {name}")
    import torch

    if torch.cuda.is_available():
        card = torch.cuda.get_device_properties(0)
        fact("GPU", f"{card.name}, {card.total_memory / 2**30:.0f} GiB: --device auto uses it")
    else:
        fact("GPU", "none that PyTorch can use: --device auto uses the CPU")
    from .studies.engine import writable
    from .studies.store import store_folder

    try:
        writable(store_folder())
        fact("store", f"{store_folder()} (writable)")
    except UsageError:
        fact("store", f"{store_folder()} (NOT writable: results are not remembered)")
    fact("offline data", "digits, glyphs, heart, watch, mails, your own .npz or .csv")
    fact("downloads", "mnist, fashion-mnist, cifar10, cifar100, svhn (with torchvision)")
    from .studies import run

    start = time.perf_counter()
    device = run("fedavg", clients=2, epochs=1, cache=False).settings.device
    fact("training", f"works: 2 clients, 1 epoch of digits in {time.perf_counter() - start:.1f} s on {device}")
    return 0


def fact(name: str, text: str) -> None:
    print(f"  {name:14s} {text}")
