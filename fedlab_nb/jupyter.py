"""Open the course in JupyterLab, on this machine only.

From a checkout, the notebooks are opened in place; from an installed wheel they are copied to `./fedlab_nb_course`
first. The server listens on 127.0.0.1 alone and needs a token. It asks no other server for news or updates, and stops
with Ctrl-C.
"""

import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from fedlab_nb.declared import read_toml
from fedlab_nb.errors import RunError, UsageError
from fedlab_nb.files import copy_file_if_absent, expand_path, find_store_folder
from fedlab_nb.renamed import (
    copy_lessons_beside_outdated_copies,
    move_renamed_notebooks_to_earlier_folder,
)
from fedlab_nb.value_types import ExitCode

FIRST = "1_start_here.ipynb"
WORKSPACES = "JUPYTERLAB_WORKSPACES_DIR"
SHIPPED = "_course"  # the folder with the notebooks in an installed wheel
READ = {".ipynb", ".md", ".png", ".svg"}  # endings of the files that readers open
Opener = Callable[[str], object]
EnvironmentVariables = dict[str, str]


def serve_course_until_stopped(
    folder_or_default: str | Path | None = None, opens_browser: bool = True
) -> ExitCode:
    """Start JupyterLab on the first notebook and wait until it ends; returns its exit code.

    folder_or_default: where the course is, or is to be copied to (default: see `prepare_course_folder`)
    opens_browser: whether to open a browser; on a machine without one, only the address is printed

    Raises UsageError if `folder_or_default` is a file, RunError if JupyterLab is missing or no port is free.
    """
    course = prepare_course_folder(folder_or_default)
    if importlib.util.find_spec("jupyterlab") is None:
        raise RunError("JupyterLab is not installed in this environment: pip install jupyterlab.")
    port = find_free_port()
    opens_browser = opens_browser and can_open_graphical_browser()
    opener = (lambda _: None) if opens_browser else None  # JupyterLab opens it itself
    command = make_jupyterlab_command(port, opens_browser)
    return run_server_until_stopped(
        command, course, port, "The course", f"lab/tree/{FIRST}", opener
    )


def run_server_until_stopped(
    command: list[str],
    working_folder: str | Path,
    port: int,
    title_of_page: str,
    page_path: str,
    open_address_or_none: Opener | None,
) -> ExitCode:
    """Run a server in `working_folder` until it ends or Ctrl-C is pressed, and print the address of its `page_path`.

    title_of_page: what the printed line calls it, such as "The course"
    open_address_or_none: called with the address once the server answers; None: no browser opens

    Returns the server's exit code.
    """
    token = secrets.token_hex(24)
    address = f"http://127.0.0.1:{port}/{page_path}?token={token}"
    if threading.current_thread() is threading.main_thread():
        # SIGTERM becomes an exception, so that `finally` below stops the server.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    environment = {**make_server_environment(token), **make_jupyterlab_layout_variables()}
    server = subprocess.Popen(command, cwd=working_folder, env=environment)
    try:
        wait_until_server_answers_or_ends(port, server)
        if server.poll() is None:
            print(f"{title_of_page} is open at {address}", flush=True)
            if open_address_or_none:
                print("Ctrl-C stops the server.", flush=True)
                open_address_or_none(address)
            else:
                print(
                    "No browser here: open that address in one on this machine. "
                    "Ctrl-C stops the server.",
                    flush=True,
                )
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        server.terminate()
        server.wait()


def make_jupyterlab_command(port: int, opens_browser: bool = False) -> list[str]:
    """Make the command line of the JupyterLab server; `run_server_until_stopped` runs it in the course's folder."""
    options = make_server_options("jupyterlab", port=port, browser=opens_browser, first=FIRST)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")  # containers; Jupyter refuses otherwise
    return [sys.executable, "-m", "jupyterlab", *options]


def make_server_options(
    server_name: Literal["jupyterlab", "voila"], **values_of_placeholders: Any
) -> list[str]:
    """Make the options of a server from `servers.toml`, with `values_of_placeholders` in their places.

    The option that names the class in `sockets.py` is left out if that file cannot be imported with this version of
    Jupyter, or if the kernels run on a gateway, for which Jupyter has another class.
    """
    options = [
        option.format(**values_of_placeholders) for option in read_toml("servers.toml")[server_name]
    ]
    with suppress(ImportError):
        import fedlab_nb.sockets  # noqa: F401

        if "JUPYTER_GATEWAY_URL" not in os.environ:
            return options
    return [option for option in options if "fedlab_nb.sockets" not in option]


