"""Names of types that all folders use: settings that a person gives, JSON values, and `with` blocks.

A setting may be of many types, so `SettingValue` is `Any`; its name says what is passed.
"""

from collections.abc import Iterator
from typing import Any

JsonValue = Any  # what `json.dumps` writes: a number, a text, a truth value, None, a list or a dict
JsonObject = dict[str, Any]  # of JsonValues by name
# A number, a text, a truth value, None, or a list of these; of the setting `dataset` also data.
SettingValue = Any
# Settings of a run by name, as `fl.run` takes them: {"dataset": "digits", "alpha": 0.1, "fens.rounds": 5}.
SettingsByName = dict[str, SettingValue]
# The return type of a function with `@contextmanager` that yields nothing.
WithBlock = Iterator[None]
ExitCode = int  # of a program: 0 if all went well
TextByName = dict[str, str]
HexDigest = str  # SHA-256 of some bytes, in hexadecimal
ClientIndex = int  # from 0
SampleShape = tuple[int, ...]  # (C, H, W), (C, T) or (D,)
ImageShape = tuple[int, int, int]  # (C, H, W)
RecordingShape = tuple[int, int]  # (C, T)
HeightAndWidth = tuple[int, int]
Sentence = str  # for a reader, on the screen or in a terminal
SentenceOrEmpty = str  # "" if there is nothing to say
Accuracy0To1 = float  # the share of samples that are predicted right
Bytes = int
Seconds = float
MeanPassesPerClient = float  # of a client over its own samples, the mean over clients
