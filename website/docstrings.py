"""The package's docstrings as reStructuredText, for Sphinx' autodoc.

A docstring here is plain text: paragraphs, `code` in single backticks, lines `name: what it is` for
arguments, doctests, and blocks that are indented by four spaces. `convert` says the same in
reStructuredText, so that no docstring needs its markup.
"""

import re
from collections.abc import Iterable, Iterator

# `name: text` or `name, other: text` at the beginning of a line. A sentence with a colon has spaces before it.
ITEM = re.compile(r"^(\*{0,2}\w[\w*.]*(?:, \*{0,2}\w[\w*.]*)*):\s+(.*)$")
# Several of them on one line stand three spaces apart.
NEXT_ITEM = re.compile(r";?\s{3}(?=\w[\w, *]*:\s)")
# What inspect finds as the docstring of a property that is made by operator.attrgetter.
FOREIGN = "Return a callable object that fetches the given attribute(s)"


def convert(lines: Iterable[str]) -> list[str]:
    """A docstring's lines (without common indentation) as lines of reStructuredText."""
    text = "\n".join(lines).strip("\n")
    if FOREIGN in text:
        return []
    converted: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        converted += [*convert_block(block.split("\n")), ""]
    return converted


def convert_block(block: list[str]) -> Iterator[str]:
    """The lines between two empty ones."""
    if block[0].lstrip().startswith(">>>"):
        yield from block
    elif all(line.startswith("    ") for line in block):
        yield from ("::", "", *block)
    else:
        yield from convert_text(block)


def convert_text(block: list[str]) -> Iterator[str]:
    """Sentences, and behind them arguments, each of which becomes a bullet."""
    sentences: list[str] = []
    items: list[list[str]] = []
    for line in split_items(block):
        item = ITEM.match(line)
        if item:
            items.append([f"- **{escape(item[1])}**: {markup(item[2])}"])
        elif items:
            items[-1].append(f"  {markup(line.strip())}")
        else:
            sentences.append(markup(line))
    yield from sentences
    if sentences and items:
        yield ""
    for item_lines in items:
        yield from item_lines


def split_items(block: list[str]) -> Iterator[str]:
    """The lines, with a line for each argument where one line has several."""
    for line in block:
        if ITEM.match(line):
            yield from NEXT_ITEM.split(line)
        else:
            yield line


def markup(text: str) -> str:
    """Code in backticks as literals; in the rest nothing is markup."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a code that goes on in the next line: leave it as plain text
        return escape(text)
    for number, part in enumerate(parts):
        if number % 2 == 0:
            parts[number] = escape(part)
        else:
            parts[number] = f"``{part}``" if part.strip() == part and part else escape(part)
    return "".join(parts)


def escape(text: str) -> str:
    """Text in which no character is markup."""
    return re.sub(r"([\\*|`]|_(?!\w))", r"\\\1", text)


def process_docstring(app, what, name, obj, options, lines) -> None:
    """For autodoc's event of this name: changes `lines` in place."""
    lines[:] = convert(lines)


def setup(app) -> None:
    app.connect("autodoc-process-docstring", process_docstring)
