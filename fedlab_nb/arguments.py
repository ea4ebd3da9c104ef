"""The commands of the command line, and the options of each."""

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from . import __version__

AddOptionFunction = Callable[..., Any]  # argparse's `add_argument` of one command

TABLE = "how the table is printed: text, markdown or latex"
WORKERS = "processes on this machine (needs the optional dependencies 'cluster')"
SETTINGS = {
    "partition": "default: the preset's, dirichlet, or natural where the file has client_train; see fedlab-nb list",
    "size-sigma": "make client sizes lognormal, for the partitions dirichlet and client_dirichlet",
    "share": "part of the training samples that is used, 0-1",
    "minimum": "samples that every client gets at least; 0 means 10, or half the mean size if that is less",
    "repair": "how every client gets the minimum: move (a few samples) or redraw",
    "public": "unlabelled public data: own, a share of the training set such as 0.1 (0: none), or another data set; "
    "default: the preset's",
    "transform": "what is done to images: standardise or symmetric, crop, flip, joined by +; or lite0 (features)",
    "holdout": "share of its samples that a client keeps out of local training",
    "holdout-for": "all: the clients of every method hold samples out; needed: only those of methods that train on "
    "them",
    "poison": "harmful clients: none, labels:COUNT, sign:COUNT, lie:COUNT, lie:COUNT:LOGIT or "
    "scaled:COUNT:FACTOR; default: none",
    "absent": "clients that train and never upload: how many (the last ones), or which, such as 0,3 or 3,",
    "unseen": "clients that take no part, and whose samples are one more test set: how many, or which",
}

WHICH = {
    "has-public": "does the server have unlabelled samples of the same kind?",
    "once": "can a client send one message only?",
    "unlike": "do the clients have different networks?",
    "forget": "may a client ask to be forgotten?",
}


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that answers a wrong option with one sentence on standard error (exit code 2)."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help.\n")


