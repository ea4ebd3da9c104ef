"""What a class may expect: the lesson with phones, rehearsed on ten seeds without waiting.

    python -m fedlab_nb.live.classroom.expected    # rehearse, write expected.json and the picture

`expected.json` has the accuracies of every way on the package's 360 test digits, 0-1, by class size, step and seed. The
numbers in the guide's run sheet are read from it: `papers/declared/phones.toml` names them, and
`python -m fedlab_nb.papers.declared phones --texts` puts them there.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from ...files import write_file
from ...plots.style import ACCENT, INK, SECOND, drawing
from ...studies.statistics import band
from .rehearse import Student, make_joker_message, make_students
from .room import Room
from .worth import WAYS

ALPHA = 0.1  # the command's own value
DRAWINGS = 8
SIZES = (12, 30)  # students in a class
SEEDS = tuple(range(10))
STEPS = ("reveal", "joker", "forget", "rounds")
STORED = Path(__file__).with_name("expected.json")
NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
PICTURE = NOTEBOOKS / "images" / "class.png"
GUIDE = NOTEBOOKS / "guide" / "class.md"
SHOWN = re.compile(
    r"^!\[.*\]\(\.\./images/class\.png\)$", re.MULTILINE
)  # the line that shows it there

# {step: {title of a way: accuracy}}, and of *forget* the right answers of 360
Played = dict[str, dict[str, float]]


def play_lesson(count: int, seed: int) -> Played:
    """One rehearsed lesson in the order of the run sheet: all send, the joker comes and is taken out, the last student
    is forgotten, and all others stay for the tiny rounds."""
    room = Room(ALPHA, DRAWINGS, seed, clock=lambda: 0.0)
    here = list(make_students(room, count))
    for student in here:
        room.simulated.add(student.seat)
        room.accept(student.text, student.seat)
    played = {"reveal": room.results.read_accuracies()}
    joker = room.assign_seat()["seat"]
    room.add_joker(make_joker_message(seed, joker), joker)
    played["joker"] = room.results.read_accuracies()
    room.take_joker_out()
    effect = room.forget(here.pop().seat)
    played["forget"] = {name: effect[name] for name in ("with_it", "without_it")}
    play_rounds(room, here)
    played["rounds"] = room.results.read_accuracies()
    return played


def play_rounds(room: Room, here: Sequence[Student]) -> None:
    """The tiny rounds, in which every phone answers every time."""
    for student in here:
        room.stay(student.seat, "{}", 0.0)
    room.start_rounds()
    while not room.rounds.is_over:
        for student in here:
            student.answer(room, 0.0)


def play_all() -> dict[str, dict[str, list[Played]]]:
    """{class size: [one rehearsed lesson for each seed]}."""
    torch.set_num_threads(1)  # as in the class itself
    played = {}
    for count in SIZES:
        played[str(count)] = [play_lesson(count, seed) for seed in SEEDS]
        print(f"{count} students: {len(SEEDS)} rehearsals", flush=True)
    return played


# ------------------------------------------------------------------------------------------------------ what is stored
@cache
def load_expected() -> dict[str, list[Played]]:
    """What the last rehearsals have given."""
    return json.loads(STORED.read_text(encoding="utf-8"))


def read_expected(count: int, step: str, title: str) -> dict[int, float]:
    """{seed: accuracy, 0-1} of a way after a step, in a class of so many students."""
    return {
        seed: lesson[step][title]
        for seed, lesson in zip(SEEDS, load_expected()[str(count)], strict=True)
    }


def read_lost_digits(count: int) -> dict[int, float]:
    """{seed: right answers of 360 that AFL loses when one office is forgotten}."""
    lost = {}
    for seed, lesson in zip(SEEDS, load_expected()[str(count)], strict=True):
        lost[seed] = lesson["forget"]["with_it"] - lesson["forget"]["without_it"]
    return lost


# ------------------------------------------------------------------------------------------------------ the picture
def draw_expected(count: int = SIZES[-1]) -> Figure:
    """The bars of the wall in a class of so many students, without the joker, with it, and FENS after the rounds."""
    titles = [title for title in WAYS if title != "FENS"]
    rows = [(WAYS[title]["name"], read_expected(count, "reveal", title)) for title in titles]
    attacked = [read_expected(count, "joker", title) for title in titles]
    rows.append(
        (f"{WAYS['FENS']['name']}, after the rounds", read_expected(count, "rounds", "FENS"))
    )
    with drawing(size=(7.2, 4.2)) as (figure, ax):
        for place, (_, values) in enumerate(rows):
            is_pair = place < len(attacked)
            draw_bar(
                ax, place - 0.19 * is_pair, values, ACCENT, "" if place else "before the joker"
            )
        for place, values in enumerate(attacked):
            draw_bar(ax, place + 0.19, values, SECOND, "" if place else "with the joker")
        ax.set_yticks(range(len(rows)), [name for name, _ in rows])
        ax.invert_yaxis()
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        ax.set_xlabel(
            f"of 360 test digits; {count} students, mean of {len(SEEDS)} rehearsals, 95 % band"
        )
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(loc="upper right", frameon=False)
    return figure


def draw_bar(ax: Any, place: float, values: dict[int, float], colour: str, label: str) -> None:
    """A bar with its band and its number."""
    mean = band(values)
    ax.barh(
        place, mean.mean, 0.36, xerr=mean.half_width, color=colour, ecolor=INK, label=label or None
    )
    end = mean.mean + mean.half_width + 0.01
    ax.text(end, place, f"{100 * mean.mean:.0f}", va="center", fontsize=8, color=INK)


def describe_expected(count: int = SIZES[-1]) -> str:
    """The alt text of the picture: every bar's mean in per cent."""
    parts = []
    for title in WAYS:
        if title == "FENS":
            fens = band(read_expected(count, "rounds", title)).mean
            parts.append(f"{WAYS[title]['name']} after the rounds {100 * fens:.0f} %")
            continue
        before = band(read_expected(count, "reveal", title)).mean
        after = band(read_expected(count, "joker", title)).mean
        parts.append(
            f"{WAYS[title]['name']} {100 * before:.0f} %, with the joker {100 * after:.0f} %"
        )
    rows = "; ".join(parts)
    return f"Bars of right answers among 360 test digits ({count} students, mean of {len(SEEDS)} rehearsals). {rows}."


def main() -> None:
    """Rehearse, write what came out, and draw it."""
    write_file(STORED, json.dumps(play_all(), indent=1) + "\n", force=True)
    load_expected.cache_clear()
    draw_expected().savefig(PICTURE, dpi=130)
    line = f"![{describe_expected()}](../images/class.png)"
    guide = GUIDE.read_text(encoding="utf-8")
    write_file(GUIDE, SHOWN.sub(lambda _: line, guide), force=True)
    print(f"written: {STORED.name}, {PICTURE.name}")


if __name__ == "__main__":
    main()
