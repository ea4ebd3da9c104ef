"""The pictures of the story: the offices, their answers, the chart that grows, and the eights of offices E and F."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon, Rectangle

from ...data import Federation, federate
from ...declared import read_toml
from ...errors import check_allowed_name
from ...plots import Picture
from ...plots.accuracy import draw_accuracy_bars_of_seed
from ...plots.kit import describe_picture, render_tile_pixels
from ...plots.series import MethodResults
from ...plots.style import ACCENT, FAINT, INK, QUIET, drawing, dress
from ...plots.words import (
    FEDERATION,
    build_table,
    format_client_letters,
    format_data_size,
    format_percent,
    join_with_and,
    make_setting_caption,
)
from ...studies import Outcome
from ..kit.array_types import CountPerClass, SingleImage
from ..kit.claims import load_stored_figure_by_seed

SEED = 4  # the draw in which two offices hold only eights
SETTING = {"dataset": "digits", "clients": 10, "alpha": 0.1, "seed": SEED}
# {rule of the chart: (its name, the method whose colour and marker it has)}, in the order in which the lessons add them
RULES = {
    "local": ("one office alone", "local"),
    "fedavg": ("mean of weights, FedAvg", "fedavg"),
    "logits": ("mean of logits", "FedENS"),
    "probabilities": ("mean of probabilities", "ensemble"),
    "fens": ("FENS: learnt trust", "fens"),
    "afl": ("AFL: two sums", "afl"),
    "gauss": ("Gaussian heads", "gauss"),
    "distilled": ("a few images", "distilled"),
}
WITHOUT_UPLOAD = ("local",)
SENT_WITH = {"probabilities": "logits"}  # {rule: another rule, which has the same upload}
ENVELOPES = 6  # images that are drawn in an office


# ------------------------------------------------------------------------------------------ the chart
def draw_accuracy_chart(last_rule: str) -> Picture:
    """Draw stored accuracies of the RULES up to `last_rule`: seed 4 as bars, all ten seeds as dots."""
    check_allowed_name("rule", last_rule, RULES)
    names = list(RULES)
    shown_rules = names[: names.index(last_rule) + 1]
    return draw_accuracy_bars_of_seed(
        [make_stored_accuracy_series_of_rule(rule) for rule in shown_rules], SEED
    )


def draw_first_accuracy_chart(outcome_together: Outcome) -> Picture:
    """Draw the chart of lesson 1: one office alone and all ten together, both with seed 4 alone.

    outcome_together: the mean of logits of a run with SETTING
    """
    alone = load_stored_figure_by_seed(__name__, "local")[SEED]
    rows = [
        ("one office alone,\non average", alone, FAINT),
        (
            f"all ten together,\n{format_data_size(outcome_together.ledger.up)}",
            outcome_together.accuracy,
            ACCENT,
        ),
    ]
    with drawing(size=(7.6, 2.2)) as (figure, ax):
        dress(ax, title="Envelopes that are read right", grid="x")
        for place, (_, share, colour) in enumerate(rows):
            ax.barh(place, share, height=0.62, color=colour, ec=QUIET, lw=0.6)
            ax.text(
                share + 0.015, place, format_percent(share), va="center", fontsize=10, color=INK
            )
        ax.set_yticks(range(len(rows)), [name for name, _, _ in rows])
        ax.invert_yaxis()
        ax.set_xlim(0, 1.05)
        ax.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    lines = [(name.replace("\n", " "), format_percent(share)) for name, share, _ in rows]
    parts = [f"{name}: {share}" for name, share in lines]
    return describe_picture(
        figure,
        "Bars of the share of envelopes that are read right",
        make_setting_caption({**FEDERATION, "seed": SEED}, f"seed {SEED}"),
        f"Read right: {join_with_and(parts)}.",
        build_table("who | right", lines),
    )


def make_stored_accuracy_series_of_rule(rule_name: str) -> MethodResults:
    """Make the series of a rule's accuracies by seed. Its name has the bytes that all ten offices upload."""
    name, look = RULES[rule_name]
    if rule_name not in WITHOUT_UPLOAD:
        name += f", {format_data_size(load_upload_bytes_of_all_offices(rule_name))}"
    setting = make_setting_caption({**FEDERATION, "seed": SEED})
    return MethodResults(
        name,
        setting=setting,
        accuracies=load_stored_figure_by_seed(__name__, rule_name),
        method=look,
    )


