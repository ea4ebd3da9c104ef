"""Every method on every kind of data, also on generated files: it runs, or it refuses in one sentence."""

import numpy as np
import pytest
from method_runs import make_fast_knobs

from fedlab_nb import run
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS


@pytest.fixture(scope="module")
def generated_files(tmp_path_factory):
    """A folder with recordings (`gait.npz`) and a table with gaps and decimal commas (`clinics.csv`)."""
    folder = tmp_path_factory.mktemp("generated")
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=150)
    client = rng.integers(5, size=150)
    wave = np.sin((1 + y[:, None, None]) * np.arange(40)[:, None] / 5)
    wave = wave + rng.normal(size=(150, 40, 3))
    np.savez(folder / "gait.npz", x=wave, y=np.array(["walk", "run", "sit"])[y], client=client)
    lines = ["Patient;site;age;lab;note;outcome"]
    for i in range(150):
        age = f"{60 + 4 * y[i] + i % 9},5"
        lab = "" if client[i] == 1 else i % 7
        lines.append(f"P{i};site {client[i]};{age};{lab};see letter;{'abc'[y[i]]}")
    (folder / "clinics.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "dataset", ["digits", "glyphs:16g", "heart", "watch", "mails", "gait.npz", "clinics.csv"]
)
def test_a_method_runs_or_refuses_in_one_sentence(dataset, generated_files):
    source = str(generated_files / dataset) if "." in dataset else dataset
    runs = 0
    for name in METHODS:
        knobs = {f"{name}.{knob}": value for knob, value in make_fast_knobs(name).items()}
        try:
            run(name, dataset=source, epochs=1, cache=False, **knobs)
            runs += 1
        except UsageError as error:
            assert str(error).endswith("."), (name, error)
            assert ". " not in str(error), (name, error)
    assert runs >= 28
