"""What can be chosen in the left column: methods in groups with a filter, poisoned clients, larger letters."""

import pytest

from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS, Method, grouped, register
from fedlab_nb.methods.base import GROUPS
from fedlab_nb.panels import playground
from fedlab_nb.panels.choices import MethodBox


def shown(box):
    return [name for name, each in box.boxes.items() if each.layout.display != "none"]


def test_every_method_stands_in_the_group_of_its_registration(monkeypatch):
    groups = grouped(METHODS)
    assert sorted(name for names in groups.values() for name in names) == sorted(METHODS)
    assert list(groups) == [title for title in GROUPS if title in groups] and "One shot" not in groups
    assert all(METHODS[name].info.rounds != "one-shot" for name in groups["Many rounds"])
    for name, words in {"mine": {}, "again": {"rounds": "T rounds"}, "mean": {"group": "Average weights"}}.items():
        monkeypatch.setitem(METHODS, name, None)  # so that it is taken away after the test
        del METHODS[name]
        register(name, title=name, paper="none", **words)(type("Own", (Method,), {"__doc__": "One of its own."}))
    groups = grouped(METHODS)
    assert groups["One shot"] == ["mine"] and groups["Many rounds"][-1] == "again"
    assert groups["Average weights"][-1] == "mean"


def test_the_filter_looks_at_names_groups_and_papers():
    box = MethodBox()
    assert shown(box) == list(METHODS)
    for asked, methods in (("fens", ["fens"]), ("closed form", ["afl", "fedpft", "gauss"]), ("2017", None)):
        box.filter.value = asked
        assert methods is None or sorted(shown(box)) == methods
        titles = [title for title, heading in box.headings.items() if heading.layout.display != "none"]
        assert titles == [title for title, names in box.groups.items() if set(names) & set(shown(box))]
    assert "fedavg" in shown(box) and "fens" not in shown(box)
    box.filter.value = "nothing has this"
    assert shown(box) == []
    box.filter.value = " "
    assert shown(box) == list(METHODS)


def test_poisoned_clients_are_a_setting_of_the_run(make, job):
    panel = make(poison="scaled:2:5", projector=True)
    box = panel.controls.methods  # what is ticked stands above the groups
    assert [each.description for each in box.widget.children[:2]] == ["FedAvg, one round", "FENS"]
    assert box.widget.children[2] is box.headings["Average weights"] and panel.views.larger.value
    assert panel.controls.poison.value == "scaled:2:5" and "poison='scaled:2:5'" in panel.code()
    panel.controls.poison.kind.value = "labels"
    panel.controls.clients.value = 1
    assert panel.controls.poison.value == "labels:1"  # never more than there are
    panel.run(wait=True)
    assert job.calls[-1][2]["poison"] == "labels:1"
    panel.controls.poison.kind.value = "none"
    assert "poison" not in panel.code() and panel.controls.poison.count.disabled and not panel.error
    with pytest.raises(UsageError, match="poison"):
        playground(poison="soup:1")
