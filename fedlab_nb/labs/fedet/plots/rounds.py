"""Fed-ET's feedback loop, round by round: the large model between two overwritings of its head, and the small ones.

`one_shot` is the same for a single round: the student on its way up to what its teachers say.
"""

from collections.abc import Mapping, Sequence
from statistics import mean

from ....methods.fedet.model import FedETReport
from ....plots.axes import DOTS, few_ticks, percent_axis, seed_lines, two_axes
from ....plots.style import ACCENT, QUIET, SECOND, SERIES, Picture, drawing, dress, heading, legend, look
from ....plots.words import percent, seeds_of

# name -> (label, colour, marker, line, hollow); the order is that of the legends
SERVER = {
    "consensus": ("consensus of the clients", QUIET, "", "--", False),
    "server_before": ("head overwritten", SECOND, "v", "", True),
    "server_after": ("after distillation", ACCENT, "o", "-", False),
}
SMALL = {
    "clients": ("clients after local steps", QUIET, "", "-", False),
    "small_before": ("averaged by kind", SERIES[3], "s", "", True),
    "small_after": ("server's head copied in", SERIES[2], "D", "-", False),
    "dissent": ("votes against the consensus", SECOND, "", ":", False),
}


def rounds(curves: Mapping[str, Mapping[int, float]], *, setting: str, marked: int, total: int) -> Picture:
    """`curves`: {name of SERVER or SMALL: {round from 1: share 0–1}}; what is not known yet may be missing."""
    with two_axes(left=0.115, bottom=0.37, between=0.06, sharey=True) as (figure, left, right):
        dress(left, title="The large model", x="round", y="accuracy on test samples", grid="y")
        dress(right, title="The small models", x="round", grid="y")
        before, after = (curves.get(name, {}) for name in ("server_before", "server_after"))
        zigzag = sorted([*((t - 0.5, a) for t, a in before.items()), *after.items()])
        if zigzag:
            left.plot(*zip(*zigzag, strict=True), color=ACCENT, lw=1.2, alpha=0.6, zorder=1)
        for ax, kinds in ((left, SERVER), (right, SMALL)):
            for name, (label, colour, marker, line, hollow) in kinds.items():
                of = dict(sorted(curves.get(name, {}).items()))
                if of:
                    t = [k - 0.5 * (name == "server_before") for k in of]
                    style = {"marker": marker or None, "ls": line or "none", "mfc": "white" if hollow else colour}
                    ax.plot(t, list(of.values()), color=colour, lw=1.8, ms=5.5, label=label, **style)
            ax.axvline(marked, color=QUIET, lw=1, ls=DOTS, zorder=0)
            ax.set_xlim(0.3, total + 0.4)
            few_ticks(ax, "x", 8, whole=True)
            percent_axis(ax, top=1.02)
            if ax.get_legend_handles_labels()[0]:
                legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.19), ncol=1, borderaxespad=0)
    labels = {name: line[0] for name, line in {**SERVER, **SMALL}.items()}
    table = [
        {"round": t, **{labels[n]: percent(of[t]) for n, of in curves.items() if t in of}}
        for t in sorted({t for of in curves.values() for t in of})
    ]
    last = ", ".join(f"{labels[n]} {percent(of[max(of)])}" for n, of in curves.items() if of)
    alt = f"Curves over {total} rounds of Fed-ET ({setting}), at the last known one: {last}. Round {marked} is marked."
    return Picture(figure, alt, _sentence(curves, marked, total), table)


def _sentence(curves: Mapping[str, Mapping[int, float]], t: int, total: int) -> str:
    at = {name: of[t] for name, of in curves.items() if t in of}
    parts = []
    if "server_after" in at and "server_before" in at:
        past = curves["server_after"].get(t - 1)
        start = "" if past is None else f" from {percent(past)}"
        before, after = percent(at["server_before"]), percent(at["server_after"])
        parts.append(f"new heads take the server{start} to {before}, distillation to {after}")
    elif "server_after" in at:
        parts.append(f"distillation takes the server to {percent(at['server_after'])}")
    mean_, copied = at.get("small_before"), at.get("small_after")
    if mean_ is not None and copied is not None and mean_ != copied:
        parts.append(f"its head takes the averaged small models from {percent(mean_)} to {percent(copied)}")
    elif "dissent" in at:
        parts.append(f"{percent(at['dissent'])} of the votes go against the consensus")
    if not parts:
        return f"Round {t} of {total} has not been measured."
    text = f"Round {t} of {total}: {'; '.join(parts)}."
    dissent = curves.get("dissent", {})
    if len(dissent) > 1:
        first, last = (percent(dissent[end(dissent)]) for end in (min, max))
        text += f" Dissent went from {first} to {last}."
    return text


def one_shot(
    student: Mapping[int, Sequence[tuple[int, float]]], reports: Mapping[int, FedETReport], *, setting: str
) -> Picture:
    """The student's accuracy, {seed: [(server steps, accuracy)]}; its teachers' consensus and the mean single client
    are in the `reports` of the seeds that are done."""
    with drawing() as (figure, ax):
        dress(ax, x="steps of the server on public samples", y="accuracy on test samples", grid="y")
        heading(ax, "One shot: the student and its teachers")
        steps, middle = seed_lines(ax, student, look("fedet").colour, "o", label="large model at the server", ms=5)
        sentence = f"After {steps[-1]} steps the student is right for {percent(middle[-1])} ({seeds_of(student)})"
        if reports:
            top, low = (
                mean(shares[-1] for shares in of)
                for of in zip(*((r.consensus_accuracy, r.clients_accuracy) for r in reports.values()), strict=True)
            )
            ax.axhline(top, color=SECOND, lw=1.6, ls="--", label="consensus of the clients")
            ax.axhline(low, color=QUIET, lw=1.6, ls="-.", label="one client alone, mean")
            sentence += f"; its teachers' consensus for {percent(top)}, one client alone for {percent(low)}"
        percent_axis(ax, top=1.02)
        ax.set_xlim(0, max(steps) * 1.02)
        legend(ax, loc="best")
    table = [{"server steps": int(s), "student": percent(a)} for s, a in zip(steps, middle, strict=True)]
    each = ", ".join(f"{row['server steps']} steps {row['student']}" for row in table)
    return Picture(figure, f"Accuracy of the student against server steps ({setting}): {each}.", f"{sentence}.", table)
