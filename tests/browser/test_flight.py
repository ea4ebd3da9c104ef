"""The flight of messages in a browser: on the page, whose clock the test moves, and in a panel."""

import time
from xml.etree import ElementTree

import pytest
from accessible import find_barriers
from lab_steps import PATIENCE, open_notebook, run_all_cells, write_notebook
from playwright.sync_api import expect

from fedlab_nb.live import page as static

pytestmark = pytest.mark.browser
FLIGHT = "document.querySelector('#stage').shadowRoot.querySelector('.flight')"
MESSAGE_SHAPES = ("envelope", "note")
SIZES = [((1280, 720), "light"), ((390, 844), "dark")]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    return static.write_page(tmp_path_factory.mktemp("page") / "playground.html").as_uri()


@pytest.fixture
def open_page(browser, address):
    """A function that opens the page, offline, with a clock that the test moves; the console must stay empty."""
    contexts = []
    troubles = []

    def open_page(size=(1280, 720), scheme="light", has_clock=True, **options):
        width, height = size
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            offline=True,
            **options,
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        if has_clock:
            page.clock.install(time=0)
        page.goto(address)
        if has_clock:
            page.clock.pause_at(60_000)
            page.clock.run_for(500)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def inspect_flight_or_none(page):
    """Return the state of the flight; None while nothing flies."""
    return page.evaluate(f"{FLIGHT}.inspect()")


def press_run_and_inspect_first_flight(page):
    """Press Run, and wait until the first flight has begun, in which the page's clock stands still; its state."""
    page.locator("button.run").click()
    start = time.monotonic()
    while inspect_flight_or_none(page) is None:
        assert time.monotonic() - start < 60
        time.sleep(0.05)
    return inspect_flight_or_none(page)


def wait_for_end_of_training(page):
    """Wait until nothing is trained any more, after a throw or Run: then the button says Run again."""
    start = time.monotonic()
    while page.locator("button.run").inner_text() != "Run":
        assert time.monotonic() - start < 60
        time.sleep(0.05)


def count_flying_messages(flight):
    """Count the messages that are drawn on their way."""
    return sum(s["kind"] in MESSAGE_SHAPES and "client" in s for s in flight["shapes"])


def read_text(page, css):
    """Read the visible text of an element, with ordinary spaces."""
    return page.locator(css).inner_text().replace("\xa0", " ").strip()


@pytest.mark.parametrize(("size", "scheme"), SIZES)
def test_run_plays_the_flight_once(open_page, size, scheme):
    page = open_page(size, scheme)
    flight_at_start = press_run_and_inspect_first_flight(page)
    assert flight_at_start["at"] == 0
    assert flight_at_start["isPlaying"]
    assert flight_at_start["method"] == "fedavg"
    assert page.locator(".bar b").all_inner_texts()[1] != "–"  # the result is there already
    assert read_text(page, "h2.headline").startswith("The average of 10 networks gets")
    duration = flight_at_start["steps"][-1]["end"]
    assert 3000 < duration < 10_000
    counts = []
    steps = []
    while 100 * (len(counts) + 1) < duration:
        page.clock.run_for(100)
        flight = inspect_flight_or_none(page)
        assert flight["at"] == pytest.approx(len(counts) * 100 + 100, abs=20)
        step = flight["steps"][flight["step"]]
        hops = [hop for hop in step["hops"] if hop["start"] <= flight["at"] < hop["end"]]
        assert count_flying_messages(flight) <= sum(len(hop["clients"]) for hop in hops)
        counts.append(count_flying_messages(flight))
        steps.append(step["kind"])
    assert list(dict.fromkeys(steps)) == ["send", "work", "gate", "end"]
    assert max(counts) == 10
    assert flight["arrived"] == {"up": 262800, "down": 262800, "messages": 20}
    page.clock.run_for(5000)
    ended = inspect_flight_or_none(page)
    assert (ended["at"], ended["isPlaying"]) == (duration, False)  # it stays until it is closed
    assert read_text(page, ".caption").startswith("FedAvg, 5 of 5: One blend.")
    assert page.locator(".sub input.scrub").is_visible()
    page.get_by_label("Close the flight").click()
    words = read_text(page, ".sub > span:first-child")
    assert words == "FedAvg: one message each, 263 kB up and 263 kB down."
    assert "shout" in read_text(page, "h2.headline")  # of the whole run again
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("method", ["fedavg", "fens"])
def test_a_caption_is_shown_long_enough_to_be_read(open_page, method):
    """While it plays: at least 1.2 seconds, and a second for 15 letters. When it stands, the caption is in full."""
    page = open_page()
    press_run_and_inspect_first_flight(page)
    page.locator("select.flown").select_option(method)
    steps = inspect_flight_or_none(page)["steps"]
    tick = 60  # milliseconds between two looks at the caption
    milliseconds_shown = {}
    while inspect_flight_or_none(page)["isPlaying"]:
        title, brief = page.locator(".caption > :not(.who)").all_inner_texts()[:2]
        words = f"{title} {brief}".strip()
        milliseconds_shown[words] = milliseconds_shown.get(words, 0) + tick
        page.clock.run_for(tick)
    captions = list(milliseconds_shown.items())
    assert [words.split(".")[0] for words, _ in captions] == [step["title"] for step in steps]
    for words, milliseconds in captions[:-1]:
        assert milliseconds + tick >= max(1200, 1000 * len(words) / 15), words
    page.get_by_label("Step back").click()
    page.get_by_label("Step back").click()
    assert inspect_flight_or_none(page)["step"] == len(steps) - 3
    assert read_text(page, ".caption > .who + b + span") == steps[-3]["text"].replace("\xa0", " ")
    page.get_by_label("Play", exact=True).click()
    assert read_text(page, ".caption > .who + b + span") == steps[-3]["brief"].replace("\xa0", " ")


