"""The pictures of the story: the offices, their answer, the chart that grows, and what E and F knew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon, Rectangle

from ...data import Federation, federate
from ...declared import read_toml
from ...errors import choose
from ...plots import Picture
from ...plots.accuracy import draw_seed_bars
from ...plots.kit import describe_picture, keep_photo_colours, make_tile
from ...plots.series import Series
from ...plots.style import ACCENT, FAINT, INK, QUIET, drawing, dress
from ...plots.words import (
    FEDERATION,
    build_table,
    data_size,
    format_letters,
    join_words,
    make_setting,
    percent,
)
from ...studies import Outcome
from ..kit.claims import load_stored_values

SEED = 4  # the draw in which two offices hold only eights
SETTING = {"dataset": "digits", "clients": 10, "alpha": 0.1, "seed": SEED}
# {rule of the chart: (its name, whose look it has)}, in the order in which the lessons add them
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
SENT_WITH = {"probabilities": "logits"}  # whose uploads a rule works with
ENVELOPES = 6  # images that are drawn in an office


# ------------------------------------------------------------------------------------------ the chart
def chart(last: str) -> Picture:
    """Seed 4 as bars, ten seeds as dots, for every rule of RULES up to `last`; nothing is trained."""
    choose("rule", last, RULES)
    names = list(RULES)
    rows = [make_row(rule) for rule in names[: names.index(last) + 1]]
    return draw_seed_bars(rows, SEED)


def first_chart(together: Outcome) -> Picture:
    """The chart of lesson 1: one office alone and the ten together on the day, nothing of other days.

    together: the mean of logits of a run with SETTING
    """
    alone = load_stored_values(__name__, "local")[SEED]
    rows = [
        ("one office alone,\non average", alone, FAINT),
        (f"all ten together,\n{data_size(together.ledger.up)}", together.accuracy, ACCENT),
    ]
    with drawing(size=(7.6, 2.2)) as (figure, ax):
        dress(ax, title="Envelopes that are read right", grid="x")
        for place, (_, share, colour) in enumerate(rows):
            ax.barh(place, share, height=0.62, color=colour, ec=QUIET, lw=0.6)
            ax.text(share + 0.015, place, percent(share), va="center", fontsize=10, color=INK)
        ax.set_yticks(range(len(rows)), [name for name, _, _ in rows])
        ax.invert_yaxis()
        ax.set_xlim(0, 1.05)
        ax.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    lines = [(name.replace("\n", " "), percent(share)) for name, share, _ in rows]
    parts = [f"{name}: {share}" for name, share in lines]
    return describe_picture(
        figure,
        "Bars of the share of envelopes that are read right",
        make_setting({**FEDERATION, "seed": SEED}, f"seed {SEED}"),
        f"Read right: {join_words(parts)}.",
        build_table("who | right", lines),
    )


def make_row(rule: str) -> Series:
    """A rule's accuracies by seed, with what all ten offices upload in its name."""
    name, look = RULES[rule]
    if rule not in WITHOUT_UPLOAD:
        name += f", {data_size(compute_upload(rule))}"
    setting = make_setting({**FEDERATION, "seed": SEED})
    return Series(name, setting=setting, accuracies=load_stored_values(__name__, rule), method=look)


def compute_upload(rule: str) -> float:
    """Bytes that all offices send for a rule on the day."""
    return load_stored_values(__name__, f"{SENT_WITH.get(rule, rule)}_up")[SEED]


# ---------------------------------------------------------------------------------------- the offices
def make_federation() -> Federation:
    """Who holds which images on the day."""
    return federate(
        SETTING["dataset"], alpha=SETTING["alpha"], clients=SETTING["clients"], seed=SEED
    )


def name_office(client: int) -> str:
    """'Elm Court' for 4."""
    return read_toml("course/day/names.toml")[format_letters(client)]


def offices() -> Picture:
    """The ten offices as houses, each with some of its envelopes."""
    federation = make_federation()
    table = []
    with drawing(2, 5, size=(9.4, 4.6)) as (figure, axes):
        for client, ax in enumerate(axes.flat):
            counts = federation.label_counts[client].numpy()
            images = choose_images(federation, client)
            draw_house(ax, client, counts, images)
            table.append(
                (
                    format_letters(client),
                    name_office(client),
                    int(counts.sum()),
                    describe_counts(counts),
                )
            )
    lonely = [row for row in table if row[3].startswith("only")]
    names = join_words([f"{name} ({letter})" for letter, name, _, _ in lonely])
    sentence = f"Ten post offices. {names} have seen only eights."
    return describe_picture(
        figure,
        "Ten houses, a post office each, with images of digits",
        make_setting({**FEDERATION, "seed": SEED}, f"seed {SEED}"),
        sentence,
        build_table("office | name | images | digits", table),
    )


