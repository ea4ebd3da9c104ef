"""A panel at a glance: a projector with a covered result, no large empty frame, no text cut off."""

import io
import itertools
import re

import pytest
from lab_steps import (
    QUIET,
    find_panel,
    open_notebook,
    run_all_cells,
    wait_for_status,
    write_notebook,
)
from PIL import Image
from playwright.sync_api import expect

from fedlab_nb.panels import theme
from fedlab_nb.panels.record import MethodRun
from fedlab_nb.panels.runs_panel import HEAD, make_run_table_row_html
from fedlab_nb.panels.views import HERE as PANELS
from fedlab_nb.panels.views import WORDS
from fedlab_nb.plots import Picture
from fedlab_nb.plots.style import STILL_STYLE, drawing, make_image_html
from fedlab_nb.plots.vector import PAPER

pytestmark = pytest.mark.browser
SHORT = "clients=3, seeds=1, epochs=2, hide=['stored']"
# Elements that reach beyond the right edge of their panel.
BEYOND = """root => [...root.querySelectorAll(':scope *')]
  .filter((one) => one.offsetParent && !one.closest('.fl-frame, .fl-drawer')
    && one.getBoundingClientRect().right > root.getBoundingClientRect().right + 2).map((one) => one.className)"""


def test_a_projector_shows_the_result_once_it_is_guessed(page, lab, course):
    code = f"import fedlab_nb as fl\npanel = fl.comparison(methods=['local', 'fedavg'], {SHORT})\npanel"
    open_notebook(page, lab, write_notebook(course, "projector", code))
    run_all_cells(page)
    wait_for_status(page, "idle")
    root = find_panel(page)
    run = root.locator(".fl-run")
    run.focus()
    page.keyboard.press("p")
    for css in (".fl-facts", ".fl-chips", ".fl-drawer", ".fl-client"):
        expect(root.locator(css)).to_be_hidden()
    for css in (".fl-alpha", ".fl-clients", ".fl-run", ".fl-view-partition svg"):
        expect(root.locator(css).first).to_be_visible()
    run.click()
    wait_for_status(page, "done")
    sentence = root.locator(".fl-view-accuracy .fl-sentence p")
    expect(sentence).to_have_css("visibility", "hidden")
    covered = root.locator(".fl-view-accuracy .fl-frame")
    button = root.locator(".fl-reveal")
    assert button.bounding_box()["y"] < covered.bounding_box()["y"], "the way back is in sight"
    run.focus()
    page.keyboard.press("g")
    expect(sentence).to_have_css("visibility", "visible")
    page.keyboard.press("g")
    expect(sentence).to_have_css("visibility", "hidden")
    covered.click()
    expect(sentence).to_have_css("visibility", "visible")
    run.focus()
    page.keyboard.press("p")
    expect(root.locator(".fl-facts")).to_be_visible()
    # An enlarged view is no projector: nothing is covered, and the letters keep their size.
    width = covered.bounding_box()["width"]
    root.locator(".fl-enlarge").click()
    expect(root.locator(".fl-controls")).to_be_hidden()
    expect(sentence).to_have_css("visibility", "visible")
    assert covered.bounding_box()["width"] > 1.3 * width
    root.locator(".fl-enlarge").click()
    expect(root.locator(".fl-controls")).to_be_visible()


# The chosen words of menus that are wider than the space before the arrow.
CUT_MENUS = """root => [...root.querySelectorAll('.fl-controls select')].filter((menu) => menu.offsetParent)
  .filter((menu) => {
    const style = getComputedStyle(menu);
    const pen = document.createElement('canvas').getContext('2d');
    pen.font = `${style.fontSize} ${style.fontFamily}`;
    const words = menu.selectedOptions[0].textContent;
    const room = menu.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return pen.measureText(words).width > room;
  }).map((menu) => menu.selectedOptions[0].textContent)"""


