"""Lesson 06, FuseFL: its worked numbers and its three exercises.

Every number that the lesson quotes is computed when the reader runs the cell, from real runs (digits, five clients,
three seeds, the classroom preset) or from the paper's formulas; nothing is written into the text by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from fedlab_nb.data import load
from fedlab_nb.data.tint import tint_background
from fedlab_nb.draw import Picture
from fedlab_nb.draw.fusefl_halves import signed
from fedlab_nb.draw.words import gap, is_noise
from fedlab_nb.formulas import MIB, fusefl_adaptor_floats
from fedlab_nb.methods.parts.fused_size import TABLE_4, bill
from fedlab_nb.methods.parts.two_cues import two_cues
from fedlab_nb.rng import generator
from fedlab_nb.study import Outcomes, compare

from .fusefl_records import calibration_and_fusion, hurt_by_cues
from .problem import NumberProblem, RecordProblem
from .view import Card, ProblemView

SEEDS, CLIENTS, DATASET = 3, 5, "digits"
RESNET = ("resnet18", (3, 32, 32), 10, 64)


# ------------------------------------------------------------------------------------------------------ runs and views
def runs(methods: str | Sequence[str] = "fusefl", *, alpha: float = 0.1, **settings: Any) -> Outcomes:
    """The lesson's runs; knobs are given as `blocks=1`, `head="average"`."""
    knobs = {f"fusefl.{name}": settings.pop(name) for name in ("blocks", "head", "adaptor") if name in settings}
    return compare(methods, dataset=DATASET, alpha=alpha, clients=CLIENTS, seeds=SEEDS, **settings, **knobs)


def look(panel: Any, view: str, **controls: Any) -> Picture:
    """A view of the lab with its own controls set: `look(panel, "steps", step=5)`."""
    own = panel.own.views[view]
    panel.show(view)
    for name, value in controls.items():
        getattr(own, name).value = value
    return panel.show(view)


def by_seed(outcomes: Sequence[Any], method: str = "fusefl") -> dict[int, float]:
    return {o.setting["seed"]: o.accuracy for o in outcomes if o.method == method}


def change(a: Mapping[int, float], b: Mapping[int, float]) -> str:
    """'+3 ± 1 points' or '−1 ± 2 points, within the noise': mean of a − b over the seeds."""
    difference, wide = gap(a, b)
    text = f"{signed(difference)} ± {100 * wide:.0f} points"
    return text + (", within the noise" if is_noise(difference, wide) else "")


# ------------------------------------------------------------------------------------------------------ the shortcut
def lost(picture: Picture) -> int:
    """Whole percent, off the view's table: mean accuracy of the cue clients on test images without a cue."""
    rows = [row for row in picture.table if row["cue"] == "yes"]
    return round(mean(int(row["test, without a cue"].split()[0]) for row in rows))


def cue_in_bits(real: float = 0.6, spurious: float = 0.9, classes: int = 10) -> Card:
    """The inequality with its numbers, inside one client and over all of them, for H = the shortcut."""
    lines = []
    for where, rho in (("Inside the client", spurious), ("Over all clients", 0.0)):
        cue, short = (two_cues(classes, real, rho)[name] for name in ("real", "shortcut"))
        bound = short["image"] - short["label"]
        verdict = "holds" if short["nuisance"] <= bound + 1e-9 else "is broken"
        lines.append(
            f"{where}: the shortcut tells {short['label']:.2f} bits of the label, the real cue {cue['label']:.2f}. For "
            f"H = the shortcut I(H; R) = {short['nuisance']:.2f}, and I(H; X) − I(H; Y) = {short['image']:.2f} − "
            f"{short['label']:.2f} = {bound:.2f}: the bound {verdict}."
        )
    return Card("worked", "\n".join(lines))


# ------------------------------------------------------------------------------------------------------ the sums
def networks(clients: int, blocks: int) -> float:
    """Size of the fused ResNet-18 (conv adaptor) in ordinary networks, to one decimal."""
    made = bill(RESNET, clients, blocks, "conv")
    return round(made.storage / made.single, 1)


