"""Teacher and student by server epoch, beside flat references."""

from collections.abc import Mapping, Sequence
from statistics import mean

from ....plots.axes import end_labels, few_ticks, level_line, percent_axis, seed_lines
from ....plots.style import INK, QUIET, Picture, drawing, dress, look
from ....plots.words import apart, mean_percent, percent, seeds_of
from ....study.statistics import difference
from ..numbers import NAMES

TEACHER, STUDENT = "ensemble (teacher)", "server model (student)"
OWN, METHOD = look("coboosting").colour, {words: method for method, words in NAMES.items()}


def curves(
    ensemble: Mapping[int, Sequence[float]], server: Mapping[int, Sequence[tuple[float, float]]],
    references: Mapping[str, Mapping[int, float]], *, setting: str, chance: float,
) -> Picture:  # fmt: skip
    """Test accuracy of f̄_w after each epoch `{seed: [T]}` and of the server model `{seed: [(epoch, accuracy), …]}`.

    server: empty where no server model was asked for
    references: `{name: {seed: accuracy}}`, flat lines at their mean over the same seeds;   chance: of guessing
    """
    with drawing() as (figure, ax):
        dress(ax, x="server epoch", y="test accuracy", grid="y")
        labels = []
        teacher = {seed: list(enumerate(values, 1)) for seed, values in ensemble.items()}
        for name, colour, marker, runs in ((TEACHER, INK, "o", teacher), (STUDENT, OWN, "X", server)):
            if runs:
                _, y = seed_lines(ax, runs, colour, marker, clip_on=False)
                labels.append((y[-1], f"{name} {percent(y[-1])}", colour))
        for name, values in references.items():
            level, colour = mean(values.values()), look(METHOD.get(name, name)).colour
            level_line(ax, level, colour=colour, lw=1.5, ls=(0, (5, 2)))
            labels.append((level, f"{name} {percent(level)}", colour))
        level_line(ax, chance)
        labels.append((chance, "guessing", QUIET))
        ax.set_xlim(1, max(2, *map(len, ensemble.values())))
        percent_axis(ax)
        few_ticks(ax, "x", 10, whole=True)
        end_labels(ax, labels)
    first, last = ({seed: values[i] for seed, values in ensemble.items()} for i in (0, -1))
    student = {seed: values[-1][1] for seed, values in server.items()}
    each = "; ".join(text for _, text, _ in labels)
    alt = f"Lines of test accuracy by server epoch ({setting}, {seeds_of(ensemble)}): {each}."
    rows = {f"{TEACHER}, first epoch": first, f"{TEACHER}, last epoch": last, f"{STUDENT}, last epoch": student}
    table = [
        {"what": name, "accuracy": mean_percent(v), **{f"seed {s}": f"{100 * a:.1f} %" for s, a in v.items()}}
        for name, v in {**rows, **references}.items()
        if v
    ]
    return Picture(figure, alt, sentence(first, last, student), table)


def against(a: Mapping[int, float], b: Mapping[int, float]) -> str:
    """'+9 ± 4 points, more than noise' of a − b, paired by seed."""
    return apart(a, b, clear="more than noise", one_seed="one seed: nobody can tell whether that is noise")


def sentence(first: Mapping[int, float], teacher: Mapping[int, float], student: Mapping[int, float]) -> str:
    rise = f"The ensemble goes from {mean_percent(first)} to {mean_percent(teacher)}"
    end = f" The server model ends at {mean_percent(student)}" if student else ""
    if len(first) == 1:
        end += f", {abs(100 * difference(student, teacher).mean):.0f} points from its teacher." if student else ""
        return f"{rise}.{end} With one seed nobody can tell how much of this is noise."
    end += f"; against its teacher, {against(student, teacher)}." if student else ""
    return f"{rise} ({against(teacher, first)}).{end}"
