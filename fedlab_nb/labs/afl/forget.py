"""One client's sums taken off the total: accuracy class by class, and the same fit from the others' samples."""

from collections.abc import Sequence
from typing import NamedTuple

import ipywidgets as widgets
import numpy as np
import torch

from ...errors import UsageError
from ...methods.afl import Sums, forget_client
from ...panels import LabView, PanelState, made, offer
from ...plots import Picture, blank, drawing, dress, legend, listed, percent, plural, tabled, told
from ...plots.axes import FIFTHS, class_ticks, mark, percent_axis
from ...plots.characters import client_name
from ...plots.style import QUIET, look
from ...studies.outcome import Outcome
from ..runs import clients_in, where


class Forget(LabView):
    """What becomes of the server when a client's sums are taken off the total, beside a fit to the others' samples."""

    name, title = "forget", "Forget a client"
    _of: "Forgotten | None" = None  # computed last

    def __init__(self) -> None:
        self.who = made(
            widgets.Dropdown,
            label="Client",
            help="Who is forgotten",
            width=160,
            options=[("client A", 0)],
        )

    def adapt(self, state: PanelState) -> None:
        offer(self.who, clients_in(state))

    def draw(self, state: PanelState) -> Picture:
        if self._of is None or (self._of.outcome, self._of.client) != (
            state.outcome,
            self.who.value,
        ):
            try:
                self._of = forget(state.outcome, self.who.value)
            except UsageError as error:
                return blank(str(error), setting=where(state))
        return forgotten(self._of, state.class_names, setting=where(state), klass=state.klass)


class Forgotten(NamedTuple):
    """Client `client` taken out of the run `outcome`: test accuracy of each class before and after `[C]`, of all
    images before and after; `samples [C]` that it had; `distance`: largest relative difference between the weights so
    gained and those fitted to the others' samples from scratch."""

    outcome: Outcome
    client: int
    before: np.ndarray
    after: np.ndarray
    accuracy: tuple[float, float]
    samples: np.ndarray
    distance: float


def forget(outcome: Outcome, client: int) -> Forgotten:
    """Take `client` out, in both ways. UsageError where the sums do not allow it (see `forget_client`)."""
    report = outcome.report
    weights = forget_client(report, client)
    features, y = outcome.test_features.astype(np.float64), outcome.test_labels
    right = [(features @ w[:-1] + w[-1]).argmax(1) == y for w in (report.weights, weights)]
    classes = range(report.weights.shape[1])
    of_class = [
        np.array([r[y == c].mean() if (y == c).any() else np.nan for c in classes]) for r in right
    ]
    scratch = retrained(outcome, client)
    distance = np.abs(weights - scratch).max() / np.abs(scratch).max()
    samples = report.classes[client, -1].round().astype(int)
    return Forgotten(
        outcome, client, *of_class, tuple(float(r.mean()) for r in right), samples, float(distance)
    )


def retrained(outcome: Outcome, client: int) -> np.ndarray:
    """The weights from the other clients' training samples, summed anew in one place: `[d, C]`."""
    federation, report = outcome.federation(), outcome.report
    parts = [
        train for k, (train, _) in enumerate(federation.split(outcome.plan.holdout)) if k != client
    ]
    rows = torch.cat(parts)
    features = torch.as_tensor(
        np.asarray(outcome.features(federation.dataset.x_train[rows]))
    ).double()
    total = Sums.measure(features, federation.dataset.y_train[rows], federation.classes)
    return report.solve(total.add_ridge(len(parts) * report.gamma), len(parts))


def forgotten(
    of: Forgotten, class_names: Sequence[str], *, setting: str, klass: int | None = None
) -> Picture:
    """Bars of each class's test accuracy, with all clients and without the forgotten one."""
    places, who = np.arange(len(of.before)), client_name(of.client, setting)
    title = f"With {who}, and as if it had never been there"
    with drawing() as (figure, ax):
        dress(ax, title=title, x="class", grid="y")
        ax.bar(places - 0.2, of.before, 0.38, color=QUIET, label="with all clients")
        ax.bar(places + 0.2, of.after, 0.38, color=look("afl").colour, label=f"without {who}")
        class_ticks(ax, class_names)
        mark(ax, klass, len(places))
        percent_axis(ax, "y", 1.15, ticks=FIFTHS)
        legend(ax, loc="upper left", ncols=2)
    before, after = (percent(share) for share in of.accuracy)
    worst = [class_names[c] for c in np.flatnonzero(of.before - of.after >= 0.1)]
    sentence = (
        f"Without {who} and its {plural(int(of.samples.sum()), 'sample')} the server "
        f"is right for {after} (before: {before}). Classes that lose 10 points or more: {listed(worst) or 'none'}. A "
        f"fit to the other clients' samples from scratch gives the same weights, up to "
        f"{of.distance:.1g} of the largest one."
    )
    cells = zip(class_names, of.samples, of.before, of.after, strict=True)
    rows = ((name, int(n), percent(b), percent(a)) for name, n, b, a in cells)
    table = tabled("class | samples of the client | with it | without it", rows)
    return told(figure, f"{title}: bars of each class's test accuracy", setting, sentence, table)
