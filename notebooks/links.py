"""Link the first use of each symbol in a lesson to its row in notation.md, with its meaning under the pointer.

    python notebooks/links.py            # mend the lessons in notebooks/source
    python notebooks/links.py --check    # change nothing; exit 1 if a lesson lacks a link, or has an old one

`[$\\alpha$](notation.md#alpha "concentration of …")` is such a link. A symbol counts where a formula is that symbol
alone, or where a Greek letter stands in the text. Headings, code, tables, lists of references and long formulas are
left as they are.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from fedlab_nb.symbols import Symbol, letters, meaning_of, symbols

FOLDER = Path(__file__).parent / "source"
# the method that a letter speaks of in a lesson, where it means something to several
METHODS = {
    "02": "DENSE", "03": "FENS", "04": "Fed-ET", "05": "Co-Boosting", "06": "FuseFL", "07": "FedLPA", "10": "AFL",
    "11": "Neuron matching", "12": "Distilled data",
}  # fmt: skip
LINK = re.compile(r'\[([^\]\[]+)\]\(notation\.md#[\w-]+ "[^"]*"\)')
FENCE = re.compile(r"(^```.*?^```[^\n]*\n?|\$\$.*?\$\$)", re.MULTILINE | re.DOTALL)
# what is no place for a link: headings, rows of tables, references; links, code, comments; a paper's own letter
NO_PLACE = re.compile(
    r"^(?:#|\||- .*(?:arXiv|doi)).*|!?\[[^\]]*\]\([^)]*\)|`[^`]*`|<!--.*?-->|\((?:its|[Tt]he paper)[^)]*\)",
    re.MULTILINE,
)
SYMBOL = re.compile(r"\$([^$\n]+)\$|(?<![\w$\\])([α-ωΑ-Ω](?:_\w+)?)(?![\w$-])")


def rows_of(lesson: str) -> dict[str, Symbol]:
    """{plain name: row} of the symbols that mean the same in this lesson, such as "03", as in the table."""
    rows: dict[str, Symbol] = {}
    for row in symbols():
        here = not row.owner or row.first == lesson or re.search(r"_\w\w", row.base)
        if here and (row.base not in rows or row.first == lesson):
            rows[row.base] = row
    return rows


def linked(text: str, lesson: str) -> str:
    """The text of a lesson with its links as they should be."""
    text, rows, done = LINK.sub(r"\1", text), rows_of(lesson), set()

    def put(match: re.Match) -> str:
        name = re.sub(r"\(.*\)$", "", letters(match[1] or match[2]))
        if name not in rows or name in done or "=" in match[0]:
            return match[0]
        done.add(name)
        known = meaning_of(rows[name], name, METHODS.get(lesson, ""))
        meaning = (known[1] if known else rows[name].short).replace('"', "”")
        return f'[{match[0]}](notation.md#{rows[name].anchor} "{meaning}")'

    def between(text: str) -> str:
        parts, end = [], 0
        for skip in NO_PLACE.finditer(text):
            parts += [SYMBOL.sub(put, text[end : skip.start()]), skip[0]]
            end = skip.end()
        return "".join([*parts, SYMBOL.sub(put, text[end:])])

    pieces = FENCE.split(text)
    return "".join(piece if i % 2 else between(piece) for i, piece in enumerate(pieces))


def changes() -> dict[Path, str]:
    """{lesson: its text as it should be} of the lessons that are another way."""
    lessons = [path for path in sorted(FOLDER.glob("*.md")) if path.name[:2].isdigit()]
    made = {path: linked(path.read_text(encoding="utf-8"), path.name[:2]) for path in lessons}
    return {path: text for path, text in made.items() if text != path.read_text(encoding="utf-8")}


def main() -> int:
    check = "--check" in sys.argv[1:]
    changed = changes()
    for path, text in changed.items():
        print(f"{'old links' if check else 'changed'}: {path.name}")
        if not check:
            path.write_text(text, encoding="utf-8")
    return int(check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