def test_menus_are_whole_on_a_phone(page, lab, course):
    code = f"import fedlab_nb as fl\npanel = fl.lab('fedlpa', methods=[], {SHORT})\npanel"
    open_notebook(page, lab, write_notebook(course, "menus", code))
    run_all_cells(page)
    root = page.locator(".fl-fedlpa.fl-status-idle")
    root.locator(".fl-controls select").first.wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+b")  # hides the list of files
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(QUIET)
    assert root.evaluate("root => root.clientWidth") < 340
    assert root.evaluate(CUT_MENUS) == []


def test_a_point_of_a_map_shows_its_image(page, lab, course):
    code = f"import fedlab_nb as fl\npanel = fl.comparison(methods=['fedavg'], {SHORT})\npanel"
    open_notebook(page, lab, write_notebook(course, "points", code))
    run_all_cells(page)
    wait_for_status(page, "idle")
    root = find_panel(page)
    root.locator(".fl-run").click()
    wait_for_status(page, "done")
    root.locator(".fl-tabs button", has_text="Features").first.click()
    view = root.locator(".fl-view-features")
    view.locator(".mark").first.wait_for()
    view.locator(".mark").nth(40).hover()
    expect(view.locator(".fl-tip")).to_contain_text("class ")
    image = view.locator(".fl-thumbnail")
    expect(image).to_be_visible()
    expect(image).to_have_css("width", "64px")
    expect(image).to_have_css("background-image", re.compile(r"^url\(.data:image/png;base64,"))


def test_a_view_without_a_result_is_small_with_its_button_below_the_words(page, lab, course):
    # With fewer seeds a fast machine does the view's work at once.
    settings = SHORT.replace("seeds=1", "seeds=10")
    code = f"import fedlab_nb as fl\npanel = fl.lab('fedet', methods=[], {settings})\npanel"
    open_notebook(page, lab, write_notebook(course, "empty", code))
    run_all_cells(page)
    root = page.locator(".fl-fedet.fl-status-idle")
    root.locator(".fl-tabs button", has_text="Public data").first.click()
    view = root.locator(".fl-view-public")
    view.locator(".fl-empty").wait_for()
    expect(root.locator(".fl-cost p")).to_contain_text("both ways")
    for width in (1280, 820):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_function(QUIET)
        words = view.locator(".fl-empty").bounding_box()
        button = view.locator(".fl-work").bounding_box()
        assert words["height"] < 200 and button["y"] >= words["y"] + words["height"] - 1, width
        assert root.evaluate(BEYOND) == [], width
        # The list of files, beside the panel, takes some of the width.
        menus = root.locator(".fl-controls select").filter(visible=True).all()
        assert min(menu.bounding_box()["width"] for menu in menus) > 60, width


def test_a_view_that_is_older_than_the_controls_is_dim_with_its_sentence(browser):
    """Its caption is not: it names the view's setting, and says that the controls have moved."""
    names = ("fl-caption", "fl-sentence", "fl-frame")
    parts = "".join(f'<div class="{name}">x</div>' for name in names)
    views = f'<div class="fl-view">{parts}</div><div class="fl-view fl-older">{parts}</div>'
    page = browser.new_page()
    page.set_content(f'<style>{theme.STYLE}</style><div class="fl-root">{views}</div>')
    for name, opacity in (("caption", "1"), ("sentence", "0.4"), ("frame", "0.4")):
        expect(page.locator(f".fl-{name}").first).to_have_css("opacity", "1")
        expect(page.locator(f".fl-older .fl-{name}")).to_have_css("opacity", opacity)
    page.close()


# Texts of the table of runs that are cut off, overlap others, or reach beyond the table.
CUT_ROWS = """() => {
  const table = document.querySelector(".fl-runs").getBoundingClientRect();
  const cells = [...document.querySelectorAll(".fl-cells span")]
    .filter((one) => one.checkVisibility() && one.textContent);
  const boxes = cells.map((one) => one.getBoundingClientRect());
  const isCut = (cell, k) => cell.scrollWidth > cell.clientWidth + 1 || boxes[k].right > table.right + 1;
  const overlap = (a, b) =>
    a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const isCovered = (k) => boxes.some((other, i) => i !== k && overlap(boxes[k], other));
  return cells.filter((cell, k) => isCut(cell, k) || isCovered(k)).map((cell) => cell.textContent);
}"""


