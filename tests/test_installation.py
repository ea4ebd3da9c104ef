"""The hint for an optional package names a command that fits how the package was installed."""

import json
from pathlib import Path

import pytest

from fedlab_nb import installation
from fedlab_nb.installation import format_install_command, format_pip_source_address_or_empty


def test_in_a_checkout_the_checkout_is_installed(tmp_path):
    assert format_install_command("onnx", tmp_path, tmp_path) == "pip install -e '.[onnx]'"


def test_outside_the_checkout_its_folder_is_named(tmp_path):
    elsewhere = tmp_path / "work"
    assert (
        format_install_command("onnx", tmp_path, elsewhere) == f"pip install -e '{tmp_path}[onnx]'"
    )


def test_from_an_index_the_name_is_enough():
    assert format_install_command("onnx", pip_source_address="") == "pip install 'fedlab-nb[onnx]'"


def test_from_a_repository_its_address_and_commit_are_repeated():
    record = {
        "url": "https://example.org/course.git",
        "vcs_info": {"vcs": "git", "commit_id": "abc123"},
    }
    origin = format_pip_source_address_or_empty(record)
    assert origin == "git+https://example.org/course.git@abc123"
    expected = "pip install 'fedlab-nb[onnx] @ git+https://example.org/course.git@abc123'"
    assert format_install_command("onnx", pip_source_address=origin) == expected


def test_a_wheel_file_is_named_as_long_as_it_exists(tmp_path):
    wheel = tmp_path / "fedlab nb.whl"
    wheel.touch()
    record = {"url": wheel.as_uri(), "archive_info": {}}
    assert format_pip_source_address_or_empty(record) == wheel.as_uri()
    wheel.unlink()
    assert format_pip_source_address_or_empty(record) == ""


@pytest.fixture
def installed_wheel(monkeypatch, tmp_path):
    """As if the package lay in an environment, installed from a package index."""
    monkeypatch.setattr(installation, "PACKAGE", tmp_path / "site-packages/fedlab_nb")
    monkeypatch.setattr(installation, "find_pip_source_address_or_empty", lambda: "")


def test_this_very_checkout_is_recognised():
    assert installation.find_checkout_folder() == Path(__file__).parents[1]


def test_an_installed_wheel_is_no_checkout(installed_wheel):
    assert installation.find_checkout_folder() is None
    assert format_install_command("voila") == "pip install 'fedlab-nb[voila]'"


def test_the_folder_of_another_project_is_no_checkout(monkeypatch, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "another"\n')
    monkeypatch.setattr(installation, "PACKAGE", tmp_path / "fedlab_nb")
    assert installation.find_checkout_folder() is None


def test_the_source_that_pip_recorded_is_read(monkeypatch):
    class Distribution:
        def read_text(self, name):
            assert name == "direct_url.json"
            return json.dumps({"url": "https://example.org/fedlab_nb.whl", "archive_info": {}})

    monkeypatch.setattr(installation.metadata, "distribution", lambda name: Distribution())
    assert installation.find_pip_source_address_or_empty() == "https://example.org/fedlab_nb.whl"
