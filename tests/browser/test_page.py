"""The page without Python in a real browser, as a file and offline: sliders, words, hover, keys, themes, sizes."""

import pytest
from accessible import barriers
from lab_steps import PATIENCE, TWO_FRAMES

from fedlab_nb import page as static
from fedlab_nb.methods import METHODS, label_of
from fedlab_nb.plots import Series
from fedlab_nb.plots.accuracy import verdict
from fedlab_nb.plots.identity import short
from fedlab_nb.plots.words import number, percent
from fedlab_nb.studies.statistics import band
from fedlab_nb.studies.stored import load

pytestmark = pytest.mark.browser
FIRST = ["fedavg", "ensemble", "fens", "fedlpa", "fusefl", "fedet", "coboosting"]
BOTH = pytest.mark.parametrize(("size", "scheme"), [((390, 844), "dark"), ((1280, 720), "light")])


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    return static.write(tmp_path_factory.mktemp("page") / "playground.html").as_uri()


@pytest.fixture
def opened(browser, address):
    """A function that opens the page offline, in a window of a size; what the console said must be nothing."""
    contexts, troubles = [], []

    def open_page(size=(1280, 720), **options):
        width, height = size
        context = browser.new_context(viewport={"width": width, "height": height}, offline=True, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("requestfailed", lambda request: troubles.append(request.url))
        page.goto(address)
        page.evaluate(TWO_FRAMES)  # in the first one the pictures get their size
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def stored(method, alpha, clients=10):
    return load().accuracies(method, alpha, clients)


def text(page, css):
    """What is read there, with plain blanks; of a picture's words too."""
    return page.locator(css).text_content().replace("\xa0", " ").strip()


def wide(page):
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def test_alpha_by_keyboard_changes_words_and_bars_to_the_stored_ones(opened):
    page = opened((390, 844))
    assert page.locator("#alpha").get_attribute("aria-valuetext") == "α = 0.1"
    for key, alpha in (("ArrowLeft", 0.05), ("Home", 0.01), ("End", 10.0)):
        page.locator("#alpha").press(key)
        assert page.locator("#alpha").get_attribute("aria-valuetext") == f"α = {alpha:g}"
        rows = [Series(short(label_of(m)), accuracies=stored(m, alpha)) for m in FIRST]
        assert f"At α = {alpha:g} with 10 clients, {verdict(rows)}" in text(page, "#bars-words")
        for method in METHODS:
            assert text(page, f"#bars [data-m={method}] .number") == number(band(stored(method, alpha)))
        page.locator("#bars [data-m=fens] .bar").wait_for()
    page.locator("#clients").press("End")
    assert page.locator("#clients").get_attribute("aria-valuetext") == "20 clients"
    assert text(page, "#bars [data-m=fedavg] .number") == number(band(stored("fedavg", 10, 20)))
    assert page.locator("#held-by [data-c='-1']").count() == 20
    assert wide(page) <= 0


def test_hover_click_and_escape(opened):
    page = opened()
    page.locator("#bars [data-m=fedov] .hit").hover()
    tip = text(page, "#tip")
    of = stored("fedov", 0.1)
    assert f"{100 * band(of).mean:.1f} % ± {100 * band(of).half_width:.1f} points" in tip
    assert all(f"{seed}: {100 * share:.1f} %" in tip for seed, share in of.items())
    assert "lit" in page.locator("#lines [data-m=fedov]").get_attribute("class")  # in its own colour, everywhere
    page.locator("#bars [data-m=fedov] .hit").click()
    page.mouse.move(5, 5)
    page.locator("#alpha").press("ArrowLeft")
    assert f"FedOV: {100 * band(stored('fedov', 0.05)).mean:.1f} %" in text(page, "#held")
    page.keyboard.press("Escape")
    assert "FedOV" not in text(page, "#held")
    assert "lit" not in page.locator("#lines [data-m=fedov]").get_attribute("class")


def test_pictures_by_keyboard(opened):
    page = opened()
    page.locator("#bars [tabindex='0']").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    second = sorted(METHODS, key=lambda m: -band(stored(m, 0.1)).mean)[1]
    assert page.evaluate("document.activeElement.dataset.m") == second
    assert label_of(second) in text(page, "#tip")
    page.keyboard.press("Enter")
    assert page.locator(f"#bars [data-m={second}]").get_attribute("aria-pressed") == "true"
    page.locator("#held-by [tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    assert text(page, "#held-by-words").startswith("Client B holds ")
    page.keyboard.press("Escape")
    assert text(page, "#held-by-words").startswith("A client effectively sees ")


@BOTH
def test_both_themes_and_tables(opened, size, scheme):
    page = opened(size, color_scheme=scheme)
    assert barriers(page, "body") == []
    dark = "rgb(18, 22, 27)"
    paper = "getComputedStyle(document.body).backgroundColor"
    assert (page.evaluate(paper) == dark) == (scheme == "dark")
    for summary in page.locator(".card summary").all():
        summary.click()
    row = page.locator("#bars-title ~ details tr", has_text="FENS").first.inner_text()
    assert f"{100 * band(stored('fens', 0.1)).mean:.1f}" in row
    cell = percent(band(stored("fens", 0.01)).mean).removesuffix(" %")
    assert cell in page.locator("#lines-title ~ details tr", has_text="FENS").first.inner_text()
    page.locator("#theme").click()
    assert (page.evaluate(paper) == dark) == (scheme == "light")
    assert wide(page) <= 0


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_clipped_or_lies_over_another_name(opened, width):
    """At every stored setting: texts stay inside the window, and the names in one picture keep apart."""
    page = opened((width, 900), reduced_motion="reduce")
    page.evaluate("document.querySelector('#choice').open = true")
    page.evaluate(TWO_FRAMES)  # it may change the pictures' size
    collisions = page.evaluate(
        """() => {
            const bad = [];
            for (let a = 0; a < alphas.length; a++) for (let m = 0; m < clients.length; m++) {
                change({ a, m });
                for (const svg of document.querySelectorAll('.frame svg')) {
                    const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()])
                        .filter(([, box]) => box.width);
                    for (const [words, box] of boxes)
                        if (box.left < 0 || box.right > innerWidth) bad.push(['outside', svg.id, words, a, m]);
                    boxes.forEach(([words, p], i) => boxes.slice(i + 1).forEach(([other, q]) => {
                        const x = Math.min(p.right, q.right) - Math.max(p.left, q.left);
                        const y = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
                        if (x > 1 && y > 5) bad.push(['over', svg.id, words, other, a, m]);
                    }));
                }
            }
            return bad;
        }"""
    )
    assert collisions == []


def test_another_data_set_is_another_page(opened):
    page = opened()
    with page.expect_event("load"):  # it is opened anew; the second time below is a load of its own
        page.locator("#set").select_option("glyphs:16g")
    page.wait_for_function("document.querySelector('#command').textContent.includes('--dataset glyphs:16g')")
    assert page.locator("#set").input_value() == "glyphs:16g" and "data=glyphs:16g" in page.url.replace("%3A", ":")
    of = load("glyphs:16g").accuracies("fens", 0.1, 10)
    assert text(page, "#bars [data-m=fens] .number") == number(band(of))
    assert "glyphs" in text(page, "#stored") and wide(page) <= 0
    with page.expect_event("load"):  # it is opened anew, and must be there before the window closes
        page.locator("#set").select_option("digits")
    page.wait_for_function("!document.querySelector('#command').textContent.includes('glyphs')")
    assert text(page, "#bars [data-m=fens] .number") == number(band(stored("fens", 0.1)))
