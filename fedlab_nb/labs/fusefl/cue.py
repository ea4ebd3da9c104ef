"""Clients with a spurious cue: right at home, lost outside. A strip of a client's images with and
without the cue, and a column of marks for each client. What all clients together achieve stands in
the sentence and in the table.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Literal, NamedTuple

import numpy as np
from ipywidgets import Dropdown
from matplotlib.axes import Axes
from torch import Tensor

from ...data import Dataset
from ...data.cues import CUES
from ...methods import METHODS
from ...panels import JobSteps, LabView, PanelState, make_widget, set_menu_options_and_keep_choice
from ...plots import (
    Picture,
    TableRows,
    add_legend,
    build_table,
    describe_picture,
    drawing,
    dress,
    format_count_and_noun,
    format_percent,
    write_axes_title,
)
from ...plots.identity import shorten_title
from ...plots.kit import draw_image_rows
from ...plots.style import (
    ACCENT,
    INK,
    QUARTERS,
    RULE,
    SECOND,
    highlight_row_or_column,
    is_frame_narrow,
    set_client_axis,
    set_percent_axis,
)
from ...plots.words import SettingCaption, format_client_for_sentence
from ...rng import generator
from ...training import compute_accuracy
from ..runs import describe_setting, get_or_run_ensemble

CueTest = Literal["clean", "tied", "untied"]
TESTS: dict[CueTest, str] = {
    "clean": "without a cue",
    "tied": "with the cue of their class",
    "untied": "with a random cue",
}
STRIP = 10  # images of the client that is shown
MAX_SAMPLES = 2000  # of the test set, and of one client
VARIED_SAMPLES = 200  # of a client, from which its strip is chosen


class CueAccuracyView(LabView):
    """Each client's accuracy on its own images and outside, with and without the cue; and that of
    all together.
    """

    name, title = "cue", "Spurious cue"
    summary = (
        "Then this shows each client's accuracy on its own images and outside, with and without "
        "the cue."
    )

    def __init__(self) -> None:
        self.test = make_widget(
            Dropdown,
            label="Test images",
            help="The test images as they are, with the cue of their own class, or with the cue of "
            "a random class",
            width=310,
            options=[(words, name) for name, words in TESTS.items()],
        )

    def adapt(self, state: PanelState) -> None:
        set_menu_options_and_keep_choice(
            self.test, [(TESTS[name], name) for name in state.prepared.outside], "clean"
        )

    def prepare(self, state: PanelState) -> JobSteps["CueResults"]:
        """Measure the plain ensemble's clients, each trained alone, and all systems of the run."""
        outcome = state.outcome
        settings = outcome.settings
        federation = outcome.federation()
        data = federation.dataset
        plain_data = settings.data()
        ensemble = yield from get_or_run_ensemble(state)
        clients = ensemble.model.clients

        strength = federation.tint or settings.tint
        tests = make_test_sets_by_cue(data, strength, settings.seed, settings.cue)
        tests = {name: x.to(settings.device) for name, x in tests.items()}
        y_test = data.y_test[:MAX_SAMPLES].to(settings.device)
        outside = {}
        for name, x in tests.items():
            predictions = clients.logits(x).argmax(-1)
            outside[name] = [compute_accuracy(labels, y_test) for labels in predictions]

        home = []
        bare = []
        images = []
        for m, (rows, _) in enumerate(
            federation.split(outcome.plan.share_held_out_of_local_training)
        ):
            y = data.y_train[rows[:MAX_SAMPLES]].to(settings.device)
            for source, accuracies in ((data, home), (plain_data, bare)):
                x = source.x_train[rows[:MAX_SAMPLES]].to(settings.device)
                accuracies.append(compute_accuracy(clients.logits(x)[m].argmax(1), y))
            shown = choose_rows_across_classes(rows, data.y_train)
            images.append((plain_data.x_train[shown].numpy(), data.x_train[shown].numpy()))
            yield

        systems = {}
        for method, outcomes in {**state.others, "fusefl": state.outcomes}.items():
            if settings.seed in outcomes:
                model = outcomes[settings.seed].model
                title = shorten_title(METHODS[method].info.title)
                systems[title] = {name: model.accuracy(x, y_test) for name, x in tests.items()}
        return CueResults(
            setting=describe_setting(outcome),
            marked=federation.spurious,
            home=home,
            bare=bare,
            outside=outside,
            systems=systems,
            images=images,
        )

    def draw(self, state: PanelState) -> Picture:
        return draw_cue_results(state.prepared, self.test.value, client=state.client)


