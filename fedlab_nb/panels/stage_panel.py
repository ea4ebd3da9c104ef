"""The playground: a panel whose controls, piles, bars and image are the stage of `front/`, drawn in the browser.

The widgets of `Controls` stay what the panel's settings are read from. What a hand does on the stage is put into them,
and what Python puts into them is told to the stage: `panel.controls`, `panel.code()` and links are as in every panel.
"""

import html
import math
import re
import time
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import numpy as np
import torch

from ..data import Edit, Edits
from ..plots import Picture
from ..plots.words import plural
from ..studies.cost import estimate_cost
from . import theme
from .controls import OWN_FILE
from .facts import describe_cost
from .lab_view import LabSpec, LabView
from .nearest_results import find_nearest_results
from .panel import Panel
from .stage import Stage
from .stage_data import (
    LIVE_SECONDS,
    PREVIEWED,
    Answers,
    Part,
    Partitions,
    Voices,
    collect_flights,
    deal_partitions,
    describe_data,
    describe_results,
    describe_table_row,
    find_newest,
    list_datasets,
    make_parts,
    make_table,
    rank_columns,
)
from .views import NOBODY
from .worker import show_errors

STEPS = (1, 1.5, 2, 3, 5, 7)  # of the α slider, in each power of ten
CLIENT_COUNTS = (*range(1, 21), 25, 30, 40, 50, 75, 100)
HIDDEN_TABS = ("partition",)  # the piles show it
TITLES = {"communication": "Bytes", "classes": "Classes"}


