"""What the command line takes: the commands, and the options of each."""

import argparse
from collections.abc import Callable
from typing import Any

from . import __version__

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


class _Parser(argparse.ArgumentParser):
    """argparse, except that a wrong option is one sentence on standard error (exit code 2 as ever)."""

    def error(self, message: str) -> Any:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help.\n")


def parser() -> argparse.ArgumentParser:
    """The command line: what each command takes."""
    about = "One-shot federated learning, learnt by doing. Without a command it opens the course."
    main = _Parser(prog="fedlab-nb", description=about)
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
    commands = main.add_subparsers(dest="command", parser_class=_Parser)

    def command(name: str, help: str) -> Callable[..., Any]:
        """Add a command; returns what adds its options."""
        return commands.add_parser(name, help=help).add_argument

    add = command("run", "run methods on one federation")
    add("methods", nargs="+", metavar="METHOD", help="method names (fedlab-nb list), or all")
    add(
        "--alpha",
        help="Dirichlet concentration, 0.001-1000: smaller is more skewed; default: the preset's, 0.1",
    )
    add("--clients", help="number of clients M; default: the preset's, 10")
    add(
        "--backend",
        default="auto",
        help="auto, loop or stacked: how clients are trained (for measuring)",
    )
    add_settings(add)
    add("--no-cache", action="store_true", help="do not read or write the store (for measuring)")
    add("--json", action="store_true", help="print one JSON object for each method, one on a line")
    add(
        "--save",
        metavar="PATH",
        help="write the model of one run to a file that ends in .safetensors or .onnx",
    )
    add_force(add)

    add = command("which", "which method to use: the stored study, or the same on your own data")
    add("dataset", nargs="?", help="a file or a name; default: show the stored study")
    for question, help in WHICH.items():
        add(f"--{question}", choices=["yes", "no"], help=help)
    add("--seconds", type=float, default=120, help="no run is begun that would end later")
    add("--seeds", type=int, default=5, help="how many seeds of each candidate")
    add("--picture", metavar="FILE", help="also write the picture to this file (.svg or .png)")
    add_force(add)
    add_pairs(add, "a setting of the runs, such as alpha=0.1 or public=0.1")

    add = command("look", "show what a file was taken for: columns, classes, clients, first rows")
    add("dataset", help="a file, with options behind a ? (mine.csv?label=NAME), or a name (list)")

    add = command("predict", "what a saved model says of new rows, with a probability a class")
    add("model", help="a file that run --save wrote (.safetensors)")
    add(
        "rows",
        nargs="+",
        metavar="FILE",
        help="a table with the columns of the training rows, in any order; or pictures, or a folder of some",
    )
    add("--out", help="write the answers to this file, as CSV; default: print them")
    add("--device", default="cpu", help="auto, cpu or cuda")
    add_force(add)

    add = command(
        "plan",
        "show what a preset means: data, clients, each method's settings, the source of every value",
    )
    add(
        "preset",
        nargs="?",
        default="classroom",
        help="classroom, or a paper's set-up (fedlab-nb list)",
    )
    add(
        "methods",
        nargs="*",
        metavar="METHOD",
        help="method names; default: those of the set-up's paper",
    )
    for name in ("dataset", "alpha", "clients", "seed", "partition", "model"):
        add(f"--{name}", help=f"another {name} than the set-up's")
    add("--device", default="cpu", help="cpu or cuda; the values are the same on both")
    add_pairs(add, "as for run")

    add = command(
        "sweep", "run a grid of experiments; after an interruption it goes on where it stopped"
    )
    add("--methods", required=True, help="method names joined by commas")
    add("--alphas", help="values joined by commas; default: the preset's, 0.1")
    add("--clients", help="values joined by commas; default: the preset's, 10")
    add_settings(add)
    add_grid(add)

    add = command(
        "study",
        "run any grid that a TOML file describes; after an interruption it goes on where it stopped",
    )
    add(
        "file",
        help="a TOML file with methods, seeds and settings; a list is an axis (see the README)",
    )
    add_grid(add)

    add = command("reproduce", "run a table of a paper, and show its published numbers beside ours")
    add("table", help="a set-up and the number of a table, such as fens:1 or coboosting:7")
    add(
        "--dataset",
        default="",
        help="one of the table's data sets, or another one for all of them, such as digits",
    )
    add(
        "--scale",
        default="classroom",
        help="classroom, paper, or a share of the paper's samples, such as 0.1",
    )
    add(
        "--seeds",
        help="how many seeds; default: 10 for the classroom, else as many as in the paper",
    )
    add("--workers", default=1, help=WORKERS)
    add("--out", help="also write results.csv, results.json and table.txt into this folder")
    add_force(add)
    add(
        "--stored",
        action="store_true",
        help="run nothing; show the results that came with the package",
    )
    add(
        "--list",
        action="store_true",
        help="also print every ordering, and what each claim compares",
    )
    add_pairs(
        add, "a setting or hyper-parameter of all runs: model=cnn, epochs=20, dense.epochs=10, ..."
    )

    add = command(
        "store", "the stored results: list them, say their size, delete some, or check them"
    )
    add("task", choices=["list", "size", "prune", "verify"])
    add("--days", help="prune: delete what was not used for this number of days")
    add(
        "--version",
        dest="other",
        action="store_true",
        help="prune: delete what another version has made",
    )
    add(
        "--size",
        help="prune: delete the oldest results until the rest is no larger than this, such as 500MB",
    )

    add = command(
        "voila", "show a panel as a page of its own, for a classroom screen (needs Voilà)"
    )
    add(
        "panel",
        nargs="?",
        default="playground",
        help="playground (default), compare, race, or a method: its lab",
    )
    add("--theme", default="light", help="light or dark")
    add_pairs(add, "a starting value of the panel: alpha=0.05, seeds=3, methods=fens,fedlpa, ...")
    add("--no-browser", dest="page_alone", action="store_true", help="only print the address")

    add = command(
        "page",
        "write one file that trains in any browser, with the stored results; no Python, no network",
    )
    add("--out", default="playground.html", help="the file to write")
    add_force(add)

    add = command(
        "class",
        "hold a class in which every phone is a client: it draws digits and sends one message",
    )
    add("--lan", nargs="?", const="", metavar="ADDRESS", help="let phones in this network join")
    add("--port", help="default: 8123, or the next one that is free")
    add(
        "--alpha",
        default=0.1,
        help="how alike the phones' digits are: two or three digits each; "
        "from 1 on more, below 0.02 often a single one",
    )
    add("--drawings", default=8, help="how many digits each phone draws (8)")
    add("--seed", default=0)
    add(
        "--keep",
        nargs="?",
        const="",
        metavar="FILE",
        help="keep messages in a file, to go on after a restart; "
        "without it Ctrl-C asks before it forgets them",
    )
    add(
        "--rehearse",
        default=0,
        metavar="COUNT",
        help="so many simulated students come, send and stay",
    )
    add(
        "--page",
        metavar="FILE",
        help="only write the students' page as a file, for messages by hand",
    )
    add_force(add)
    add("--no-browser", dest="page_alone", action="store_true", help="only print the addresses")

    add = command(
        "slides", "write the pictures of one lesson to files for slides, with their alt texts"
    )
    add("lesson", help="a lesson's number or name, such as 03 or fens")
    add("--out", help="the folder to write to; default: slides_ and the lesson's name")
    add_force(add)
    add(
        "--format",
        default="png",
        help="png (as stored in the lesson) or svg (runs the lesson's cells, up to minutes)",
    )

    add = command(
        "leaderboard",
        "one table of the capstone reports of a class; ranks within the noise are shared",
    )
    add("paths", nargs="+", metavar="PATH", help="report files (.jsonl), or folders with some")
    add("--table", default="text", help=TABLE)

    add = command("list", "list the methods, data sets, models, partitions and presets")
    add("--json", action="store_true")
    command("doctor", "say which device and versions are here, and what works")
    return main


