"""What a person does in JupyterLab, as functions: open a notebook, run it, wait for a state. No fixed pauses."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def open_notebook(page: Page, address: str, name: str) -> None:
    """Open `name` in a fresh workspace and wait until its cells are there."""
    page.goto(f"{address}/lab/tree/{name}?reset&token={page.token}")
    page.locator(".jp-NotebookPanel .jp-Cell").first.wait_for()


def run_all(page: Page) -> None:
    """Wait for the kernel, then Run > Run All Cells."""
    page.locator(".jp-StatusBar-TextItem", has_text="| Idle").wait_for()
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def end_kernels(page: Page, address: str) -> None:
    """Shut down every kernel of the server."""
    for session in page.context.request.get(f"{address}/api/sessions?token={page.token}").json():
        page.context.request.delete(f"{address}/api/sessions/{session['id']}?token={page.token}")


def panel(page: Page) -> Locator:
    """The live playground of the page."""
    return page.locator(".fl-playground")


def wait_for_status(page: Page, name: str) -> None:
    """Until the panel has the class fl-status-NAME."""
    page.locator(f".fl-playground.fl-status-{name}").wait_for()


def show(page: Page, view: str) -> None:
    """Click the tab of a view."""
    panel(page).locator(".fl-tabs button", has_text=view).first.click()


def choose_tab(tabs: Locator, title: str) -> None:
    """Choose a tab in its line, or in the menu of those that have no room there."""
    button = tabs.locator("button").get_by_text(title, exact=True)
    button.click() if button.is_visible() else tabs.locator(".fl-more-tabs").select_option(label=title)


def tab_to(page: Page, css: str, most: int = 150) -> None:
    """Press Tab until the element that matches `css` has the focus."""
    for _ in range(most):
        if page.evaluate("css => document.activeElement.matches(css)", css):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{css} was not reached with {most} presses of Tab")
