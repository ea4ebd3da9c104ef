"""How fast a panel answers, measured within the page: from an input to the frame in which its answer is seen."""

from __future__ import annotations

import time
from statistics import median, quantiles

import pytest
from playwright.sync_api import Page

USUAL_LOOP_SECONDS = 0.06  # a million steps of Python on the machines that the bounds were set on
TOO_SLOW = 1.4  # times slower: nothing can be said about the bounds

# Times from a key press on a slider to the frame with the new picture, in milliseconds. The slider goes up and down
# between its ends.
DRAG = """async ({css, view, count, pause}) => {
  const panel = document.querySelector('.fl-root.fl-live'), frame = () => new Promise(requestAnimationFrame);
  const handle = panel.querySelector(css + ' .noUi-handle');
  const root = panel.querySelector(`.fl-view-${view} .fl-picture`).shadowRoot;
  const end = (name) => Number(handle.getAttribute('aria-value' + name));
  const times = [];
  let key = 'ArrowRight';
  for (let i = 0; i < count; i += 1) {
    if (end('now') >= end('max') - 1e-6) key = 'ArrowLeft';
    if (end('now') <= end('min') + 1e-6) key = 'ArrowRight';
    const changed = new Promise((done) => {
      const late = setTimeout(() => done(false), 3000);
      const watch = new MutationObserver(() => { watch.disconnect(); clearTimeout(late); done(true); });
      watch.observe(root, {subtree: true, childList: true, attributes: true});
    });
    const start = performance.now();
    handle.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
    if (await changed) {
      await frame();
      times.push(performance.now() - start);
    }
    await new Promise((done) => setTimeout(done, pause + 20 * Math.random()));
  }
  return times;
}"""
# Frames in which a race that plays shows another moment, and the longest time between two of them.
WATCH = """({seconds}) => new Promise((done) => {
  const scene = document.querySelector('.fl-root.fl-live .fl-view-race .fl-scene');
  let frames = 0, last = 0, longest = 0, first = 0, end = 0, at = scene.inspect().at;
  const step = (now) => {
    const shown = scene.inspect().at;
    if (shown !== at) {
      if (last) longest = Math.max(longest, now - last);
      first ||= now;
      last = now;
      frames += 1;
    }
    at = shown;
    end ||= now + 1000 * seconds;
    if (now < end) requestAnimationFrame(step);
    else done({frames, longest, seconds: (last - first) / 1000});
  };
  requestAnimationFrame(step);
})"""
# Milliseconds from a click on a tab to the frame in which its view shows a picture.
TAB = """async ({title, view}) => {
  const panel = document.querySelector('.fl-root.fl-live');
  const tabs = [...panel.querySelectorAll('.fl-main > .fl-tabs button')];
  const button = tabs.find((one) => one.textContent.trim() === title);
  const start = performance.now();
  button.click();
  for (;;) {
    await new Promise(requestAnimationFrame);
    const box = panel.querySelector(`.fl-view-${view}`), picture = box.querySelector('.fl-picture');
    if (box.offsetParent && picture && !picture.hidden && picture.shadowRoot.querySelector('svg')) break;
    if (performance.now() - start > 20000) return null;
  }
  return performance.now() - start;
}"""
# Milliseconds from a click on Stop to the panel's word that it has stopped.
STOP = """() => new Promise((done) => {
  const panel = document.querySelector('.fl-root.fl-live'), start = performance.now();
  new MutationObserver(() => {
    if (panel.matches('.fl-status-stopped')) done(performance.now() - start);
  }).observe(panel, {attributes: true});
  panel.querySelector('.fl-stop').click();
})"""
# Milliseconds from a click on the stage's Stop to the kernel's word that nothing trains any more.
STAGE_STOP = """() => new Promise((done) => {
  const panel = document.querySelector('.fl-root.fl-live');
  const button = panel.querySelector('.fl-stage').shadowRoot.querySelector('button.run');
  if (button.textContent !== 'Stop') throw new Error(`nothing to stop: ${button.textContent}`);
  const start = performance.now();
  new MutationObserver(() => {
    if (panel.matches('.fl-status-stopped')) done(performance.now() - start);
  }).observe(panel, {attributes: true});
  button.click();
})"""

