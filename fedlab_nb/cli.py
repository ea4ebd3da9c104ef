"""The command line: `fedlab-nb` opens the course, `fedlab-nb voila` a panel; the other commands need no notebook.

`run --json` prints one JSON object for each method, one on a line, and nothing else on standard output. Exit codes:
0 done, 1 a run failed, 2 wrong use.
"""

from __future__ import annotations

import io
import json
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .arguments import make_command_line_parser
from .errors import (
    FedlabError,
    RunError,
    UsageError,
    check_allowed_name,
    check_number,
    format_error_on_one_line,
    parse_assignments,
    parse_if_number,
)
from .files import check_replaceable, expand_path, write_file
from .value_types import ExitCode, SettingsByName, SettingValue, TextByName

if TYPE_CHECKING:
    from .methods.base import Knob
    from .studies import Outcome
    from .studies.settings import Settings
    from .studies.store import StoredEntryFolder


def parse_set_options(field_equals_value_texts: Sequence[str]) -> TextByName:
    """Parse the FIELD=VALUE pairs of --set: {field: value}."""
    values = parse_assignments(
        field_equals_value_texts, "--set takes FIELD=VALUE, for example --set rounds=100"
    )
    return {name.replace("-", "_"): value for name, value in values.items()}


def collect_given_settings(options: Namespace) -> SettingsByName:
    """Collect the settings on the command line, including those of --set."""
    from .studies.settings import list_setting_names

    settings = {}
    for name, value in vars(options).items():
        if name in list_setting_names() and value is not None:
            settings[name] = value
    return settings | parse_set_options(options.settings)


def handle_run(options: Namespace) -> ExitCode:
    """Run methods on one federation: a line or a JSON object for each as soon as it is done."""
    from .studies import StoreWarning, job
    from .studies.saved import expand_and_check_path_for_saving

    warnings.simplefilter("once", StoreWarning)
    # A warning is a sentence, without a line of the source.
    warnings.formatwarning = lambda text, *_: f"fedlab-nb: {text}\n"
    settings = collect_given_settings(options)
    print_column_roles_of_table_to_stderr(str(settings.get("dataset")))
    has_one_method = len(options.methods) == 1 and options.methods != ["all"]
    is_one_run = has_one_method and parse_if_number(options.seeds) == 1
    if options.save:
        if not is_one_run:
            raise UsageError("--save keeps the model of one run; give one method and one seed.")
        # Before the run, so that nothing is computed in vain.
        expand_and_check_path_for_saving(options.save, force=options.force)
    is_partition_known = "partition" in settings
    errors: list[Exception] = []
    for event in job(options.methods, seeds=options.seeds, cache=not options.no_cache, **settings):
        if event.outcome is not None:
            if not is_partition_known:
                is_partition_known = True
                print_note_to_stderr_if_natural_clients(event.outcome.settings)
            print_outcome(event.outcome, as_json=options.json, with_confusion_matrix=is_one_run)
            if options.save:
                event.outcome.save(options.save, force=options.force)
        if event.error is not None:
            errors.append(event.error)
            text = format_error_on_one_line(event.error)
            print(f"fedlab-nb: {event.method} failed: {text}", file=sys.stderr)
    if not errors:
        return 0
    return 2 if all(isinstance(error, UsageError) for error in errors) else 1


def print_column_roles_of_table_to_stderr(dataset_name_or_path: str) -> None:
    """Print on standard error which column of a table is used for what, so that a reader can object."""
    from .data import load
    from .data.files import is_path_of_table_file

    if is_path_of_table_file(dataset_name_or_path):
        table = load(dataset_name_or_path)
        print(f"fedlab-nb: {table.name}: {table.note}", file=sys.stderr)


def print_note_to_stderr_if_natural_clients(settings: Settings) -> None:
    """Print on standard error that the clients which a data set names are used, without being asked for."""
    if settings.partition == "natural":
        print(
            f"fedlab-nb: {settings.dataset} names its clients: its own {settings.clients} are used.",
            file=sys.stderr,
        )


def print_outcome(outcome: Outcome, *, as_json: bool, with_confusion_matrix: bool) -> None:
    """Print an outcome as JSON or as text; as text also the confusion matrix of unequal classes, if
    `with_confusion_matrix`."""
    if as_json:
        print(json.dumps(outcome.to_json()), flush=True)
        return
    print(format_outcome_as_line(outcome), flush=True)
    if with_confusion_matrix and outcome.has_unequal_classes:
        print(f"\nHow many samples of each class got which answer:\n{outcome.confusion()}")