class Playground(Panel):
    """See `fedlab_nb.panels.playground`. Public beside what every panel has: `stage`, the widget."""

    def __init__(self, spec: LabSpec, **options: Any) -> None:
        self._parts: tuple[str, Part, Part] | None = None  # digest, training, test
        self._about_key: Any = None  # what the stage was last told of the data
        self._sent: dict[str, Any] = {}  # the last message of a kind that is not sent twice
        self._setting: dict[str, Any] = {}  # on the stage, as far as it is known here
        self._revision = 0  # what the stage calls it
        self._base_moves = ""  # changes by hand that the stage has no gesture for
        self._is_dealing = False
        self._has_window = False  # somebody has seen the stage
        self._follows_hand = False  # the job that runs is of one seed
        self._voices: Voices | None = None
        self._answers: Answers | None = None
        self._answered_run = 0  # the run that the voices are of
        self._settings_of_runs: dict[int, dict[str, Any]] = {}  # as the stage has them, by run
        self._began = 0.0
        self._hidden = list(options.get("hide") or ())
        self._fixed = list(options.get("fixed") or ())
        self.stage = Stage(self._receive)
        super().__init__(spec, **options)
        self.add_class("fl-staged")
        for part in (self.controls.phase, self.controls.error):
            part.observe(lambda _: self._send_job(), "value")

    # ------------------------------------------------------------------------------------------------ layout
    def _lay_out(self) -> list[widgets.Widget]:
        controls = self.controls
        self._settings_box = controls.make_layout()
        # A widget that nobody sees would still round what it is given to its own steps.
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
        self._trouble = widgets.Box([controls.error])  # where there is no stage to say it
        theme.show_if(False, self._settings_box, self._trouble)
        return [self.stage, self._trouble, self._settings_box, self.views.box]

    def _choose_tabs(self, own: list[LabView], common: list[LabView]) -> list[LabView]:
        """Bytes, features, classes, the panel's own; then the accuracy with all its seeds."""
        views = {view.name: view for view in (*common, *own)}
        first = ["communication", "features", "classes", *(view.name for view in own)]
        order = [*first, "accuracy", *HIDDEN_TABS]
        return [views[name] for name in order]

    def _make_editor(self) -> None:
        """The piles of the stage are what changes the partition by hand."""

    def _tab_options(self) -> dict[str, Any]:
        return {"without_tab": HIDDEN_TABS, "titles": TITLES}

    def show(self, view: str) -> Picture | None:
        """Turn to a view by its name, wait until it is drawn, and return its Picture (None: there is none yet)."""
        if view not in HIDDEN_TABS:
            return super().show(view)
        self.wait()
        with self._guard:
            self.views.redraw(view)
            return self.views[view].picture

    # --------------------------------------------------------------------------------- from the browser
    @show_errors
    def _receive(self, message: Mapping[str, Any]) -> None:
        handlers = {
            "open": self._open,
            "opened": self._opened_stage,
            "samples": self._send_samples,
            "deal": self._deal,
            "train": self._train,
            "stop": lambda _: self.stop(),
            "ask": self._answer,
            "explain": self._explain,
            "client": self._choose_client,
            "dataset": self._choose_dataset,
            "open methods": self._toggle_settings,
            "open settings": self._toggle_settings,
        }
        handler = handlers.get(message.get("kind", ""))
        if handler is not None:
            handler(message)

    def _open(self, _: Mapping[str, Any]) -> None:
        """A window shows the panel: tell it what there is."""
        if self._state.federation is not None:
            self._send_data()
        self._send_job()

    def _opened_stage(self, _: Mapping[str, Any]) -> None:
        """A window has the samples and has drawn the piles: everything that may be older follows."""
        self._sent.clear()
        self._has_window = True
        self._send_partitions_ahead()
        self._send_job()
        self._show_results()

    def _deal(self, message: Mapping[str, Any]) -> None:
        """A hand on the stage: deal out anew, and answer with who holds what."""
        self._revision = message["revision"]
        if self._state.federation is None:
            return
        self._apply(message["setting"])
        if self._state.federation is None:
            return
        if self._read_setting() != self._setting:  # a limit has changed it
            self._send_setting()
        else:
            self._send_federation()

    def _apply(self, setting: Mapping[str, Any]) -> None:
        """Put a setting of the stage into the controls."""
        wanted = {name: setting[name] for name in ("alpha", "clients", "seed", "moves")}
        self._setting = wanted
        if wanted == self._read_setting():
            return
        controls = self.controls
        with self._fitting:
            if not controls.used_named_clients:
                controls.clients.value = wanted["clients"] - self._count_doubles()
            if not controls.alpha.disabled:
                controls.alpha.value = wanted["alpha"]
            controls.seed.value = wanted["seed"]
            controls.hidden_settings.pop("moves", None)
            text = self._write_moves(wanted["moves"])
            if text:
                controls.hidden_settings["moves"] = text
        self._is_dealing = True
        try:
            self._apply_controls()
        finally:
            self._is_dealing = False

    def _train(self, message: Mapping[str, Any]) -> None:
        self._revision = message["revision"]
        self._apply(message["setting"])
        self._send_federation()
        if message.get("isRun"):
            self._start(True)
        else:
            self._follow_hand()

    def _go(self, draw: bool = True, **changes: Any) -> None:
        """While a hand deals, the piles come first: the tabs under the stage follow once it rests."""
        is_waited_for = draw and self._is_dealing
        super()._go(draw and not is_waited_for, **changes)
        if is_waited_for:
            draw_all = super()._go
            self.controls.debouncer.request("tabs", lambda: None, lambda _: draw_all())

    def _choose_client(self, message: Mapping[str, Any]) -> None:
        """The pile that is chosen is marked in the tabs' pictures."""
        chosen = message.get("value")
        known = [value for _, value in self.views.client.options[1:]]
        self.views.client.value = chosen if chosen in known else NOBODY

    def _choose_dataset(self, message: Mapping[str, Any]) -> None:
        if message["value"] == OWN_FILE:
            theme.show_if(True, self._settings_box)
        self.controls.dataset.value = message["value"]

    def _toggle_settings(self, message: Mapping[str, Any]) -> None:
        """Open what most runs leave as it is, under the stage, or close it."""
        is_open = self._settings_box.layout.display is None
        theme.show_if(not is_open, self._settings_box)
        self.controls.more.value = not is_open
        if message["kind"] == "open methods":
            self.controls.methods.add.value = not is_open

    def _without_data(self, error: Exception) -> None:
        """There is nothing to draw: the fields with what is wrong stand in the stage's place."""
        super()._without_data(error)
        theme.show_if(False, self.stage)
        theme.show_if(True, self._settings_box, self._trouble)

    def _use(self, fresh: bool) -> None:
        if fresh and self.stage.layout.display == "none":
            theme.show_if(True, self.stage)
            theme.show_if(False, self._trouble)
            is_own_file = self.controls.dataset.value == OWN_FILE  # its card stays in sight
            theme.show_if(is_own_file, self._settings_box)
        super()._use(fresh)

    # ------------------------------------------------------------------------------- setting and moves
    def _read_setting(self) -> dict[str, Any]:
        """The setting that the controls say, as the stage has it."""
        settings = self._state.settings
        federation = self._state.federation
        return {
            "alpha": plain_number(settings.get("alpha", 0.1)),
            "clients": federation.clients,
            "seed": int(settings.get("seed", 0)),
            "moves": self._read_moves(str(settings.get("moves", ""))),
        }

    def _read_moves(self, text: str) -> list[dict[str, Any]]:
        """Changes by hand as the stage's gestures. Those that it has no gesture for are kept aside as a text."""
        if text and text == self._base_moves:
            return []
        if text.startswith(f"{self._base_moves}, ") and self._base_moves:
            text = text.removeprefix(f"{self._base_moves}, ")
        edits = Edits.parse(text)
        seed = self._state.settings.get("seed", 0)
        places = {number: k for k, number in enumerate(self._state.federation.ids)}
        is_plain = edits.seed in (None, seed)
        for edit in edits.changes:
            is_known = {edit.client, edit.to} <= {*places, None}
            is_plain = is_plain and is_gesture(edit) and is_known
        if not is_plain:
            self._base_moves = text
            return []
        return [
            {"from": places[edit.client], "label": edit.label, "to": places.get(edit.to)}
            for edit in edits.changes
        ]

    def _write_moves(self, gestures: list[Mapping[str, Any]]) -> str:
        ids = self._state.federation.ids
        edits = []
        for one in gestures:
            taker = one["to"]  # None: nobody
            if one["from"] < len(ids) and (taker is None or taker < len(ids)):
                to = None if taker is None else ids[taker]
                edits.append(Edit(ids[one["from"]], one["label"], to))
        return ", ".join(filter(None, [self._base_moves, str(Edits(tuple(edits)))]))

    def _count_doubles(self) -> int:
        return len(Edits.parse(self._base_moves).doubles)

    # ------------------------------------------------------------------------------------- to the browser
    def _show_state(self) -> None:
        """The state is another: tell the stage what has changed."""
        if self._state.federation is None:
            return
        key = self._data_key()
        if key != self._about_key:
            self._send_data()
            return
        setting = self._read_setting()
        if not self._is_dealing and setting != self._setting:
            self._send_setting()
        elif not self._is_dealing and self._state.federation is not self._sent.get("dealt"):
            self._send_federation()
        self._show_results()

    def _show_results(self) -> None:
        """Results, stored bands and words, where they are not those that were sent before."""
        state = self._state
        if state.federation is None:
            return
        self._send_results()
        self._send_flights()
        table = None
        if self.views.display_options["shows_stored"]:
            table = make_table_once(find_nearest_results(state.methods, state.settings))
        self._send_once("stored", table, {"table": table})
        self.controls.debouncer.request("stage", self._describe_next_run, self._send_words)

    def _send_once(self, kind: str, content: Any, message: Mapping[str, Any]) -> None:
        if kind in self._sent and self._sent[kind] == content:
            return
        self._sent[kind] = content
        self.stage.send({"kind": kind, **message})

    def _data_key(self) -> tuple[Any, ...]:
        dataset = self._state.federation.dataset
        own = self.controls.used_named_clients, self.controls.alpha.disabled
        return dataset.digest, tuple(self._state.methods), own

    def _send_data(self) -> None:
        federation, controls = self._state.federation, self.controls
        self._about_key = self._data_key()
        dataset = federation.dataset
        if self._parts is None or self._parts[0] != dataset.digest:
            self._parts = (str(dataset.digest), *make_parts(dataset))
            self._voices = self._answers = None
        self._sent.clear()
        setting = self._setting = self._read_setting()
        name = controls.dataset.value
        fixed, hidden = list(self._fixed), list(self._hidden)
        if controls.used_named_clients:
            fixed.append("clients")
        if controls.alpha.disabled and "alpha" not in fixed:
            hidden.append("alpha")  # it would do nothing
        counts = [count for count in CLIENT_COUNTS if count <= controls.clients.max]
        about = {
            **describe_data(federation, self._state.methods),
            "alphas": list_alphas(controls.alpha.base**controls.alpha.max),
            "clientCounts": counts,
            "sets": list_datasets(name, OWN_FILE, Path(controls.path.value.split("?")[0]).name),
            "set": name,
            "hasSettings": True,
            "hidden": hidden,
            "fixed": fixed,
            "previewed": [plain_number(alpha) for alpha in PREVIEWED],
            "setting": setting,
        }
        self.stage.send({"kind": "data", "about": about})

    def _send_samples(self, message: Mapping[str, Any]) -> None:
        if self._parts is None or message["digest"] != self._parts[0]:
            return
        digest, train, test = self._parts
        about = {"digest": digest, "train": train.shape, "test": test.shape}
        self.stage.send({"kind": "samples", **about}, [*train.to_bytes(), *test.to_bytes()])

    def _send_setting(self) -> None:
        self._setting = self._read_setting()
        self._send_partitions_ahead()  # before the stage deals by what is no longer true
        self.stage.send({"kind": "setting", "setting": self._setting})

    def _send_federation(self) -> None:
        federation = self._state.federation
        if federation is None:
            return
        self._sent["dealt"] = federation
        shards = [np.sort(np.asarray(shard)) for shard in federation.shards]
        sizes = [len(shard) for shard in shards]
        message = {"kind": "federation", "revision": self._revision, "sizes": sizes}
        self.stage.send(message, [np.concatenate(shards).astype(np.uint32).tobytes()])
        self._send_partitions_ahead()

    def _send_partitions_ahead(self) -> None:
        """What the α slider would deal, where it is not what was sent before: made once the hand rests."""
        if not self._has_window:
            return
        about = dict(self._state.partition or {})
        for name in ("alpha", "moves"):
            about.pop(name, None)
        is_dealt_by_alpha = (
            bool(about) and not self.controls.used_named_clients and not self._base_moves
        )
        key = about if is_dealt_by_alpha else None
        if self._sent.get("partitions") == key:
            return
        self._sent["partitions"] = key
        self._send_partitions(Partitions())  # what was sent before is no longer true
        if key is None:
            return
        alphas = list_alphas(self.controls.alpha.base**self.controls.alpha.max)

        def send(partitions: Partitions) -> None:
            if self._sent.get("partitions") == key:
                self._send_partitions(partitions)

        self.controls.debouncer.request("partitions", lambda: deal_partitions(about, alphas), send)

    def _send_partitions(self, partitions: Partitions) -> None:
        message = {
            "kind": "partitions",
            "clients": self._setting["clients"],
            "seed": self._setting["seed"],
            "alphas": list(partitions.alphas),
        }
        self.stage.send(message, [partitions.owners.astype(np.uint16).tobytes()])

    def _send_results(self) -> None:
        state = self._state
        self._settings_of_runs.setdefault(state.runs.number, self._read_setting())
        described = describe_results(state.runs, state.methods, state.settings)
        if not described["accuracies"]:
            if "results" in self._sent:
                self._send_once("results", None, {**described, "setting": None, "each": []})
            return
        setting = self._settings_of_runs.get(state.runs.number)
        message: dict[str, Any] = {
            **described,
            "setting": setting,
            "isFinal": not self._status.is_running,
            "done": 1,
            "total": 1,
            "each": [],
        }
        buffers: list[bytes] = []
        is_answered = self._settings_of_runs.get(self._answered_run) == setting
        if self._answers is not None and is_answered and len(self._answers.names):
            labels = self._state.federation.dataset.y_test.numpy()
            message["each"] = self._answers.client_accuracies(labels)
            message["names"] = list(self._answers.names)
            shown = self._answers.labels[:, : len(self._parts[2].labels)]
            buffers = [shown.astype(np.uint16).tobytes()]
        if self._sent.get("results") == message:
            return
        self._sent["results"] = message
        self.stage.send({"kind": "results", **message}, buffers)

    def _send_flights(self) -> None:
        """What each method has sent at this setting, phase by phase."""
        state = self._state
        flights = collect_flights(state.runs, state.methods, state.settings)
        if flights:
            content = {"flights": flights, "setting": self._read_setting()}
            self._send_once("flights", content, content)

    def _send_job(self) -> None:
        """What runs, or what went wrong, in a line under Run."""
        status = getattr(self, "_status", None)
        if status is None:
            return
        controls = self.controls
        error = read_text(controls.error.value)
        is_alert = 'role="alert"' in controls.error.value
        text = read_text(controls.phase.value)
        told = re.search(r"\((\d+ of \d+ results.*)\)$", text)
        if told:
            text = "Training …" if self._follows_hand else f"{told[1]}."
        elif status.status == "done" and text.startswith("Done:"):
            seconds = time.monotonic() - self._began
            text = f"One seed in {seconds:.1f} s." if self._follows_hand else text
        is_running = status.is_running and self._worker.is_busy
        content = {
            "isRunning": is_running,
            "isRun": is_running and not self._follows_hand,
            "share": controls.progress.value,
            "text": f"{error} {text}".strip() if error and not is_alert else error or text,
            "isAlert": is_alert,
        }
        self._send_once("job", content, content)

    def _describe_next_run(self) -> dict[str, Any]:
        """What Run would do, and whether results follow the hand at this setting."""
        seeds = self.controls.seeds.value
        state = self._state
        forecast = estimate_cost((state.methods, state.settings)) if state.methods else None
        return {
            "runLabel": f"Run {plural(seeds, 'seed')}" if seeds > 1 else "Run one seed",
            "cost": describe_cost(forecast),
            "waitsForRun": not self._find_quick_methods(),
        }

    def _send_words(self, words: dict[str, Any]) -> None:
        self._send_once("words", words, words)

    # ------------------------------------------------------------------------------------------ running
    def _find_quick_methods(self) -> list[str]:
        """The methods that are forecast to take less than a moment, for one seed."""
        settings = {**self._state.settings, "seeds": 1}
        quick = []
        for method in self._state.methods:
            cost = estimate_cost((method, settings))
            seconds = None if cost is None else cost.seconds
            if seconds is None:
                seconds = self._find_last_seconds(method)
            if seconds < LIVE_SECONDS:
                quick.append(method)
        return quick

    def _find_last_seconds(self, method: str) -> float:
        """What the newest run of a method on these data took; without one nobody knows, and it waits for Run."""
        row = find_newest(self._state.runs, method)
        dataset = self._state.settings.get("dataset")
        if row is None or row.settings.get("dataset") != dataset:
            return math.inf
        return max(getattr(one, "seconds_total", math.inf) for one in row.outcomes.values())

    def _follow_hand(self) -> None:
        """Train one seed at once, for the methods that take a moment; the others wait for Run."""
        if self._status.is_running and not self._follows_hand:
            return self._send_job()
        self._status.clear_error()
        methods = self._find_quick_methods()
        if not methods:
            self._status.show_phase("")
            self._sent.pop("job", None)
            return self._send_job()
        settings = {**self._state.settings, "seeds": 1}
        steps = self._job(methods, **settings)
        self._prepare_run(True)
        self._status.show_run_start(len(methods))
        one = replace(self._state, methods=tuple(methods), settings=settings)
        self._go(draw=False, runs=self._state.runs.start_run(one, follows_hand=True), metrics=())
        self._work(
            lambda: self._wrap_job(steps),
            self._take_event,
            lambda *end: self._finish_run(False, *end),
        )
        return None

    def _prepare_run(self, follows_hand: bool = False) -> None:
        self._follows_hand = follows_hand
        self._began = time.monotonic()
        # A run that came to nothing leaves its number to the next, which has a setting of its own.
        latest = self._state.runs.number
        kept = self._settings_of_runs.items()
        self._settings_of_runs = {number: setting for number, setting in kept if number <= latest}

    def _wrap_job(self, steps: Generator) -> Generator:
        """The run, and at its end what everybody says of the test samples."""
        outcomes: dict[str, Any] = {}
        with closing(steps):
            for event in steps:
                if event.outcome is not None:
                    outcomes.setdefault(event.method, event.outcome)
                yield event
        federation = self._state.federation
        try:
            voices = Voices(outcomes)
            return voices, voices.ask(federation.dataset.x_test), None
        except Exception as error:  # the results are there all the same
            return None, None, error

    def _finish_run(self, by_hand: bool, how: str, error: Exception | None, result: Any) -> None:
        voices, answers, trouble = result or (None, None, None)
        if voices is not None:
            self._voices, self._answers = voices, answers
            self._answered_run = self._state.runs.number
        super()._finish_run(by_hand, how, error, result)
        if trouble is not None:
            self._status.show_error(trouble, "What the models say of the test samples: ", also=True)
        self._send_job()
        if self._follows_hand and how == "done" and any(self._stills):
            self.controls.debouncer.request("still", lambda: None, lambda _: self._update_stills())

    def _answer(self, message: Mapping[str, Any]) -> None:
        """What everybody says of one image: a test sample's number, "t" and a training sample's, or a drawing."""
        image = str(message["image"])
        row = self._describe_sample(image)
        recording = self._find_recording(image)
        channels = 0 if recording is None else len(recording)
        curve = b"" if recording is None else recording.astype(np.float32).tobytes()
        answers = None
        if self._voices is not None:
            answers = self._ask_about(image, message.get("pixels"))
        about = {"kind": "answers", "image": image, "row": row, "channels": channels}
        if answers is None or not answers.names:
            if row or channels:  # it is shown before anybody is trained
                self.stage.send({**about, "setting": None, "names": []}, [b"", curve])
            return
        content = {
            **about,
            "setting": self._settings_of_runs.get(self._answered_run),
            "names": list(answers.names),
            "sums": self._voices.list_sums(),
        }
        self.stage.send(content, [answers.shares[:, 0].astype(np.float32).tobytes(), curve])

    def _find_sample(self, image: str) -> Any:
        """The sample that is looked at, a tensor; None for a drawing, and for a number beyond the last."""
        dataset = self._state.federation.dataset
        number = re.fullmatch(r"(t?)(\d+)", image)
        if number is None:
            return None
        part = dataset.x_train if number[1] else dataset.x_test
        at = int(number[2])
        return part[at] if at < len(part) else None

    def _find_recording(self, image: str) -> np.ndarray | None:
        """The recording that is looked at, standardised, `[channels, steps]`; None where samples are none."""
        sample = self._find_sample(image)
        if sample is None or sample.ndim != 2:
            return None
        return sample.numpy()

    def _describe_sample(self, image: str) -> list[tuple[str, str]]:
        """Names and values of the row that is looked at, the most telling first; empty where samples are no rows."""
        dataset = self._state.federation.dataset
        sample = self._find_sample(image)
        if sample is None or dataset.schema is None:
            return []
        cells = describe_table_row(dataset.schema, sample.numpy())
        ranking = rank_columns(dataset.schema, dataset.x_train.numpy(), dataset.y_train.numpy())
        return [(name, cells[name]) for name in ranking if name in cells]

    def _ask_about(self, image: str, pixels: Any) -> Answers | None:
        number = re.fullmatch(r"\d+", image)
        if number and self._answers is not None and int(image) < self._answers.shares.shape[1]:
            at = int(image)
            return Answers(self._answers.names, self._answers.shares[:, at : at + 1])
        x = self._prepare_image(image, pixels)
        return None if x is None else self._voices.ask(x)

    def _prepare_image(self, image: str, pixels: Any) -> torch.Tensor | None:
        """The image that is looked at as models take it, `[1, …]`; None where there is no such one."""
        dataset = self._state.federation.dataset
        sample = self._find_sample(image)
        if sample is not None:
            return sample[None]
        drawn = torch.tensor(read_pixels(pixels), dtype=torch.float32)
        if re.fullmatch(r"t?\d+", image) or drawn.numel() != dataset.x_test[0].numel():
            return None
        return drawn.reshape(1, *dataset.x_test.shape[1:])

    def _explain(self, message: Mapping[str, Any]) -> None:
        """The sum by which a method comes to its answer to one image."""
        image = str(message["image"])
        x = self._prepare_image(image, message.get("pixels"))
        if self._voices is None or x is None:
            return
        one = self._voices.explain(str(message["method"]), x)
        if one is not None:
            about = {"kind": "sum", "method": message["method"], "image": image}
            self.stage.send({**about, **one.to_message()})


