"""Declared studies: make what is missing or has other settings by now, and put the figures into the texts.

python -m fedlab_nb.papers.declared                         # run what is missing, mend the texts
python -m fedlab_nb.papers.declared 05 tuning               # only studies whose names begin so
python -m fedlab_nb.papers.declared stored --anew fens      # compute a method again in any case
python -m fedlab_nb.papers.declared which --later           # also what takes long, and is made on demand alone
python -m fedlab_nb.papers.declared --texts                 # run nothing: put the stored results into the texts
python -m fedlab_nb.papers.declared --check                 # change nothing; exit 1 if anything does not hold
python -m fedlab_nb.papers.declared --claims --seeds 100-109  # do the claims hold on other seeds? Nothing is written
"""

import argparse
import sys

from ...errors import UsageError, choose
from ...files import write_file
from ...methods import METHODS
from ...studies.stored_figures import parse_seeds
from ..points import COMMAND, compute_rows
from .figures import ROOT, Figures, changes, complaints, load_all


def judge(studies: list[Figures], seeds: str | None, workers: int) -> int:
    """Print each claim with its numbers, on other `seeds` if they are given (nothing is written then); exit code 1 if
    an ordering is another one than the texts say."""
    wrong = False
    for study in studies:
        rows = study.rows()
        if seeds:
            rows = [
                row
                for _, row in compute_rows(
                    [*study.points((), parse_seeds(seeds))], study.decimals, workers=workers
                )
            ]
        for name in study.claims:
            holds, words = study.judge(name, rows)
            wrong |= holds is False
            print(f"{study.name}.{name:28} {study.claims[name]:34} {words}", flush=True)
    return int(wrong)


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__, formatter_class=form)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="studies, such as 05; default: all"
    )
    parser.add_argument(
        "--check", action="store_true", help="say what does not hold, change nothing"
    )
    parser.add_argument(
        "--anew", default="", metavar="METHOD,...", help="compute these methods in any case"
    )
    parser.add_argument("--later", action="store_true", help="also the runs that take long")
    parser.add_argument("--texts", action="store_true", help="run nothing")
    parser.add_argument("--claims", action="store_true", help="judge the claims of the texts")
    parser.add_argument("--seeds", help="of --claims, such as 100-109; default: the stored results")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    asked, known = parser.parse_args(), load_all()
    try:
        for name in asked.names:
            choose("study", name, [name] if any(key.startswith(name) for key in known) else known)
        anew = [
            choose("method", name.strip(), METHODS)
            for name in asked.anew.split(",")
            if name.strip()
        ]
    except UsageError as error:
        parser.error(str(error))
    studies = [
        study
        for key, study in known.items()
        if not asked.names or key.startswith(tuple(asked.names))
    ]
    quoting = {study.name: study for study in studies if isinstance(study, Figures)}
    if asked.claims:
        return judge([*quoting.values()], asked.seeds, asked.workers)
    for study in () if asked.texts or asked.check else studies:
        if asked.later and isinstance(study, Figures):
            study = study.with_later()
        for point, reason in study.make(anew=anew, workers=asked.workers, progress=True).items():
            print(f"{study.name} {point}: {reason}", file=sys.stderr)
        print(f"{study.name}: complete", flush=True)
    for path, text in () if asked.check else changes(ROOT, quoting).items():
        write_file(path, text, force=True)
        print(f"changed {path}")
    wrong = [line for study in studies for line in study.stale()] + complaints(ROOT, quoting)
    print("\n".join(wrong) or "All stored results hold, and the texts agree with them.")
    return int(bool(wrong))


if __name__ == "__main__":  # not in the processes that it starts
    sys.exit(main())
