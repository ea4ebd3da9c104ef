"""Predictions for raw rows: a saved model answers them as it answers the same samples in the test set."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from method_runs import make_fast_study_settings
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


def make_table() -> pd.DataFrame:
    """Numbers with gaps, categories and an id; the column `split` marks the test rows."""
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


TABLE = make_table()
TEST_ROWS = TABLE[TABLE["split"] == "test"].reset_index(drop=True)


@pytest.fixture(scope="module")
def table_file(tmp_path_factory):
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
    """The settings of a short run of a method on a user's data, of which a tenth is public."""
    usual = {
        key: value for key, value in make_fast_study_settings(name).items() if key != "dataset"
    }
    return {"public": 0.1} | usual | SMALL | {"dataset": dataset}


def check_same_answers(answers: pd.DataFrame, outcome, x: torch.Tensor) -> None:
    """Check that `answers` are the outcome's for the prepared samples `x`: the labels, and the scores to rounding."""
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


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_raw_rows_of_a_table_get_the_answers_of_the_test_set(name, table_file, tmp_path):
    if "images" in METHODS[name].info.needs:
        pytest.skip("for images alone")
    out = fl.run(name, **choose_options(name, table_file))
    x = fl.load(table_file).x_test
    assert len(x) == len(TEST_ROWS)
    model = fl.load_model(out.save(tmp_path / "model.safetensors"))
    assert model.model.score_kind == out.model.score_kind
    for predictor in (out, model):
        check_same_answers(predictor.predict(TEST_ROWS), out, x)
    check_same_answers(model.predict(shuffle_rows(TEST_ROWS)), out, x)
    surplus = shuffle_rows(TEST_ROWS.assign(note="seen twice", stage="?"), 1)
    check_same_answers(model.predict(surplus), out, x)
    needed = TEST_ROWS[["sex", "ward", "blood", "age"]]
    check_same_answers(model.predict(needed), out, x)
    needed.to_csv(tmp_path / "new.csv", index=False)
    check_same_answers(model.predict(tmp_path / "new.csv"), out, x)
    check_same_answers(model.predict(str(tmp_path / "new.csv")), out, x)


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_raw_images_get_the_answers_of_the_test_set(name, tmp_path):
    data = make_pictures("uint8")
    out = fl.run(name, **choose_options(name, data))
    x = out.federation().dataset.x_test
    model = fl.load_model(out.save(tmp_path / "model.safetensors"))
    for predictor in (out, model):
        check_same_answers(predictor.predict(data["x_test"]), out, x)
    check_same_answers(model.predict(data["x_test"][0]), out, x[:1])
    check_same_answers(model.predict(data["x_test"][:, :, :, None]), out, x)


@pytest.mark.parametrize("kind", ["uint8", "uint16", "float"])
@pytest.mark.parametrize(
    "transform", [{}, {"transform": "standardise"}, {"transform": "lite0"}], ids=str
)
def test_scale_and_transform_of_images_are_saved(kind, transform, tmp_path):
    data = make_pictures(kind)
    out = fl.run("fedavg", dataset=data, **SMALL, **transform)
    model = fl.load_model(out.save(tmp_path / "model.safetensors"))
    check_same_answers(model.predict(data["x_test"]), out, out.federation().dataset.x_test)


@pytest.mark.parametrize("shape", [(120, 5), (120, 2, 32)])
def test_features_and_recordings_are_accepted_in_raw_numbers(shape, tmp_path):
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


def test_predictions_for_pictures_are_indexed_by_their_files(tmp_path):
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
def model(table_file, tmp_path_factory):
    out = fl.run("fedavg", dataset=table_file, **SMALL)
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
def test_wrong_rows_are_refused_in_one_sentence(case, model):
    rows, words = WRONG[case]
    with pytest.raises(UsageError, match=words) as error:
        model.predict(rows)
    assert "\n" not in str(error.value)


def test_a_file_in_another_format_is_read_with_its_options(model, tmp_path):
    usual = model.predict(TEST_ROWS)
    TEST_ROWS.to_csv(tmp_path / "new.csv", index=False, sep="|", encoding="utf-16")
    answers = model.predict(f"{tmp_path / 'new.csv'}?sep=|&encoding=utf-16")
    assert answers["label"].tolist() == usual["label"].tolist()
    with pytest.raises(UsageError, match="'label'"):
        model.predict(f"{tmp_path / 'new.csv'}?label=stage")


