"""Widget panels. They connect `studies`, which computes, with `plots`, which draws.

panel = fl.playground(alpha=0.1, methods=["fedavg", "fens"])     # shows itself as the last line of a cell
panel.run(wait=True); panel.outcomes; panel.code(); panel.export("results/mine"); panel.close()
"""

from collections.abc import Iterable
from typing import Any

from .figures import COMPARE, PLAYGROUND
from .lab_view import (
    Extra,
    LabSpec,
    LabView,
    MethodAndArgumentsByName,
    PanelState,
    PausesThenResult,
    ProgressThenResult,
    make_caption_of_settings_and_seeds,
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
    """Make the playground panel.

    methods: the methods that are chosen at the start
    link:    a link of the page without Python (`fedlab-nb page`, `panel.link()`) whose settings are used at the start;
             arguments have precedence over it
    options: starting values of the controls (dataset, alpha, clients, seed, seeds, epochs, device, poison). A data set
             can be given in every way that `fl.run` takes. Any other setting of `fl.run` (partition, lr,
             fens.rounds, …) is used in every run

    Further options:

    hide:      for teachers: controls to leave out
    fixed:     for teachers: {control: value that cannot be changed}
    inline:    work in the calling thread, for notebooks that do not show what threads do, such as Colab (which the
               panel recognises by itself). Stop has no effect then
    projector: True: begin in the mode of the button "Projector: guess first", with larger letters and covered results
    story:     True: the stage calls whoever holds digits a post office, as lesson 1 does
    job:       a function that makes the events of a run, instead of `study.job`

    Raises UsageError for a name or value that no control takes.
    """
    if methods is not None:
        options = {"methods": methods, **options}
    if link:
        options = parse_settings_of_link(link) | options
    return Playground(PLAYGROUND, **options)


def comparison(*, methods: Iterable[str] | None = None, **options: Any) -> Panel:
    """Make the panel with all methods on one federation: accuracy, bytes, features, classes, wall time, what each needs
    and leaks.

    Arguments and errors are those of `playground`.
    """
    return LabPanel(COMPARE, methods=methods, **options)


def race(*, methods: Iterable[str] | None = None, **options: Any) -> Panel:
    """Make the panel with one-shot methods against methods of many rounds, as bytes or seconds are spent.

    Press Run once, then Play.

    Arguments and errors are those of `playground`.
    """
    return Panel(RACE, methods=methods, **options)
