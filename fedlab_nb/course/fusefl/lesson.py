"""Lesson 06, FuseFL: its worked numbers. Its exercises (`lesson.q1` …) are in `exercises`.

Every number that the lesson quotes is computed when the reader runs the cell, from real runs (digits, five clients,
three seeds, the classroom preset) or from the paper's formulas; nothing is written into the text by hand.
"""

from collections.abc import Sequence
from statistics import mean

from ...comm.formulas import MIB, fusefl_adaptor_floats
from ...data import load
from ...labs.fusefl.cue import with_and_without_cue
from ...labs.fusefl.storage import PAPER, TABLE_4, bill
from ...labs.fusefl.two_cues import cue_over_clients, two_cues
from ...plots import Picture
from ...plots.words import mean_percent
from ...study import Outcome
from ...study.lesson_runs import MANY, SEEDS, accuracies, percent
from ...study.statistics import difference
from ..kit.view import Card, worked
from .exercises import CLIENTS, change, q1, q2, q3, q4, runs

__all__ = ["q1", "q2", "q3", "q4"]


# ------------------------------------------------------------------------------------------------------ the shortcut
def lost(picture: Picture) -> int:
    """Whole percent, off the view's table: mean accuracy of the cue clients on test images without a cue."""
    rows = [row for row in picture.table if row["cue"] == "yes"]
    return round(mean(int(row["test, without a cue"].split()[0]) for row in rows))


def cue_in_bits(real: float = 0.6, spurious: float = 0.9, classes: int = 10) -> Card:
    """The inequality with its numbers, inside one client and over all of them, for H = the shortcut."""
    lines = []
    for where, rho in (("Inside the client", spurious), ("Over clients with cues of their own", 0.0)):
        cue, short = two_cues(classes, real, rho)
        lines.append(
            f"{where}: the shortcut has {short.label:.2f} bits about the label, the real cue {cue.label:.2f}. For H = "
            f"the shortcut I(H; R) = {short.nuisance:.2f}, and I(H; X) − I(H; Y) = {short.image:.2f} − "
            f"{short.label:.2f} = {short.bound:.2f}: the bound {'is broken' if short.broken else 'holds'}."
        )
    return worked(*lines)


def premise(outcomes: Sequence[Outcome]) -> Card:
    """How far the lemma's premise is from true in the federation of section 1: cue and label over all clients."""
    o = next(iter(outcomes))
    marked = [int(k) for k in o.settings.spurious.split(",") if k]
    shared, label = cue_over_clients(o.label_counts, marked)
    alone, _ = cue_over_clients(o.label_counts, marked[:1])
    return worked(
        "The lemma's premise: over all clients' images together the cue tells 0 bits about the label.",
        f"Here clients {o.settings.spurious.replace(',', ' and ')} have the cue, and it tells {shared:.1f} of the "
        f"label's {label:.1f} bits. If only client {marked[0]} had it, it would tell {alone:.1f} bits.",
        "So the premise is false here, and the lemma says nothing about this run.",
    )


# ------------------------------------------------------------------------------------------------------ the sums
def networks(clients: int, blocks: int) -> float:
    """Size of the fused ResNet-18 (conv adaptor) in ordinary networks, to one decimal."""
    made = bill(PAPER, clients, blocks)
    return round(made.storage / made.single, 1)


def storage(clients: int = 5, blocks: int = 4) -> Card:
    """The storage formula with its numbers, and the paper's own figure."""
    made = bill(PAPER, clients, blocks)
    own = made.parts
    adaptors = [fusefl_adaptor_floats([c], clients) for c in own.channels]
    block_sum, adaptor_sum = (" + ".join(f"{n:,}" for n in numbers) for numbers in (own.blocks, adaptors))
    return worked(
        f"ResNet-18, M = {clients} clients of width {own.width}, K = {blocks}.",
        f"Blocks of one client: {block_sum} numbers. Its adaptors, M r² + r with r = "
        f"{', '.join(map(str, own.channels))}: {adaptor_sum}. The classifier: {own.head:,}.",
        f"4 · [{clients} · {sum(own.blocks):,} + {own.head:,} + {clients} · {sum(adaptors):,}] bytes = "
        f"{made.storage:,} bytes = {made.storage / MIB:.2f} MiB. The paper prints {TABLE_4[clients][blocks]:.2f}.",
    )


