"""Pictures follow a hand: a drag, a race that plays, tabs while t-SNE computes. The bounds are those of a loaded
machine; on one that calculates too slowly at present, a bound that is missed is skipped, with the times. With
FEDLAB_NB_FEEL=1 it prints the times themselves.
"""

import os
import re
from itertools import count
from statistics import median

import psutil
import pytest
from feel import (
    STAGE_DRAG,
    STAGE_RELEASE,
    STAGE_STOP,
    TAB,
    assert_in_time_unless_machine_is_slow,
    drag_slider_and_time_pictures,
    measure_frame_rate_of_race,
    summarise_milliseconds,
)
from lab_steps import (
    open_notebook,
    open_view_tab,
    run_all_cells,
    wait_for_quiet_panel,
    write_notebook,
)
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
EXACT = bool(os.environ.get("FEDLAB_NB_FEEL"))  # the benchmark: as many changes as are asked for


def run_notebook_and_get_kernel_process(page, lab, course, code):
    """Run a notebook with this panel; returns the process of its kernel."""
    name = write_notebook(
        course, "feel", "import os, fedlab_nb as fl\nprint('kernel', os.getpid())", code
    )
    open_notebook(page, lab, name)
    run_all_cells(page)
    page.locator(".fl-root.fl-live .fl-frame svg").first.wait_for()
    page.wait_for_function("document.querySelector('.fl-root.fl-live').matches('.fl-status-idle')")
    wait_for_quiet_panel(page)
    page.evaluate(
        "() => new Promise(done => requestIdleCallback(done, {timeout: 10000}))"
    )  # a fresh page does more
    words = page.locator(
        ".jp-OutputArea-output", has_text=re.compile(r"^\s*kernel \d+")
    ).first.inner_text()
    return psutil.Process(int(words.split()[-1]))


def measure_again_if_not_enough(measure, is_enough):
    """Return what `measure` gives, once more if it is not enough: another process may have held the machine."""
    got = measure()
    return got if is_enough(got) else measure()


def print_measured_numbers(what, numbers):
    load = os.getloadavg()[0]
    text = ", ".join(
        f"{k} {v:.0f}" if isinstance(v, float) else f"{k} {v}" for k, v in numbers.items()
    )
    print(f"\n  {what}: {text} (load {load:.1f})")


def run_playground_and_get_kernel_process(page, lab, course, options):
    """Run a notebook until its playground has drawn its piles; returns the process of its kernel."""
    start = "import os, fedlab_nb as fl\nprint('kernel', os.getpid())"
    name = write_notebook(course, "feel", start, f"fl.playground({options})")
    open_notebook(page, lab, name)
    run_all_cells(page)
    page.locator(".fl-stage canvas.wall").wait_for()
    page.locator(".fl-stage button.run", has_text="Run").wait_for()
    page.wait_for_timeout(1500)  # what comes once all is at rest, such as the cost, is there
    words = page.locator(
        ".jp-OutputArea-output", has_text=re.compile(r"^\s*kernel \d+")
    ).first.inner_text()
    return psutil.Process(int(words.split()[-1]))


@pytest.mark.parametrize("clients", [10, 100])
def test_piles_follow_the_slider(page, lab, course, clients):
    data = "" if clients == 10 or not EXACT else ", dataset='mnist:5k'"
    run_playground_and_get_kernel_process(page, lab, course, f"clients={clients}{data}")
    arguments = {"count": 200 if EXACT else 20, "pause": 20}
    page.evaluate(STAGE_DRAG, {**arguments, "count": 20})
    got = measure_again_if_not_enough(
        lambda: summarise_milliseconds(page.evaluate(STAGE_DRAG, arguments)),
        lambda got: got["median"] < 250,
    )
    print_measured_numbers(f"α to piles of {clients} clients, ms", got)
    assert_in_time_unless_machine_is_slow(got["median"] < 250, got)


