"""`schema.encode`: raw rows of any form become exactly the features that the loader computes."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlab_nb.data import federate, load
from fedlab_nb.data.schema import InputSchema
from fedlab_nb.data.tables import draw_fifth_of_rows_for_test
from fedlab_nb.errors import UsageError


def copy_through_json(schema):
    """The schema, written to JSON and read again."""
    return InputSchema.from_json(json.loads(json.dumps(schema.to_json())))


def make_patients(count=80):
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "id": np.arange(count) + 100,
        "age": rng.integers(20, 90, count).astype(float),
        "sex": rng.choice(["f", "m"], count),
        "dose": [f"{value:.1f} mg" for value in rng.normal(5, 1, count)],
        "seen": pd.date_range("2021-03-01", periods=count).astype(str),
        "note": [f"day {i}, pain" for i in range(count)],
        "ward": rng.choice(["A", "B"], count),
        "ill": rng.choice(["no", "yes"], count),
    })  # fmt: skip


@pytest.fixture
def table(tmp_path):
    rows = make_patients()
    rows.loc[::9, "age"] = np.nan
    path = tmp_path / "patients.csv"
    rows.to_csv(path, index=False)
    data = load(path, label="ill", client="ward")
    return rows, path, data


def test_a_schema_survives_json(table):
    for data in (table[2], load("heart"), load("watch"), load("digits")):
        assert copy_through_json(data.schema) == data.schema
        assert data.schema.class_names == data.class_names
        assert data.schema.input_shape == data.input_shape


def test_rows_of_any_form_become_the_loaders_features(table):
    rows, path, data = table
    schema = copy_through_json(data.schema)
    x = schema.encode(path)
    test = draw_fifth_of_rows_for_test(
        (rows.ill == "yes").to_numpy().astype(int), (rows.ward == "B").to_numpy().astype(int)
    )
    assert np.array_equal(x[test], data.x_test.numpy())
    assert x.dtype == np.float32
    assert np.array_equal(x[~test], data.x_train.numpy())
    inputs = rows.drop(columns=["ill", "ward"])
    used = inputs.drop(columns="id")
    for form in (
        rows, rows[rows.columns[::-1]], used.assign(more=1), rows.rename(columns=str.upper),
        rows.astype(object), rows.convert_dtypes(), rows.astype({"sex": "category"}),
        rows.to_dict("list"), rows.to_dict("records"), rows.to_numpy(), inputs.to_numpy(),
        used.to_numpy().tolist(),
    ):  # fmt: skip
        assert np.array_equal(schema.encode(form), x)
    row = rows.iloc[3]
    for form in (row, row.to_dict(), list(row), rows.iloc[[3]]):
        assert np.array_equal(schema.encode(form), x[3:4])
    for ending in (".tsv", ".parquet", ".xlsx", ".csv.gz"):
        file = path.with_name(f"copy{ending}")
        if ending == ".parquet":
            rows.to_parquet(file)
        elif ending == ".xlsx":
            pytest.importorskip("openpyxl")
            rows.to_excel(file, index=False)
        else:
            rows.to_csv(file, index=False, sep="\t" if ending == ".tsv" else ",")
        assert np.array_equal(schema.encode(file), x)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.drop(columns="age"), "lack the column 'age'"),
        (lambda rows: rows.assign(sex="x"), "'sex' has the value 'x'"),
        (lambda rows: rows.assign(age="old"), "holds numbers, but 'old'"),
        (lambda rows: rows.assign(dose="5 g"), "holds numbers with mg, but '5 g'"),
        (lambda rows: rows.assign(dose="5,3 mg"), "but '5,3 mg'"),
        (lambda rows: rows.assign(seen="3/4/2021"), "but '3/4/2021'"),
        (lambda rows: rows.assign(age=1e300), "too large"),
        (lambda rows: rows.to_numpy()[:, :3], "A row has 3 values"),
        (lambda rows: "nowhere.csv", "does not exist"),
        (lambda rows: rows.iloc[:0], "no rows"),
        (lambda rows: 3, "rows"),
        (lambda rows: {"age": [[1], [2]]}, "."),
    ],
)
def test_rows_that_do_not_fit_are_refused_in_one_sentence(table, change, message):
    rows, _, data = table
    with pytest.raises(UsageError) as caught:
        data.schema.encode(change(rows))
    text = str(caught.value)
    assert message in text
    assert text.endswith(".")
    assert "\n" not in text


def test_missing_values_of_a_new_row_become_the_mean(table):
    rows, _, data = table
    row = rows.iloc[[0]].assign(age=None, sex="", dose="NA")
    x = data.schema.encode(row)[0]
    first_feature = {}  # of each column
    features = 0
    for column in data.schema.columns:
        first_feature[column.name] = features
        features += column.feature_count
    assert x[first_feature["age"]] == 0
    assert x[first_feature["dose"]] == 0
    assert not x[first_feature["sex"] : first_feature["sex"] + 2].any()


def test_categories_that_occur_in_test_rows_alone_are_accepted_without_a_feature(tmp_path):
    rows = [[i % 7 + 0.5, "ab"[i % 2], i % 2] for i in range(60)]
    y = np.arange(60) % 2
    test = np.flatnonzero(draw_fifth_of_rows_for_test(y, None))
    rows[test[0]][1] = "rare"
    pd.DataFrame(rows, columns=["n", "c", "y"]).to_csv(tmp_path / "t.csv", index=False)
    schema = load(tmp_path / "t.csv").schema
    assert schema.columns[1].other_categories == ("rare",)
    assert not schema.encode([[1.5, "rare"]])[0, 1:].any()


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["features", "recordings", "grey", "colour", "floats", "sixteen"]),
)
def test_arrays_of_raw_numbers_become_the_loaders_samples(seed, kind):
    rng = np.random.default_rng(seed)
    shapes = {"features": (60, 5), "recordings": (60, 40, 3), "grey": (60, 8, 9), "colour": (60, 9, 10, 3),
              "floats": (60, 8, 8), "sixteen": (60, 8, 8)}  # fmt: skip
    x = rng.normal(3, 40, shapes[kind])
    if kind in ("grey", "colour"):
        x = np.clip(np.abs(x) * 3, 0, 255).astype(np.uint8)
    if kind == "sixteen":
        x = np.clip(np.abs(x) * 300, 0, 65535).astype(np.uint16)
    y = np.arange(60) % 3
    data = load({"x": x, "y": y})
    test = draw_fifth_of_rows_for_test(y, None)
    schema = copy_through_json(data.schema)
    assert np.array_equal(schema.encode(x[test]), data.x_test.numpy())
    assert np.array_equal(schema.encode(x[~test]), data.x_train.numpy())
    assert np.array_equal(schema.encode(x[test][0]), data.x_test.numpy()[:1])
    with pytest.raises(UsageError, match="shape"):
        schema.encode(x[:, :-1])


def test_columns_of_a_frame_of_features_are_found_by_name():
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    schema = load({"x": x, "y": np.arange(60) % 2}).schema
    assert np.array_equal(
        schema.encode(x[["c", "a", "b"]].assign(d=1)), schema.encode(x.to_numpy())
    )


@pytest.mark.parametrize(
    ("trained", "given_pixels"),
    [(255, 1.0), (16, 255), (1, 255)],
    ids=["fractions", "bytes", "whole"],
)
def test_images_of_another_range_are_refused(trained, given_pixels):
    rng = np.random.default_rng(0)
    x = rng.integers(0, trained + 1, (60, 8, 8)).astype(np.uint8)
    schema = load({"x": x, "y": np.arange(60) % 2}).schema
    new = rng.random((5, 8, 8)) * given_pixels
    with pytest.raises(UsageError, match="scale them alike"):
        schema.encode(new)


def test_a_federation_with_unseen_clients_keeps_the_schema():
    fed = federate("heart", unseen="Hungary")
    assert fed.dataset.schema is load("heart").schema
    assert fed.dataset.schema.label == "disease"