def add_settings(add: Callable[..., Any]) -> None:
    """The options of a run that a grid has, too."""
    add(
        "--dataset",
        help="a name (fedlab-nb list) or the path of an .npz or .csv file; default: the preset's, digits",
    )
    add("--seed", default=0)
    add("--seeds", default=1, help="how many seeds, counted up from --seed")
    for name, about in SETTINGS.items():
        add(f"--{name}", help=about)
    add(
        "--model",
        default="auto",
        help="name or name:width; joined by commas for clients with different networks",
    )
    add(
        "--preset",
        default="classroom",
        help="classroom (seconds on a CPU), or a paper's set-up: fedlab-nb list",
    )
    add("--device", default="auto", help="auto, cpu or cuda")
    add_pairs(add, "a hyper-parameter: epochs=20, rounds=100, fens.aggregator=nn, holdout=0.2, ...")


def add_pairs(add: Callable[..., Any], about: str) -> None:
    add("--set", dest="settings", action="append", default=[], metavar="FIELD=VALUE", help=about)


def add_force(add: Callable[..., Any]) -> None:
    add(
        "--force",
        action="store_true",
        help="replace files that are there already and that fedlab-nb did not write",
    )


def add_grid(add: Callable[..., Any]) -> None:
    """The options of every grid."""
    add("--table", default="text", help=TABLE)
    add(
        "--plot",
        help="also draw a picture: the name of an axis, 'bytes', 'differences', or 'alpha x clients'",
    )
    add("--out", default="results", help="folder for results.csv, results.json and results.parquet")
    add_force(add)
    add("--workers", default=1, help=WORKERS)
    add("--scheduler", help="address of a Dask scheduler, such as tcp://10.0.0.5:8786")
    add(
        "--dry-run",
        action="store_true",
        help="run nothing; say how many cells there are, how long and how large",
    )