def table_4() -> Card:
    """All twelve cells of the paper's Table 4 (conv adaptor) from the formula, and Table 13 as M times them."""
    lines = []
    for clients, row in TABLE_4.items():
        cells = []
        for blocks, printed in row.items():
            made = bill(PAPER, clients, blocks).storage / MIB
            same = "as printed" if round(made, 2) == printed else f"printed {printed:.2f}"
            cells.append(f"K = {blocks}: {made:.2f} ({same}), times M {clients * made:.0f}")
        lines.append(f"M = {clients}: {'; '.join(cells)}")
    return worked("MiB.", *lines)


def both_directions(clients: int = 5, blocks: int = 4) -> Card:
    """Upload and download of all clients, for FuseFL and for a one-shot method, in the same units."""
    made = bill(PAPER, clients, blocks)
    sizes = (made.client_up, made.client_down, made.single, made.statistics)
    up, down, single, statistics = (clients * size / MIB for size in sizes)
    return worked(
        f"All {clients} clients, K = {blocks}, MiB: FuseFL {up:.0f} up and {down:.0f} down, a one-shot method "
        f"{single:.0f} up and {single:.0f} down. Of FuseFL's upload {statistics:.1f} are class statistics, which the "
        "paper's table leaves out."
    )


# ------------------------------------------------------------------------------------------------------ the two halves
EFFECTS = ("it falls by more than 10 points", "it changes by less than 5 points", "it rises by more than 10 points")


def without_fusion() -> str:
    """Which of EFFECTS (or what else) taking the fusion away, but not the calibration, has at α = 0.1."""
    change = difference(accuracies(runs(blocks=1), "fusefl"), accuracies(runs(), "fusefl")).mean
    if abs(change) < 0.05:
        return EFFECTS[1]
    return EFFECTS[0] if change < -0.1 else EFFECTS[2] if change > 0.1 else "by 5 to 10 points"


# ------------------------------------------------------------------------------------------------------ reality check
def fusing() -> Card:
    """What fusing adds between calibrated networks, what the learnt adaptor adds to the mean, at two α."""
    lines = []
    for alpha in (0.1, 0.5):
        outcomes = [runs(alpha=alpha, seeds=MANY, **knobs) for knobs in ({}, {"blocks": 1}, {"adaptor": "average"})]
        fused, alone, average = (f"{percent(each, 'fusefl'):.0f} %" for each in outcomes)
        own, *others = (accuracies(each, "fusefl") for each in outcomes)
        by_fusing, by_learning = (change(own, other) for other in others)
        lines.append(
            f"α = {alpha:g}: FuseFL {fused}, without fusing (K = 1) {alone}. Fusing changes {by_fusing}. With the mean "
            f"as adaptor {average}. The learnt adaptor changes {by_learning}."
        )
    return worked(*lines, f"(Means of {MANY} seeds.)")


def random_cues() -> Card:
    """Test images without a cue and with a random one, of systems with none and with two cue clients, at α = 0.5."""
    systems = {"ensemble": {"methods": "ensemble"}, "FuseFL": {}, "FuseFL without fusing": {"blocks": 1}}
    data, lines = load("digits"), []
    for spurious, words in (("", "No client has the cue"), ("0,1", "Clients 0 and 1 have it")):
        parts = []
        for label, options in systems.items():
            clean, untied = [], []
            for o in runs(alpha=0.5, spurious=spurious, **options):
                x = with_and_without_cue(data, o.settings.tint, o.settings.seed, o.settings.cue)["untied"]
                clean.append(o.accuracy)
                untied.append(float((o.predict(x) == data.y_test.numpy()).mean()))
            parts.append(f"{label} {mean_percent(clean)} → {mean_percent(untied)}")
        lines.append(f"{words}: {', '.join(parts)}")
    return worked("Test images without a cue → with a random cue.", *lines, f"({SEEDS} seeds.)")


def toy_storage() -> Card:
    """What “the size of one network” becomes at the size of this lesson."""
    small, large = bill(("mlp", (1, 8, 8), 10, None), CLIENTS, 2), bill(PAPER, 50, 8)
    return worked(
        f"This lesson's perceptron, M = {CLIENTS}, K = 2: the fused model is {small.storage / small.single:.1f} "
        f"ordinary networks, more than an ensemble of {CLIENTS}. {100 * small.adaptors / small.storage:.0f} % of it "
        f"are adaptors. ResNet-18, M = 50, K = 8: {large.storage / large.single:.1f} networks, "
        f"{100 * large.adaptors / large.storage:.0f} % adaptors.",
    )
