"""Modules in one scope: ordered, without import and export, and nothing is lost in silence."""

import json
import shutil
import subprocess

import pytest

from fedlab_nb.front import (
    HERE,
    JoinError,
    join_front_modules_into_expression,
    join_modules,
    list_modules_in_import_order,
)


def write(folder, **texts):
    paths = []
    for name, text in texts.items():
        path = folder / f"{name}.js"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def test_a_module_stands_after_those_that_it_imports(tmp_path):
    write(
        tmp_path,
        top='import { half } from "./middle.js";\nexport const top = half + 1;\n',
        middle='import { one } from "./base.js";\nexport const half = one / 2;\n',
        base="export const one = 1;\n",
    )
    paths = list_modules_in_import_order(tmp_path / "top.js")
    assert [path.stem for path in paths] == ["base", "middle", "top"]
    text = join_modules(paths)
    assert "import" not in text
    assert "export" not in text
    assert text.index("const one") < text.index("const half") < text.index("const top")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("const one = 2;\n", "both have 'one'"),
        ("const [one, two] = [1, 2];\n", "both have 'one'"),
        ('import { one as two } from "./base.js";\n', "alias"),
        ('import { three } from "./base.js";\n', "does not export"),
        ('import { one } from "./other.js";\n', "does not stand before"),
        ('import base from "./base.js";\n', "without braces"),
        ('import * as base from "./base.js";\n', "without braces"),
        ('const late = import("./base.js");\n', "dynamic import"),
        ("export default 3;\n", "default export"),
        ("const two = 2;\nexport { two };\n", "export list"),
        ('import { one } from "https://x.example/base.js";\n', "is not `import"),
    ],
)
def test_what_the_join_would_lose_is_an_error(tmp_path, text, says):
    paths = write(tmp_path, base="export const one = 1;\n", module=text)
    with pytest.raises(JoinError, match=says):
        join_modules(paths)


def test_a_circle_is_an_error(tmp_path):
    first, _ = write(
        tmp_path,
        first='import { b } from "./second.js";\nexport const a = 1;\n',
        second='import { a } from "./first.js";\nexport const b = 1;\n',
    )
    with pytest.raises(JoinError, match="first.js -> second.js -> first.js"):
        list_modules_in_import_order(first)


def test_every_module_of_the_stage_is_joined_and_parses():
    text = join_front_modules_into_expression(
        "stage", "worker_transport", "panel_entry", "race", "hand"
    )
    node = shutil.which("node") or pytest.skip("there is no Node.js on this machine")
    code = f"console.log(JSON.stringify(Object.keys({text})));"
    # From its input: an argument may not be so long.
    ended = subprocess.run([node, "-"], input=code, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert json.loads(ended.stdout) == [
        "createStage", "createWorkerTransport", "renderPanel", "spreadLabels", "createRace",
            "createHand",
    ]  # fmt: skip
    modules = {"worker_transport.js"}
    for entry in ("panel_entry", "race", "hand", "flight_stills"):
        modules |= {path.name for path in list_modules_in_import_order(HERE / f"{entry}.js")}
    assert modules == {path.name for path in HERE.glob("*.js")}