# ------------------------------------------------------------------------------------------ numbers
class CueResults(NamedTuple):
    """What is drawn. All accuracies are 0–1. The M clients are each trained alone.

    marked: clients whose training images carry the cue
    setting: in words
    home: `[M]` on their own training images
    bare: `[M]` on the same images without the cue
    outside:  {"clean", and for images "tied" and "untied": `[M]`} on test samples
    systems:  {name: {"clean", …: accuracy}} of all clients together
    images:   for each client a pair `[n, ...]`: some images without the cue, and as it has them
    """

    setting: SettingCaption | str
    marked: Sequence[int]
    home: Sequence[float]
    bare: Sequence[float]
    outside: Mapping[str, Sequence[float]]
    systems: Mapping[str, Mapping[str, float]]
    images: Sequence[tuple[np.ndarray, np.ndarray]]

    @property
    def names(self) -> list[str]:
        """The clients' names."""
        return [format_client_for_sentence(k, self.setting) for k in range(len(self.home))]


def make_test_sets_by_cue(
    dataset: Dataset, cue_strength: float, seed: int, cue_name: str = "tint"
) -> dict[str, Tensor]:
    """Test samples as they are, and, of images, with the cue of their own class and with a cue
    drawn at random.
    """
    x = dataset.x_test[:MAX_SAMPLES]
    y = dataset.y_test[:MAX_SAMPLES]
    if x.ndim != 4:
        return {"clean": x}
    copy_dataset_with_cue = CUES[cue_name]

    def add_cue_to_images(agreement: float) -> Tensor:
        stream = generator(seed, "random cue")
        return copy_dataset_with_cue(
            x, y, cue_strength, class_count=dataset.classes, agreement=agreement, generator=stream
        )

    return {"clean": x, "tied": add_cue_to_images(1), "untied": add_cue_to_images(0)}


def choose_rows_across_classes(rows: Tensor, labels: Tensor) -> Tensor:
    """A few of the samples `rows`, of as many classes as there are."""
    seen: dict[int, int] = {}
    order = []
    for i, label in enumerate(labels[rows[:VARIED_SAMPLES]].tolist()):
        # The first sample of every class comes first, then the second ones, and so on.
        order.append((seen.get(label, 0), i))
        seen[label] = seen.get(label, 0) + 1
    order.sort()
    return rows[[i for _, i in order[:STRIP]]]


# ------------------------------------------------------------------------------------------ picture
def draw_cue_results(
    results: CueResults, cue_test: CueTest = "clean", *, client: int | None = None
) -> Picture:
    """A strip of a client's images, and the accuracies of all clients.

    cue_test: which test samples are looked at, a key of TESTS
    client: the selected one; the strip is then of it, else of the first client with the cue
    """
    if client is not None and client >= len(results.home):
        client = None
    shown = min(results.marked, default=0) if client is None else client
    with drawing(2, 1, height_ratios=[1, 3]) as (figure, (upper, lower)):
        without_cue, with_cue = results.images[shown]
        strip = [("as it has them", with_cue)]
        if shown in results.marked:
            strip.insert(0, (f"client {results.names[shown]}, without cue", without_cue))
        draw_image_rows(upper, strip)
        draw_accuracies(lower, results, cue_test, client)
    return describe_picture(
        figure,
        f"Accuracy of each client at home and on test images {TESTS[cue_test]}, and of all together",
        results.setting,
        describe_cue(results, cue_test, client),
        make_cue_table(results),
        detail=describe_all_clients_together(results, cue_test),
    )


