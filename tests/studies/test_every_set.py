"""Every method on every kind of data, also on files that nobody has seen: it runs, or it refuses in one sentence."""

import numpy as np
import pytest
from method_runs import small

from fedlab_nb import run
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS


@pytest.fixture(scope="module")
def unseen(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("unseen"), np.random.default_rng(0)
    y, who = rng.integers(3, size=150), rng.integers(5, size=150)
    wave = np.sin((1 + y[:, None, None]) * np.arange(40)[:, None] / 5) + rng.normal(
        size=(150, 40, 3)
    )
    np.savez(folder / "gait.npz", x=wave, y=np.array(["walk", "run", "sit"])[y], client=who)
    rows = [f"P{i};site {who[i]};{60 + 4 * y[i] + i % 9},5;{'' if who[i] == 1 else i % 7};see letter;{'abc'[y[i]]}"
            for i in range(150)]  # fmt: skip
    (folder / "clinics.csv").write_text(
        "\n".join(["Patient;site;age;lab;note;outcome", *rows]), encoding="utf-8"
    )
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "dataset", ["digits", "glyphs:16g", "heart", "watch", "mails", "gait.npz", "clinics.csv"]
)
def test_a_method_runs_or_refuses_in_one_sentence(dataset, unseen):
    source, ran = str(unseen / dataset) if "." in dataset else dataset, 0
    for name in METHODS:
        try:
            run(
                name,
                dataset=source,
                epochs=1,
                cache=False,
                **{f"{name}.{k}": v for k, v in small(name).items()},
            )
            ran += 1
        except UsageError as error:
            assert str(error).endswith(".") and ". " not in str(error), (name, error)
    assert ran >= 28
