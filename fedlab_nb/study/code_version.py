"""Which code a result depends on: a digest of the modules that it runs through, so that a stored result is found again
until one of these is changed.

The modules are those that some first ones import, and those that these import, read off the sources. A package's
`__init__` that hands names on does not count: `from ..data import federate` leads to the file that has `federate`.
Comments, docstrings and layout do not count either.
"""

import ast
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = ("methods.context", "study.seed_batching")  # local training, of one seed's clients and of several
EVALUATION = ("study.experiment", "study.outcome")


@functools.cache
def torch_version() -> str:
    """Of the installed torch, from its metadata: nothing is imported."""
    return metadata.version("torch")


@dataclass
class Module:
    """A source file. `text`: its code without docstrings, comments and layout;   `taken`: name here -> (module, name
    there or "" for a module as a whole)."""

    name: str
    is_package: bool
    text: str
    taken: list[tuple[str, str, str]] = field(default_factory=list)


@functools.lru_cache(maxsize=1024)
def parsed(source: bytes) -> tuple[str, list[ast.Import | ast.ImportFrom]]:
    """What `Module.text` says of that source, and its import statements. The tree itself is not held: it has many
    thousand objects."""
    tree = ast.parse(source)
    imports: list[ast.Import | ast.ImportFrom] = []
    for statement in statements(tree):
        drop_docstring(statement)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imports.append(statement)
    return ast.dump(tree), imports


class Code:
    """The sources of a package in the folder `root`; modules are named from there: "training.loop".

    module, run: `_module` and `_run`, remembered
    """

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.module: Callable[[str], Module | None] = functools.cache(self._module)
        self.run: Callable[[type], str] = functools.cache(self._run)

    @functools.cached_property
    def clients(self) -> str:
        """Digest of what trained clients depend on."""
        return self.digest(self.reached(CLIENTS))

    def _run(self, method: type) -> str:
        """Digest of what a run of `method` depends on beside its clients.

        A class from outside the package may call anything in `methods`, so it depends on all of that.
        """
        own = __name__.partition(".")[0] + "."
        first = [base.__module__.removeprefix(own) for base in method.__mro__ if base.__module__.startswith(own)]
        if not method.__module__.startswith(own):
            paths = (path.relative_to(self.root).with_suffix("") for path in (self.root / "methods").rglob("*.py"))
            first += [".".join(path.parts).removesuffix(".__init__") for path in paths]
        return self.digest({*self.reached(first), *EVALUATION})

    def digest(self, names: Iterable[str]) -> str:
        """Of these modules alone."""
        digest = hashlib.sha256()
        for name in sorted(names):
            module = self.module(name)
            digest.update(f"{name}\n{module.text if module else ''}\n".encode())
        return digest.hexdigest()[:16]

    def reached(self, names: Iterable[str]) -> set[str]:
        """These modules and all that they import, directly or through others."""
        seen: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in seen and (module := self.module(name)) is not None:
                seen.add(name)
                waiting += [self._home(there, what) for _, there, what in module.taken]
        return seen

    def _module(self, name: str) -> Module | None:
        """The module of that name; None if there is none."""
        place = self.root.joinpath(*name.split("."))
        path = next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)
        if path is None:
            return None
        text, imports = parsed(path.read_bytes())
        module = Module(name, path.name == "__init__.py", text)
        for statement in imports:
            module.taken += self._imports(module, statement)
        return module

    def _imports(self, module: Module, statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
        package = self.root.name + "."
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.name.startswith(package):
                    yield alias.name, alias.name.removeprefix(package), ""
            return
        there = statement.module or ""
        if statement.level:
            parts = module.name.split(".")
            above = parts[: len(parts) + module.is_package - statement.level]
            there = ".".join([*above, *there.split(".")] if there else above)
        elif there + "." != package and not there.startswith(package):
            return
        for alias in statement.names:
            yield alias.asname or alias.name, (there + ".").removeprefix(package).removesuffix("."), alias.name

    def _home(self, there: str, what: str) -> str:
        """The module in which `what`, taken from `there`, is written."""
        inside = f"{there}.{what}".strip(".")
        if self.module(inside) is not None:
            return inside
        module = self.module(there)
        if module is not None and module.is_package:
            for name, further, original in module.taken:
                if name == what:
                    return self._home(further, original)
        return there


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """`tree` and every statement within it; expressions hold none."""
    yield tree
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        inner = getattr(tree, part, None)
        for statement in inner if isinstance(inner, list) else ():
            yield from statements(statement)


def drop_docstring(tree: ast.AST) -> None:
    """Take a module's, class's or function's docstring away."""
    if isinstance(tree, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and tree.body:
        first = tree.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            del tree.body[0]


def foreign_code(functions: Mapping[str, Any]) -> dict[str, str]:
    """A digest of the functions that are not the package's own, so that an edited one is another one; else nothing.

    What such functions call in turn is not looked at.
    """
    own = __name__.partition(".")[0] + "."
    foreign = {n: f for n, f in functions.items() if hasattr(f, "__code__") and not f.__module__.startswith(own)}
    if not foreign:
        return {}
    digest = hashlib.sha256()
    for name in sorted(foreign):
        if not name.startswith("__"):  # what a dataclass writes itself
            digest.update(name.encode() + _code_bytes(foreign[name].__code__))
    return {"foreign": digest.hexdigest()[:16]}


def _code_bytes(code: Any) -> bytes:
    """A function's instructions, names and constants, those of functions within it included."""
    inner = [c for c in code.co_consts if hasattr(c, "co_code")]
    plain = [repr(sorted(map(repr, c)) if isinstance(c, frozenset) else c) for c in code.co_consts if c not in inner]
    return code.co_code + repr((code.co_names, code.co_varnames, plain)).encode() + b"".join(map(_code_bytes, inner))


PACKAGE = Code()