def make_command_line_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line, with all commands and their options."""
    about = "One-shot federated learning, learnt by doing. Without a command it opens the course."
    main = Parser(prog="fedlab-nb", description=about)
    main.add_argument(
        "--version", action="version", version=f"fedlab-nb {__version__}", help="print the version"
    )
    main.add_argument(
        "--folder",
        help="folder for the course's notebooks, if the package was installed from a wheel",
    )
    main.add_argument(
        "--no-browser", action="store_true", help="only print the address of the course"
    )
    commands = main.add_subparsers(dest="command", parser_class=Parser)

    def add_command(name: str, help: str) -> AddOptionFunction:
        """Add a command; returns the function that adds an option to it."""
        return commands.add_parser(name, help=help).add_argument

    add_option = add_command("run", "run methods on one federation")
    add_option("methods", nargs="+", metavar="METHOD", help="method names (fedlab-nb list), or all")
    add_option(
        "--alpha",
        help="Dirichlet concentration, 0.001-1000: smaller is more skewed; default: the preset's, 0.1",
    )
    add_option("--clients", help="number of clients M; default: the preset's, 10")
    add_option(
        "--backend",
        default="auto",
        help="auto, loop or stacked: how clients are trained (for measuring)",
    )
    add_run_options(add_option)
    add_option(
        "--no-cache", action="store_true", help="do not read or write the store (for measuring)"
    )
    add_option(
        "--json", action="store_true", help="print one JSON object for each method, one on a line"
    )
    add_option(
        "--save",
        metavar="PATH",
        help="write the model of one run to a file that ends in .safetensors or .onnx",
    )
    add_force_option(add_option)

    add_option = add_command(
        "which", "which method to use: the stored study, or a rehearsal on your own data"
    )
    add_option("dataset", nargs="?", help="a file or a name; default: show the stored study")
    for question, help in WHICH.items():
        add_option(f"--{question}", choices=["yes", "no"], help=help)
    add_option("--seconds", type=float, default=120, help="no run is begun that would end later")
    add_option(
        "--seeds",
        type=int,
        help="how many seeds of each candidate; default: 5, up to 20 for small data",
    )
    add_option(
        "--all", action="store_true", help="rehearse all methods and not the shortlist alone"
    )
    add_option(
        "--picture", metavar="FILE", help="also write the picture to this file (.svg or .png)"
    )
    add_force_option(add_option)
    add_set_field_option(add_option, "a setting of the runs, such as alpha=0.1 or public=0.1")

    add_option = add_command(
        "look", "show what a file was taken for: columns, classes, clients, first rows"
    )
    add_option(
        "dataset", help="a file, with options behind a ? (mine.csv?label=NAME), or a name (list)"
    )

    add_option = add_command(
        "predict", "what a saved model says of new rows, with a probability a class"
    )
    add_option("model", help="a file that run --save wrote (.safetensors)")
    add_option(
        "rows",
        nargs="+",
        metavar="FILE",
        help="a table with the columns of the training rows, in any order; or pictures, or a folder of some",
    )
    add_option("--out", help="write the answers to this file, as CSV; default: print them")
    add_option("--device", default="cpu", help="auto, cpu or cuda")
    add_force_option(add_option)

    add_option = add_command(
        "plan",
        "show what a preset means: data, clients, each method's settings, the source of every value",
    )
    add_option(
        "preset",
        nargs="?",
        default="classroom",
        help="classroom, or a paper's set-up (fedlab-nb list)",
    )
    add_option(
        "methods",
        nargs="*",
        metavar="METHOD",
        help="method names; default: those of the set-up's paper",
    )
    for name in ("dataset", "alpha", "clients", "seed", "partition", "model"):
        add_option(f"--{name}", help=f"another {name} than the set-up's")
    add_option("--device", default="cpu", help="cpu or cuda; the values are the same on both")
    add_set_field_option(add_option, "as for run")

    add_option = add_command(
        "sweep", "run a grid of experiments; after an interruption it goes on where it stopped"
    )
    add_option("--methods", required=True, help="method names joined by commas")
    add_option("--alphas", help="values joined by commas; default: the preset's, 0.1")
    add_option("--clients", help="values joined by commas; default: the preset's, 10")
    add_run_options(add_option)
    add_grid_options(add_option)

    add_option = add_command(
        "study",
        "run any grid that a TOML file describes; after an interruption it goes on where it stopped",
    )
    add_option(
        "file",
        help="a TOML file with methods, seeds and settings; a list is an axis (see the README)",
    )
    add_grid_options(add_option)

    add_option = add_command(
        "reproduce", "run a table of a paper, and show its published numbers beside ours"
    )
    add_option("table", help="a set-up and the number of a table, such as fens:1 or coboosting:7")
    add_option(
        "--dataset",
        default="",
        help="one of the table's data sets, or another one for all of them, such as digits",
    )
    add_option(
        "--scale",
        default="classroom",
        help="classroom, paper, or a share of the paper's samples, such as 0.1",
    )
    add_option(
        "--seeds",
        help="how many seeds; default: 10 for the classroom, else as many as in the paper",
    )
    add_option("--workers", default=1, help=WORKERS)
    add_option("--out", help="also write results.csv, results.json and table.txt into this folder")
    add_force_option(add_option)
    add_option(
        "--stored",
        action="store_true",
        help="run nothing; show the results that came with the package",
    )
    add_option(
        "--list",
        action="store_true",
        help="also print every ordering, and what each claim compares",
    )
    add_set_field_option(
        add_option,
        "a setting or hyper-parameter of all runs: model=cnn, epochs=20, dense.epochs=10, ...",
    )

    add_option = add_command(
        "store", "the stored results: list them, say their size, delete some, or check them"
    )
    add_option("task", choices=["list", "size", "prune", "verify"])
    add_option("--days", help="prune: delete what was not used for this number of days")
    add_option(
        "--version",
        dest="other",
        action="store_true",
        help="prune: delete what another version has made",
    )
    add_option(
        "--size",
        help="prune: delete the oldest results until the rest is no larger than this, such as 500MB",
    )

    add_option = add_command(
        "voila", "show a panel as a page of its own, for a classroom screen (needs Voilà)"
    )
    add_option(
        "panel",
        nargs="?",
        default="playground",
        help="playground (default), compare, race, or a method: its lab",
    )
    add_option("--theme", default="light", help="light or dark")
    add_set_field_option(
        add_option, "a starting value of the panel: alpha=0.05, seeds=3, methods=fens,fedlpa, ..."
    )
    add_option(
        "--no-browser", dest="page_alone", action="store_true", help="only print the address"
    )

    add_option = add_command(
        "page",
        "write one file that trains in any browser, with the stored results; no Python, no network",
    )
    add_option("--out", default="playground.html", help="the file to write")
    add_force_option(add_option)

    add_option = add_command(
        "class",
        "hold a class in which every phone is a client: it draws digits and sends one message",
    )
    add_option(
        "--lan", nargs="?", const="", metavar="ADDRESS", help="let phones in this network join"
    )
    add_option("--port", help="default: 8123, or the next one that is free")
    add_option(
        "--alpha",
        default=0.1,
        help="how alike the phones' digits are: two or three digits each; "
        "from 1 on more, below 0.02 often a single one",
    )
    add_option("--drawings", default=8, help="how many digits each phone draws (8)")
    add_option("--seed", default=0)
    add_option(
        "--keep",
        nargs="?",
        const="",
        metavar="FILE",
        help="keep messages in a file, to go on after a restart; "
        "without it Ctrl-C asks before it forgets them",
    )
    add_option(
        "--rehearse",
        default=0,
        metavar="COUNT",
        help="so many simulated students come, send and stay",
    )
    add_option(
        "--page",
        metavar="FILE",
        help="only write the students' page as a file, for messages by hand",
    )
    add_force_option(add_option)
    add_option(
        "--no-browser", dest="page_alone", action="store_true", help="only print the addresses"
    )

    add_option = add_command(
        "slides", "write the pictures of one lesson to files for slides, with their alt texts"
    )
    add_option("lesson", help="a lesson's number or name, such as 03 or fens")
    add_option("--out", help="the folder to write to; default: slides_ and the lesson's name")
    add_force_option(add_option)
    add_option(
        "--format",
        default="png",
        help="png (as stored in the lesson) or svg (runs the lesson's cells, up to minutes)",
    )

    add_option = add_command(
        "leaderboard",
        "one table of the capstone reports of a class; ranks within the noise are shared",
    )
    add_option(
        "paths", nargs="+", metavar="PATH", help="report files (.jsonl), or folders with some"
    )
    add_option("--table", default="text", help=TABLE)

    add_option = add_command("list", "list the methods, data sets, models, partitions and presets")
    add_option("--json", action="store_true")
    add_command("doctor", "say which device and versions are here, and what works")
    return main


def add_run_options(add_option: AddOptionFunction) -> None:
    """Add the options that a run and a grid have in common."""
    add_option(
        "--dataset",
        help="a name (fedlab-nb list) or the path of an .npz or .csv file; default: the preset's, digits",
    )
    add_option("--seed", default=0)
    add_option("--seeds", default=1, help="how many seeds, counted up from --seed")
    for name, about in SETTINGS.items():
        add_option(f"--{name}", help=about)
    add_option(
        "--model",
        default="auto",
        help="name or name:width; joined by commas for clients with different networks",
    )
    add_option(
        "--preset",
        default="classroom",
        help="classroom (seconds on a CPU), or a paper's set-up: fedlab-nb list",
    )
    add_option("--device", default="auto", help="auto, cpu or cuda")
    add_set_field_option(
        add_option, "a hyper-parameter: epochs=20, rounds=100, fens.aggregator=nn, holdout=0.2, ..."
    )


def add_set_field_option(add_option: AddOptionFunction, help: str) -> None:
    """Add the option --set, with this help."""
    add_option(
        "--set", dest="settings", action="append", default=[], metavar="FIELD=VALUE", help=help
    )


def add_force_option(add_option: AddOptionFunction) -> None:
    """Add the option --force."""
    add_option(
        "--force",
        action="store_true",
        help="replace files that are there already and that fedlab-nb did not write",
    )


def add_grid_options(add_option: AddOptionFunction) -> None:
    """Add the options that every grid has."""
    add_option("--table", default="text", help=TABLE)
    add_option(
        "--plot",
        help="also draw a picture: the name of an axis, 'bytes', 'differences', or 'alpha x clients'",
    )
    add_option(
        "--out", default="results", help="folder for results.csv, results.json and results.parquet"
    )
    add_force_option(add_option)
    add_option("--workers", default=1, help=WORKERS)
    add_option("--scheduler", help="address of a Dask scheduler, such as tcp://10.0.0.5:8786")
    add_option(
        "--dry-run",
        action="store_true",
        help="run nothing; say how many cells there are, how long and how large",
    )