def load_upload_bytes_of_all_offices(rule_name: str) -> float:
    """Load the bytes that all offices together send for a rule, with seed 4."""
    rule_with_same_upload = SENT_WITH.get(rule_name, rule_name)
    return load_stored_figure_by_seed(__name__, f"{rule_with_same_upload}_up")[SEED]


# ---------------------------------------------------------------------------------------- the offices
def make_federation_of_offices() -> Federation:
    """Make the federation of the story: which office holds which images."""
    return federate(
        SETTING["dataset"], alpha=SETTING["alpha"], clients=SETTING["clients"], seed=SEED
    )


def get_office_name(client_index: int) -> str:
    """Return the name of an office by its number, from 0: 'Elm Court' for 4."""
    return read_toml("course/day/names.toml")[format_client_letters(client_index)]


def draw_offices() -> Picture:
    """Draw the ten offices as houses, each with some of its envelopes."""
    federation = make_federation_of_offices()
    table = []
    with drawing(2, 5, size=(9.4, 4.6)) as (figure, axes):
        for client, ax in enumerate(axes.flat):
            counts = federation.label_counts[client].numpy()
            images = choose_images_spread_over_digits(federation, client)
            draw_office_as_house(ax, client, counts, images)
            table.append(
                (
                    format_client_letters(client),
                    get_office_name(client),
                    int(counts.sum()),
                    describe_number_of_digits_held(counts),
                )
            )
    lonely = [row for row in table if row[3].startswith("only")]
    names = join_with_and([f"{name} ({letter})" for letter, name, _, _ in lonely])
    sentence = f"Ten post offices. {names} have seen only eights."
    return describe_picture(
        figure,
        "Ten houses, a post office each, with images of digits",
        make_setting_caption({**FEDERATION, "seed": SEED}, f"seed {SEED}"),
        sentence,
        build_table("office | name | images | digits", table),
    )


def choose_images_spread_over_digits(
    federation: Federation, client_index: int
) -> list[SingleImage]:
    """Choose ENVELOPES images of a client, spread evenly over its images in the order of their digits."""
    shard = federation.shards[client_index]
    labels = federation.dataset.y_train[shard]
    order = shard[labels.argsort(stable=True)]
    places = np.linspace(0, len(order) - 1, ENVELOPES).round().astype(int)
    return [federation.dataset.x_train[order[place]].numpy() for place in places]


def describe_number_of_digits_held(counts_by_digit: CountPerClass) -> str:
    """Describe a client's counts: 'only “8”' or '5 digits'."""
    held = np.flatnonzero(counts_by_digit)
    if len(held) == 1:
        return f"only “{held[0]}”"
    return f"{len(held)} digits"