def is_gesture(edit: Edit) -> bool:
    """Whether the stage knows a change by hand as one of its own: samples that go to another client, or to nobody."""
    return not edit.is_double and not edit.name


def plain_number(value: float) -> float | int:
    """A whole number without its ".0", as JavaScript writes it."""
    return int(value) if float(value).is_integer() else float(value)


def list_alphas(most: float) -> list[float | int]:
    """The places of the α slider, up to `most`."""
    values = []
    for unit in (0.01, 0.1, 1.0, 10.0, 100.0):
        for step in STEPS:
            value = float(f"{unit * step:.2g}")
            if value <= most:
                values.append(plain_number(value))
    return values


def read_text(value: str) -> str:
    """The words of a piece of HTML."""
    return html.unescape(re.sub(r"<[^>]*>", " ", value)).strip()


def read_pixels(pixels: Any) -> list[float]:
    """The pixels of a drawing: a list, or what JSON makes of a typed array."""
    if isinstance(pixels, Mapping):
        return [float(pixels[str(i)]) for i in range(len(pixels))]
    return [float(value) for value in pixels or ()]


_tables: dict[Any, Any] = {}


def make_table_once(found: Any) -> Any:
    """The stored bands of the methods, made once for a table and its methods."""
    if found is None:
        return None
    key = (found.table.dataset, found.methods)
    if key not in _tables:
        _tables[key] = make_table(found)
    return _tables[key]
