"""What is declared in TOML files: every file is read."""

from pathlib import Path

import pytest

import fedlab_nb
from fedlab_nb.declared import declared, parse

PACKAGE = Path(fedlab_nb.__file__).parent
FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.toml"))


@pytest.mark.parametrize("name", FILES)
def test_every_file_can_be_read(name):
    assert declared(name)


def test_what_is_no_toml_says_where():
    with pytest.raises(ValueError, match="line 1"):
        parse("a = = 1")
