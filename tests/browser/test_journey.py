"""The stored pictures of what travels in a real browser: drawn there they are the same, and they follow the theme."""

import base64

import pytest

from fedlab_nb.front import join_front_modules
from fedlab_nb.front.vocabulary import choose_words_for_clients_and_samples
from fedlab_nb.methods import METHODS
from fedlab_nb.methods.base import shorten_title
from fedlab_nb.plots.journey import get_stored_picture_path, journey, read_stored_flights_by_method

pytestmark = pytest.mark.browser

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
    """A page of its own, for a system that wants it light."""
    context = browser.new_context(color_scheme="light")
    yield context.new_page()
    context.close()


def test_a_browser_draws_what_is_stored(window):
    window.evaluate(f"window.front = {join_front_modules('flight_stills')}")
    for name, stored in read_stored_flights_by_method().items():
        title = shorten_title(METHODS[name].info.title)
        task = [
            title,
            stored["flight"],
            choose_words_for_clients_and_samples("digits", "images"),
            stored["colours"],
        ]
        drawn = window.evaluate("(task) => window.front.drawStills(...task)", task)
        assert drawn == get_stored_picture_path(name).read_text(encoding="utf-8"), name


@pytest.mark.parametrize(
    ("is_light", "ground"), [("true", [245, 247, 249]), ("false", [26, 32, 39])]
)
def test_the_image_is_as_dark_as_the_notebook_and_asks_for_nothing(window, is_light, ground):
    asked = []
    window.on("request", lambda request: asked.append(request.url))
    data, _ = journey("fens")._repr_mimebundle_()
    window.set_content(f'<body data-jp-theme-light="{is_light}">{data["text/html"]}</body>')
    image = window.locator("img")
    image.evaluate("(image) => image.decode()")
    assert image.evaluate("(image) => image.complete && image.naturalWidth > 500")
    picture = image.screenshot()
    source = base64.b64encode(picture).decode()
    window.evaluate(
        "(source) => { document.body.innerHTML = `<img src='data:image/png;base64,${source}'>`; }",
        source,
    )
    image.evaluate("(image) => image.decode()")
    assert image.evaluate(READ_GROUND)[:3] == ground
    assert all(address.startswith("data:") for address in asked)
