"""What the uploads reveal about the labels: each client's true counts, an attacker's guess of its
classes, and what noise on the uploads changes.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import Literal, NamedTuple

import numpy as np
import torch
from ipywidgets import Dropdown, SelectionSlider
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from ...comm import unpack_upper_triangle
from ...methods.fedlpa.client import (
    LocalPosterior,
    guess_client_classes_from_diagonal,
    measure_label_leak,
)
from ...panels import LabView, PanelState, PausesThenResult, make_widget
from ...plots import (
    Picture,
    build_table,
    describe_picture,
    drawing,
    format_percent,
    join_with_and,
    write_axes_title,
)
from ...plots.array_types import ClientClassCounts
from ...plots.kit import draw_heat_map
from ...plots.style import (
    HALVES,
    INK,
    PERCENT,
    SECOND,
    draw_colour_bar,
    highlight_row_or_column,
    set_class_ticks,
    set_client_x_ticks_and_label,
)
from ...plots.words import SettingCaption, format_client_for_sentence
from ...studies import Outcome
from ...tensor_types import ScorePerClass
from ..runs import describe_setting
from .replay import make_server_replay

NOISES = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
NOISY_DRAWS = 3  # draws of the noise, over which results are averaged
ClassIndices = list[int]
LeakSource = Literal["diagonal of the last B", "bias of the last layer"]
DIAGONAL: LeakSource = "diagonal of the last B"
BIAS: LeakSource = "bias of the last layer"
LARGEST = 5  # number of classes in the last column of the table


class LabelLeakView(LabView):
    """Which classes can be read off the uploads, beside the true counts, with noise and without."""

    name, title = "leak", "What leaks"
    summary = "Then this shows which classes can be read off the uploads, and what noise changes."

    def __init__(self) -> None:
        self.source = make_widget(
            Dropdown,
            label="Read",
            help="Which numbers of the upload the attacker reads. FedAvg also sends the bias",
            width=260,
            options=[DIAGONAL, BIAS],
        )
        self.noise = make_widget(
            SelectionSlider,
            label="Noise",
            help=(
                "Laplace noise on all uploads, as a share of the size of each tensor. It "
                "guarantees no privacy"
            ),
            width=280,
            label_width=46,
            options=[(f"{noise:g}", noise) for noise in NOISES],
        )

    def prepare(self, state: PanelState) -> PausesThenResult["NoiseSweep"]:
        return measure_leak_at_all_noises(state.outcome)

    def draw(self, state: PanelState) -> Picture:
        sweep = state.prepared
        source = self.source.value
        if source not in sweep.sent:
            source = DIAGONAL
        index = sweep.noises.index(self.noise.value)
        return draw_held_and_guessed_classes(
            sweep, source, index, state.class_names, state.client, state.class_index
        )


# ------------------------------------------------------------------------------------------ numbers
class NoiseSweep(NamedTuple):
    """Which classes are read off the uploads for each of `noises`.

    counts:    `[M, C]`, true samples by class
    sent:      {source: for each noise `[M, C]`, the numbers that are read}; a source is DIAGONAL
               or BIAS
    precision: {source: for each noise the share of right guesses}
    accuracy:  for each noise the test accuracy of FedLPA
    chance:    share of right guesses of an attacker who guesses at random
    setting:   the run's setting in words
    """

    noises: Sequence[float]
    counts: np.ndarray
    sent: Mapping[str, Sequence[np.ndarray]]
    precision: Mapping[str, Sequence[float]]
    accuracy: Sequence[float]
    chance: float
    setting: SettingCaption | str

    def guess_classes_of_each_client(
        self, source: LeakSource, noise_index: int
    ) -> list[ClassIndices]:
        """Guess each client's classes at one of the noises, as an attacker does who knows how many
        classes the client has.
        """
        guesses = []
        for counts, numbers in zip(self.counts, self.sent[source][noise_index], strict=True):
            classes = int((counts > 0).sum())
            guesses.append(guess_client_classes_from_diagonal(torch.as_tensor(numbers), classes))
        return guesses


def measure_leak_at_all_noises(fedlpa_outcome: Outcome) -> PausesThenResult[NoiseSweep]:
    """Measure every noise, on average over its draws. `NoiseSweep.sent` has the numbers of the
    first.
    """
    server = make_server_replay(fedlpa_outcome)
    damping = fedlpa_outcome.options["damping"]
    pi = fedlpa_outcome.options["pi"]
    counts = torch.as_tensor(fedlpa_outcome.report.train_counts)
    readers = make_readers_of_leaked_numbers(fedlpa_outcome, server.posteriors[0])
    sent: dict[str, list[np.ndarray]] = {source: [] for source in readers}
    precision: dict[str, list[float]] = {source: [] for source in readers}
    accuracy = []
    for noise in NOISES:
        draws = []
        for seed in range(NOISY_DRAWS if noise else 1):
            draws.append(server.make_uploads(damping, pi, noise, noise_seed=seed))
            yield
        accuracies = []
        for draw in draws:
            solution = server.solve_global_state("exact", draw)
            accuracies.append(server.compute_accuracy_on_replay_samples(solution))
        accuracy.append(mean(accuracies))
        for source, read in readers.items():
            numbers = []
            for draw in draws:
                numbers.append(torch.stack([read(upload) for upload in draw]).cpu())
            sent[source].append(numbers[0].double().numpy())
            precisions = [measure_label_leak(values, counts)["precision"] for values in numbers]
            precision[source].append(mean(precisions))
    return NoiseSweep(
        noises=NOISES,
        counts=counts.numpy(),
        sent=sent,
        precision=precision,
        accuracy=accuracy,
        chance=float((counts > 0).double().mean()),
        setting=describe_setting(fedlpa_outcome),
    )


def make_readers_of_leaked_numbers(
    outcome: Outcome, posterior: LocalPosterior
) -> dict[LeakSource, Callable[[Mapping], ScorePerClass]]:
    """Make the functions with which an attacker reads numbers `[C]` off an upload: {source:
    function}.
    """
    layer = outcome.report.layers[-1]
    bias = f"{layer}.bias"

    def read_diagonal(upload: Mapping) -> ScorePerClass:
        return unpack_upper_triangle(upload["factors"][layer]["b"]).diagonal()

    def read_bias(upload: Mapping) -> ScorePerClass:
        return upload["state"][bias]

    readers = {DIAGONAL: read_diagonal}
    if bias in posterior.state:
        readers[BIAS] = read_bias
    return readers


# ------------------------------------------------------------------------------------------ picture
def draw_held_and_guessed_classes(
    sweep: NoiseSweep,
    source: LeakSource,
    noise_index: int,
    class_names: Sequence[str],
    selected_client: int | None = None,
    selected_class: int | None = None,
) -> Picture:
    """Draw what the clients hold, and the classes that an attacker names.

    source:      which numbers of the uploads the attacker reads, a key of `sweep.sent`
    noise_index: which of the noises is on the uploads
    """
    counts = sweep.counts
    guesses = sweep.guess_classes_of_each_client(source, noise_index)
    with drawing() as (figure, ax):
        # Each client has its own scale, so that small clients can be read too.
        shares = counts / np.maximum(counts.max(1, keepdims=True), 1)
        image = draw_heat_map(ax, shares.T)
        bar_label = "samples, of the client's largest class"
        draw_colour_bar(image, ax, bar_label, format=PERCENT, ticks=HALVES)
        write_axes_title(ax, "What the clients hold (ring: named, cross: named wrongly)")
        set_class_ticks(ax, class_names, "y", max_letters=6)
        set_client_x_ticks_and_label(ax, len(counts), sweep.setting, max_single_ticks=12)
        highlight_row_or_column(ax, selected_client, len(counts), has_frame=True)
        highlight_row_or_column(ax, selected_class, len(class_names), "y", has_frame=True)
        draw_right_and_wrong_guesses(ax, counts, guesses)

    rows = []
    for k, (class_counts, guessed_classes) in enumerate(zip(counts, guesses, strict=True)):
        largest_classes = np.argsort(-sweep.sent[source][noise_index][k], kind="stable")[:LARGEST]
        cells = []
        for classes in (np.flatnonzero(class_counts), guessed_classes, largest_classes):
            cells.append(", ".join(class_names[c] for c in classes))
        rows.append((format_client_for_sentence(k, sweep.setting), *cells))
    return describe_picture(
        figure,
        "What the clients hold, and the classes that are read off their uploads",
        sweep.setting,
        describe_guesses_and_precision(
            sweep, source, noise_index, guesses, class_names, selected_client
        ),
        build_table("client | holds | guessed | largest", rows),
        detail=(
            "The reader is told how many classes a client has. FedLPA has an accuracy of "
            f"{format_percent(sweep.accuracy[noise_index])} with this noise."
        ),
    )


def draw_right_and_wrong_guesses(
    ax: Axes, class_counts: ClientClassCounts, guessed_classes_by_client: Sequence[Sequence[int]]
) -> None:
    """Draw a ring where a class is named correctly, a cross where it is named wrongly."""
    right_guesses = []
    wrong_guesses = []
    for k, classes in enumerate(guessed_classes_by_client):
        for c in classes:
            if class_counts[k, c] > 0:
                right_guesses.append((k, c))
            else:
                wrong_guesses.append((k, c))
    size = 200 / max(25, *class_counts.shape)
    halo = [withStroke(linewidth=4, foreground="white")]  # over the darkest squares
    for places, marker, colour in ((right_guesses, "o", INK), (wrong_guesses, "x", SECOND)):
        x = [k for k, _ in places]
        y = [c for _, c in places]
        ax.plot(x, y, marker, ms=size, mfc="none", mec=colour, mew=1.6, path_effects=halo)


def describe_guesses_and_precision(
    sweep: NoiseSweep,
    source: LeakSource,
    noise_index: int,
    guessed_classes_by_client: Sequence[Sequence[int]],
    class_names: Sequence[str],
    selected_client: int | None,
) -> str:
    """Say how often an attacker is right; if a client is selected, first what is guessed for it."""
    noise = sweep.noises[noise_index]
    opening = f"At noise {noise:g}" if noise else "Without noise"
    if selected_client is not None and selected_client < len(guessed_classes_by_client):
        held_classes = join_with_and(
            [class_names[c] for c in np.flatnonzero(sweep.counts[selected_client])]
        )
        guessed_classes = join_with_and(
            [class_names[c] for c in guessed_classes_by_client[selected_client]]
        )
        opening = (
            f"Client {format_client_for_sentence(selected_client, sweep.setting)} holds {held_classes}; a "
            f"reader of its upload names {guessed_classes}. {opening}"
        )
    return (
        f"{opening} a reader of the {source} names "
        f"{format_percent(sweep.precision[source][noise_index])} of a client's classes correctly "
        f"(a blind guess {format_percent(sweep.chance)})."
    )
