"""The playground: a panel whose controls, piles, bars and image are the stage of `front/`, drawn in the browser.

The panel's settings are still read from the widgets of `Controls`. A gesture on the stage sets these widgets, and when
Python sets them, the stage is told. So `panel.controls`, `panel.code()` and links are as in every panel.
"""

import html
import math
import operator
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import ipywidgets as widgets
import numpy as np
import torch

from ..data import DATASETS, PartitionEdit, PartitionEdits
from ..plots import Picture
from ..plots.array_types import Recording
from ..plots.words import format_count_and_noun
from ..studies.cost import estimate_cost
from ..tensor_types import OneSample, SampleTensor
from ..value_types import Accuracy0To1
from . import theme
from .controls import OWN_FILE, PREVIEWED
from .facts import describe_cost_or_empty
from .figures import draw_piles_and_results
from .lab_view import FederationArguments, LabSpec, LabView
from .nearest_results import NearestStoredResults, find_nearest_stored_results
from .panel import Panel, RunEventsThenResult
from .stage import Stage
from .stage_data import (
    LIVE_SECONDS,
    ModelAnswers,
    ModelsOfLastRun,
    PartitionsByAlpha,
    SamplesForBrowser,
    StoredTableMessage,
    collect_flights_by_method,
    describe_dataset_and_methods_for_stage,
    describe_newest_results,
    find_newest_run_with_results,
    format_row_cells_by_column,
    list_dataset_menu_entries,
    make_partitions_for_alphas,
    make_stored_table_message,
    make_train_and_test_samples_for_browser,
    rank_column_names_by_class_information,
)
from .views import TabOptions
from .worker import Job, JobEnd, OnJobEnd, OnJobEvent, show_errors_in_status

STEPS = (1, 1.5, 2, 3, 5, 7)  # of the α slider, in each power of ten
STILL_DELAY = 2.0  # seconds of rest after a quick run before the saved picture is drawn: it takes half a second
CLIENT_COUNTS = (*range(1, 21), 25, 30, 40, 50, 75, 100)
HIDDEN_TABS = ("partition",)  # views without a tab, since the piles show the same
# Titles of tabs, other than the views' own.
TITLES = {"communication": "Bytes", "classes": "Classes"}


BrowserMessage = Mapping[str, Any]  # its `kind`, and the data of this kind (see `stage.py`)
MessageHandler = Callable[[BrowserMessage], None]
# The digest of the data set, the methods, the data set's own number of clients, whether α has no effect.
DataKey = tuple[str, tuple[str, ...], tuple[int, bool]]
PixelsMessage = list[float] | Mapping[str, float] | None  # a drawing; JSON makes a dict of an array
# A change by hand: a client's samples of a class (label None: of all classes) go to another client (to None: nobody).
StageGesture = TypedDict("StageGesture", {"from": int, "label": int | None, "to": int | None})


class StageSetting(TypedDict):
    """The setting in the form that the stage has."""

    alpha: float
    clients: int
    seed: int
    moves: list[StageGesture]


class ColumnAndCell(NamedTuple):
    """The name of a column, and a row's value in it as text."""

    column: str
    cell: str


class RunTexts(TypedDict):
    """Texts about the next run.

    runLabel:    the label of Run
    cost:        what a run takes
    isComputed:  whether its results are stored already
    waitsForRun: whether no method is so quick that it runs without Run
    """

    runLabel: str
    cost: str
    isComputed: bool
    waitsForRun: bool


class StageMessage(NamedTuple):
    """A message to the browser: plain values with its `kind`, and arrays."""

    content: dict[str, Any]
    buffers: list[bytes]


class SamplesOfDataset(NamedTuple):
    """The samples of a data set as windows get them, with its digest."""

    digest: str
    train: SamplesForBrowser
    test: SamplesForBrowser