def test_one_seed_is_there_soon_after_the_hand_lets_go(page, lab, course):
    kernel = run_playground_and_get_kernel_process(page, lab, course, "clients=10")
    first = page.evaluate(STAGE_RELEASE)
    print_measured_numbers("letting go to bars, first time, ms", {"first": first})
    page.evaluate(STAGE_RELEASE)  # the first runs fill caches
    page.evaluate(STAGE_RELEASE)
    before = kernel.memory_info().rss
    times = [page.evaluate(STAGE_RELEASE) for _ in range(20 if EXACT else 5)]
    got = summarise_milliseconds(times)
    print_measured_numbers("letting go to bars, ms", got)
    if EXACT:
        page.evaluate(STAGE_DRAG, {"count": 500, "pause": 5})
    grown = (kernel.memory_info().rss - before) / 2**20
    print_measured_numbers("memory after these, MB", {"grown": grown})
    assert grown < (50 if EXACT else 60)
    assert_in_time_unless_machine_is_slow(got["median"] < 6000, got)


def test_stop_ends_a_long_run(page, lab, course):
    run_playground_and_get_kernel_process(
        page, lab, course, "clients=10, seeds=3, epochs=400, methods=['fedavg', 'ensemble']"
    )
    times = []
    for _ in range(5 if EXACT else 1):
        page.locator(".fl-stage button.run", has_text="Run").click()
        page.locator(".fl-stage button.run", has_text="Stop").wait_for()
        page.wait_for_timeout(1500)  # it trains
        times.append(page.evaluate(STAGE_STOP))
        page.locator(".fl-stage button.run", has_text="Run").wait_for()
    print_measured_numbers("stop, ms", {"median": median(times), "most": max(times)})
    assert_in_time_unless_machine_is_slow(median(times) < 1000, times)


# What a page still holds, garbage collected: {kind: how many}.
HELD = {
    "stages": ("HTMLCanvasElement", "all => all.filter((one) => one.matches('.wall')).length"),
    "pictures": ("SVGSVGElement", "all => all.filter((one) => one.getRootNode().host?.matches('.fl-picture')).length"),
    "sizes watched": ("ResizeObserver", "all => all.length"),
    "workers": ("Worker", "all => all.length"),
    "frames": ("HTMLIFrameElement", "all => all.length"),
}  # fmt: skip


def count_objects_held_by_page(page):
    devtools = page.context.new_cdp_session(page)
    devtools.send("HeapProfiler.collectGarbage")
    counts = {}
    for kind, (name, counter) in HELD.items():
        prototype = devtools.send("Runtime.evaluate", {"expression": f"{name}.prototype"})
        found = devtools.send(
            "Runtime.queryObjects", {"prototypeObjectId": prototype["result"]["objectId"]}
        )
        call = {
            "objectId": found["objects"]["objectId"],
            "functionDeclaration": f"function () {{ return ({counter})(this); }}",
            "returnByValue": True,
        }
        counts[kind] = devtools.send("Runtime.callFunctionOn", call)["result"]["value"]
    devtools.detach()
    return counts


def test_panels_that_are_closed_leave_nothing(page, lab, course):
    """Two panels made, shown and closed load the modules; after twenty more, page and kernel are as before.

    JupyterLab itself holds on to the empty elements of closed widgets until the kernel ends.
    """
    many = 20 if EXACT else 5
    start = (
        "import threading, time, fedlab_nb as fl\nfrom IPython.display import clear_output, display\n"
        "def show_and_close(count):\n"
        "    for _ in range(count):\n"
        "        panel = fl.playground()\n        display(panel)\n"
        "        panel.wait(30)\n        time.sleep(0.5)\n        panel.close()\n"
        "        clear_output()\n"  # its last picture would stay
        "    print('closed', count, 'threads', threading.active_count())"
    )
    each = f"count = {many} if 'count' in globals() else 2\nshow_and_close(count)"
    open_notebook(page, lab, write_notebook(course, "feel", start, each))
    words = page.locator(".jp-OutputArea-output", has_text=re.compile(r"^\s*closed \d+"))
    seen = []
    threads = []
    for closed in (2, many):
        run_all_cells(page)
        expect(words.filter(has_text=f"closed {closed} ")).to_have_count(1)
        page.wait_for_timeout(2000)
        seen.append(count_objects_held_by_page(page))
        threads.append(int(words.first.inner_text().split()[-1]))
    before, after = seen
    grown = {kind: after[kind] - before[kind] for kind in before}
    print_measured_numbers(f"after {many} panels", {**grown, "threads": threads[1] - threads[0]})
    assert threads[1] <= threads[0]
    assert grown == dict.fromkeys(HELD, 0)