@pytest.mark.parametrize("width", [280, 420, 700, 900, 1500])
def test_the_table_of_runs_is_whole_at_every_width(browser, width):
    settings = {"dataset": "digits", "alpha": 0.1, "clients": 5, "model": "mlp:16,mlp:32,mlp:64"}
    error = "FedAvg, one round needs the same architecture at every client; these have three."
    failed = make_run_table_row_html(MethodRun(1, "fedavg", settings, 2, error=error))
    done = make_run_table_row_html(MethodRun(1, "fedavg_multi", settings, 2)).replace(
        "<span>…</span><span></span><span></span>",
        '<span>38 %</span><span class="fl-right">188 kB</span><span class="fl-right">1.05 MB</span>',
    )
    assert "1.05 MB" in done and "fl-bad" in failed
    rows = ""
    for css_class, cells in (("fl-row fl-head", HEAD), ("fl-row", done), ("fl-row", failed)):
        rows += f"""<div class="{css_class}" style="display: flex">
<div class="fl-pad widget-html"></div><div class="widget-html">{cells}</div></div>"""
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.set_content(
        f'<style>{theme.STYLE}</style><body style="margin: 0"><div class="fl-root">'
        f'<div class="fl-runs">{rows}</div></div>'
    )
    expect(page.locator(".fl-row")).to_have_count(3)
    assert page.evaluate(CUT_ROWS) == []
    page.close()


PAGES = {
    "JupyterLab, not trusted": '<body style="color-scheme:{theme}">',
    "VS Code": '<body class="vscode-{theme}">',
    "HTML of nbconvert": '<body data-jp-theme-light="{is_light}">',
}


@pytest.mark.parametrize("host", PAGES)
def test_a_saved_picture_follows_the_theme_of_its_page_and_not_the_system(browser, host):
    """JupyterLab takes the style out of a notebook that is not trusted, and sets `color-scheme` on its page."""
    with drawing() as (figure, ax):
        ax.plot([0, 1])
    image = make_image_html(Picture(figure, alt="A line", sentence="It rises."))
    if host == "JupyterLab, not trusted":
        image = image.removesuffix(STILL_STYLE)
    papers = {"light": "#ffffff", "dark": PAPER}
    for system, name in itertools.product(papers, papers):
        page = browser.new_page(color_scheme=system)
        is_light = "true" if name == "light" else "false"
        page.set_content(PAGES[host].format(theme=name, is_light=is_light) + image)
        screen = Image.open(io.BytesIO(page.locator("img.fl-still").screenshot()))
        corner = "#{:02x}{:02x}{:02x}".format(*screen.convert("RGB").getpixel((5, 5)))
        assert corner == papers[name], system
        page.close()


def test_a_table_that_scrolls_has_a_shadow_at_the_edge_beyond_which_there_is_more(browser):
    rows = [{"method": f"method {number}", "rounds": 1} for number in range(60)]
    box = f'<div class="fl-table">{theme.make_table_html(rows)}</div>'
    page = browser.new_page()
    page.set_content(f'<style>{theme.STYLE}</style><div class="fl-root">{box}</div>')
    table = page.locator(".fl-table")

    def read_edges():
        screen = Image.open(io.BytesIO(table.screenshot())).convert("L")
        column = screen.width - 40  # beside the text
        return screen.getpixel((column, 1)), screen.getpixel((column, screen.height - 2))

    top, bottom = read_edges()
    assert top == 255 and bottom < 220
    table.evaluate("one => one.scrollTo(0, one.scrollHeight)")
    top, bottom = read_edges()
    assert top < 220 and bottom == 255
    page.close()


