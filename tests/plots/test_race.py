"""The race and the costs, on hand-made curves."""

import re

import pytest

from fedlab_nb.plots import Series
from fedlab_nb.plots.race import STEPS, Race, at, is_round_based, limits, share
from fedlab_nb.plots.vector import drawn, moved, moves_of

LOCAL = "local training"


def point(phase, sent, accuracy):
    return {"phase": phase, "progress": 0.5, "accuracy": accuracy, "bytes": sent}


ONCE = Series(
    "Once", setting="toy", accuracies={0: 0.6}, up=300, down=100,
    curves=[[point(LOCAL, 100, 0.2), point("fuse", 400, 0.5), point("end", 400, 0.6)]],
)  # fmt: skip
MANY = Series(
    "Many", setting="toy", accuracies={0: 0.9}, up=800, down=800,
    curves=[[point("rounds", 200 * (r + 1), 0.1 * (r + 2)) for r in range(8)]],
)  # fmt: skip
TINY = Series(
    "Tiny rounds", setting="toy", accuracies={0: 0.8}, up=500, down=300,
    curves=[[point(LOCAL, 100, 0.2), point("rule", 600, 0.7), point("rule", 800, 0.8)]],
)  # fmt: skip


def test_a_budget_pays_for_points_up_to_it():
    assert at(ONCE, 399) is None and at(ONCE, 400)["accuracy"] == 0.6
    assert at(MANY, 399)["accuracy"] == pytest.approx(0.2) and at(MANY, 1600)[
        "accuracy"
    ] == pytest.approx(0.9)
    assert limits([ONCE, MANY]) == (200 / 1.1, 1600)
    assert is_round_based(MANY) and not is_round_based(ONCE) and not is_round_based(TINY)


def test_stages_fill_one_after_the_other():
    assert share(ONCE, 50) == (0, 0, 0) and share(ONCE, 100) == (1, 0, 0)
    assert share(ONCE, 250) == (1, 0.5, 0) and share(ONCE, 400) == (1, 1, 1)
    assert share(TINY, 600) == (1, 1, 0) and share(TINY, 700) == (1, 1, 0.5)
    assert share(MANY, 800) == (0.5, 0.5, 0.5)


def test_what_moves_in_a_race():
    view = Race([ONCE, MANY])
    view.show(view.budget(0))
    (key, before), svg = moves_of(view.figure), drawn(view.figure)
    view.show(view.budget(STEPS / 2))
    assert moves_of(view.figure)[0] == key and before["numbers"][0] == ("–", "–")
    sent = moved(view.figure, {name: (shows, "") for name, (shows, _) in before.items()})
    tracks = "".join(part for name, (_, part) in sent.items() if name != "numbers")
    assert sent["numbers"][0] == ("60 %", "30 %") and len(re.findall(r'<g id="', tracks)) >= 9
    assert set(re.findall(r'<g id="(m[^"]+)"', tracks)) <= set(re.findall(r'<g id="(m[^"]+)"', svg))
    assert moved(view.figure, sent) == sent
    view.show(
        view.budget(STEPS / 2 + 1)
    )  # only what is another one is drawn anew: no method has got a point
    again = moved(view.figure, sent)
    assert again["track 0"] is sent["track 0"] and again["now"] != sent["now"]
