"""The decisions of the set-up script; that it really installs is seen whenever its task `test` runs."""

import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fedlab_nb import bootstrap

SCRIPT = Path(bootstrap.__file__)


def test_it_uses_the_standard_library_only():
    """It runs where no package is installed: -I leaves out the environment, -S its packages."""
    call = subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT), "fly"], capture_output=True, text=True
    )
    assert call.returncode == 1
    assert (
        call.stderr == "Unknown task 'fly'. Allowed: open, install, test (open is the default).\n"
    )


def test_an_old_python_gets_a_sentence(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    assert "needs Python 3.10 or newer" in bootstrap.main([])


def test_installing_is_skipped_when_nothing_changed_and_a_failure_is_a_sentence(
    tmp_path, monkeypatch
):
    def fail(*_, **options):
        raise subprocess.CalledProcessError(1, "pip")

    calls = []
    monkeypatch.setattr(bootstrap, "ENVIRONMENT", tmp_path)
    monkeypatch.setattr(bootstrap, "choose_torch_index_url_or_empty", lambda: "")
    monkeypatch.setattr(subprocess, "check_call", lambda command, **_: calls.append(command))
    bootstrap.install_checkout_if_changed("")
    bootstrap.install_checkout_if_changed("")
    assert len(calls) == 1
    monkeypatch.setattr(bootstrap, "choose_torch_index_url_or_empty", lambda: bootstrap.CPU_BUILDS)
    bootstrap.install_checkout_if_changed("[test]")
    assert calls[1][-3:] == ["torch", "--index-url", bootstrap.CPU_BUILDS]
    assert calls[2][-1] == ".[test]"
    monkeypatch.setattr(bootstrap, "make_virtual_environment_if_absent", fail)
    assert bootstrap.main([]).startswith("The installation stopped")


@pytest.mark.parametrize(
    "platform, index, free_gigabytes, has_torch, enough",
    [
        ("linux", "", 6.9, False, False),
        ("linux", "", 7.1, False, True),
        ("linux", "", 1.0, True, True),
        ("linux", bootstrap.CPU_BUILDS, 1.9, False, False),
        ("linux", bootstrap.CPU_BUILDS, 2.1, False, True),
        ("darwin", "", 1.9, False, False),
        ("darwin", "", 2.1, False, True),
    ],
)
def test_a_disk_without_room_gets_a_sentence_before_any_download(
    platform, index, free_gigabytes, has_torch, enough, tmp_path, monkeypatch
):
    calls = []
    usage = SimpleNamespace(free=free_gigabytes * 1e9)
    monkeypatch.setattr(bootstrap, "ENVIRONMENT", tmp_path)
    monkeypatch.setattr(bootstrap, "make_virtual_environment_if_absent", lambda: None)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(bootstrap, "choose_torch_index_url_or_empty", lambda: index)
    monkeypatch.setattr(bootstrap, "does_python_command_succeed", lambda *command: has_torch)
    monkeypatch.setattr(bootstrap.shutil, "disk_usage", lambda folder: usage)
    monkeypatch.setattr(subprocess, "check_call", lambda command, **_: calls.append(command))
    monkeypatch.setattr(bootstrap.os, "execv", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    answer = bootstrap.main(["install"])
    if enough:
        assert answer is None and calls
    else:
        assert f"{free_gigabytes} GB are free where {tmp_path} is" in answer
        assert not calls


def test_without_a_driver_and_with_a_reachable_index_the_cpu_build_is_taken(tmp_path, monkeypatch):
    requests = []

    def answer(address, timeout):
        requests.append((address, timeout))
        return io.BytesIO()

    def time_out(address, timeout):
        raise TimeoutError("no answer")

    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: None)
    monkeypatch.setattr(bootstrap, "PYTHON", tmp_path / "none")  # no torch in this environment yet
    machine = {"platform": "linux", "driver_path": tmp_path / "nvidia", "open_url": answer}
    assert bootstrap.choose_torch_index_url_or_empty(**machine) == bootstrap.CPU_BUILDS
    assert requests == [(f"{bootstrap.CPU_BUILDS}/torch/", bootstrap.SECONDS)]
    assert bootstrap.choose_torch_index_url_or_empty(**{**machine, "platform": "darwin"}) == ""
    assert bootstrap.choose_torch_index_url_or_empty(**{**machine, "open_url": time_out}) == ""
    assert bootstrap.choose_torch_index_url_or_empty(**{**machine, "driver_path": tmp_path}) == ""
    assert len(requests) == 1
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert bootstrap.choose_torch_index_url_or_empty(**machine) == ""
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("page", "why"), [("", "lists no pip"), (f'<a href="../{bootstrap.PIP}#x">', "its digest")]
)
def test_only_the_pip_that_is_known_is_installed(page, why, monkeypatch):
    class Answer(io.BytesIO):
        url = "https://index.example/pip/"

    monkeypatch.setattr(
        bootstrap.urllib.request, "urlopen", lambda address, timeout: Answer(page.encode())
    )
    with pytest.raises(ValueError, match=why):
        bootstrap.download_and_install_pip()


@pytest.mark.slow
def test_an_environment_is_made_without_ensurepip(tmp_path, monkeypatch):
    """Debian's python3 without python3-venv; needs the package index."""
    environment = tmp_path / "env"
    monkeypatch.setattr(bootstrap, "ENVIRONMENT", environment)
    monkeypatch.setattr(bootstrap, "PYTHON", environment / "bin/python")
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    try:
        bootstrap.make_virtual_environment_if_absent()
    except SystemExit as stopped:
        pytest.skip(f"the package index was not reached: {stopped}")
    assert bootstrap.does_python_command_succeed("-m", "pip", "--version")
