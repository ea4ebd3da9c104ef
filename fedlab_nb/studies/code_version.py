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
    return compute_digest(root, [*CORE, *follow_imports(["context"], root)])


@functools.cache
def run_code(method: Any, root: Path = ROOT) -> str:
    """Digest of what a run of `method` depends on beside its clients. A class from outside the package may call
    anything in `methods`, so it depends on all of that."""
    names = None
    if method.__module__.startswith(PACKAGE):
        names = []
        for base in method.__mro__:
            if base.__module__.startswith(PACKAGE + "methods."):
                names.append(base.__module__.split(".")[2])
    return compute_digest(root, [*follow_imports(names, root), *EVALUATION])


def follow_imports(names: Sequence[str] | None, root: Path) -> list[str]:
    """The files and folders of `methods` with these names (None: all), and those that they import."""
    places = {}
    for path in (root / "methods").iterdir():
        if (path.is_dir() or path.suffix == ".py") and path.stem != "__init__":
            places[path.stem] = path.relative_to(root).as_posix()
    waiting = list(places if names is None else names)
    found: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name not in places or name in found:
            continue
        found[name] = places[name]
        for source in list_sources(root, places[name]):
            waiting += NEIGHBOUR.findall(source.read_text("utf-8"))
    return list(found.values())


def list_sources(root: Path, place: str) -> list[Path]:
    """The sources of a folder, or the one that `place` names."""
    path = root / place
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def compute_digest(root: Path, places: Iterable[str]) -> str:
    """The first 16 digits of the SHA-256 of all sources in these folders and files."""
    total = hashlib.sha256()
    for place in sorted(places):
        for path in list_sources(root, place):
            content = path.read_bytes()
            total.update(path.relative_to(root).as_posix().encode())
            total.update(code_bytes(content) if path.suffix == ".py" else content)
    return total.hexdigest()[:16]


def foreign_code(functions: Mapping[str, Any]) -> dict[str, str]:
    """A digest of the functions that are not the package's own, so that an edited one is another one; else nothing.

    What such functions call in turn is not looked at.
    """
    foreign = {}
    for name, function in functions.items():
        if hasattr(function, "__code__") and not str(function.__module__).startswith(PACKAGE):
            foreign[name] = function
    if not foreign:
        return {}
    total = hashlib.sha256()
    for name in sorted(foreign):
        if not name.startswith("__"):  # what a dataclass writes itself
            total.update(name.encode() + code_bytes(foreign[name].__code__))
    return {"foreign": total.hexdigest()[:16]}


def code_bytes(code: Any) -> bytes:
    """Instructions, names and constants of compiled code or of a source, those of functions within it included."""
    if isinstance(code, bytes):
        code = compile(code, "", "exec", optimize=2, dont_inherit=True)  # 2: without docstrings
    functions = []
    constants = []
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            functions.append(constant)
        elif isinstance(constant, frozenset):  # in an order that is always the same
            constants.append(repr(sorted(map(repr, constant))))
        else:
            constants.append(repr(constant))
    names = repr((code.co_names, code.co_varnames, constants)).encode()
    return code.co_code + names + b"".join(code_bytes(function) for function in functions)
