"""The course's story: ten post offices, one upload, and two offices that know only eights (digits, α = 0.1, seed 4).

story.scene(weights, logits, probabilities)     how loud each office is, and what three averages of them answer
story.bars(["fedavg", "logits"])                seed 4 as a bar, the mean of ten seeds as a mark, from stored rows
story.bars()                                    the same for every rule of the course, for its last lesson
story.hospitals()                               a real case: four hospitals, and how many of their patients are ill
story.introduce()                               who holds what at seed 0, of which most lessons draw pictures
"""

from collections.abc import Sequence

import numpy as np

from ...data import federate, load
from ...plots import Picture, partition
from ...plots.accuracy import one_seed
from ...plots.identity import shorten_title
from ...plots.kit import heat_map, stacked, tiles, told
from ...plots.series import Series
from ...plots.style import ACCENT, FAINT, INK, drawing, dress, legend
from ...plots.words import FEDERATION, letter, listed, percent, setting_of, tabled
from ...studies import Outcome, stored_results
from ...studies.lesson_runs import ALPHA, CLIENTS, DATASET, title
from ..kit.claims import stored_values

SEED = 4  # the draw in which two clients hold only eights
NAMES = {
    "local": "one client alone",
    "fedavg": "FedAvg",
    "logits": "mean of logits",
    "ensemble": "mean of probabilities",
}
LOOKS = {"logits": "FedENS"}  # whose look a rule has that is no method
# From the averages to what needs none: students, weights by sureness, trained weights, sums, data.
RULES = (
    *NAMES,
    "feddf",
    "dense",
    "coboosting",
    "fedet",
    "fens",
    "fusefl",
    "fedlpa",
    "regmean",
    "afl",
    "distilled",
    "gauss",
)


def bars(rules: Sequence[str] = RULES) -> Picture:
    """Seed 4 and the mean of ten seeds for names of `RULES`; nothing is trained."""
    setting = setting_of({**FEDERATION, "seed": SEED})
    rows = []
    for rule in rules:
        method = LOOKS.get(rule, rule)
        rows.append(Series(name(rule), setting=setting, accuracies=accuracies(rule), method=method))
    return one_seed(rows, SEED)


def name(rule: str) -> str:
    """What a rule of `RULES` is called in a picture."""
    return NAMES.get(rule) or shorten_title(title(rule))


def accuracies(rule: str) -> dict[int, float]:
    """{seed: accuracy} as stored: the mean of logits among this lesson's figures, the others in the
    table of the digits.
    """
    if rule == "logits":
        return stored_values(__name__, "predictions")
    return stored_results.load().accuracies(rule, ALPHA, CLIENTS)


def scene(weights: Outcome, logits: Outcome, probabilities: Outcome) -> Picture:
    """Left: each client's largest logit, mean over the test images. Right: how often each rule
    answers each digit.
    """
    client_logits = logits.test_features.reshape(len(logits.test_labels), CLIENTS, -1)  # [N, M, C]
    largest = client_logits.max(2).mean(0)
    offices = {}
    for k, counts in enumerate(logits.label_counts):
        offices[office(k, counts)] = {"logit": float(largest[k])}
    rows = {"true digits": np.bincount(logits.test_labels, minlength=10)}
    descriptions = []
    for rule, outcome in (
        ("FedAvg", weights),
        ("mean of logits", logits),
        ("mean of probabilities", probabilities),
    ):
        answers = np.bincount(outcome.test_predictions, minlength=10)
        accuracy = percent(outcome.accuracy)
        rows[f"{rule}: {accuracy}"] = answers
        descriptions.append(
            f"{rule} {accuracy}, most often “{answers.argmax()}” ({answers.max()} images)"
        )
    with drawing(1, 2, width_ratios=[1, 1.7]) as (figure, (left, right)):
        dress(left, title="Largest logit", x="mean over the test images", grid="x")
        stacked(left, offices, {"logit": ACCENT})
        heat_map(right, np.array(list(rows.values()), float), top=360, text="{:.0f}".format)
        dress(right, title="How many of the 360 images are called …", x="digit")
        right.set_xticks(range(10))
        labels = [row.replace(" of ", " of\n").replace(": ", "\n") for row in rows]
        right.set_yticks(range(len(rows)), labels)
    table = []
    for rule, answers in rows.items():
        table.append({"rule": rule, **{str(c): int(n) for c, n in enumerate(answers)}})
    return told(
        figure,
        "How loud each client is, and what averages answer",
        setting_of({**FEDERATION, "seed": SEED}, f"seed {SEED}"),
        f"Largest logit {largest.max():.1f}, smallest {largest.min():.1f}. "
        f"Right: {listed(descriptions)}.",
        table,
    )


def office(client: int, counts: np.ndarray) -> str:
    """'office E: only “8”' where a client has images of one digit, else 'office D'."""
    name = f"office {letter(client)}"
    held = np.flatnonzero(counts)
    if len(held) == 1:
        name += f": only “{held[0]}”"
    return name


def digits(clients: Sequence[int] = (4, 8), count: int = 12) -> Picture:
    """The first images of two offices, and who holds how many of which digit."""
    federation = federate(DATASET, alpha=ALPHA, clients=CLIENTS, seed=SEED)
    rows = []
    sentences = []
    for k in clients:
        images = federation.dataset.x_train[federation.shards[k][:count]]
        rows.append((f"office {letter(k)}", [image.numpy() for image in images]))
        held = []
        for digit, number in enumerate(federation.label_counts[k].tolist()):
            if number:
                held.append(f"{number} × “{digit}”")
        sentences.append(f"Office {letter(k)} holds {listed(held)}.")
    with drawing(size=(9, 2)) as (figure, ax):
        tiles(ax, rows)
    setting = setting_of({**FEDERATION, "seed": SEED}, f"seed {SEED}")
    return told(figure, "Images of two clients", setting, " ".join(sentences))


def hospitals() -> Picture:
    """How many patients each hospital of `heart` has for training, and how many of them are ill."""
    data = load("heart")
    counts = np.zeros((len(data.client_names), 2), int)
    np.add.at(counts, (data.client_train.numpy(), data.y_train.numpy()), 1)
    rows = []
    parts = {}
    descriptions = []
    for name, (well, ill) in zip(data.client_names, counts.tolist(), strict=True):
        rows.append((name, ill, well))
        parts[name] = {"ill": ill, "not ill": well}
        descriptions.append(f"{name} {ill} of {well + ill}")
    with drawing(size=(7.5, 2.3)) as (figure, ax):
        dress(ax, title="Patients of four hospitals, for training", grid="x")
        ends = stacked(ax, parts, {"ill": ACCENT, "not ill": FAINT})
        for i, ((_, ill, well), end) in enumerate(zip(rows, ends, strict=True)):
            text = f"{percent(ill / (ill + well))} ill"
            ax.text(end + 3, i, text, va="center", fontsize=9.5, color=INK)
        ax.set_xlim(0, max(ends) * 1.14)
        legend(ax, loc="lower right", ncols=2, bbox_to_anchor=(1, 1))
    return told(
        figure,
        "Patients of four hospitals",
        "heart",
        f"Ill are, for training: {listed(descriptions)}.",
        tabled("hospital | ill | not ill", rows),
    )


def introduce() -> Picture:
    """Who holds what in the ten post offices of seed 0."""
    return partition(
        federate(DATASET, alpha=ALPHA, clients=CLIENTS, seed=0),
        setting=setting_of(FEDERATION, "seed 0"),
    )