class StagePanel(Panel):
    """A panel with a stage, which shows the panel's state, and whose gestures change it.

    Besides what every panel has, the widget `stage` is public.

    is_strip:    whether the stage is a slim strip above the views, with the panel's own controls beside it
    tells_story: whether the stage calls whoever holds digits a post office, as lesson 1 does
    """

    is_strip = False
    tells_story = False

    def __init__(self, spec: LabSpec, **options: Any) -> None:
        self._samples: SamplesOfDataset | None = None  # of the data set that was sent last
        self._last_sent_data_key: Any = None  # the key of the data message that was sent last
        # By kind, the last message of the kinds that are not sent twice.
        self._last_sent: dict[str, Any] = {}
        # The setting of the stage, as far as it is known here.
        self._setting: StageSetting | dict[str, Any] = {}
        self._base_moves = ""  # changes by hand for which the stage has no gesture
        self._is_dealing = False  # whether a setting of the stage is being put into the controls
        self._has_window = False  # whether the stage has been visible in a window
        self._is_displayed = False  # whether the panel has been displayed
        # A cache: the options of the partitions that were made ahead last, and these partitions.
        self._options_and_partitions_dealt_last: tuple[Any, PartitionsByAlpha] | None = None
        # Whether a run has begun and not ended; a view's own work is not a run.
        self._has_begun_run = False
        self._is_quick_run = False  # whether the present job is a quick run of one seed
        self._is_quick_run_due = False  # whether a gesture needs a quick run after the present job
        self._models_of_last_run: ModelsOfLastRun | None = None
        self._answers: ModelAnswers | None = None  # of these models, on all test samples
        self._answered_run = 0  # the number of the run that these models are of
        self._settings_of_runs: dict[int, StageSetting] = {}  # by the number of the run
        self._run_start_seconds = 0.0  # by `time.monotonic`
        self._seconds_of_run = 0.0  # how long the last run took
        self._hidden = list(options.get("hide") or ())
        self._fixed = list(options.get("fixed") or ())
        self.stage = Stage(self._dispatch_browser_message)
        super().__init__(spec, **options)
        for part in (self.controls.phase, self.controls.error):
            part.observe(lambda _: self._send_job_status(), "value")

    # --------------------------------------------------------------------------------- from the browser
    @show_errors_in_status
    def _dispatch_browser_message(self, message: BrowserMessage) -> None:
        handler = self._get_handlers_by_message_kind().get(message.get("kind", ""))
        if handler is not None:
            handler(message)

    def _get_handlers_by_message_kind(self) -> dict[str, MessageHandler]:
        """Return {kind of a message: its handler}."""
        return {
            "open": self._send_data_and_job_status,
            "opened": self._send_rest_after_piles_are_drawn,
            "samples": self._send_requested_samples,
            "deal": self._apply_setting_and_send_federation,
            "train": self._apply_setting_and_start_run,
            "stop": lambda _: self.stop(),
            "ask": self._send_answers_on_image,
            "explain": self._send_sum_behind_answer,
            "selection": self._select_client_and_class_of_message,
        }

    def _send_data_and_job_status(self, message: BrowserMessage) -> None:
        """A window shows the panel: send it the data and the status."""
        if self._state.federation is not None:
            self._send_data(message.get("view", ""))
        self._send_job_status()

    def _ipython_display_(self) -> None:
        """Show the panel. The stage opens at once, even while the kernel is busy with the cells below."""
        self._is_displayed = True
        self._put_opening_messages_into_widget()
        super()._ipython_display_()

    def _put_opening_messages_into_widget(self) -> None:
        """Put the messages that the first window needs into the widget.

        A person's own data are left out, since the widget's state would be saved in the notebook.
        """
        if not self._is_displayed or self._has_window or self._state.federation is None:
            return
        opening = {}
        if self.controls.dataset.value in DATASETS:
            messages = [
                self._make_data_message(),
                self._make_samples_message(),
                self._make_federation_message(),
                self._make_stored_bands_message(),
            ]
            key = self._get_federation_arguments_without_alpha_or_none()
            if key is not None:
                messages.append(
                    self._make_partitions_message(self._get_or_deal_partition_of_each_alpha(key))
                )
            for content, buffers in messages:
                opening[content["kind"]] = {"content": content, "buffers": buffers}
        self.stage.opening = opening

    def _send_rest_after_piles_are_drawn(self, message: BrowserMessage) -> None:
        """A window has the samples and has drawn the piles: send it everything else."""
        self._last_sent.clear()
        self._has_window = True
        self.stage.opening = {}
        self._send_partitions_of_all_alphas_when_idle()
        self._send_job_status()
        self._send_selection()
        self._send_results_and_texts_if_changed()

    def _apply_setting_and_send_federation(self, message: BrowserMessage) -> None:
        """A gesture has changed the setting: make the federation, and answer with who holds what."""
        if self._state.federation is None:
            return
        # An echo repeats a setting that Python has sent; the controls may have another one by now.
        if not message.get("isEcho"):
            self._apply_stage_setting(message["setting"])
        self._send_federation(message.get("question", ""))

    def _apply_stage_setting(self, setting: StageSetting) -> None:
        """Put a setting of the stage into the controls."""
        wanted = {name: setting[name] for name in ("alpha", "clients", "seed", "moves")}
        self._setting = wanted
        if wanted == self._read_setting_of_controls():
            return
        controls = self.controls
        with self._handler_pause:
            if not controls.natural_client_count_or_zero:
                controls.clients.value = wanted["clients"] - self._count_doubled_clients()
            if not controls.alpha.disabled:
                controls.alpha.value = wanted["alpha"]
            controls.seed.value = wanted["seed"]
            controls.hidden_settings.pop("moves", None)
            text = self._write_gestures_as_edits_text(wanted["moves"])
            if text:
                controls.hidden_settings["moves"] = text
        self._is_dealing = True
        try:
            self._apply_control_values()
        finally:
            self._is_dealing = False

    def _apply_setting_and_start_run(self, message: BrowserMessage) -> None:
        if self._state.federation is None:  # other data are being loaded, and will be sent
            return
        self._apply_stage_setting(message["setting"])
        self._send_federation(message.get("question", ""))
        if message.get("isRun"):
            if self._is_run_under_way and self._is_quick_run:
                self.stop()  # a quick run of one seed must not delay the run of all seeds
            self._start_run(True)
        else:
            self._run_quick_methods_now_or_after_job()

    def _change_state(self, should_draw: bool = True, **changes: Any) -> None:
        """While a slider of the stage moves, update the piles first; the tabs below follow when it rests."""
        is_waited_for = should_draw and self._is_dealing
        super()._change_state(should_draw and not is_waited_for, **changes)
        if is_waited_for:
            draw_all = super()._change_state
            self.controls.debouncer.schedule_update("tabs", lambda: None, lambda _: draw_all())

    def _select_client_and_class_of_message(self, message: BrowserMessage) -> None:
        """A client and a class were selected on the stage: mark them in the pictures of the tabs."""
        client = message["client"]
        class_index = message["class_index"]
        self._last_sent["selection"] = (client, class_index)  # the stage knows it already
        with self._handler_pause:
            self.views.select_client_and_class(client, class_index)
        self._apply_display_options()

    # ------------------------------------------------------------------------------- setting and moves
    def _read_setting_of_controls(self) -> StageSetting:
        """Read the setting of the controls, in the form that the stage has."""
        settings = self._state.settings
        federation = self._state.federation
        gestures, self._base_moves = split_moves_into_gestures_and_rest(
            str(settings.get("moves", "")),
            self._base_moves,
            settings.get("seed", 0),
            federation.ids,
        )
        return {
            "alpha": convert_to_int_if_whole(settings.get("alpha", 0.1)),
            "clients": federation.clients,
            "seed": int(settings.get("seed", 0)),
            "moves": gestures,
        }

    def _write_gestures_as_edits_text(self, gestures: list[StageGesture]) -> str:
        """Write the stage's gestures as the text that `PartitionEdits.parse` reads; those of clients that do not
        exist are left out."""
        ids = self._state.federation.ids
        edits = []
        for gesture in gestures:
            giver = gesture["from"]
            taker = gesture["to"]
            if giver >= len(ids):
                continue
            if taker is None:  # nobody
                edits.append(PartitionEdit(ids[giver], gesture["label"], None))
            elif taker < len(ids):
                edits.append(PartitionEdit(ids[giver], gesture["label"], ids[taker]))
        texts = [self._base_moves, str(PartitionEdits(tuple(edits)))]
        return ", ".join(text for text in texts if text)

    def _count_doubled_clients(self) -> int:
        return len(PartitionEdits.parse(self._base_moves).doubled_clients)

    # ------------------------------------------------------------------------------------- to the browser
    def _update_stage_if_any(self) -> None:
        """Send the stage what has changed in the state."""
        if self._state.federation is None:
            return
        key = self._make_data_message_key()
        if key != self._last_sent_data_key:
            self._send_data()
            return
        setting = self._read_setting_of_controls()
        if not self._is_dealing and setting != self._setting:
            self._send_setting()
        elif not self._is_dealing and self._state.federation is not self._last_sent.get("dealt"):
            self._send_federation()
        self._send_selection()
        self._send_results_and_texts_if_changed()

    def _send_results_and_texts_if_changed(self) -> None:
        """Send results, stored bands and texts, if they are not those that were sent last."""
        state = self._state
        if state.federation is None:
            return
        if self._has_results_changed_since_last_call():  # many steps of a run change no result
            self._send_results()
            self._send_flights()
        stored, _ = self._make_stored_bands_message()
        self._send_if_changed("stored", stored, stored)
        self.controls.debouncer.schedule_update(
            "stage", self._describe_next_run, self._send_run_texts
        )

    @property
    def _is_run_under_way(self) -> bool:
        return self._has_begun_run and self._status.is_running

    def _has_results_changed_since_last_call(self) -> bool:
        """Whether results, methods or settings are others than at the last call."""
        state = self._state
        objects = (state.runs, self._answers)
        about = (state.methods, state.settings, self._is_run_under_way)
        known_objects, known_about = self._last_sent.get("looked through", ((None, None), None))
        if about == known_about and all(map(operator.is_, objects, known_objects)):
            return False
        self._last_sent["looked through"] = (objects, about)
        return True

    def _send_if_changed(
        self, message_kind: str, compared_content: Any, message: Mapping[str, Any]
    ) -> None:
        if message_kind in self._last_sent and self._last_sent[message_kind] == compared_content:
            return
        self._last_sent[message_kind] = compared_content
        self.stage.send({"kind": message_kind, **message})

    def _send_selection(self) -> None:
        """Send which client and class are selected, unless the stage knows it."""
        client = self._state.client
        class_index = self._state.class_index
        about = {"client": client, "class_index": class_index}
        self._send_if_changed("selection", (client, class_index), about)

    def _make_stored_bands_message(self) -> StageMessage:
        """Make the message with the stored bands of the methods."""
        state = self._state
        table = None
        if self.views.display_options["shows_stored"]:
            table = get_or_make_stored_table_message(
                find_nearest_stored_results(state.methods, state.settings)
            )
        return StageMessage({"kind": "stored", "table": table}, [])

    def _make_data_message_key(self) -> DataKey:
        """Make a key of everything on which the data message depends."""
        dataset = self._state.federation.dataset
        sliders = (self.controls.natural_client_count_or_zero, self.controls.alpha.disabled)
        return dataset.digest, tuple(self._state.methods), sliders

    def _send_data(self, asking_window: str = "") -> None:
        """Send the data message.

        asking_window: the window that has asked for it, if others have it already
        """
        self._last_sent_data_key = self._make_data_message_key()
        dataset = self._state.federation.dataset
        if self._samples is None or self._samples.digest != dataset.digest:
            train, test = make_train_and_test_samples_for_browser(dataset)
            self._samples = SamplesOfDataset(str(dataset.digest), train, test)
            self._models_of_last_run = self._answers = None
        self._last_sent.clear()
        self._setting = self._read_setting_of_controls()
        content, _ = self._make_data_message()
        self.stage.send({**content, "view": asking_window})
        self._put_opening_messages_into_widget()

    def _make_data_message(self) -> StageMessage:
        """Make the message on the data set, the controls and the setting."""
        controls = self.controls
        name = controls.dataset.value
        fixed = list(self._fixed)
        hidden = list(self._hidden)
        if controls.natural_client_count_or_zero:
            fixed.append("clients")
        if controls.alpha.disabled and "alpha" not in fixed:
            hidden.append("alpha")  # it has no effect
        counts = [count for count in CLIENT_COUNTS if count <= controls.clients.max]
        about = {
            **describe_dataset_and_methods_for_stage(
                self._state.federation, self._state.methods, tells_story=self.tells_story
            ),
            "alphas": list_slider_alphas(controls.alpha.base**controls.alpha.max),
            "clientCounts": counts,
            "sets": list_dataset_menu_entries(
                name, OWN_FILE, Path(controls.path.value.split("?")[0]).name
            ),
            "set": name,
            "hasSettings": not self.is_strip,
            "isStrip": self.is_strip,
            "hidden": hidden,
            "fixed": fixed,
            "previewed": [convert_to_int_if_whole(alpha) for alpha in PREVIEWED],
            "setting": self._setting,
        }
        return StageMessage({"kind": "data", "about": about}, [])

    def _send_requested_samples(self, message: BrowserMessage) -> None:
        if self._samples is not None and message["digest"] == self._samples.digest:
            content, buffers = self._make_samples_message()
            self.stage.send({**content, "view": message.get("view", "")}, buffers)

    def _make_samples_message(self) -> StageMessage:
        digest, train, test = self._samples
        about = {"digest": digest, "train": train.image_shape, "test": test.image_shape}
        return StageMessage(
            {"kind": "samples", **about},
            [*train.make_label_and_image_buffers(), *test.make_label_and_image_buffers()],
        )

    def _send_setting(self) -> None:
        self._setting = self._read_setting_of_controls()
        self._send_partitions_of_all_alphas_when_idle()  # first: the stage must not use partitions of an older setting
        self.stage.send({"kind": "setting", "setting": self._setting})
        self._put_opening_messages_into_widget()

    def _send_federation(self, question_to_answer: str = "") -> None:
        """Send who holds what, with the setting, which may differ from the requested one because of a limit."""
        federation = self._state.federation
        if federation is None:
            return
        self._last_sent["dealt"] = federation
        content, buffers = self._make_federation_message()
        self._setting = content["setting"]
        self.stage.send({**content, "question": question_to_answer}, buffers)
        self._send_partitions_of_all_alphas_when_idle()
        self._put_opening_messages_into_widget()

    def _make_federation_message(self) -> StageMessage:
        """Make the message on who holds what."""
        shards = [np.sort(np.asarray(shard)) for shard in self._state.federation.shards]
        sizes = [len(shard) for shard in shards]
        message = {
            "kind": "federation",
            "setting": self._read_setting_of_controls(),
            "sizes": sizes,
        }
        return StageMessage(message, [np.concatenate(shards).astype(np.uint32).tobytes()])

    def _send_partitions_of_all_alphas_when_idle(self) -> None:
        """Send the partitions for all values of the α slider, unless they were sent; made when the slider rests."""
        if not self._has_window:
            return
        key = self._get_federation_arguments_without_alpha_or_none()
        if self._last_sent.get("partitions") == key:
            return
        self._last_sent["partitions"] = key
        # The partitions that were sent before are not valid any more.
        self.stage.send(*self._make_partitions_message(PartitionsByAlpha()))
        if key is None:
            return

        def send(partitions: PartitionsByAlpha) -> None:
            if self._last_sent.get("partitions") == key:
                self.stage.send(*self._make_partitions_message(partitions))

        self.controls.debouncer.schedule_update(
            "partitions", lambda: self._get_or_deal_partition_of_each_alpha(key), send
        )

    def _get_federation_arguments_without_alpha_or_none(self) -> FederationArguments | None:
        """Return the options on which the partitions of the α slider depend; None if α has no effect."""
        key = dict(self._state.partition or {})
        for name in ("alpha", "moves"):
            key.pop(name, None)
        if not key or self.controls.natural_client_count_or_zero or self._base_moves:
            return None
        return key

    def _get_or_deal_partition_of_each_alpha(
        self, federation_arguments: FederationArguments
    ) -> PartitionsByAlpha:
        """Make the partitions for all values of the α slider. The last ones are cached."""
        cached = self._options_and_partitions_dealt_last
        if cached is not None:
            cached_options, cached_partitions = cached
            if cached_options == federation_arguments:
                return cached_partitions
        alphas = list_slider_alphas(self.controls.alpha.base**self.controls.alpha.max)
        partitions = make_partitions_for_alphas(federation_arguments, alphas)
        self._options_and_partitions_dealt_last = (federation_arguments, partitions)
        return partitions

    def _make_partitions_message(self, partitions: PartitionsByAlpha) -> StageMessage:
        message = {
            "kind": "partitions",
            "clients": self._setting["clients"],
            "seed": self._setting["seed"],
            "alphas": list(partitions.alphas),
        }
        return StageMessage(message, [partitions.owners.astype(np.uint16).tobytes()])

    def _send_results(self) -> None:
        state = self._state
        self._settings_of_runs.setdefault(state.runs.number, self._read_setting_of_controls())
        described = describe_newest_results(state.runs, state.methods, state.settings)
        if not described["accuracies"]:
            if "results" in self._last_sent:
                self._send_if_changed("results", None, {**described, "setting": None, "each": []})
            return
        setting = self._settings_of_runs.get(state.runs.number)
        message: dict[str, Any] = {
            **described,
            "setting": setting,
            "isFinal": not self._is_run_under_way,
            "done": 1,
            "total": 1,
            "each": [],
        }
        buffers: list[bytes] = []
        is_answered = self._settings_of_runs.get(self._answered_run) == setting
        if self._answers is not None and is_answered and len(self._answers.names):
            labels = self._state.federation.dataset.y_test.numpy()
            message["each"] = self._answers.compute_accuracies_of_client_models(labels)
            message["names"] = list(self._answers.names)
            shown = self._answers.predicted_labels[:, : len(self._samples.test.labels)]
            buffers = [shown.astype(np.uint16).tobytes()]
        if self._last_sent.get("results") == message:
            return
        self._last_sent["results"] = message
        self.stage.send({"kind": "results", **message}, buffers)

    def _send_flights(self) -> None:
        """Send what each method has sent at this setting, phase by phase."""
        state = self._state
        flights = collect_flights_by_method(state.runs, state.methods, state.settings)
        if flights:
            content = {"flights": flights, "setting": self._read_setting_of_controls()}
            self._send_if_changed("flights", content, content)

    def _send_job_status(self) -> None:
        """Send the line below Run: what runs, or what went wrong."""
        status = getattr(self, "_status", None)
        if status is None:
            return
        controls = self.controls
        error = strip_html_tags(controls.error.value)
        is_alert = 'role="alert"' in controls.error.value
        text = strip_html_tags(controls.phase.value)
        progress = re.search(r"\((\d+ of \d+ results.*)\)$", text)
        if progress:
            text = "Training …" if self._is_quick_run else f"{progress[1]}."
        elif status.status == "done" and self._is_quick_run and text:
            text = f"One seed took {self._seconds_of_run:.1f} s."
        if error:
            # An alert is shown alone; a note is followed by the text on what runs.
            text = error if is_alert else f"{error} {text}".strip()
        is_running = status.is_running and self._worker.is_busy
        content = {
            "isRunning": is_running,
            "isRun": is_running and not self._is_quick_run,
            "share": controls.progress.value,
            "text": text,
            "isAlert": is_alert,
        }
        self._send_if_changed("job", content, content)

    def _describe_next_run(self) -> RunTexts:
        """Describe what Run would do, and whether any method runs without it at this setting."""
        seeds = self.controls.seeds.value
        run_label = "Run one seed"
        if seeds > 1:
            run_label = f"Run {format_count_and_noun(seeds, 'seed')}"
        state = self._state
        forecast = estimate_cost((state.methods, state.settings)) if state.methods else None
        return {
            "runLabel": run_label,
            "cost": describe_cost_or_empty(forecast),
            "isComputed": forecast is not None and forecast.seconds == 0,
            "waitsForRun": not self._select_quick_methods(),
        }

    def _send_run_texts(self, run_texts: RunTexts) -> None:
        self._send_if_changed("words", run_texts, run_texts)

    # ------------------------------------------------------------------------------------------ running
    def _select_quick_methods(self) -> list[str]:
        """Select the methods whose run of one seed is forecast to take less than LIVE_SECONDS."""
        settings = {**self._state.settings, "seeds": 1}
        quick = []
        for method in self._state.methods:
            cost = estimate_cost((method, settings))
            seconds = None if cost is None else cost.seconds
            if seconds is None:
                seconds = self._find_seconds_of_newest_run_or_infinity(method)
            if seconds < LIVE_SECONDS:
                quick.append(method)
        return quick

    def _find_seconds_of_newest_run_or_infinity(self, method_name: str) -> float:
        """Find how many seconds the newest run of a method on this data set took; infinite if there is none, so that
        the method waits for Run."""
        row = find_newest_run_with_results(self._state.runs, method_name)
        dataset = self._state.settings.get("dataset")
        if row is None or row.settings.get("dataset") != dataset:
            return math.inf
        seconds = [getattr(outcome, "seconds_total", math.inf) for outcome in row.outcomes.values()]
        return max(seconds)

    def _run_quick_methods_now_or_after_job(self) -> None:
        """Run one seed at once, of the methods that take a moment; the others wait for Run.

        A run of all seeds, or a view's own work, is not interrupted: the quick run follows it.
        """
        if self._status.is_running and not (self._has_begun_run and self._is_quick_run):
            self._is_quick_run_due = True
            return self._send_job_status()
        self._is_quick_run_due = False
        self._status.empty_error_and_note_lines()
        methods = self._select_quick_methods()
        if not methods:
            self._status.show_phase("")
            self._last_sent.pop("job", None)
            return self._send_job_status()
        settings = {**self._state.settings, "seeds": 1}
        steps = self._job(methods, **settings)
        self._remember_run_setting_and_start(True)
        self._status.show_run_start(len(methods))
        state_of_quick_run = replace(self._state, methods=tuple(methods), settings=settings)
        runs = self._state.runs.copy_with_rows_of_new_run(state_of_quick_run, is_quick_run=True)
        self._change_state(should_draw=False, runs=runs, metrics=())
        self._start_job(
            lambda: self._pass_events_then_predict_test_samples(steps),
            self._apply_run_event,
            lambda *end: self._finish_run(False, *end),
        )
        return None

    def _start_job(
        self,
        job: Job,
        on_event: OnJobEvent,
        on_end: OnJobEnd,
        between_events: Callable[[], None] | None = None,
    ) -> None:
        def end_and_follow_hand(job_end: JobEnd, error: Exception | None, result: Any) -> None:
            on_end(job_end, error, result)
            self._run_quick_methods_if_requested_during_job(job_end)

        super()._start_job(job, on_event, end_and_follow_hand, between_events)
        self._send_job_status()  # at once, since the job can be stopped from now on

    def _start_button_job(self, view_name: str) -> None:
        self._is_quick_run = False  # a gesture does not interrupt it
        super()._start_button_job(view_name)

    @show_errors_in_status
    def _run_quick_methods_if_requested_during_job(self, job_end: JobEnd) -> None:
        """After a job, start the quick run that a gesture needs meanwhile, unless a person has pressed Stop."""
        if job_end == "stopped":
            self._is_quick_run_due = False
        if not self._is_quick_run_due or self._state.federation is None:
            return
        setting_of_results = self._settings_of_runs.get(self._state.runs.number)
        if setting_of_results == self._read_setting_of_controls():
            self._is_quick_run_due = False  # the gesture was undone
            return
        self._run_quick_methods_now_or_after_job()

    def _remember_run_setting_and_start(self, is_quick_run: bool = False) -> None:
        self._has_begun_run = True
        self._is_quick_run = is_quick_run
        self._run_start_seconds = time.monotonic()
        # A run without any result leaves its number to the next one, whose setting may be another.
        settings_by_run = {}
        for number, setting in self._settings_of_runs.items():
            if number <= self._state.runs.number:
                settings_by_run[number] = setting
        self._settings_of_runs = settings_by_run

    def _pass_events_then_predict_test_samples(
        self, run_events: RunEventsThenResult
    ) -> RunEventsThenResult:
        """Yield the events of the run, and then return the models, their answers on the test samples, and an error."""
        outcomes: dict[str, Any] = {}
        with closing(run_events):
            for event in run_events:
                if event.outcome is not None:
                    outcomes.setdefault(event.method, event.outcome)
                yield event
        federation = self._state.federation
        try:
            models = ModelsOfLastRun(outcomes)
            return models, models.predict(federation.dataset.x_test), None
        except Exception as error:  # the results of the run are not lost
            return None, None, error

    def _finish_run(
        self, is_started_by_person: bool, job_end: JobEnd, error: Exception | None, run_result: Any
    ) -> None:
        self._has_begun_run = False
        self._seconds_of_run = time.monotonic() - self._run_start_seconds
        models, answers, prediction_error = run_result or (None, None, None)
        if models is not None:
            self._models_of_last_run = models
            self._answers = answers
            self._answered_run = self._state.runs.number
        super()._finish_run(is_started_by_person, job_end, error, run_result)
        if prediction_error is not None:
            self._status.show_error(
                prediction_error, "What the models say of the test samples: ", is_appended=True
            )
        self._send_job_status()
        if self._is_quick_run and job_end == "done" and any(self._stills):
            self.controls.debouncer.schedule_update(
                "still",
                self.draw_still_output,
                self._show_in_displayed_stills,
                delay_seconds=STILL_DELAY,
            )

    def _send_answers_on_image(self, message: BrowserMessage) -> None:
        """Send how all models classify an image: a test sample ("12"), a training sample ("t12") or a drawing."""
        image = str(message["image"])
        row = self._list_cells_most_informative_first(image)
        recording = self._find_recording_or_none(image)
        channels = 0 if recording is None else len(recording)
        curve = b"" if recording is None else recording.astype(np.float32).tobytes()
        answers = None
        if self._models_of_last_run is not None:
            answers = self._predict_image_by_all_models(image, message.get("pixels"))
        about = {"kind": "answers", "image": image, "row": row, "channels": channels}
        if answers is None or not answers.names:
            if row or channels:  # a row or a recording is shown before any model is trained
                self.stage.send({**about, "setting": None, "names": []}, [b"", curve])
            return
        content = {
            **about,
            "setting": self._settings_of_runs.get(self._answered_run),
            "names": list(answers.names),
            "sums": self._models_of_last_run.list_names_of_explainable_answers(),
        }
        self.stage.send(content, [answers.shares[:, 0].astype(np.float32).tobytes(), curve])

    def _find_sample_or_none(self, sample_number_or_drawing_name: str) -> SampleTensor | None:
        """Find the sample with a name such as "12" or "t12"; None for a drawing, and for a number beyond the last."""
        dataset = self._state.federation.dataset
        number = re.fullmatch(r"(t?)(\d+)", sample_number_or_drawing_name)
        if number is None:
            return None
        part = dataset.x_train if number[1] else dataset.x_test
        at = int(number[2])
        return part[at] if at < len(part) else None

    def _find_recording_or_none(self, sample_number_or_drawing_name: str) -> Recording | None:
        """Find the recording with a name, standardised, `[channels, steps]`; None if samples are no recordings."""
        sample = self._find_sample_or_none(sample_number_or_drawing_name)
        if sample is None or sample.ndim != 2:
            return None
        return sample.numpy()

    def _list_cells_most_informative_first(
        self, sample_number_or_drawing_name: str
    ) -> list[ColumnAndCell]:
        """Describe a row by its columns' names and values, the most informative first; [] if samples are no rows."""
        dataset = self._state.federation.dataset
        sample = self._find_sample_or_none(sample_number_or_drawing_name)
        if sample is None or dataset.schema is None:
            return []
        cells = format_row_cells_by_column(dataset.schema, sample.numpy())
        ranking = rank_column_names_by_class_information(
            dataset.schema, dataset.x_train.numpy(), dataset.y_train.numpy()
        )
        return [ColumnAndCell(name, cells[name]) for name in ranking if name in cells]

    def _predict_image_by_all_models(
        self, sample_number_or_drawing_name: str, drawn_pixels: PixelsMessage
    ) -> ModelAnswers | None:
        number = re.fullmatch(r"\d+", sample_number_or_drawing_name)
        if (
            number
            and self._answers is not None
            and int(sample_number_or_drawing_name) < self._answers.shares.shape[1]
        ):
            at = int(sample_number_or_drawing_name)
            return ModelAnswers(self._answers.names, self._answers.shares[:, at : at + 1])
        x = self._find_sample_or_read_drawing(sample_number_or_drawing_name, drawn_pixels)
        return None if x is None else self._models_of_last_run.predict(x)

    def _find_sample_or_read_drawing(
        self, sample_number_or_drawing_name: str, drawn_pixels: PixelsMessage
    ) -> OneSample | None:
        """Make the input of models from an image, `[1, …]`; None if there is no such image."""
        dataset = self._state.federation.dataset
        sample = self._find_sample_or_none(sample_number_or_drawing_name)
        if sample is not None:
            return sample[None]
        drawn = torch.tensor(read_drawn_pixels(drawn_pixels), dtype=torch.float32)
        if (
            re.fullmatch(r"t?\d+", sample_number_or_drawing_name)
            or drawn.numel() != dataset.x_test[0].numel()
        ):
            return None
        return drawn.reshape(1, *dataset.x_test.shape[1:])

    def _send_sum_behind_answer(self, message: BrowserMessage) -> None:
        """Send the sum from which a method's answer on an image results."""
        image = str(message["image"])
        x = self._find_sample_or_read_drawing(image, message.get("pixels"))
        if self._models_of_last_run is None or x is None:
            return
        answer_sum = self._models_of_last_run.explain_answer(str(message["method"]), x)
        if answer_sum is not None:
            about = {"kind": "sum", "method": message["method"], "image": image}
            self.stage.send({**about, **answer_sum.to_message()})