def storage(clients: int = 5, blocks: int = 4) -> Card:
    """The storage formula with its numbers, and the paper's own figure."""
    made = bill(RESNET, clients, blocks, "conv")
    own = made.parts
    adaptors = [fusefl_adaptor_floats([c], clients) for c in own.channels]
    block_sum = " + ".join(f"{n:,}" for n in own.blocks)
    adaptor_sum = " + ".join(f"{n:,}" for n in adaptors)
    printed = TABLE_4[clients][blocks]
    return Card(
        "worked",
        f"ResNet-18, M = {clients} clients of width {own.width}, K = {blocks}.\n"
        f"Blocks of one client: {block_sum} numbers. Its adaptors, M c² + c with c = "
        f"{', '.join(map(str, own.channels))}: {adaptor_sum}. The classifier: {own.head:,}.\n"
        f"4 · [{clients} · {sum(own.blocks):,} + {own.head:,} + {clients} · {sum(adaptors):,}] bytes = "
        f"{made.storage:,} bytes = {made.storage / MIB:.2f} MiB. The paper prints {printed:.2f}.",
    )


def table_4() -> Card:
    """All twelve cells of the paper's Table 4 (conv adaptor) from the formula, and Table 13 as M times them."""
    lines = []
    for clients, row in TABLE_4.items():
        cells = []
        for blocks, printed in row.items():
            made = bill(RESNET, clients, blocks, "conv").storage / MIB
            same = "as printed" if round(made, 2) == printed else f"printed {printed:.2f}"
            cells.append(f"K = {blocks}: {made:.2f} ({same}), times M {clients * made:.0f}")
        lines.append(f"M = {clients}: {'; '.join(cells)}")
    return Card("worked", "MiB.\n" + "\n".join(lines))


def both_directions(clients: int = 5, blocks: int = 4) -> Card:
    """Upload and download of all clients, for FuseFL and for a one-shot method, in the same units."""
    made = bill(RESNET, clients, blocks, "conv")
    up, down = clients * made.client_up / MIB, clients * made.client_down / MIB
    single = clients * made.single / MIB
    return Card(
        "worked",
        f"All {clients} clients, K = {blocks}, MiB: FuseFL {up:.0f} up and {down:.0f} down, a one-shot method "
        f"{single:.0f} up and {single:.0f} down. Of FuseFL's upload {clients * made.statistics / MIB:.1f} are class "
        "statistics, which the paper's table leaves out.",
    )


# ------------------------------------------------------------------------------------------------------ the two halves
EFFECTS = ("it falls by more than 10 points", "it changes by less than 5 points", "it rises by more than 10 points")


def without_fusion() -> str:
    """Which of EFFECTS (or what else) taking the fusion away, but not the calibration, has at α = 0.1."""
    difference, _ = gap(by_seed(runs(blocks=1)), by_seed(runs()))
    if abs(difference) < 0.05:
        return EFFECTS[1]
    return EFFECTS[0] if difference < -0.1 else EFFECTS[2] if difference > 0.1 else "by 5 to 10 points"


# ------------------------------------------------------------------------------------------------------ reality check
def fusing() -> Card:
    """What fusing adds between calibrated networks, what the learnt adaptor adds to the mean, at two α."""
    lines = []
    for alpha in (0.1, 0.5):
        fused, alone, average = runs(alpha=alpha), runs(alpha=alpha, blocks=1), runs(alpha=alpha, adaptor="average")
        lines.append(
            f"α = {alpha:g}: FuseFL {_percent(fused)}, without fusing (K = 1) {_percent(alone)}; fusing changes "
            f"{change(by_seed(fused), by_seed(alone))}. With the mean as adaptor {_percent(average)}; the learnt one "
            f"changes {change(by_seed(fused), by_seed(average))}."
        )
    return Card("worked", "\n".join(lines) + f"\n(Means of {SEEDS} seeds.)")


def _percent(outcomes: Sequence[Any], method: str = "fusefl") -> str:
    return f"{100 * mean(by_seed(outcomes, method).values()):.0f} %"


def random_cues(tint: float = 0.8) -> Card:
    """Test images without a cue and with a random one, of systems with none and with two cue clients, at α = 0.5."""
    data = load(DATASET)
    lines = []
    for spurious, words in (("", "No client has the cue"), ("0,1", "Clients 0 and 1 have it")):
        told = []
        for label, method, more in (
            ("ensemble", "ensemble", {}), ("FuseFL", "fusefl", {}), ("FuseFL without fusing", "fusefl", {"blocks": 1}),
        ):  # fmt: skip
            clean, untied = [], []
            for outcome in runs(method, alpha=0.5, spurious=spurious, **more):
                stream = generator(outcome.setting["seed"], "random cue")
                x = tint_background(data.x_test, data.y_test, tint, classes=data.classes, agree=0, generator=stream)
                clean.append(outcome.accuracy)
                place = outcome.setting["device"]
                untied.append(outcome.model.accuracy(x.to(place), data.y_test.to(place)))
            told.append(f"{label} {100 * mean(clean):.0f} % → {100 * mean(untied):.0f} %")
        lines.append(f"{words}: {', '.join(told)}")
    return Card("worked", "Test images without a cue → with a random cue.\n" + "\n".join(lines) + f"\n({SEEDS} seeds.)")


