"""The course as a web site, made of the files as they lie: `python -m sphinx -M html . build -c website`.

A lesson shows its stored outputs and is not executed. The pictures of the gallery are drawn by the lines beside them,
in seconds. The reference is made from docstrings (docstrings.py) and from the command line's own parser
(directives.py). The folder `build/html` works from any static host, and opened from a disk without a network. Each
lesson gets a box that says how to open it live; where GITHUB_REPOSITORY ("owner/name") is set, as in GitHub's
workflows, with a link to Binder.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import nbformat
from docutils import nodes
from latex2mathml.converter import convert
from nbformat.v4 import new_markdown_cell as markdown

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

project = "One-shot federated learning"
html_title = project
extensions = ["myst_nb", "sphinx.ext.autodoc", "directives", "docstrings"]
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
root_doc = "README"
include_patterns = [
    "README.md",
    "FIDELITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "RELEASING.md",
    "SECURITY.md",
    "website/gallery.md",
    "website/reference/*.md",
    "website/howto/*.md",
    "notebooks/**",
    "tests/benchmarks/RESULTS.md",
]
exclude_patterns = [".*", "build", "**/.ipynb_checkpoints"]
suppress_warnings = [
    "myst.xref_missing"
]  # links to a row of the table of symbols; a test follows all links
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"
html_theme = "furo"
html_math_renderer = "mathml"  # made here: a reader's browser needs no script and no fonts for it
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = html_show_copyright = html_use_index = False
templates_path = ["."]
html_sidebars = {
    "**": ["sidebar/brand.html", "playground_link.html", "sidebar/search.html"]
    + ["sidebar/scroll-start.html", "sidebar/navigation.html", "sidebar/scroll-end.html"]
}

CONTENTS = Path(__file__).with_name("contents.md").read_text(encoding="utf-8")
LIVE = """```{admonition} Open this lesson live
:class: tip

Here you read the results that are stored with the lesson, so there is nothing to run: the menu **Run** that lessons
speak of is JupyterLab's. Sliders, checks and your own runs need Python: type
`python3 fedlab_nb/bootstrap.py` in a checkout. %s[Binder, Colab and other ways](%s).
```"""
PLAYGROUND = """<a href="playground.html"><b>Try it here, nothing to install</b></a>: drag α, throw a pile to a
neighbour, draw a digit. Or read on: [start with lesson 1](notebooks/1_start_here.ipynb).

