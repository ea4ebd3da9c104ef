"""Check the wheel alone, in an environment and a folder of its own: `python tests/check_wheel.py`.

It builds the wheel (or takes the one that is named), looks at what is in it, installs it, and does
with it what a newcomer does: a run, a study, the page, the class, the course with its first lesson.
The checkout is out of reach, the home folder is empty, and there is no network where the system can
switch it off. What these commands write is compared with what they say that they write.

    --borrow   take the packages that fedlab_nb needs from the environment that runs this script
               (continuous integration does so: nothing is downloaded twice); without it pip
               installs them, as for a newcomer
    --inside PYTHON   use this environment, in which the wheel is installed already
"""

import argparse
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[1]
LARGEST_WHEEL = 20_000_000  # bytes; PyPI takes 100 MB, a newcomer's patience takes less
REQUIRED = (
    "fedlab_nb/cli.py",
    "fedlab_nb/py.typed",
    "fedlab_nb/_course/1_start_here.ipynb",
    "fedlab_nb/_course/course.md",
    "fedlab_nb/live/page/template.html",
    "fedlab_nb/live/classroom/student.html",
    "fedlab_nb/data/heart.csv",
    "fedlab_nb/studies/setups/classroom.toml",
    "dist-info/licenses/LICENSE",
    "dist-info/licenses/NOTICE",
)
UNWANTED = re.compile(
    r"(^|/)(tests?|website|\.ci|__pycache__|make\.py|draw_journeys\.py)(/|$)|/lesson\.md$|\.pyc$"
)
STUDY = 'methods = ["fedavg", "ensemble"]\nseeds = 2\nclients = 4\nepochs = 2\nalpha = [0.1, 1]\n'
LESSON = """
import nbformat, pathlib, sys
from nbclient import NotebookClient
path = pathlib.Path("fedlab_nb_course/1_start_here.ipynb")
notebook = nbformat.read(path, 4)
NotebookClient(notebook, timeout=300, resources={"metadata": {"path": path.parent}}).execute()
pictures = [output for cell in notebook.cells for output in cell.get("outputs", [])
            if "image/png" in output.get("data", {})]
print(f"the first lesson ran: {len(notebook.cells)} cells, {len(pictures)} pictures")
assert pictures
"""
# What a home folder holds afterwards: the store, what Jupyter and matplotlib keep for themselves, and
# npm's folder, where npm is installed: JupyterLab asks it for language servers.
HOME_FOLDERS = {
    ".cache/fedlab_nb",
    ".cache/matplotlib",
    ".config/matplotlib",
    ".cache/fontconfig",
    ".ipython",
    ".jupyter",
    ".local/share/jupyter",
    ".npm",
    "Library",  # where macOS keeps caches
}


class CheckError(Exception):
    """A sentence about what is wrong with the wheel."""


def main() -> int:
    options = read_options()
    with tempfile.TemporaryDirectory(prefix="fedlab_nb-wheel-") as name:
        folder = Path(name)
        try:
            check(options, folder)
        except CheckError as failure:
            print(f"The wheel does not hold: {failure}", file=sys.stderr)
            return 1
    print("The wheel holds.")
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", nargs="?", type=Path, help="default: it is built")
    parser.add_argument("--borrow", action="store_true")
    parser.add_argument("--inside", metavar="PYTHON", type=Path)
    return parser.parse_args()


def check(options: argparse.Namespace, folder: Path) -> None:
    wheel = options.wheel or build_wheel(folder / "dist")
    check_contents(wheel)
    if options.inside:
        python = options.inside.absolute()
    else:
        python = make_environment(folder / "env", wheel.resolve(), options.borrow)
    newcomer = Newcomer(python, folder / "home", folder / "work")
    newcomer.check_commands()
    newcomer.check_course()
    newcomer.check_traces()


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout with pip alone."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.check_call([*command, "--wheel-dir", str(folder), str(ROOT)])
    (wheel,) = folder.glob("fedlab_nb-*.whl")
    return wheel


