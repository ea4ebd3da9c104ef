"""`python -m fedlab_nb.study.papers [--workers 2] [--only TABLE,...] [--anew METHOD,...] [--seeds 10]`."""

import argparse
import sys
import time

from ...errors import choose
from ...methods import METHODS
from ..stored.table import FILE as TABLE
from .published import TABLES
from .runs import SEEDS
from .stored import FILE, make


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fedlab_nb.study.papers", description=make.__doc__)
    parser.add_argument("--out", default=FILE, help="the file (default: the one in the package)")
    parser.add_argument("--only", default="", metavar="TABLE,...", help="these tables, such as fens:1")
    parser.add_argument("--anew", default="", metavar="METHOD,...", help="compute these methods in any case")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--known", default=TABLE, help="a stored table of results, whose rows are taken over")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    tables, anew = (
        [choose(kind, part.strip(), allowed) for part in given.split(",") if part.strip()]
        for kind, given, allowed in (("table", options.only, TABLES), ("method", options.anew, METHODS))
    )
    start = time.perf_counter()

    def watch(event) -> None:
        if event.outcome is not None:
            o, s = event.outcome, event.outcome.settings
            where = f"alpha={s.alpha:<5g} {s.partition} M={s.clients} seed={event.seed}"
            took = f"{o.accuracy:6.1%} {o.seconds_method:6.2f} s"
            print(f"{time.perf_counter() - start:6.0f} s  {event.method:12s} {where} {took}", flush=True)

    failed = make(options.out, seeds=range(options.seeds), tables=tables or TABLES, anew=anew, known=options.known,
                  workers=options.workers, watch=watch)  # fmt: skip
    for name, reason in failed.items():
        print(f"{name}: {reason}", file=sys.stderr)
    print(f"{time.perf_counter() - start:.0f} s in all", flush=True)
    return 0


if __name__ == "__main__":  # workers import this file, too
    sys.exit(main())
