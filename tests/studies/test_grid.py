"""Declarations of studies in Python and in TOML, and wrong ones, which are refused before anything runs."""

import pytest

from fedlab_nb.errors import UsageError
from fedlab_nb.studies.grid import Study


def test_lists_are_axes_and_values_are_fixed():
    study = Study.declare(
        ["fedavg", "fens"], alpha=[0.1, 1], clients=5, seeds=3, **{"fens.rounds": [10, 50]}
    )
    assert study.axes == ("alpha", "fens.rounds")
    cells = study.cells()
    # Two values of alpha, three seeds, one cell of FedAvg and two of FENS.
    assert len(study) == len(cells) == 2 * 3 * (1 + 2)
    assert len({cell.plan.hash_settings_of_run() for cell in cells}) == len(cells)
    # Cells of a seed are neighbours.
    assert [cell.seed for cell in cells] == [0, 0, 0, 1, 1, 1, 2, 2, 2] * 2
    cell = cells[-1]
    assert (cell.seed, cell.plan.method_name, cell.plan.method.rounds) == (2, "fens", 50)
    assert cell.values == {"alpha": 1, "clients": 5, "fens.rounds": 50}
    assert cell.plan.settings.alpha == 1


def test_a_recipe_field_applies_to_all_methods_whose_cells_share_their_clients():
    cells = Study.declare(["fedavg", "fens"], lr=[0.01, 0.05], seeds=2, epochs=3).cells()
    assert [cell.plan.recipe.lr for cell in cells] == [0.01] * 4 + [0.05] * 4
    keys = [cell.plan.hash_settings_of_local_training() for cell in cells]
    assert keys[::2] == keys[1::2] and len({*keys}) == 4


def test_a_plain_field_applies_to_every_method_that_has_it():
    study = Study.declare(["fens", "fedavg_multi", "fedavg"], rounds=[5, 10])
    assert study.own == {
        "fens": {"rounds": (5, 10)},
        "fedavg_multi": {"rounds": (5, 10)},
        "fedavg": {},
    }
    assert len(study) == 5


def test_a_toml_file_declares_the_same_study(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'methods = ["fedavg", "fens"]\nseeds = [3, 5]\nalpha = [0.1, 1]\n'
        "[settings]\nepochs = 2\n[fens]\nrounds = [10, 50]\n"
    )
    same = Study.declare(
        ["fedavg", "fens"], seeds=[3, 5], alpha=[0.1, 1], epochs=2, **{"fens.rounds": [10, 50]}
    )
    assert Study.load(path) == same


FENS = {"methods": ["fens"]}
WRONG = [
    {"methods": []}, {"methods": ["fedavgg"]}, {"alpha": []}, {"alpha": [0.1, 0.1]}, {"alpha": [0.1, -1]},
    {"alfa": [1]}, {"rounds": [5]}, {**FENS, "fens.rounds": [5, 0]}, {**FENS, "fens.nothing": [5]}, {"seeds": 0},
    {"seeds": []}, {"clients": [5, 5000]},
    {"alpha": list(range(1, 900)), "clients": list(range(1, 900)), "seeds": 1000},
]  # fmt: skip


def test_wrong_studies_and_wrong_or_missing_files_are_refused(tmp_path):
    for arguments in WRONG:
        with pytest.raises(UsageError) as caught:
            Study.declare(**{"methods": ["fedavg"], **arguments}).cells()
        assert "\n" not in str(caught.value)
    for content in (
        None,
        b"methods = [",
        b"alpha = 1",
        b"methods = ['fens']\n[fedet]\nrounds = 3",
        b"\xff\xfe\x00",
    ):
        if content is not None:
            (tmp_path / "wrong.toml").write_bytes(content)
        with pytest.raises(UsageError):
            Study.load(tmp_path / "wrong.toml")