class Playground(StagePanel):
    """The panel of `fedlab_nb.panels.playground`. Its controls are on the stage, too."""

    def __init__(self, spec: LabSpec, *, story: bool = False, **options: Any) -> None:
        self.tells_story = story
        super().__init__(spec, **options)
        self.add_class("fl-staged")

    def _get_handlers_by_message_kind(self) -> dict[str, MessageHandler]:
        return {
            **super()._get_handlers_by_message_kind(),
            "dataset": self._choose_dataset_of_message,
            "open methods": self._toggle_settings_below_stage,
            "open settings": self._toggle_settings_below_stage,
        }

    def _make_layout_widgets(self) -> list[widgets.Widget]:
        controls = self.controls
        self._settings_box = controls.make_column_of_controls()
        self._settings_box.add_class("fl-below-stage")
        # These are not in the layout: even a hidden widget would round its value to its own steps.
        on_stage = (
            controls.dataset,
            controls.alpha,
            controls.ends,
            controls.clients,
            controls.more,
        )
        parts = [part for part in self._settings_box.children if part not in on_stage]
        self._settings_box.children = [
            part for part in parts if "fl-start" not in part._dom_classes
        ]
        self._trouble = widgets.Box([controls.error])  # shows errors when there is no stage
        theme.show_widgets_if(False, self._settings_box, self._trouble)
        return [self.stage, self._trouble, self._settings_box, self.views.box]

    def _list_views_in_tab_order(
        self, lab_views: Sequence[LabView], common_views: Sequence[LabView]
    ) -> list[LabView]:
        """List the views: bytes, features, classes, the panel's own, and then the accuracy with all its seeds."""
        views = {view.name: view for view in (*common_views, *lab_views)}
        first = ["communication", "features", "classes", *(view.name for view in lab_views)]
        order = [*first, "accuracy", *HIDDEN_TABS]
        return [views[name] for name in order]

    def still(self) -> Picture:
        """Draw the piles and the results as the stage shows them. A person's own images are left out, since the
        picture is saved in the notebook."""
        with self._guard:
            state = self._state
            if state.federation is None:
                return super().still()
            images = None
            if self.controls.dataset.value in DATASETS and self._samples is not None:
                images = self._samples.train.images
            return draw_piles_and_results(state, images, self._list_client_accuracies_or_empty())

    def _list_client_accuracies_or_empty(self) -> list[Accuracy0To1]:
        """List each client's accuracy on the test samples, 0–1; [] if it is not known at this setting."""
        setting = self._settings_of_runs.get(self._answered_run)
        if self._answers is None or setting != self._read_setting_of_controls():
            return []
        return self._answers.compute_accuracies_of_client_models(
            self._state.federation.dataset.y_test.numpy()
        )

    def _make_partition_editor_or_none(self) -> None:
        """Make no buttons for changes by hand: they are made on the piles of the stage."""

    def _make_tab_options(self) -> TabOptions:
        return {"names_without_tab": HIDDEN_TABS, "titles_by_name": TITLES}

    def show(self, view: str) -> Picture | None:
        """Turn to a view by its name, wait until it is drawn, and return its Picture (None: there is none yet)."""
        if view not in HIDDEN_TABS:
            return super().show(view)
        self.wait()
        with self._guard:
            self.views.draw_view_even_if_hidden(view)
            return self.views[view].picture

    def _choose_dataset_of_message(self, message: BrowserMessage) -> None:
        if message["value"] == OWN_FILE:
            theme.show_widgets_if(True, self._settings_box)
        self.controls.dataset.value = message["value"]

    def _toggle_settings_below_stage(self, message: BrowserMessage) -> None:
        """Open the rarely used settings below the stage, or close them."""
        is_open = self._settings_box.layout.display is None
        theme.show_widgets_if(not is_open, self._settings_box)
        self.controls.more.value = not is_open
        if message["kind"] == "open methods":
            self.controls.methods.add.value = not is_open

    def _drop_federation_and_show_error(self, error: Exception) -> None:
        """Show the fields with the error in place of the stage, which has nothing to draw."""
        super()._drop_federation_and_show_error(error)
        theme.show_widgets_if(False, self.stage)
        theme.show_widgets_if(True, self._settings_box, self._trouble)

    def _update_from_controls(self, is_new_dataset: bool) -> None:
        if is_new_dataset and self.stage.layout.display == "none":
            theme.show_widgets_if(True, self.stage)
            theme.show_widgets_if(False, self._trouble)
            is_own_file = self.controls.dataset.value == OWN_FILE  # its card stays visible
            theme.show_widgets_if(is_own_file, self._settings_box)
        super()._update_from_controls(is_new_dataset)


