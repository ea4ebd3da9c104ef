"""The flight in a browser, on the page (the test moves its clock) and in a panel: envelopes, keys, skip, stills."""

import time
from xml.etree import ElementTree

import pytest
from accessible import barriers
from lab_steps import PATIENCE, notebook, open_notebook, run_all
from playwright.sync_api import expect

from fedlab_nb.live import page as static

pytestmark = pytest.mark.browser
SKY = "document.querySelector('#stage').shadowRoot.querySelector('.flight')"
FLYING = ("envelope", "note")
SIZES = [((1280, 720), "light"), ((390, 844), "dark")]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    return static.write_page(tmp_path_factory.mktemp("page") / "playground.html").as_uri()


@pytest.fixture
def open_page(browser, address):
    """A function that opens the page, offline, with a clock that the test moves; the console must stay empty."""
    contexts, troubles = [], []

    def open_page(size=(1280, 720), scheme="light", has_clock=True, **options):
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
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


def inspect(page):
    return page.evaluate(f"{SKY}.inspect()")


def run(page):
    """Press Run, and wait until the first flight has begun; the page's own clock stands still meanwhile."""
    page.locator("button.run").click()
    begin = time.monotonic()
    while inspect(page) is None:
        assert time.monotonic() - begin < 60
        time.sleep(0.05)
    return inspect(page)


def wait_for_rest(page):
    """Until nothing is trained any more, by a throw or by Run: then the button says Run again."""
    begin = time.monotonic()
    while page.locator("button.run").inner_text() != "Run":
        assert time.monotonic() - begin < 60
        time.sleep(0.05)


def count_flying(shown):
    """Messages that are drawn on their way."""
    return sum(s["kind"] in FLYING and "client" in s for s in shown["shapes"])


def text(page, css):
    return page.locator(css).inner_text().replace("\xa0", " ").strip()


@pytest.mark.parametrize(("size", "scheme"), SIZES)
def test_run_plays_the_flight_once(open_page, size, scheme):
    page = open_page(size, scheme)
    first = run(page)
    assert (first["at"], first["isPlaying"], first["method"]) == (0, True, "fedavg")
    assert page.locator(".bar b").all_inner_texts()[1] != "–"  # the result is there already
    assert text(page, "h2.headline").startswith("The average of 10 networks gets")
    duration = first["steps"][-1]["end"]
    assert 3000 < duration < 10_000
    counts, steps = [], []
    while 100 * (len(counts) + 1) < duration:
        page.clock.run_for(100)
        shown = inspect(page)
        assert shown["at"] == pytest.approx(len(counts) * 100 + 100, abs=20)
        step = shown["steps"][shown["step"]]
        hops = [hop for hop in step["hops"] if hop["start"] <= shown["at"] < hop["end"]]
        assert count_flying(shown) <= sum(len(hop["clients"]) for hop in hops)
        counts.append(count_flying(shown))
        steps.append(step["kind"])
    assert list(dict.fromkeys(steps)) == ["send", "work", "gate", "end"] and max(counts) == 10
    assert shown["arrived"] == {"up": 262800, "down": 262800, "messages": 20}
    page.clock.run_for(5000)
    rested = inspect(page)
    assert (rested["at"], rested["isPlaying"]) == (duration, False)  # it stays until a hand goes on
    assert text(page, ".caption").startswith("FedAvg, 5 of 5: One blend.")
    assert page.locator(".sub input.scrub").is_visible()
    page.get_by_label("Close the flight").click()
    words = text(page, ".sub > span:first-child")
    assert words == "FedAvg: one message each, 263 kB up and 263 kB down."
    assert "shout" in text(page, "h2.headline")  # of the whole run again
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("method", ["fedavg", "fens"])
def test_a_caption_is_shown_until_it_is_read(open_page, method):
    """While it plays: 1.2 seconds at least, and a second for 15 letters. Where it stands it is in full."""
    page = open_page()
    run(page)
    page.locator("select.flown").select_option(method)
    steps = inspect(page)["steps"]
    frames = 60
    seen = {}
    while inspect(page)["isPlaying"]:
        title, *others = page.locator(".caption > :not(.who)").all_inner_texts()
        words = " ".join([title, others[0]]).strip()
        seen[words] = seen.get(words, 0) + frames
        page.clock.run_for(frames)
    shown = list(seen.items())
    assert [words.split(".")[0] for words, _ in shown] == [step["title"] for step in steps]
    for words, milliseconds in shown[:-1]:
        assert milliseconds + frames >= max(1200, 1000 * len(words) / 15), words
    page.get_by_label("Step back").click()
    page.get_by_label("Step back").click()
    assert inspect(page)["step"] == len(steps) - 3
    assert text(page, ".caption > .who + b + span") == steps[-3]["text"].replace("\xa0", " ")
    page.get_by_label("Play", exact=True).click()
    assert text(page, ".caption > .who + b + span") == steps[-3]["brief"].replace("\xa0", " ")


