"""What can be chosen in the left column: methods in groups with a filter, poisoned clients, larger letters."""

import pytest

from fedlab_nb.declared import declared
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.panels import playground
from fedlab_nb.panels.method_box import MethodBox, grouped


def shown(box):
    return [name for name, each in box.boxes.items() if each.layout.display != "none"]


def test_every_method_stands_in_one_group():
    groups = grouped(METHODS)
    assert sorted(name for names in groups.values() for name in names) == sorted(METHODS)
    assert set(name for names in declared("panels/groups.toml").values() for name in names) <= set(METHODS)
    assert groups.get("One shot", []) == [], "these have no group in panels/groups.toml"
    assert list(groups)[-2:] == ["Many rounds", "Bounds"]
    assert all(METHODS[name].info.rounds != "one-shot" for name in groups["Many rounds"])


def test_a_method_of_one_s_own_has_a_group(monkeypatch):
    monkeypatch.setitem(METHODS, "mine", METHODS["fedavg"])
    monkeypatch.setitem(METHODS, "again", METHODS["fedprox"])
    assert grouped(METHODS)["One shot"] == ["mine"] and grouped(METHODS)["Many rounds"][-1] == "again"


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


def test_what_is_ticked_stands_above_the_groups():
    box = MethodBox()
    box.value = ["fens", "fedavg"]
    box.ticked_first()
    assert [each.description for each in box.widget.children[:2]] == ["FedAvg, one round", "FENS"]
    assert box.widget.children[2] is box.headings["Average weights"]
    assert len(box.widget.children) == len(METHODS) + len(box.headings)


def test_poisoned_clients_are_a_setting_of_the_run(make, job):
    panel = make(poison="scaled:2:5")
    assert panel.controls.poison.value == "scaled:2:5" and "poison='scaled:2:5'" in panel.code()
    panel.controls.poison.kind.value = "labels"
    panel.controls.clients.value = 1
    assert panel.controls.poison.value == "labels:1"  # never more than there are
    panel.run(wait=True)
    assert (
        job.calls[-1][2]["poison"] == "labels:1" and "poison = labels:1" in panel.state("accuracy").runs.rows[0].setting
    )
    panel.controls.poison.kind.value = "none"
    assert "poison" not in panel.code() and panel.controls.poison.count.disabled and not panel.error
    with pytest.raises(UsageError, match="poison"):
        playground(poison="soup:1")


def test_a_projector_gets_larger_letters_at_once(make):
    assert make(projector=True).views.larger.value and not make(projector="false").views.larger.value
