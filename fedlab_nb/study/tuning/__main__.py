"""`python -m fedlab_nb.study.tuning [METHOD...] [--dataset NAME] [--out FILE]`: make the tuning study's table, or
complete it."""

import argparse
import functools
import sys

from ...errors import choose
from ...methods import METHODS
from .make import make
from .tries import PARTS, SETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fedlab_nb.study.tuning", description=__doc__)
    parser.add_argument("methods", nargs="*", help="compute these methods anew (default: what the table lacks)")
    parser.add_argument("--dataset", default=SETS[0], choices=SETS, help="on which data set")
    parser.add_argument("--out", default=None, help="the table (default: the one in the package)")
    parser.add_argument("--part", action="append", default=[], choices=PARTS, help="only this part of the study")
    parser.add_argument("--workers", type=int, default=1, help="processes (needs fedlab-nb[cluster])")
    options = parser.parse_args()
    methods = [choose("method", name, METHODS) for name in options.methods]
    watch = functools.partial(print, flush=True)
    make(options.out, methods, dataset=options.dataset, names=options.part, workers=options.workers, watch=watch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
