"""A field in which a person draws a digit."""

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ..declared import ROOT

HERE = Path(__file__).parent


class Ink(anywidget.AnyWidget):
    """What is drawn in it with mouse, pen or finger, as the package's digits are made (`page/ink.js` says how).

    seen: what the drawing is by now, 64 numbers 0-1, row by row; [] as long as there is no ink
    value: the same when the pen was last lifted
    """

    _esm = "\n".join(place.read_text(encoding="utf-8") for place in (ROOT / "page" / "ink.js", HERE / "ink.js"))
    seen: Any = traitlets.List().tag(sync=True)
    value: Any = traitlets.List().tag(sync=True)
