"""A flight's stills: the ledger's numbers in an SVG that needs no script, and small."""

import functools
import xml.etree.ElementTree as ElementTree

import pytest
from javascript import run_javascript
from method_runs import make_context, make_fast_knobs

from fedlab_nb.comm import Ledger
from fedlab_nb.front.flight import describe_flight
from fedlab_nb.front.vocabulary import OFFICES
from fedlab_nb.methods import METHODS
from fedlab_nb.studies.experiment import exhaust_generator

STILLS = "text flight_plan flight_scene flight_paint svg_pen flight_stills"
SVG = "{http://www.w3.org/2000/svg}"
SENDING = [name for name in METHODS if name != "local"]
LARGEST_BYTES = 60_000


@functools.cache
def run_for_ledger(name):
    """The ledger of a small run of the method."""
    run = make_context(share=0.3)
    exhaust_generator(METHODS[name].configure(**make_fast_knobs(name)).run(run))
    return run.link.ledger


def draw_stills(name, ledger):
    """The SVG of a ledger's flight, as text. Client k's colour is #0000kk."""
    colours = [f"#0000{k:02x}" for k in range(ledger.clients)]
    code = "return drawStills(name, flight, people, colours)"
    flight = describe_flight(name, ledger)
    return run_javascript(STILLS, code, name=name, flight=flight, people=OFFICES, colours=colours)


def count_bytes(ledger, direction):
    return sum(row["bytes"] for row in ledger.rows() if row["direction"] == direction)


def format_size(count):
    """A number of bytes in words, as text.js has it."""
    return run_javascript("text", "return dataSize(count)", count=count)


@pytest.mark.parametrize("name", SENDING)
def test_the_last_still_has_all_bytes_of_the_ledger(name):
    ledger = run_for_ledger(name)
    text = draw_stills(name, ledger)
    assert len(text.encode()) < LARGEST_BYTES
    words = [element.text for element in ElementTree.fromstring(text).iter(SVG + "text")]
    up = [word for word in words if word.startswith("↑")]
    down = [word for word in words if word.startswith("↓")]
    assert up[-1] == f"↑ {format_size(count_bytes(ledger, 'up'))}"
    assert down[-1] == f"↓ {format_size(count_bytes(ledger, 'down'))}"
    assert len(up) == len(down) == 4
    assert "gate shut" in words  # at the end at least
    assert draw_stills(name, ledger) == text


@pytest.mark.parametrize("name", SENDING)
def test_captions_end_above_the_server(name):
    root = ElementTree.fromstring(draw_stills(name, run_for_ledger(name)))
    captions = [float(text.get("y")) for text in root.find(SVG + "g")]
    servers = [float(text.get("y")) for text in root.iter(SVG + "text") if text.text == "server"]
    assert len(servers) == 4
    previous_row = 0.0
    for row in sorted(set(servers)):
        captions_of_row = [y for y in captions if previous_row < y < row + 100]
        assert captions_of_row
        assert max(captions_of_row) < row - 14
        previous_row = row


def test_of_fens_the_networks_come_down_and_of_fedavg_nothing_does():
    words = draw_stills("fens", run_for_ledger("fens"))
    assert "3 of 7: One message each" in words
    assert "The gate stays open" in words
    assert "5 of 7: Small notes, " in words
    assert "7 of 7: All voices, weighed" in words
    assert "The gate stays open" not in draw_stills("fedavg", run_for_ledger("fedavg"))


@pytest.mark.parametrize("clients", [1, 10, 30])
def test_every_client_that_sends_has_its_own_glyph(clients):
    ledger = Ledger(clients)
    for client in range(clients):
        ledger.add(client, "up", "local models", 1000)
    root = ElementTree.fromstring(draw_stills("ensemble", ledger))
    seen = {element.get("color") for element in root if element.get("color")}
    assert {f"#0000{client:02x}" for client in range(clients)} <= seen


