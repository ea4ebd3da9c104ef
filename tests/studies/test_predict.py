"""Raw rows: what a saved model says of them is what it says of the same rows in the test set, for every method."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from method_runs import in_study
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save_file

import fedlab_nb as fl
from fedlab_nb.cli import main
from fedlab_nb.errors import UsageError
from fedlab_nb.methods import METHODS
from fedlab_nb.studies import saved

SMALL = {"clients": 3, "epochs": 1, "device": "cpu", "cache": False, "alpha": 10}
N = 150


def table() -> pd.DataFrame:
    """Numbers with gaps, categories, words and an id; a column says which rows are for testing."""
    rng = np.random.default_rng(5)
    stage = np.arange(N) % 3
    blood = rng.normal(80, 9, N) + 8 * stage
    frame = pd.DataFrame(
        {
            "patient_id": [f"P{i:04d}" for i in range(N)],
            "age": np.round(rng.normal(60, 12, N)).astype(int),
            "blood": np.where(rng.random(N) < 0.1, np.nan, np.round(blood, 2)),
            "sex": rng.choice(["f", "m"], N),
            "ward": rng.choice(["north", "south", "none"], N),
            "stage": np.array(["mild", "severe", "none"])[stage],
            "split": np.where(np.arange(N) % 5 == 4, "test", "train"),
        }
    )
    return frame


TABLE = table()
TEST_ROWS = TABLE[TABLE["split"] == "test"].reset_index(drop=True)


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "patients.csv"
    TABLE.to_csv(path, index=False)
    return f"{path}?label=stage&split=split"


def make_pictures(kind: str) -> dict[str, np.ndarray]:
    """Images in raw numbers: bright in one of three places, 8 x 8."""
    rng = np.random.default_rng(6)
    y = np.arange(120) % 3
    x = rng.uniform(0, 0.5, (120, 8, 8))
    for i, c in enumerate(y):
        x[i, 2 * c : 2 * c + 3] += 0.5
    top = {"uint8": 255, "uint16": 65535, "float": 1.0}[kind]
    number = {"uint8": np.uint8, "uint16": np.uint16, "float": np.float32}[kind]
    x = (x * top).astype(number)
    return {"x_train": x[:90], "y_train": y[:90], "x_test": x[90:], "y_test": y[90:]}


def choose_options(name: str, dataset) -> dict:
    """How a method is run on small own data: with public samples where it needs some."""
    usual = {key: value for key, value in in_study(name).items() if key != "dataset"}
    return {"public": 0.1} | usual | SMALL | {"dataset": dataset}


def check_same_answers(answers: pd.DataFrame, outcome, x: torch.Tensor) -> None:
    """That `answers` are what the outcome says of the prepared samples `x`: labels, and scores to rounding."""
    names = outcome.inputs.class_names
    assert answers["label"].tolist() == [names[c] for c in outcome.predict(x)]
    scores = outcome.model.logits(x).detach().double()
    if outcome.model.score_kind in ("logits", "log-probabilities"):
        assert list(answers.columns[1:]) == list(names)
        np.testing.assert_allclose(answers[list(names)].sum(axis=1), 1, rtol=1e-9)
        scores = scores.softmax(1)
    else:
        assert list(answers.columns[1:]) == [f"{name} (score)" for name in names]
    np.testing.assert_allclose(answers.iloc[:, 1:].to_numpy(), scores, rtol=1e-4, atol=1e-6)


def shuffle_rows(rows: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    order = np.random.default_rng(seed).permutation(len(rows.columns))
    return rows[[rows.columns[i] for i in order]]


@pytest.mark.parametrize("name", METHODS)
def test_raw_rows_of_a_table_get_the_answers_of_the_test_set(name, csv, tmp_path):
    if "images" in METHODS[name].info.needs:
        pytest.skip("for images alone")
    out = fl.run(name, **choose_options(name, csv))
    x = fl.load(csv).x_test
    assert len(x) == len(TEST_ROWS)
    model = fl.load_model(out.save(tmp_path / "model.safetensors"))
    assert model.model.score_kind == out.model.score_kind
    for who in (out, model):
        check_same_answers(who.predict(TEST_ROWS), out, x)
    check_same_answers(model.predict(shuffle_rows(TEST_ROWS)), out, x)
    surplus = shuffle_rows(TEST_ROWS.assign(note="seen twice", stage="?"), 1)
    check_same_answers(model.predict(surplus), out, x)
    needed = TEST_ROWS[["sex", "ward", "blood", "age"]]
    check_same_answers(model.predict(needed), out, x)
    needed.to_csv(tmp_path / "new.csv", index=False)
    check_same_answers(model.predict(tmp_path / "new.csv"), out, x)
    check_same_answers(model.predict(str(tmp_path / "new.csv")), out, x)


@pytest.mark.parametrize("name", METHODS)
def test_raw_images_get_the_answers_of_the_test_set(name, tmp_path):
    data = make_pictures("uint8")
    out = fl.run(name, **choose_options(name, data))
    x = out.federation().dataset.x_test
    model = fl.load_model(out.save(tmp_path / "model.safetensors"))
    for who in (out, model):
        check_same_answers(who.predict(data["x_test"]), out, x)
    check_same_answers(model.predict(data["x_test"][0]), out, x[:1])
    check_same_answers(model.predict(data["x_test"][:, :, :, None]), out, x)


@pytest.mark.parametrize("kind", ["uint8", "uint16", "float"])
@pytest.mark.parametrize("way", [{}, {"transform": "standardise"}, {"transform": "lite0"}], ids=str)
def test_the_scale_of_images_and_what_is_done_to_them_are_kept(kind, way, tmp_path):
    data = make_pictures(kind)
    out = fl.run("fedavg", dataset=data, **SMALL, **way)
    model = fl.load_model(out.save(tmp_path / "model.safetensors"))
    check_same_answers(model.predict(data["x_test"]), out, out.federation().dataset.x_test)


@pytest.mark.parametrize("shape", [(120, 5), (120, 2, 32)])
def test_features_and_recordings_in_their_own_numbers(shape, tmp_path):
    rng = np.random.default_rng(7)
    y = np.arange(120) % 2
    x = rng.normal(1000, 30, shape) + 40 * y.reshape(-1, *(1,) * (len(shape) - 1))
    data = {"x_train": x[:90], "y_train": y[:90], "x_test": x[90:], "y_test": y[90:]}
    out = fl.run("fedavg", dataset=data, **SMALL)
    model = fl.load_model(out.save(tmp_path / "model.safetensors"))
    check_same_answers(model.predict(x[90:]), out, out.federation().dataset.x_test)
    check_same_answers(model.predict(x[90].tolist()), out, out.federation().dataset.x_test[:1])


def test_columns_of_a_numeric_frame_are_found_by_name_or_refused(tmp_path):
    rng = np.random.default_rng(3)
    y = np.arange(120) % 2
    x = pd.DataFrame({"age": 40 + 20 * y + rng.normal(size=120), "bmi": rng.normal(25, 3, 120)})
    out = fl.run("fedavg", dataset={"x": x, "y": np.where(y, "ill", "well")}, **SMALL)
    model = fl.load_model(out.save(tmp_path / "m.safetensors"))
    usual = model.predict(x)
    x[["bmi", "age"]].to_csv(tmp_path / "new.csv", index=False)
    for rows in (
        x[["bmi", "age"]],
        x.assign(more=1)[["more", "bmi", "age"]],
        x.to_numpy(),
        x.to_dict("records"),
        tmp_path / "new.csv",
    ):
        np.testing.assert_allclose(model.predict(rows).iloc[:, 1:], usual.iloc[:, 1:], rtol=1e-4)
    assert model.predict({"bmi": x["bmi"][0], "age": x["age"][0]})["label"][0] == usual["label"][0]
    x.assign(age="old").to_csv(tmp_path / "words.csv", index=False)
    for rows in (x[["bmi"]], x.rename(columns={"age": "years"}), tmp_path / "words.csv"):
        with pytest.raises(
            UsageError, match="lack the column 'age'|not numbers|not an array of numbers"
        ):
            model.predict(rows)


def test_pictures_of_a_folder_are_named_by_their_files(tmp_path):
    rng = np.random.default_rng(8)
    for part, count in (("train", 12), ("test", 4)):
        for name, level in (("cat", 60), ("dog", 180)):
            folder = tmp_path / "photos" / part / name
            folder.mkdir(parents=True)
            for i in range(count):
                image = np.clip(rng.normal(level, 30, (16, 16, 3)), 0, 255).astype(np.uint8)
                Image.fromarray(image).save(folder / f"{name}{i}.png")
    out = fl.run("ensemble", dataset=tmp_path / "photos", clients=2, epochs=3, cache=False)
    path = out.save(tmp_path / "model.safetensors")
    data = out.federation().dataset
    files = sorted((tmp_path / "photos" / "test").rglob("*.png"))
    answers = fl.load_model(path).predict(files)
    check_same_answers(answers, out, data.x_test)
    assert answers.index.tolist() == [str(file) for file in files]
    by_folder = fl.load_model(path).predict(tmp_path / "photos" / "test")
    assert by_folder.equals(answers)
    with pytest.raises(UsageError, match="has no pictures"):
        (tmp_path / "nothing").mkdir()
        fl.load_model(path).predict(tmp_path / "nothing")
    listed = [str(file) for file in files]
    assert main(["predict", str(path), *listed, "--out", str(tmp_path / "a.csv")]) == 0
    written = pd.read_csv(tmp_path / "a.csv")
    assert written["file"].tolist() == listed
    assert written["label"].tolist() == answers["label"].tolist()


# ---------------------------------------------------------------------------------------------------- wrong rows
@pytest.fixture(scope="module")
def model(csv, tmp_path_factory):
    out = fl.run("fedavg", dataset=csv, **SMALL)
    return fl.load_model(out.save(tmp_path_factory.mktemp("model") / "m.safetensors"))


WRONG = {
    "a column is missing": (TEST_ROWS.drop(columns="blood"), "blood"),
    "a category is unknown": (TEST_ROWS.assign(ward="east"), "east"),
    "a number is none": (TEST_ROWS.assign(age="old"), "old"),
    "no rows": (TEST_ROWS[:0], "no rows"),
    "no such file": ("/nowhere/new.csv", "does not exist"),
    "too few values in a row": (np.zeros((3, 2)), "2"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rows_are_one_sentence(case, model):
    rows, named = WRONG[case]
    with pytest.raises(UsageError, match=named) as refused:
        model.predict(rows)
    assert "\n" not in str(refused.value)


def test_a_file_in_another_form_is_read_as_its_options_say(model, tmp_path):
    usual = model.predict(TEST_ROWS)
    TEST_ROWS.to_csv(tmp_path / "new.csv", index=False, sep="|", encoding="utf-16")
    answers = model.predict(f"{tmp_path / 'new.csv'}?sep=|&encoding=utf-16")
    assert answers["label"].tolist() == usual["label"].tolist()
    with pytest.raises(UsageError, match="'label'"):
        model.predict(f"{tmp_path / 'new.csv'}?label=stage")


@given(seed=st.integers(0, 999), rows=st.lists(st.integers(0, len(TEST_ROWS) - 1), min_size=1))
@settings(max_examples=25, deadline=None)
def test_any_rows_in_any_order_of_rows_and_columns(model, seed, rows):
    whole = model.predict(TEST_ROWS)
    part = model.predict(shuffle_rows(TEST_ROWS.iloc[rows], seed))
    assert part["label"].tolist() == whole["label"].iloc[rows].tolist()
    assert part.index.tolist() == rows
    np.testing.assert_allclose(
        part.iloc[:, 1:].to_numpy(float), whole.iloc[rows, 1:].to_numpy(float), rtol=1e-4, atol=1e-6
    )


def test_a_missing_value_and_one_row_alone(model):
    row = TEST_ROWS[TEST_ROWS["blood"] > 100].iloc[0].to_dict()
    assert len(model.predict(row)) == len(model.predict([row, row])) - 1 == 1
    empty = model.predict({**row, "blood": None})
    assert empty["label"].notna().all() and not empty.equals(model.predict(row))


def test_global_switches_of_pytorch_change_no_answer(model):
    usual = model.predict(TEST_ROWS)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode():
            assert model.predict(TEST_ROWS).equals(usual)
    finally:
        torch.set_default_dtype(torch.float32)


def test_tensors_stay_prepared_samples(model, csv):
    x = fl.load(csv).x_test
    classes = model.predict(x)
    assert classes.dtype == np.int64 and classes.shape == (len(x),)
    names = fl.load(csv).class_names
    assert model.predict(TEST_ROWS)["label"].tolist() == [names[c] for c in classes]


@pytest.mark.parametrize("shape", [(3, 2), (3, 99), (4,), (3, 1, 8, 8)])
def test_prepared_samples_of_another_shape_are_one_sentence(model, shape):
    for read in (model.predict, model.features):
        with pytest.raises(UsageError, match=r"this model reads \[N, \d+\]"):
            read(torch.zeros(shape))


def test_a_data_set_of_the_package_takes_its_arrays_as_it_gives_them():
    out = fl.run("fedavg", clients=2, epochs=1, share=0.2)
    x = fl.load("digits").x_test
    for same in (x.numpy(), x.flatten(1), x[:, 0], x.flatten(1).tolist()):
        assert np.array_equal(out.predict(same), out.predict(x))
    for other in ("new.csv", x.movedim(1, -1), x[:, :, :7]):
        with pytest.raises(UsageError):
            out.predict(other)


def test_an_older_file_says_that_it_lacks_the_columns(csv, tmp_path):
    out = fl.run("fedavg", dataset=csv, **SMALL)
    path = out.save(tmp_path / "m.safetensors")
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        form, _, text = file.metadata()[saved.NAME].partition(" ")
    content = json.loads(text)
    del content["inputs"]
    del content["about"]["networks"]
    text = json.dumps(content)
    older = tmp_path / "older.safetensors"
    save_file(
        tensors,
        older,
        {saved.NAME: f"{form} {text}", saved.DIGEST: saved.compute_model_digest(text, tensors)},
    )
    model, x = fl.load_model(older), fl.load(csv).x_test
    assert np.array_equal(model.predict(x), out.predict(x))
    assert np.array_equal(model.predict(x.numpy()), out.predict(x))
    with pytest.raises(UsageError, match="older fedlab_nb"):
        model.predict(TEST_ROWS)


def test_a_class_that_is_called_label(tmp_path):
    frame = TABLE.drop(columns=["patient_id", "split"]).replace({"stage": {"mild": "label"}})
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = fl.run("fedavg", dataset=tmp_path / "t.csv?label=stage", **SMALL)
    assert list(out.predict(frame).columns) == ["label", "label (class)", "none", "severe"]


def test_data_that_changed_since_cost_the_columns_alone(tmp_path):
    path = tmp_path / "t.csv"
    TABLE.drop(columns=["split"]).to_csv(path, index=False)
    settings = {"dataset": f"{path}?label=stage", **SMALL, "cache": True}
    fl.run("fedavg", **settings)
    again = fl.run("fedavg", **settings)
    assert again.cached
    assert again.predict(TABLE)["label"].notna().all()
    fresh = fl.run("fedavg", **settings | {"seed": 1})
    TABLE.drop(columns=["split"])[::-1].to_csv(path, index=False)
    model = fl.load_model(fresh.save(tmp_path / "m.safetensors"))  # knows what it was trained on
    assert model.predict(TABLE)["label"].tolist() == fresh.predict(TABLE)["label"].tolist()


# ---------------------------------------------------------------------------------------------------- command line
def test_the_command_line_writes_answers_and_replaces_nothing(csv, tmp_path, capsys):
    model, new, out = (str(tmp_path / name) for name in ("m.safetensors", "new.csv", "a.csv"))
    TEST_ROWS.to_csv(new, index=False)
    run = ["run", "fedavg", "--dataset", csv, "--clients", "3", "--set", "epochs=1"]
    assert main([*run, "--save", model]) == 0
    assert main(["predict", model, new, "--out", out]) == 0
    written = pd.read_csv(out, dtype={"label": str}, keep_default_na=False)
    expected = fl.load_model(model).predict(TEST_ROWS)
    assert written["label"].tolist() == expected["label"].tolist()
    np.testing.assert_allclose(written.iloc[:, 1:].astype(float), expected.iloc[:, 1:], rtol=1e-4)
    capsys.readouterr()
    assert main(["predict", model, new]) == 0
    assert capsys.readouterr().out == (tmp_path / "a.csv").read_text()
    (tmp_path / "a.csv").write_text("mine")
    assert main(["predict", model, new, "--out", out]) == 2
    assert (tmp_path / "a.csv").read_text() == "mine" and "--force" in capsys.readouterr().err
    assert main(["predict", model, new, "--out", out, "--force"]) == 0
    TEST_ROWS.drop(columns="age").to_csv(new, index=False)
    assert main(["predict", model, new]) == 2
    assert "age" in capsys.readouterr().err


@pytest.mark.parametrize(
    "kind, change",
    [
        ("uint8", lambda x: x / np.float32(255)),
        ("uint8", lambda x: x.astype(np.uint16) * 257),
        ("uint16", lambda x: (x // 257).astype(np.uint8)),
        ("float", lambda x: (x * 255).astype(np.uint8)),
        ("uint8", lambda x: x[:, :7]),
        ("uint8", lambda x: np.stack([x, x, x], axis=-1)),
    ],
)
def test_images_of_another_range_or_shape_are_refused(kind, change):
    data = make_pictures(kind)
    out = fl.run("fedavg", dataset=data, **SMALL)
    with pytest.raises(UsageError):
        out.predict(change(data["x_test"]))
