"""The set-up script's decisions; that it really installs is seen whenever it runs the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from fedlab_nb import start

SCRIPT = Path(start.__file__)


def test_it_uses_the_standard_library_only():
    """Also where torch and the rest are not installed: -I leaves out the environment, -S its packages."""
    call = subprocess.run([sys.executable, "-I", "-S", str(SCRIPT), "fly"], capture_output=True, text=True)
    assert call.returncode == 1
    assert call.stderr == "Unknown task 'fly'. Allowed: open, test (open is the default).\n"


def test_an_old_python_gets_a_sentence(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    assert "needs Python 3.10 or newer" in start.main([])


def test_tasks_are_the_readme_s_commands():
    readme = (SCRIPT.parents[1] / "README.md").read_text()
    assert "python3 fedlab_nb/start.py\n" in readme
    assert "python3 fedlab_nb/start.py test\n" in readme
    for _, (_, command) in start.TASKS.items():
        assert all((SCRIPT.parents[1] / part).is_file() for part in command if part.endswith(".py"))


def test_a_failed_installation_is_a_sentence(monkeypatch):
    def fail(*_):
        raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(start, "make_environment", lambda: None)
    monkeypatch.setattr(start, "install", fail)
    assert start.main([]).startswith("The installation stopped")


def test_installing_is_skipped_when_nothing_changed(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(start, "ENVIRONMENT", tmp_path)
    monkeypatch.setattr(subprocess, "check_call", lambda command, **_: calls.append(command))
    start.install("")
    start.install("")
    assert len(calls) == 1
    start.install("[test]")
    assert calls[1][-1] == ".[test]"


@pytest.mark.slow
def test_an_environment_is_made_without_ensurepip(tmp_path, monkeypatch):
    """Debian's python3 without python3-venv; needs the package index."""
    environment = tmp_path / "env"
    monkeypatch.setattr(start, "ENVIRONMENT", environment)
    monkeypatch.setattr(start, "PYTHON", environment / "bin/python")
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    try:
        start.make_environment()
    except SystemExit as stopped:
        pytest.skip(f"the package index was not reached: {stopped}")
    assert start.works("-m", "pip", "--version")
