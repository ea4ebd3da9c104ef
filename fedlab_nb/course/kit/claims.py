"""Claims on a learner's own record: a gap over seeds and its kind, and the verdict on "here it is clear, there not".

gaps = [Gap(f"α = {s.alpha:g}", v["ensemble"], v["fedavg"]) for (s, _), v in alike(outcomes).items()]
return two_kinds(gaps, **words)     # the words stand in the lesson's TOML file, in the exercise's table `claim`

Beside them what lessons take from their declared figures: values by seed, means, bars.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from statistics import fmean
from typing import Any

from ...declared import ROOT, declared
from ...plots import Picture
from ...plots.accuracy import bars
from ...plots.series import Series
from ...plots.words import number, plural
from ...studies import Outcome
from ...studies.declared.engine import load
from ...studies.lesson_runs import alike
from ...studies.statistics import Band, band
from .problem import Verdict

ENOUGH = 3  # seeds that both sides of a comparison need
CLEAR, NOISE, BELOW, SHORT = "clear", "noise", "below", "short"


@dataclass(frozen=True)
class Gap:
    """a − b, accuracies `{seed: 0–1}` of the same federations, under the setting `name`.

    tested: where a and b are validation accuracies, by which settings are chosen, the same gap on the test images
    enough: seeds that both sides need before anything is said
    least: what the whole band must lie above to be CLEAR, as a share; a smaller gain is NOISE
    """

    name: str
    a: Mapping[int, float]
    b: Mapping[int, float]
    tested: "Gap | None" = None
    enough: int = ENOUGH
    least: float = 0.0

    @property
    def shares(self) -> list[float]:
        """a − b for each seed that both have."""
        return [self.a[seed] - self.b[seed] for seed in sorted(set(self.a) & set(self.b))]

    @property
    def band(self) -> Band:
        """Mean of the differences with its 95 % band of Student's t."""
        return band(self.shares)

    @property
    def kind(self) -> str:
        """CLEAR (above `least`), NOISE, BELOW (clearly below zero) or SHORT (fewer seeds than `enough`)."""
        if len(self.shares) < self.enough:
            return SHORT
        of = self.band
        if of.is_noise:
            return NOISE
        if of.mean < 0:
            return BELOW
        if of.low > self.least:
            return CLEAR
        return NOISE

    def words(self, both: str = "both methods") -> str:
        """'α = 0.1: +5, +3, +4 points, mean +4 ± 1', or how many seeds there are with `both`."""
        if self.kind == SHORT:
            return f"{self.name} has {plural(len(self.shares), 'seed')} with {both}"
        each = ", ".join(number(band([share]), 0, "+") for share in self.shares)
        return f"{self.name}: {each} points, mean {self.mean}"

    @property
    def mean(self) -> str:
        """In points: '+4 ± 1'."""
        return number(self.band, 0, "+")


def still(
    missing: Iterable[str], seen: Iterable[str], nothing: str, enough: int = ENOUGH
) -> Verdict:
    """What is still to be found, beside what the record shows so far."""
    wanted, record = " and ".join(missing), "; ".join(seen) or nothing
    return Verdict(
        "wrong", f"Still to find, with {enough} seeds or more: {wanted}. Your record: {record}."
    )


def two_kinds(
    gaps: Iterable[Gap], *, clear: str, other: str, right: str, nothing: str, both: str = "both methods",
    others: Collection[str] = (NOISE,),
) -> Verdict:  # fmt: skip
    """The claim that one gap is clear and another one is not (its kind is among `others`).

    clear, other: what is missing, in words;   right: the verdict, with the first `{clear}` and `{other}` gap in it
    nothing: what to say of a record without any gap;   both: which two things a gap compares
    """
    gaps = list(gaps)
    kinds = {CLEAR: (CLEAR,), "other": others, SHORT: (SHORT,)}
    words = {name: [g.words(both) for g in gaps if g.kind in of] for name, of in kinds.items()}
    if words[CLEAR] and words["other"]:
        text = right.format(clear=words[CLEAR][0], other=words["other"][0])
        chosen = [next(g for g in gaps if g.kind in kinds) for kinds in ((CLEAR,), others)]
        tests = [f"{g.name} {g.tested.mean} points" for g in chosen if g.tested is not None]
        return Verdict(
            "right", text + (f" On the test images: {'; '.join(tests)}." if tests else "")
        )
    missing = [text for kind, text in ((CLEAR, clear), ("other", other)) if not words[kind]]
    enough = max((gap.enough for gap in gaps), default=ENOUGH)
    return still(missing, [text for texts in words.values() for text in texts], nothing, enough)


# ---------------------------------------------------------------------------------- runs
def but_for(method: str, *names: str) -> Callable[[Outcome], tuple[Any, Any] | None]:
    """The `place` of runs of a method that differ in these options alone: (all else that was set, their values)."""

    def place(outcome: Outcome) -> tuple[Any, Any] | None:
        if outcome.method != method:
            return None
        others = ((name, value) for name, value in outcome.options.items() if name not in names)
        return (outcome.conditions, *others), itemgetter(*names)(outcome.options)

    return place


def chosen_gaps(
    outcomes: Sequence[Outcome], place: Callable[[Outcome], Any] | None, a: str, b: str, name: Callable,
    enough: int = ENOUGH,
) -> list[Gap]:  # fmt: skip
    """Variant a − b on validation images, a gap for each group of `alike`, with that on the test images as `tested`.

    name: gives what a gap is called, from what its group shares
    """
    test, validation = (alike(outcomes, place, validation=judged) for judged in (False, True))
    tests = {at: Gap(name(at), of[a], of[b]) for at, of in test.items()}
    return [Gap(name(at), of[a], of[b], tests[at], enough) for at, of in validation.items()]


def quoted(module: str, figure: str) -> dict[int, float]:
    """The stored values by seed of a figure that the lesson declares in whose folder the module `__name__` stands."""
    study = load(ROOT.joinpath(*module.split(".")[1:-1], "figures.toml"))
    return study.value(figure, study.rows())


def figures_of(module: str, *bars: str) -> tuple[Callable[..., Any], ...]:
    """What the lesson of the module `__name__` takes from its declared figures: the mean of one, by name; and a picture
    of each of these `bars`."""
    return partial(stored_mean, module), *(partial(stored_bars, module, name) for name in bars)


def stored_mean(module: str, figure: str) -> int:
    """The mean of `quoted` in whole percent."""
    return round(100 * fmean(quoted(module, figure).values()))


def stored_bars(module: str, name: str) -> Picture:
    """Bars of a lesson's declared figures, from their stored results: its figures.toml has them as `[bars.NAME]`, whose
    `chance` is what guessing gets right, a tenth where it is not given."""
    rows = dict(declared("/".join([*module.split(".")[1:-1], "figures.toml"]))["bars"][name])
    setting, chance = rows.pop("setting"), rows.pop("chance", 0.1)
    made = [
        Series(setting=setting, accuracies=quoted(module, of), **row) for of, row in rows.items()
    ]
    return bars(made, chance=chance)
