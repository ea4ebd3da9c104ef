"""The licence is the same wherever the project names one."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_place_names_the_same_licence():
    assert (ROOT / "LICENSE").read_text().startswith("BSD 3-Clause License\n")
    declared = {
        "pyproject.toml": re.search(
            r'^license = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M
        ),
        "CITATION.cff": re.search(r"^license: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M),
    }
    assert {place: match and match[1] for place, match in declared.items()} == {
        "pyproject.toml": "BSD-3-Clause",
        "CITATION.cff": "BSD-3-Clause",
    }
    for page in ("README.md", "NOTICE", "CONTRIBUTING.md"):
        assert "BSD 3-Clause" in (ROOT / page).read_text(), page


def test_the_packaged_metadata_carries_licence_and_notice():
    project = (ROOT / "pyproject.toml").read_text()
    assert 'license-files = ["LICENSE", "NOTICE"]' in project
    assert (ROOT / "NOTICE").is_file()


def test_the_citation_names_the_version_of_the_package():
    from fedlab_nb import __version__

    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.+)$", citation, re.M)[1] == __version__
