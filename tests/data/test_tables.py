"""A user's tables: a hospital's CSV with the usual faults, federated sums of its columns, and unusable files."""

import csv
import io
import sys

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedlab_nb import run
from fedlab_nb.data import describe, federate, load
from fedlab_nb.data.columns import HASHED_FEATURES, encode_texts_as_hashed_words
from fedlab_nb.data.kinds import MOST_CATEGORIES
from fedlab_nb.data.tables import (
    compute_count_sum_and_squares_of_columns,
    compute_pooled_mean_and_deviation,
    count_bytes_to_standardise_columns,
)
from fedlab_nb.errors import UsageError

HEAD = ["age", "pressure", "sex", "note", "constant", "hospital", "diagnosis"]


def write_table(path, rows, head=HEAD, delimiter=","):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows([head, *rows])
    path.write_text(text.getvalue(), encoding="utf-8")
    return path


def make_patients(count=120):
    """A client column, missing values, text labels, a column of short and one of long texts, a constant column."""
    draw = np.random.default_rng(0)
    rows = []
    for i in range(count):
        is_ill = draw.random() < 0.5
        age = draw.normal(60 if is_ill else 45, 12)
        pressure = draw.normal(150 if is_ill else 120, 15)
        complaint = "short of breath" if is_ill else "no complaints"
        rows.append(
            [
                "" if i % 9 == 0 else f"{age:.0f}",
                "NA" if i % 7 == 0 else f"{pressure:.1f}",
                "fm"[i % 2],
                f"case {i}, {complaint}",
                "7",
                ["North", "South", "East"][i % 3],
                "ill" if is_ill else "well",
            ]
        )
    return rows


@pytest.fixture
def hospital(tmp_path):
    return str(write_table(tmp_path / "hospital.csv", make_patients()))


def test_a_hospital_csv_runs_without_preparation(hospital):
    data = load(hospital)
    facts = describe(hospital)
    assert data.class_names == ("ill", "well")
    assert data.client_names == ("East", "North", "South")
    assert data.input_shape == facts.input_shape == (3 + 2 + HASHED_FEATURES,)
    assert facts.n_clients == 3
    assert (len(data.x_train), len(data.x_test)) == (
        facts.n_train,
        facts.n_test,
    )
    assert facts.n_test in (23, 24)
    assert facts.n_train + facts.n_test == 120
    assert data.digest == facts.digest
    assert data is load(hospital)
    for words in (
        "label is column 'diagnosis'",
        "clients are column 'hospital'",
        "72 bytes",
        "sex",
        "note",
    ):
        assert words in data.note
    outcome = run("fedavg", dataset=hospital, epochs=5)
    assert outcome.settings.partition == "natural"
    assert outcome.settings.clients == 3
    assert outcome.accuracy > 0.7


def test_numbers_texts_and_constants_become_features_by_hand(tmp_path):
    rows = [[i % 4, "x" if i % 2 else "", 5, "a" if i % 2 else "b"] for i in range(40)]
    data = load(write_table(tmp_path / "t.csv", rows, ["n", "t", "c", "y"]))
    x = torch.cat([data.x_train, data.x_test])
    assert x.shape == (40, 3)
    assert set(x[:, 1].tolist()) == {0.0, 1.0}
    assert not x[:, 2].any()
    assert data.x_train[:, 0].mean().abs() < 1e-6
    assert data.x_train[:, 0].square().mean() == pytest.approx(1)


@pytest.mark.parametrize("clients", [1, 3, 10])
def test_moments_from_sums_over_clients_equal_those_of_all_rows(clients):
    draw = np.random.default_rng(1)
    x = draw.normal(3, 2, (200, 4)) * [1, 1e4, 1e-4, 0] + [0, 1e5, 0, 4]
    x[draw.random(x.shape) < 0.2] = np.nan
    mean, scale = compute_pooled_mean_and_deviation(x, np.arange(200) % clients)
    assert mean == pytest.approx(np.nanmean(x, axis=0), rel=1e-12)
    assert scale[:3] == pytest.approx(np.nanstd(x, axis=0)[:3], rel=1e-8)
    assert scale[3] == 1
    assert (
        compute_count_sum_and_squares_of_columns(x).nbytes
        == count_bytes_to_standardise_columns(4)[0]
    )
    assert mean.nbytes + scale.nbytes == count_bytes_to_standardise_columns(4)[1]


def test_hashed_words_need_no_vocabulary():
    rows = encode_texts_as_hashed_words(["no pain", None])
    other_rows = encode_texts_as_hashed_words(["much pain", "no pain", "Pain, no!"])
    assert np.array_equal(rows[0], other_rows[1])
    assert np.array_equal(other_rows[1], other_rows[2])
    assert not rows[1].any()
    assert np.square(rows[0]).sum() == pytest.approx(HASHED_FEATURES)


def test_options_choose_label_and_client_columns(hospital):
    data = load(f"{hospital}?label=sex&client=")
    assert data.class_names == ("f", "m")
    assert data.client_names == ()
    assert data.digest != load(hospital).digest
    assert federate(f"{hospital}?client=sex").clients == 2
    assert "All rows are of one constant" in load(f"{hospital}?client=constant").note