@pytest.mark.parametrize(("size", "scheme"), SIZES)
def test_each_method_flies_its_ledger_and_can_be_stepped(open_page, size, scheme):
    page = open_page(size, scheme)
    run(page)
    names = page.locator("select.flown option").evaluate_all("all => all.map(one => one.value)")
    assert names == ["fedavg", "logits", "ensemble", "fens", "afl", "gauss"]
    for name in names:
        page.locator("select.flown").select_option(name)
        shown = inspect(page)
        assert shown["method"] == name and shown["at"] == 0
        for number, step in enumerate(shown["steps"]):
            page.get_by_label("Step forward" if number else "Step back").click()
            now = inspect(page)
            assert (now["step"], now["isPlaying"]) == (number, False)
            assert now["at"] == pytest.approx(step["still"])
            where = f"{number + 1} of {len(shown['steps'])}: {step['title']}."
            assert where in text(page, ".caption")
            if step["hops"]:
                assert count_flying(now) == len(step["hops"][0]["clients"])
            else:
                assert count_flying(now) == 0
        page.get_by_label("Step back").click()
        assert inspect(page)["step"] == len(shown["steps"]) - 2


def test_a_saved_picture_shows_what_flies(open_page):
    page = open_page(accept_downloads=True)

    def save():
        with page.expect_download() as download:
            page.get_by_role("button", name="Save SVG").click()
        return ElementTree.parse(download.value.path()).getroot()

    run(page)
    page.get_by_label("Step forward").click()
    svg = save()
    tag = "{http://www.w3.org/2000/svg}"
    wall, sky = svg.findall(f"{tag}image")[:2]
    assert wall.get("opacity") == "0.13" and sky.get("opacity") is None
    assert [wall.get(name) for name in ("x", "y", "width", "height")] == [
        sky.get(name) for name in ("x", "y", "width", "height")
    ]
    words = [one.text for one in svg.iter(f"{tag}text")]
    shown = inspect(page)
    step = shown["steps"][shown["step"]]
    where = f"FedAvg, {shown['step'] + 1} of {len(shown['steps'])}: {step['title']}."
    assert any((one or "").startswith(where) for one in words)
    assert inspect(page) is not None  # it goes on
    page.get_by_label("Close the flight").click()
    assert save().find(f"{tag}image").get("opacity") is None


def test_the_chosen_method_stays_chosen_and_no_button_moves(open_page):
    page = open_page()
    run(page)
    page.locator("select.flown").select_option("fens")
    playing = page.get_by_label("Pause").bounding_box()
    page.get_by_label("Pause").click()
    assert page.get_by_label("Play", exact=True).bounding_box() == playing
    page.locator(".owners button").nth(4).press("Shift+ArrowLeft")
    page.locator(".undo").click()
    assert inspect(page) is None
    wait_for_rest(page)
    assert run(page)["method"] == "fens"


def pressed(page):
    """The methods whose bars are marked as chosen."""
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
    assert pressed(page) == ["FENS"] and inspect(page) is None
    assert run(page)["method"] == "fens" and flown.input_value() == "fens"
    assert text(page, ".caption").startswith("FENS, 1 of 7: ")
    assert text(page, "h2.headline").startswith("FENS gets ")
    assert chosen.all_inner_texts() == ["FENS"]
    flown.select_option("afl")
    assert pressed(page) == ["AFL"] and chosen.all_inner_texts() == ["AFL"]
    for key, name, method in (("Enter", "Mean of prob.", "ensemble"), ("Space", "FENS", "fens")):
        page.locator("button.bar", has_text=name).press(key)
        page.clock.run_for(100)
        shown = inspect(page)
        assert (shown["method"], shown["isPlaying"]) == (method, True) and shown["at"] < 200
        assert flown.input_value() == method and pressed(page) == [name]
        assert chosen.all_inner_texts() == [name]
    fens.press("Enter")  # once more: no longer
    assert inspect(page) is None and pressed(page) == [] and chosen.count() == 0
    assert page.locator(".bar", has_text="Local only").get_attribute("aria-pressed") is None


def test_a_bar_turns_the_open_sum_to_its_method(open_page):
    page = open_page()
    run(page)
    page.get_by_role("button", name="Mean of logits: how it comes").click()
    assert text(page, ".sum h3").startswith("Mean of logits on this digit")
    page.locator("button.bar", has_text="FENS").click()
    assert text(page, ".sum h3").startswith("FENS on this digit")
    page.locator("button.bar", has_text="AFL").click()
    assert not page.locator(".sum").is_visible()  # its answer is no sum over clients


def test_keys_step_and_leave(open_page):
    page = open_page()
    run(page)
    page.get_by_label("Pause").focus()
    page.keyboard.press("ArrowRight")
    assert inspect(page)["step"] == 1 and not inspect(page)["isPlaying"]
    page.keyboard.press("ArrowLeft")
    assert inspect(page)["step"] == 0
    page.keyboard.press("End")
    end = inspect(page)["steps"][-1]["end"]
    assert inspect(page)["at"] == end
    page.keyboard.press("Home")
    assert inspect(page)["step"] == 0
    page.get_by_label("Moment of the flight").focus()
    page.keyboard.press("End")
    assert inspect(page)["at"] == end
    page.keyboard.press("Escape")
    assert inspect(page) is None
    assert page.evaluate("document.querySelector('#stage').shadowRoot.activeElement.title") == (
        "Watch what was sent"
    )
    page.keyboard.press("Enter")
    assert inspect(page)["at"] == 0


