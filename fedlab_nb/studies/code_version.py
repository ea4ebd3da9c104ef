"""Which code a result depends on: a digest of source files, so that a stored result is found again until one of these
is changed. Comments, docstrings and layout do not count.

Trained clients depend on the core: data, models, training, the link, and what methods share. A run depends beside it on
the files of its method, and of the methods that these import.
"""

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = __name__.partition(".")[0] + "."
HERE = Path(__file__).parent.name
CORE = (
    "data",
    "models",
    "models/models.toml",
    "training",
    "comm",
    "rng.py",
    "errors.py",
    "torch_switches.py",
    f"{HERE}/store.py",
)
EVALUATION = (f"{HERE}/experiment.py", f"{HERE}/outcome.py")
NEIGHBOUR = re.compile(r"^\s*from \.+(\w+)", re.MULTILINE)


@functools.cache
def torch_version() -> str:
    """Of the installed torch, from its metadata: nothing is imported."""
    return metadata.version("torch")


@functools.cache
def core_code(root: Path = ROOT) -> str:
    """Digest of what trained clients depend on."""
    return digest(root, [*CORE, *methods_from(["context"], root)])


@functools.cache
def run_code(method: Any, root: Path = ROOT) -> str:
    """Digest of what a run of `method` depends on beside its clients. A class from outside the package may call
    anything in `methods`, so it depends on all of that."""
    own = [
        base.__module__
        for base in method.__mro__
        if base.__module__.startswith(PACKAGE + "methods.")
    ]
    first = [name.split(".")[2] for name in own] if method.__module__.startswith(PACKAGE) else None
    return digest(root, [*methods_from(first, root), *EVALUATION])


def methods_from(names: Sequence[str] | None, root: Path) -> list[str]:
    """The files and folders of `methods` with these names (None: all), and those that they import."""
    found = [path for path in (root / "methods").iterdir() if path.is_dir() or path.suffix == ".py"]
    places = {path.stem: path for path in found if path.stem != "__init__"}
    waiting = list(places if names is None else names)
    taken: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name in places and name not in taken:
            taken[name] = places[name].relative_to(root).as_posix()
            waiting += [
                n
                for path in files(root, taken[name])
                for n in NEIGHBOUR.findall(path.read_text("utf-8"))
            ]
    return list(taken.values())


def files(root: Path, place: str) -> list[Path]:
    """The sources of a folder, or the one that `place` names."""
    return sorted((root / place).rglob("*.py")) if (root / place).is_dir() else [root / place]


def digest(root: Path, places: Iterable[str]) -> str:
    """Of all sources in these folders and files."""
    made = hashlib.sha256()
    for path in (path for place in sorted(places) for path in files(root, place)):
        content = path.read_bytes()
        made.update(path.relative_to(root).as_posix().encode())
        made.update(code_bytes(content) if path.suffix == ".py" else content)
    return made.hexdigest()[:16]


def foreign_code(functions: Mapping[str, Any]) -> dict[str, str]:
    """A digest of the functions that are not the package's own, so that an edited one is another one; else nothing.

    What such functions call in turn is not looked at.
    """
    foreign = {
        n: f
        for n, f in functions.items()
        if hasattr(f, "__code__") and not str(f.__module__).startswith(PACKAGE)
    }
    if not foreign:
        return {}
    made = hashlib.sha256()
    for name in sorted(foreign):
        if not name.startswith("__"):  # what a dataclass writes itself
            made.update(name.encode() + code_bytes(foreign[name].__code__))
    return {"foreign": made.hexdigest()[:16]}


def code_bytes(code: Any) -> bytes:
    """Instructions, names and constants of compiled code or of a source, those of functions within it included."""
    if isinstance(code, bytes):
        code = compile(code, "", "exec", optimize=2, dont_inherit=True)  # 2: without docstrings
    inner = [c for c in code.co_consts if hasattr(c, "co_code")]
    plain = [
        repr(sorted(map(repr, c)) if isinstance(c, frozenset) else c)
        for c in code.co_consts
        if c not in inner
    ]
    return (
        code.co_code
        + repr((code.co_names, code.co_varnames, plain)).encode()
        + b"".join(map(code_bytes, inner))
    )
