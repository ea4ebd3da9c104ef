"""Views whose button runs a method with several values of a setting, and functions for their results."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from statistics import mean
from typing import Any, ClassVar, NamedTuple

from ..panels import LabView, MethodAndArgumentsByName, PanelState
from ..plots import MethodResults, Picture, make_blank_picture
from ..plots.words import SettingCaption, make_setting_caption
from ..studies.outcome import Outcome
from ..studies.stored_rows import FOLDER, StoredRow, read_stored_rows
from ..value_types import Accuracy0To1, SettingsByName

AccuracyBySeed = Mapping[int, Accuracy0To1]
WorkResult = tuple[Any, ...]  # what a view's `work` returns
WITHOUT_EFFECT = ("device", "cache")  # settings of a run that do not change its result


class PlannedRun(NamedTuple):
    """One of the runs that a button makes, with the settings that change its result."""

    name: Any
    method: str
    settings: SettingsByName


class StoredLabRuns(NamedTuple):
    """Runs that were stored for a lab.

    caption: when they were stored, and with which setting
    rows:    a row for each run
    """

    caption: str
    rows: list[StoredRow]


class ShownResult(NamedTuple):
    """What a view shows.

    result:    None if there is none
    is_stored: whether it comes from stored runs
    """

    result: Any
    is_stored: bool


class ButtonView(LabView):
    """A view of the runs that its button makes. Before the button is pressed it shows stored runs, if there are any.

    `work` returns a tuple. In a view with stored runs its first item is the setting in words.

    choice: name of the control that chooses what is run; its value is the last item of the tuple
    """

    ready = "data"
    needs = (*LabView.needs, "shows_stored")
    choice: ClassVar[str] = ""

    def make_stored_result(self, state: PanelState) -> WorkResult | None:
        """Make what `work` would return from stored runs; None if there are none."""
        return None

    def draw_result(self, state: PanelState) -> Picture:
        """Draw the picture of `state.worked`."""
        raise NotImplementedError

    def describe_worked_setting(self, state: PanelState) -> SettingCaption | str:
        """Describe the setting of `state.worked`."""
        return state.worked_setting

    def choose_own_or_stored_result(self, state: PanelState) -> ShownResult:
        """Return the result to show: that of the button if it fits the controls, else stored runs."""
        result = state.worked
        if result is not None and self._is_result_of_present_choice(result):
            return ShownResult(result, is_stored=False)
        if state.shows_stored:
            return ShownResult(self.make_stored_result(state), is_stored=True)
        return ShownResult(None, is_stored=True)

    def _is_result_of_present_choice(self, work_result: WorkResult) -> bool:
        """Whether the button made this result with the present value of the control."""
        if not self.choice:
            return True
        return work_result[-1] == getattr(self, self.choice).value

    def draw(self, state: PanelState) -> Picture:
        result, _ = self.choose_own_or_stored_result(state)
        if result is None:
            return make_blank_picture(
                f"Press “{self.work_label}”. {self.work_help}", setting=state.setting
            )
        return self.draw_result(replace(state, worked=result))

    def caption(self, state: PanelState) -> str:
        result, is_stored = self.choose_own_or_stored_result(state.make_state_for_view(self.name))
        if result and is_stored:
            return f"{result[0]}."
        if result is None:
            return super().caption(state)
        setting = self.describe_worked_setting(state.make_state_for_view(self.name))
        if not self.is_older(state):
            return str(setting)
        if state.running:
            return f"{setting} (the controls have moved since)"
        return f"{setting} (the controls have moved: press “{self.work_label}”)"

    def is_older(self, state: PanelState) -> bool:
        """Whether the button would now run something else than the runs that are shown."""
        state = state.make_state_for_view(self.name)
        result, is_stored = self.choose_own_or_stored_result(state)
        if result is None or is_stored:
            return False
        if state.federation is None:
            return True
        if state.worked_runs is None:
            return False
        present_runs = copy_runs_without_device_and_cache_settings(self.planned_runs(state))
        return present_runs != copy_runs_without_device_and_cache_settings(state.worked_runs)


def copy_runs_without_device_and_cache_settings(
    planned_runs: MethodAndArgumentsByName,
) -> list[PlannedRun]:
    """List the planned runs without the settings `device` and `cache`, which change no result."""
    runs = []
    for name, (method, arguments) in planned_runs.items():
        settings = {key: value for key, value in arguments.items() if key not in WITHOUT_EFFECT}
        runs.append(PlannedRun(name, method, settings))
    return runs


@cache
def read_stored_lab_runs(run_set_name: str) -> StoredLabRuns:
    """Read the stored runs with this name; papers/declared/labs.toml declares them."""
    about, rows = read_stored_rows(FOLDER / "labs.json")
    rows = [row for row in rows if row["runs"] == run_set_name]
    first_row = rows[0]
    seeds = f"seeds {first_row['seeds'][0]}–{first_row['seeds'][-1]}"
    caption = f"Stored {about['date']}: {make_setting_caption(first_row['at'], seeds)}"
    return StoredLabRuns(caption, rows)


def get_row_values_by_seed(
    stored_row: StoredRow, column_name: str = "accuracy"
) -> dict[int, float]:
    """Return {seed: value} of one column of a stored row. KeyError if there is no such column."""
    return dict(zip(stored_row["seeds"], stored_row[column_name], strict=True))


def get_accuracies_by_seed(outcomes_by_seed: Mapping[int, Outcome]) -> AccuracyBySeed:
    """Return {seed: test accuracy} for {seed: Outcome}."""
    return {seed: outcome.accuracy for seed, outcome in outcomes_by_seed.items()}


def make_accuracy_and_upload_series(
    row_label: str, outcomes_by_seed: Mapping[int, Outcome], method_name: str = ""
) -> MethodResults:
    """Make a row of a picture: test accuracies by seed, and as `up` the mean bytes that one client sends.

    method_name: gives the row its colour, "" for none
    """
    bytes_per_client = []
    for outcome in outcomes_by_seed.values():
        bytes_per_client.append(outcome.bytes_up / len(outcome.label_counts))
    accuracies = get_accuracies_by_seed(outcomes_by_seed)
    return MethodResults(
        row_label, method=method_name, accuracies=accuracies, up=mean(bytes_per_client)
    )
