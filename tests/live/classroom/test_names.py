"""Names: any script stays readable, nothing turns other people's text or grows over its line."""

import json
import unicodedata

import pytest
from class_fixtures import make_message, make_room
from hypothesis import given
from hypothesis import strategies as st

from fedlab_nb.live.classroom.messages import NAME, clean_nickname, parse_message


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("Ada", "Ada"),
        ("  Ada \n\t Lovelace ", "Ada Lovelace"),
        ("", ""),
        ("\u202eadA", "adA"),  # right-to-left override
        ("\u2066Ada\u2069\u200f\ufeff", "Ada"),  # isolates, marks, a byte order mark
        ("سارة", "سارة"),
        ("ศิริ", "ศิริ"),
        ("प्रिया", "प्रिया"),
        ("李小龍", "李小龍"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("A\u0000\u0007da", "Ada"),
        ("<b>Ada</b>", "<b>Ada</b>"),
        ("x" * 10_000, "x" * NAME),
        ("a" + "\u0301" * 500, "á\u0301\u0301\u0301"),
        ("\ud800Ada", "Ada"),
    ],
)
def test_a_name_is_cleaned(typed, shown):
    assert clean_nickname(typed) == shown


@given(st.text(max_size=300))
def test_a_clean_name_stays_as_it_is_and_is_one_short_line(typed):
    name = clean_nickname(typed)
    assert clean_nickname(name) == name
    assert len(name) <= NAME
    categories = {unicodedata.category(c) for c in name if c != "\u200d"}
    assert not categories & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def test_a_message_has_its_office_s_letters_with_and_without_a_name():
    anonymous = parse_message(json.dumps(json.loads(make_message(27)) | {"name": " \u202e "}))
    assert (anonymous.office_letters, anonymous.office_and_nickname, anonymous.nickname) == (
        "AB",
        "AB",
        "",
    )
    assert parse_message(make_message(27)).office_and_nickname == "AB Ada"


def test_the_same_name_twice_is_two_clients():
    room = make_room()
    for seat in range(3):
        room.accept_message(make_message(seat))
    assert len({m.office_and_nickname for m in room.messages.values()}) == 3
