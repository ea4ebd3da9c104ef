"""Every figure that a text quotes: made by a declared study, and put into the text by this program.

    python notebooks/quoted.py                          # run the studies (finished runs are remembered), mend the texts
    python notebooks/quoted.py 05 06                    # only these studies
    python notebooks/quoted.py --texts                  # run nothing: put the stored results into the texts
    python notebooks/quoted.py --check                  # change nothing; exit 1 if a text, a claim or a result is stale
    python notebooks/quoted.py --claims --seeds 100-109 # do the claims hold on other seeds? Nothing is written

Studies are declared in notebooks/studies/NAME.toml, their results stand beside them in NAME.json. A text names a figure
in a comment that GitHub and Jupyter do not show, and a claim by a comment at the end of the sentence that makes it:

    The server model has <!--n 05.server-->45 ± 9<!--/n--> %. Other weights are clearly better. <!--c 05.reweighting-->

`notebooks/studies/README.md` says how to write both.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from studies import declared, texts

FOLDER = Path(__file__).parent


def chosen(names: list[str]) -> dict[str, declared.Declared]:
    """The declared studies, all or those whose name begins with one of `names`."""
    known = declared.load_all(FOLDER / "studies")
    lacking = [name for name in names if not any(key.startswith(name) for key in known)]
    if lacking:
        raise SystemExit(f"There is no study {', '.join(lacking)}; there are {', '.join(known)}.")
    return {key: study for key, study in known.items() if not names or key.startswith(tuple(names))}


def seeds_of(words: str) -> list[int]:
    first, _, last = words.partition("-")
    return list(range(int(first), int(last or first) + 1))


def judge(studies: dict[str, declared.Declared], seeds: list[int] | None, workers: int) -> int:
    """Print each claim with its numbers; returns how many orderings are another one than the texts say."""
    wrong = 0
    for study in studies.values():
        results = study.results() if seeds is None else study.run(seeds, workers=workers, only=study.needed())
        for name in study.claims:
            verdict = study.judge(name, results)
            wrong += verdict.holds is False
            print(f"{study.name}.{name:28} {study.claims[name]:34} {verdict.words}", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="studies, such as 05; default: all")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--texts", action="store_true")
    parser.add_argument("--claims", action="store_true")
    parser.add_argument("--seeds", help="of --claims, such as 100-109; default: the stored results")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    asked = parser.parse_args()
    studies = chosen(asked.names)
    if asked.claims:
        return int(judge(studies, seeds_of(asked.seeds) if asked.seeds else None, asked.workers) > 0)
    if not asked.check:
        if not asked.texts:
            for study in studies.values():
                study.make(workers=asked.workers)
                print(f"made {study.name}.json", flush=True)
        for path in texts.rewrite(FOLDER.parent, studies):
            print(f"changed {path}")
    complaints = [line for study in studies.values() for line in study.stale()]
    complaints += texts.complaints(FOLDER.parent, studies)
    print("\n".join(complaints) or "Texts and studies agree.")
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
