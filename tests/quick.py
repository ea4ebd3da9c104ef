"""Loaded before pytest's other plugins (`-p tests.quick`), in the call that takes all unit tests.

nbval reads notebooks with jsonschema, whose import builds a parser of web addresses if the package for it is there:
more than a second for each process of the tests, and no test needs it.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # Python's mark of a module that cannot be had