def test_on_a_phone_a_row_of_a_view_s_table_is_a_card_that_names_its_columns(browser):
    """Six columns of words have no room beside each other in 390 pixels; and nobody scrolls in a box."""
    row = {
        "method": "FENS",
        "rounds": 1,
        "bytes of one client": "2 S_θ + M S_θ bits/32 + 2 S_λ T",
    }
    row |= {
        "extra data": "nothing",
        "local work": "40 passes",
        "what leaks": "the model and its answers",
    }
    table = WORDS.format(theme.make_table_html([row, row], has_column_names_in_cells=True))
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_content(f'<style>{theme.STYLE}</style><div class="fl-root">{table}</div>')
    box = page.locator(".fl-words")
    assert box.evaluate("one => one.scrollWidth - one.clientWidth") == 0
    expect(box.locator("th").first).to_be_hidden()
    cells = box.locator("td").all()
    tops = [cell.bounding_box()["y"] for cell in cells]
    assert tops == sorted(set(tops)) and len(tops) == 12
    name = "one => getComputedStyle(one, '::before').content"
    assert "rounds" in cells[1].evaluate(name) and cells[0].evaluate(name) == "none"
    page.set_viewport_size({"width": 1280, "height": 720})
    expect(box.locator("th").first).to_be_visible()
    assert cells[1].evaluate(name) == "none"
    expect(cells[2]).to_have_css("text-align", "left")
    page.close()


TABS = """<div class="fl-root"><div class="fl-main">
<div class="fl-tabs"><button class="mod-active">Known</button><button>New</button></div>
<div class="fl-view fl-first"><div class="fl-frame">known</div></div>
<div class="fl-view fl-second fl-old" style="display: none"><div class="fl-frame">before</div></div>
</div><div class="chores"></div></div>"""
START_CHORES = """async (source) => {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { default: chores } = await import(url);
  const buttons = [...document.querySelectorAll(".fl-tabs button")];
  for (const button of buttons) { // as ipywidgets does
    button.onclick = () => buttons.forEach((one) => one.classList.toggle("mod-active", one === button));
  }
  chores.render({ model: {}, el: document.querySelector(".chores") });
}"""


def test_no_picture_stands_under_the_tab_of_another_one(browser):
    """While the kernel is busy nobody answers: an outdated view is dimmed under its own tab."""
    page = browser.new_page()
    page.set_content(f"<style>{theme.STYLE}</style>{TABS}")
    page.evaluate(START_CHORES, (PANELS / "chores.js").read_text(encoding="utf-8"))
    first = page.locator(".fl-first")
    second = page.locator(".fl-second")
    page.locator(".fl-tabs button").nth(1).click()
    expect(first).to_be_hidden()
    expect(second).to_be_visible()
    expect(second.locator(".fl-frame")).to_have_css("opacity", "0.4")
    page.locator(".fl-tabs button").nth(0).click()
    expect(second).to_be_hidden()
    expect(first.locator(".fl-frame")).to_have_css("opacity", "1")
    page.close()


# What each message of a kernel does to the page that answers a click when another tab is chosen already; returns how
# many views are seen after each of them.
ANSWER_LATE = """async () => {
  const [first, second] = document.querySelectorAll(".fl-view");
  const counts = [];
  for (const change of [() => { second.style.display = ""; }, () => { first.style.display = "none"; }]) {
    change();
    await null; // observers of changes are called now
    counts.push([first, second].map((view) => getComputedStyle(view).display !== "none"));
  }
  return counts;
}"""


def test_a_late_answer_of_the_kernel_shows_no_second_view(browser):
    page = browser.new_page()
    page.set_content(f"<style>{theme.STYLE}</style>{TABS}")
    page.evaluate(START_CHORES, (PANELS / "chores.js").read_text(encoding="utf-8"))
    page.locator(".fl-tabs button").nth(1).click()
    page.locator(".fl-tabs button").nth(0).click()
    assert page.evaluate(ANSWER_LATE) == [[True, False], [True, False]]
    page.close()
