"""The page without Python in a real browser, as a file and offline: sliders, texts, hover, keys, themes, sizes."""

import pytest
from accessible import find_barriers
from lab_steps import PATIENCE, TWO_FRAMES
from playwright.sync_api import expect

import fedlab_nb as fl
from fedlab_nb.data import federate
from fedlab_nb.live import page as static
from fedlab_nb.live.page import SUMS
from fedlab_nb.methods import METHODS, choose_method_label
from fedlab_nb.plots import MethodResults
from fedlab_nb.plots.accuracy import describe_best_method
from fedlab_nb.plots.identity import shorten_method_title
from fedlab_nb.plots.words import format_percent, format_percent_band
from fedlab_nb.studies.statistics import compute_band
from fedlab_nb.studies.stored_results import load

pytestmark = pytest.mark.browser
SHORT_NAMES = {
    row["name"]: row["short"] for row in static.collect_page_data()["digits"]["live"]["rows"]
}
COLOURED_METHODS = ["fedavg", "ensemble", "fens", "fedlpa", "fusefl", "fedet", "coboosting"]
BOTH_SIZES = pytest.mark.parametrize(
    ("size", "scheme"), [((390, 844), "dark"), ((1280, 720), "light")]
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    return static.write_page(tmp_path_factory.mktemp("page") / "playground.html").as_uri()


@pytest.fixture
def open_page(browser, address):
    """A function that opens the page offline, in a window of a size; the console must stay empty."""
    contexts = []
    troubles = []

    def open_page(size=(1280, 720), link="", **options):
        width, height = size
        context = browser.new_context(
            viewport={"width": width, "height": height}, offline=True, **options
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("requestfailed", lambda request: troubles.append(request.url))
        page.goto(address + link)
        page.evaluate(TWO_FRAMES)  # in the first frame the pictures get their size
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def load_accuracies(method, alpha, clients=10):
    """Load {seed: accuracy} of the stored results."""
    return load().get_accuracies_by_seed(method, alpha, clients)


def read_text(page, css):
    """Read the text of an element, also within a picture, with ordinary spaces."""
    return page.locator(css).text_content().replace("\xa0", " ").strip()


def show_stored_results(page):
    """Scroll to the stored results, which are drawn only while they are visible."""
    page.locator("#stored-results-title").scroll_into_view_if_needed()
    page.wait_for_function("isSeen && !isOld")
    page.evaluate(TWO_FRAMES)


def measure_overflow(page):
    """Measure by how many pixels the page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def test_alpha_by_keyboard_changes_texts_and_bars_to_the_nearest_stored_ones(open_page):
    page = open_page((390, 844))
    assert page.locator("input.alpha").get_attribute("aria-valuetext") == "α = 0.1"
    # The slider's α after a key, and the α of the stored results that are shown.
    for key, now, alpha in (("ArrowLeft", 0.07, 0.05), ("Home", 0.01, 0.01), ("End", 10.0, 10.0)):
        page.locator("input.alpha").press(key)
        assert page.locator("input.alpha").get_attribute("aria-valuetext") == f"α = {now:g}"
        words = read_text(page, ".side section .about")
        # Another α than the slider's is named.
        assert (now == alpha) != (f"at α = {alpha:g}" in words)
        show_stored_results(page)
        rows = [
            MethodResults(
                shorten_method_title(choose_method_label(m)), accuracies=load_accuracies(m, alpha)
            )
            for m in COLOURED_METHODS
        ]
        best = f"among the {len(COLOURED_METHODS)} methods in colour, {describe_best_method(rows)}"
        assert f"At α = {alpha:g} with 10 clients, {best}" in read_text(page, "#bars-words")
        for method in METHODS:
            assert read_text(page, f"#bars [data-m={method}] .number") == format_percent_band(
                compute_band(load_accuracies(method, alpha))
            )
        page.locator("#bars [data-m=fens] .bar").wait_for()
    for _ in range(10):
        page.locator("input.clients").press("ArrowRight")
    assert page.locator("input.clients").get_attribute("aria-valuetext") == "20 clients"
    show_stored_results(page)
    assert read_text(page, "#bars [data-m=fedavg] .number") == format_percent_band(
        compute_band(load_accuracies("fedavg", 10, 20))
    )
    assert page.locator(".owners button").count() == 20
    assert measure_overflow(page) <= 0


def test_hover_click_and_escape(open_page):
    page = open_page()
    show_stored_results(page)
    page.locator("#bars [data-m=fedov] .hit").hover()
    tip = read_text(page, "#tip")
    accuracies = load_accuracies("fedov", 0.1)
    band = compute_band(accuracies)
    assert f"{100 * band.mean:.1f} % ± {100 * band.half_width:.1f} points" in tip
    assert all(f"{seed}: {100 * share:.1f} %" in tip for seed, share in accuracies.items())
    line = page.locator("#lines [data-m=fedov]")
    assert "lit" in line.get_attribute("class")  # in its own colour in the other picture, too
    page.locator("#bars [data-m=fedov] .hit").click()
    page.mouse.move(5, 5)
    page.locator("input.alpha").press("ArrowLeft")
    show_stored_results(page)
    mean = compute_band(load_accuracies("fedov", 0.05)).mean
    assert f"FedOV: {100 * mean:.1f} %" in read_text(page, "#held")
    page.keyboard.press("Escape")
    assert "FedOV" not in read_text(page, "#held")
    assert "lit" not in line.get_attribute("class")


def test_the_first_screen_leads_to_the_stored_results(open_page):
    page = open_page()
    link = page.locator("#down")
    assert link.inner_text() == f"↓ {len(load().methods)} methods, stored results"
    box = link.bounding_box()
    assert box["y"] + box["height"] <= 720
    link.click()
    page.wait_for_function("isSeen && !isOld")
    assert page.locator("#stored-results-title").bounding_box()["y"] < 200


def test_pictures_are_used_by_keyboard(open_page):
    page = open_page()
    show_stored_results(page)
    page.locator("#bars [tabindex='0']").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    second = sorted(METHODS, key=lambda m: -compute_band(load_accuracies(m, 0.1)).mean)[1]
    assert page.evaluate("document.activeElement.dataset.m") == second
    assert choose_method_label(second) in read_text(page, "#tip")
    page.keyboard.press("Enter")
    assert page.locator(f"#bars [data-m={second}]").get_attribute("aria-pressed") == "true"
    page.locator(".owners button").nth(1).focus()
    page.keyboard.press("Enter")
    assert read_text(page, ".hand p b") == "office B"
    page.keyboard.press("Escape")
    assert not page.locator(".hand").is_visible()


def press_run_and_read_accuracies(page):
    """Press Run, wait for the end, and return {method's short name: accuracy as it is shown}."""
    page.locator("button.run").press("Enter")
    page.locator(".progress", has_text="Trained").wait_for()
    rows = page.locator("#stage .bar").all()
    name = "row => row.firstChild.firstChild.textContent"
    return {row.evaluate(name): row.locator("b").inner_text() for row in rows}


def test_a_run_is_that_seed_of_the_stored_table(open_page, address):
    page = open_page(link="#alpha=0.3&m=5&seed=4")
    for alpha, clients, seed in ((0.01, 20, 1), (0.3, 5, 4), (10, 10, 0)):
        shards = page.evaluate("([a, m, s]) => deal(TRUTH.train, m, a, s)", [alpha, clients, seed])
        federation = federate("digits", alpha=alpha, clients=clients, seed=seed)
        assert shards == [shard.tolist() for shard in federation.shards]
    for row in page.locator("#stage .bar").all():
        assert "messages" not in row.inner_text() + row.get_attribute("title")  # not counted yet
    shown_accuracies = press_run_and_read_accuracies(page)
    fens = page.locator("#stage .bar", has_text="FENS")
    assert fens.locator("small").inner_text() == "51 messages"  # 1 network, 50 rounds of notes
    assert "up to 51 messages each" in fens.get_attribute("title")
    afl = page.locator("#stage .bar", has_text="AFL").get_attribute("title")
    assert "it does not matter who holds what" in afl
    mean = page.locator("#stage .bar", has_text="Mean of logits").get_attribute("title")
    assert "this method is not in the stored results" in mean
    page.wait_for_timeout(1000)  # the bars have grown to their lengths
    for row in page.locator("#stage .bar").all():
        share = row.evaluate(
            "row => row.querySelector('.value').getBoundingClientRect().width"
            " / row.querySelector('.track').getBoundingClientRect().width"
        )
        assert abs(100 * share - float(row.locator("b").inner_text()[:-2])) < 0.6
    for method in set(static.RUNS) - {"logits"}:
        assert (
            abs(
                float(shown_accuracies[SHORT_NAMES[method]][:-2])
                - 100 * load_accuracies(method, 0.3, 5)[4]
            )
            < 1.01
        )
    assert page.locator(".cards").last.locator("li").count() == 5
    assert_sum_unfolds(page)
    page.locator("#link").click()
    page.wait_for_function("document.querySelector('#link').textContent === 'Copied'")
    page.context.grant_permissions(["clipboard-read"])
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.wait_for_function("document.querySelector('#link').textContent === 'Copy link'")
    second_page = open_page(link=page.url.removeprefix(address))
    show_stored_results(page)
    show_stored_results(second_page)
    assert read_text(second_page, "#held-by-words") == read_text(page, "#held-by-words")
    assert press_run_and_read_accuracies(second_page) == shown_accuracies


def assert_sum_unfolds(page):
    """Assert that FENS' card shows its sum over five offices and hides it again; FedAvg, no sum, has no button."""
    assert page.get_by_role("button", name="FedAvg: how it comes to this answer").count() == 0
    opener = page.get_by_role("button", name="FENS: how it comes to this answer")
    opener.click()
    shown_sum = page.locator("#stage .sum")
    expect(shown_sum.locator("h3")).to_contain_text("FENS on this digit: logits of")
    expect(shown_sum.locator(".about")).to_contain_text("the small rounds have learnt")
    terms = [read_number(row.locator("b")) for row in shown_sum.locator(".terms li").all()]
    total = float(shown_sum.locator(".result").inner_text().replace("−", "-").split()[1])
    assert len(terms) == 5 and sum(terms) == pytest.approx(total, abs=0.06 * len(terms))
    answer = page.locator(".cards").first.locator("li", has_text="FENS").locator("b").inner_text()
    assert shown_sum.locator(".totals .most small").inner_text() == answer
    opener.click()
    expect(shown_sum).to_be_hidden()


def read_number(locator):
    return float(locator.inner_text().replace("−", "-"))


def test_moves_by_hand_travel_in_the_link(open_page, address):
    page = open_page()
    page.locator(".owners button").nth(4).press("Shift+ArrowLeft")
    page.wait_for_function("location.hash.includes('moves')")
    second_page = open_page(link=page.url.removeprefix(address))
    owners = ".owners button"
    read_labels = "all => all.map((button) => button.ariaLabel.split(';')[0])"
    labels = page.locator(owners).evaluate_all(read_labels)
    assert second_page.locator(owners).evaluate_all(read_labels) == labels
    federation = federate("digits", alpha=0.1, clients=10, seed=4, moves="E>D")
    sizes = [int(label.split(": ")[1].split(" ")[0]) for label in labels]
    assert sizes == [len(shard) for shard in federation.shards]
    show_stored_results(second_page)
    assert '--set "moves=E>D"' in read_text(second_page, "#command")


def test_a_number_out_of_range_gets_a_message_and_changes_nothing(open_page):
    page = open_page(link="#alpha=0.1&m=10&seed=99999999")
    assert "“seed=99999999” (0 to 1000000)" in read_text(page, "#left-out")
    seed = page.locator("input.seed")
    expect(seed).to_have_value("4")
    seed.fill("999999999999")
    seed.press("Enter")
    expect(page.locator(".limit")).to_have_text("at most 1,000,000")
    expect(seed).to_have_value("4")
    seed.fill("7")
    seed.press("Enter")
    expect(page.locator(".limit")).to_have_text("")
    page.wait_for_function("location.hash.includes('seed=7')")


def test_the_page_stays_fluid_while_clients_train(open_page):
    """It draws more than 20 frames a second, and shows accuracies before the end."""
    page = open_page()
    page.evaluate(
        """() => {
            const frames = [performance.now()];
            const root = document.querySelector('#stage').shadowRoot;
            window.isRunning = () => root.querySelector('.run').textContent === 'Stop';
            const mark = () => {
                frames.push(performance.now());
                if (isRunning() || frames.length < 9) requestAnimationFrame(mark);
            };
            root.querySelector('.run').click();
            requestAnimationFrame(mark);
            window.drawnFrames = frames;
        }"""
    )
    bars = "document.querySelector('#stage').shadowRoot.querySelector('.bars').textContent"
    page.wait_for_function(f"{bars}.includes('%') && isRunning()")
    page.wait_for_function("!isRunning()")
    frames = page.evaluate("drawnFrames")
    assert 1000 * len(frames) / (frames[-1] - frames[0]) > 20


def test_a_drawn_digit_gets_answers_and_travels_in_the_link(open_page, address):
    page = open_page(link="#m=3")
    press_run_and_read_accuracies(page)
    page.locator("#stage .tools button").first.click()
    assert read_text(page, ".votes > .about") == "Draw a digit in the field."
    assert set(page.locator(".cards b").all_inner_texts()) == {"–"}
    box = page.locator(".ink").bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.15 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.85 * box["height"], steps=6)
    page.mouse.up()
    assert read_text(page, ".votes > .about").startswith("Your drawing")
    page.wait_for_function("location.hash.includes('image=')")
    page.wait_for_timeout(500)  # the answers to the finished drawing have arrived
    answers = page.locator(".cards").last.locator("li").all_inner_texts()
    second_page = open_page(link=page.url.removeprefix(address))
    assert read_text(second_page, ".votes > .about").startswith("Your drawing")
    press_run_and_read_accuracies(second_page)
    assert second_page.locator(".cards").last.locator("li").all_inner_texts() == answers
    page.locator("#stage .tools button").last.click()
    assert read_text(page, ".votes > .about").endswith("that nobody has trained on.")


# Red, green and blue of the first pixel that is drawn on.
INK = """() => {
    const canvas = document.querySelector('#stage').shadowRoot.querySelector('.ink');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const at = data.findIndex((value, i) => i % 4 === 3 && value === 255);
    return [...data.slice(at - 3, at)];
}"""


def test_a_drawing_stands_out_from_its_ground_when_the_theme_changes(open_page):
    page = open_page()
    page.locator("#stage .tools button").first.click()
    box = page.locator(".ink").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 20, box["y"] + 70, steps=3)
    page.mouse.up()
    assert max(page.evaluate(INK)) < 60
    page.locator("#theme").click()
    assert min(page.evaluate(INK)) > 200


@BOTH_SIZES
def test_both_themes_and_tables(open_page, size, scheme):
    page = open_page(size, color_scheme=scheme)
    assert find_barriers(page, "body") == []
    press_run_and_read_accuracies(page)
    page.get_by_role("button", name="FENS: how it comes to this answer").click()
    page.locator("#stage .sum").wait_for()
    assert find_barriers(page, "body") == []
    show_stored_results(page)
    dark = "rgb(18, 22, 27)"
    paper = "getComputedStyle(document.body).backgroundColor"
    assert (page.evaluate(paper) == dark) == (scheme == "dark")
    for summary in page.locator(".card summary").all():
        summary.click()
    row = page.locator("#bars-title ~ details tr", has_text="FENS").first.inner_text()
    assert f"{100 * compute_band(load_accuracies('fens', 0.1)).mean:.1f}" in row
    cell = format_percent(compute_band(load_accuracies("fens", 0.01)).mean).removesuffix(" %")
    assert cell in page.locator("#lines-title ~ details tr", has_text="FENS").first.inner_text()
    page.locator("#theme").click()
    assert (page.evaluate(paper) == dark) == (scheme == "light")
    assert measure_overflow(page) <= 0


@pytest.mark.parametrize("width", [390, 1280])
def test_no_text_is_clipped_or_overlaps_another(open_page, width):
    """At every stored setting: texts stay inside the window, and those of one picture keep apart."""
    page = open_page((width, 900), reduced_motion="reduce")
    show_stored_results(page)
    page.evaluate("document.querySelector('#choice').open = true")
    page.evaluate(TWO_FRAMES)  # the pictures may get another size
    collisions = page.evaluate(
        """() => {
            const bad = [];
            for (let a = 0; a < alphas.length; a++) for (let m = 0; m < clients.length; m++) {
                change({ alpha: alphas[a], clients: clients[m] });
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


def test_another_data_set_is_another_page(open_page):
    page = open_page()
    with page.expect_event("load"):  # the page is loaded again
        page.locator(".source select").select_option("glyphs:16g")
    page.wait_for_function("stage && SET === 'glyphs:16g'")
    show_stored_results(page)
    assert "--dataset glyphs:16g" in read_text(page, "#command")
    assert page.locator(".source select").input_value() == "glyphs:16g"
    assert "data=glyphs:16g" in page.url.replace("%3A", ":")
    band = compute_band(load("glyphs:16g").get_accuracies_by_seed("fens", 0.1, 10))
    assert read_text(page, "#bars [data-m=fens] .number") == format_percent_band(band)
    assert "glyphs" in read_text(page, "#stored") and measure_overflow(page) <= 0
    page.locator("button.run").click()  # the page trains no networks for it, and adds up sums
    expect(page.locator("#stage .progress")).to_contain_text("Added up the sums of 10 clients")
    settings = dict(dataset="glyphs:16g", alpha=0.1, clients=10, seed=4)
    shown_accuracies = page.locator("#stage .bar b").all_inner_texts()
    for method, percent in zip(SUMS, shown_accuracies, strict=True):
        accuracy = fl.run(method, **settings).accuracy
        assert abs(float(percent.removesuffix("\xa0%")) - 100 * accuracy) <= 1, method
    assert page.locator("#stage .cards.clients li").count() == 0
    with page.expect_event("load"):  # it must be there before the window closes
        page.locator(".source select").select_option("digits")
    page.wait_for_function("stage && SET === 'digits'")
    show_stored_results(page)
    assert read_text(page, "#bars [data-m=fens] .number") == format_percent_band(
        compute_band(load_accuracies("fens", 0.1))
    )
