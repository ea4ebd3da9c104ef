"""Writes a film of one method's flight: what it sends on the page without Python, frame by frame.

    python website/flight.py FILE.webp [METHOD]

As in `hero.py` the page is real and its clock is ours, so that the film is the same on every machine. METHOD: fedavg
(if none is named), ensemble, fens, afl or gauss.
"""

import sys
import time
from pathlib import Path

from hero import FRAME, HOLD, Camera, open_page
from playwright.sync_api import Page

FLIGHT = "document.querySelector('#stage').shadowRoot.querySelector('.flight')"


def act(camera: Camera, page: Page, method: str) -> None:
    """Run, let the first flight pass, and film that of `method`."""
    page.locator("button.run").click()
    while page.evaluate(f"{FLIGHT}.inspect() === null"):
        time.sleep(0.1)
    page.keyboard.press("Escape")
    page.clock.run_for(2000)  # bars and cards come to rest
    page.locator("select.flown").select_option(method)
    duration = page.evaluate(f"{FLIGHT}.inspect().steps.at(-1).end")
    camera.take_many(duration // FRAME + 2)  # and two of its end
    camera.take(HOLD)


def main(path: str, method: str = "fedavg") -> None:
    """Write the film to `path`."""
    with open_page() as page:
        camera = Camera(page)
        act(camera, page, method)
        camera.save(Path(path))
    print(f"{path}: {len(camera.frames)} frames, {Path(path).stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
