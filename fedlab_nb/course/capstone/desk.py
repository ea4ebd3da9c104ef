"""A capstone as a learner works on it: try methods on validation images, choose, argue, submit.

    case = lesson.case("HARBOUR", name="Ada")
    case.seen()                              # what the server sees
    case.trial("fens", rounds=20)            # validation accuracy and bytes of a client
    case.tries()                             # all of them in one picture
    case.form()                              # the same with buttons
    report = case.submit(2, "Because …")     # opens the test images
    report.save("reports")

Until `submit` no test image is on the table: tries run on a data set without them (`hidden.two_sets`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import __version__
from ...errors import UsageError, choose, demand
from ...methods import METHODS
from ...plots import Picture
from ...plots.capstone import seen, tried
from ...plots.series import Series
from ...plots.words import data_size, listed, number
from ...study import compare
from ...study.settings import RECIPE_FIELDS
from ..kit.view import Card, worked
from .hidden import Hidden, drawn, word
from .knobs import FREE
from .record import Record, Try
from .report import Report

TRIAL_SEEDS = (0, 3)  # the first seed, and how many
TEST_SEEDS = (100, 10)  # others: no network of a try is among those that are tested
ENOUGH = 20  # letters of an argument


class Case:
    """A hidden federation, and what one person has done with it. UsageError for an empty code word."""

    def __init__(self, code: str, name: str = "") -> None:
        self.code, self.name = word(code), " ".join(str(name).split())
        self._hidden: Hidden = drawn(self.code)
        self.record = Record.of(self.code, self.name)

    def __repr__(self) -> str:
        done = f"{len(self.record.tries)} tries, {len(self.record.submissions)} submissions"
        return f"Case({self.code!r}, {self._hidden.clients} clients, budget {self.budget} bytes, {done})"

    @property
    def budget(self) -> int:
        """Bytes that a client may receive and send, together."""
        return self._hidden.budget

    def facts(self) -> Card:
        """What the server sees, in words."""
        return worked(*self._hidden.facts())

    def seen(self) -> Picture:
        """What the server sees, as a picture: samples of each client, and its classes with noise."""
        return seen(self._hidden.sizes, self._hidden.noisy, code=self.code)

    # ------------------------------------------------------------------------------------------------------------ tries
    def trial(self, method: str, **knobs: Any) -> Card:
        """Run a method on three seeds, and say its validation accuracy and its bytes; it becomes a try of the list.

        knobs: fields of the method, of local training (epochs, lr, …), or of FREE. UsageError for anything else, and
        for what the method cannot do here.
        """
        asked = self._checked(method, knobs)
        done = next((t for t in self.record.tries if (t.method, t.knobs) == (method, asked)), None)
        again = "" if done is None else " You had tried it before."
        if done is None:
            shares, sent, leaks = self._runs(self._hidden.trial, method, asked, TRIAL_SEEDS)
            done = Try(len(self.record.tries) + 1, method, asked, shares, sent, leaks)
            self.record.add(done)
        first = f"Try {done.number}: {done.title} ({done.settings}).{again}"
        return worked(
            first, f"Validation accuracy {number(done.band)} % ({len(done.validation)} seeds).", self._bill(done)
        )

    def tries(self) -> Picture:
        """All tries: validation accuracy against the bytes of a client, with the budget."""
        rows = [
            Series(t.title, detail=f"try {t.number}", accuracies=t.validation, up=t.bytes, method=t.method)
            for t in self.record.tries
        ]
        return tried(rows, self.budget, code=self.code)

    def _checked(self, method: str, knobs: Mapping[str, Any]) -> dict[str, str]:
        """The settings as text, in the order of their names."""
        choose("method", method, METHODS)
        demand(
            method != "centralized",
            "Centralized training needs the clients' samples in one place, which this federation does not allow; "
            "choose another method.",
        )
        known = {*(k.name for k in METHODS[method].fields()), *RECIPE_FIELDS, *FREE}
        for name in knobs:
            plain = name.removeprefix(f"{method}.")
            demand(
                plain in known,
                f"{name!r} cannot be set for {method} in a capstone, because the federation is given; what can be "
                f"set: {', '.join(sorted(known))}.",
            )
        return {name: str(knobs[name]) for name in sorted(knobs)}

    def _runs(
        self, dataset: Any, method: str, knobs: Mapping[str, str], seeds: tuple[int, int]
    ) -> tuple[dict[int, float], int, str]:
        """{seed: accuracy on that data set's images}, the most bytes of a client, and what leaks."""
        first, count = seeds
        outcomes = compare([method], dataset=dataset, seed=first, seeds=count, **knobs)
        sent = max(sum(both) for o in outcomes for both in o.ledger.by_client().values())
        return {o.settings.seed: o.accuracy for o in outcomes}, sent, outcomes[0].plan.method.leaks

    def _bill(self, of: Try) -> str:
        share = f"{100 * of.bytes / self.budget:.0f} % of the budget"
        over = "" if of.bytes <= self.budget else ": too much, it cannot be submitted"
        return f"Bytes of a client, up and down: {data_size(of.bytes)}, {share}{over}."

    # ------------------------------------------------------------------------------------------------------- submission
    def submit(self, choice: int | None, argument: str, name: str = "") -> Report:
        """Open the test images for try number `choice`: the report, which also says whether it is the first one.

        argument: why, in a sentence or more;   name: who, if `case` was not told. UsageError, with nothing opened, for
        a number that is no try, a try over the budget, or no argument.
        """
        tries, text = self.record.tries, " ".join(str(argument).split())
        demand(tries, "There is no try yet, so nothing can be submitted; try a method first.")
        within = [t.number for t in tries if t.bytes <= self.budget]
        many = f"one of the tries {listed([str(n) for n in within])}"
        hint = many if len(within) > 1 else f"try {within[0]}" if within else "a method that sends less"
        if choice is None:
            raise UsageError(f"No try is chosen yet; choose one from 1 to {len(tries)}.")
        if not isinstance(choice, int) or not 1 <= choice <= len(tries):
            raise UsageError(f"There is no try {choice!r}; choose a number from 1 to {len(tries)}.")
        chosen = tries[choice - 1]
        if not (chosen.bytes <= self.budget):
            raise UsageError(f"{chosen.title} costs a client {chosen.bytes} bytes, {chosen.bytes / self.budget:.1f} "
            f"times the budget of {self.budget} bytes, so it cannot be submitted; choose {hint}.")  # fmt: skip
        demand(
            len(text) >= ENOUGH,
            f"Your argument has {len(text)} letters, but it should have at least {ENOUGH}; say in a sentence or "
            "more why you chose this try.",
        )
        test, sent, leaks = self._runs(self._hidden.final, chosen.method, chosen.knobs, TEST_SEEDS)
        report = Report(
            code=self.code, name=name or self.name, number=len(self.record.submissions) + 1,
            facts=tuple(self._hidden.facts()), tries=tuple(tries), validation_images=len(self._hidden.trial.y_test),
            choice=choice, argument=text, test=test, test_images=len(self._hidden.final.y_test), bytes=sent,
            budget=self.budget, leaks=leaks, version=__version__,
            earlier=tuple(entry["accuracy"] for entry in self.record.submissions),
        )  # fmt: skip
        self.record.submitted({"submission": report.number, "accuracy": report.band.mean, "choice": choice})
        return report

    def form(self) -> Any:
        """Tries, choice, argument and submission with buttons."""
        from .form import CaseForm

        return CaseForm(self)


def behind(code: str) -> Card:
    """For the teacher: what a code word has drawn."""
    h = drawn(word(code))
    sizes = f"sizes with σ = {h.sigma:g}, {100 * h.share:.0f} % of the training images"
    first = f"{h.code}: {h.source}, α = {h.alpha:g}, {h.clients} clients, {sizes}."
    return worked(first, f"Budget {h.budget} bytes, {h.budget / h.network:.1f} networks of a client.")
