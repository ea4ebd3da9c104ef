"""The stored pictures of what travels: they have the numbers of the runs, and load nothing."""

import json
import re
import shutil
from urllib.parse import unquote
from xml.etree import ElementTree

import draw_journeys
import pytest

import fedlab_nb as fl
from fedlab_nb.errors import UsageError
from fedlab_nb.front import HERE as FRONT
from fedlab_nb.methods import METHODS
from fedlab_nb.methods.base import Method, register, shorten_method_title
from fedlab_nb.plots.journey import SVG, get_stored_journey_path, read_stored_flights_by_method
from fedlab_nb.studies.text_tables import format_data_size

METHODS_THAT_SEND = [
    name
    for name, method in METHODS.items()
    if method.__module__.startswith("fedlab_nb.") and name != "local"
]
QUICK = ["afl", "gauss"]
LARGEST_BYTES = 60_000


def list_texts(name):
    """List all words in a stored picture, in their order."""
    root = ElementTree.fromstring(get_stored_journey_path(name).read_text(encoding="utf-8"))
    return [element.text for element in root.iter(f"{SVG}text")]


def count_bytes(flight, direction):
    return sum(sum(leg["bytes"]) for leg in flight["legs"] if leg["way"] == direction)


def test_every_method_that_sends_anything_has_its_picture():
    assert list(read_stored_flights_by_method()) == METHODS_THAT_SEND
    files = {path.stem for path in get_stored_journey_path("fens").parent.glob("*.svg")}
    assert files == set(METHODS_THAT_SEND)


@pytest.mark.parametrize("name", METHODS_THAT_SEND)
def test_picture_table_and_alt_text_have_the_bytes_of_the_run(name):
    flight = read_stored_flights_by_method()[name]["flight"]
    picture = fl.journey(name)
    words = list_texts(name)
    for sign, direction in (("↑", "up"), ("↓", "down")):
        total = count_bytes(flight, direction)
        in_table = sum(row["bytes"] for row in picture.table if row["direction"] == direction)
        assert in_table == total
        size = format_data_size(total).replace("\xa0", " ")
        last_word = [word for word in words if word.startswith(sign)][-1]
        assert last_word.replace("\xa0", " ") == f"{sign} {size}"
        if total:
            assert f"{size} {direction}" in picture.sentence.replace("\xa0", " ")
    messages = sum(row["messages"] for row in picture.table)
    assert messages == sum(sum(leg["messages"]) for leg in flight["legs"])
    title = shorten_method_title(METHODS[name].info.title)
    assert picture.sentence.startswith(f"{title}: ") and picture.sentence in picture.alt
    assert f"α = {read_stored_flights_by_method()[name]['settings']['alpha']:g}" in picture.alt
    numbers = re.findall(r"(\d+) of (\d+), [A-Z]", picture.alt)
    assert len(numbers) == 4 and numbers[-1][0] == numbers[-1][1]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in METHODS_THAT_SEND
    ],
)
def test_the_stored_run_is_the_one_that_the_lab_computes(name):
    stored = draw_journeys.make_stored_flight(name)
    assert json.loads(json.dumps(stored)) == read_stored_flights_by_method()[name]


def test_the_pictures_are_what_the_command_draws():
    if shutil.which("node") is None:
        pytest.skip("there is no Node.js on this machine")
    assert draw_journeys.list_stale_stills(dict(read_stored_flights_by_method())) == []


def test_a_picture_that_was_changed_by_hand_is_found(tmp_path, monkeypatch):
    if shutil.which("node") is None:
        pytest.skip("there is no Node.js on this machine")
    changed = tmp_path / "fens.svg"
    text = get_stored_journey_path("fens").read_text(encoding="utf-8")
    changed.write_text(text.replace("26.3", "26.2"), encoding="utf-8")
    monkeypatch.setattr(draw_journeys, "get_stored_journey_path", lambda method: changed)
    stale = draw_journeys.list_stale_stills({"fens": read_stored_flights_by_method()["fens"]})
    assert stale == ["fens.svg"]


@pytest.mark.parametrize("name", METHODS_THAT_SEND)
def test_a_picture_is_small_and_loads_and_runs_nothing(name):
    text = get_stored_journey_path(name).read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST_BYTES
    assert "<script" not in text and "@import" not in text and "url(" not in text
    addresses = re.findall(r'href="([^"]*)"', text)
    assert all(address.startswith("#") for address in addresses)
    assert re.findall(r'https?://[^"]*', text) == ["http://www.w3.org/2000/svg"]


def test_a_notebook_shows_an_image_with_its_words():
    picture = fl.journey("fens")
    data, _ = picture._repr_mimebundle_()
    assert set(data) == {"text/html", "text/plain"}
    source = re.search(r'src="data:image/svg\+xml,([^"]+)"', data["text/html"])[1]
    assert unquote(source) == get_stored_journey_path("fens").read_text(encoding="utf-8")
    assert picture.sentence in data["text/html"] and picture.sentence in data["text/plain"]
    alt = re.search(r'alt="([^"]*)"', data["text/html"])[1]
    assert "The gate stays open" in alt and "10 clients" in alt


def test_the_dark_colours_are_those_of_the_stage():
    """The picture's pairs of colours are those of the stage's style sheet."""
    sheet = (FRONT / "stage.css").read_text(encoding="utf-8")
    values = {"light": {}, "dark": {}}
    for theme, rules in re.findall(r'^\.stage(\[data-theme="dark"\])? \{([^}]*)\}', sheet, re.M):
        colours = re.findall(r"--([\w-]+): (#[0-9a-f]+)", rules)
        values["dark" if theme else "light"] |= dict(colours)
    expected = {}
    for name in ("bg", "ink", "soft", "line", "card", "act", "bad"):
        light = values["light"][name]
        expected["#ffffff" if light == "#fff" else light] = values["dark"][name]
    text = get_stored_journey_path("fens").read_text(encoding="utf-8")
    pairs = re.findall(r'\[fill="(#\w+)"\]\{fill:(#\w+)\}', text)
    assert dict(pairs) == expected


def test_a_picture_is_saved_as_svg_and_not_as_png(tmp_path):
    picture = fl.journey("fens")
    path = picture.save(tmp_path / "fens.svg")
    assert path.read_text(encoding="utf-8") == picture.svg
    with pytest.raises(UsageError, match="'fens.png'; save it as 'fens.svg'"):
        picture.save(tmp_path / "fens.png")


def test_several_methods_and_those_without_a_run_are_a_map():
    assert len(fl.journey("fens", "afl").table) == 2
    assert fl.journey().figure is not None
    assert fl.journey("local").figure is not None
    register("own", title="Own", paper="none", sends="a coin")(
        type("Own", (Method,), {"__doc__": "Its own."})
    )
    try:
        picture = fl.journey("own")
        assert "a coin" in picture.alt
        hint = "No run of it is stored: fl.playground(methods=['own']) shows"
        assert hint in picture.alt and hint in picture.sentence
        assert "No run" not in fl.journey("own", "fens").text
    finally:
        del METHODS["own"]
    assert "No run" not in fl.journey("local").text


def test_an_unknown_name_gets_the_nearest_method():
    with pytest.raises(UsageError, match="did you mean 'fens'"):
        fl.journey("fenz")