"""
NOTHING_TO_INSTALL = re.compile(r"\*\*Nothing to install:\*\*.*?\n\n", re.DOTALL)
LINKED_PICTURE = re.compile(r"\[(!\[[^\]]*\]\([^)]*\))\]\(notebooks/playground\.html\)")
BINDER = "Or open it [on Binder](https://mybinder.org/v2/gh/%s/HEAD?urlpath=lab/tree/%s.ipynb). "
PANEL = '<p class="panel">A panel. Its sliders and buttons work when you open the lesson live.</p>'
# What a screen reader or a keyboard needs and the theme does not have: what scrolls sideways can be reached.
FOR_ALL = {
    'role="heading">': 'role="heading" aria-level="2">',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<aside class="sidebar-drawer"': '<aside aria-label="All pages" class="sidebar-drawer"',
    '<aside class="toc-drawer"': '<aside aria-label="This page" class="toc-drawer"',
}
GUESS = (
    "<details><summary>Guess first, then open this.</summary>"  # round an output of a stored lesson
)
FOLD = '<details class="guess"><summary>Guess first, then read on.</summary>'
REDIRECT = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>This lesson has a new name</title>'
    '<meta http-equiv="refresh" content="0; url={address}">'
    '<p>This lesson has a new name: <a href="{address}">{address}</a>.</p></html>\n'
)
NOT_HERE = "vnd.jupyter.widget-view|fl-card-score"  # outputs that need a kernel


def prepare(app, docname, source):
    """The start page gets the contents; a lesson loses what needs a kernel, and folds what answers a guess."""
    source[0] = re.sub("<!--.*?-->", "", source[0])
    if docname == root_doc:
        source[0] = re.sub("## Tests.*?(?=## )", "", source[0], flags=re.DOTALL) + CONTENTS
        source[0] = LINKED_PICTURE.sub(r"\1", source[0])
        source[0] = NOTHING_TO_INSTALL.sub(lambda _: PLAYGROUND, source[0])
        source[0] = re.sub(
            r"!\[(\w+)\]\(https[^)]*\)", r"\1", source[0]
        )  # badges: nothing is loaded from elsewhere
        source[0] = re.sub(
            r"(?<=^\| \[)\w+", lambda name: name[0].replace("_", " "), source[0], flags=re.MULTILINE
        )
    if app.env.doc2path(docname).suffix == ".ipynb":
        notebook = nbformat.reads(source[0], 4)
        number = re.match(r"notebooks/(\d)_", docname)
        title, *cells = [part for cell in notebook.cells for part in parts(cell)]
        title.source = title.source.replace("# ", f"# {number[1]} · " if number else "# ", 1)
        repository = os.environ.get("GITHUB_REPOSITORY")
        binder = BINDER % (repository, docname) if repository else ""
        guide = "../guide" if "/shelf/" in docname else "guide"
        live = LIVE % (binder, f"{guide}/installation.md")
        notebook.cells = [title, markdown(live), *folded(cells)]
        source[0] = nbformat.writes(notebook)


def parts(cell):
    """The sections of a text as cells of their own; of a code cell what can be shown."""
    if cell.cell_type == "markdown":
        return map(markdown, filter(None, re.split("^(?=#+ )", cell.source, flags=re.MULTILINE)))
    if cell.metadata.get("jupyter", {}).get("source_hidden"):
        cell.metadata.tags = ["remove-input"]
    cell.outputs = [
        output for output in cell.outputs if not re.search(NOT_HERE, str(output.get("data")))
    ]
    for output in cell.outputs:
        if "fl-saved" in output.get("data", {}).get("text/html", ""):
            output.data = {"text/html": PANEL}
    return [cell]


def folded(cells):
    """One fold from the answer to a guess to the next heading or guess: what comes after an answer may tell it, too."""
    within = False
    for cell in cells:
        outputs = [output.get("data", {}) for output in cell.get("outputs", [])]
        pages = [data for data in outputs if "text/html" in data]
        heading = cell.cell_type == "markdown" and cell.source.startswith("#")
        if within and (heading or any("fl-card-predict" in page["text/html"] for page in pages)):
            within = False
            yield markdown("</details>")
        for page in pages:
            if GUESS in page["text/html"]:
                page["text/html"] = page["text/html"].replace(GUESS, "").removesuffix("</details>")
                if not within:
                    within = True
                    yield markdown(FOLD)
        yield cell
    if within:
        yield markdown("</details>")


def formula(translator, node):
    """A formula as MathML."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    source = re.sub(r"\\(mathcal|mathbb) (\w)", r"\\\1{\2}", node.astext())
    translator.body.append(convert(source, display=display))
    raise nodes.SkipNode


def write_redirects(folder):
    """A page under each old name of a lesson, which leads to the new one."""
    from fedlab_nb.renamed import RENAMED

    for old, new in RENAMED.items():
        page = REDIRECT.format(address=f"{new}.html")
        (folder / f"{old}.html").write_text(page, encoding="utf-8")


def finish(app, exception):
    """The start page under the name that a host looks for, and the page without Python."""
    from fedlab_nb.live import page

    if exception is None:
        for path in app.outdir.rglob("*.html"):
            text = path.read_text(encoding="utf-8")
            for theme, better in FOR_ALL.items():
                text = text.replace(theme, better)
            path.write_text(text, encoding="utf-8")
        write_redirects(app.outdir / "notebooks")
        shutil.copy(app.outdir / f"{root_doc}.html", app.outdir / "index.html")
        page.write_page(app.outdir / "playground.html")


def setup(app):
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("source-read", prepare)
    app.connect("build-finished", finish)
