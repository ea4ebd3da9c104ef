"""The course's web site, built and opened from its folder: links, folds, themes, widths."""

import re
import resource
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from accessible import find_barriers
from lab_steps import PATIENCE

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
PAGES = [
    "index",
    "notebooks/2_heterogeneity",
    "notebooks/glossary",
    "website/gallery",
    "website/howto/compare",
    "website/reference/running",
    "website/reference/contracts",
    "website/reference/command_line",
]
LESSONS = sorted((ROOT / "notebooks").rglob("*.ipynb"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Folder of the built site; building it may take 90 seconds of a processor."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-M", "html", ".", str(folder)]
    command += ["-c", "website", "--fail-on-warning"]
    seconds_before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, cwd=ROOT, check=True)
    seconds_after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert seconds_after - seconds_before < 90
    return folder / "html"


@pytest.fixture
def open_page(browser, site):
    """A function that opens a page of the site offline; every request must stay in the folder."""
    contexts = []
    requests = []

    def open_page(name, width=1280, **options):
        context = browser.new_context(
            viewport={"width": width, "height": 800}, offline=True, **options
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.goto((site / f"{name}.html").as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [url for url in requests if not url.startswith((site.as_uri(), "data:"))] == []


class Links(HTMLParser):
    """A page's links, and the names that a link can lead to."""

    def __init__(self, path):
        super().__init__()
        self.links = []
        self.names = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.names.add(values.get("id"))
        self.links += [values[name] for name in ("href", "src") if values.get(name)]
        if values.get("class") == "xref myst":  # what myst makes of a link without a target
            self.links.append("a link that leads nowhere")


def test_all_links_lead_somewhere(site):
    pages = {path.resolve(): Links(path) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            names = pages[target].names if target in pages else {parts.fragment}
            if not target.is_file() or unquote(parts.fragment) not in names:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == [] and len(pages) > 40


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_in_both_themes(open_page, name, scheme):
    page = open_page(name, color_scheme=scheme)
    assert find_barriers(page, "html") == []
    red = re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[0]
    assert (int(red) > 128) == (scheme == "light")


@pytest.mark.parametrize("width", [390, 820, 1920])
def test_no_page_is_wider_than_the_window(open_page, width):
    wide_pages = ["guide/methods", "instructor/2_heterogeneity", "shelf/paper_tables"]
    for name in [*PAGES, *(f"notebooks/{name}" for name in wide_pages)]:
        page = open_page(name, width)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name


def read_folded_answers(path):
    """Read the measured answers that are folded in the outputs of a lesson's notebook."""
    answers = []
    for cell in nbformat.read(path, 4).cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "<details>" not in data.get("text/html", ""):
                continue
            words = data["text/plain"]
            if "Predicted and measured" in words:
                answers.append(words.split(": ", 2)[-1])
    return answers


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_says_how_to_open_it_and_shows_no_answer_before_its_fold_is_opened(
    open_page, path
):
    page = open_page(path.relative_to(ROOT).with_suffix("").as_posix())
    answers = read_folded_answers(path)
    article = page.locator("article")
    text_when_closed = article.inner_text()
    assert "bootstrap.py" in text_when_closed
    assert [answer for answer in answers if answer in text_when_closed] == []
    assert "Predicted and measured" not in text_when_closed
    page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    text_when_open = article.inner_text()
    assert [answer for answer in answers if answer not in text_when_open] == []
    broken_pictures = article.locator("img").evaluate_all(
        "all => all.filter(i => !i.complete || !i.naturalWidth || !i.alt)"
    )
    assert broken_pictures == []


def test_an_old_name_of_a_lesson_leads_to_the_new_one(site):
    page = (site / "notebooks/04_fed_et.html").read_text(encoding="utf-8")
    assert 'url=shelf/fed_et.html"' in page
    assert (site / "notebooks/shelf/fed_et.html").is_file()


def test_text_after_an_answer_is_folded_with_it(open_page):
    page = open_page("notebooks/4_closed_form")
    explanation = page.get_by_text("The sum of one image is that image.", exact=False).first
    assert not explanation.is_visible()
    # The site's fold, and the lesson's own fold within it.
    for fold in page.locator("details", has=explanation).all():
        fold.locator("summary").first.click()
    assert explanation.is_visible()


def test_the_playground_is_one_click_away(open_page):
    page = open_page("notebooks/3_fens")
    page.locator(".playground-link").click()
    page.locator("input.alpha").wait_for()  # the stage is there


def test_every_picture_of_the_gallery_is_drawn_and_has_words(open_page):
    source = (ROOT / "website/gallery.md").read_text(encoding="utf-8")
    declared = re.findall(r"```\{picture\} (\S+)", source)
    page = open_page("website/gallery")
    page.evaluate("document.querySelectorAll('img').forEach(image => image.loading = 'eager')")
    images = page.locator("img.gallery")
    are_loaded = "[...document.querySelectorAll('img.gallery')].every(image => image.complete)"
    page.wait_for_function(are_loaded)
    shown_pictures = images.evaluate_all(
        "all => all.map(i => [i.src.match(/gallery-(.+).svg/)[1], i.naturalWidth > 0, i.alt.length])"
    )
    good = [name for name, is_drawn, alt_length in shown_pictures if is_drawn and alt_length > 20]
    assert good == declared
    assert len(declared) >= 10


def test_a_public_name_is_found_offline(open_page):
    page = open_page("search", width=1280)
    page.goto(page.url + "?q=federate")
    page.get_by_role("link", name="fedlab_nb.federate").first.click()
    assert page.url.endswith("website/reference/data.html#fedlab_nb.federate")
