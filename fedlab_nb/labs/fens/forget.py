"""FENS without a client: what its leaving changes, class by class, beside who holds what. Phase 2 runs again; the
clients' models stay as they were.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import ipywidgets as widgets
import numpy as np

from ...panels import Asked, LabView, PanelState, made, offer
from ...plots import Picture, blank, percent, tabled, told
from ...plots.characters import own_name
from ...studies import Outcome
from ..runs import Steps, all_of, choices, clients_in, where
from .trust import beside_the_samples, shares


class Forgotten(NamedTuple):
    """FENS with everybody, and without each of some clients, {client: outcome}."""

    whole: Outcome
    without: Mapping[int, Outcome]

    @property
    def change(self) -> np.ndarray:
        """`[M, C]`: accuracy of class c without client k minus with all; nan: not known."""
        change = np.full(self.whole.label_counts.shape, np.nan)
        for k in self.without:
            change[k] = self.per_class(k) - self.per_class()
        return change

    def per_class(self, gone: int | None = None) -> np.ndarray:
        """Accuracy `[C]` without a client, or with everybody; nan for a class without test samples."""
        return np.array((self.whole if gone is None else self.without[gone]).per_class, dtype=float)


class Forget(LabView):
    """Phase 2 without a client: what it alone had brought is gone."""

    name, title = "forget", "Forget a client"
    work_label = "Forget, and run phase 2 again"
    EACH = -1

    def __init__(self) -> None:
        help = "Whose model and samples are left out of phase 2"
        self.who = made(
            widgets.Dropdown,
            label="Client",
            help=help,
            width=200,
            options=[("each in turn", self.EACH)],
        )

    def adapt(self, state: PanelState) -> None:
        offer(self.who, [("each in turn", self.EACH), *clients_in(state)])

    def asked(self, state: PanelState) -> Asked | None:
        if len(state.outcome.label_counts) < 2:
            return None
        gone = (
            range(len(state.outcome.label_counts))
            if self.who.value == self.EACH
            else [self.who.value]
        )
        return choices(
            "fens", state.outcome.settings.keywords(), {k: {"fens.without": k} for k in (-1, *gone)}
        )

    def work(self, state: PanelState) -> Steps:
        """Run FENS with all clients, then without the chosen one, or without each in turn. Only the first seed runs."""
        runs = yield from all_of(self.asked(state))
        each = {k: next(iter(outcomes.values())) for k, outcomes in runs.items()}
        return Forgotten(each.pop(-1), each)

    def draw(self, state: PanelState) -> Picture:
        forgotten, who = state.worked or Forgotten(state.outcome, {}), self.who.value
        if who != self.EACH:
            forgotten = forgotten._replace(
                without={k: of for k, of in forgotten.without.items() if k == who}
            )
        if not forgotten.without:
            return blank(f"Press “{self.work_label}”. {self.work.__doc__}", setting=state.setting)
        return forgetting(forgotten, state.class_names, where(state), state.client, state.klass)


def forgetting(
    forgotten: Forgotten,
    names: Sequence[str],
    setting: str,
    client: int | None = None,
    klass: int | None = None,
) -> Picture:
    """What each client's leaving changes, class by class, beside who holds what."""
    counts, change, before = forgotten.whole.label_counts, forgotten.change, forgotten.per_class()
    title, unit = "Change without the client", "accuracy of the class, points"
    figure = beside_the_samples(
        counts, 100 * change, names, setting, title, unit, 100, True, client, klass, False
    )
    whole = percent(forgotten.whole.accuracy)
    rows = [("nobody", whole, *("" if np.isnan(v) else percent(v) for v in before))]
    for k, outcome in forgotten.without.items():
        points = ("" if np.isnan(v) else f"{100 * v:+.0f} points" for v in change[k])
        rows.append((f"client {own_name(k, setting)}", percent(outcome.accuracy), *points))
    sentence = largest_loss(forgotten, names, setting)
    if len(forgotten.without) == 1:
        ((k, outcome),) = forgotten.without.items()
        who, now = own_name(k, setting), percent(outcome.accuracy)
        sentence = f"Without client {who}, accuracy goes from {whole} to {now}. {sentence}"
    table = tabled(["without", "accuracy", *(f"class {n}" for n in names)], rows)
    title = "Two heat-maps: training samples, and by how many points the accuracy of a class changes without a client"
    return told(figure, title, setting, sentence, table)


def largest_loss(forgotten: Forgotten, names: Sequence[str], setting: str) -> str:
    """Which class loses most without whom, and whose classes the lost ones were."""
    change, share = forgotten.change, shares(forgotten.whole.label_counts)
    k, c = np.unravel_index(np.nanargmin(change), change.shape)
    losses, owned, known = change < -0.2, share > 0.5, ~np.isnan(change)
    return (
        f"Class {names[c]} without client {own_name(k, setting)} changes most, by {100 * change[k, c]:.0f} points; the "
        f"client holds {percent(share[k, c])} of it. {losses.sum()} of {known.sum()} cells lose more than 20 points, "
        f"{(losses & owned).sum()} of them where the client holds more than half of the class."
    )
