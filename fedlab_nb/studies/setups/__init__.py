"""Set-ups: what `preset` names. Each is one paper's experiment for all methods in it, declared in a TOML file here.

A line of a file is `name = [value, source]`; the source says where in the paper (or its authors' code) the value
stands, or that it is given nowhere. `[all]` holds the data, the partition, the clients' models (`model`, and
`one_model` for methods that need one architecture where `model` is a mixture) and the clients' recipe. `[all.METHOD]`
holds what the paper gives that method, recipe fields included; `source` there says where it has the method. `[[rows]]`
change lines for some data sets, values of α or image channels (`when`); later rows win.

The classroom's values stand in the code (`studies/settings.py`, the knobs); its file says where they come from, and has
rows for the data sets that need others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...declared import read_toml
from ...value_types import JsonValue, SettingsByName, SettingValue

CLASSROOM = "classroom"


@dataclass(frozen=True)
class ValueAndSource:
    """One declared value, and where it comes from."""

    value: SettingValue
    source: str


ValuesAndSourcesByName = Mapping[str, ValueAndSource]


@dataclass(frozen=True)
class SetupBlock:
    """Lines that hold together: those of `[all]`, or those of one of the `[[rows]]`.

    shared: lines for all methods
    methods: further lines, by method
    sources: where the paper has each method
    when: of a row, {dataset, alpha or channels: the values for which it holds}
    """

    shared: ValuesAndSourcesByName
    methods: Mapping[str, ValuesAndSourcesByName]
    sources: Mapping[str, str]
    when: Mapping[str, Sequence[SettingValue]] = field(default_factory=dict)

    @classmethod
    def from_toml_table(cls, toml_table: Mapping[str, JsonValue]) -> SetupBlock:
        """Read the lines of a table in a set-up's file: lists are shared lines, tables those of methods."""
        shared = {}
        methods = {}
        sources = {}
        for name, entry in toml_table.items():
            if isinstance(entry, list):
                shared[name] = ValueAndSource(*entry)
            elif isinstance(entry, Mapping) and name != "when":
                methods[name] = {
                    k: ValueAndSource(*line) for k, line in entry.items() if k != "source"
                }
                if "source" in entry:
                    sources[name] = entry["source"]
        return cls(shared, methods, sources, toml_table.get("when", {}))

    def allows_values(self, *, dataset: str, alpha: float, image_channels_or_0: int) -> bool:
        """Whether the block is for these values: a row's `when` allows them.

        image_channels_or_0: 0 for samples that are not images
        """
        values = {"dataset": dataset, "alpha": alpha, "channels": image_channels_or_0}
        return all(values[name] in allowed for name, allowed in self.when.items())

    def copy_with_values_of_row(self, row: SetupBlock) -> SetupBlock:
        """Copy the block with the lines of a row in place of its own."""
        methods = dict(self.methods)
        for name, lines in row.methods.items():
            methods[name] = {**methods.get(name, {}), **lines}
        return SetupBlock({**self.shared, **row.shared}, methods, {**self.sources, **row.sources})


@dataclass(frozen=True)
class Setup:
    """A set-up: `block` is what holds in general, `rows` what some data sets change.

    datasets: those of the paper that are here (none: any)
    missing: what the paper's experiment has and the package cannot express
    words: the classroom's sources, by setting
    """

    name: str
    title: str
    paper: str
    help: str
    block: SetupBlock
    rows: tuple[SetupBlock, ...] = ()
    datasets: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read_toml_of_preset(cls, preset_name: str) -> Setup:
        """Read the set-up of that name from its file."""
        content = read_toml(f"studies/setups/{preset_name}.toml")
        return cls(
            preset_name,
            title=content["title"],
            paper=content["paper"],
            help=content["help"],
            block=SetupBlock.from_toml_table(content.get("all", {})),
            rows=tuple(SetupBlock.from_toml_table(row) for row in content.get("rows", ())),
            datasets=tuple(content.get("datasets", ())),
            missing=tuple(content.get("missing", ())),
            words=content.get("sources", {}),
        )

    def copy_with_values_for_dataset_and_alpha(
        self, dataset: str, alpha: float, input_shape: Sequence[int]
    ) -> Setup:
        """Make the set-up for these data and α: general lines with those of its rows that hold for them."""
        channels = input_shape[0] if len(input_shape) == 3 else 0
        block = self.block
        for row in self.rows:
            if row.allows_values(dataset=str(dataset), alpha=alpha, image_channels_or_0=channels):
                block = block.copy_with_values_of_row(row)
        return replace(self, block=block, rows=())

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of the paper, in the file's order."""
        return tuple(self.block.methods)

    def select_declared_values(
        self, setting_names: Sequence[str], method_or_empty_for_shared: str = ""
    ) -> dict[str, ValueAndSource]:
        """Select those of `setting_names` that are declared: for all methods, or for one method."""
        declared_lines = self.block.shared
        if method_or_empty_for_shared:
            declared_lines = self.block.methods.get(method_or_empty_for_shared, {})
        return {name: line for name, line in declared_lines.items() if name in setting_names}


def get_values_without_sources(lines: ValuesAndSourcesByName) -> SettingsByName:
    """Return the values without their sources."""
    return {name: line.value for name, line in lines.items()}


def format_setting_value(value: SettingValue) -> str:
    """Write a value as a person types it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


FOLDER = Path(__file__).parent
NAMES = (CLASSROOM, *sorted({path.stem for path in FOLDER.glob("*.toml")} - {CLASSROOM}))
SETUPS: dict[str, Setup] = {name: Setup.read_toml_of_preset(name) for name in NAMES}
