"""The characters of the course's federation: found in it, stored for pictures, and marked wherever it is shown."""

import json

import numpy as np
import pytest

from fedlab_nb.course.heterogeneity import story
from fedlab_nb.data import federate
from fedlab_nb.declared import ROOT
from fedlab_nb.plots.characters import SYMBOL, characters, client_name, short_name
from fedlab_nb.plots.words import setting_of

USUAL = {"dataset": "digits", "alpha": 0.1, "clients": 10, "seed": 0}
OURS = setting_of(USUAL, "seed 0")


@pytest.fixture(scope="module")
def cast():
    return story.characters()


def test_pictures_name_the_characters_that_the_federation_has(cast):
    stored = json.loads((ROOT / "plots" / "characters.json").read_text(encoding="utf-8"))
    assert {int(k): name for k, name in stored.items()} == cast.names
    assert len(cast.names) == 3


def test_the_keeper_and_the_tiny_one_by_hand(cast):
    counts = np.asarray(federate("digits", alpha=0.1, clients=10, seed=0).label_counts)
    assert cast.share == counts[cast.keeper, cast.digit] / counts[:, cast.digit].sum() > 0.5
    assert all(counts[k, c] / counts[:, c].sum() <= cast.share for k in range(10) for c in range(10))
    assert cast.images == counts[cast.tiny].sum() == np.delete(counts.sum(1), cast.keeper).min()


def test_the_loud_one_gives_the_largest_logits(cast):
    loud = story.loudness()
    others = [k for k in range(10) if k not in (cast.keeper, cast.tiny)]
    assert cast.loud == max(others, key=lambda k: loud[k])
    assert cast.logit == pytest.approx(loud[cast.loud]) and cast.logit > cast.usual


def test_the_story_in_words_has_the_numbers(cast):
    text = repr(story.who())
    assert f"{SYMBOL} {cast.keeper}, the keeper of the {story.PLURALS[cast.digit]}" in text
    assert f"{cast.images} images" in text and f"{cast.logit:.1f}" in text


CHANGES = [
    {"seed": 1}, {"alpha": 1}, {"clients": 100}, {"dataset": "glyphs"}, {"partition": "iid"}, {"share": 0.5},
    {"size_sigma": 1}, {"minimum": 5}, {"repair": "redraw"},
]  # fmt: skip


def test_the_clients_of_the_course_have_names(cast):
    others = next(c for c in range(10) if c not in cast.names)
    assert characters(OURS) == characters(setting_of(USUAL, "seeds 0–2")) == cast.names
    assert short_name(cast.keeper, OURS) == f"{cast.keeper} {SYMBOL} {cast.names[cast.keeper]}"
    assert SYMBOL not in client_name(others, OURS)


@pytest.mark.parametrize("changed", CHANGES)
def test_clients_of_other_federations_have_no_names(changed, cast):
    other = setting_of({**USUAL, **changed}, "seed 0")
    assert characters(other) == {} and short_name(cast.keeper, other) == str(cast.keeper)
    assert characters(str(OURS)[:]) == characters("") == {}  # words alone
