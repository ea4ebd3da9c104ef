"""What a person does in JupyterLab, as functions: open a notebook, run it, wait for a state. No fixed pauses."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def open_notebook(page: Page, address: str, name: str, token: str) -> None:
    """Open `name` in a fresh workspace and wait until its cells are there."""
    page.goto(f"{address}/lab/tree/{name}?reset&token={token}")
    page.locator(".jp-NotebookPanel .jp-Cell").first.wait_for()


def menu(page: Page, *names: str) -> None:
    """Choose a menu entry by the path of its names."""
    page.locator(".lm-MenuBar-itemLabel", has_text=names[0]).first.click()
    for name in names[1:]:
        page.get_by_role("menuitem", name=name, exact=True).click()


def run_all(page: Page) -> None:
    """Wait for the kernel, then Run > Run All Cells."""
    page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').first.wait_for()
    menu(page, "Run", "Run All Cells")


def panel(page: Page, number: int = 0) -> Locator:
    """A live playground of the page."""
    return page.locator(".fl-playground").nth(number)


def wait_for_status(page: Page, *names: str, number: int = 0, timeout: float = 60_000) -> None:
    """Until the panel has one of the classes fl-status-NAME."""
    which = ", ".join(f".fl-playground.fl-status-{name}" for name in names)
    page.wait_for_function(
        "([which, n]) => document.querySelectorAll('.fl-playground')[n]?.matches(which)", arg=[which, number], timeout=timeout
    )


def show(page: Page, number: int, view: str) -> None:
    """Click the tab of a view."""
    panel(page, number).locator(".fl-tabs button", has_text=view).first.click()
