"""The set-up script's decisions; that it really installs is seen whenever it runs the tests."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from fedlab_nb import bootstrap

SCRIPT = Path(bootstrap.__file__)


def test_it_uses_the_standard_library_only():
    """Also where torch and the rest are not installed: -I leaves out the environment, -S its packages."""
    call = subprocess.run([sys.executable, "-I", "-S", str(SCRIPT), "fly"], capture_output=True, text=True)
    assert call.returncode == 1
    assert call.stderr == "Unknown task 'fly'. Allowed: open, test (open is the default).\n"


def test_an_old_python_gets_a_sentence(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    assert "needs Python 3.10 or newer" in bootstrap.main([])


def test_tasks_are_the_readme_s_commands():
    readme = (SCRIPT.parents[1] / "README.md").read_text()
    assert "python3 fedlab_nb/bootstrap.py\n" in readme
    assert "python3 fedlab_nb/bootstrap.py test\n" in readme
    for _, (_, command) in bootstrap.TASKS.items():
        assert all((SCRIPT.parents[1] / part).is_file() for part in command if part.endswith(".py"))


def test_a_failed_installation_is_a_sentence(monkeypatch):
    def fail(*_):
        raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(bootstrap, "make_environment", lambda: None)
    monkeypatch.setattr(bootstrap, "install", fail)
    assert bootstrap.main([]).startswith("The installation stopped")


def test_installing_is_skipped_when_nothing_changed(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(bootstrap, "ENVIRONMENT", tmp_path)
    monkeypatch.setattr(bootstrap, "torch_index", lambda: "")
    monkeypatch.setattr(subprocess, "check_call", lambda command, **_: calls.append(command))
    bootstrap.install("")
    bootstrap.install("")
    assert len(calls) == 1
    bootstrap.install("[test]")
    assert calls[1][-1] == ".[test]"


def test_without_a_driver_and_with_an_index_that_answers_the_cpu_build_is_taken(tmp_path, monkeypatch, capsys):
    asked, calls = [], []

    def opener(address, timeout):
        asked.append((address, timeout))
        return io.BytesIO()

    def silent(address, timeout):
        raise TimeoutError("no answer")

    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: None)
    monkeypatch.setattr(bootstrap, "PYTHON", tmp_path / "none")  # no torch in this environment yet
    here = {"platform": "linux", "driver": tmp_path / "nvidia", "opener": opener}
    assert bootstrap.torch_index(**here) == bootstrap.CPU_BUILDS
    assert asked == [(f"{bootstrap.CPU_BUILDS}/torch/", bootstrap.SECONDS)]
    assert bootstrap.torch_index(**{**here, "platform": "darwin"}) == ""
    assert bootstrap.torch_index(**{**here, "opener": silent}) == ""
    assert bootstrap.torch_index(**{**here, "driver": tmp_path}) == "" and len(asked) == 1
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert bootstrap.torch_index(**here) == "" and len(asked) == 1

    monkeypatch.setattr(bootstrap, "ENVIRONMENT", tmp_path)
    monkeypatch.setattr(subprocess, "check_call", lambda command, **_: calls.append(command))
    for index, words in ((bootstrap.CPU_BUILDS, "CPU build"), ("", "that pip finds")):
        monkeypatch.setattr(bootstrap, "torch_index", lambda index=index: index)
        bootstrap.install(f"[{len(index)}]")
        assert words in capsys.readouterr().out
    assert calls[0][-3:] == ["torch", "--index-url", bootstrap.CPU_BUILDS] and [c[-1][0] for c in calls[1:]] == [
        ".",
        ".",
    ]


def index_page(*wheels):
    """A page of a package index: (version, what it says of Python)."""
    return "".join(
        f'<a href="../files/pip-{v}-py3-none-any.whl#sha256={i:064x}" data-requires-python="{needs}">pip-{v}</a><br/>\n'
        for i, (v, needs) in enumerate(wheels)
    )


def test_the_newest_pip_that_fits_this_python():
    page = index_page(
        ("26.3", "&gt;=3.12"), ("9.0.3", "&gt;=2.6,!=3.0.*"), ("25.0.1", "&gt;=3.8"), ("24.0", "&gt;=3.7")
    )
    assert bootstrap.pip_wheel(page, (3, 12, 1))[1] == "pip-26.3-py3-none-any.whl"
    link, name, digest = bootstrap.pip_wheel(page, (3, 11, 7))
    assert (link, name) == ("../files/pip-25.0.1-py3-none-any.whl", "pip-25.0.1-py3-none-any.whl")
    assert int(digest, 16) == 2
    with pytest.raises(ValueError, match="no pip for Python 2.5"):
        bootstrap.pip_wheel(page, (2, 5, 0))
    yanked = page.replace('<a href="../files/pip-25', '<a data-yanked="" href="../files/pip-25')
    assert bootstrap.pip_wheel(yanked, (3, 11, 7))[1] == "pip-24.0-py3-none-any.whl"


@pytest.mark.parametrize(
    "needs, python, fits",
    [
        (">=3.9", (3, 10, 0), True),
        (">=3.10", (3, 9, 9), False),
        (">=3.9.2", (3, 9, 1), False),
        (">=2.7,!=3.0.*,!=3.1.*", (3, 1, 4), False),
        (">=2.7, !=3.0.*", (3, 11, 7), True),
        ("<4", (3, 11, 7), True),
        ("<3.11", (3, 11, 0), False),
        ("", (3, 11, 7), True),
        ("~=3.11", (3, 11, 7), False),  # not understood: not taken
    ],
)
def test_what_a_wheel_says_of_python(needs, python, fits):
    assert bootstrap.takes(needs, python) is fits


@pytest.mark.slow
def test_an_environment_is_made_without_ensurepip(tmp_path, monkeypatch):
    """Debian's python3 without python3-venv; needs the package index."""
    environment = tmp_path / "env"
    monkeypatch.setattr(bootstrap, "ENVIRONMENT", environment)
    monkeypatch.setattr(bootstrap, "PYTHON", environment / "bin/python")
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    try:
        bootstrap.make_environment()
    except SystemExit as stopped:
        pytest.skip(f"the package index was not reached: {stopped}")
    assert bootstrap.works("-m", "pip", "--version")
