"""Widget panels: thin wiring between `studies`, which computes, and `plots`, which makes the pictures.

panel = fl.playground(alpha=0.1, methods=["fedavg", "fens"])     # shows itself as the last line of a cell
panel.run(wait=True); panel.outcomes; panel.code(); panel.export("results/mine"); panel.close()
"""

from collections.abc import Iterable
from typing import Any

from .figures import COMPARE, PLAYGROUND
from .lab_view import (
    Extra,
    JobSteps,
    LabSpec,
    LabView,
    PanelState,
    PlannedRuns,
    SilentSteps,
    make_caption_with_seeds,
)
from .link import parse_settings_of_link
from .panel import Panel
from .race import RACE
from .stage_panel import LabPanel, Playground
from .theme import (
    make_slider_player,
    make_widget,
    set_menu_options_and_keep_choice,
    show_widgets_if,
)
from .views import Ink


def playground(*, methods: Iterable[str] | None = None, link: str = "", **options: Any) -> Panel:
    """The playground panel.

    methods:  the methods that are ticked at the start
    link:     begin with what a link of the page without Python says (`fedlab-nb page`, `panel.link()`); what is given
    beside it wins
    options:  starting values of the controls (dataset, alpha, clients, seed, seeds, epochs, device, poison). A dataset
    can be given in every way that `study.run` takes. Any other setting of `study.run` (partition, lr, fens.rounds, …)
    is then used in every run. There are a few more options:
    hide:     for teachers: controls to leave out
    fixed:    for teachers: values that cannot be changed
    inline:   work in the calling thread. This is for notebooks that do not show what threads do, such as Colab, which
    the panel notices by itself. Stop has no effect then
    projector: True begins as the button "Projector: guess first" makes it: larger letters, and each result is covered
    job:      another source of events than `study.job`

    Raises UsageError for a name or value that no control takes.
    """
    options = {"methods": methods, **options} if methods is not None else options
    return Playground(PLAYGROUND, **(parse_settings_of_link(link) | options if link else options))


def comparison(*, methods: Iterable[str] | None = None, **options: Any) -> Panel:
    """All methods on one federation: accuracy, bytes, features, classes, wall time, what each needs and leaks.

    Arguments and errors are those of `playground`.
    """
    return LabPanel(COMPARE, methods=methods, **options)


def race(*, methods: Iterable[str] | None = None, **options: Any) -> Panel:
    """One-shot methods against methods of many rounds, as bytes or seconds are spent. Press Run once, then Play.

    Arguments and errors are those of `playground`.
    """
    return Panel(RACE, methods=methods, **options)
