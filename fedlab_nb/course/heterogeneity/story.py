"""The course's story: ten post offices that read digits, and who of them is who.

The federation is the default one: digits, α = 0.1, ten clients, seed 0. `characters()` finds three clients in it: the
keeper of a digit, the tiny one and the loud one. `python -m fedlab_nb.course.heterogeneity.story` writes their names to
`plots/characters.json`, from which all pictures take them.

    story.introduce()     # who holds what, the three marked with ✦
    story.who()           # the same in words, with numbers
"""

import json
from dataclasses import dataclass

import numpy as np

from ...data import federate
from ...declared import ROOT
from ...plots import Picture, partition
from ...plots.characters import FEDERATION, SYMBOL
from ...plots.words import percent, setting_of
from ...studies.lesson_runs import ALPHA, CLIENTS, DATASET, LOGITS, by_seed, runs
from ..kit import Card, worked

SEED = 0
PLURALS = ("zeros", "ones", "twos", "threes", "fours", "fives", "sixes", "sevens", "eights", "nines")


@dataclass(frozen=True)
class Characters:
    """Three clients of the course's federation.

    keeper: holds the largest share of any one `digit` (`share`, 0-1)
    tiny:   has the fewest images (`images`), of all clients but the keeper
    loud:   gives the largest logits: `logit` is the mean over the test images of its largest one, `usual` the mean of
            that over all clients; of all clients but the other two
    """

    keeper: int
    digit: int
    share: float
    tiny: int
    images: int
    loud: int
    logit: float
    usual: float

    @property
    def names(self) -> dict[int, str]:
        """{client: what pictures call it}, in the order of the numbers."""
        called = {self.keeper: PLURALS[self.digit], self.tiny: "tiny", self.loud: "loud"}
        return dict(sorted(called.items()))


def label_counts() -> np.ndarray:
    """Images of each client and digit, `[M, C]`."""
    return federate(DATASET, alpha=ALPHA, clients=CLIENTS, seed=SEED).label_counts.numpy()


def loudness() -> np.ndarray:
    """`[M]`: the mean over the test images of each trained client's largest logit."""
    outcome = by_seed(runs("ensemble", seeds=1, **LOGITS), "ensemble")[SEED]
    logits = outcome.test_features.reshape(len(outcome.test_labels), CLIENTS, -1)  # [N, M, C]
    return logits.max(2).mean(0)


def characters() -> Characters:
    """The three clients, found in the federation and in its trained networks."""
    counts, loud = label_counts(), loudness()
    shares, sizes = counts / counts.sum(0), counts.sum(1)
    keeper, digit = map(int, np.unravel_index(shares.argmax(), shares.shape))
    tiny = next(int(k) for k in np.argsort(sizes, kind="stable") if k != keeper)
    loudest = next(int(k) for k in np.argsort(-loud) if k not in (keeper, tiny))
    found = float(loud[loudest]), float(loud.mean())
    return Characters(keeper, digit, float(shares.max()), tiny, int(sizes[tiny]), loudest, *found)


# ------------------------------------------------------------------------------------------------------ in lesson 01
def introduce() -> Picture:
    """Who holds what in the ten post offices."""
    made = federate(DATASET, alpha=ALPHA, clients=CLIENTS, seed=SEED)
    return partition(made, setting=setting_of(FEDERATION, f"seed {SEED}"))


def who() -> Card:
    """The three post offices in words, with their numbers."""
    of, sizes = characters(), label_counts().sum(1)
    name = PLURALS[of.digit]
    return worked(
        f"{SYMBOL} {of.keeper}, the keeper of the {name}: it holds {percent(of.share)} of all {name}.",
        f"{SYMBOL} {of.tiny}, the tiny one: it has {of.images} images; a client has {sizes.mean():.0f} on average.",
        f"{SYMBOL} {of.loud}, the loud one: its largest logit is {of.logit:.1f} on average over the test images; the "
        f"mean of all clients is {of.usual:.1f}.",
    )


if __name__ == "__main__":
    text = json.dumps({str(client): name for client, name in characters().names.items()}, indent=1)
    (ROOT / "plots" / "characters.json").write_text(f"{text}\n", encoding="utf-8")
    print(text)