class LabPanel(StagePanel):
    """The panel of a lab, or of the comparison, with the stage as a strip above its views."""

    is_strip = True

    def __init__(self, spec: LabSpec, **options: Any) -> None:
        super().__init__(spec, **options)
        self.add_class("fl-linked")

    def _make_layout_widgets(self) -> list[widgets.Widget]:
        parts = super()._make_layout_widgets()
        self.stage.add_class("fl-strip")
        self.views.box.children = [self.stage, *self.views.box.children]
        return parts

    def _apply_stage_setting(self, setting: StageSetting) -> None:
        """Put the changes by hand into the controls; all other settings stay those of the controls."""
        super()._apply_stage_setting(
            {**self._read_setting_of_controls(), "moves": setting["moves"]}
        )

    def _drop_federation_and_show_error(self, error: Exception) -> None:
        super()._drop_federation_and_show_error(error)
        theme.show_widgets_if(False, self.stage)

    def _update_from_controls(self, is_new_dataset: bool) -> None:
        if is_new_dataset:
            theme.show_widgets_if(True, self.stage)
        super()._update_from_controls(is_new_dataset)


class GesturesAndRest(NamedTuple):
    """Changes by hand: those that the stage has as gestures, and the text of those that it has not."""

    gestures: list[StageGesture]
    rest_moves_text: str