def check_contents(wheel: Path) -> None:
    """Size, version, licence, what must be in it and what must not."""
    size = wheel.stat().st_size
    if size > LARGEST_WHEEL:
        raise CheckError(f"it has {size:,} bytes, {LARGEST_WHEEL:,} are allowed")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(about).decode()
    for required in REQUIRED:
        if not any(name.endswith(required) for name in names):
            raise CheckError(f"{required} is missing")
    unwanted = [name for name in names if UNWANTED.search(name)]
    if unwanted:
        raise CheckError(f"it has what it should not have: {', '.join(unwanted[:5])}")
    version = re.search(r"^Version: (.+)$", metadata, re.M)[1]
    source = (ROOT / "fedlab_nb/__init__.py").read_text(encoding="utf-8")
    if f'__version__ = "{version}"' not in source:
        raise CheckError(f"its version {version} is not that of fedlab_nb/__init__.py")
    if "License-Expression: BSD-3-Clause" not in metadata:
        raise CheckError("its metadata do not name the licence")
    print(f"{wheel.name}: {len(names)} files, {size / 1e6:.1f} MB, version {version}", flush=True)


def make_environment(folder: Path, wheel: Path, borrow: bool) -> Path:
    """An environment with the wheel in it; returns its Python."""
    subprocess.check_call([sys.executable, "-m", "venv", str(folder)])
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = [str(python), "-m", "pip", "install", "--quiet"]
    if borrow:
        borrow_packages(folder, python)
        install += ["--no-deps", "--no-index"]
    subprocess.check_call([*install, str(wheel)])
    return python


def borrow_packages(folder: Path, python: Path) -> None:
    """Let the new environment see the packages of this one, except fedlab_nb itself.

    A line of a .pth file adds a folder, and does not follow the .pth files in it: an editable
    installation of the checkout therefore stays out of reach.
    """
    print_folder = "import sysconfig; print(sysconfig.get_path('purelib'))"
    folders = []
    for program in (sys.executable, str(python)):
        output = subprocess.check_output([program, "-c", print_folder], text=True)
        folders.append(Path(output.strip()))
    ours, theirs = folders
    (theirs / "borrowed.pth").write_text(f"{ours}\n")
    for name in ("share", "etc"):  # JupyterLab's files, kernels
        if (Path(sys.prefix) / name).is_dir() and not (folder / name).exists():
            (folder / name).symlink_to(Path(sys.prefix) / name)


