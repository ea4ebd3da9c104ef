"""A panel as a page of its own, for a classroom screen: `fedlab-nb voila`, `fedlab-nb voila compare`,
`fedlab-nb voila fens --theme dark`.

Voilà serves a notebook of one cell, which is made here and thrown away afterwards. Like the course's server it binds to
127.0.0.1 with a token. The page loads nothing from elsewhere, see the template in `server_files/voila`.
"""

import html
import json
import os
import sys
import tempfile
import webbrowser
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .errors import RunError, choose
from .installation import format_install_command
from .jupyter import free_port, has_browser, options_of, serve

PLAYGROUND = "playground"
PANELS = {
    PLAYGROUND: "playground",
    "compare": "comparison",
    "race": "race",
}  # the functions that make them


def open_page(
    panel: str = PLAYGROUND,
    theme: str = "light",
    browser: bool = True,
    settings: Mapping[str, Any] | None = None,
) -> int:
    """Serve `panel` (playground, compare, race, or the lab of a method) until Ctrl-C; returns the server's exit code.

    settings: starting values of the panel. RunError if Voilà is not installed, UsageError for a wrong name or theme.
    """
    choose("theme", theme, ("light", "dark"))
    code = source(panel, dict(settings or {}))
    if find_spec("voila") is None:
        raise RunError(
            f"Voilà is not installed in this environment: {format_install_command('voila')}."
        )
    port = free_port(8866)
    with tempfile.TemporaryDirectory(prefix="fedlab_nb-page-") as folder:
        page = Path(folder, "fedlab_nb.ipynb")
        page.write_text(json.dumps(notebook(code)), encoding="utf-8")
        opener = partial(show, folder=Path(folder)) if browser and has_browser() else None
        command = [
            sys.executable,
            "-m",
            "voila",
            str(page),
            *options_of("voila", port=port, theme=theme),
        ]
        return serve(command, folder, port, "The page", "", opener)


def source(panel: str, settings: Mapping[str, Any]) -> str:
    """The page's Python: the panel, with the folder the command was typed in as the present one.

    UsageError for a panel or setting that does not exist, so that it is said here and not by a page with a traceback.
    """
    if panel != PLAYGROUND or settings:
        from . import labs, panels
        from .methods import METHODS

        choose("panel", panel, (*PANELS, *METHODS))
        make = getattr(panels, PANELS[panel]) if panel in PANELS else partial(labs.lab, panel)
        make(**settings).close()
    name = f"{PANELS[panel]}(" if panel in PANELS else f"lab({panel!r}, "
    return f"import os\nos.chdir({os.getcwd()!r})\nimport fedlab_nb as fl\nfl.{name}**{dict(settings)!r})"


def notebook(code: str) -> dict[str, Any]:
    """A notebook of one code cell; its title is what the browser shows."""
    from nbformat import v4

    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"title": "fedlab_nb", "kernelspec": kernel, "language_info": {"name": "python"}}
    return v4.new_notebook(cells=[v4.new_code_cell(code, id="panel")], metadata=metadata)


def show(address: str, folder: Path) -> None:
    """Open the page by way of a file that only its owner reads: a browser's arguments can be read by every user."""
    jump = folder / "open.html"
    jump.write_text(
        f'<meta http-equiv="refresh" content="0; url={html.escape(address)}">', encoding="utf-8"
    )
    webbrowser.open(jump.as_uri())