# The stage. Milliseconds from each step of the α slider to the frame in which the piles are other ones.
STAGE_DRAG = """async ({count, pause}) => {
  const root = document.querySelector('.fl-stage').shadowRoot;
  const slider = root.querySelector('input.alpha');
  const frame = () => new Promise(requestAnimationFrame);
  const read = () => Array.from(root.querySelectorAll('.owners button'), (one) => one.ariaLabel.split(';')[0]).join();
  const times = [];
  let step = 1;
  for (let i = 0; i < count; i += 1) {
    if (Number(slider.value) + step > Number(slider.max) || Number(slider.value) + step < 0) step = -step;
    const before = read();
    const start = performance.now();
    slider.value = Number(slider.value) + step;
    slider.dispatchEvent(new Event('input', {bubbles: true}));
    do await frame(); while (read() === before && performance.now() - start < 3000);
    times.push(performance.now() - start);
    await new Promise((done) => setTimeout(done, pause + 20 * Math.random()));
  }
  return times;
}"""
# Milliseconds from letting go of the α slider, a step further, to the frame in which the bars are of that setting.
STAGE_RELEASE = """async () => {
  const root = document.querySelector('.fl-stage').shadowRoot;
  const slider = root.querySelector('input.alpha');
  const body = root.querySelector('.stage');
  const frame = () => new Promise(requestAnimationFrame);
  const step = Number(slider.value) < Number(slider.max) ? 1 : -1;
  slider.value = Number(slider.value) + step;
  slider.dispatchEvent(new Event('input', {bubbles: true}));
  const start = performance.now();
  slider.dispatchEvent(new Event('change', {bubbles: true}));
  await frame();
  const isThere = () => !body.matches('.waiting') && root.querySelector('.bar b').textContent !== '–';
  while (!isThere() && performance.now() - start < 20000) await frame();
  return performance.now() - start;
}"""


def summarise_milliseconds(times: list[float]) -> dict:
    """Return {"median", "p95", "most"} of times in milliseconds."""
    return {"median": median(times), "p95": quantiles(times, n=20)[-1], "most": max(times)}


def drag_slider_and_time_pictures(
    page: Page, css: str = ".fl-alpha", view: str = "partition", count: int = 200, pause: int = 20
) -> dict:
    """Move a slider by its keys; returns {"median", "p95", "most": ms to the picture, "seen": changes seen}."""
    times = page.evaluate(DRAG, {"css": css, "view": view, "count": count, "pause": pause})
    return {**summarise_milliseconds(times), "seen": len(times)}


def measure_frame_rate_of_race(page: Page, seconds: float) -> dict:
    """Return {"rate": frames a second of a race that plays by itself, "longest": ms of the longest gap, …}."""
    got = page.evaluate(WATCH, {"seconds": seconds})
    return {"rate": got["frames"] / max(got["seconds"], 1e-9), "longest": got["longest"], **got}


def assert_in_time_unless_machine_is_slow(is_in_time: bool, numbers: object) -> None:
    """Fail if it is not, or skip the test on a machine that is too slow at present to judge it.

    It comes last in a test, as what follows would be skipped with it.
    """
    if not is_in_time:
        slowness = measure_slowness()
        if slowness > TOO_SLOW:
            pytest.skip(
                f"{numbers}: not judged, this machine calculates {slowness:.1f} times slower than usual"
            )
    assert is_in_time, numbers


def measure_slowness() -> float:
    """Measure how many times slower than usual this machine calculates at present: the median of five loops."""
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        total = 0
        for number in range(1_000_000):
            total += number
        seconds.append(time.perf_counter() - start)
    return median(seconds) / USUAL_LOOP_SECONDS
