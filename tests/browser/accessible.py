"""What stands in the way of a screen reader, of a keyboard or of weak eyes, as axe-core sees it."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def barriers(page: Page, css: str) -> list[str]:
    """axe-core's rule and the element, for each that breaks one within `css`."""
    found = []
    for rule in Axe().run(page, css, {"resultTypes": ["violations"]}).response["violations"]:
        for node in rule["nodes"]:
            found.append(f"{rule['id']}: {node['html'][:160]}")
    return found
