"""Check every supported Python, and the oldest packages that pyproject.toml allows.

    python tests/versions.py                       # each Python 3.10 to 3.14 that is found here
    python tests/versions.py python3.12            # this one
    python tests/versions.py --lowest python3.10   # with the oldest packages that are allowed
    python tests/versions.py --tests python3.12    # the fast tests, too (minutes)

Each gets an environment of its own, made with uv (`pip install uv`): the wheel is installed there and
tried as a newcomer tries it (check_wheel.py). The environments have several GB each where PyTorch
comes with CUDA; they are deleted again, one after the other, unless `--keep FOLDER` says where they
stay. The exit code is the number of Pythons that failed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import check_wheel

ROOT = Path(__file__).resolve().parents[1]
SUPPORTED = ("3.10", "3.11", "3.12", "3.13", "3.14")
# Tests in a browser need one, and none of them is a fast test.
FAST = ["--ignore=tests/browser", "-p", "no:cacheprovider", "-q"]
# What each public name needs to be imported; a removed name of a library shows here first.
IMPORTS = """
import fedlab_nb as fl
for name in fl.__all__:
    getattr(fl, name)
print(len(fl.__all__), "public names are there")
"""


def main() -> int:
    options = read_options()
    with tempfile.TemporaryDirectory(prefix="fedlab_nb-versions-") as name:
        folder = options.keep or Path(name)
        wheel = check_wheel.build_wheel(Path(name) / "dist")
        broken = []
        for python in options.pythons or find_pythons():
            try:
                check_python(python, wheel, folder, options)
            except (subprocess.CalledProcessError, OSError) as error:
                print(f"{python} failed: {error}", flush=True)
                broken.append(python)
    print(f"broken: {', '.join(broken)}" if broken else "All of them work.")
    return len(broken)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pythons", nargs="*", help="programs; default: all that are found")
    parser.add_argument(
        "--lowest", action="store_true", help="the oldest packages that are allowed"
    )
    parser.add_argument("--tests", nargs="*", metavar="PATH", help="run these fast tests, or all")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the environments there")
    return parser.parse_args()


def find_pythons() -> list[str]:
    """The supported Pythons on the search path, and those of pyenv."""
    programs = []
    for version in SUPPORTED:
        program = shutil.which(f"python{version}")
        installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
        if installed:
            program = str(installed[-1])
        if program:
            programs.append(program)
        else:
            print(f"Python {version} is not here", flush=True)
    return programs


def check_python(python: str, wheel: Path, folder: Path, options: argparse.Namespace) -> None:
    """Make an environment, install the wheel, and try it; CalledProcessError if anything fails."""
    kind = "lowest" if options.lowest else "newest"
    environment = folder / f"{Path(python).name}-{kind}"
    print(f"\n{python}, {kind} packages", flush=True)
    program = environment / "bin/python"
    if not program.exists():
        run_uv("venv", "--quiet", "--python", python, str(environment))
    resolution = "lowest-direct" if options.lowest else "highest"
    install = ["pip", "install", "--quiet", "--python", str(program)]
    # The wheel itself would be the only direct requirement, and its needs would be the newest.
    run_uv(*install, "--resolution", resolution, "--requirements", str(ROOT / "pyproject.toml"))
    run_uv(*install, "--no-deps", str(wheel))
    subprocess.check_call([str(program), "-c", IMPORTS], cwd=folder)
    script = str(ROOT / "tests/check_wheel.py")
    subprocess.check_call([str(program), script, str(wheel), "--inside", str(program)])
    if options.tests is not None:
        project = str(ROOT / "pyproject.toml")
        run_uv(*install, "--resolution", resolution, "--requirements", project, "--extra", "test")
        run_fast_tests(program, options.tests)
    if not options.keep:
        shutil.rmtree(environment)


def run_fast_tests(program: Path, paths: list[str]) -> None:
    """pytest in the checkout, with the packages of this environment."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [str(program), "-m", "pytest", *FAST, *paths]
    subprocess.check_call(command, cwd=ROOT, env=environment)


def run_uv(*words: str) -> None:
    """Run a command of uv, as a program or as a module of this Python."""
    program = shutil.which("uv")
    command = [program] if program else [sys.executable, "-m", "uv"]
    subprocess.check_call([*command, *words])


if __name__ == "__main__":
    sys.exit(main())
