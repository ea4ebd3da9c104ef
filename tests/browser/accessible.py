"""What axe-core finds that hinders people who use a screen reader or the keyboard, or who see badly."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def find_barriers(page: Page, css: str) -> list[str]:
    """ "RULE: HTML" for each element within `css` that violates one of axe-core's rules."""
    results = Axe().run(page, css, {"resultTypes": ["violations"]})
    barriers = []
    for rule in results.response["violations"]:
        for node in rule["nodes"]:
            barriers.append(f"{rule['id']}: {node['html'][:160]}")
    return barriers
