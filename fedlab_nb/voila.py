"""Shows a panel as a page of its own, for a classroom screen: `fedlab-nb voila`, `fedlab-nb voila compare`,
`fedlab-nb voila fens --theme dark`.

Voilà serves a notebook of one cell, which is made here and deleted afterwards. Like the course's server it listens on
127.0.0.1 alone and needs a token. The page loads nothing from elsewhere; see the template in `server_files/voila`.
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
from typing import Literal

from .errors import RunError, check_allowed_name
from .installation import format_install_command
from .jupyter import (
    can_open_graphical_browser,
    find_free_port,
    make_server_options,
    run_server_until_stopped,
)
from .value_types import ExitCode, JsonObject, SettingValue

PLAYGROUND = "playground"
# {panel: the function that makes it}
PANELS = {PLAYGROUND: "playground", "compare": "comparison", "race": "race"}


def serve_panel_until_stopped(
    panel_or_method: str = PLAYGROUND,
    theme: Literal["light", "dark"] = "light",
    opens_browser: bool = True,
    settings: Mapping[str, SettingValue] | None = None,
) -> ExitCode:
    """Serve a panel until Ctrl-C; returns the server's exit code.

    panel_or_method: "playground", "compare", "race", or a method, for its lab
    settings: starting values of the panel

    RunError if Voilà is not installed, UsageError for a wrong name, theme or setting.
    """
    check_allowed_name("theme", theme, ("light", "dark"))
    code = check_panel_and_make_page_code(panel_or_method, dict(settings or {}))
    if find_spec("voila") is None:
        raise RunError(
            f"Voilà is not installed in this environment: {format_install_command('voila')}."
        )
    port = find_free_port(8866)
    with tempfile.TemporaryDirectory(prefix="fedlab_nb-page-") as folder:
        page = Path(folder, "fedlab_nb.ipynb")
        page.write_text(json.dumps(make_one_cell_notebook(code)), encoding="utf-8")
        opener = None
        if opens_browser and can_open_graphical_browser():
            opener = partial(open_address_through_private_file, private_folder=Path(folder))
        options = make_server_options("voila", port=port, theme=theme)
        command = [sys.executable, "-m", "voila", str(page), *options]
        return run_server_until_stopped(command, folder, port, "The page", "", opener)


PythonCode = str


def check_panel_and_make_page_code(
    panel_or_method: str, settings: Mapping[str, SettingValue]
) -> PythonCode:
    """Make the page's Python: it shows the panel, or the lab of the method, in the folder where the
    command was typed.

    UsageError for a panel or setting that does not exist: the panel is made here once, so that a wrong setting is a
    sentence in the terminal, and not a page with a traceback.
    """
    if panel_or_method != PLAYGROUND or settings:
        from . import labs, panels
        from .methods import METHODS

        check_allowed_name("panel", panel_or_method, (*PANELS, *METHODS))
        if panel_or_method in PANELS:
            make_panel = getattr(panels, PANELS[panel_or_method])
            make_panel(**settings).close()
        else:
            labs.lab(panel_or_method, **settings).close()
    if panel_or_method in PANELS:
        call = f"fl.{PANELS[panel_or_method]}(**{dict(settings)!r})"
    else:
        call = f"fl.lab({panel_or_method!r}, **{dict(settings)!r})"
    lines = ["import os", f"os.chdir({os.getcwd()!r})", "import fedlab_nb as fl", call]
    return "\n".join(lines)


def make_one_cell_notebook(python_code: PythonCode) -> JsonObject:
    """Make a notebook of one code cell; its title is that of the browser's tab."""
    from nbformat import v4

    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"title": "fedlab_nb", "kernelspec": kernel, "language_info": {"name": "python"}}
    return v4.new_notebook(cells=[v4.new_code_cell(python_code, id="panel")], metadata=metadata)


def open_address_through_private_file(address: str, private_folder: Path) -> None:
    """Open an address by way of a file in `private_folder` that only its owner can read.

    Every user of the machine can read a browser's arguments, and the address contains a token.
    """
    jump = private_folder / "open.html"
    jump.write_text(
        f'<meta http-equiv="refresh" content="0; url={html.escape(address)}">', encoding="utf-8"
    )
    webbrowser.open(jump.as_uri())