CUT = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)"


def test_a_race_plays(page, lab, course):
    few = "'fedavg_multi.rounds': 5, 'fedadam.rounds': 5"
    run_notebook_and_get_kernel_process(
        page, lab, course, f"fl.race(clients=4, alpha=0.3, seeds=1, epochs=4, **{{{few}}})"
    )
    panel = page.locator(".fl-root.fl-live")
    panel.locator("button.fl-run").click()
    page.locator(".fl-root.fl-live.fl-status-done").wait_for()
    panel.locator(".fl-main > .fl-tabs button", has_text="The race").click()
    race = panel.locator(".fl-view-race .fl-scene")
    expect(race.locator("canvas.plane")).to_be_visible()
    inspect = "(scene) => scene.inspect()"
    end = race.evaluate(inspect)
    assert not end["isPlaying"] and all(end["counts"])  # it stands at its end
    expect(race.locator(".lane-name span", has_text="FedAvg, T rounds")).to_be_visible()
    assert race.locator(".lane-name span").evaluate_all(CUT) == []
    race.get_by_role("button", name="Play").click()
    playing = measure_again_if_not_enough(
        lambda: measure_frame_rate_of_race(page, 3), lambda got: got["rate"] > 20
    )
    print_measured_numbers("race, pictures a second", playing)
    race.get_by_label("Moment of the race").press("Home")
    start = race.evaluate(inspect)
    assert start["at"] == 0 and not start["isPlaying"] and not any(start["counts"])
    expect(race.locator(".race-words")).to_contain_text("no method has a global model yet")
    race.get_by_role("button", name="Step forward").click()
    assert sum(race.evaluate(inspect)["counts"]) > 0
    race.get_by_role("button", name="Against seconds").click()
    assert race.evaluate(inspect)["axis"] == "seconds"
    race.get_by_role("button", name="Play").click()
    page.emulate_media(reduced_motion="reduce")
    page.wait_for_timeout(200)
    got = measure_frame_rate_of_race(page, 2)
    print_measured_numbers("race with reduced motion", got)
    assert got["frames"] == 0 and not race.evaluate(inspect)["isPlaying"]
    expect(race.get_by_role("button", name="Play")).to_be_hidden()
    before = race.evaluate(inspect)["at"]
    race.get_by_role("button", name="Step forward").click()
    assert race.evaluate(inspect)["at"] > before
    assert_in_time_unless_machine_is_slow(playing["rate"] > 20, playing)


# Milliseconds from each move of a slider to the frame that shows what the weights are worth.
WEIGHTS = """async ({ count }) => {
  const scene = document.querySelector('.fl-root.fl-live .fl-view-hand .fl-scene');
  const slider = scene.shadowRoot.querySelector('input[type=range]');
  const times = [];
  for (let i = 0; i < count; i += 1) {
    const before = scene.inspect().drawn;
    const start = performance.now();
    slider.value = (i % 50) / 50;
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    await new Promise(requestAnimationFrame);
    if (scene.inspect().drawn === before) throw new Error('nothing was drawn');
    times.push(performance.now() - start);
  }
  slider.dispatchEvent(new Event('change', { bubbles: true }));
  return times;
}"""