def test_it_is_slowed_skipped_and_makes_room_for_a_hand(open_page):
    page = open_page()
    run(page)
    page.get_by_label("Speed").click()
    page.clock.run_for(1000)
    assert inspect(page)["at"] == pytest.approx(500, abs=30)
    page.get_by_label("Close the flight").click()
    assert inspect(page) is None and text(page, ".sub > span:first-child").startswith("Drag a pile")
    page.get_by_title("Watch what was sent").click()
    assert inspect(page) is not None
    page.locator("input.alpha").press("ArrowRight")
    assert inspect(page) is None
    assert not page.locator(".flight-bar").is_visible()  # nothing was sent at this setting yet


def test_a_hand_on_the_piles_ends_it(open_page):
    page = open_page()
    run(page)
    box = page.locator("canvas.wall").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + box["height"] - 10)
    page.mouse.down()
    assert inspect(page) is None
    page.mouse.up()


def test_where_motion_is_unwanted_frames_stand_still(open_page):
    page = open_page(reduced_motion="reduce")
    shown = run(page)
    assert not shown["isPlaying"] and shown["at"] == pytest.approx(shown["steps"][0]["still"])
    page.clock.run_for(5000)
    assert inspect(page)["at"] == shown["at"]
    page.get_by_label("Step forward").click()
    assert inspect(page)["step"] == 1


@pytest.mark.parametrize(("size", "scheme"), SIZES)
def test_no_barriers(open_page, size, scheme):
    """On the browser's own clock: axe-core waits for it."""
    page = open_page(size, scheme, has_clock=False)
    page.locator("button.run").click()
    page.get_by_label("Pause").click()
    page.locator("button.bar", has_text="FENS").click()
    page.get_by_label("Step back").click()
    for _ in inspect(page)["steps"]:
        assert barriers(page, "#stage") == []
        page.get_by_label("Step forward").click()
    page.get_by_label("Close the flight").click()
    assert barriers(page, "#stage") == []


def test_frames(open_page):
    """On the browser's own clock: how many frames a second are drawn is said, and no claim rests on it."""
    page = open_page(has_clock=False)
    page.locator("button.run").click()
    page.wait_for_function(f"{SKY}.inspect() !== null")
    times = page.evaluate(
        """(css) => new Promise((resolve) => {
            const times = [];
            const sky = document.querySelector('#stage').shadowRoot.querySelector('.flight');
            const step = (now) => {
                if (!sky.inspect().isPlaying) return resolve(times);
                times.push(now);
                requestAnimationFrame(step);
            };
            requestAnimationFrame(step);
        })""",
        SKY,
    )
    seconds = (times[-1] - times[0]) / 1000
    print(f"{len(times)} frames in {seconds:.2f} s: {len(times) / seconds:.0f} a second")
    assert 3 < seconds < 15


PANEL = (
    "import fedlab_nb as fl\n"
    "panel = fl.playground(methods=['local', 'fedavg', 'ensemble'], epochs=5, seeds=2, seed=4)\n"
    "panel"
)
SCRUB = """(scrub, value) => {
    scrub.value = value;
    scrub.dispatchEvent(new Event('input'));
}"""


def test_a_panel_flies_what_the_kernels_ledger_says(page, lab, course):
    page.set_viewport_size({"width": 1280, "height": 720})
    open_notebook(page, lab, notebook(course, "flight", PANEL))
    run_all(page)
    stage = page.locator(".fl-stage")
    stage.locator("button.run", has_text="Run 2 seeds").click()
    sky = stage.locator(".flight")
    sky.wait_for()
    stage.get_by_label("Moment of the flight").evaluate(SCRUB, 1500)
    shown = sky.evaluate("(sky) => sky.inspect()")
    assert shown["method"] == "fedavg" and shown["at"] == 1500 and not shown["isPlaying"]
    duration = shown["steps"][-1]["end"]
    sent = [step for step in shown["steps"] if step["hops"]]
    assert [step["legs"][0]["phase"] for step in sent] == ["initial model", "local models"]
    assert count_flying(shown) > 0
    stage.get_by_label("Moment of the flight").evaluate(SCRUB, duration)
    arrived = sky.evaluate("(sky) => sky.inspect().arrived")
    assert arrived == {"up": 262800, "down": 262800, "messages": 20}
    page.locator(".fl-playground.fl-status-done").wait_for()
    expect(stage.locator("section .about").first).to_contain_text("2 seeds")  # nothing waited
    assert barriers(page, ".fl-stage") == []
    stage.get_by_label("Close the flight").click()
    expect(sky).to_be_hidden()
    stage.locator("select.flown").select_option("ensemble")
    assert sky.evaluate("(sky) => sky.inspect().method") == "ensemble"
