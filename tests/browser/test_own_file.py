"""A file of a person's own in a notebook: a card before anything runs, and a menu for each of its guesses."""

import json
import os
from contextlib import contextmanager
from pathlib import Path

import pytest
from lab_steps import notebook, open_notebook, panel, run_all, wait_for_status
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

ROWS = ["patient_id,age,blood,sex,ward,outcome"]
ROWS += [
    f"P{i:03d},{40 + i % 31},{7 + i % 9}.{i % 10},{'fm'[i % 2]},{('north', 'south')[i % 2]},"
    f"{'ill' if i % 5 == 0 else 'well'}"
    for i in range(100)
]


@pytest.fixture
def file(course: Path) -> str:
    course.joinpath("patients.csv").write_text("\n".join(ROWS) + "\n")
    return "patients.csv"


def picture(page, name: str) -> None:
    """Keep a screenshot where FEDLAB_NB_SCREENSHOTS names a folder, for somebody to look at."""
    folder = os.environ.get("FEDLAB_NB_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder, f"{name}.png")))


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_a_notebook_shows_the_card_of_a_file(page, lab, course, file, theme):
    page.set_viewport_size({"width": 1280, "height": 720})
    name = notebook(course, f"look-{theme}", f"import fedlab_nb as fl\nfl.load({file!r})")
    with theme_of_lab(page, lab, theme):
        open_notebook(page, lab, name)
        run_all(page)
    card = page.locator(".fl-card")
    expect(card).to_contain_text("80 training and 20 test")
    expect(card.locator("table").first.locator("tr")).to_have_count(7)
    expect(card).to_contain_text("Left out: patient_id")
    picture(page, f"card-{theme}")


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_a_panel_shows_the_card_before_anything_runs_and_a_menu_changes_the_code(
    page, lab, course, file, theme
):
    page.set_viewport_size({"width": 1280, "height": 720})
    code = "import fedlab_nb as fl\npanel = fl.playground(methods=['fedavg'])\npanel"
    with theme_of_lab(page, lab, theme):
        open_notebook(page, lab, notebook(course, f"choose-{theme}", code))
        run_all(page)
    wait_for_status(page, "idle")
    root = panel(page)
    root.locator(".fl-stage .source select").select_option(label="Choose a file …")
    field = root.locator(".fl-path input")
    field.fill(file)
    field.press("Enter")
    card = root.locator(".fl-card")
    expect(card).to_contain_text("80 training and 20 test")
    expect(root.locator(".fl-code pre")).to_contain_text("dataset='patients.csv'")
    picture(page, f"panel-{theme}")
    menu = card.get_by_label("ward")
    menu.focus()
    menu.select_option("client")
    expect(root.locator(".fl-code pre")).to_contain_text("patients.csv?client=ward")
    expect(card).to_contain_text("Clients (2)")
    expect(card.get_by_label("ward")).to_have_value("client")
    card.get_by_label("outcome").select_option("number")
    expect(root.locator(".fl-stage .progress.alert")).to_contain_text(
        "choose another column as the label first"
    )
    picture(page, f"panel-client-{theme}")


@contextmanager
def theme_of_lab(page, lab: str, theme: str):
    """JupyterLab's theme, as its settings have it; Light again afterwards."""
    set_theme(page, lab, theme)
    try:
        yield
    finally:
        set_theme(page, lab, "Light")


def set_theme(page, lab: str, theme: str) -> None:
    address = f"{lab}/lab/api/settings/@jupyterlab/apputils-extension:themes?token={page.token}"
    settings = {"raw": json.dumps({"theme": f"JupyterLab {theme}"})}
    assert page.request.put(address, data=settings).ok
