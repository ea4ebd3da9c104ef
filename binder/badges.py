"""Put a Binder badge beside each notebook in the README: `python binder/badges.py OWNER/REPOSITORY` (on GitHub).

Needed once, when the repository gets its public address on GitHub, and after a notebook was added; a second call
changes nothing. Standard library only.
"""

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
BADGE = "[![Binder](https://mybinder.org/badge_logo.svg)]({address})"
ADDRESS = "https://mybinder.org/v2/gh/{repository}/HEAD?urlpath=lab/tree/{path}"
HEAD = "| notebook | minutes | what it is about |"
ROW = re.compile(r"^\| \[\w+\]\((notebooks/[\w/]+\.ipynb)\) \| \d+ \| [^|]+ \|")


def with_badges(text: str, repository: str) -> str:
    """The README's `text` with a fourth column: a badge for each notebook, pointing at `repository` ("owner/name")."""
    lines = []
    for line in text.splitlines():
        if line.startswith(HEAD):
            line = f"{HEAD} on Binder |"
        elif lines and lines[-1].startswith(HEAD):
            line = "|---|---|---|---|"
        elif row := ROW.match(line):
            address = ADDRESS.format(repository=repository, path=row[1])
            line = f"{row[0]} {BADGE.format(address=address)} |"
        lines.append(line)
    return "\n".join(lines) + "\n"


def main(arguments: list) -> int:
    if len(arguments) != 1 or not re.fullmatch(r"[\w.-]+/[\w.-]+", arguments[0]):
        print(
            "Give the repository on GitHub: python binder/badges.py OWNER/REPOSITORY",
            file=sys.stderr,
        )
        return 2
    README.write_text(
        with_badges(README.read_text(encoding="utf-8"), arguments[0]), encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
