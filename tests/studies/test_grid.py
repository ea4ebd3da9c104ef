"""What a study may be declared as, in Python and in TOML, and every wrong one as a sentence before anything runs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlab_nb.errors import UsageError
from fedlab_nb.studies.grid import Study


def test_lists_are_axes_and_values_are_fixed():
    study = Study.declare(["fedavg", "fens"], alpha=[0.1, 1], clients=5, seeds=3, **{"fens.rounds": [10, 50]})
    assert study.axes == ("alpha", "fens.rounds")
    assert len(study) == 2 * 3 * (1 + 2)
    cells = study.cells()
    assert [cell.seed for cell in cells] == [0, 0, 0, 1, 1, 1, 2, 2, 2] * 2  # those of a seed are neighbours
    cell = cells[-1]
    assert (cell.seed, cell.plan.name, cell.plan.method.rounds) == (2, "fens", 50)
    assert cell.values == {"alpha": 1, "clients": 5, "fens.rounds": 50}
    assert cell.plan.settings.alpha == 1


def test_a_recipe_field_is_of_all_methods_and_cells_of_a_group_share_their_clients():
    cells = Study.declare(["fedavg", "fens"], lr=[0.01, 0.05], seeds=2, epochs=3).cells()
    assert [cell.plan.recipe.lr for cell in cells] == [0.01] * 4 + [0.05] * 4
    keys = [cell.plan.clients_key() for cell in cells]
    assert keys[::2] == keys[1::2] and len({*keys}) == 4


def test_a_plain_field_is_of_every_method_that_has_it():
    study = Study.declare(["fens", "fedavg_multi", "fedavg"], rounds=[5, 10])
    assert study.own == {"fens": {"rounds": (5, 10)}, "fedavg_multi": {"rounds": (5, 10)}, "fedavg": {}}
    assert len(study) == 5


def test_a_file_says_the_same(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'methods = ["fedavg", "fens"]\nseeds = [3, 5]\nalpha = [0.1, 1]\n'
        "[settings]\nepochs = 2\n[fens]\nrounds = [10, 50]\n"
    )
    same = Study.declare(["fedavg", "fens"], seeds=[3, 5], alpha=[0.1, 1], epochs=2, **{"fens.rounds": [10, 50]})
    assert Study.load(path) == same


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ({"methods": []}, "at least one method"),
        ({"methods": ["fedavgg"]}, "fedavg"),
        ({"alpha": []}, "axis alpha of the study is empty"),
        ({"alpha": [0.1, 0.1]}, "has a value twice"),
        ({"alpha": [0.1, -1]}, "alpha"),
        ({"alfa": [0.1]}, "alpha"),
        ({"rounds": [5]}, "rounds"),
        ({"methods": ["fens"], "fens.rounds": [5, 0]}, "rounds"),
        ({"methods": ["fens"], "fens.nothing": [5]}, "nothing"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": []}, "axis seeds of the study is empty"),
        ({"clients": [5, 5000]}, "5000"),
        ({"alpha": list(range(1, 900)), "clients": list(range(1, 900)), "seeds": 1000}, "at most 1,000,000"),
    ],
)
def test_a_wrong_study_is_one_sentence(arguments, sentence):
    with pytest.raises(UsageError, match=sentence) as caught:
        Study.declare(**{"methods": ["fedavg"], **arguments}).cells()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"methods = [", "not valid TOML"),
        (b"alpha = 1", "names no methods"),
        (b"methods = ['fens']\n[fedet]\nrounds = 3", "fedet"),
        (b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_a_wrong_or_missing_file_is_one_sentence(tmp_path, content, sentence):
    path = tmp_path / "wrong.toml"
    with pytest.raises(UsageError, match="cannot be read"):
        Study.load(path)
    path.write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        Study.load(path)


@settings(max_examples=30, deadline=None)
@given(
    alphas=st.lists(st.sampled_from([0.05, 0.1, 0.5, 1, 10]), min_size=1, max_size=4, unique=True),
    rounds=st.lists(st.integers(1, 100), min_size=1, max_size=3, unique=True),
    seeds=st.integers(1, 4),
)
def test_every_cell_once(alphas, rounds, seeds):
    study = Study.declare(["fedavg", "fens"], alpha=alphas, seeds=seeds, **{"fens.rounds": rounds})
    cells = study.cells()
    assert len(cells) == len(study) == len(alphas) * seeds * (1 + len(rounds))
    assert len({cell.plan.run_key() for cell in cells}) == len(cells)