def make_server_environment(token: str) -> EnvironmentVariables:
    """Copy this process's environment variables for the server, with its token: every user can read arguments.

    `fedlab_nb/server_files` has defaults for this server alone (such as no question about news), and the template of a
    page. A user's own settings have precedence.
    """
    environment = {**os.environ, "JUPYTER_TOKEN": token}
    server_files = str(Path(__file__).parent / "server_files")
    for name in ("JUPYTER_CONFIG_PATH", "JUPYTER_PATH"):
        users_path = os.environ.get(name)
        environment[name] = server_files
        if users_path:
            environment[name] += os.pathsep + users_path
    return environment


def make_jupyterlab_layout_variables() -> EnvironmentVariables:
    """Make the environment variables for JupyterLab's layout, with the list of files closed at first.

    So a lesson has the whole width of the page. The layouts are kept in the store, apart from those of the user's other
    work, so that what a reader has opened is open the next time. {} if the user has a folder for layouts
    (JUPYTERLAB_WORKSPACES_DIR), or if the store cannot be written to.
    """
    if WORKSPACES in os.environ or importlib.util.find_spec("jupyterlab_server") is None:
        return {}
    from jupyterlab_server.workspaces_handler import WORKSPACE_EXTENSION, slugify

    folder = find_store_folder() / "jupyterlab"
    first_layout = Path(__file__).parent / "server_files" / "workspace.json"
    try:
        copy_file_if_absent(first_layout, folder / (slugify("default") + WORKSPACE_EXTENSION))
    except OSError:
        return {}
    return {WORKSPACES: str(folder)}


def prepare_course_folder(folder_or_default: str | Path | None = None) -> Path:
    """Return the folder to open: `folder_or_default`, else the checkout's notebooks, else `./fedlab_nb_course`.

    Missing files are copied into it; a file that is already there is the reader's own and is never overwritten.
    Notebooks with an old name are moved to the folder `earlier`. If a notebook calls functions that do not exist any
    more, today's lesson is laid beside it. The reader is told of both in a printed line.
    """
    source = find_course_source_folder()
    if folder_or_default is None and source.name != SHIPPED:
        return source
    target = expand_path(
        "fedlab_nb_course" if folder_or_default is None else folder_or_default
    ).absolute()
    if target.exists() and not target.is_dir():
        raise UsageError(
            f"{target.name} is a file, but the course needs a folder: move it or name another folder."
        )
    for file in sorted(source.rglob("*")):
        relative_path = file.relative_to(source)
        if file.is_file() and is_file_for_course_readers(relative_path):
            copy_file_if_absent(file, target / relative_path)
    moved = move_renamed_notebooks_to_earlier_folder(target)
    if moved:
        print(
            "The lessons have new names. Your notebooks are whole in "
            f"{target.name}/{moved[0].parent.name}, and the functions that you wrote are in the new ones too."
        )
    laid = copy_lessons_beside_outdated_copies(target, source)
    if laid:
        names = ", ".join(path.stem for path in laid)
        print(
            "Some of your lessons are from an earlier version and call functions that are gone. Today's lie beside "
            f"them, with the functions that you wrote: {names}. Your own are as you left them."
        )
    return target


def is_file_for_course_readers(relative_path: Path) -> bool:
    """Whether readers or teachers open a file of the notebooks' folder: a notebook, a picture, a page for teachers."""
    is_hidden = any(name.startswith(".") for name in relative_path.parts)
    return relative_path.suffix in READ and relative_path.parts[0] != "studies" and not is_hidden


def find_course_source_folder() -> Path:
    """Find the folder with the package's notebooks: in an installed wheel or in the checkout. RunError if they are
    missing."""
    shipped = Path(__file__).parent / SHIPPED
    source = shipped if shipped.is_dir() else Path(__file__).parent.parent / "notebooks"
    if not (source / FIRST).is_file():
        raise RunError(
            f"The notebooks of the course are missing ({FIRST} was not installed): install fedlab-nb again."
        )
    return source


def find_free_port(first_port: int = 8888) -> int:
    """Find `first_port` or the next port at which nothing on this machine listens. RunError after 100 ports."""
    for port in range(first_port, first_port + 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RunError(
        f"No free port from {first_port} to {first_port + 99}: stop another notebook server first."
    )


def wait_until_server_answers_or_ends(
    port: int, server_process: subprocess.Popen, timeout_seconds: float = 300
) -> None:
    """Wait until something answers at `port`, the server has ended, or the time is over."""
    end = time.monotonic() + timeout_seconds
    while time.monotonic() < end and server_process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)


def can_open_graphical_browser() -> bool:
    """Whether a graphical browser can be opened here (a text browser in a terminal cannot show JupyterLab)."""
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform.startswith("linux") and not has_display:
        return False
    with suppress(webbrowser.Error):
        return bool(webbrowser.get())
    return False
