"""What a method of the package has beside its file: tries and their results, stored results, a place in FIDELITY and in
the guide. One list of all that is missing; `python tests/test_complete.py` makes the guide's map and table anew."""

import re
from pathlib import Path

import pytest

from fedlab_nb.methods import METHODS
from fedlab_nb.papers import tuning
from fedlab_nb.plots.journey import read_flights
from fedlab_nb.plots.method_map import draw_method_map
from fedlab_nb.plots.style import use_figure_size
from fedlab_nb.studies.stored_results import list_datasets_with_stored_results, load

ROOT = Path(__file__).parents[1]
GUIDE, FIDELITY = ROOT / "notebooks" / "guide" / "methods.md", ROOT / "FIDELITY.md"
MAP = ROOT / "notebooks" / "images" / "methods.png"
TABLE = re.compile(r"(?<=<!-- methods: begin -->\n).*?(?=<!-- methods: end -->)", re.DOTALL)
BOUNDS = {"local", "centralized"}  # they have no knobs


def list_lacks(name: str) -> list[str]:
    """What the method `name` lacks."""
    title = METHODS[name].info.title
    lacking = []
    if not METHODS[name].info.leaks:
        lacking.append("what it tells the server about a client's data (leaks= of @register)")
    tries = tuning.read_tries_by_part()["methods"]
    tried = {
        r["at"]["try"]: r["made"]
        for r in tuning.load_tuning_rows()
        if (r["runs"], r["method"]) == ("methods", name)
    }
    if name not in tries and name not in BOUNDS:
        lacking.append("tries in papers/declared/tuning.toml")
    elif name not in BOUNDS and tried != dict(enumerate(tries[name])):
        lacking.append("the results of its tries (python -m fedlab_nb.papers.declared tuning)")
    lacking += [
        f"stored results on {dataset} (python -m fedlab_nb.papers.declared stored)"
        for dataset in list_datasets_with_stored_results()
        if name not in load(dataset).methods
    ]
    if name != "local" and name not in read_flights():
        lacking.append(f"the picture of what travels (python notebooks/draw_journeys.py {name})")
    text = FIDELITY.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith(f"| {title} `{name}` |")]
    whole = len(rows) == 1 and all(cell.strip() for cell in rows[0].strip("|").split(" | "))
    if f"## {title} (`{name}`)\n" not in text and not whole:
        lacking.append(f"one full row in FIDELITY.md that begins with | {title} `{name}` |")
    if f"| {describe_titles(METHODS[name].info)} | `{name}` |" not in GUIDE.read_text(
        encoding="utf-8"
    ):
        lacking.append("its row in the guide (python tests/test_complete.py)")
    return [f"{name}: {what}" for what in lacking]


def describe_titles(info) -> str:
    """The title with those that values of knobs give."""
    more = "; ".join(f"{words} (`{at}`)" for at, words in info.titles.items())
    return f"{info.title}: {more}" if more else info.title


def table() -> str:
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
    """What stands in the guide between the marks: the map, which its alt text holds to the methods, and the table."""
    return f"![{picture.alt}](../images/{MAP.name})\n\n{table()}"


@pytest.mark.slow
def test_every_method_of_the_package_is_complete():
    # Without methods that a test has registered.
    own = [name for name, cls in METHODS.items() if cls.__module__.startswith("fedlab_nb.")]
    lacking = [line for name in own for line in list_lacks(name)]
    assert not lacking, "still missing:\n" + "\n".join(lacking)
    assert TABLE.search(GUIDE.read_text(encoding="utf-8")).group() == make_guide_text(draw_map()), (
        "run this file"
    )


if __name__ == "__main__":
    made = draw_map()
    made.save(MAP, force=True)
    GUIDE.write_text(
        TABLE.sub(lambda _: make_guide_text(made), GUIDE.read_text(encoding="utf-8")),
        encoding="utf-8",
    )