def handle_look(options: Namespace) -> ExitCode:
    """Print what a data set has: columns, classes, clients, first rows; nothing is run."""
    from .data import load
    from .data.card import format_data_card_as_text

    print(format_data_card_as_text(load(options.dataset)))
    return 0


def handle_which(options: Namespace) -> ExitCode:
    """Print which method to use: from the stored study, or from runs on a person's own data."""
    from .papers.which import Answers, which

    answer_values = {"yes": True, "no": False, None: None}
    answers = Answers(
        public=answer_values[options.has_public],
        once=answer_values[options.once],
        unlike=answer_values[options.unlike],
        forget=answer_values[options.forget],
    )
    if options.dataset is None:
        has_answers = answers != Answers()
        recommendation = which(answers=answers if has_answers else None)
    else:
        settings = parse_set_options(options.settings)
        recommendation = which(
            options.dataset,
            answers=answers,
            seconds=options.seconds,
            seeds=options.seeds,
            all_methods=options.all,
            **settings,
        )
    print(recommendation)
    if options.picture:
        file = recommendation.plot().save(options.picture, force=options.force)
        print(f"Picture: {file}")
    return 0


def handle_predict(options: Namespace) -> ExitCode:
    """Write the answers of a saved model for new rows as CSV, to a file or to standard output."""
    from .studies.saved import load_model

    if options.out:
        check_replaceable([options.out], force=options.force)
    model = load_model(options.model, device=options.device)
    if len(options.rows) == 1:
        answers = model.predict(options.rows[0])
    else:
        answers = model.predict([expand_path(path) for path in options.rows])
    text = answers.to_csv(index=answers.index.name is not None, lineterminator="\n")
    if options.out:
        written_file = write_file(options.out, text, force=options.force)
        print(f"{len(answers)} answers written to {written_file}")
    else:
        print(text, end="")
    return 0


def handle_plan(options: Namespace) -> ExitCode:
    """Print what a preset means: data, clients, and the source of every value; nothing is run."""
    from .papers.overview import plan

    preset = options.preset
    # `plan` has it as its first argument, so it must not be among the settings, too.
    options.preset = None
    print(plan(preset, options.methods or None, **collect_given_settings(options)))
    return 0


def split_at_commas(text: str) -> list[str]:
    """Split a text at its commas, without the blanks around its parts.

    >>> split_at_commas("fens, fedlpa")
    ['fens', 'fedlpa']
    """
    return [part.strip() for part in text.split(",") if part.strip()]


def handle_sweep(options: Namespace) -> ExitCode:
    """Run a grid of methods, alphas and numbers of clients from the command line's lists."""
    from .studies.results import COLUMNS

    settings = collect_given_settings(options)
    if options.alphas is not None:
        settings["alpha"] = split_at_commas(options.alphas)
    if options.clients is not None:
        settings["clients"] = split_at_commas(options.clients)
    return run_grid_and_print_table(
        options, split_at_commas(options.methods), COLUMNS, options.seeds, **settings
    )


def handle_study(options: Namespace) -> ExitCode:
    """Run a grid that a TOML file describes."""
    return run_grid_and_print_table(options, expand_path(options.file))


def run_grid_and_print_table(
    options: Namespace,
    method_names_or_grid_toml: list[str] | Path,
    csv_columns: Sequence[str] = (),
    seed_count: int | str = 1,
    **settings_unless_from_toml: SettingValue,
) -> ExitCode:
    """Run a grid, print its table, say where its files are; exit code 1 if a cell failed.

    method_names_or_grid_toml: the names, or the TOML file that describes the whole grid, seeds and settings included
    csv_columns: those of results.csv; none: all
    seed_count: how many seeds, a number or its text
    settings_unless_from_toml: of the runs; a list is an axis of the grid. UsageError for settings beside a TOML file
    """
    from .papers import overview
    from .studies import engine
    from .studies.text_tables import FORMATS

    check_allowed_name("form of a table", options.table, FORMATS)
    study = engine.make_study(method_names_or_grid_toml, seed_count, settings_unless_from_toml)
    if options.plot:
        check_plot_is_drawable(options.plot, study.axes)  # before the runs
    if options.dry_run:
        print(overview.count_and_estimate_cells_of_study(study))
        return 0
    folder = expand_path(options.out)
    picture = folder / "results.svg"
    if options.plot:
        check_replaceable([picture], force=options.force)
    results = engine.study(
        study,
        out=folder,
        columns=csv_columns,
        workers=options.workers,
        scheduler=options.scheduler,
        force=options.force,
    )
    print(results.table(options.table))
    for row in results.failed:
        axes = []
        for name in (*results.axes, "seed"):
            if row.get(name) is not None:
                axes.append(f"{name} = {row[name]}")
        point = ", ".join(axes)
        print(f"fedlab-nb: {row['method']} failed ({point}): {row['error']}", file=sys.stderr)
    if options.plot:
        results.plot(options.plot).save(picture, force=options.force)
    print(f"written to {folder}")
    return 1 if results.failed else 0