def test_semicolons_decimal_commas_and_a_byte_order_mark_are_read(tmp_path):
    path = tmp_path / "german.csv"
    lines = ["größe;y", *(f"{i},5;{'ja' if i % 2 else 'nein'}" for i in range(20))]
    path.write_text("\n".join(lines), encoding="utf-8-sig")
    assert load(path).input_shape == (1,)
    assert load(path).class_names == ("ja", "nein")


def test_a_parquet_file_is_the_same_table(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [[float(i), None if i % 5 == 0 else "ab"[i % 2], i % 3] for i in range(60)]
    named = {name: [row[i] for row in rows] for i, name in enumerate(["n", "t", "label"])}
    parquet.write_table(pyarrow.table(named), tmp_path / "t.parquet")
    plain = write_table(
        tmp_path / "t.csv",
        [["" if v is None else v for v in row] for row in rows],
        ["n", "t", "label"],
    )
    assert torch.equal(load(tmp_path / "t.parquet").x_train, load(plain).x_train)
    (tmp_path / "bad.parquet").write_text("no table")
    with pytest.raises(UsageError, match=r"bad.parquet cannot be read as a table"):
        load(tmp_path / "bad.parquet")


def test_parquet_without_pyarrow_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_text("")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="needs pyarrow"):
        load(tmp_path / "t.parquet")


GOOD = "a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(20))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("a\n1\n2\n", "has one column"),
        ("1,2\n" + GOOD[4:], "holds numbers"),
        (GOOD + "1,2,3\n", "Line 22 of .* has too many cells"),
        (GOOD + "1\n", "Line 22 of .* has too few cells"),
        ("a,A,y\n1,2,3\n", "two columns with the name"),
        (GOOD.replace("7,", "seven,"), "holds numbers, but 'seven' in line 9"),
        (GOOD.replace("7,", "1e999,"), "too large for a number"),
        (GOOD.replace("y\n", "client\n"), "has only columns for|Column"),
        ("a,y\n" + "".join(f"{i},0\n" for i in range(20)), "one value"),
        ("a,y\n" + "".join(f"{i},{i}\n" for i in range(20)), "20 different values in 20 rows"),
        ("a,y\n1,0\n2,1\n", "has 2 rows with a label"),
        (
            "a,client,y\n" + "".join(f"{i},{i},{i % 2}\n" for i in range(20)),
            "names 20 clients for 20 rows",
        ),
        (
            "client,y\n" + "".join(f"{i % 2},{i % 2}\n" for i in range(20)),
            "has only columns for label and clients",
        ),
    ],
)
def test_unusable_tables_are_refused_in_one_sentence(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(UsageError, match=message) as error:
        load(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?label=nobody", "has no column 'nobody' for its label"),
        ("?lable=y", "Unknown option of a table 'lable': did you mean 'label'"),
        ("?label=sex&client=sex", "cannot be label and client"),
    ],
)
def test_wrong_options_are_refused(hospital, query, message):
    with pytest.raises(UsageError, match=message):
        load(hospital + query)


def test_unknown_encodings_and_missing_files_are_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes("a,y\nß,1\n".encode("latin-1"))
    with pytest.raises(UsageError, match="not utf-8 text"):
        load(f"{tmp_path}/t.csv?encoding=utf-8")
    with pytest.raises(UsageError, match="'klingon' is not an encoding"):
        load(f"{tmp_path}/t.csv?encoding=klingon")
    with pytest.raises(UsageError, match="does not exist"):
        load("nowhere.csv")


UNWRITABLE = "" if sys.version_info >= (3, 11) else "\0"  # by the csv module
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=UNWRITABLE), max_size=12
)
CELLS = st.one_of(
    st.integers(-(10**12), 10**12).map(str), st.floats(allow_nan=True).map(str), TEXTS,
    st.sampled_from(["", "NA", "?", "yes", "no", "a b c", '"', ",", "\n"]),
)  # fmt: skip


@pytest.mark.slow
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), columns=st.integers(1, 4), rows=st.integers(0, 40), client=st.booleans())
def test_any_table_is_loaded_or_refused_in_one_sentence(tmp_path, data, columns, rows, client):
    head = [*(f"c{i}" for i in range(columns)), "label"]
    if client:
        head.insert(-1, "client")
    cells = data.draw(
        st.lists(st.lists(CELLS, min_size=columns, max_size=columns), min_size=rows, max_size=rows)
    )
    content = []
    for i, row in enumerate(cells):
        client_cell = [str(i % 3)] if client else []
        content.append([*row, *client_cell, "ab"[i % 2]])
    path = write_table(tmp_path / f"{abs(hash(str(content)))}.csv", content, head)
    try:
        table = load(path)
    except UsageError as error:
        assert str(error).strip().endswith(".")
        assert len(str(error).splitlines()) == 1
        return
    x = torch.cat([table.x_train, table.x_test])
    assert x.isfinite().all()
    assert len(x) == rows
    assert table.classes == 2
    assert table.x_train.shape[1] <= columns * max(MOST_CATEGORIES, HASHED_FEATURES)
    assert table.client_names == (("0", "1", "2") if client else ())
    copy = write_table(tmp_path / "copy.csv", content, head)
    assert torch.equal(load(copy).x_train, table.x_train)
