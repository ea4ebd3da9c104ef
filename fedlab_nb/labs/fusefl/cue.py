"""Clients with a spurious cue, which are accurate on their own images and fail on others.

The picture has a strip of one client's images, with and without the cue, and a column of accuracies
for each client. What all clients together achieve is in the sentence and in the table.
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
from ...panels import (
    LabView,
    PanelState,
    ProgressThenResult,
    make_widget,
    set_menu_options_and_keep_choice,
)
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
from ...plots.identity import shorten_method_title
from ...plots.kit import draw_image_rows
from ...plots.style import (
    ACCENT,
    INK,
    QUARTERS,
    RULE,
    SECOND,
    highlight_row_or_column,
    is_frame_narrow,
    set_client_x_ticks_and_label,
    set_percent_axis,
)
from ...plots.words import SettingCaption, format_client_for_sentence
from ...rng import make_torch_generator
from ...tensor_types import Labels, SampleIndices, Samples
from ...training import compute_accuracy
from ..runs import describe_setting, get_or_run_ensemble

CueTest = Literal["clean", "tied", "untied"]
TESTS: dict[CueTest, str] = {
    "clean": "without a cue",
    "tied": "with the cue of their class",
    "untied": "with a random cue",
}
STRIP = 10  # images in the strip
MAX_SAMPLES = 2000  # of the test set, and of each client
VARIED_SAMPLES = 200  # of a client; its strip is chosen from them


class CueAccuracyView(LabView):
    """Accuracy on own images and on test images, with and without the cue: of each client, and of
    all clients together.
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

    def prepare(self, state: PanelState) -> ProgressThenResult["CueResults"]:
        """Measure each client of the plain ensemble, all trained alone, and every method of the
        run.
        """
        outcome = state.outcome
        settings = outcome.settings
        federation = outcome.federation()
        data = federation.dataset
        plain_data = settings.load_dataset()
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
            shown_rows = choose_few_samples_of_many_classes(rows, data.y_train)
            images.append(
                (plain_data.x_train[shown_rows].numpy(), data.x_train[shown_rows].numpy())
            )
            yield

        systems = {}
        for method, outcomes in {**state.others, "fusefl": state.outcomes}.items():
            if settings.seed in outcomes:
                model = outcomes[settings.seed].model
                title = shorten_method_title(METHODS[method].info.title)
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
        return draw_images_and_accuracies_with_cue(
            state.prepared, self.test.value, selected_client=state.client
        )


# ------------------------------------------------------------------------------------------ numbers
class CueResults(NamedTuple):
    """What is drawn. All accuracies are 0–1. The M clients are each trained alone.

    setting: in words
    marked:  clients whose training images carry the cue
    home:    `[M]`, accuracies on their own training images
    bare:    `[M]`, accuracies on the same images without the cue
    outside: {key of TESTS: `[M]`}, accuracies on test samples; samples that are not images have
             "clean" alone
    systems: {method: {key of TESTS: accuracy}} of all clients together
    images:  for each client a pair `[n, ...]`: some images without the cue, and as it has them
    """

    setting: SettingCaption | str
    marked: Sequence[int]
    home: Sequence[float]
    bare: Sequence[float]
    outside: Mapping[str, Sequence[float]]
    systems: Mapping[str, Mapping[str, float]]
    images: Sequence[tuple[np.ndarray, np.ndarray]]

    @property
    def client_names(self) -> list[str]:
        """The clients' names."""
        return [format_client_for_sentence(k, self.setting) for k in range(len(self.home))]


def make_test_sets_by_cue(
    dataset: Dataset, cue_strength: float, seed: int, cue_name: str = "tint"
) -> dict[CueTest, Samples]:
    """Make {key of TESTS: test samples}: as they are and, if they are images, with the cue of their
    own class and with a random cue.
    """
    x = dataset.x_test[:MAX_SAMPLES]
    y = dataset.y_test[:MAX_SAMPLES]
    if x.ndim != 4:
        return {"clean": x}
    copy_dataset_with_cue = CUES[cue_name]

    def add_cue_to_images(agreement: float) -> Tensor:
        stream = make_torch_generator(seed, "random cue")
        return copy_dataset_with_cue(
            x,
            y,
            cue_strength,
            class_count=dataset.classes,
            agreement_probability=agreement,
            generator=stream,
        )

    return {"clean": x, "tied": add_cue_to_images(1), "untied": add_cue_to_images(0)}


def choose_few_samples_of_many_classes(
    sample_indices: SampleIndices, labels_of_all_samples: Labels
) -> SampleIndices:
    """Choose a few of the samples `sample_indices`, from as many classes as possible."""
    samples_by_class: dict[int, int] = {}
    order = []
    for i, label in enumerate(labels_of_all_samples[sample_indices[:VARIED_SAMPLES]].tolist()):
        # The first sample of each class comes first, then the second of each, and so on.
        order.append((samples_by_class.get(label, 0), i))
        samples_by_class[label] = samples_by_class.get(label, 0) + 1
    order.sort()
    return sample_indices[[i for _, i in order[:STRIP]]]


