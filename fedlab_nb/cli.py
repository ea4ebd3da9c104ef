"""The command line: `fedlab-nb` opens the course, `voila` a panel; the other commands need no notebook.

`run --json` prints one JSON object a method, one a line, and nothing else on standard output. Exit codes: 0 done, 1 a
run failed, 2 wrong use.
"""

import io
import json
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from .arguments import parser
from .errors import (
    FedlabError,
    RunError,
    UsageError,
    check_number,
    choose,
    format_error,
    parse_assignments,
    parse_number,
)
from .files import check_replaceable, expand_path, write_file


def settings_from(pairs: Sequence[str]) -> dict[str, str]:
    """What --set was given."""
    found = parse_assignments(pairs, "--set takes FIELD=VALUE, for example --set rounds=100")
    return {name.replace("-", "_"): value for name, value in found.items()}


def given(options: Namespace) -> dict[str, Any]:
    """The settings that the command line names, those of --set included."""
    from .studies.settings import setting_names

    named = {
        name: value
        for name, value in vars(options).items()
        if name in setting_names() and value is not None
    }
    return named | settings_from(options.settings)


def run_command(options: Namespace) -> int:
    from .data import load
    from .data.files import is_table
    from .studies import StoreWarning, job
    from .studies.saved import check_place

    warnings.simplefilter("once", StoreWarning)
    warnings.formatwarning = lambda text, *_: (
        f"fedlab-nb: {text}\n"
    )  # a sentence, and no line of the source
    settings = given(options)
    failed: list[Exception] = []
    if is_table(
        str(settings.get("dataset"))
    ):  # which column was taken for what: a reader has to be able to object
        table = load(str(settings["dataset"]))
        print(f"fedlab-nb: {table.name}: {table.note}", file=sys.stderr)
    silent = "partition" in settings
    one = (
        len(options.methods) == 1
        and options.methods != ["all"]
        and parse_number(options.seeds) == 1
    )
    if options.save:
        if not one:
            raise UsageError("--save keeps the model of one run; give one method and one seed.")
        check_place(options.save, force=options.force)  # now: nothing is computed in vain
    for event in job(options.methods, seeds=options.seeds, cache=not options.no_cache, **settings):
        if event.outcome is not None:
            used = event.outcome.settings
            if used.partition == "natural" and not silent:
                silent = True
                print(
                    f"fedlab-nb: {used.dataset} names its clients: its own {used.clients} are used.",
                    file=sys.stderr,
                )
            print(
                json.dumps(event.outcome.to_json()) if options.json else line(event.outcome),
                flush=True,
            )
            if one and not options.json and event.outcome.has_unequal_classes:
                print(
                    f"\nHow many samples of each class got which answer:\n{event.outcome.confusion()}"
                )
            if options.save:
                event.outcome.save(options.save, force=options.force)
        if event.error is not None:
            failed.append(event.error)
            print(f"fedlab-nb: {event.method} failed: {format_error(event.error)}", file=sys.stderr)
    return 0 if not failed else 2 if all(isinstance(error, UsageError) for error in failed) else 1


def look_command(options: Namespace) -> int:
    """What data were taken for; nothing is run."""
    from .data import load
    from .data.card import write_text_card

    print(write_text_card(load(options.dataset)))
    return 0


def which_command(options: Namespace) -> int:
    """Which method to use: from the stored study, or from runs on a person's own data."""
    from .papers.which import Answers, which

    said = {"yes": True, "no": False, None: None}
    answers = Answers(
        public=said[options.has_public],
        once=said[options.once],
        unlike=said[options.unlike],
        forget=said[options.forget],
    )
    asked = answers if answers != Answers() else None
    if options.dataset is None:
        recommendation = which(answers=asked)
    else:
        limits = {"seconds": options.seconds, "seeds": options.seeds}
        settings = settings_from(options.settings)
        recommendation = which(options.dataset, answers=answers, **limits, **settings)
    print(recommendation)
    if options.picture:
        file = recommendation.plot().save(options.picture, force=options.force)
        print(f"Picture: {file}")
    return 0


def predict_command(options: Namespace) -> int:
    """Answers for raw rows, as CSV: to a file, or to standard output."""
    from .studies.saved import load_model

    if options.out:
        check_replaceable([options.out], force=options.force)
    model = load_model(options.model, device=options.device)
    rows = options.rows[0] if len(options.rows) == 1 else list(map(expand_path, options.rows))
    answers = model.predict(rows)
    text = answers.to_csv(index=answers.index.name is not None, lineterminator="\n")
    if options.out:
        place = write_file(options.out, text, force=options.force)
        print(f"{len(answers)} answers written to {place}")
    else:
        print(text, end="")
    return 0


def plan_command(options: Namespace) -> int:
    from .papers.overview import plan

    options.preset, preset = None, options.preset
    print(plan(preset, options.methods or None, **given(options)))
    return 0