@pytest.mark.parametrize(("size", "scheme"), SIZES)
def test_the_flight_of_each_method_is_stepped_through(open_page, size, scheme):
    page = open_page(size, scheme)
    press_run_and_inspect_first_flight(page)
    names = page.locator("select.flown option").evaluate_all("all => all.map(one => one.value)")
    assert names == ["fedavg", "logits", "ensemble", "fens", "afl", "gauss"]
    for name in names:
        page.locator("select.flown").select_option(name)
        flight = inspect_flight_or_none(page)
        assert flight["method"] == name and flight["at"] == 0
        for number, step in enumerate(flight["steps"]):
            page.get_by_label("Step forward" if number else "Step back").click()
            now = inspect_flight_or_none(page)
            assert (now["step"], now["isPlaying"]) == (number, False)
            assert now["at"] == pytest.approx(step["still"])
            position = f"{number + 1} of {len(flight['steps'])}: {step['title']}."
            assert position in read_text(page, ".caption")
            expected = len(step["hops"][0]["clients"]) if step["hops"] else 0
            assert count_flying_messages(now) == expected
        page.get_by_label("Step back").click()
        assert inspect_flight_or_none(page)["step"] == len(flight["steps"]) - 2


def test_a_saved_picture_shows_the_flying_messages(open_page):
    page = open_page(accept_downloads=True)

    def save():
        with page.expect_download() as download:
            page.get_by_role("button", name="Save SVG").click()
        return ElementTree.parse(download.value.path()).getroot()

    press_run_and_inspect_first_flight(page)
    page.get_by_label("Step forward").click()
    svg = save()
    tag = "{http://www.w3.org/2000/svg}"
    wall, sky = svg.findall(f"{tag}image")[:2]
    assert wall.get("opacity") == "0.13" and sky.get("opacity") is None
    for name in ("x", "y", "width", "height"):
        assert wall.get(name) == sky.get(name)
    texts = [element.text or "" for element in svg.iter(f"{tag}text")]
    flight = inspect_flight_or_none(page)
    step = flight["steps"][flight["step"]]
    caption = f"FedAvg, {flight['step'] + 1} of {len(flight['steps'])}: {step['title']}."
    assert any(text.startswith(caption) for text in texts)
    assert inspect_flight_or_none(page) is not None  # saving does not close the flight
    page.get_by_label("Close the flight").click()
    assert save().find(f"{tag}image").get("opacity") is None


def test_the_chosen_method_stays_chosen_and_no_button_moves(open_page):
    page = open_page()
    press_run_and_inspect_first_flight(page)
    page.locator("select.flown").select_option("fens")
    playing = page.get_by_label("Pause").bounding_box()
    page.get_by_label("Pause").click()
    assert page.get_by_label("Play", exact=True).bounding_box() == playing
    page.locator(".owners button").nth(4).press("Shift+ArrowLeft")
    page.locator(".undo").click()
    assert inspect_flight_or_none(page) is None
    wait_for_end_of_training(page)
    assert press_run_and_inspect_first_flight(page)["method"] == "fens"


