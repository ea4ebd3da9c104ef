"""How fast panels answer in JupyterLab, in figures: `python tests/benchmarks/drag.py [-k NAME]` (about four minutes).

It runs `tests/browser/test_feel.py` with as many changes as that asks for, and prints what it saw beside the load.
"""

import os
import sys
from pathlib import Path

import pytest

os.environ["FEDLAB_NB_FEEL"] = "1"
file = Path(__file__).parents[1] / "browser" / "test_feel.py"
sys.exit(pytest.main([str(file), "-q", "-s", "--no-header", "-m", "browser", "-p", "no:cacheprovider", *sys.argv[1:]]))
