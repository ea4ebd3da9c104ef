"""What a person does in JupyterLab, as functions: open a notebook, run it, wait for a state.

They wait for what is seen on the page, never for a fixed time.
"""

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
# Milliseconds that a scenario waits for a state. Only a busy machine needs more than a few thousand.
PATIENCE = 120_000
# True once all visible pictures fill their frames. A panel draws once more when it knows how large its frames are.
FILLED = """() => {
  const frames = [...document.querySelectorAll('.fl-root.fl-live .fl-frame')]
    .filter((frame) => frame.checkVisibility());
  const fills = (frame) => {
    const box = frame.querySelector('.fl-picture')?.shadowRoot?.querySelector('svg')?.viewBox.baseVal;
    return box && Math.abs(frame.clientWidth / frame.clientHeight - box.width / box.height) < 0.02;
  };
  return frames.length > 0 && frames.every(fills);
}"""
# Resolves once nothing has changed for half a second on the page's first panel, nor in its pictures.
QUIET = """() => new Promise((done) => {
  const panel = document.querySelector('.fl-root.fl-live');
  let lastChange = performance.now();
  const observer = new MutationObserver(() => { lastChange = performance.now(); });
  const changes = { subtree: true, childList: true, attributes: true, characterData: true };
  observer.observe(panel, changes);
  for (const picture of panel.querySelectorAll('.fl-picture')) observer.observe(picture.shadowRoot, changes);
  const check = () => {
    if (performance.now() - lastChange < 500) return setTimeout(check, 50);
    observer.disconnect();
    return done(true);
  };
  check();
})"""


def make_scratch_environment(home: Path) -> dict[str, str]:
    """Make the environment variables of a server that finds no settings or files of this machine's user."""
    home.joinpath("home").mkdir()
    variables = ["HOME", "IPYTHONDIR", "FEDLAB_NB_STORE"]
    variables += ["JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"]
    environment = {name: str(home / name.lower()) for name in variables}
    return {**environment, "OMP_NUM_THREADS": "1"}


@contextmanager
def run_server(command: list[str], **options):
    """Run a server within the block; then end it, and all processes that it has started."""
    server = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield server
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:  # a kernel that was just starting can hold it up
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def write_notebook(course: Path, name: str, *code: str) -> str:
    """Write a notebook of these code cells into the course's folder; returns its file name."""
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


def run_all_cells(page: Page) -> None:
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


def find_prompt_of_cell(page: Page, cell: int) -> Locator:
    """Find what JupyterLab writes before a code cell: "[*]:" while it waits or runs, then its number."""
    return page.locator(".jp-CodeCell").nth(cell).locator(".jp-InputArea-prompt")


def save_notebook(page: Page) -> None:
    """Press Ctrl+S, and wait until the notebook is written."""

    def is_of_saving(response) -> bool:
        return response.request.method == "PUT" and "/api/contents/" in response.url

    with page.expect_response(is_of_saving):
        page.keyboard.press("ControlOrMeta+s")
    page.wait_for_function("() => !document.querySelector('.jp-mod-dirty')")


def shut_down_all_kernels(page: Page, address: str) -> list[Thread]:
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


def find_panel(page: Page) -> Locator:
    """Find the live panel of the page."""
    return page.locator(".fl-root.fl-live")


def save_screenshot(page: Page, name: str) -> None:
    """Keep a screenshot where FEDLAB_NB_SCREENSHOTS names a folder, for somebody to look at."""
    folder = os.environ.get("FEDLAB_NB_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder, f"{name}.png")))


def wait_for_status(page: Page, name: str) -> None:
    """Wait until the panel has the class fl-status-NAME."""
    page.locator(f".fl-root.fl-live.fl-status-{name}").wait_for()


def open_view_tab(page: Page, view: str) -> None:
    """Click the tab of the view that has this title."""
    find_panel(page).locator(".fl-tabs button", has_text=view).first.click()


def wait_for_filled_frames(page: Page) -> None:
    """Wait until the panel's pictures have the size of their frames, so that none is drawn again by itself."""
    page.wait_for_function(FILLED)


def wait_for_quiet_panel(page: Page) -> None:
    """Wait until the first panel's pictures fill their frames and nothing on the panel changes any more."""
    wait_for_filled_frames(page)
    page.wait_for_function(QUIET)


def press_mouse_on_handle(page: Page, handle: Locator) -> tuple[float, float]:
    """Press the mouse on a slider's handle, once it stands still and nothing covers it; returns the point."""
    handle.hover()
    box = handle.bounding_box()
    x = box["x"] + box["width"] / 2
    y = box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    return x, y


def press_tab_until_focus_is_on(page: Page, css: str, max_presses: int = 150) -> None:
    """Press Tab until the element that matches `css` has the focus."""
    page.locator(css).wait_for()
    for _ in range(max_presses):
        if page.evaluate("css => document.activeElement.matches(css)", css):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{css} was not reached with {max_presses} presses of Tab")
