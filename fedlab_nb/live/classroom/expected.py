"""What a class may expect: the lesson with phones, rehearsed on ten seeds without waiting.

    python -m fedlab_nb.live.classroom.expected    # rehearse, write expected.json and the picture

`expected.json` has the accuracies (0-1) of every way to combine messages on the package's 360 test digits, by class
size, seed and step. The numbers in the guide's run sheet are read from it: `papers/declared/phones.toml` names them,
and `python -m fedlab_nb.papers.declared phones --texts` puts them there.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...files import write_file
from ...plots.style import ACCENT, INK, SECOND, drawing
from ...studies.statistics import compute_band
from ...value_types import Accuracy0To1
from .rehearse import Student, make_malicious_message, make_simulated_students
from .room import Room
from .worth import WAYS

ALPHA = 0.1  # the default of `fedlab-nb class`
DRAWINGS = 8
SimulatedClassSize = Literal[12, 30]  # number of students
SIZES: tuple[SimulatedClassSize, ...] = (12, 30)
SEEDS = tuple(range(10))
STEPS = ("reveal", "joker", "forget", "rounds")
STORED = Path(__file__).with_name("expected.json")
NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
PICTURE = NOTEBOOKS / "images" / "class.png"
GUIDE = NOTEBOOKS / "guide" / "class.md"
# The line of the guide that shows the picture.
SHOWN = re.compile(r"^!\[.*\]\(\.\./images/class\.png\)$", re.MULTILINE)

# {step: {title of a way: accuracy 0–1}}; for the step *forget* the numbers of right answers of 360,
# {"with_it": …, "without_it": …}
ResultsByStep = dict[str, dict[str, float]]
# {number of students: [results of each seed]}
LessonsByClassSize = dict[str, list[ResultsByStep]]
AccuracyBySeed = dict[int, Accuracy0To1]
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
    results = {"reveal": room.results.get_test_accuracies()}
    joker = room.assign_next_seat()["seat"]
    room.add_malicious_message(make_malicious_message(seed, joker), joker)
    results["joker"] = room.results.get_test_accuracies()
    room.remove_malicious_message()
    effect = room.forget_message(students.pop().seat)
    results["forget"] = {name: effect[name] for name in ("with_it", "without_it")}
    play_all_fens_rounds(room, students)
    results["rounds"] = room.results.get_test_accuracies()
    return results


def play_all_fens_rounds(room: Room, answering_students: Sequence[Student]) -> None:
    """Play the tiny rounds; every student answers every round."""
    for student in answering_students:
        room.handle_round_request(student.seat, "{}", 0.0)
    room.start_fens_rounds()
    while not room.rounds.is_over:
        for student in answering_students:
            student.answer_new_round(room, 0.0)


def simulate_lessons_of_all_class_sizes() -> LessonsByClassSize:
    """Rehearse a lesson for each class size and seed: {class size: [results of each seed]}."""
    torch.set_num_threads(1)  # as in the class itself
    lessons = {}
    for count in SIZES:
        lessons[str(count)] = [simulate_lesson(count, seed) for seed in SEEDS]
        print(f"{count} students: {len(SEEDS)} rehearsals", flush=True)
    return lessons


# ------------------------------------------------------------------------------------------------------ what is stored
@cache
def load_simulated_lessons() -> LessonsByClassSize:
    """Load the results of the last rehearsals."""
    return json.loads(STORED.read_text(encoding="utf-8"))


def read_simulated_accuracies(
    class_size: SimulatedClassSize, step_name: str, method_title: str
) -> AccuracyBySeed:
    """Read {seed: accuracy 0-1} of a way after a step, in a class of `class_size` students."""
    accuracies = {}
    for seed, lesson in zip(SEEDS, load_simulated_lessons()[str(class_size)], strict=True):
        accuracies[seed] = lesson[step_name][method_title]
    return accuracies


def read_digits_lost_without_one_student(class_size: SimulatedClassSize) -> DigitCountBySeed:
    """Read {seed: number of right answers, of 360, that AFL loses when one office is forgotten}."""
    lost = {}
    for seed, lesson in zip(SEEDS, load_simulated_lessons()[str(class_size)], strict=True):
        lost[seed] = lesson["forget"]["with_it"] - lesson["forget"]["without_it"]
    return lost


# ------------------------------------------------------------------------------------------------------ the picture
def draw_bars_of_simulated_accuracies(class_size: SimulatedClassSize = SIZES[-1]) -> Figure:
    """Draw the bars that the projector shows in a class of `class_size` students.

    Each way to combine messages has a bar before the joker came, and one with the joker. FENS has one bar, after the
    rounds.
    """
    titles = [title for title in WAYS if title != "FENS"]
    names = [WAYS[title]["name"] for title in titles]
    names.append(f"{WAYS['FENS']['name']}, after the rounds")
    half_step = 0.19  # from the middle of a row to the middle of each of its two bars
    with drawing(size=(7.2, 4.2)) as (figure, ax):
        for row, title in enumerate(titles):
            accuracies = read_simulated_accuracies(class_size, "reveal", title)
            label = "before the joker" if row == 0 else ""  # one entry in the legend
            draw_mean_bar_with_band(ax, row - half_step, accuracies, ACCENT, label)
        fens_accuracies = read_simulated_accuracies(class_size, "rounds", "FENS")
        draw_mean_bar_with_band(ax, len(titles), fens_accuracies, ACCENT, "")
        for row, title in enumerate(titles):
            accuracies = read_simulated_accuracies(class_size, "joker", title)
            label = "with the joker" if row == 0 else ""
            draw_mean_bar_with_band(ax, row + half_step, accuracies, SECOND, label)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        ax.set_xlabel(
            f"of 360 test digits; {class_size} students, mean of {len(SEEDS)} rehearsals, 95 % band"
        )
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(loc="upper right", frameon=False)
    return figure


def draw_mean_bar_with_band(
    axes: Axes, y: float, accuracy_by_seed: AccuracyBySeed, colour: str, legend_label_or_empty: str
) -> None:
    """Draw a bar of the mean over seeds, with its 95 % band and its number in per cent.

    legend_label_or_empty: in the legend, "" for none
    """
    band = compute_band(accuracy_by_seed)
    axes.barh(
        y,
        band.mean,
        0.36,
        xerr=band.half_width,
        color=colour,
        ecolor=INK,
        label=legend_label_or_empty or None,
    )
    end = band.mean + band.half_width + 0.01
    axes.text(end, y, f"{100 * band.mean:.0f}", va="center", fontsize=8, color=INK)


def describe_simulated_accuracies(class_size: SimulatedClassSize = SIZES[-1]) -> str:
    """Write the alt text of the picture: every bar's mean in per cent."""
    parts = []
    for title in WAYS:
        name = WAYS[title]["name"]
        if title == "FENS":
            fens = compute_band(read_simulated_accuracies(class_size, "rounds", title)).mean
            parts.append(f"{name} after the rounds {100 * fens:.0f} %")
            continue
        before = compute_band(read_simulated_accuracies(class_size, "reveal", title)).mean
        after = compute_band(read_simulated_accuracies(class_size, "joker", title)).mean
        parts.append(f"{name} {100 * before:.0f} %, with the joker {100 * after:.0f} %")
    rows = "; ".join(parts)
    return (
        f"Bars of right answers among 360 test digits ({class_size} students, mean of "
        f"{len(SEEDS)} rehearsals). {rows}."
    )


def rehearse_and_write_results_and_picture() -> None:
    """Rehearse, write the results to `expected.json`, and draw them for the guide."""
    write_file(
        STORED, json.dumps(simulate_lessons_of_all_class_sizes(), indent=1) + "\n", force=True
    )
    load_simulated_lessons.cache_clear()
    draw_bars_of_simulated_accuracies().savefig(PICTURE, dpi=130)
    line = f"![{describe_simulated_accuracies()}](../images/class.png)"
    guide = GUIDE.read_text(encoding="utf-8")
    write_file(GUIDE, SHOWN.sub(lambda _: line, guide), force=True)
    print(f"written: {STORED.name}, {PICTURE.name}")


if __name__ == "__main__":
    rehearse_and_write_results_and_picture()