def split_moves_into_gestures_and_rest(
    moves_text: str, known_rest_moves_text: str, seed: int, client_ids: Sequence[int]
) -> GesturesAndRest:
    """Split changes by hand, as `PartitionEdits.parse` reads them, for the stage.

    What follows the known rest becomes gestures if the stage has one for each change; otherwise all
    of it is the new rest.
    """
    if moves_text and moves_text == known_rest_moves_text:
        return GesturesAndRest([], known_rest_moves_text)
    rest = ""
    if known_rest_moves_text and moves_text.startswith(f"{known_rest_moves_text}, "):
        rest = known_rest_moves_text
        moves_text = moves_text.removeprefix(f"{known_rest_moves_text}, ")
    edits = PartitionEdits.parse(moves_text)
    places = {number: k for k, number in enumerate(client_ids)}
    is_plain = edits.seed in (None, seed)
    for edit in edits.changes:
        is_known = {edit.client, edit.to} <= {*places, None}
        is_plain = is_plain and has_stage_gesture(edit) and is_known
    if not is_plain:
        return GesturesAndRest([], moves_text)
    gestures: list[StageGesture] = []
    for edit in edits.changes:
        gestures.append(
            {"from": places[edit.client], "label": edit.label, "to": places.get(edit.to)}
        )
    return GesturesAndRest(gestures, rest)


