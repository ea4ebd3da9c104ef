"""Lesson 04, Fed-ET: its three exercises.

Their texts are in `exercises.toml`; here is what judges the record.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...teach.claims import CLEAR, SHORT, Gap, still
from ...teach.exercises import exercises
from ...teach.problem import Verdict
from ...teach.runs import MANY, alike
from .numbers import runs


def public_data_decide(outcomes: Sequence[Any]) -> Verdict:
    """The claim of exercise 3: with other public data, all else equal, the student is clearly worse."""
    clear, others = [], []
    for by_source in alike((o for o in outcomes if o.method == "fedet"), _setting_and_source).values():
        own = by_source.pop("held-out", {})
        for source, accuracies in by_source.items():
            gap = Gap(f"held-out − {source}", own, accuracies)
            if gap.kind == SHORT:
                others += [replace(gap, name=source).words("both")] * bool(gap.points)
            else:
                (clear if gap.kind == CLEAR else others).append(gap.words())
    if clear:
        return Verdict("right", f"Supported by your runs: {clear[0]}. The clients were the same; only P has changed.")
    return still(
        ["a source that is clearly worse"], others, "no setting has Fed-ET with held-out and with another source"
    )


def _setting_and_source(outcome: Any) -> tuple[Any, str]:
    """All that was set but the public data and the seed; and where the public data come from."""
    options = {k: v for k, v in outcome.options.items() if k not in ("public", "public_size")}
    return (outcome.conditions, *sorted(options.items())), outcome.options["public"]


def solution_runs() -> list[Any]:
    """Runs that support the claim of exercise 3."""
    return [*runs(seeds=MANY), *runs(seeds=MANY, **{"fedet.public": "glyphs"})]


q1, q2, q3 = exercises(__name__, q3=(public_data_decide, solution_runs))