def draw_accuracies(ax: Axes, results: CueResults, cue_test: CueTest, client: int | None) -> None:
    """A column for each client: on its own images, on these without the cue, and on test images."""
    clients = len(results.home)
    marked = list(results.marked)
    dress(ax, grid="y")
    write_axes_title(ax, "Trained alone", 34 if is_frame_narrow() else 7)
    for k in marked:
        highlight_row_or_column(ax, k, clients, colour=SECOND)
    highlight_row_or_column(ax, client, clients, has_frame=True, line_width=2)
    x = np.arange(clients)
    size = 8 if clients <= 16 else 4.5
    outside = results.outside[cue_test]
    ax.vlines(x, outside, results.home, color=RULE, lw=2, zorder=1)
    ax.plot(x, results.home, "o", color=INK, ms=size, label="own images", clip_on=False)
    bare = [results.bare[k] for k in marked]
    diamonds = {"mfc": "white", "mec": INK, "mew": 1.4, "ms": 0.8 * size}
    ax.plot(marked, bare, "D", label="own, cue removed", clip_on=False, **diamonds)
    ax.plot(x, outside, "s", color=ACCENT, ms=size, label="test images", clip_on=False)
    ax.set_xlim(-0.6, clients - 0.4)
    set_client_axis(ax, clients, results.setting)
    if marked:
        ax.set_xlabel(f"{ax.get_xlabel()} (shaded: with the cue)")
    set_percent_axis(ax, highest_share=1.1, ticks=QUARTERS)
    above = {"loc": "lower right", "bbox_to_anchor": (1.01, 0.985), "ncols": 3, "borderpad": 0}
    add_legend(ax, handlelength=1.3, columnspacing=1.1, **above).set_in_layout(False)


def describe_cue(results: CueResults, cue_test: CueTest, client: int | None) -> str:
    """How often the selected client, else the clients with the cue, else all are correct at home
    and outside.
    """
    if client is not None:
        chosen = [client]
        subject = f"Client {results.names[client]}"
    elif results.marked:
        chosen = list(results.marked)
        subject = f"{format_count_and_noun(len(chosen), 'client')} with the cue"
    else:
        chosen = list(range(len(results.home)))
        subject = f"{format_count_and_noun(len(chosen), 'client')} without a cue"
    home = mean(results.home[k] for k in chosen)
    bare = mean(results.bare[k] for k in chosen)
    outside = mean(results.outside[cue_test][k] for k in chosen)
    return (
        f"{subject}: correct on {format_percent(home)} of their own images, on {format_percent(bare)} of them "
        f"once the cue is removed, and on {format_percent(outside)} of the test images {TESTS[cue_test]}."
    )


def describe_all_clients_together(results: CueResults, cue_test: CueTest) -> str:
    """Say how often all clients together are correct."""
    together = [
        f"{name} {format_percent(shares[cue_test])}" for name, shares in results.systems.items()
    ]
    return f"All together, on the test images {TESTS[cue_test]}: {', '.join(together)}."


def make_cue_table(results: CueResults) -> TableRows:
    """A row for each client, then one for each system of all clients."""
    columns = ["who", "cue", "own images", "own, cue removed"]
    columns += [f"test, {TESTS[name]}" for name in results.outside]
    rows = []
    for k, name in enumerate(results.names):
        shares = [results.home[k], results.bare[k]]
        shares += [accuracies[k] for accuracies in results.outside.values()]
        has_cue = "yes" if k in results.marked else ""
        rows.append((f"client {name}", has_cue, *(format_percent(share) for share in shares)))
    for name, accuracies in results.systems.items():
        shares = [accuracies[test] for test in results.outside]
        rows.append((name, "", "", "", *(format_percent(share) for share in shares)))
    return build_table(columns, rows)