def choose_images(federation: Federation, client: int) -> list[np.ndarray]:
    """ENVELOPES images of a client, spread evenly over its images in the order of their digits."""
    shard = federation.shards[client]
    labels = federation.dataset.y_train[shard]
    order = shard[labels.argsort(stable=True)]
    places = np.linspace(0, len(order) - 1, ENVELOPES).round().astype(int)
    return [federation.dataset.x_train[order[place]].numpy() for place in places]


def describe_counts(counts: np.ndarray) -> str:
    """'only “8”' or '5 digits', for a client's counts by digit."""
    held = np.flatnonzero(counts)
    if len(held) == 1:
        return f"only “{held[0]}”"
    return f"{len(held)} digits"


def draw_house(ax: Axes, client: int, counts: np.ndarray, images: Sequence[np.ndarray]) -> None:
    """A roof with the office's letter, its envelopes, its name and how much it holds."""
    is_lonely = np.count_nonzero(counts) == 1
    colour = ACCENT if is_lonely else QUIET
    roof = Polygon(
        [(-0.15, 0), (1.5, -0.95), (3.15, 0)], closed=True, fc=colour, ec="none", alpha=0.85
    )
    ax.add_patch(roof)
    ax.add_patch(Rectangle((0, 0), 3, 2.15, fc="none", ec=colour, lw=1.6))
    ax.text(
        1.5,
        -0.33,
        format_letters(client),
        ha="center",
        va="center",
        color="white",
        fontsize=13,
        weight="bold",
    )
    for place, image in enumerate(images):
        left = 0.12 + place % 3 * 0.96
        top = 0.12 + place // 3 * 0.98
        tile = make_tile(image)[..., 0]
        ax.imshow(tile, cmap="gray", vmin=0, vmax=1, extent=(left, left + 0.84, top + 0.84, top))
    keep_photo_colours(ax)
    ax.text(
        1.5, 2.3, name_office(client), ha="center", va="top", color=INK, fontsize=10, weight="bold"
    )
    words = f"{int(counts.sum())} images, {describe_counts(counts)}"
    ax.text(
        1.5, 2.72, words, ha="center", va="top", color=colour if is_lonely else QUIET, fontsize=9
    )
    ax.set(xlim=(-0.3, 3.3), ylim=(3.1, -1.05), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


# -------------------------------------------------------------------------------------- one answer
def tally(outcome: Outcome) -> Picture:
    """How many of the test images a predictor calls by each digit, beside how many there are."""
    answers = np.bincount(outcome.test_predictions, minlength=10)
    truth = np.bincount(outcome.test_labels, minlength=10)
    digits = np.arange(10)
    with drawing(size=(7.6, 2.7)) as (figure, ax):
        dress(
            ax,
            title=f"What the ten together call {len(outcome.test_labels)} images",
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
        f"The ten together call {answers[most]} of {len(outcome.test_labels)} images “{most}”. "
        f"{truth[most]} of them are. So they get {percent(outcome.accuracy)} right."
    )
    table = build_table(
        "digit | images | called so",
        zip(digits.tolist(), truth.tolist(), answers.tolist(), strict=True),
    )
    return describe_picture(
        figure,
        "Bars of answers by digit",
        make_setting({**FEDERATION, "seed": SEED}, f"seed {SEED}"),
        sentence,
        table,
    )


# ------------------------------------------------------------------------------------- the last word
def count_eights(outcome: Outcome) -> int:
    """How many of the eights among the test images are read as such."""
    is_eight = outcome.test_labels == 8
    return int((outcome.test_predictions[is_eight] == 8).sum())


def without_two() -> Picture:
    """How many of the eights two rules read with all ten offices, and without E and F: declared runs."""
    rows = []
    for rule in ("afl", "gauss"):
        name = RULES[rule][0]
        for words, suffix in (("all ten", ""), ("without E and F", "_without")):
            share = load_stored_values(__name__, f"eights_{rule}{suffix}")[SEED]
            rows.append((f"{name}\n{words}", share, suffix))
    with drawing(size=(7.6, 2.9)) as (figure, ax):
        dress(ax, title="How many of the eights are read", grid="x")
        for place, (_, share, suffix) in enumerate(rows):
            ax.barh(place, share, height=0.62, color=FAINT if suffix else ACCENT, ec=QUIET, lw=0.6)
            ax.text(share + 0.015, place, percent(share), va="center", fontsize=10, color=INK)
        ax.set_yticks(range(len(rows)), [name for name, _, _ in rows])
        ax.invert_yaxis()
        ax.set_xlim(0, 1.12)
        ax.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    parts = [f"{name.replace(chr(10), ', ')} {percent(share)}" for name, share, _ in rows]
    return describe_picture(
        figure,
        "Bars of the share of eights that are read",
        make_setting({**FEDERATION, "seed": SEED}, f"seed {SEED}"),
        f"Eights that are read: {join_words(parts)}.",
        build_table(
            "rule | eights read",
            [(name.replace("\n", ", "), percent(share)) for name, share, _ in rows],
        ),
    )