def draw_office_as_house(
    ax: Axes, client_index: int, counts_by_digit: CountPerClass, images: Sequence[SingleImage]
) -> None:
    """Draw a roof with the office's letter, its envelopes, its name and how much it holds."""
    is_lonely = np.count_nonzero(counts_by_digit) == 1
    colour = ACCENT if is_lonely else QUIET
    roof = Polygon(
        [(-0.15, 0), (1.5, -0.95), (3.15, 0)], closed=True, fc=colour, ec="none", alpha=0.85
    )
    ax.add_patch(roof)
    ax.add_patch(Rectangle((0, 0), 3, 2.15, fc="none", ec=colour, lw=1.6))
    ax.text(
        1.5,
        -0.33,
        format_client_letters(client_index),
        ha="center",
        va="center",
        color="white",
        fontsize=13,
        weight="bold",
    )
    for place, image in enumerate(images):
        left = 0.12 + place % 3 * 0.96
        top = 0.12 + place // 3 * 0.98
        # White digits on black. A dark page inverts the picture: there they are dark ink on white paper.
        tile = render_tile_pixels(image)[..., 0]
        ax.imshow(tile, cmap="gray", vmin=0, vmax=1, extent=(left, left + 0.84, top + 0.84, top))
    ax.text(
        1.5,
        2.3,
        get_office_name(client_index),
        ha="center",
        va="top",
        color=INK,
        fontsize=10,
        weight="bold",
    )
    words = (
        f"{int(counts_by_digit.sum())} images, {describe_number_of_digits_held(counts_by_digit)}"
    )
    ax.text(
        1.5, 2.72, words, ha="center", va="top", color=colour if is_lonely else QUIET, fontsize=9
    )
    ax.set(xlim=(-0.3, 3.3), ylim=(3.1, -1.05), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


# -------------------------------------------------------------------------------------- one answer
def draw_answer_counts(outcome: Outcome) -> Picture:
    """Draw for each digit how many test images are classified as it, beside how many there are."""
    answers = np.bincount(outcome.test_predictions, minlength=10)
    truth = np.bincount(outcome.test_labels, minlength=10)
    digits = np.arange(10)
    with drawing(size=(7.6, 2.7)) as (figure, ax):
        dress(
            ax,
            title=f"What the ten together call {len(outcome.test_labels)} envelopes",
            x="digit",
            grid="y",
        )
        ax.bar(
            digits - 0.2, truth, width=0.38, color=FAINT, label="what they are", ec=QUIET, lw=0.6
        )
        ax.bar(digits + 0.2, answers, width=0.38, color=ACCENT, label="what the ten say")
        ax.set_xticks(digits)
        ax.legend(frameon=False, fontsize=9, labelcolor=INK, loc="upper left")
    most = int(answers.argmax())
    sentence = (
        f"The ten together call {answers[most]} of {len(outcome.test_labels)} envelopes "
        f"“{most}”. {truth[most]} of them are. So they get {format_percent(outcome.accuracy)} "
        "right."
    )
    table = build_table(
        "digit | images | called so",
        zip(digits.tolist(), truth.tolist(), answers.tolist(), strict=True),
    )
    return describe_picture(
        figure,
        "Bars of answers by digit",
        make_setting_caption({**FEDERATION, "seed": SEED}, f"seed {SEED}"),
        sentence,
        table,
    )


# ------------------------------------------------------------------------------------- the last word
def count_eights(outcome: Outcome) -> int:
    """Count the eights among the test images that are read as eights."""
    is_eight = outcome.test_labels == 8
    return int((outcome.test_predictions[is_eight] == 8).sum())


def draw_eights_without_two_offices() -> Picture:
    """Draw how many of the eights two rules read with all ten offices, and without E and F, from stored runs."""
    bars = []  # (rule, offices, share of the eights, colour)
    for rule in ("afl", "gauss"):
        name = RULES[rule][0]
        for offices, suffix, colour in (
            ("all ten", "", ACCENT),
            ("without E and F", "_without", FAINT),
        ):
            share = load_stored_figure_by_seed(__name__, f"eights_{rule}{suffix}")[SEED]
            bars.append((name, offices, share, colour))
    with drawing(size=(7.6, 2.9)) as (figure, ax):
        dress(ax, title="How many of the eights are read", grid="x")
        for place, (_, _, share, colour) in enumerate(bars):
            ax.barh(place, share, height=0.62, color=colour, ec=QUIET, lw=0.6)
            ax.text(
                share + 0.015, place, format_percent(share), va="center", fontsize=10, color=INK
            )
        ax.set_yticks(range(len(bars)), [f"{name}\n{offices}" for name, offices, _, _ in bars])
        ax.invert_yaxis()
        ax.set_xlim(0, 1.12)
        ax.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    rows = []
    for name, offices, share, _ in bars:
        rows.append((f"{name}, {offices}", format_percent(share)))
    parts = [f"{name} {percent}" for name, percent in rows]
    return describe_picture(
        figure,
        "Bars of the share of eights that are read",
        make_setting_caption({**FEDERATION, "seed": SEED}, f"seed {SEED}"),
        f"Eights that are read: {join_with_and(parts)}.",
        build_table("rule | eights read", rows),
    )