def find_chosen_methods(page):
    """Find the methods whose bars are marked as chosen."""
    bars = page.locator("button.bar[aria-pressed=true]")
    return [name.split(" 5")[0] for name in bars.locator("span:first-child").all_inner_texts()]


@pytest.mark.parametrize(("size", "scheme"), SIZES)
def test_a_bar_chooses_its_method_for_flight_and_image(open_page, size, scheme):
    """By pointer, Enter and Space; the list of flights and the bars say the same."""
    page = open_page(size, scheme)
    fens = page.locator("button.bar", has_text="FENS")
    flown = page.locator("select.flown")
    chosen = page.locator(".cards:not(.clients) .chosen small")
    fens.click()  # before anything was sent
    assert find_chosen_methods(page) == ["FENS"] and inspect_flight_or_none(page) is None
    assert (
        press_run_and_inspect_first_flight(page)["method"] == "fens"
        and flown.input_value() == "fens"
    )
    assert read_text(page, ".caption").startswith("FENS, 1 of 7: ")
    assert read_text(page, "h2.headline").startswith("FENS gets ")
    assert chosen.all_inner_texts() == ["FENS"]
    flown.select_option("afl")
    assert find_chosen_methods(page) == ["AFL"] and chosen.all_inner_texts() == ["AFL"]
    for key, name, method in (("Enter", "Mean of prob.", "ensemble"), ("Space", "FENS", "fens")):
        page.locator("button.bar", has_text=name).press(key)
        page.clock.run_for(100)
        flight = inspect_flight_or_none(page)
        assert (flight["method"], flight["isPlaying"]) == (method, True) and flight["at"] < 200
        assert flown.input_value() == method and find_chosen_methods(page) == [name]
        assert chosen.all_inner_texts() == [name]
    fens.press("Enter")  # a second press deselects
    assert (
        inspect_flight_or_none(page) is None
        and find_chosen_methods(page) == []
        and chosen.count() == 0
    )
    assert page.locator(".bar", has_text="Local only").get_attribute("aria-pressed") is None


def test_a_bar_turns_the_open_sum_to_its_method(open_page):
    page = open_page()
    press_run_and_inspect_first_flight(page)
    page.get_by_role("button", name="Mean of logits: how it comes").click()
    assert read_text(page, ".sum h3").startswith("Mean of logits on this digit")
    page.locator("button.bar", has_text="FENS").click()
    assert read_text(page, ".sum h3").startswith("FENS on this digit")
    page.locator("button.bar", has_text="AFL").click()
    assert not page.locator(".sum").is_visible()  # its answer is no sum over clients


def test_keys_step_and_leave(open_page):
    page = open_page()
    press_run_and_inspect_first_flight(page)
    page.get_by_label("Pause").focus()
    page.keyboard.press("ArrowRight")
    assert (
        inspect_flight_or_none(page)["step"] == 1 and not inspect_flight_or_none(page)["isPlaying"]
    )
    page.keyboard.press("ArrowLeft")
    assert inspect_flight_or_none(page)["step"] == 0
    page.keyboard.press("End")
    end = inspect_flight_or_none(page)["steps"][-1]["end"]
    assert inspect_flight_or_none(page)["at"] == end
    page.keyboard.press("Home")
    assert inspect_flight_or_none(page)["step"] == 0
    page.get_by_label("Moment of the flight").focus()
    page.keyboard.press("End")
    assert inspect_flight_or_none(page)["at"] == end
    page.keyboard.press("Escape")
    assert inspect_flight_or_none(page) is None
    assert page.evaluate("document.querySelector('#stage').shadowRoot.activeElement.title") == (
        "Watch what was sent"
    )
    page.keyboard.press("Enter")
    assert inspect_flight_or_none(page)["at"] == 0


def test_the_flight_is_slowed_skipped_and_closed_by_the_slider(open_page):
    page = open_page()
    press_run_and_inspect_first_flight(page)
    page.get_by_label("Speed").click()
    page.clock.run_for(1000)
    assert inspect_flight_or_none(page)["at"] == pytest.approx(500, abs=30)
    page.get_by_label("Close the flight").click()
    assert inspect_flight_or_none(page) is None
    assert read_text(page, ".sub > span:first-child").startswith("Drag a pile")
    page.get_by_title("Watch what was sent").click()
    assert inspect_flight_or_none(page) is not None
    page.locator("input.alpha").press("ArrowRight")
    assert inspect_flight_or_none(page) is None
    assert not page.locator(".flight-bar").is_visible()  # nothing was sent at this setting yet