class Newcomer:
    """Somebody with the wheel, an empty home folder and an empty working folder."""

    def __init__(self, python: Path, home: Path, work: Path) -> None:
        self.python = python
        self.home = home
        self.work = work
        home.mkdir()
        work.mkdir()
        # Settings for the machine's processor stay: OpenBLAS crashes on some machines without them.
        prefixes = ("PATH", "LANG", "SYSTEMROOT", "OMP_NUM_THREADS", "OPENBLAS_")
        self.environment = {k: v for k, v in os.environ.items() if k.startswith(prefixes)}
        self.environment["HOME"] = str(home)
        self.environment["TMPDIR"] = str(home.parent)
        self.offline = find_isolation()
        self.installed = self._find_package()
        self.before = digest_folder(self.installed)

    def _find_package(self) -> Path:
        print_folder = "import fedlab_nb, pathlib; print(pathlib.Path(fedlab_nb.__file__).parent)"
        package = Path(self.run([str(self.python), "-c", print_folder]).strip())
        if ROOT in package.parents:
            raise CheckError(f"the checkout is imported, not the wheel ({package})")
        return package

    def run(self, command: list[str], code: int = 0) -> str:
        """Run a command, which must end with this exit code; returns what it prints."""
        process = subprocess.run(
            [*self.offline, *command],
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        if process.returncode != code:
            output = f"{process.stdout[-2000:]}\n{process.stderr[-2000:]}"
            raise CheckError(f"{' '.join(command)} ended with {process.returncode}:\n{output}")
        return process.stdout + process.stderr

    def run_fedlab(self, *words: str, code: int = 0) -> str:
        """The same for a command of fedlab-nb; prints its time."""
        start = time.perf_counter()
        text = self.run([str(self.python.with_name("fedlab-nb")), *words], code)
        print(f"{time.perf_counter() - start:5.1f} s  fedlab-nb {' '.join(words)}", flush=True)
        return text

    def check_commands(self) -> None:
        """A run, another data set, a study, the page, the class, and the hint for an optional package."""
        self.check_output(self.run_fedlab("run", "fedavg", "fens"), "accuracy", times=2)
        self.check_output(
            self.run_fedlab("run", "afl", "--dataset", "mnist:5k"), "accuracy", times=1
        )
        (self.work / "study.toml").write_text(STUDY)
        self.check_output(self.run_fedlab("study", "study.toml"), "written to results", times=1)
        self.check_output(self.run_fedlab("page"), "written to playground.html", times=1)
        self.check_output(self.run_fedlab("class", "--page", "class.html"), "written to", times=1)
        self.check_output(
            self.run_fedlab("reproduce", "fens:1", "--stored"), "orderings", times=None
        )
        self.check_hint()

    def check_output(self, text: str, expected_text: str, times: int | None) -> None:
        if expected_text not in text or times is not None and text.count(expected_text) != times:
            raise CheckError(f"{expected_text!r} was expected in:\n{text[-2000:]}")

    def check_hint(self) -> None:
        """The command that adds an optional package is the one for an installed wheel."""
        print_hint = (
            "from fedlab_nb.installation import format_install_command;"
            " print(format_install_command('onnx'))"
        )
        hint = self.run([str(self.python), "-c", print_hint]).strip()
        if not re.fullmatch(r"pip install 'fedlab-nb\[onnx\]( @ \S+)?'", hint):
            raise CheckError(f"the hint {hint!r} does not fit a wheel")
        print(f"         {hint}")

    def check_course(self) -> None:
        """The course opens on this machine alone, the class too, and the first lesson runs."""
        course = Server(self, ["--no-browser"], r"The course is open at (\S+)")
        with course as address:
            if address:
                contents = address.replace("/lab/tree/", "/api/contents/")
                course.check_answer(contents, "1_start_here.ipynb")
        with Server(self, ["class", "--no-browser", "--port", "8199"], r"Students: (\S+)"):
            pass
        text = self.run([str(self.python), "-c", LESSON])
        self.check_output(text, "the first lesson ran", times=1)
        print(re.search("the first lesson ran.*", text)[0], flush=True)

    def check_traces(self) -> None:
        """The commands have written only what they name, and nothing into the installed package."""
        outputs = {path.name for path in self.work.iterdir()}
        expected = {"study.toml", "results", "playground.html", "class.html", "fedlab_nb_course"}
        if outputs != expected:
            differences = sorted(outputs ^ expected)
            raise CheckError(f"in the working folder these are missing or too much: {differences}")
        for path in self.home.rglob("*"):
            place = path.relative_to(self.home).as_posix()
            if not any(place.startswith(name) or name.startswith(place) for name in HOME_FOLDERS):
                raise CheckError(f"the home folder holds {place}")
        if digest_folder(self.installed) != self.before:
            raise CheckError("a command wrote into the installed package")
        print("nothing is written but the outputs, the course copy and the user's caches")


class Server:
    """A command that serves until it is stopped; `with` gives the address that it prints."""

    def __init__(self, newcomer: Newcomer, words: list[str], pattern: str) -> None:
        self.newcomer = newcomer
        self.words = words
        self.pattern = pattern

    def __enter__(self) -> str:
        self.start = time.perf_counter()
        program = str(self.newcomer.python.with_name("fedlab-nb"))
        self.log = self.newcomer.home.parent / "server.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [program, *self.words],
                cwd=self.newcomer.work,
                env=self.newcomer.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        while time.perf_counter() - self.start < 120 and self.process.poll() is None:
            match = re.search(self.pattern, self.log.read_text())
            if match:
                seconds = time.perf_counter() - self.start
                print(f"{seconds:5.1f} s  fedlab-nb {' '.join(self.words)}: open", flush=True)
                return match[1]
            time.sleep(0.1)
        self.__exit__()
        raise CheckError(f"{' '.join(self.words)} did not open:\n{self.log.read_text()[-2000:]}")

    def check_answer(self, address: str, expected_text: str) -> None:
        with urlopen(address, timeout=60) as answer:
            if expected_text not in answer.read().decode():
                raise CheckError(f"{expected_text} is not at the address of the course")

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise CheckError(f"{' '.join(self.words)} does not stop") from None


def find_isolation() -> list[str]:
    """The command that runs others without a network; [] where the system has none, with a message."""
    inner = 'ip link set lo up && exec "$@"'
    isolate = ["unshare", "--net", "--map-root-user", "sh", "-c", inner, "offline"]
    if shutil.which("unshare") and shutil.which("ip"):
        if subprocess.run([*isolate, "true"], capture_output=True).returncode == 0:
            print("without a network:", flush=True)
            return isolate
    print("the network stays on: this system does not isolate commands", flush=True)
    return []


def digest_folder(folder: Path) -> str:
    """A digest of the names and contents of all files, except compiled code."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.relative_to(folder).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
