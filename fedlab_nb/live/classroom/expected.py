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

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...files import write_file
from ...plots.style import ACCENT, INK, SECOND, drawing
from ...studies.statistics import compute_band
from .rehearse import Student, make_malicious_message, make_simulated_students
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

# {step: {title of a way: accuracy 0–1}}; for the step *forget* the number of right answers of 360
ResultsByStep = dict[str, dict[str, float]]
# {number of students: [results of each seed]}
LessonsByClassSize = dict[str, list[ResultsByStep]]
AccuracyBySeed = dict[int, float]
DigitCountBySeed = dict[int, float]


def simulate_lesson(student_count: int, seed: int) -> ResultsByStep:
    """Rehearse one lesson in the order of the run sheet.

    All students send, the joker comes and is removed, the last student is forgotten, and all others
    stay for the tiny rounds.
    """
    room = Room(ALPHA, DRAWINGS, seed, clock=lambda: 0.0)
    students = list(make_simulated_students(room, student_count))
    for student in students:
        room.simulated.add(student.seat)
        room.accept_message(student.text, student.seat)
    played = {"reveal": room.results.get_test_accuracies()}
    joker = room.assign_next_seat()["seat"]
    room.add_malicious_message(make_malicious_message(seed, joker), joker)
    played["joker"] = room.results.get_test_accuracies()
    room.remove_malicious_message()
    effect = room.forget_message(students.pop().seat)
    played["forget"] = {name: effect[name] for name in ("with_it", "without_it")}
    play_fens_rounds(room, students)
    played["rounds"] = room.results.get_test_accuracies()
    return played


def play_fens_rounds(room: Room, students: Sequence[Student]) -> None:
    """Play the tiny rounds; every student answers every round."""
    for student in students:
        room.handle_round_request(student.seat, "{}", 0.0)
    room.start_fens_rounds()
    while not room.rounds.is_over:
        for student in students:
            student.answer_new_round(room, 0.0)


def simulate_lessons_of_all_class_sizes() -> LessonsByClassSize:
    """Rehearse a lesson for each class size and seed: {class size: [results of each seed]}."""
    torch.set_num_threads(1)  # as in the class itself
    played = {}
    for count in SIZES:
        played[str(count)] = [simulate_lesson(count, seed) for seed in SEEDS]
        print(f"{count} students: {len(SEEDS)} rehearsals", flush=True)
    return played


# ------------------------------------------------------------------------------------------------------ what is stored
@cache
def load_simulated_lessons() -> LessonsByClassSize:
    """What the last rehearsals have given."""
    return json.loads(STORED.read_text(encoding="utf-8"))


def read_simulated_accuracies(
    student_count: int, step_name: str, method_title: str
) -> AccuracyBySeed:
    """{seed: accuracy, 0-1} of a way after a step, in a class of so many students."""
    return {
        seed: lesson[step_name][method_title]
        for seed, lesson in zip(SEEDS, load_simulated_lessons()[str(student_count)], strict=True)
    }


def read_digits_lost_without_one_student(student_count: int) -> DigitCountBySeed:
    """{seed: right answers of 360 that AFL loses when one office is forgotten}."""
    lost = {}
    for seed, lesson in zip(SEEDS, load_simulated_lessons()[str(student_count)], strict=True):
        lost[seed] = lesson["forget"]["with_it"] - lesson["forget"]["without_it"]
    return lost


# ------------------------------------------------------------------------------------------------------ the picture
def draw_simulated_accuracies(student_count: int = SIZES[-1]) -> Figure:
    """The bars of the wall in a class of so many students, without the joker, with it, and FENS after the rounds."""
    titles = [title for title in WAYS if title != "FENS"]
    rows = [
        (WAYS[title]["name"], read_simulated_accuracies(student_count, "reveal", title))
        for title in titles
    ]
    attacked = [read_simulated_accuracies(student_count, "joker", title) for title in titles]
    rows.append(
        (
            f"{WAYS['FENS']['name']}, after the rounds",
            read_simulated_accuracies(student_count, "rounds", "FENS"),
        )
    )
    with drawing(size=(7.2, 4.2)) as (figure, ax):
        for place, (_, values) in enumerate(rows):
            is_pair = place < len(attacked)
            draw_mean_bar_with_band(
                ax, place - 0.19 * is_pair, values, ACCENT, "" if place else "before the joker"
            )
        for place, values in enumerate(attacked):
            draw_mean_bar_with_band(
                ax, place + 0.19, values, SECOND, "" if place else "with the joker"
            )
        ax.set_yticks(range(len(rows)), [name for name, _ in rows])
        ax.invert_yaxis()
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        ax.set_xlabel(
            f"of 360 test digits; {student_count} students, mean of {len(SEEDS)} rehearsals, 95 % band"
        )
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(loc="upper right", frameon=False)
    return figure


def draw_mean_bar_with_band(
    axes: Axes, y: float, accuracy_by_seed: AccuracyBySeed, colour: str, label: str
) -> None:
    """Draw a bar with its band and its number."""
    mean = compute_band(accuracy_by_seed)
    axes.barh(
        y, mean.mean, 0.36, xerr=mean.half_width, color=colour, ecolor=INK, label=label or None
    )
    end = mean.mean + mean.half_width + 0.01
    axes.text(end, y, f"{100 * mean.mean:.0f}", va="center", fontsize=8, color=INK)


def describe_simulated_accuracies(student_count: int = SIZES[-1]) -> str:
    """Write the alt text of the picture: every bar's mean in per cent."""
    parts = []
    for title in WAYS:
        if title == "FENS":
            fens = compute_band(read_simulated_accuracies(student_count, "rounds", title)).mean
            parts.append(f"{WAYS[title]['name']} after the rounds {100 * fens:.0f} %")
            continue
        before = compute_band(read_simulated_accuracies(student_count, "reveal", title)).mean
        after = compute_band(read_simulated_accuracies(student_count, "joker", title)).mean
        parts.append(
            f"{WAYS[title]['name']} {100 * before:.0f} %, with the joker {100 * after:.0f} %"
        )
    rows = "; ".join(parts)
    return (
        f"Bars of right answers among 360 test digits ({student_count} students, mean of "
        f"{len(SEEDS)} rehearsals). {rows}."
    )


def main() -> None:
    """Rehearse, write what came out, and draw it."""
    write_file(
        STORED, json.dumps(simulate_lessons_of_all_class_sizes(), indent=1) + "\n", force=True
    )
    load_simulated_lessons.cache_clear()
    draw_simulated_accuracies().savefig(PICTURE, dpi=130)
    line = f"![{describe_simulated_accuracies()}](../images/class.png)"
    guide = GUIDE.read_text(encoding="utf-8")
    write_file(GUIDE, SHOWN.sub(lambda _: line, guide), force=True)
    print(f"written: {STORED.name}, {PICTURE.name}")


if __name__ == "__main__":
    main()
