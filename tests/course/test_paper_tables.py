"""The page on the papers' tables: what it shows of the claims."""

import pytest

from fedlab_nb.course.paper_tables import lesson
from fedlab_nb.papers import paper_tables


# Slow where it is the first to ask for all tables with their stored results.
@pytest.mark.slow
def test_four_claims_say_what_is_compared_a_line_each():
    tables = paper_tables()
    card = lesson.show_how_claims_are_compared(tables)
    lines = card.text.splitlines()
    texts = tables.describe_claims()
    assert len(lines) == 4
    for number, line in enumerate(lines, 1):
        assert line.startswith(f"{number}. ")
        text = line.removeprefix(f"{number}. ")
        assert f"{text[0].lower()}{text[1:]}" in texts
    assert len({line.split(":")[0].split(". ")[1] for line in lines}) > 1, "several outcomes"
