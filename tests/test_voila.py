"""A panel as a page: what is served, its privacy, and one sentence for what is missing or wrong.

tests/browser/test_voila.py tests the page in a browser.
"""

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from fedlab_nb import cli, jupyter, voila

TEMPLATE = Path(voila.__file__).parent / "server_files/voila/templates/fedlab_nb"


@pytest.fixture
def served_page(monkeypatch):
    """What would be served: the server's command, environment and folder, and the page's notebook."""
    page = {}

    def start(command, cwd, env):
        notebook = nbformat.read(next(Path(cwd).glob("*.ipynb")), 4)
        page.update(command=command, environment=env, notebook=notebook, where=cwd)
        return SimpleNamespace(poll=lambda: None, wait=lambda: 0, terminate=lambda: None)

    monkeypatch.setattr(jupyter.subprocess, "Popen", start)
    monkeypatch.setattr(jupyter, "wait_until_server_answers_or_ends", lambda port, server: None)
    monkeypatch.setattr(jupyter.signal, "signal", lambda *_: None)  # signals of this process
    monkeypatch.setattr(voila, "can_open_graphical_browser", lambda: False)
    monkeypatch.setattr(voila, "find_spec", lambda name: name)
    return page


def test_without_voila_there_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setattr(voila, "find_spec", lambda name: None)
    assert cli.main(["voila"]) == 1
    error = capsys.readouterr().err
    assert error.endswith("[voila]'.\n") and error.count("\n") == 1


def test_the_page_is_private(served_page, capsys):
    assert cli.main(["voila", "--no-browser"]) == 0
    command = served_page["command"]
    environment = served_page["environment"]
    assert "--Voila.ip=127.0.0.1" in command and "--Voila.auto_token=True" in command
    [address] = re.findall(r"open at (http://127\.0\.0\.1:\S+)", capsys.readouterr().out)
    assert address.endswith(f"/?token={environment['JUPYTER_TOKEN']}")
    # Other users can read a command line.
    assert not any(environment["JUPYTER_TOKEN"] in part for part in command)
    assert not Path(served_page["where"]).exists()  # nothing is left behind


# Takes its time as the first test of its file: it imports nbformat.
def test_the_playground_and_its_settings(served_page):
    cli.main(["voila", "--theme", "dark", "--set", "alpha=0.05", "--set", "methods=fens,fedlpa"])
    nbformat.validate(served_page["notebook"])
    (cell,) = served_page["notebook"].cells
    assert cell.source.endswith("fl.playground(**{'alpha': 0.05, 'methods': ['fens', 'fedlpa']})")
    assert f"os.chdir({os.getcwd()!r})" in cell.source
    assert served_page["notebook"].metadata.title == "fedlab_nb"
    assert "--VoilaConfiguration.theme=dark" in served_page["command"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("panel", "call"),
    [("compare", "fl.comparison("), ("race", "fl.race("), ("fedov", "fl.lab('fedov', ")],
)
def test_compare_race_and_the_lab_of_a_method(served_page, panel, call):
    voila.serve_panel_until_stopped(panel, settings={"alpha": 0.5})
    assert served_page["notebook"].cells[0].source.endswith(call + "**{'alpha': 0.5})")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fense"], "did you mean 'fens'"),
        (["--theme", "blue"], "light, dark"),
        (["--set", "alpha=9999"], "alpha is 9999"),
        (["--set", "alpha"], "FIELD=VALUE"),
    ],
)
def test_wrong_arguments_get_a_sentence_and_nothing_is_served(
    served_page, capsys, arguments, words
):
    assert cli.main(["voila", *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1 and not served_page


def test_the_browser_gets_the_token_by_a_file(tmp_path, monkeypatch):
    addresses = []
    monkeypatch.setattr(voila.webbrowser, "open", addresses.append)
    voila.open_address_through_private_file("http://127.0.0.1:1/?token=secret", tmp_path)
    assert addresses == [(tmp_path / "open.html").as_uri()]
    assert "url=http://127.0.0.1:1/?token=secret" in (tmp_path / "open.html").read_text()


def test_the_template_loads_nothing_from_elsewhere():
    assert json.loads((TEMPLATE / "conf.json").read_text()) == {"base_template": "lab"}
    assert not re.search(r"https?://|//cdn", (TEMPLATE / "index.html.j2").read_text())
    assert str(TEMPLATE.parents[2]) in jupyter.make_server_environment("t")["JUPYTER_PATH"].split(
        os.pathsep
    )
