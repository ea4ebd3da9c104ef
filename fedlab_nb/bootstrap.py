"""Set-up with nothing but Python: `python3 fedlab_nb/bootstrap.py` opens the course,
`... bootstrap.py test` runs every test, `... bootstrap.py install` only installs what the tests need.

It makes `.venv` in the checkout, installs the package there in place (edits count at once), and starts the task. A
second call skips what is already done, so it also works without a network. Standard library only, and no syntax newer
than Python 3.8's, so that an old Python gets a sentence and no traceback.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
CPU_BUILDS = "https://download.pytorch.org/whl/cpu"  # 1 GB installed instead of 6, all that a machine without GPU needs
SECONDS = 5  # how long this index may take to answer
# The space that everything takes once it is installed, with PyTorch for NVIDIA's GPUs and with its CPU build.
GIGABYTES_WITH_CUDA_BUILD = 7
GIGABYTES_WITHOUT = 2
PIP = "pip-25.3-py3-none-any.whl"  # for Python 3.9 and newer
PIP_DIGEST = "9655943313a94722b7774661c21049070f6bbb0a1516bf02f7c8d5d9201514cd"  # SHA-256
TASKS = {
    "open": ("", ["-m", "fedlab_nb"]),
    "install": ("[test]", ["-m", "fedlab_nb", "doctor"]),
    "test": ("[test]", ["tests/everything.py"]),
}


class NoSpaceError(Exception):
    """The disk has not enough room for what is to be installed."""


def main(arguments: "list[str]") -> "int | str":
    """Make the environment, install, run the task; returns the task's exit code, or a sentence on what went wrong."""
    task = arguments[0] if arguments else "open"
    if sys.version_info < (3, 10):  # noqa: UP036
        return f"fedlab_nb needs Python 3.10 or newer, but this is {sys.version.split()[0]}: use a newer python3."
    if task not in TASKS or len(arguments) > 1:
        return f"Unknown task {' '.join(arguments)!r}. Allowed: {', '.join(TASKS)} (open is the default)."
    extra, command = TASKS[task]
    try:
        make_virtual_environment_if_absent()
        install_checkout_if_changed(extra)
    except NoSpaceError as error:
        return str(error)
    except subprocess.CalledProcessError:
        return "The installation stopped: the lines above say why. The same command tries again."
    os.chdir(ROOT)
    if os.name == "nt":
        return subprocess.call([str(PYTHON), *command])
    # The task takes the place of this process, so that Ctrl-C reaches it and the exit code is its own.
    os.execv(PYTHON, [str(PYTHON), *command])


def make_virtual_environment_if_absent() -> None:
    """Make `.venv` with pip in it, unless it is there.

    A bare Debian python3 has no ensurepip; then pip is downloaded.
    """
    if does_python_command_succeed("-m", "pip", "--version"):
        return
    print("Making the environment .venv ...", flush=True)
    try:
        import ensurepip  # noqa: F401  (Debian ships it in python3-venv only)

        venv.create(ENVIRONMENT, with_pip=True, clear=ENVIRONMENT.exists())
    except (ImportError, subprocess.CalledProcessError):
        venv.create(ENVIRONMENT, with_pip=False, clear=ENVIRONMENT.exists())
        try:
            download_and_install_pip()
        except (OSError, ValueError) as error:
            sys.exit(
                f"This Python has no pip and fetching it failed ({error}). On Debian: apt install python3-venv"
            )


def download_and_install_pip() -> None:
    """Install pip into the environment from its wheel in the package index, whose digest is checked."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    page = urllib.request.urlopen(f"{index}/pip/", timeout=30)
    link = re.search(rf'href="([^"#]+/{re.escape(PIP)})', page.read().decode())
    if not link:
        raise ValueError(f"the index lists no {PIP}")
    wheel = urllib.request.urlopen(urllib.parse.urljoin(page.url, link[1]), timeout=120).read()
    if hashlib.sha256(wheel).hexdigest() != PIP_DIGEST:
        raise ValueError("the file does not match its digest")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, PIP)
        path.write_bytes(wheel)
        subprocess.check_call(
            [str(PYTHON), f"{path}/pip", "install", "--quiet", "--no-index", str(path)]
        )


def install_checkout_if_changed(extra_in_brackets_or_empty: str) -> None:
    """Run `pip install -e .[extra]`, unless it was run here before with the same pyproject.toml."""
    stamp = ENVIRONMENT / f"installed{extra_in_brackets_or_empty}.txt"
    project_digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == project_digest:
        return
    index = choose_torch_index_url_or_empty()
    if not does_python_command_succeed("-c", "import torch"):
        is_cuda_build = sys.platform.startswith("linux") and not index
        check_free_disk_space(GIGABYTES_WITH_CUDA_BUILD if is_cuda_build else GIGABYTES_WITHOUT)
    if index:
        print(
            f"No NVIDIA driver here: taking PyTorch's CPU build from {index} (about 1 GB).",
            flush=True,
        )
        subprocess.check_call(
            [str(PYTHON), "-m", "pip", "install", "torch", "--index-url", index], cwd=ROOT
        )
    else:
        print("Taking the PyTorch that pip finds (some gigabytes on Linux).", flush=True)
    print("Installing fedlab_nb: some minutes the first time ...", flush=True)
    subprocess.check_call(
        [str(PYTHON), "-m", "pip", "install", "-e", f".{extra_in_brackets_or_empty}"], cwd=ROOT
    )
    stamp.write_text(project_digest)


def choose_torch_index_url_or_empty(
    platform: str = sys.platform,
    driver_path: str = "/proc/driver/nvidia",
    open_url: Callable = urllib.request.urlopen,
) -> str:
    """Choose the index to install PyTorch from: that of its CPU builds, or "" for pip's own.

    It is that of the CPU builds on a Linux machine without NVIDIA's driver, if the index answers and no
    PyTorch is installed yet.
    """
    if not platform.startswith("linux") or shutil.which("nvidia-smi") or Path(driver_path).exists():
        return ""
    if does_python_command_succeed("-c", "import torch"):
        return ""
    try:
        open_url(f"{CPU_BUILDS}/torch/", timeout=SECONDS).close()
    except OSError:
        return ""
    return CPU_BUILDS


def check_free_disk_space(needed_gigabytes: float) -> None:
    """Raise NoSpaceError if the environment's disk has less free space; pip would fail only after long downloads."""
    free_gigabytes = shutil.disk_usage(ENVIRONMENT).free / 1e9
    if free_gigabytes < needed_gigabytes:
        raise NoSpaceError(
            f"The installation takes about {needed_gigabytes} GB, and {free_gigabytes:.1f} GB are free "
            f"where {ENVIRONMENT} is: make room there, or move the checkout to a larger disk."
        )


def does_python_command_succeed(*arguments: str) -> bool:
    """Whether the environment's Python exists and runs with these arguments without an error."""
    try:
        return subprocess.run([str(PYTHON), *arguments], capture_output=True).returncode == 0
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
