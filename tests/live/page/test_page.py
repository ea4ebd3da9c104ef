"""The page without Python: its numbers are those of the stored table, it is small, and it loads nothing. In a browser:
tests/browser/test_page.py."""

import base64
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from fedlab_nb.cli import main
from fedlab_nb.data import load as load_data
from fedlab_nb.live.page import DIGITS, RUNS, SUMS, TRAINED
from fedlab_nb.methods import choose_method_label
from fedlab_nb.methods.base import GROUPS
from fedlab_nb.plots.identity import get_method_look
from fedlab_nb.studies.statistics import compute_band
from fedlab_nb.studies.stored_results import SETS, list_datasets_with_stored_results, load

SVG = "http://www.w3.org/2000/svg"
LOADS = re.compile(
    r"""(?:\bsrc|\bsrcset|\bposter|\bdata|\baction)\s*=\s*["']|<(?:link|base|iframe|object|embed)\b[^>]*href\s*=\s*["']|"""
    r"""\burl\(\s*["']?|@import\s*["']?|\bimport\s*\(?\s*["'`]|\bfetch\(|\b(?:XMLHttpRequest|WebSocket|EventSource)"""
)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """The file that the command writes."""
    path = tmp_path_factory.mktemp("page") / "playground.html"
    assert main(["page", "--out", str(path)]) == 0
    return path.read_text(encoding="utf-8")


def test_the_page_in_the_checkout_is_what_the_command_writes(text):
    """Where it is not: `fedlab-nb page --out notebooks/playground.html --force`."""
    path = Path(__file__).parents[3] / "notebooks" / "playground.html"
    assert path.read_text(encoding="utf-8") == text


@pytest.fixture(scope="module", params=SETS)
def data(text, request):
    """What the page says of one data set."""
    script = r'<script id="data" type="application/json">(.*?)</script>'
    datasets = json.loads(re.search(script, text, re.DOTALL)[1])
    assert list(datasets) == list_datasets_with_stored_results()
    if request.param not in datasets:
        pytest.skip("there is no stored table of this data set")
    return datasets[request.param] | {"name": request.param}


def test_it_is_one_small_file_that_loads_nothing(text):
    assert len(text.encode()) < 1_500_000
    assert not re.search(r"@[\w.]+\.(css|js)@|@data@", text)
    for part in LOADS.finditer(text):
        assert text[part.end() :].startswith("data:"), text[part.start() : part.end() + 40]
    outside = re.findall(r"""https?://[^\s"'`<)]+""", text)
    outside = [link for link in outside if link != SVG]  # a name, of which nothing is loaded
    assert all(f'<a href="{link}' in text for link in outside)  # links to read are welcome


def test_the_pattern_of_what_loads_finds_each_way_to_load():
    examples = (
        '<img src="x.png">',
        "url(a.woff)",
        'fetch("x")',
        '<link rel="x" href="a.css">',
        'import("./a.js")',
    )
    for example in examples:
        assert LOADS.search(example), example


def test_its_numbers_are_the_stored_ones(data):
    table = load(data["name"])
    assert list(data["results"]) == [m["name"] for m in data["methods"]] == table.methods
    for name, by_clients in data["results"].items():
        for clients, cells in zip(table.client_counts, by_clients, strict=True):
            for alpha, cell in zip(table.alphas, cells, strict=True):
                row = table.rows[name, alpha, clients]
                band = compute_band(table.get_accuracies_by_seed(name, alpha, clients))
                assert cell["accuracies"] == row["accuracy"]
                assert cell["mean"] == pytest.approx(band.mean, abs=1e-9)
                assert cell["half"] == pytest.approx(band.half_width, abs=0.6 * 10**-DIGITS)
                assert cell["up"] * len(table.seeds) == pytest.approx(sum(row["bytes_up"]))
                assert cell["down"] * len(table.seeds) == pytest.approx(sum(row["bytes_down"]))


def test_it_says_what_is_stored(data):
    table = load(data["name"])
    settings = data["about"]["settings"]
    assert settings["alpha"] == table.alphas
    assert settings["clients"] == table.client_counts
    assert settings["seed"] == table.seeds
    assert f"{len(load_data(data['name']).y_test)} test images" in data["images"]


def test_it_has_the_packages_samples(data):
    dataset = load_data(data["name"])
    assert [int(digit) for digit in data["labels"]] == dataset.y_train.tolist()
    live = data["live"]
    assert [int(digit) for digit in live["answers"]] == dataset.y_test.tolist()
    for part, x in (("train", dataset.x_train), ("test", dataset.x_test)):
        pixels = np.frombuffer(base64.b64decode(live[part]), np.uint8) / live["levels"]
        assert np.array_equal(pixels.astype(np.float32), x.flatten().numpy())
    assert dataset.x_train.shape[1:] == (1, live["side"], live["side"])
    is_trained = data["name"] == TRAINED
    assert live["trainsNetworks"] == is_trained
    assert [row["name"] for row in live["rows"]] == list(RUNS if is_trained else SUMS)


def test_every_method_has_its_look_and_a_group(data):
    for method in data["methods"]:
        colour, _, line = get_method_look(method["name"])
        assert method["colour"] == colour
        assert (method["dash"] == "none") == (line == "-")
        assert method["outline"].startswith("M")
        assert method["title"] == choose_method_label(method["name"])
    assert len({method["outline"] for method in data["methods"]}) > 5
    grouped = list(itertools.chain.from_iterable(data["groups"].values()))
    assert sorted(grouped) == sorted(data["results"])
    assert [title for title in GROUPS if title in data["groups"]] == list(data["groups"])
    assert f"Results of {len(data['results'])} methods" in data["words"]
    assert data["about"]["date"] in data["words"]


def test_a_folder_that_does_not_exist_is_one_sentence(tmp_path, capsys):
    assert main(["page", "--out", str(tmp_path / "no" / "page.html")]) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "cannot be written" in message
    assert "--out" in message