def check_plot_is_drawable(plot_option: str, study_axes: Sequence[str]) -> None:
    """Raise UsageError unless a study with these axes can be drawn as --plot says.

    plot_option: the name of one axis, "bytes", "differences", or two axes for a heat map: "alpha x clients"
    """
    setting_axes = [name for name in study_axes if "." not in name]
    plotted_axes = plot_option.split(" x ")
    if len(plotted_axes) == 1:
        setting_axes += ["bytes", "differences"]
    for axis in plotted_axes:
        check_allowed_name("axis to draw against", axis, setting_axes)


def handle_reproduce(options: Namespace) -> ExitCode:
    """Run a paper's table and print the published numbers beside ours."""
    from .papers import reproduce

    arguments = {}
    for name in ("dataset", "scale", "seeds", "workers", "out", "stored", "force"):
        arguments[name] = getattr(options, name)
    result = reproduce(options.table, **arguments, **parse_set_options(options.settings))
    print(result)
    if options.list:
        print(f"\n{result.listing()}")
    if options.out and not options.stored:
        print(f"written to {options.out}")
    for error in sorted({row["error"] for row in result.rows if row.get("error")}):
        print(f"fedlab-nb: {error}", file=sys.stderr)
    return 0


def handle_store(options: Namespace) -> ExitCode:
    """List, measure, prune or verify the stored results; exit code 1 if entries are damaged."""
    from .studies import store

    entries = store.list_entries_least_recently_used_first()
    if options.task == "list":
        for entry in entries:
            print(format_store_entry_as_line(entry))
    elif options.task == "size":
        print_store_sizes_by_kind(entries)
    elif options.task == "verify":
        damaged = store.find_damaged_entries()
        for entry in damaged:
            print(f"damaged: {entry.path}")
        print(f"{len(entries) - len(damaged)} of {len(entries)} entries are not damaged.")
        return 1 if damaged else 0
    else:
        delete_stored_results_by_options(options)
    return 0


def format_store_entry_as_line(entry: StoredEntryFolder) -> str:
    """Format a line about a stored result: its kind, key, day and size, and what was run."""
    from .studies.text_tables import format_data_size

    about = entry.read_values().get("values", {}).get("about", {})
    values = []
    for name in ("method", "dataset", "alpha", "clients", "seed"):
        values.append(str(about.get(name, "")))
    run = " ".join(values).strip()
    day = datetime.fromtimestamp(entry.used)
    size = format_data_size(entry.bytes)
    key = entry.path.name[:12]
    return f"{entry.kind:8s} {key}  {day:%Y-%m-%d %H:%M}  {size:>9s}  {run}".rstrip()


def print_store_sizes_by_kind(entries: Sequence[StoredEntryFolder]) -> None:
    """Print how many results of each kind are stored and how large they are."""
    from .studies import store
    from .studies.text_tables import format_data_size

    for kind in store.KINDS:
        sizes = [entry.bytes for entry in entries if entry.kind == kind]
        print(f"{kind:8s} {len(sizes):6d} entries  {format_data_size(sum(sizes)):>9s}")
    bound = format_data_size(store.read_store_limit_in_bytes_or_0_for_none())
    print(f"in {store.find_store_folder()}; the bound is {bound}")


def delete_stored_results_by_options(options: Namespace) -> None:
    """Delete the stored results that --days, --version and --size name."""
    from .studies import store
    from .studies.text_tables import format_data_size

    has_limit = options.days is not None or options.other or options.size is not None
    if not has_limit:
        raise UsageError(
            "store prune needs to know what it may delete; "
            "give --days N, --version or --size 500MB."
        )
    days = None
    if options.days is not None:
        days = check_number("days", parse_if_number(options.days), 0)
    count, freed = store.prune_entries(
        unused_days=days,
        should_delete_other_versions=options.other,
        size_limit_in_bytes_or_text=options.size,
    )
    print(f"{count} entries deleted, {format_data_size(freed)} freed.")


def handle_page(options: Namespace) -> ExitCode:
    """Write the page that trains in a browser."""
    from .live.page import write_page

    print(f"written to {write_page(options.out, force=options.force)}")
    return 0


