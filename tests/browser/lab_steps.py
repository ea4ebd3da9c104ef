"""What a person does in JupyterLab, as functions: open a notebook, run it, wait for a state. No fixed pauses."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from urllib.request import Request, urlopen

import nbformat
from playwright.sync_api import Locator, Page, TimeoutError

TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
PATIENCE = 120_000  # milliseconds that a scenario waits for a state; only a busy machine needs more than a few thousand
# The pictures that are seen fill their frames. A panel draws once more when it knows how large its frames are.
FILLED = """() => {
  const frames = [...document.querySelectorAll('.fl-root.fl-live .fl-frame')].filter((one) => one.checkVisibility());
  const fills = (frame) => {
    const box = frame.querySelector('.fl-picture')?.shadowRoot?.querySelector('svg')?.viewBox.baseVal;
    return box && Math.abs(frame.clientWidth / frame.clientHeight - box.width / box.height) < 0.02;
  };
  return frames.length > 0 && frames.every(fills);
}"""
# For half a second nothing has changed on the page's first panel, nor in its pictures.
QUIET = """() => new Promise((done) => {
  const panel = document.querySelector('.fl-root.fl-live');
  let last = performance.now();
  const watch = new MutationObserver(() => { last = performance.now(); });
  const what = { subtree: true, childList: true, attributes: true, characterData: true };
  watch.observe(panel, what);
  for (const picture of panel.querySelectorAll('.fl-picture')) watch.observe(picture.shadowRoot, what);
  const look = () => {
    if (performance.now() - last < 500) return setTimeout(look, 50);
    watch.disconnect();
    return done(true);
  };
  look();
})"""


def scratch(home: Path) -> dict[str, str]:
    """Environment of a server that finds nothing of this machine's user."""
    home.joinpath("home").mkdir()
    folders = ("HOME", "IPYTHONDIR", "FEDLAB_NB_STORE")
    folders += ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    environment = {name: str(home / name.lower()) for name in folders}
    return {**environment, "OMP_NUM_THREADS": "1"}


@contextmanager
def running(command: list[str], **options):
    """A server that runs within the block, with all processes that it has started."""
    server = subprocess.Popen(command, start_new_session=True, **options)
    yield server
    os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:  # a kernel that was just starting can hold it up
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def notebook(course: Path, name: str, *code: str) -> str:
    """A notebook of these code cells in the course's folder; returns its file name."""
    cells = [nbformat.v4.new_code_cell(text) for text in code]
    content = nbformat.v4.new_notebook(cells=cells)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    content.metadata["kernelspec"] = kernel
    nbformat.write(content, course / f"{name}.ipynb")
    return f"{name}.ipynb"


def open_notebook(page: Page, address: str, name: str) -> None:
    """Open `name` in a fresh workspace and wait until its cells are there."""
    page.goto(f"{address}/lab/tree/{name}?reset&token={page.token}")
    page.locator(".jp-NotebookPanel .jp-Cell").first.wait_for()


def run_all(page: Page) -> None:
    """Wait for the kernel, then Run > Run All Cells; once more if the menu closes, because the page still loads."""
    page.locator(".jp-StatusBar-TextItem", has_text="| Idle").wait_for()
    for _ in range(3):
        page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
        with suppress(TimeoutError):
            return page.get_by_role("menuitem", name="Run All Cells", exact=True).click(
                timeout=20_000
            )
        page.keyboard.press("Escape")
    raise AssertionError("the menu Run does not stay open")


def prompt(page: Page, cell: int) -> Locator:
    """What stands before a code cell: "[*]:" while it waits or runs, then its number."""
    return page.locator(".jp-CodeCell").nth(cell).locator(".jp-InputArea-prompt")


def save(page: Page) -> None:
    """Ctrl+S, until the notebook is written."""

    def is_of_saving(response) -> bool:
        return response.request.method == "PUT" and "/api/contents/" in response.url

    with page.expect_response(is_of_saving):
        page.keyboard.press("ControlOrMeta+s")
    page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")


def end_kernels(page: Page, address: str) -> list[Thread]:
    """Shut down every kernel of the server, each in a thread, as a kernel takes a second and a half to go."""
    sessions = page.context.request.get(f"{address}/api/sessions?token={page.token}").json()

    def end(url: str) -> None:
        with suppress(OSError):  # the server itself ended meanwhile
            urlopen(Request(url, method="DELETE")).close()

    urls = [f"{address}/api/sessions/{session['id']}?token={page.token}" for session in sessions]
    threads = [Thread(target=end, args=[url]) for url in urls]
    for thread in threads:
        thread.start()
    return threads


def panel(page: Page) -> Locator:
    """The live panel of the page."""
    return page.locator(".fl-root.fl-live")


def wait_for_status(page: Page, name: str) -> None:
    """Until the panel has the class fl-status-NAME."""
    page.locator(f".fl-root.fl-live.fl-status-{name}").wait_for()


def show(page: Page, view: str) -> None:
    """Click the tab of a view."""
    panel(page).locator(".fl-tabs button", has_text=view).first.click()


def settled(page: Page) -> None:
    """Until the panel's picture has the size of its frame, so that it is not drawn anew by itself."""
    page.wait_for_function(FILLED)


def rest(page: Page) -> None:
    """Until the first panel's picture fills its frame and nothing on the panel changes any more."""
    settled(page)
    page.wait_for_function(QUIET)


def grab(page: Page, handle: Locator) -> tuple[float, float]:
    """Press the mouse on a slider's handle, once it stands still and nothing lies over it; returns where."""
    handle.hover()
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    return x, y


def tab_to(page: Page, css: str, most: int = 150) -> None:
    """Press Tab until the element that matches `css` has the focus."""
    page.locator(css).wait_for()
    for _ in range(most):
        if page.evaluate("css => document.activeElement.matches(css)", css):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{css} was not reached with {most} presses of Tab")