def test_weights_by_hand_follow_their_sliders(page, lab, course):
    """The browser adds up by itself, in a frame or two; the kernel's sentence follows when the hand rests."""
    few = "'coboosting.epochs': 4, 'coboosting.images': 16, 'coboosting.generator_steps': 2"
    run_notebook_and_get_kernel_process(
        page, lab, course, f"fl.lab('coboosting', seeds=1, epochs=2, methods=[], **{{{few}}})"
    )
    page.locator(".fl-root.fl-live button.fl-run").click()
    page.locator(".fl-root.fl-live.fl-status-done").wait_for()
    open_view_tab(page, "Choose the weights")
    view = page.locator(".fl-view-hand")
    view.locator(".hand-clients li").first.wait_for()
    exact = view.locator(".fl-sentence .fl-exact")
    expect(exact).to_have_attribute("title", re.compile(r"0 ± 0 points"))
    times = page.evaluate(WEIGHTS, {"count": 100 if EXACT else 20})
    middle = sorted(times)[len(times) // 2]
    print_measured_numbers("weights by hand, ms", {"median": middle, "longest": max(times)})
    expect(exact).not_to_have_attribute("title", re.compile(r"0 ± 0 points"))
    view.locator(".hand-clients button").nth(3).click()
    owner = page.locator(".fl-strip .owners button").nth(3)
    expect(owner).to_have_attribute("aria-expanded", "true")
    owner.click()
    expect(view.locator(".hand-clients li").nth(3)).not_to_have_class("chosen")
    assert_in_time_unless_machine_is_slow(middle < 50, times)


def test_who_holds_what_follows_a_drag_memory_stays_and_tabs_answer_while_a_map_is_made(
    page, lab, course
):
    """Every run has another α, so that none is only remembered."""
    quick = "methods=['fedavg', 'ensemble', 'fens', 'fedlpa', 'local', 'centralized'], seeds=1, epochs=2"
    kernel = run_notebook_and_get_kernel_process(
        page, lab, course, f"fl.comparison({'' if EXACT else quick})"
    )
    runs, drags = (20, 500) if EXACT else (2, 30)

    numbers = count(1)

    def run():
        page.locator(".fl-alpha [role=slider]").press("ArrowRight")
        page.locator(".fl-run:not([disabled])").click()
        page.locator(".fl-phase", has_text=f"Run {next(numbers)} is done").wait_for()

    run(), run()
    open_view_tab(page, "Who holds what")
    page.locator(".fl-view-partition .fl-frame svg").wait_for()
    wait_for_quiet_panel(page)
    before = kernel.memory_info().rss
    for _ in range(runs):
        run()
    open_view_tab(page, "Who holds what")
    page.locator(".fl-view-partition .fl-frame svg").wait_for()
    wait_for_quiet_panel(page)
    middle = kernel.memory_info().rss
    got = drag_slider_and_time_pictures(page, count=drags)
    wait_for_quiet_panel(page)
    page.wait_for_timeout(1500)  # the panel gives back what a long drag has used
    grown = (kernel.memory_info().rss - before) / 2**20
    print_measured_numbers(
        "memory, MB", {"runs": (middle - before) / 2**20, "runs and drags": grown}
    )
    print_measured_numbers("α to picture, ms", got)
    assert got["seen"] >= 0.9 * drags
    assert grown < (50 if EXACT else 40)

    open_view_tab(page, "Features")
    page.locator(".fl-compare.fl-mapping").wait_for()
    titles = (
        "Accuracy",
        "Who holds what",
        "Communication",
        "Clients and classes",
    )  # the last two are not drawn yet
    views = ("accuracy", "partition", "communication", "classes")
    tabs = [
        page.evaluate(TAB, {"title": title, "view": view})
        for title, view in zip(titles, views, strict=True)
    ]
    print_measured_numbers("tabs, ms", dict(zip(titles, tabs, strict=True)))
    # matplotlib draws the whole picture at each step: 0.2 s on a machine of its own, half a second on a loaded one
    assert_in_time_unless_machine_is_slow(got["median"] < (250 if EXACT else 1000), got)
    assert_in_time_unless_machine_is_slow(all(time < 3000 for time in tabs), tabs)
