"""What each method of the package needs besides its file: tries with their results, stored results, a row of FIDELITY
and one of the guide. The test lists all that is missing.

`python tests/test_complete.py` makes the guide's map and table again.
"""

import re
from pathlib import Path

import pytest

from fedlab_nb.methods import METHODS
from fedlab_nb.papers import tuning
from fedlab_nb.plots.journey import read_stored_flights_by_method
from fedlab_nb.plots.method_map import draw_method_map
from fedlab_nb.plots.style import use_figure_size
from fedlab_nb.studies.stored_results import list_datasets_with_stored_results, load

ROOT = Path(__file__).parents[1]
GUIDE, FIDELITY = ROOT / "notebooks" / "guide" / "methods.md", ROOT / "FIDELITY.md"
MAP = ROOT / "notebooks" / "images" / "methods.png"
TABLE = re.compile(r"(?<=<!-- methods: begin -->\n).*?(?=<!-- methods: end -->)", re.DOTALL)
BOUNDS = {"local", "centralized"}  # a lower and an upper bound, which have no knobs


def list_lacks(name: str) -> list[str]:
    """What the method `name` lacks."""
    title = METHODS[name].info.title
    lacking = []
    if not METHODS[name].info.leaks:
        lacking.append("what it tells the server about a client's data (leaks= of @register)")
    lacking += list_missing_tries(name) + list_missing_stored_results(name)
    if name != "local" and name not in read_stored_flights_by_method():
        lacking.append(f"the picture of what travels (python notebooks/draw_journeys.py {name})")
    text = FIDELITY.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith(f"| {title} `{name}` |")]
    has_full_row = len(rows) == 1 and all(map(str.strip, rows[0].strip("|").split(" | ")))
    if f"## {title} (`{name}`)\n" not in text and not has_full_row:
        lacking.append(f"one full row in FIDELITY.md that begins with | {title} `{name}` |")
    guide_row = f"| {describe_titles(METHODS[name].info)} | `{name}` |"
    if guide_row not in GUIDE.read_text(encoding="utf-8"):
        lacking.append("its row in the guide (python tests/test_complete.py)")
    return [f"{name}: {need}" for need in lacking]


def list_missing_tries(name: str) -> list[str]:
    """What the tuning study lacks of this method."""
    if name in BOUNDS:
        return []
    tries = tuning.read_tries_by_part()["methods"]
    if name not in tries:
        return ["tries in papers/declared/tuning.toml"]
    options_by_try = {}
    for row in tuning.load_tuning_rows():
        if (row["runs"], row["method"]) == ("methods", name):
            options_by_try[row["at"]["try"]] = row["made"]
    if options_by_try != dict(enumerate(tries[name])):
        return ["the results of its tries (python -m fedlab_nb.papers.declared tuning)"]
    return []


def list_missing_stored_results(name: str) -> list[str]:
    """The data sets with stored results that have none of this method."""
    missing = []
    for dataset in list_datasets_with_stored_results():
        if name not in load(dataset).methods:
            command = "python -m fedlab_nb.papers.declared stored"
            missing.append(f"stored results on {dataset} ({command})")
    return missing


def describe_titles(info) -> str:
    """The title, and the titles that the method has at certain values of its knobs."""
    variants = [f"{title} (`{options}`)" for options, title in info.titles.items()]
    return f"{info.title}: {'; '.join(variants)}" if variants else info.title


def make_table() -> str:
    """All methods as a table in Markdown, in the order of METHODS."""
    columns = (
        "method",
        "name",
        "paper",
        "rounds",
        "bytes of one client, down + up",
        "extra data",
        "what leaks",
    )
    infos = [cls.info for cls in METHODS.values()]
    rows = [
        (describe_titles(i), f"`{i.name}`", i.paper, i.rounds, i.traffic, i.extra, i.leaks)
        for i in infos
    ]
    head, *lines = [f"| {' | '.join(cells)} |\n" for cells in (columns, *rows)]
    return head + len(columns) * "|---" + "|\n" + "".join(lines)


def draw_map():
    """The map of the methods, three drawings wide."""
    with use_figure_size((7.8, 4)):
        return draw_method_map(METHODS)


def make_guide_text(picture) -> str:
    """The guide's text between the marks: the map with its alternative text, and the table."""
    return f"![{picture.alt}](../images/{MAP.name})\n\n{make_table()}"


@pytest.mark.slow
def test_every_method_of_the_package_is_complete():
    # Without methods that a test has registered.
    names = [name for name, cls in METHODS.items() if cls.__module__.startswith("fedlab_nb.")]
    lacking = [line for name in names for line in list_lacks(name)]
    assert not lacking, "still missing:\n" + "\n".join(lacking)
    assert TABLE.search(GUIDE.read_text(encoding="utf-8")).group() == make_guide_text(draw_map()), (
        "run this file"
    )


if __name__ == "__main__":
    picture = draw_map()
    picture.save(MAP, force=True)
    GUIDE.write_text(
        TABLE.sub(lambda _: make_guide_text(picture), GUIDE.read_text(encoding="utf-8")),
        encoding="utf-8",
    )
