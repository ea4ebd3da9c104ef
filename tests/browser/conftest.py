"""A JupyterLab server with a scratch home and a headless Chromium for it; the user's own settings are not touched."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from lab_steps import PATIENCE, make_scratch_environment, run_server, shut_down_all_kernels

from fedlab_nb.jupyter import (
    find_free_port,
    make_jupyterlab_command,
    make_server_environment,
    wait_until_server_answers_or_ends,
)

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
TOKEN = "browser-test"
# Without a sandbox: Chromium refuses to run as root otherwise, as it must in containers.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-sync"]
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", MAC)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a Chromium or Chrome; without one the tests skip, or fail where FEDLAB_NB_REQUIRE_BROWSER is set."""
    paths = [shutil.which(name) for name in BROWSERS]
    browser_path = next(filter(None, paths), None)
    if browser_path is None:
        reason = "no Chromium or Chrome on this machine (Debian: apt install chromium)"
        if os.environ.get("FEDLAB_NB_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    return browser_path


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the notebooks, so that running and saving them changes nothing in the checkout."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "shelf").mkdir()
    for notebook in NOTEBOOKS.rglob("*.ipynb"):
        shutil.copy(notebook, folder / notebook.relative_to(NOTEBOOKS))
    return folder


@pytest.fixture(scope="session")
def lab(course: Path, chromium: str, tmp_path_factory: pytest.TempPathFactory):
    """Address of a JupyterLab that was started with the command that `fedlab-nb` itself uses, in a scratch home."""
    home = tmp_path_factory.mktemp("home")
    variables = make_server_environment(TOKEN) | make_scratch_environment(home)
    # The kernel must be the Python that runs the tests.
    kernel_folder = Path(variables["JUPYTER_DATA_DIR"], "kernels/python3")
    kernel_folder.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel_spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    kernel_folder.joinpath("kernel.json").write_text(json.dumps(kernel_spec))
    startup = Path(variables["IPYTHONDIR"], "profile_default/startup")
    startup.mkdir(parents=True)
    # The kernel imports the package while the page still loads.
    startup.joinpath("import_early.py").write_text("import fedlab_nb.labs\ndel fedlab_nb\n")
    # Each test process begins its search for a free port at another number.
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    port = find_free_port(18888 + 100 * worker)
    log = home / "server.log"
    address = f"http://127.0.0.1:{port}"
    command = make_jupyterlab_command(port)
    with (
        log.open("w") as output,
        run_server(command, cwd=course, env=variables, stdout=output, stderr=output) as server,
    ):
        wait_until_server_answers_or_ends(port, server)
        try:
            urlopen(f"{address}/api/status?token={TOKEN}", timeout=120).close()
        except URLError as error:
            pytest.fail(f"JupyterLab did not start ({error}): {log.read_text()[-2000:]}")
        yield address


@pytest.fixture(scope="session")
def browser(chromium: str):
    """One headless browser for all scenarios."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, lab: str):
    """A fresh window, in which each wait may take two minutes."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.token = TOKEN
    yield page
    shut_down_all_kernels(page, lab)  # a kernel takes 400 MB
    context.close()
