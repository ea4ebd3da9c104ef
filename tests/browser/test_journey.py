"""The stored pictures of what travels: a real browser draws the same ones, and they follow the notebook's theme."""

import base64

import pytest

from fedlab_nb.front import join_front_modules_into_expression
from fedlab_nb.front.vocabulary import choose_words_for_clients_and_samples
from fedlab_nb.methods import METHODS
from fedlab_nb.methods.base import shorten_method_title
from fedlab_nb.plots.journey import get_stored_journey_path, journey, read_stored_flights_by_method

pytestmark = pytest.mark.browser

# Red, green, blue and alpha of a pixel near the lower left corner.
READ_GROUND = """(image) => {
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  const pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0);
  return [...pen.getImageData(6, canvas.height - 8, 1, 1).data];
}"""


@pytest.fixture
def window(browser):
    """A page of its own, on a system whose colour scheme is light."""
    context = browser.new_context(color_scheme="light")
    yield context.new_page()
    context.close()


def test_a_browser_draws_what_is_stored(window):
    window.evaluate(f"window.front = {join_front_modules_into_expression('flight_stills')}")
    for name, stored in read_stored_flights_by_method().items():
        title = shorten_method_title(METHODS[name].info.title)
        task = [
            title,
            stored["flight"],
            choose_words_for_clients_and_samples("digits", "images"),
            stored["colours"],
        ]
        svg = window.evaluate("(task) => window.front.drawStills(...task)", task)
        assert svg == get_stored_journey_path(name).read_text(encoding="utf-8"), name


@pytest.mark.parametrize(
    ("is_light", "ground"), [("true", [245, 247, 249]), ("false", [26, 32, 39])]
)
def test_the_image_is_as_dark_as_the_notebook_and_loads_nothing(window, is_light, ground):
    addresses = []
    window.on("request", lambda request: addresses.append(request.url))
    data, _ = journey("fens")._repr_mimebundle_()
    window.set_content(f'<body data-jp-theme-light="{is_light}">{data["text/html"]}</body>')
    image = window.locator("img")
    image.evaluate("(image) => image.decode()")
    assert image.evaluate("(image) => image.complete && image.naturalWidth > 500")
    screenshot = image.screenshot()
    source = base64.b64encode(screenshot).decode()
    window.evaluate(
        "(source) => { document.body.innerHTML = `<img src='data:image/png;base64,${source}'>`; }",
        source,
    )
    image.evaluate("(image) => image.decode()")
    assert image.evaluate(READ_GROUND)[:3] == ground
    assert all(address.startswith("data:") for address in addresses)
