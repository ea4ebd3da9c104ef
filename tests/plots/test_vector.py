"""Pictures as SVG: colours for light and dark pages, marks with their hover texts, the size of the frame."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb

from fedlab_nb.data import federate
from fedlab_nb.declared import read_toml
from fedlab_nb.plots import PartitionPicture
from fedlab_nb.plots.identity import COLOURS
from fedlab_nb.plots.kit import choose_letter_colour
from fedlab_nb.plots.marks import get_hover_texts_and_keys_by_mark_id
from fedlab_nb.plots.style import (
    ACCENT,
    INK,
    QUIET,
    SECOND,
    SERIES,
    SIZE,
    darken_colour_until_readable,
    draw_light_dark_svg_element,
    drawing,
    list_class_colours,
    use_figure_size,
)
from fedlab_nb.plots.vector import (
    PAPER,
    adapt_colour_to_dark_page,
    convert_hex_to_oklch,
    convert_oklch_to_hex,
    make_css_light_dark_colour,
)
from fedlab_nb.plots.words import format_client_letters

SVG = "{http://www.w3.org/2000/svg}"
PAGES = (
    "#111111",
    "#212121",
    PAPER,
)  # JupyterLab's and Voilà's dark pages, and that of a saved picture


def compute_luminance(colour):
    """Compute the relative luminance of WCAG 2."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)]
    return np.dot(linear, [0.2126, 0.7152, 0.0722])