def test_a_press_on_the_piles_closes_the_flight(open_page):
    page = open_page()
    press_run_and_inspect_first_flight(page)
    box = page.locator("canvas.wall").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + box["height"] - 10)
    page.mouse.down()
    assert inspect_flight_or_none(page) is None
    page.mouse.up()


def test_with_reduced_motion_the_flight_is_a_series_of_stills(open_page):
    page = open_page(reduced_motion="reduce")
    flight = press_run_and_inspect_first_flight(page)
    assert not flight["isPlaying"] and flight["at"] == pytest.approx(flight["steps"][0]["still"])
    page.clock.run_for(5000)
    assert inspect_flight_or_none(page)["at"] == flight["at"]
    page.get_by_label("Step forward").click()
    assert inspect_flight_or_none(page)["step"] == 1


@pytest.mark.parametrize(("size", "scheme"), SIZES)
def test_the_flight_is_accessible(open_page, size, scheme):
    """On the browser's own clock, as axe-core needs one that runs."""
    page = open_page(size, scheme, has_clock=False)
    page.locator("button.run").click()
    page.get_by_label("Pause").click()
    page.locator("button.bar", has_text="FENS").click()
    page.get_by_label("Step back").click()
    for _ in inspect_flight_or_none(page)["steps"]:
        assert find_barriers(page, "#stage") == []
        page.get_by_label("Step forward").click()
    page.get_by_label("Close the flight").click()
    assert find_barriers(page, "#stage") == []


def test_frames_are_drawn_until_the_flight_ends(open_page):
    """On the browser's own clock. The rate is printed, and not tested, as it depends on the machine."""
    page = open_page(has_clock=False)
    page.locator("button.run").click()
    page.wait_for_function(f"{FLIGHT}.inspect() !== null")
    times = page.evaluate(
        """() => new Promise((resolve) => {
            const times = [];
            const sky = document.querySelector('#stage').shadowRoot.querySelector('.flight');
            const step = (now) => {
                if (!sky.inspect().isPlaying) return resolve(times);
                times.push(now);
                requestAnimationFrame(step);
            };
            requestAnimationFrame(step);
        })"""
    )
    seconds = (times[-1] - times[0]) / 1000
    print(f"{len(times)} frames in {seconds:.2f} s: {len(times) / seconds:.0f} a second")
    assert 3 < seconds < 15


PANEL = (
    "import fedlab_nb as fl\n"
    "panel = fl.playground(methods=['local', 'fedavg', 'ensemble'], epochs=5, seeds=2, seed=4)\n"
    "panel"
)
MOVE_TO = """(slider, value) => {
    slider.value = value;
    slider.dispatchEvent(new Event('input'));
}"""


def test_a_panel_shows_the_messages_of_the_kernel_s_ledger(page, lab, course):
    page.set_viewport_size({"width": 1280, "height": 720})
    open_notebook(page, lab, write_notebook(course, "flight", PANEL))
    run_all_cells(page)
    stage = page.locator(".fl-stage")
    stage.locator("button.run", has_text="Run 2 seeds").click()
    sky = stage.locator(".flight")
    sky.wait_for()
    stage.get_by_label("Moment of the flight").evaluate(MOVE_TO, 1500)
    flight = sky.evaluate("(sky) => sky.inspect()")
    assert flight["method"] == "fedavg" and flight["at"] == 1500 and not flight["isPlaying"]
    duration = flight["steps"][-1]["end"]
    sent = [step for step in flight["steps"] if step["hops"]]
    assert [step["legs"][0]["phase"] for step in sent] == ["initial model", "local models"]
    assert count_flying_messages(flight) > 0
    stage.get_by_label("Moment of the flight").evaluate(MOVE_TO, duration)
    arrived = sky.evaluate("(sky) => sky.inspect().arrived")
    assert arrived == {"up": 262800, "down": 262800, "messages": 20}
    page.locator(".fl-playground.fl-status-done").wait_for()
    # The flight has not delayed the run.
    expect(stage.locator("section .about").first).to_contain_text("2 seeds")
    assert find_barriers(page, ".fl-stage") == []
    stage.get_by_label("Close the flight").click()
    expect(sky).to_be_hidden()
    stage.locator("select.flown").select_option("ensemble")
    assert sky.evaluate("(sky) => sky.inspect().method") == "ensemble"