def test_what_is_drawn_twice_is_written_once():
    ledger = Ledger(10)
    for client in range(10):
        ledger.add(client, "up", "local models", 1000)
    text = draw_stills("ensemble", ledger)
    root = ElementTree.fromstring(text)
    names = {group.get("id") for group in root.find(SVG + "defs")}
    uses = [use.get("href") for use in root.iter(SVG + "use")]
    assert set(uses) == {f"#{name}" for name in names}
    contents = [ElementTree.tostring(group) for group in root.find(SVG + "defs")]
    assert len(contents) == len(set(contents))
    assert len(uses) > 4 * len(names)


def test_the_pen_writes_a_groups_elements_with_its_colour_opacity_and_place():
    code = """
      const pen = createSvgPen();
      for (const colour of ["#112233", "#445566"]) {
        pen.save();
        pen.globalAlpha = 0.5;
        pen.strokeStyle = colour;
        pen.fillStyle = "#ffffff";
        pen.translate(10, 20.126);
        pen.scale(2, 2);
        pen.lineWidth = 1.5;
        pen.beginPath();
        pen.moveTo(0, 0);
        pen.lineTo(3, 4);
        pen.fill();
        pen.stroke();
        pen.restore();
      }
      pen.save();
      pen.textAlign = "right";
      pen.fillText("a < b", 1, 2);
      pen.restore();
      return pen.finish();
    """
    path = '<path d="M0 0L3 4" fill="#ffffff"/><path d="M0 0L3 4" fill="none" '
    path += 'stroke="currentColor" stroke-width="1.5"/>'
    place = 'opacity="0.5" transform="translate(10 20.13)scale(2)"'
    text = '<text x="1" y="2" text-anchor="end" fill="currentColor">a &lt; b</text>'
    assert run_javascript("svg_pen", code) == (
        f'<defs><g id="g0">{path}</g></defs>'
        f'<use href="#g0" color="#112233" {place}/><use href="#g0" color="#445566" {place}/>'
        f'<g color="#000">{text}</g>'
    )


def test_shapes_of_the_pen_have_the_box_that_was_asked_for():
    code = """
      const pen = createSvgPen();
      pen.save();
      pen.beginPath();
      pen.roundRect(1, 2, 10, 6, 2);
      pen.fill();
      pen.beginPath();
      pen.arc(5, 5, 3, 0, 2 * Math.PI);
      pen.fill();
      pen.restore();
      return pen.finish();
    """
    text = run_javascript("svg_pen", code)
    box = "M3 2H9A2 2 0 0 1 11 4V6A2 2 0 0 1 9 8H3A2 2 0 0 1 1 6V4A2 2 0 0 1 3 2Z"
    circle = "M2 5A3 3 0 1 0 8 5A3 3 0 1 0 2 5Z"
    assert f'd="{box}"' in text and f'd="{circle}"' in text


def choose_numbers(*kinds):
    """The numbers of the stills of steps of these kinds; "up" is a message of a client."""
    steps = []
    for kind in kinds:
        hops = [{"way": kind}] if kind in ("up", "down") else []
        steps.append({"kind": kind, "hops": hops})
    code = "return chooseStills({ steps }).map(({ number }) => number)"
    return run_javascript(STILLS, code, steps=steps)


def test_of_many_steps_the_first_two_and_the_last_two_are_shown_with_their_own_numbers():
    numbers = choose_numbers("down", "work", "up", "down", "up", "down", "up", "gate", "end")
    assert numbers == ["3 of 9", "4 of 9", "7 of 9", "9 of 9"]
    numbers = choose_numbers("down", "work", "up", "gate", "end")
    assert numbers == ["2 of 5", "3 of 5", "4 of 5", "5 of 5"]
    numbers = choose_numbers("work", "up", "up", "gate", "end")
    assert numbers == ["2 of 5", "3 of 5", "4 of 5", "5 of 5"]
    numbers = choose_numbers("work", "up", "down", "up", "gate", "end")
    assert numbers == ["2 of 6", "3 of 6", "4 of 6", "6 of 6"]
