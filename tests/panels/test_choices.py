"""What can be chosen in the left column: methods in groups with a filter, a partition, poisoned clients."""

import re

import pytest

from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS, Method, group_method_names, register
from fedlab_nb.methods.base import GROUPS
from fedlab_nb.panels import playground
from fedlab_nb.panels.choices import MethodChooser


def list_shown_methods(box):
    """List the methods that the filter leaves."""
    return [name for name, checkbox in box.boxes.items() if checkbox.layout.display != "none"]


def test_every_method_stands_in_the_group_of_its_registration(monkeypatch):
    groups = group_method_names(METHODS)
    assert sorted(name for names in groups.values() for name in names) == sorted(METHODS)
    assert list(groups) == [title for title in GROUPS if title in groups]
    assert "One shot" not in groups
    assert all(METHODS[name].info.rounds != "one-shot" for name in groups["Many rounds"])
    for name, options in {
        "mine": {},
        "again": {"rounds": "T rounds"},
        "mean": {"group": "Average weights"},
    }.items():
        monkeypatch.setitem(METHODS, name, None)  # so that it is taken away after the test
        del METHODS[name]
        register(name, title=name, paper="none", **options)(
            type("Own", (Method,), {"__doc__": "One of its own."})
        )
    groups = group_method_names(METHODS)
    assert groups["One shot"] == ["mine"] and groups["Many rounds"][-1] == "again"
    assert groups["Average weights"][-1] == "mean"


def test_the_filter_looks_at_names_groups_and_papers():
    box = MethodChooser()
    assert list_shown_methods(box) == list(METHODS)
    for words, methods in (
        ("fens", ["fens"]),
        ("closed form", ["afl", "deepafl", "fedpft", "gauss"]),
        ("2017", None),
    ):
        box.filter.value = words
        assert methods is None or sorted(list_shown_methods(box)) == methods
        titles = [
            title for title, heading in box.headings.items() if heading.layout.display != "none"
        ]
        assert titles == [
            title
            for title, names in box.groups.items()
            if set(names) & set(list_shown_methods(box))
        ]
    assert "fedavg" in list_shown_methods(box) and "fens" not in list_shown_methods(box)
    box.filter.value = "nothing has this"
    assert list_shown_methods(box) == []
    box.filter.value = " "
    assert list_shown_methods(box) == list(METHODS)


@pytest.mark.slow
def test_a_chip_for_each_chosen_method_takes_it_out(make_panel):
    panel = make_panel()
    box = panel.controls.methods
    chips = [chip for chip in box.chips.children if chip is not box.add]
    assert [chip.description for chip in chips] == [
        METHODS[name].info.title for name in panel.methods
    ]
    assert box.list.layout.display == box.filter.layout.display == "none"
    chips[0].click()
    assert box.chosen_method_names == panel.methods == ("fens",) and len(box.chips.children) == 2
    box.add.value = True
    assert box.list.layout.display is None
    box.boxes["afl"].value = True
    assert [chip.description for chip in box.chips.children[:-1]] == [
        METHODS[name].info.title for name in panel.methods
    ]


@pytest.mark.slow
def test_rare_settings_are_folded_and_the_slider_shows_five_partitions(make_panel):
    panel = make_panel(clients=3)
    folded = next(
        w
        for w in panel.controls.make_column_of_controls().children
        if "fl-folded" in w._dom_classes
    )
    assert folded.layout.display == "none"
    thumbs = re.findall(r"<svg.*?</svg>", panel.controls.ends.value)
    # A piece for each class of each client.
    piece_counts = [len(re.findall("M", svg)) for svg in thumbs]
    assert len(thumbs) == 5
    assert piece_counts == sorted(piece_counts)
    assert piece_counts[0] < 15
    assert piece_counts[-1] == 30
    before = panel.controls.ends.value
    panel.controls.alpha.value = 1
    assert panel.controls.ends.value == before
    panel.controls.seed.value = 1
    assert panel.controls.ends.value != before


@pytest.mark.slow
def test_poisoned_clients_are_a_setting_of_the_run(make_panel, job):
    panel = make_panel(poison="scaled:2:5", projector=True)
    assert panel.views.projector.value
    assert panel.controls.poison.poison_setting == "scaled:2:5"
    assert "poison='scaled:2:5'" in panel.code()
    panel.controls.poison.kind.value = "labels"
    panel.controls.clients.value = 1
    assert panel.controls.poison.poison_setting == "labels:1"  # never more than there are
    panel.run(wait=True)
    assert job.calls[-1][2]["poison"] == "labels:1"
    panel.controls.poison.kind.value = "none"
    assert "poison" not in panel.code() and panel.controls.poison.count.disabled and not panel.error
    with pytest.raises(UsageError, match="poison"):
        playground(poison="soup:1")
