"""Teacher and student by server epoch, beside flat references."""

from collections.abc import Mapping, Sequence
from statistics import mean

from ...methods import label_of
from ...panels import LabView, PanelState
from ...plots import Picture, drawing, dress, mean_percent, seeds_of, tabled, told
from ...plots.axes import end_labels, few_ticks, level_line, percent_axis, seed_lines
from ...plots.style import INK, QUIET, look
from ...plots.words import apart, seed_words
from .votes import NAMES, server_points

TEACHER, STUDENT = "ensemble (teacher)", "server model (student)"
METHOD = {words: method for method, words in NAMES.items()} | {NAMES["ensemble"]: "FedENS"}


class TeacherAndStudent(LabView):
    """The ensemble's and the server model's accuracy by epoch, beside flat references."""

    name, title = "curves", "Teacher and student"
    empty = "Press Run. The picture then shows the accuracy of ensemble and server model after each server epoch."

    def draw(self, state: PanelState) -> Picture:
        teacher = {seed: o.report.ensemble_curve for seed, o in state.outcomes.items()}
        student = {seed: points for seed, o in state.outcomes.items() if (points := server_points(o))}
        besides = {}
        for method, outcomes in state.others.items():
            if shared := {seed: o.accuracy for seed, o in outcomes.items() if seed in teacher}:
                besides[NAMES.get(method, label_of(method, state.settings))] = shared
        return curves(teacher, student, besides, setting=state.setting, chance=1 / len(state.class_names))


def curves(
    ensemble: Mapping[int, Sequence[float]], server: Mapping[int, Sequence[tuple[float, float]]],
    references: Mapping[str, Mapping[int, float]], *, setting: str, chance: float,
) -> Picture:  # fmt: skip
    """Test accuracy of f̄_w after each epoch `{seed: [T]}` and of the server model `{seed: [(epoch, accuracy), …]}`.

    server: empty where no server model was asked for
    references: `{name: {seed: accuracy}}`, flat lines at their mean over the same seeds;   chance: of guessing
    """
    teacher = {seed: list(enumerate(values, 1)) for seed, values in ensemble.items()}
    first, last = ({seed: values[i] for seed, values in ensemble.items()} for i in (0, -1))
    student = {seed: values[-1][1] for seed, values in server.items()}
    ends = {TEACHER: last, STUDENT: student, **references, "guessing": {0: chance}}
    with drawing() as (figure, ax):
        dress(ax, x="server epoch", y="test accuracy", grid="y")
        labels = []
        for name, values in ends.items():
            colour = {TEACHER: INK, STUDENT: look("coboosting").colour, "guessing": QUIET}.get(name)
            colour = colour or look(METHOD.get(name, name)).colour
            if name in (TEACHER, STUDENT) and values:
                seed_lines(ax, teacher if name == TEACHER else server, colour, "o", clip_on=False)
            elif values:
                level_line(ax, mean(values.values()), colour=colour, lw=1.5)
            if values:
                labels.append((mean(values.values()), f"{name} {mean_percent(values)}", colour))
        ax.set_xlim(1, max(2, *map(len, ensemble.values())))
        percent_axis(ax)
        few_ticks(ax, "x", 10, whole=True)
        end_labels(ax, labels)
    text = f"The ensemble goes from {mean_percent(first)} to {mean_percent(last)} ({against(last, first)})."
    if student:
        text += f" The server model ends at {mean_percent(student)}; against its teacher, {against(student, last)}."
    ends = {f"{TEACHER}, first epoch": first, **ends}
    rows = ((name, mean_percent(values), seed_words(values)) for name, values in ends.items() if values)
    about = f"{setting}, {seeds_of(ensemble)}"
    return told(figure, "Lines of test accuracy by server epoch", about, text, tabled("what | accuracy | seeds", rows))


def against(a: Mapping[int, float], b: Mapping[int, float]) -> str:
    """'+9 ± 4 points, more than noise' of a − b, paired by seed."""
    return apart(a, b, clear="more than noise", one_seed="one seed: nobody can tell whether that is noise")