def has_stage_gesture(edit: PartitionEdit) -> bool:
    """Whether the stage has a gesture for a change by hand: samples that go to another client, or to nobody."""
    return not edit.is_double and not edit.name


def convert_to_int_if_whole(value: float) -> float | int:
    """Convert a whole number to int, which JSON writes without ".0", as JavaScript does."""
    return int(value) if float(value).is_integer() else float(value)


def list_slider_alphas(largest_alpha: float) -> list[float | int]:
    """List the values of the α slider, up to `largest_alpha`."""
    values = []
    for unit in (0.01, 0.1, 1.0, 10.0, 100.0):
        for step in STEPS:
            value = float(f"{unit * step:.2g}")
            if value <= largest_alpha:
                values.append(convert_to_int_if_whole(value))
    return values


def strip_html_tags(html_text: str) -> str:
    """Return the text of a piece of HTML."""
    return html.unescape(re.sub(r"<[^>]*>", " ", html_text)).strip()


def read_drawn_pixels(pixels: PixelsMessage) -> list[float]:
    """Read the pixels of a drawing from a list, or from the dict into which JSON converts a typed array."""
    if isinstance(pixels, Mapping):
        return [float(pixels[str(i)]) for i in range(len(pixels))]
    return [float(value) for value in pixels or ()]


# {(data set, methods): their stored bands}
_tables: dict[tuple[str, tuple[str, ...]], StoredTableMessage | None] = {}


def get_or_make_stored_table_message(
    nearest: NearestStoredResults | None,
) -> StoredTableMessage | None:
    """Return the stored bands of the methods. They are made once for a data set and its methods."""
    if nearest is None:
        return None
    key = (nearest.table.dataset, nearest.methods)
    if key not in _tables:
        _tables[key] = make_stored_table_message(nearest)
    return _tables[key]
