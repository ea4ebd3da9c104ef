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
from types import CodeType
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
def read_torch_version() -> str:
    """The version of the installed torch, from its metadata: nothing is imported."""
    return metadata.version("torch")


@functools.cache
def digest_core_code(root: Path = ROOT) -> str:
    """Digest of the source files that trained clients depend on."""
    return compute_digest(root, [*CORE, *follow_imports(["context"], root)])


@functools.cache
def digest_method_code(method: type, root: Path = ROOT) -> str:
    """Digest of the source files that a run of `method` depends on beside its clients.

    A class from outside the package may call anything in `methods`, so it depends on all of that.
    """
    is_from_package = method.__module__.startswith(PACKAGE)
    names = find_method_files(method) if is_from_package else None
    return compute_digest(root, [*follow_imports(names, root), *EVALUATION])


def find_method_files(method: type) -> list[str]:
    """The files or folders of `methods`, without their ending, in which a class and its bases are
    defined."""
    names = []
    for base in method.__mro__:
        if base.__module__.startswith(PACKAGE + "methods."):
            names.append(base.__module__.split(".")[2])
    return names


def follow_imports(names: Sequence[str] | None, root: Path) -> list[str]:
    """The files and folders of `methods` with these names (None: all of them), and all that they
    import from there, directly or not."""
    places = {}
    for path in (root / "methods").iterdir():
        is_source = path.is_dir() or path.suffix == ".py"
        if is_source and path.stem != "__init__":
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
    """The Python files of a folder `place` under `root`, or the one file that it names."""
    path = root / place
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def compute_digest(root: Path, places: Iterable[str]) -> str:
    """The first 16 digits of the SHA-256 of all sources in these folders and files."""
    total = hashlib.sha256()
    for place in sorted(places):
        for path in list_sources(root, place):
            content = path.read_bytes()
            total.update(path.relative_to(root).as_posix().encode())
            total.update(extract_code_bytes(content) if path.suffix == ".py" else content)
    return total.hexdigest()[:16]


def digest_foreign_functions(functions: Mapping[str, Any]) -> dict[str, str]:
    """{"foreign": digest} of those functions that a person wrote, so that an edited one counts as
    another one; {} if all of them are the package's.

    functions: by name; values that are no functions are passed over

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
        is_written_by_dataclass = name.startswith("__")
        if not is_written_by_dataclass:
            total.update(name.encode())
            total.update(extract_code_bytes(foreign[name].__code__))
    return {"foreign": total.hexdigest()[:16]}


def extract_code_bytes(code: bytes | CodeType) -> bytes:
    """Instructions, names and constants of a source or of compiled code, those of the functions
    within it included.

    Docstrings, comments and line numbers are no part of it.
    """
    if isinstance(code, bytes):
        # optimize=2: without docstrings
        code = compile(code, "", "exec", optimize=2, dont_inherit=True)
    functions = []
    constants = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            functions.append(constant)
        elif isinstance(constant, frozenset):
            # A set's own order changes from one process to the next.
            constants.append(repr(sorted(map(repr, constant))))
        else:
            constants.append(repr(constant))
    names = repr((code.co_names, code.co_varnames, constants)).encode()
    content = code.co_code + names
    for function in functions:
        content += extract_code_bytes(function)
    return content
