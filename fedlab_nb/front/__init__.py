"""The browser's side: the stage, in plain ES modules and one stylesheet, without a build step and without a network.

A browser can import the modules as they are. Where one file must hold everything (the page without Python, a widget's
entry) `join_modules` puts them in one scope, in the order of their imports.
"""

import re
from pathlib import Path

from ..errors import FedlabError

HERE = Path(__file__).parent
IMPORT = re.compile(r"^import \{([^}]*)\} from \"\./([\w./]+)\";\n", re.MULTILINE)
NAME = re.compile(
    r"^(?:export )?(?:async )?(?:function\*?|const|let|var|class) ([\w$]+)", re.MULTILINE
)
DESTRUCTURED = re.compile(r"^(?:export )?(?:const|let|var) [\[{]([^\]}]*)[\]}] =", re.MULTILINE)
EXPORTED = re.compile(r"^export (?:async )?(?:function\*?|const|let|class) ([\w$]+)", re.MULTILINE)
# What the join does not understand, and would lose or change in silence.
FORBIDDEN = {
    "a default export": re.compile(r"^export default", re.MULTILINE),
    "an export list": re.compile(r"^export (?:\{|\*)", re.MULTILINE),
    "an import without braces": re.compile(r"^import (?!\{)", re.MULTILINE),
    "a dynamic import": re.compile(r"\bimport\s*\("),
}


class JoinError(FedlabError):
    """Modules that cannot stand in one file."""


def read_stage_stylesheet() -> str:
    """Read the stage's stylesheet, CSS."""
    return (HERE / "stage.css").read_text(encoding="utf-8")


def list_modules_in_import_order(entry_module: Path) -> list[Path]:
    """List a module and all that it imports, each after those that it imports itself.

    Raises JoinError if modules import each other in a circle.
    """
    found: list[Path] = []
    under_way: list[Path] = []

    def visit(path: Path) -> None:
        if path in found:
            return
        if path in under_way:
            names = " -> ".join(one.name for one in [*under_way, path])
            raise JoinError(f"Modules import each other in a circle: {names}; break it.")
        under_way.append(path)
        for _, name in IMPORT.findall(path.read_text(encoding="utf-8")):
            visit((path.parent / name).resolve())
        under_way.pop()
        found.append(path)

    visit(entry_module.resolve())
    return found


def join_modules(paths_in_import_order: list[Path]) -> str:
    """Join the text of modules into one scope, without `import` and `export`.

    paths_in_import_order: each module after those that it imports

    Raises JoinError for what would be lost in silence: a name that two modules have, an alias, a default export, an
    import of what no module exports.
    """
    owners: dict[str, str] = {}
    exported: dict[str, set[str]] = {}
    parts = []
    for path in paths_in_import_order:
        text = path.read_text(encoding="utf-8")
        raise_join_error_for_unknown_forms(path, text)
        for names, source in IMPORT.findall(text):
            raise_join_error_for_bad_imports(path, names, Path(source).name, exported)
        for name in list_names_in_module_scope(text):
            if name in owners:
                raise JoinError(
                    f"{path.name} and {owners[name]} both have {name!r}; rename one of them."
                )
            owners[name] = path.name
        exported[path.name] = set(EXPORTED.findall(text))
        stripped = IMPORT.sub("", text)
        parts.append(re.sub(r"^export ", "", stripped, flags=re.MULTILINE))
    return "\n".join(parts)


def list_names_in_module_scope(module_text: str) -> list[str]:
    """List the names that a module's own scope has."""
    names = NAME.findall(module_text)
    for group in DESTRUCTURED.findall(module_text):
        names += re.findall(r"[\w$]+", group)
    return names


def raise_join_error_for_unknown_forms(module_path: Path, module_text: str) -> None:
    """Raise JoinError for a form of import or export that `join_modules` does not know."""
    code = re.sub(r"^\s*//.*|/\*.*?\*/", "", module_text, flags=re.MULTILINE | re.DOTALL)
    for what, pattern in FORBIDDEN.items():
        if pattern.search(code):
            raise JoinError(
                f"{module_path.name} has {what}, which cannot be joined; write `import {{ name }}`."
            )
    left = IMPORT.sub("", code)
    if re.search(r"^import ", left, re.MULTILINE):
        raise JoinError(
            f'{module_path.name} has an import that is not `import {{ name }} from "./file.js";`.'
        )


def raise_join_error_for_bad_imports(
    module_path: Path,
    comma_separated_names: str,
    imported_file_name: str,
    exported_names_by_file: dict[str, set[str]],
) -> None:
    """Raise JoinError for an import that is an alias, is of a module that does not stand before this one, or of a
    name that the module does not export.
    """
    if imported_file_name not in exported_names_by_file:
        raise JoinError(
            f"{module_path.name} imports {imported_file_name}, which does not stand before it."
        )
    for name in filter(None, (name.strip() for name in comma_separated_names.split(","))):
        if " as " in name:
            raise JoinError(
                f"{module_path.name} imports {name!r} from {imported_file_name}: an alias cannot be joined."
            )
        if name not in exported_names_by_file[imported_file_name]:
            raise JoinError(
                f"{module_path.name} imports {name!r}, which {imported_file_name} does not export."
            )


def join_front_modules_into_expression(*entry_names: str) -> str:
    """Join the modules that `entry_names` need into one JavaScript expression: an object with their exports."""
    paths: list[Path] = []
    exports: list[str] = []
    for name in entry_names:
        entry = (HERE / f"{name}.js").resolve()
        for path in list_modules_in_import_order(entry):
            if path not in paths:
                paths.append(path)
        exports += EXPORTED.findall(entry.read_text(encoding="utf-8"))
    return f"(() => {{\n{join_modules(paths)}\nreturn {{ {', '.join(exports)} }};\n}})()"