def handle_class(options: Namespace) -> ExitCode:
    """Hold a class, or only write the page of its students."""
    from .live.classroom import run_class_until_interrupted, write_student_page_file

    partition = {}
    for name in ("alpha", "drawings", "seed"):
        partition[name] = parse_if_number(getattr(options, name))
    browser = not (options.no_browser or options.page_alone)
    try:
        if options.page:
            print(
                f"written to {write_student_page_file(options.page, force=options.force, **partition)}"
            )
            return 0
        return run_class_until_interrupted(
            options.lan, options.port, options.keep, options.rehearse, browser, **partition
        )
    except OSError as error:
        why = error.strerror or error
        raise RunError(
            f"The class cannot be held ({why}); choose another --port, --lan or file."
        ) from None


def handle_slides(options: Namespace) -> ExitCode:
    """Write the pictures of a lesson to files."""
    from .slides import write_slides

    folder, slides = write_slides(options.lesson, options.out, options.format, force=options.force)
    answers = sum(slide.answer for slide in slides)
    print(
        f"{len(slides)} pictures written to {folder}; {answers} of them show answers. See index.html there."
    )
    return 0


def handle_capstone_leaderboard(options: Namespace) -> ExitCode:
    """Print one table of a class's capstone reports."""
    from .course.capstone import leaderboard
    from .studies.text_tables import FORMATS

    print(
        leaderboard(
            *options.paths, form=check_allowed_name("form of a table", options.table, FORMATS)
        )
    )
    return 0


def handle_voila(options: Namespace) -> ExitCode:
    """Serve a panel as a page of its own until Ctrl-C."""
    from .voila import serve_panel_until_stopped

    settings: dict[str, Any] = {}
    for name, text in parse_set_options(options.settings).items():
        is_list = name in ("methods", "hide")
        settings[name] = split_at_commas(text) if is_list else parse_if_number(text)
    browser = not (options.no_browser or options.page_alone)
    return serve_panel_until_stopped(options.panel, options.theme, browser, settings) or 0


def format_outcome_as_line(outcome: Outcome) -> str:
    """Format a line about an outcome: name, accuracy, bytes, seconds, and what is special about it."""
    from .methods import choose_method_label, shorten_method_title
    from .studies.text_tables import format_data_size

    title = shorten_method_title(
        choose_method_label(outcome.method, outcome.options, outcome.method)
    )
    balanced = ""
    if outcome.has_unequal_classes:
        balanced = f"balanced accuracy {outcome.balanced_accuracy:6.1%}   "
    parts = [
        f"{title:14s} {balanced}accuracy {outcome.accuracy:6.1%}",
        f"up {format_data_size(outcome.bytes_up):>9s}",
        f"down {format_data_size(outcome.bytes_down):>9s}",
        f"{outcome.seconds_total:6.2f} s",
    ]
    if outcome.settings.holdout_for != "all":
        parts.append(f"clients trained on {1 - outcome.plan.share_held_out_of_local_training:.0%}")
    if outcome.cached:
        parts.append("(cached)")
    for title, accuracy in outcome.report.get_accuracies_under_other_rules().items():
        parts.append(f"{title} {accuracy:.1%}")
    for client, accuracy in outcome.unseen.items():
        parts.append(f"unseen client {client} {accuracy:.1%}")
    return "   ".join(parts)


def describe_allowed_values_in_brackets(knob: Knob) -> str:
    """Describe the values that a hyper-parameter may have, such as "(0 to 1)"; "" if its type allows any."""
    if knob.model:
        return "(auto, or a model's name or name:width)"
    if knob.options:
        return f"({', '.join(knob.options)})"
    if knob.low is not None and knob.high is not None:
        return f"({knob.low:g} to {knob.high:g})"
    if knob.low is not None:
        return f"(at least {knob.low:g})"
    return ""


