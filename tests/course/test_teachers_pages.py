"""Teachers' pages say what is on the screen: a number under "What they should see" that no declared study keeps true
has to stand in the lesson's stored notebook. And a lesson says no number of a run that no declared study keeps true, so
that none can contradict the picture beside it.
"""

import pkgutil
import re

import pytest
from lessons import LESSONS, SOURCES, read_screen, read_teachers_page
from make import find_source

from fedlab_nb import labs
from fedlab_nb.panels.figures import COMMON, COMPARE, PLAYGROUND
from fedlab_nb.panels.race import RACE
from fedlab_nb.panels.stage_panel import TITLES
from fedlab_nb.papers.declared.figures import ROOT, FigureStudy, load_all_declared_studies

DECLARED = re.compile(r"<!--n .*?-->.*?<!--/n-->", re.DOTALL)
PICTURES = re.compile(r"^!\[.*$", re.MULTILINE)
NUMBER = re.compile(r"(?<![\d.,])\d+(?:[.,]\d+)?(?= (?:%|points|kB|MB))")


def find_undeclared(page):
    """Numbers with a unit of the section "What they should see" that no study keeps true."""
    (section,) = re.findall(r"## What they should see(.*?)\n## ", page, re.DOTALL)
    section = PICTURES.sub("", DECLARED.sub("", section))
    section = section.partition("\nExercise")[0]
    return [match[0] for match in NUMBER.finditer(section)]


@pytest.mark.parametrize("name", LESSONS)
def test_what_they_should_see_is_on_the_screen(name):
    screen = read_screen(name)
    page = read_teachers_page(name.removeprefix("shelf/"))
    for number in find_undeclared(page):
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?!\d|[.,]\d)", screen), (name, number)


def test_a_number_that_is_nowhere_on_the_screen_is_found():
    page = "## What they should see\n\n- 12 % and <!--n x.y-->34<!--/n--> %.\n\nExercises: 56 %\n\n## Next"
    assert find_undeclared(page) == ["12"]


# --------------------------------------------------------------------------------- names on the screen
TABS = re.compile(r"\btabs? ((?:\*[^*]+\*(?:, | and )?)+)")


def find_tab_names(text):
    names = []
    for group in TABS.findall(text):
        names += re.findall(r"\*([^*]+)\*", group)
    return names


def test_names_of_tabs_are_found():
    text = "open the tab *By hand*; look at the tabs *Rounds* and *Traffic*, then at *Run*"
    assert find_tab_names(text) == ["By hand", "Rounds", "Traffic"]


@pytest.mark.parametrize("name", SOURCES)
def test_every_tab_that_a_lesson_or_its_teachers_page_names_is_on_the_screen(name):
    methods = [module.name for module in pkgutil.iter_modules(labs.__path__) if module.ispkg]
    specs = [*map(labs.find_lab_spec, methods), PLAYGROUND, COMPARE, RACE]
    titles = {view.title for spec in specs for view in spec.views}
    titles |= {view.title for view in COMMON} | set(TITLES.values())
    page = read_teachers_page(name.removeprefix("shelf/"))
    for tab in find_tab_names(SOURCES[name] + page):
        assert tab in titles, (name, tab)


# --------------------------------------------------------------------------------- the lessons' own texts
CODE = re.compile(r"```.*?```", re.DOTALL)
STRING = re.compile(r'"([^"\n]*)"')
# Formulas, and the blocks of worked numbers, which a reader can work out.
BY_HAND = re.compile(r"\$.*?\$|^> .*?(?=\n\n)", re.DOTALL | re.MULTILINE)
SHARE = re.compile(
    r"(?<![\w.,±/·])\d+(?:[.,]\d+)?(?= ?(?:%|points|kB|MB))(?! ?% (?:band|confidence|point of))"
)
# Numbers that are no result of a run: {lesson: {number: why}}.
NO_RESULTS = {
    "2_heterogeneity": {"10": "what guessing gets among ten digits"},
    "5_send_data": {"602": "three bytes of 224 x 224 pixels, as 32-bit numbers"},
    "shelf/all_together": {"90": "the definition of calibrated"},
    "shelf/paper_tables": {"5": "the level of a band of 95 %"},
}


def find_results(text):
    """Numbers with a unit in a lesson's texts, and in those that its code shows, that no comment declares."""
    shown = "\n".join(STRING.findall("\n".join(CODE.findall(text))))
    prose = BY_HAND.sub("", DECLARED.sub("", CODE.sub("", text)))
    return SHARE.findall(prose) + SHARE.findall(shown)


def find_quoted(name):
    """Numbers of a lesson that a declared study keeps true as a quote, which takes no comment."""
    path = str(find_source(name).relative_to(ROOT))
    numbers = []
    for study in load_all_declared_studies().values():
        if isinstance(study, FigureStudy) and path in study.quotes:
            rows = study.load_stored_rows()
            for template in study.quotes[path]:
                quote = template
                for figure in re.findall(r"\{([^}]+)\}", template):
                    value = study.format_figure_values(figure, rows)
                    quote = quote.replace(f"{{{figure}}}", value)
                numbers += SHARE.findall(quote)
    return numbers


@pytest.mark.parametrize("name", SOURCES)
def test_a_lesson_types_no_number_of_a_run_by_hand(name):
    known = {*find_quoted(name), *NO_RESULTS.get(name, {})}
    assert [number for number in find_results(SOURCES[name]) if number not in known] == []


def test_a_number_that_is_typed_by_hand_is_found():
    text = "It gets 12 %, <!--n x.y-->34<!--/n--> %, 95 % bands.\n\n> by hand 56 %\n\n"
    assert find_results(text + '```python\npredict("FENS gets 78 %. And AFL?", unit="%")\n```') == [
        "12",
        "78",
    ]
