"""One client's sums subtracted from the total: accuracy class by class, and the same fit from the
others' samples.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import ipywidgets as widgets
import numpy as np
import torch

from ...errors import UsageError
from ...methods.afl import Sums, forget_client
from ...panels import LabView, PanelState, make_widget, offer
from ...plots import (
    Picture,
    build_table,
    describe_picture,
    drawing,
    dress,
    join_words,
    legend,
    make_blank_picture,
    percent,
    plural,
)
from ...plots.style import FIFTHS, QUIET, look, mark_place, set_class_ticks, set_percent_axis
from ...plots.words import Setting, client_name
from ...studies.outcome import Outcome
from ..runs import describe_setting, list_clients

LARGE_LOSS = 0.1  # of the accuracy of a class


class Forget(LabView):
    """The server when a client's sums are subtracted from the total, beside a fit to the others'
    samples.
    """

    name, title = "forget", "Forget a client"
    summary = "Then this shows what the server forgets with a client."
    _removal: "Removal | None" = None  # the last one

    def __init__(self) -> None:
        self.who = make_widget(
            widgets.Dropdown,
            label="Client",
            help="Who is forgotten",
            width=160,
            options=[("client A", 0)],
        )

    def adapt(self, state: PanelState) -> None:
        offer(self.who, list_clients(state))

    def draw(self, state: PanelState) -> Picture:
        setting = describe_setting(state)
        removal = self._removal
        is_known = (
            removal is not None
            and removal.outcome is state.outcome
            and removal.client == self.who.value
        )
        if not is_known:
            try:
                removal = remove_client(state.outcome, self.who.value)
            except UsageError as error:
                return make_blank_picture(str(error), setting=setting)
            self._removal = removal
        return draw_removal(
            removal, state.class_names, setting=setting, class_index=state.class_index
        )


# ------------------------------------------------------------------------------------------ numbers
class Removal(NamedTuple):
    """A client taken out of the run `outcome`.

    before, after: `[C]`, test accuracy of each class (nan: without test samples)
    accuracy:      of all test images before and after
    samples:       `[C]` that the client had
    distance:      largest relative difference between the weights after the removal and those
                   fitted to the others' samples from scratch
    """

    outcome: Outcome
    client: int
    before: np.ndarray
    after: np.ndarray
    accuracy: tuple[float, float]
    samples: np.ndarray
    distance: float


def remove_client(outcome: Outcome, client: int) -> Removal:
    """Take `client` out, in both ways. UsageError where the sums do not allow it (see
    `forget_client`).
    """
    report = outcome.report
    weights = forget_client(report, client)
    right_before = find_right_answers(outcome, report.weights)
    right_after = find_right_answers(outcome, weights)
    refitted = solve_without_client(outcome, client)
    distance = np.abs(weights - refitted).max() / np.abs(refitted).max()
    return Removal(
        outcome=outcome,
        client=client,
        before=compute_class_accuracies(outcome, right_before),
        after=compute_class_accuracies(outcome, right_after),
        accuracy=(float(right_before.mean()), float(right_after.mean())),
        samples=report.classes[client, -1].round().astype(int),
        distance=float(distance),
    )


def find_right_answers(outcome: Outcome, weights: np.ndarray) -> np.ndarray:
    """For each test sample whether `weights [d, C]`, the last row being the bias, classify it
    rightly.
    """
    features = outcome.test_features.astype(np.float64)
    logits = features @ weights[:-1] + weights[-1]
    return logits.argmax(1) == outcome.test_labels


def compute_class_accuracies(outcome: Outcome, is_right: np.ndarray) -> np.ndarray:
    """`[C]`; nan for a class without test samples."""
    classes = outcome.report.weights.shape[1]
    accuracies = np.full(classes, np.nan)
    for c in range(classes):
        of_class = outcome.test_labels == c
        if of_class.any():
            accuracies[c] = is_right[of_class].mean()
    return accuracies


def solve_without_client(outcome: Outcome, client: int) -> np.ndarray:
    """The weights `[d, C]` fitted to the other clients' training samples, summed in one place."""
    federation = outcome.federation()
    report = outcome.report
    shards = []
    for k, (train, _) in enumerate(federation.split(outcome.plan.holdout)):
        if k != client:
            shards.append(train)
    rows = torch.cat(shards)
    features = np.asarray(outcome.features(federation.dataset.x_train[rows]))
    total = Sums.measure(
        torch.as_tensor(features).double(), federation.dataset.y_train[rows], federation.classes
    )
    return report.solve(total.add_ridge(len(shards) * report.gamma), len(shards))


# ------------------------------------------------------------------------------------------ picture
def draw_removal(
    removal: Removal,
    class_names: Sequence[str],
    *,
    setting: Setting | str,
    class_index: int | None = None,
) -> Picture:
    """Bars of each class's test accuracy, with all clients and without the one that is
    forgotten.
    """
    who = client_name(removal.client, setting)
    title = f"With {who}, and as if it had never been there"
    places = np.arange(len(removal.before))
    with drawing() as (figure, ax):
        dress(ax, title=title, x="class", grid="y")
        ax.bar(places - 0.2, removal.before, 0.38, color=QUIET, label="with all clients")
        colour = look("afl").colour
        ax.bar(places + 0.2, removal.after, 0.38, color=colour, label=f"without {who}")
        set_class_ticks(ax, class_names)
        mark_place(ax, class_index, len(places))
        set_percent_axis(ax, "y", 1.15, ticks=FIFTHS)
        legend(ax, loc="upper left", ncols=2)
    rows: list[tuple[Any, ...]] = []
    for c, name in enumerate(class_names):
        before = percent(removal.before[c])
        rows.append((name, int(removal.samples[c]), before, percent(removal.after[c])))
    return describe_picture(
        figure,
        f"{title}: bars of each class's test accuracy",
        setting,
        describe_removal(removal, class_names, who),
        build_table("class | samples of the client | with it | without it", rows),
        detail=describe_exactness(removal),
    )


def describe_removal(removal: Removal, class_names: Sequence[str], who: str) -> str:
    """What the server has forgotten."""
    before, after = removal.accuracy
    lost = np.flatnonzero(removal.before - removal.after >= LARGE_LOSS)
    lost_names = join_words([class_names[c] for c in lost]) or "none"
    samples = plural(int(removal.samples.sum()), "sample")
    return (
        f"Without {who} and its {samples} the server is correct on {percent(after)} of the test "
        f"images (before: {percent(before)}); classes that lose 10 points or more: {lost_names}."
    )


def describe_exactness(removal: Removal) -> str:
    """That a fit from scratch gives the same weights."""
    same = "the same weights, identical to the last bit"
    if removal.distance > 0:
        same = f"the same weights, up to {removal.distance:.1g} of the largest one"
    return f"A fit to the other clients' samples from scratch gives {same}."
