"""`fedlab-nb doctor`: device, versions, and what works here, each shown by trying it."""

import importlib.util
import os
import platform
import time
from importlib import metadata

PACKAGES = ("torch", "torchvision", "numpy", "matplotlib", "scikit-learn", "ipywidgets", "jupyterlab")


def doctor() -> int:
    """Print one line a fact; 0 if training works here, 1 if not."""
    from . import __version__

    print(
        f"fedlab-nb {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} cores"
    )
    for name in PACKAGES:
        try:
            print(f"  {name:14s} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            print(f"  {name:14s} missing: pip install {name}")
    import torch

    if torch.cuda.is_available():
        card = torch.cuda.get_device_properties(0)
        print(f"  GPU            {card.name}, {card.total_memory / 2**30:.0f} GiB: --device auto uses it")
    else:
        print("  GPU            none that PyTorch can use: --device auto uses the CPU")
    from .study.store import store_folder

    folder = store_folder()
    print(
        f"  store          {folder} ({'writable' if _writable(folder) else 'NOT writable: results are not remembered'})"
    )
    torchvision = importlib.util.find_spec("torchvision") is not None
    print("  offline data   digits, glyphs, your own .npz")
    print(
        f"  downloads      mnist, fashion-mnist, cifar10, cifar100, svhn{'' if torchvision else ': need torchvision'}"
    )
    from .study import run

    start = time.perf_counter()
    outcome = run("fedavg", clients=2, epochs=1, cache=False)
    print(
        f"  training       works: 2 clients, 1 epoch of digits in {time.perf_counter() - start:.1f} s "
        f"on {outcome.settings.device}"
    )
    return 0


def _writable(folder) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.access(folder, os.W_OK)
    except OSError:
        return False
