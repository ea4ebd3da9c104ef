"""Digests of the code that a result depends on. A stored result is found again until that code changes; comments,
docstrings and layout do not count.

Trained clients depend on the core: data, models, training, the link, and the context of methods. A run also depends on
the files of its method, and on those of the methods that these import.
"""

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import CodeType

HashByName = dict[str, str]

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
    """Read the version of the installed torch, from its metadata: nothing is imported."""
    return metadata.version("torch")


@functools.cache
def hash_core_code(root: Path = ROOT) -> str:
    """Compute a digest of the source files that trained clients depend on."""
    return hash_source_files(
        root, [*CORE, *list_paths_of_method_modules_and_their_imports(["context"], root)]
    )


@functools.cache
def hash_method_code(method_class: type, root: Path = ROOT) -> str:
    """Compute a digest of the source files that a run of `method_class` depends on, besides those of its clients.

    A class from outside the package may call anything in `methods`, so it depends on all files there.
    """
    names: list[str] | None = None  # all
    if method_class.__module__.startswith(PACKAGE):
        names = find_file_names_of_method_class(method_class)
    paths = list_paths_of_method_modules_and_their_imports(names, root)
    return hash_source_files(root, [*paths, *EVALUATION])


def find_file_names_of_method_class(method_class: type) -> list[str]:
    """Find the files or folders of `methods` in which a class and its bases are defined, without ".py"."""
    names = []
    for base in method_class.__mro__:
        if base.__module__.startswith(PACKAGE + "methods."):
            names.append(base.__module__.split(".")[2])
    return names


def list_paths_of_method_modules_and_their_imports(
    module_names: Sequence[str] | None, root: Path
) -> list[str]:
    """List the files and folders of `methods` with these names (None: all), and everything there that they import,
    directly or indirectly."""
    path_by_name = {}
    for path in (root / "methods").iterdir():
        is_source = path.is_dir() or path.suffix == ".py"
        if is_source and path.stem != "__init__":
            path_by_name[path.stem] = path.relative_to(root).as_posix()
    waiting = list(path_by_name if module_names is None else module_names)
    paths: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name not in path_by_name or name in paths:
            continue
        paths[name] = path_by_name[name]
        for source in list_python_files(root, path_by_name[name]):
            waiting += NEIGHBOUR.findall(source.read_text("utf-8"))
    return list(paths.values())


def list_python_files(root: Path, relative_path: str) -> list[Path]:
    """List the Python files in the folder `relative_path` under `root`; if it is a file, only that file."""
    path = root / relative_path
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def hash_source_files(root: Path, relative_paths: Iterable[str]) -> str:
    """Compute the first 16 digits of the SHA-256 of all sources in these folders and files."""
    total = hashlib.sha256()
    for relative_path in sorted(relative_paths):
        for path in list_python_files(root, relative_path):
            content = path.read_bytes()
            if path.suffix == ".py":
                content = extract_code_without_docstrings(content)
            total.update(path.relative_to(root).as_posix().encode())
            total.update(content)
    return total.hexdigest()[:16]


def hash_functions_from_outside_package(functions: Mapping[str, object]) -> HashByName:
    """{"foreign": digest} of the functions that are not the package's own; {} if there are none.

    functions: by name; values that are not functions are ignored

    A function that has been edited gets another digest. Functions that it calls in turn are not included.
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
            total.update(extract_code_without_docstrings(foreign[name].__code__))
    return {"foreign": total.hexdigest()[:16]}


def extract_code_without_docstrings(code: bytes | CodeType) -> bytes:
    """Extract instructions, names and constants from source or compiled code, including the functions within it.

    Docstrings, comments and line numbers are left out.
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
            # Sorted, since the order of a set changes from one process to the next.
            constants.append(repr(sorted(map(repr, constant))))
        else:
            constants.append(repr(constant))
    names = repr((code.co_names, code.co_varnames, constants)).encode()
    content = code.co_code + names
    for function in functions:
        content += extract_code_without_docstrings(function)
    return content
