"""Types that every room uses: settings that a person gives, what JSON has, and `with` blocks.

Settings are open, since they may be of many types; the names say what is passed.
"""

from collections.abc import Iterator
from typing import Any

JsonValue = Any  # what `json.dumps` writes: a number, a text, a truth value, None, a list or a dict
JsonObject = dict[str, Any]  # of JsonValues by name
# A number, a text, a truth value or None; several of them in a list; data, where they are asked for.
SettingValue = Any
# Settings of a run by name, as `fl.run` takes them: {"dataset": "digits", "alpha": 0.1, "fens.rounds": 5}.
SettingsByName = dict[str, SettingValue]
# What a function with `@contextmanager` returns that is used by `with` alone.
WithBlock = Iterator[None]
SampleShape = tuple[int, ...]  # (C, H, W), (C, T) or (D,)
ImageShape = tuple[int, int, int]  # (C, H, W)
HeightAndWidth = tuple[int, int]
