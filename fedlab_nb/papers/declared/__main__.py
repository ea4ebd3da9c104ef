"""Declared studies: run what is missing or was run with other settings, and put the figures into the texts.

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
from collections.abc import Sequence

from ...errors import UsageError, check_allowed_name
from ...files import write_file
from ...methods import METHODS
from ...studies.stored_figures import parse_seed_range
from ...value_types import ExitCode
from ..points import COMMAND, DeclaredStudy, compute_point_rows
from .figures import (
    ROOT,
    FigureStudy,
    describe_wrong_texts_and_claims,
    load_all_declared_studies,
    make_corrected_texts_by_changed_file,
)


def print_judged_claims(
    studies: list[FigureStudy], other_seed_range_or_none: str | None, worker_count: int
) -> ExitCode:
    """Print each claim with its numbers. Returns the exit code: 1 if an order is the reverse of what the
    texts say.

    other_seed_range_or_none: other seeds than those of the stored results, such as "100-109"; nothing is written then
    """
    is_wrong = False
    for study in studies:
        if other_seed_range_or_none:
            points = list(study.list_points((), parse_seed_range(other_seed_range_or_none)))
            computed = compute_point_rows(points, study.decimals, workers=worker_count)
            rows = [row for _, row in computed]
        else:
            rows = study.load_stored_rows()
        for claim, rule in study.claims.items():
            judgement = study.judge_claim(claim, rows)
            if judgement.holds is False:
                is_wrong = True
            print(f"{study.name}.{claim:28} {rule:34} {judgement.numbers}", flush=True)
    return int(is_wrong)


def make_argument_parser() -> argparse.ArgumentParser:
    """Make the parser of the command's options."""
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
    return parser


def select_studies_by_name_prefix(name_prefixes: Sequence[str]) -> list[DeclaredStudy]:
    """Choose the studies whose names begin with one of `name_prefixes`; without prefixes, all studies.

    UsageError for a prefix with which no study begins.
    """
    studies = load_all_declared_studies()
    if not name_prefixes:
        return list(studies.values())
    for prefix in name_prefixes:
        if not any(name.startswith(prefix) for name in studies):
            check_allowed_name("study", prefix, studies)
    return [study for study in studies.values() if study.name.startswith(tuple(name_prefixes))]


def parse_method_names(comma_separated_names: str) -> list[str]:
    """Parse "fens,afl"; UsageError for a name of no method."""
    names = [name.strip() for name in comma_separated_names.split(",")]
    return [check_allowed_name("method", name, METHODS) for name in names if name]


def main() -> ExitCode:
    """Run the command; returns its exit code."""
    parser = make_argument_parser()
    options = parser.parse_args()
    try:
        studies = select_studies_by_name_prefix(options.names)
        methods = parse_method_names(options.anew)
    except UsageError as error:
        parser.error(str(error))
    figure_studies = {study.name: study for study in studies if isinstance(study, FigureStudy)}
    if options.claims:
        return print_judged_claims(list(figure_studies.values()), options.seeds, options.workers)
    if not options.texts and not options.check:
        for study in studies:
            compute_and_store_missing_rows_of_study(study, methods, options.later, options.workers)
    if not options.check:
        for path, text in make_corrected_texts_by_changed_file(ROOT, figure_studies).items():
            write_file(path, text, force=True)
            print(f"changed {path}")
    complaints = []
    for study in studies:
        complaints += study.describe_methods_with_missing_or_stale_rows()
    complaints += describe_wrong_texts_and_claims(ROOT, figure_studies)
    print("\n".join(complaints) or "All stored results hold, and the texts agree with them.")
    return int(bool(complaints))


def compute_and_store_missing_rows_of_study(
    study: DeclaredStudy,
    recomputed_methods: Sequence[str],
    includes_later_runs: bool,
    worker_count: int,
) -> None:
    """Compute the missing rows of a study, and print which runs failed.

    recomputed_methods: methods that are computed in any case
    includes_later_runs: also the runs that are made only on demand
    """
    if includes_later_runs and isinstance(study, FigureStudy):
        study = study.make_study_with_later_runs()
    failures = study.compute_and_store_missing_rows(
        recomputed_methods=recomputed_methods, workers=worker_count, progress=True
    )
    for point, reason in failures.items():
        print(f"{study.name} {point}: {reason}", file=sys.stderr)
    print(f"{study.name}: complete", flush=True)


if __name__ == "__main__":  # false in the worker processes, which import this file
    sys.exit(main())
