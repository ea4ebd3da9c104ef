"""Opening the course: its folder, what is copied, and a server that is private and answers."""

import os
import re
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from jupyterlab_server.workspaces_handler import WorkspacesManager
from traitlets.utils.importstring import import_item

from fedlab_nb import jupyter
from fedlab_nb.declared import read_toml
from fedlab_nb.errors import RunError, UsageError
from fedlab_nb.sockets import PromptConnection


def test_a_checkout_opens_its_own_notebooks():
    folder = jupyter.prepare_course_folder()
    assert folder.name == "notebooks"
    assert (folder / jupyter.FIRST).is_file()


def test_a_wheel_s_course_is_copied_with_all_that_is_in_it_and_never_overwritten(
    tmp_path, monkeypatch
):
    course = tmp_path / "site/fedlab_nb/_course"
    expected = {jupyter.FIRST, "02_new.ipynb", "images/a.png", "instructor/02_new.md"}
    for name in (
        *expected,
        "studies/README.md",
        ".ipynb_checkpoints/02_new-checkpoint.ipynb",
        "make.py",
    ):
        (course / name).parent.mkdir(parents=True, exist_ok=True)
        (course / name).write_text("{}")
    monkeypatch.setattr(jupyter, "__file__", str(course.parent / "launch.py"))
    monkeypatch.chdir(tmp_path)
    folder = jupyter.prepare_course_folder()
    assert folder == tmp_path / "fedlab_nb_course"
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} == expected
    (folder / "instructor/02_new.md").write_text("my notes")
    (course / "03_newer.ipynb").write_text("{}")
    jupyter.prepare_course_folder(folder)
    assert (folder / "instructor/02_new.md").read_text() == "my notes"
    assert (folder / "03_newer.ipynb").is_file()


@pytest.mark.slow
def test_every_link_to_a_file_of_the_course_is_copied_with_it(tmp_path):
    """Notebooks and teachers' pages link to each other and to pictures; no link may lead out of the copy."""
    folder = jupyter.prepare_course_folder(tmp_path / "course")
    for page in [*folder.rglob("*.ipynb"), *folder.rglob("*.md")]:
        for link in re.findall(
            r"\]\((?!https?:|#|mailto:|attachment:)([^)\s#]+)", page.read_text(encoding="utf-8")
        ):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_wrong_folders(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file is a file"):
        jupyter.prepare_course_folder(tmp_path / "file")
    monkeypatch.setattr(jupyter, "__file__", str(tmp_path / "nothing/fedlab_nb/launch.py"))
    with pytest.raises(RunError, match="install fedlab-nb again"):
        jupyter.prepare_course_folder()


def test_the_server_is_private():
    command = jupyter.make_jupyterlab_command(1234)
    assert {"--ServerApp.ip=127.0.0.1", "--ServerApp.open_browser=False"} <= set(command)
    # Other users can read a command line.
    assert not any("token" in part.lower() for part in command)


def test_the_first_layout_has_no_list_of_files_and_a_later_one_is_the_readers(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path))
    monkeypatch.delenv("JUPYTERLAB_WORKSPACES_DIR", raising=False)
    environment = jupyter.make_jupyterlab_layout_variables()
    manager = WorkspacesManager(environment["JUPYTERLAB_WORKSPACES_DIR"])
    layout = manager.load("default")["data"]["layout-restorer:data"]
    assert layout["left"]["collapsed"] and "filebrowser" in layout["left"]["widgets"]
    manager.save("default", '{"data": {}, "metadata": {"id": "default"}}')
    assert jupyter.make_jupyterlab_layout_variables() == environment
    assert manager.load("default")["data"] == {}
    monkeypatch.setenv("JUPYTERLAB_WORKSPACES_DIR", "mine")
    assert jupyter.make_jupyterlab_layout_variables() == {}
    monkeypatch.delenv("JUPYTERLAB_WORKSPACES_DIR")
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("FEDLAB_NB_STORE", str(tmp_path / "file"))
    assert jupyter.make_jupyterlab_layout_variables() == {}


def test_free_port_skips_a_taken_one():
    with socket.socket() as occupied_socket:
        occupied_socket.bind(("127.0.0.1", 0))
        occupied_socket.listen()
        port = occupied_socket.getsockname()[1]
        assert jupyter.find_free_port(port) != port


def test_no_graphical_browser_without_a_display(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert not jupyter.can_open_graphical_browser()


@pytest.mark.slow
def test_fedlab_nb_prints_an_address_that_answers_and_stops(tmp_path):
    variables = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    scratch = {name: str(tmp_path) for name in variables}
    command = [sys.executable, "-m", "fedlab_nb", "--no-browser"]
    command += ["--folder", str(tmp_path / "course")]
    process = subprocess.Popen(
        command, env={**os.environ, **scratch}, stdout=subprocess.PIPE, text=True
    )
    try:
        line = process.stdout.readline()
        match = re.search(
            r"(http://127\.0\.0\.1:\d+)/lab/tree/1_start_here\.ipynb\?token=(\w+)", line
        )
        address, token = match.groups()
        with urlopen(
            f"{address}/api/contents/{jupyter.FIRST}?content=0&token={token}", timeout=120
        ) as answer:
            assert answer.status == 200
        with pytest.raises(HTTPError, match="403"):
            urlopen(f"{address}/api/contents/{jupyter.FIRST}?content=0", timeout=120)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    with pytest.raises(OSError):
        urlopen(address, timeout=5)


def test_both_servers_send_small_messages_at_once(monkeypatch):
    calls = []
    monkeypatch.setattr(
        ZMQChannelsWebsocketConnection, "connect", lambda self: calls.append("connected")
    )

    class Connection(PromptConnection):
        websocket_handler = SimpleNamespace(set_nodelay=lambda value: calls.append(value))

    Connection().connect()
    assert calls == [True, "connected"]
    Connection.websocket_handler = SimpleNamespace()  # of a tornado that cannot
    Connection().connect()
    assert calls[2:] == ["connected"]
    for server in ("jupyterlab", "voila"):
        [option] = [
            setting
            for setting in read_toml("servers.toml")[server]
            if "connection_class" in setting
        ]
        assert import_item(option.split("=")[1]) is PromptConnection


def test_a_server_that_our_connection_does_not_fit_runs_without_it(monkeypatch):
    assert len(jupyter.make_server_options("voila", port=1, theme="light")) == len(
        read_toml("servers.toml")["voila"]
    )
    monkeypatch.setenv("JUPYTER_GATEWAY_URL", "http://kernels.example")
    assert not any("sockets" in option for option in jupyter.make_jupyterlab_command(1234))
    monkeypatch.delenv("JUPYTER_GATEWAY_URL")
    monkeypatch.setitem(sys.modules, "fedlab_nb.sockets", None)
    assert not any("sockets" in option for option in jupyter.make_jupyterlab_command(1234))
    assert "--Voila.ip=127.0.0.1" in jupyter.make_server_options("voila", port=1, theme="light")
