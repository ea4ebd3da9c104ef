"""`python -m fedlab_nb.study.stored [DATASET] [--out FILE] [--only METHOD,...] [--workers N]`: make or complete a
table."""

import argparse
import sys
import time

from ...errors import choose
from ...methods import METHODS
from .make import make
from .table import DIGITS, GRIDS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fedlab_nb.study.stored", description=__doc__)
    parser.add_argument("dataset", nargs="?", default=DIGITS, choices=GRIDS, help="whose table (default: the digits')")
    parser.add_argument("--out", default=None, help="the table (default: the one in the package)")
    parser.add_argument("--only", default="", metavar="METHOD,...", help="compute these methods anew")
    parser.add_argument("--workers", type=int, default=1, help="processes at work (default: 1)")
    options = parser.parse_args()
    only = [choose("method", name.strip(), METHODS) for name in options.only.split(",") if name.strip()]
    start = time.perf_counter()

    def watch(event) -> None:
        if event.outcome is not None:
            o = event.outcome
            print(
                f"{time.perf_counter() - start:7.0f} s  M={o.settings.clients:2d} alpha={o.settings.alpha:<5g} "
                f"seed={event.seed} {event.method:14s} {o.accuracy:6.1%}  {o.seconds_method:6.2f} s",
                flush=True,
            )
        if event.error is not None:
            print(f"{event.method} (seed {event.seed}) failed: {event.error}", file=sys.stderr, flush=True)

    how = {"anew": bool(only), "watch": watch, "workers": options.workers}
    return int(make(options.out, only or None, dataset=options.dataset, **how) is not None)


if __name__ == "__main__":  # not in the processes that it starts
    sys.exit(main())