@given(seed=st.integers(0, 999), rows=st.lists(st.integers(0, len(TEST_ROWS) - 1), min_size=1))
@settings(max_examples=25, deadline=None)
def test_rows_and_columns_can_have_any_order(model, seed, rows):
    all_answers = model.predict(TEST_ROWS)
    answers = model.predict(shuffle_rows(TEST_ROWS.iloc[rows], seed))
    assert answers["label"].tolist() == all_answers["label"].iloc[rows].tolist()
    assert answers.index.tolist() == rows
    np.testing.assert_allclose(
        answers.iloc[:, 1:].to_numpy(float),
        all_answers.iloc[rows, 1:].to_numpy(float),
        rtol=1e-4,
        atol=1e-6,
    )


def test_a_single_row_and_a_missing_value_are_accepted(model):
    row = TEST_ROWS[TEST_ROWS["blood"] > 100].iloc[0].to_dict()
    assert len(model.predict(row)) == len(model.predict([row, row])) - 1 == 1
    empty = model.predict({**row, "blood": None})
    assert empty["label"].notna().all() and not empty.equals(model.predict(row))


def test_global_switches_of_pytorch_change_no_prediction(model):
    usual = model.predict(TEST_ROWS)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode():
            assert model.predict(TEST_ROWS).equals(usual)
    finally:
        torch.set_default_dtype(torch.float32)


def test_tensors_are_taken_as_prepared_samples(model, table_file):
    x = fl.load(table_file).x_test
    classes = model.predict(x)
    assert classes.dtype == np.int64 and classes.shape == (len(x),)
    names = fl.load(table_file).class_names
    assert model.predict(TEST_ROWS)["label"].tolist() == [names[c] for c in classes]


@pytest.mark.parametrize("shape", [(3, 2), (3, 99), (4,), (3, 1, 8, 8)])
def test_prepared_samples_of_another_shape_are_refused(model, shape):
    for read in (model.predict, model.features):
        with pytest.raises(UsageError, match=r"this model reads \[N, \d+\]"):
            read(torch.zeros(shape))


def test_samples_of_a_data_set_of_the_package_are_accepted_as_arrays():
    out = fl.run("fedavg", clients=2, epochs=1, share=0.2)
    x = fl.load("digits").x_test
    for accepted in (x.numpy(), x.flatten(1), x[:, 0], x.flatten(1).tolist()):
        assert np.array_equal(out.predict(accepted), out.predict(x))
    for refused in ("new.csv", x.movedim(1, -1), x[:, :, :7]):
        with pytest.raises(UsageError):
            out.predict(refused)


def test_an_older_file_predicts_prepared_samples_alone(table_file, tmp_path):
    out = fl.run("fedavg", dataset=table_file, **SMALL)
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
    model, x = fl.load_model(older), fl.load(table_file).x_test
    assert np.array_equal(model.predict(x), out.predict(x))
    assert np.array_equal(model.predict(x.numpy()), out.predict(x))
    with pytest.raises(UsageError, match="older fedlab_nb"):
        model.predict(TEST_ROWS)


def test_a_class_may_be_called_label(tmp_path):
    frame = TABLE.drop(columns=["patient_id", "split"]).replace({"stage": {"mild": "label"}})
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = fl.run("fedavg", dataset=tmp_path / "t.csv?label=stage", **SMALL)
    assert list(out.predict(frame).columns) == ["label", "label (class)", "none", "severe"]


def test_a_model_predicts_after_its_data_file_has_changed(tmp_path):
    path = tmp_path / "t.csv"
    TABLE.drop(columns=["split"]).to_csv(path, index=False)
    settings = {"dataset": f"{path}?label=stage", **SMALL, "cache": True}
    fl.run("fedavg", **settings)
    stored = fl.run("fedavg", **settings)
    assert stored.cached
    assert stored.predict(TABLE)["label"].notna().all()
    fresh = fl.run("fedavg", **settings | {"seed": 1})
    TABLE.drop(columns=["split"])[::-1].to_csv(path, index=False)
    # The model keeps the columns of its training data.
    model = fl.load_model(fresh.save(tmp_path / "m.safetensors"))
    assert model.predict(TABLE)["label"].tolist() == fresh.predict(TABLE)["label"].tolist()


# ---------------------------------------------------------------------------------------------------- command line
def test_predict_on_the_command_line_writes_a_file_and_replaces_none(table_file, tmp_path, capsys):
    model, new, out = (str(tmp_path / name) for name in ("m.safetensors", "new.csv", "a.csv"))
    TEST_ROWS.to_csv(new, index=False)
    run = ["run", "fedavg", "--dataset", table_file, "--clients", "3", "--set", "epochs=1"]
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
