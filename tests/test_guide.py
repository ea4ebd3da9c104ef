"""The guide's way from a file to a prediction runs as it stands, and prints what it says.

`FEDLAB_NB_WRITE_GUIDE=1 python -m pytest tests/test_guide.py` puts the present outputs into the page. Numbers are
compared to 0.02: processors and versions of PyTorch differ in the last digits.
"""

import ast
import contextlib
import io
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from fedlab_nb.cli import main

PAGE = Path(__file__).parents[1] / "notebooks" / "guide" / "own_file.md"
BLOCK = re.compile(r"```(python|bash|text)\n(.*?)```\n", re.DOTALL)
NUMBER = re.compile(r"\d+\.\d+")


def run_block(kind: str, code: str, names: dict) -> str:
    """Run a block; returns what it prints, and the value of its last line."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if kind == "bash":
            for line in code.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "fedlab-nb" and main(arguments) == 0
        else:
            tree = ast.parse(code)
            last_expression = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, str(PAGE), "exec"), names)
            if last_expression is not None:
                expression = ast.Expression(last_expression.value)
                print(repr(eval(compile(expression, str(PAGE), "eval"), names)))
    return printed.getvalue()


def shorten(text: str) -> str:
    """Lines as the page has them: no longer than 240 characters, no blanks at the end."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return "\n".join(line if len(line) <= 240 else f"{line[:239]}…" for line in lines) + "\n"


def assert_same_output(expected: str, printed: str) -> None:
    """The words are equal, and the numbers equal to 0.02."""
    assert NUMBER.sub("#", expected).split() == NUMBER.sub("#", printed).split()
    numbers = [np.array(NUMBER.findall(text), dtype=float) for text in (expected, printed)]
    np.testing.assert_allclose(*numbers, atol=0.02, rtol=0.001)


@pytest.mark.slow
def test_the_page_runs_and_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    blocks = [(match[1], match[2]) for match in BLOCK.finditer(page)]
    assert sum(kind == "text" for kind, _ in blocks) >= 6
    names: dict = {"__name__": "guide"}
    printed = ""
    new_blocks = []
    for kind, code in blocks:
        if kind == "text":
            new_blocks.append((kind, shorten(printed)))
            if not os.environ.get("FEDLAB_NB_WRITE_GUIDE"):
                assert_same_output(code, shorten(printed))
        else:
            printed = run_block(kind, code, names)
            new_blocks.append((kind, code))
    if os.environ.get("FEDLAB_NB_WRITE_GUIDE"):
        replacements = iter(new_blocks)
        new_page = BLOCK.sub(lambda _: "```{}\n{}```\n".format(*next(replacements)), page)
        PAGE.write_text(new_page, encoding="utf-8")


def test_the_comparison_sees_another_word_and_another_number():
    assert_same_output("a 0.50", "a  0.51")
    for other in ("b 0.50", "a 0.55", "a 0.50 0.50"):
        with pytest.raises(AssertionError):
            assert_same_output("a 0.50", other)
