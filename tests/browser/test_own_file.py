"""A person's own file in a notebook: its card before anything runs, with a menu for each column's role."""

import json
from contextlib import contextmanager
from pathlib import Path

import pytest
from lab_steps import (
    find_panel,
    open_notebook,
    run_all_cells,
    save_screenshot,
    wait_for_status,
    write_notebook,
)
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
    """Name of a table in the course's folder: 100 patients, of whom each fifth is ill."""
    course.joinpath("patients.csv").write_text("\n".join(ROWS) + "\n")
    return "patients.csv"


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_a_notebook_shows_the_card_of_a_file(page, lab, course, file, theme):
    page.set_viewport_size({"width": 1280, "height": 720})
    name = write_notebook(course, f"card-{theme}", f"import fedlab_nb as fl\nfl.load({file!r})")
    with use_lab_theme(page, lab, theme):
        open_notebook(page, lab, name)
        run_all_cells(page)
    card = page.locator(".fl-card")
    expect(card).to_contain_text("80 training and 20 test")
    expect(card.locator("table").first.locator("tr")).to_have_count(7)
    expect(card).to_contain_text("Left out: patient_id")
    save_screenshot(page, f"card-{theme}")


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_a_panel_shows_the_card_before_anything_runs_and_a_menu_changes_the_code(
    page, lab, course, file, theme
):
    page.set_viewport_size({"width": 1280, "height": 720})
    code = "import fedlab_nb as fl\npanel = fl.playground(methods=['fedavg'])\npanel"
    with use_lab_theme(page, lab, theme):
        open_notebook(page, lab, write_notebook(course, f"panel-{theme}", code))
        run_all_cells(page)
    wait_for_status(page, "idle")
    root = find_panel(page)
    root.locator(".fl-stage .source select").select_option(label="Choose a file …")
    field = root.locator(".fl-path input")
    field.fill(file)
    field.press("Enter")
    card = root.locator(".fl-card")
    expect(card).to_contain_text("80 training and 20 test")
    expect(root.locator(".fl-code pre")).to_contain_text("dataset='patients.csv'")
    save_screenshot(page, f"panel-{theme}")
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
    save_screenshot(page, f"panel-client-{theme}")


@contextmanager
def use_lab_theme(page, lab: str, theme: str):
    """Set JupyterLab's theme within the block; it is Light again afterwards."""
    set_theme(page, lab, theme)
    try:
        yield
    finally:
        set_theme(page, lab, "Light")


def set_theme(page, lab: str, theme: str) -> None:
    address = f"{lab}/lab/api/settings/@jupyterlab/apputils-extension:themes?token={page.token}"
    settings = {"raw": json.dumps({"theme": f"JupyterLab {theme}"})}
    assert page.request.put(address, data=settings).ok
