"""The page without Python in a real browser, as a file and offline: sliders, words, hover, keys, themes, sizes."""

import pytest
from accessible import barriers
from lab_steps import PATIENCE, TWO_FRAMES

from fedlab_nb import page as static
from fedlab_nb.methods import METHODS
from fedlab_nb.plots import Series
from fedlab_nb.plots.accuracy import verdict
from fedlab_nb.plots.identity import look, short
from fedlab_nb.plots.words import number, percent
from fedlab_nb.studies.statistics import band
from fedlab_nb.studies.stored import load, sets

pytestmark = pytest.mark.browser
FIRST = ["fedavg", "ensemble", "fens", "fedlpa", "fusefl", "fedet", "coboosting"]
BOTH = pytest.mark.parametrize(("size", "scheme"), [((390, 844), "dark"), ((1280, 720), "light")])
SIZES = pytest.mark.parametrize("size", [(390, 844), (1280, 720)], ids=["phone", "laptop"])


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


@BOTH
def test_nothing_stands_in_anybody_s_way(opened, size, scheme):
    assert barriers(opened(size, color_scheme=scheme), "body") == []


@SIZES
def test_alpha_by_keyboard_changes_words_and_bars_to_the_stored_ones(opened, size):
    page = opened(size)
    assert page.locator("#alpha").get_attribute("aria-valuetext") == "α = 0.1"
    for key, alpha in (("ArrowLeft", 0.05), ("Home", 0.01), ("End", 10.0)):
        page.locator("#alpha").press(key)
        assert page.locator("#alpha").get_attribute("aria-valuetext") == f"α = {alpha:g}"
        rows = [Series(short(METHODS[m].info.title), accuracies=stored(m, alpha)) for m in FIRST]
        assert f"At α = {alpha:g} with 10 clients, {verdict(rows)}" in text(page, "#bars-words")
        for method in METHODS:
            assert text(page, f"#bars [data-m={method}] .number") == number(band(stored(method, alpha)))
        page.locator("#bars [data-m=fens] .bar").wait_for()
    page.locator("#clients").press("End")
    assert page.locator("#clients").get_attribute("aria-valuetext") == "20 clients"
    assert text(page, "#bars [data-m=fedavg] .number") == number(band(stored("fedavg", 10, 20)))
    assert page.locator("#held-by [data-c='-1']").count() == 20
    assert wide(page) <= 0


def test_a_bar_is_as_long_as_its_number_says(opened):
    page = opened(reduced_motion="reduce")
    page.locator("#alpha").press("Home")
    bars = "all => all.map(m => [m.dataset.m, Number(m.querySelector('.bar').getAttribute('width'))])"
    long = dict(page.locator("#bars .m").evaluate_all(bars))  # in one look
    full = long["centralized"] / band(stored("centralized", 0.01)).mean
    assert long == pytest.approx({m: full * band(stored(m, 0.01)).mean for m in METHODS}, abs=0.5)
    tops = page.locator("#bars .m").evaluate_all("all => all.map(m => [m.getBoundingClientRect().top, m.dataset.m])")
    order = [method for _, method in sorted(tops)]
    means = [band(stored(m, 0.01)).mean for m in order]
    assert means == sorted(means, reverse=True)


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
    assert METHODS[second].info.title in text(page, "#tip")
    page.keyboard.press("Enter")
    assert page.locator(f"#bars [data-m={second}]").get_attribute("aria-pressed") == "true"
    page.locator("#held-by [tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    assert text(page, "#held-by-words").startswith("Client 1 holds ")
    page.keyboard.press("Escape")
    assert text(page, "#held-by-words").startswith("A client effectively sees ")


def test_at_most_seven_have_a_colour(opened):
    page = opened()
    assert page.locator("#bars .m.lit").count() == 7
    page.locator("#groups input[value=dense]").check()
    assert page.locator("#bars .m.lit").count() == 7 and "FedAvg is grey now" in text(page, "#told")
    hue = page.locator("#bars [data-m=dense] .bar").evaluate("bar => getComputedStyle(bar).fill")
    assert hue == f"rgb{tuple(int(look('dense').colour[i : i + 2], 16) for i in (1, 3, 5))}"
    page.locator("#others").uncheck()
    assert page.locator("#bars .m").count() == page.locator("#bytes .m").count() == 7


@BOTH
def test_both_themes_and_tables(opened, size, scheme):
    page = opened(size, color_scheme=scheme)
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_can_be_seen_on_the_page(opened, scheme):
    """Each method's colour, and the grey of the others, has a contrast of at least 3 with the page."""
    page = opened(color_scheme=scheme, reduced_motion="reduce")
    contrasts = page.evaluate(
        """() => {
            const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
            const light = colour => {
                pen.fillStyle = colour;
                pen.fillRect(0, 0, 1, 1);
                const parts = [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => v / 255)
                    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
            };
            const paper = light(getComputedStyle(document.body).backgroundColor);
            const contrast = colour => {
                const [low, high] = [paper, light(colour)].sort((a, b) => a - b);
                return (high + 0.05) / (low + 0.05);
            };
            const contrasts = {};
            for (const grey of [true, false]) for (const mark of document.querySelectorAll('#bars .m')) {
                mark.classList.toggle('lit', !grey);
                const fill = getComputedStyle(mark.querySelector('.shape')).fill;
                contrasts[`${mark.dataset.m} ${grey ? 'grey' : ''}`] = contrast(fill);
            }
            return contrasts;
        }"""
    )
    assert len(contrasts) == 2 * len(METHODS)
    assert {name: c for name, c in contrasts.items() if c < 3} == {}


def test_another_data_set_is_another_page(opened):
    if len(sets()) < 2:
        pytest.skip("there is one stored table")
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