def parts(text: str) -> list[str]:
    """What is joined by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def sweep_command(options: Namespace) -> int:
    from .studies.results import COLUMNS

    axes = {"alpha": options.alphas, "clients": options.clients}
    settings = given(options) | {
        axis: parts(text) for axis, text in axes.items() if text is not None
    }
    return grid_command(options, parts(options.methods), COLUMNS, options.seeds, **settings)


def study_command(options: Namespace) -> int:
    return grid_command(options, expand_path(options.file))


def grid_command(
    options: Namespace, methods: Any, columns: Sequence[str] = (), seeds: Any = 1, **settings: Any
) -> int:
    """Run a grid, print its table, say where its files are; exit code 1 if a cell failed."""
    from .papers import overview
    from .studies import engine
    from .studies.text_tables import FORMATS

    choose("form of a table", options.table, FORMATS)
    study, plot = engine.make_study(methods, seeds, settings), options.plot
    own = [name for name in study.axes if "." not in name]
    for axis in (
        plot.split(" x ") if plot else ()
    ):  # now: a wrong name would be noticed only after the runs
        choose(
            "axis to draw against",
            axis,
            own if " x " in str(plot) else [*own, "bytes", "differences"],
        )
    if options.dry_run:
        print(overview.estimate(study))
        return 0
    folder = expand_path(options.out)
    picture = folder / "results.svg"
    if plot:
        check_replaceable([picture], force=options.force)
    ways = {"workers": options.workers, "scheduler": options.scheduler, "force": options.force}
    results = engine.study(study, out=folder, columns=columns, **ways)
    print(results.table(options.table))
    for row in results.failed:
        axes = ", ".join(
            f"{name} = {row[name]}" for name in (*results.axes, "seed") if row.get(name) is not None
        )
        print(f"fedlab-nb: {row['method']} failed ({axes}): {row['error']}", file=sys.stderr)
    if plot:
        results.plot(plot).save(picture, force=options.force)
    print(f"written to {folder}")
    return 1 if results.failed else 0


def reproduce_command(options: Namespace) -> int:
    from .papers import reproduce

    named = {
        name: getattr(options, name)
        for name in ("dataset", "scale", "seeds", "workers", "out", "stored", "force")
    }
    result = reproduce(options.table, **named, **settings_from(options.settings))
    print(result)
    if options.list:
        print(f"\n{result.listing()}")
    if options.out and not options.stored:
        print(f"written to {options.out}")
    for error in sorted({row["error"] for row in result.rows if row.get("error")}):
        print(f"fedlab-nb: {error}", file=sys.stderr)
    return 0


def store_command(options: Namespace) -> int:
    from .studies import store
    from .studies.text_tables import data_size

    here = store.list_entries()
    if options.task == "list":
        for entry in here:
            about = entry.head().get("values", {}).get("about", {})
            what = " ".join(
                str(about.get(key, "")) for key in ("method", "dataset", "alpha", "clients", "seed")
            )
            day, size = datetime.fromtimestamp(entry.used), data_size(entry.bytes)
            print(
                f"{entry.kind:8s} {entry.path.name[:12]}  {day:%Y-%m-%d %H:%M}  {size:>9s}  {what.strip()}".rstrip()
            )
    elif options.task == "size":
        for kind in store.KINDS:
            own = [entry for entry in here if entry.kind == kind]
            print(
                f"{kind:8s} {len(own):6d} entries  {data_size(sum(entry.bytes for entry in own)):>9s}"
            )
        print(f"in {store.store_folder()}; the bound is {data_size(store.read_limit())}")
    elif options.task == "verify":
        damaged = store.verify()
        for entry in damaged:
            print(f"damaged: {entry.path}")
        print(f"{len(here) - len(damaged)} of {len(here)} entries are not damaged.")
        return 1 if damaged else 0
    else:
        has_limit = options.days is not None or options.other or options.size is not None
        if not has_limit:
            raise UsageError(
                "store prune needs to know what it may delete; "
                "give --days N, --version or --size 500MB."
            )
        days = None if options.days is None else check_number("days", parse_number(options.days), 0)
        count, freed = store.prune(days=days, version=options.other, size=options.size)
        print(f"{count} entries deleted, {data_size(freed)} freed.")
    return 0


def page_command(options: Namespace) -> int:
    from .live.page import write

    print(f"written to {write(options.out, force=options.force)}")
    return 0


def class_command(options: Namespace) -> int:
    from .live.classroom import open_class, write_page

    partition = {
        name: parse_number(getattr(options, name)) for name in ("alpha", "drawings", "seed")
    }
    browser = not (options.no_browser or options.page_alone)
    try:
        if options.page:
            print(f"written to {write_page(options.page, force=options.force, **partition)}")
            return 0
        return open_class(
            options.lan, options.port, options.keep, options.rehearse, browser, **partition
        )
    except OSError as error:
        why = error.strerror or error
        raise RunError(
            f"The class cannot be held ({why}); choose another --port, --lan or file."
        ) from None


def slides_command(options: Namespace) -> int:
    from .slides import write

    folder, slides = write(options.lesson, options.out, options.format, force=options.force)
    answers = sum(slide.answer for slide in slides)
    print(
        f"{len(slides)} pictures written to {folder}; {answers} of them show answers. See index.html there."
    )
    return 0


def leaderboard_command(options: Namespace) -> int:
    from .course.capstone import leaderboard
    from .studies.text_tables import FORMATS

    print(leaderboard(*options.paths, form=choose("form of a table", options.table, FORMATS)))
    return 0


def voila_command(options: Namespace) -> int:
    from .voila import open_page

    texts = settings_from(options.settings)
    settings = {
        name: parts(v) if name in ("methods", "hide") else parse_number(v)
        for name, v in texts.items()
    }
    return (
        open_page(
            options.panel, options.theme, not (options.no_browser or options.page_alone), settings
        )
        or 0
    )


def line(o: Any) -> str:
    """One outcome for people."""
    from .methods import label_of, shorten_title
    from .studies.text_tables import data_size

    share = (
        f"   clients trained on {1 - o.plan.holdout:.0%}" if o.settings.holdout_for != "all" else ""
    )
    more = "   (remembered)" * o.cached + "".join(
        f"   {words} {v:.1%}" for words, v in o.report.others().items()
    )
    more += "".join(f"   unseen client {who} {v:.1%}" for who, v in o.unseen.items())
    name = shorten_title(label_of(o.method, o.options, o.method))
    balanced = f"balanced accuracy {o.balanced_accuracy:6.1%}   " if o.has_unequal_classes else ""
    return (
        f"{name:14s} {balanced}accuracy {o.accuracy:6.1%}   up {data_size(o.bytes_up):>9s}   "
        f"down {data_size(o.bytes_down):>9s}   {o.seconds_total:6.2f} s{share}{more}"
    )


def takes(knob: Any) -> str:
    """What a hyper-parameter takes, such as "(0 to 1)"; nothing where any value of its type will do."""
    if knob.model:
        return "(auto, or a model's name or name:width)"
    if knob.options:
        return f"({', '.join(knob.options)})"
    if knob.low is not None and knob.high is not None:
        return f"({knob.low:g} to {knob.high:g})"
    return f"(at least {knob.low:g})" if knob.low is not None else ""


def list_command(options: Namespace) -> int:
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
                for k in cls.fields():
                    print(f"    {name}.{k.name} = {k.default}   {k.help} {takes(k)}".rstrip())
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


def doctor_command(options: Namespace) -> int:
    """Device, versions, and what works here, each shown by trying it: one line a fact."""
    import os
    import platform
    import time
    from importlib import metadata

    from . import __version__

    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    print(f"fedlab-nb {__version__}, Python {platform.python_version()}, {machine}")
    for name in PACKAGES:
        try:
            fact(name, metadata.version(name))
        except metadata.PackageNotFoundError:
            fact(name, f"missing: pip install {name}")
    import torch  # now that it would be known to be missing

    from .studies import run
    from .studies.engine import check_folder
    from .studies.store import store_folder

    if torch.cuda.is_available():
        card = torch.cuda.get_device_properties(0)
        fact("GPU", f"{card.name}, {card.total_memory / 2**30:.0f} GiB: --device auto uses it")
    else:
        fact("GPU", "none that PyTorch can use: --device auto uses the CPU")
    try:
        check_folder(store_folder())
        fact("store", f"{store_folder()} (writable)")
    except UsageError:
        fact("store", f"{store_folder()} (NOT writable: results are not remembered)")
    fact("offline data", "digits, glyphs, heart, watch, mails, your own .npz or .csv")
    fact("downloads", "mnist, fashion-mnist, cifar10, cifar100, svhn (with torchvision)")
    start = time.perf_counter()
    device = run("fedavg", clients=2, epochs=1, cache=False).settings.device
    fact(
        "training",
        f"works: 2 clients, 1 epoch of digits in {time.perf_counter() - start:.1f} s on {device}",
    )
    return 0


def fact(name: str, text: str) -> None:
    print(f"  {name:14s} {text}")


def course_command(options: Namespace) -> int:
    from .jupyter import open_course

    return open_course(options.folder, browser=not options.no_browser) or 0


def print_any_text() -> None:
    """Let the terminal's encoding be what it is: what it lacks, such as α on an old Windows, is printed as "?"."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    print_any_text()
    try:
        options = parser().parse_args(arguments)
    except SystemExit as leave:
        return int(leave.code or 0)
    try:
        return globals()[f"{options.command or 'course'}_command"](options)
    except FedlabError as error:
        print(f"fedlab-nb: {format_error(error)}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        print(
            "fedlab-nb: stopped; finished runs are kept, the same command goes on.", file=sys.stderr
        )
        return 1
    except BrokenPipeError:
        return 1
