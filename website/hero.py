"""Writes the README's moving picture: the page without Python while a hand is at work.

    python website/hero.py notebooks/images/hero.webp

The page is real, and so is what it trains. Its clock is ours: a frame is drawn for every 60 ms of page time, so
that the picture does not depend on how fast the machine is.
"""

import io
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from fedlab_nb.live import page as static

FRAME = 60  # milliseconds of page time
HOLD = 1800  # milliseconds for which a result stands still
SIZE = {"width": 980, "height": 760}
SET_ALPHA = """([value, isLast]) => {
    const slider = document.querySelector('#stage').shadowRoot.querySelector('input.alpha');
    slider.value = value;
    slider.dispatchEvent(new Event('input'));
    if (isLast) slider.dispatchEvent(new Event('change'));
}"""
ADVANCE = """(step) => {
    const root = document.querySelector('#stage').shadowRoot;
    for (const animation of root.getAnimations()) {
        const now = animation.hero ?? 0;
        animation.pause();
        animation.hero = now + step;
        animation.currentTime = animation.hero;
    }
}"""
# On our clock the seconds that the page says would be none of a real machine: they are left out.
HIDE_SECONDS = """() => {
    const style = document.createElement('style');
    style.textContent = '.progress { visibility: hidden; }';
    document.querySelector('#stage').shadowRoot.append(style);
}"""
PROGRESS = "document.querySelector('#stage').shadowRoot.querySelector('.progress').textContent"


class Camera:
    """Frames of the stage, each with the milliseconds for which it is shown."""

    def __init__(self, page: Page) -> None:
        self.page = page
        box = page.locator("#stage").bounding_box()
        assert box is not None
        self.place = {"x": box["x"], "y": box["y"], "width": box["width"], "height": box["height"]}
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []

    def take(self, duration: int = FRAME) -> None:
        """One frame, and on to the next one; a frame like the last one makes that one longer."""
        png = self.page.screenshot(animations="allow", clip=self.place)
        frame = Image.open(io.BytesIO(png)).convert("RGB")
        if self.frames and frame.tobytes() == self.frames[-1].tobytes():
            self.durations[-1] += duration
        else:
            self.frames.append(frame)
            self.durations.append(duration)
        self.page.clock.run_for(FRAME)
        self.page.evaluate(ADVANCE, FRAME)

    def take_many(self, count: int) -> None:
        """So many frames."""
        for _ in range(count):
            self.take()

    def wait_for_result(self) -> None:
        """Until the run has ended; what passes meanwhile is no frame."""
        begin = time.monotonic()
        while not self.page.evaluate(PROGRESS).startswith("Trained"):
            if time.monotonic() - begin > 120:
                raise TimeoutError("The page has not ended its run within two minutes.")
            time.sleep(0.1)
        self.take_many(8)
        self.take(HOLD)

    def save(self, path: Path) -> None:
        """An animated picture that begins again at its end."""
        first, *others = self.frames
        first.save(
            path,
            save_all=True,
            append_images=others,
            duration=self.durations,
            loop=0,
            quality=70,
            method=4,
        )


def act(camera: Camera) -> None:
    """What the hand does: α from everybody alike to strong skew, then one class to a neighbour."""
    page = camera.page
    last = page.evaluate("ALPHAS.length - 1")
    goal = page.evaluate("ALPHAS.indexOf(0.1)")
    page.evaluate(SET_ALPHA, [last, True])
    camera.take_many(8)
    camera.wait_for_result()
    for value in range(last - 1, goal - 1, -1):
        page.evaluate(SET_ALPHA, [value, value == goal])
        camera.take_many(2)
    camera.take_many(6)
    camera.wait_for_result()
    box = page.locator("canvas.wall").bounding_box()
    assert box is not None
    column = box["width"] / 10
    y = box["y"] + box["height"] - 20
    page.mouse.move(box["x"] + 5.5 * column, y)
    page.mouse.down()
    for step in range(9):
        page.mouse.move(box["x"] + (5.5 - 0.125 * step) * column, y - 4 * step)
        camera.take()
    page.mouse.up()
    camera.take_many(8)
    camera.wait_for_result()


@contextmanager
def open_page() -> Iterator[Page]:
    """The page, written anew, with a clock that moves when a frame is taken."""
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        address = static.write_page(Path(folder, "page.html")).as_uri()
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.clock.install(time=0)
        page.goto(address)
        page.clock.pause_at(60_000)
        page.clock.run_for(500)
        page.evaluate(HIDE_SECONDS)
        yield page
        browser.close()


def main(path: str) -> None:
    """Write the picture to `path`."""
    with open_page() as page:
        camera = Camera(page)
        act(camera)
        camera.save(Path(path))
    print(f"{path}: {len(camera.frames)} frames, {Path(path).stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
