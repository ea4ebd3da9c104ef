"""Each method has a look of its own, which is the same in every picture, whichever methods stand beside it."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from fedlab_nb import plots
from fedlab_nb.declared import read_toml
from fedlab_nb.methods import METHODS, choose_method_label
from fedlab_nb.methods.afl import OWN_FITS
from fedlab_nb.plots import MethodResults
from fedlab_nb.plots.identity import choose_distinct_looks, get_method_look, shorten_method_title
from fedlab_nb.plots.race import RacePicture
from fedlab_nb.plots.stored_curves import StoredPlot
from fedlab_nb.plots.study import draw_accuracy_lines_with_bands, plot_study
from fedlab_nb.plots.style import ACCENT, INK, SECOND
from fedlab_nb.studies.results import Results

METHODS_WITH_A_COLOUR = (
    "local centralized fedavg ensemble fens fedlpa fusefl fedet coboosting dense fedavg_multi"
).split()
# Colours that pictures also use for marks, and for bytes up and down.
MARK_COLOURS = {colour.lower() for colour in (ACCENT, SECOND, INK)}


def make_method_results(method, level=0.8):
    curve = [{"phase": "local training", "progress": 0.5, "accuracy": 0.3, "bytes": 1}]
    curve += [
        {"phase": "end", "progress": p, "accuracy": p * level, "bytes": 1000 * p}
        for p in (0.6, 1.0)
    ]
    title = choose_method_label(method)
    return MethodResults(
        title, accuracies={0: level}, up=1e3, down=1e3, curves=[curve], phases={"x": (1e3, 1e3)}
    )


def test_every_method_has_a_look_of_its_own():
    looks = {name: get_method_look(name) for name in METHODS}
    # Without methods that a test has registered.
    package = {name for name, cls in METHODS.items() if cls.__module__.startswith("fedlab_nb.")}
    assert set(read_toml("methods/looks.toml")) - {"FedENS", OWN_FITS} <= package
    assert len(set(looks.values())) == len(looks) >= 26
    assert len({looks[name].colour for name in METHODS_WITH_A_COLOUR}) == len(METHODS_WITH_A_COLOUR)
    for a, b in combinations(METHODS_WITH_A_COLOUR, 2):
        assert np.abs(np.subtract(to_rgb(looks[a].colour), to_rgb(looks[b].colour))).max() > 0.15, (
            a,
            b,
        )


def test_a_method_is_found_by_name_title_and_short_name():
    for name, method in METHODS.items():
        assert (
            get_method_look(method.info.title)
            == get_method_look(shorten_method_title(method.info.title))
            == get_method_look(name)
        ), name
    assert get_method_look("fens (rounds = 3)") == get_method_look("fens")
    assert get_method_look("FedAvg, T rounds, run 2") == get_method_look("fedavg_multi")
    # Variants of a method share its colour, and have different markers or lines.
    styles = choose_distinct_looks(["fens (rounds = 1)", "fens (rounds = 9)", "fens"])
    assert len(set(styles.values())) == 3
    assert {look.colour for look in styles.values()} == {get_method_look("fens").colour}


def test_the_two_ensembles_are_never_drawn_alike():
    """By label, short label, series and study: two colours and two markers."""
    labels = [
        choose_method_label("ensemble", {"ensemble.rule": rule})
        for rule in ("logits", "probabilities")
    ]
    rows = [
        {"method": "ensemble", "seed": 0, "accuracy": 0.5, "ensemble.rule": r}
        for r in ("logits", "probabilities")
    ]
    assert [Results(rows, ("ensemble.rule",)).label(row) for row in rows] == labels
    look, other_look = pair = [get_method_look(name) for name in labels]
    assert (
        pair
        == [get_method_look(shorten_method_title(name)) for name in labels]
        == [MethodResults(name).look for name in labels]
    )
    assert list(choose_distinct_looks(labels).values()) == pair
    assert other_look == get_method_look("ensemble")
    assert look.colour != other_look.colour and look.marker != other_look.marker


def test_methods_of_ones_own_have_different_looks_and_change_no_other(monkeypatch):
    for name in set(METHODS) - set(read_toml("methods/looks.toml")):
        monkeypatch.delitem(METHODS, name)
    before = {name: get_method_look(name) for name in METHODS}
    package = {look.colour for look in before.values()}
    for i in range(3):
        monkeypatch.setitem(METHODS, f"mine_{i}", METHODS["fedavg"])
    mine = [get_method_look(f"mine_{i}") for i in range(3)]
    assert len({look.colour for look in mine}) == 3 and not package & {look.colour for look in mine}
    monkeypatch.setitem(METHODS, "mine_later", METHODS["fedavg"])
    assert [get_method_look(f"mine_{i}") for i in range(3)] == mine
    assert get_method_look("mine_later") not in mine
    assert {name: get_method_look(name) for name in before} == before


def make_results(methods):
    rows = [
        {"method": m, "seed": s, "alpha": a, "accuracy": 0.5 + 0.1 * i + 0.01 * s, "bytes_up": 9 + i, "bytes_down": 9}
        for i, m in enumerate(methods) for a in (0.1, 1.0) for s in (0, 1)
    ]  # fmt: skip
    return Results(rows, ("alpha",))


@pytest.mark.parametrize("others", [("fens", "fedavg", "ensemble"), ("dense", "fens")])
def test_a_method_has_one_colour_in_every_picture(others):
    """The colours are read from what is drawn; FENS is in both sets of methods, at different places."""
    rows = [make_method_results(m, 0.5 + 0.1 * i) for i, m in enumerate(others)]
    table = {s.label: {0.1: {0: 0.5, 1: 0.6}, 1.0: {0: 0.7, 1: 0.8}} for s in rows}
    method_by_line = dict(zip("abc", others, strict=False))
    pictures = [
        plots.draw_accuracy_bars_and_curves(rows),
        plots.draw_bytes_by_phase_and_accuracy(rows),
        RacePicture(rows).show(1e9),
        plot_study(make_results(others), "bytes"),
        StoredPlot().show(table, chosen_alpha=0.1, stored_client_count=10, source_text="stored results"),
        plot_study(make_results(others), "alpha"),
        draw_accuracy_lines_with_bands(
            dict(zip("abc", table.values(), strict=False)), "α", setting="digits", method_or_look_by_line=method_by_line
        ),
    ]  # fmt: skip
    methods_elsewhere = set(METHODS_WITH_A_COLOUR) - set(others)
    expected = {get_method_look(method).colour.lower() for method in others}
    unexpected = {get_method_look(method).colour.lower() for method in methods_elsewhere}
    unexpected -= MARK_COLOURS
    for picture in pictures:
        drawn_colours = {
            to_hex(line.get_color()) for ax in picture.figure.axes for line in ax.lines
        }
        drawn_colours |= {
            to_hex(patch.get_facecolor()) for ax in picture.figure.axes for patch in ax.patches
        }
        assert expected <= drawn_colours
        assert not unexpected & drawn_colours