def handle_list(options: Namespace) -> ExitCode:
    """Print the names of methods, data sets, models, partitions and presets, each with a line."""
    from .data import DATASETS, PARTITIONS
    from .methods import METHODS
    from .models import MODELS
    from .studies.setups import SETUPS

    groups = {
        "methods": {name: cls.info.help for name, cls in METHODS.items()},
        "datasets": {name: info.help for name, info in DATASETS.items()},
        "models": {name: info.help for name, info in MODELS.items()},
        "partitions": dict(PARTITIONS),
        "presets": {name: setup.help for name, setup in SETUPS.items()},
    }
    if options.json:
        print(json.dumps(groups))
        return 0
    width = max(len(name) for entries in groups.values() for name in entries)
    for title, entries in groups.items():
        print(f"{title}:")
        for name, text in entries.items():
            print(f"  {name:{width}} {text}")
            if title == "datasets" and DATASETS[name].card:
                print(f"  {'':{width}} {DATASETS[name].card}")
        if title == "models":
            print(
                "  NAME:WIDTH: another width; NAME-nobn: no batch norm; NAME-gn: group norm in its place"
            )
        if title == "methods":
            print("  (hyper-parameters of a method, for --set:)")
            for name, cls in METHODS.items():
                for knob in cls.fields():
                    allowed = describe_allowed_values_in_brackets(knob)
                    line = f"    {name}.{knob.name} = {knob.default}   {knob.help} {allowed}"
                    print(line.rstrip())
    return 0


PACKAGES = (
    "torch",
    "torchvision",
    "numpy",
    "pandas",
    "matplotlib",
    "scikit-learn",
    "ipywidgets",
    "jupyterlab",
)


def handle_doctor(options: Namespace) -> ExitCode:
    """Print device and versions, and what works on this machine, which is tried; one fact on a line."""
    import os
    import platform
    import time
    from importlib import metadata

    from . import __version__

    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    print(f"fedlab-nb {__version__}, Python {platform.python_version()}, {machine}")
    for name in PACKAGES:
        try:
            print_doctor_line(name, metadata.version(name))
        except metadata.PackageNotFoundError:
            print_doctor_line(name, f"missing: pip install {name}")
    import torch  # only here: if it is missing, the lines above say so

    from .studies import run
    from .studies.engine import make_and_check_results_folder
    from .studies.store import find_store_folder

    if torch.cuda.is_available():
        card = torch.cuda.get_device_properties(0)
        print_doctor_line(
            "GPU", f"{card.name}, {card.total_memory / 2**30:.0f} GiB: --device auto uses it"
        )
    else:
        print_doctor_line("GPU", "none that PyTorch can use: --device auto uses the CPU")
    try:
        make_and_check_results_folder(find_store_folder())
        print_doctor_line("store", f"{find_store_folder()} (writable)")
    except UsageError:
        print_doctor_line("store", f"{find_store_folder()} (NOT writable: results are not cached)")
    print_doctor_line("offline data", "digits, glyphs, heart, watch, mails, your own .npz or .csv")
    print_doctor_line(
        "downloads", "mnist, fashion-mnist, cifar10, cifar100, svhn (with torchvision)"
    )
    start = time.perf_counter()
    device = run("fedavg", clients=2, epochs=1, cache=False).settings.device
    seconds = time.perf_counter() - start
    print_doctor_line(
        "training", f"works: 2 clients, 1 epoch of digits in {seconds:.1f} s on {device}"
    )
    return 0


def print_doctor_line(name: str, text: str) -> None:
    """Print a line of `doctor`: what it is about, and what was found."""
    print(f"  {name:14s} {text}")


def handle_course(options: Namespace) -> ExitCode:
    """Open the course in JupyterLab, which waits until it ends."""
    from .jupyter import serve_course_until_stopped

    return serve_course_until_stopped(options.folder, opens_browser=not options.no_browser) or 0


HANDLERS: dict[str, Callable[[Namespace], int]] = {
    "course": handle_course,
    "run": handle_run,
    "look": handle_look,
    "which": handle_which,
    "predict": handle_predict,
    "plan": handle_plan,
    "sweep": handle_sweep,
    "study": handle_study,
    "reproduce": handle_reproduce,
    "store": handle_store,
    "page": handle_page,
    "class": handle_class,
    "slides": handle_slides,
    "leaderboard": handle_capstone_leaderboard,
    "voila": handle_voila,
    "list": handle_list,
    "doctor": handle_doctor,
}


def make_output_replace_unprintable_characters() -> None:
    """From now on, print characters that the terminal's encoding lacks, such as α on an old Windows, as "?"."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def main(arguments: Sequence[str] | None = None) -> ExitCode:
    """Entry point; returns the exit code."""
    make_output_replace_unprintable_characters()
    try:
        options = make_command_line_parser().parse_args(arguments)
    except SystemExit as leave:
        return int(leave.code or 0)
    try:
        return HANDLERS[options.command or "course"](options)
    except FedlabError as error:
        print(f"fedlab-nb: {format_error_on_one_line(error)}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        print(
            "fedlab-nb: stopped; finished runs are kept, the same command goes on.", file=sys.stderr
        )
        return 1
    except BrokenPipeError:
        return 1