def toy_storage() -> Card:
    """What “the size of one network” becomes at the size of this lesson."""
    small, large = bill(("mlp", (1, 8, 8), 10, None), CLIENTS, 2, "conv"), bill(RESNET, 50, 8, "conv")
    return Card(
        "worked",
        f"This lesson's perceptron, M = {CLIENTS}, K = 2: the fused model is {small.storage / small.single:.1f} "
        f"ordinary networks, more than an ensemble of {CLIENTS}; {100 * small.adaptors / small.storage:.0f} % of it "
        f"are adaptors. ResNet-18, M = 50, K = 8: {large.storage / large.single:.1f} networks, "
        f"{100 * large.adaptors / large.storage:.0f} % adaptors.",
    )


# ------------------------------------------------------------------------------------------------------ exercises
q1 = ProblemView(
    NumberProblem(
        title="Exercise 1",
        question=(
            "ResNet-18 at M = 10 clients of width 20, cut into K = 2 blocks. The first block ends with 2 · 20 "
            "channels. How many numbers has one client's adaptor in front of its second block?"
        ),
        right_answer=fusefl_adaptor_floats([40], 10),
        tolerance=0.5,
        hints=(
            "It is a 1×1 convolution with bias. It reads all M clients' channels and gives back one client's.",
            "M · c inputs and c outputs make M c² weights; add c for the bias. Here c = 40.",
        ),
        explanation="10 · 40 · 40 + 40 = {answer:,}. It grows with M: this is what breaks the promise of one network.",
        slips=(
            (fusefl_adaptor_floats([20], 10), "the border has 2 · 20 channels, not 20."),
            (fusefl_adaptor_floats([40], 1), "it reads the channels of all 10 clients."),
            (16000, "the bias is missing."),
            (10 * fusefl_adaptor_floats([40], 10), "that is all ten clients' adaptors together."),
        ),
    )
)


def halves_runs() -> Outcomes:
    """Runs that answer exercise 2."""
    return Outcomes([*runs(), *runs(head="average"), *runs(blocks=1)])


q2 = ProblemView(
    RecordProblem(
        title="Exercise 2",
        question=(
            "Use the panel above. Measure both halves of FuseFL on the same federations, at least 3 seeds each, one "
            "change at a time: calibrated against only averaged (knob Classifier), and fused against not fused (knob "
            "Blocks: 2 and 1), both calibrated. Find a setting where calibration is clearly worth it."
        ),
        right_answer=halves_runs,
        hints=(
            "Three runs do: the panel as it is; then Classifier = average; then Classifier = ccvr with Blocks = 1.",
            "Leave α, clients, seed and epochs alone between the three runs. α = 0.1 with 3 seeds is a good place.",
        ),
        explanation="Run K = 2 with ccvr, K = 2 with average, and K = 1 with ccvr. {verdict}",
        claim=calibration_and_fusion,
    )
)


def cue_runs() -> Outcomes:
    """Runs that answer exercise 3."""
    both = ["fusefl", "ensemble"]
    return Outcomes([*runs(both, alpha=0.5), *runs(both, alpha=0.5, spurious="0,1")])


q3 = ProblemView(
    RecordProblem(
        title="Exercise 3",
        question=(
            "Show with your own runs that clients with a spurious cue hurt the ensemble: the same federations with and "
            "without cue clients, at least 3 seeds each. What becomes of FuseFL in the same runs?"
        ),
        right_answer=cue_runs,
        hints=(
            "Use the dropdown Spurious cue: once “no client”, once “clients 0 and 1”. Leave everything else as it is.",
            "At α = 0.5 the clients are good without the cue, so there is something to lose. Set Seeds to 3.",
        ),
        explanation="Run at α = 0.5 with 3 seeds, once without the cue and once with clients 0 and 1. {verdict}",
        claim=hurt_by_cues,
    )
)