# ------------------------------------------------------------------------------------------ picture
def draw_images_and_accuracies_with_cue(
    results: CueResults, cue_test: CueTest = "clean", *, selected_client: int | None = None
) -> Picture:
    """Draw a strip of a client's images, and the accuracies of all clients.

    cue_test: which test samples are used, a key of TESTS
    selected_client: the selected one, whose images are shown; without one, those of the first client with the
        cue
    """
    if selected_client is not None and selected_client >= len(results.home):
        selected_client = None
    shown_client = min(results.marked, default=0) if selected_client is None else selected_client
    with drawing(2, 1, height_ratios=[1, 3]) as (figure, (upper, lower)):
        without_cue, with_cue = results.images[shown_client]
        strip = [("as it has them", with_cue)]
        if shown_client in results.marked:
            strip.insert(
                0, (f"client {results.client_names[shown_client]}, without cue", without_cue)
            )
        draw_image_rows(upper, strip)
        draw_accuracies_with_and_without_cue(lower, results, cue_test, selected_client)
    return describe_picture(
        figure,
        f"Accuracy of each client at home and on test images {TESTS[cue_test]}, and of all "
        "together",
        results.setting,
        describe_accuracies_of_chosen_clients(results, cue_test, selected_client),
        make_cue_accuracy_table(results),
        detail=describe_accuracies_of_methods(results, cue_test),
    )


def draw_accuracies_with_and_without_cue(
    ax: Axes, results: CueResults, cue_test: CueTest, selected_client: int | None
) -> None:
    """Draw a column for each client: its accuracy on its own images, on these without the cue, and
    on test images.
    """
    clients = len(results.home)
    marked_clients = list(results.marked)
    dress(ax, grid="y")
    write_axes_title(ax, "Trained alone", 34 if is_frame_narrow() else 7)
    for k in marked_clients:
        highlight_row_or_column(ax, k, clients, colour=SECOND)
    highlight_row_or_column(ax, selected_client, clients, has_frame=True, line_width=2)
    x = np.arange(clients)
    size = 8 if clients <= 16 else 4.5
    outside = results.outside[cue_test]
    ax.vlines(x, outside, results.home, color=RULE, lw=2, zorder=1)
    ax.plot(x, results.home, "o", color=INK, ms=size, label="own images", clip_on=False)
    if marked_clients:
        bare = [results.bare[k] for k in marked_clients]
        diamonds = {"mfc": "white", "mec": INK, "mew": 1.4, "ms": 0.8 * size}
        ax.plot(marked_clients, bare, "D", label="own, cue removed", clip_on=False, **diamonds)
    ax.plot(x, outside, "s", color=ACCENT, ms=size, label="test images", clip_on=False)
    ax.set_xlim(-0.6, clients - 0.4)
    set_client_x_ticks_and_label(ax, clients, results.setting)
    if marked_clients:
        ax.set_xlabel(f"{ax.get_xlabel()} (shaded: with the cue)")
    set_percent_axis(ax, highest_share=1.1, ticks=QUARTERS)
    legend_style = {
        "loc": "lower right",
        "bbox_to_anchor": (1.01, 0.985),
        "ncols": 3,
        "borderpad": 0,
    }
    add_legend(ax, handlelength=1.3, columnspacing=1.1, **legend_style).set_in_layout(False)


def describe_accuracies_of_chosen_clients(
    results: CueResults, cue_test: CueTest, selected_client: int | None
) -> str:
    """Say how often the selected client is correct on its own images and on test images; without
    one, the clients with the cue; if there are none, all clients.
    """
    if selected_client is not None:
        chosen_clients = [selected_client]
        subject = f"Client {results.client_names[selected_client]}"
    elif results.marked:
        chosen_clients = list(results.marked)
        subject = f"{format_count_and_noun(len(chosen_clients), 'client')} with the cue"
    else:
        chosen_clients = list(range(len(results.home)))
        subject = f"{format_count_and_noun(len(chosen_clients), 'client')} without a cue"
    home = mean(results.home[k] for k in chosen_clients)
    bare = mean(results.bare[k] for k in chosen_clients)
    outside = mean(results.outside[cue_test][k] for k in chosen_clients)
    owner = "its" if len(chosen_clients) == 1 else "their"
    home_words = f"on {format_percent(home)} of {owner} own images"
    outside_words = f"on {format_percent(outside)} of the test images {TESTS[cue_test]}"
    if not set(chosen_clients) & set(results.marked):
        return f"{subject}: correct {home_words} and {outside_words}."
    return (
        f"{subject}: correct {home_words}, on {format_percent(bare)} of them once the cue is "
        f"removed, and {outside_words}."
    )


def describe_accuracies_of_methods(results: CueResults, cue_test: CueTest) -> str:
    """Say how often all clients together are correct."""
    system_texts = [
        f"{name} {format_percent(shares[cue_test])}" for name, shares in results.systems.items()
    ]
    return f"All together, on the test images {TESTS[cue_test]}: {', '.join(system_texts)}."


def make_cue_accuracy_table(results: CueResults) -> TableRows:
    """Make the table with a row for each client, then one for each method."""
    columns = ["who", "cue", "own images", "own, cue removed"]
    columns += [f"test, {TESTS[name]}" for name in results.outside]
    rows = []
    for k, name in enumerate(results.client_names):
        shares = [results.home[k], results.bare[k]]
        shares += [accuracies[k] for accuracies in results.outside.values()]
        has_cue = "yes" if k in results.marked else ""
        rows.append((f"client {name}", has_cue, *(format_percent(share) for share in shares)))
    for name, accuracies in results.systems.items():
        shares = [accuracies[test] for test in results.outside]
        rows.append((name, "", "", "", *(format_percent(share) for share in shares)))
    return build_table(columns, rows)