def compute_contrast(one, other):
    high, low = sorted((compute_luminance(one), compute_luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    "colour", ["#000000", "#ffffff", "#0072b2", "#d55e00", "#7f7f7f", "#12a4ae"]
)
def test_colours_there_and_back(colour):
    assert convert_oklch_to_hex(*convert_hex_to_oklch(colour)) == colour


def test_letters_methods_and_classes_can_be_read_on_every_page():
    method_colours = {
        look.split()[0].lower() for look in read_toml("methods/looks.toml").values()
    } | set(COLOURS)
    assert all(compute_contrast(colour, "#ffffff") >= 3 for colour in method_colours)
    for page in PAGES:
        assert compute_contrast(adapt_colour_to_dark_page(INK), page) >= 7
        assert compute_contrast(adapt_colour_to_dark_page(QUIET), page) >= 4.5
        for colour in (*method_colours, *list_class_colours(10)):
            assert compute_contrast(adapt_colour_to_dark_page(colour.lower()), page) >= 3, colour


def convert_cell_to_dark_page(colour):
    """What the filter of a dark page (`frame.js`) makes of a colour in a heat map."""
    inverted = 1 - np.array(to_rgb(colour))
    # hue-rotate(180deg) of Filter Effects: 2 * luminance - colour
    rotated = 2 * np.dot(inverted, [0.213, 0.715, 0.072]) - inverted
    return tuple((1.1 * rotated).clip(0, 1))


@pytest.mark.parametrize("strength", np.linspace(0, 1, 21))
def test_the_number_in_a_cell_of_a_heat_map_can_be_read_on_every_page(strength):
    letters = to_hex(choose_letter_colour(strength))
    cell = LinearSegmentedColormap.from_list("", ["white", ACCENT])(strength)[:3]
    assert compute_contrast(letters, cell) >= 3.3
    shown = make_css_light_dark_colour(letters)
    on_dark = "#111111" if "var(--jp-layout-color0" in shown else shown.split()[-1].rstrip(")")
    assert compute_contrast(on_dark, convert_cell_to_dark_page(cell)) >= 3.3


def test_on_a_dark_page_dark_grey_is_light_and_white_is_the_page_s_colour():
    assert convert_hex_to_oklch(adapt_colour_to_dark_page("#1f2328"))[0] > 0.8
    assert convert_hex_to_oklch(adapt_colour_to_dark_page("#eceff2"))[0] < 0.35
    assert make_css_light_dark_colour("#ffffff").startswith(
        "light-dark(#ffffff, var(--jp-layout-color0,"
    )


def test_the_svg_fills_its_frame_and_is_the_same_each_time():
    with use_figure_size((9.0, 3.0)), drawing() as (figure, ax):
        ax.plot([0, 1], [0, 1], color="#0072B2")
        svg = draw_light_dark_svg_element(figure)
    root = ET.fromstring(svg)
    assert root.get("viewBox") == "0 0 648 216" and root.get("width") is None
    assert "#0072b2" in svg and "light-dark(#0072b2," in svg and "<metadata" not in svg
    with use_figure_size((9.0, 3.0)), drawing() as (figure, ax):
        ax.plot([0, 1], [0, 1], color="#0072B2")
        assert draw_light_dark_svg_element(figure) == svg


@pytest.mark.slow
def test_a_picture_that_is_redrawn_takes_the_size_of_the_frame():
    partition = PartitionPicture()
    federation = federate("digits", alpha=0.1, clients=5)
    picture = partition.show(federation, setting="digits")
    assert tuple(picture.figure.get_size_inches()) == SIZE
    with use_figure_size((10.0, 4.0)):
        svg = draw_light_dark_svg_element(partition.show(federation, setting="digits").figure)
        fresh_svg = draw_light_dark_svg_element(
            PartitionPicture().show(federation, setting="digits").figure
        )
    assert 'viewBox="0 0 720 288"' in svg
    boxes = [re.findall(r'<rect x="([\d.]+)" y="([\d.]+)"', text) for text in (svg, fresh_svg)]
    assert np.allclose(np.array(boxes[0], float), np.array(boxes[1], float), atol=0.5)


def test_marks_are_where_their_ids_say():
    federation = federate("digits", alpha=0.1, clients=4)
    figure = PartitionPicture().show(federation, setting="digits").figure
    svg = draw_light_dark_svg_element(figure)
    marks = get_hover_texts_and_keys_by_mark_id(figure)
    ids = {element.get("id"): element for element in ET.fromstring(svg).iter()}
    assert set(marks) <= set(ids)
    name, dots = next(
        (name, about) for name, about in marks.items() if isinstance(about["says"], list)
    )
    shapes = [e for e in ids[name].iter() if e.tag in (f"{SVG}use", f"{SVG}path")]
    inside = {id(e) for d in ids[name].iter(f"{SVG}defs") for e in d.iter()}
    counts = np.asarray(federation.label_counts)
    assert (
        len([e for e in shapes if id(e) not in inside])
        == len(dots["says"])
        == (counts > 0).sum()
        < counts.size
    )
    for text, client, class_index in zip(
        dots["says"], dots["client"], dots["class_index"], strict=True
    ):
        assert (
            f"Client {format_client_letters(client)}, class {class_index}\n{counts[client, class_index]} sample"
            in text
        )


METHODS = {look.split()[0] for look in read_toml("methods/looks.toml").values()}
SERIES_AND_METHODS = sorted(METHODS | {*COLOURS, *SERIES})


@pytest.mark.parametrize("colour", SERIES_AND_METHODS)
def test_letters_in_a_colour_can_be_read_on_every_page_and_keep_its_hue(colour):
    tone = darken_colour_until_readable(colour)
    assert compute_contrast(tone, "#ffffff") >= 4.5
    assert all(compute_contrast(adapt_colour_to_dark_page(tone), page) >= 4.5 for page in PAGES)
    red, green, blue = to_rgb(colour)
    strongest = max(to_rgb(tone)) / max(red, green, blue)
    darker = [strongest * channel for channel in (red, green, blue)]
    assert to_rgb(tone) == pytest.approx(darker, abs=0.01)
    if compute_contrast(colour, "#ffffff") >= 4.5:
        assert tone == colour.lower()
    else:
        assert compute_contrast(tone, "#ffffff") < 5  # no darker than it must be


def test_orange_is_too_light_for_letters_and_its_tone_is_not():
    assert (
        compute_contrast(SECOND, "#ffffff")
        < 4.5
        <= compute_contrast(darken_colour_until_readable(SECOND), "#ffffff")
    )
