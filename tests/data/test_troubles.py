"""Faults of data files that users have reported: each is read correctly or refused in one sentence that helps."""

import gzip
import zipfile

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits

from fedlab_nb.data import add_dataset, load
from fedlab_nb.errors import UsageError

pytestmark = pytest.mark.usefixtures("forget_names")
DIGITS = load_digits()


@pytest.fixture
def write(tmp_path):
    """A function that writes a text file of a first line and one line for each row."""

    def write_file(head, row, count=60, name="f.csv", end="\n", encoding="utf-8"):
        path = tmp_path / name
        text = end.join([head, *(row(i) for i in range(count))]) + end
        path.write_bytes(text.encode(encoding))
        return str(path)

    return write_file


def find_column(data, name):
    return next(column for column in data.schema.columns if column.name == name)


def read_values(data, path, name):
    """float64 [N]: the numbers of a column as they were read, computed back from its feature."""
    feature = 0
    for column in data.schema.columns:
        if column.name == name:
            break
        feature += column.feature_count
    number = find_column(data, name)
    return data.schema.encode(path)[:, feature].astype(float) * number.scale + number.mean


def read_refusal(source, **options):
    with pytest.raises(UsageError) as caught:
        load(source, **options)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


# ------------------------------------------------------------------- F2: pixels by what they hold
@pytest.mark.slow
@pytest.mark.parametrize(
    ("pixels", "high", "note"),
    [
        (DIGITS.images.astype("u1"), 16, "range 0 to 16"),
        ((DIGITS.images > 8).astype("u1"), 1, "used as they are"),
        (DIGITS.images > 8, 1, "true or false"),
        ((DIGITS.images * 4000).astype("u2"), 64000, "range 0 to 64000"),
        (DIGITS.images / 16, 1, "used as they are"),
        ((DIGITS.images * 15.9375).astype("u1"), 255, "divided by 255"),
    ],
)
def test_images_are_scaled_by_what_they_hold(pixels, high, note):
    data = load({"x": pixels, "y": DIGITS.target})
    assert note in data.note
    all_pixels = np.concatenate([data.x_train.numpy(), data.x_test.numpy()])
    expected = np.sort((pixels.astype(float) / high).ravel())
    assert np.sort(all_pixels.ravel()) == pytest.approx(expected, abs=1e-6)


# --------------------------------------------------------------- F3, F7: words and numbers as classes
def test_words_for_missing_values_can_be_classes(write):
    words = ["none", "mild", "NA"]
    path = write("a,null,stage", lambda i: f"{i % 7}.5,{['null', 'b'][i % 2]},{words[i % 3]}")
    data = load(f"{path}?client=null")
    assert data.class_names == ("NA", "mild", "none")
    assert data.client_names == ("b", "null")
    assert len(data.y_train) + len(data.y_test) == 60
    assert "?missing=NA" in data.note
    less = load(path, client="null", missing=["NA", "-9"])
    assert less.class_names == ("mild", "none")
    assert "20 rows without a label" in less.note


def test_categories_and_signs_are_not_taken_for_missing_values(write):
    data = load(write("a,rh,y", lambda i: f"{['none', 'some', 'NA'][i % 3]},{'+-'[i % 2]},{i % 2}"))
    assert find_column(data, "a").categories == ("NA", "none", "some")
    assert find_column(data, "rh").categories == ("+", "-")


def test_words_among_numbers_are_mentioned_and_can_be_declared_missing(write):
    def make_cell(i):
        if i % 10 == 0:
            return "none"
        if i % 10 == 1:
            return "-9"
        return str(i % 8)

    path = write("a,b,y", lambda i: f"{make_cell(i)},{i % 3}.5,{'yn'[i % 2]}")
    assert "'none' (6 times)" in load(path).note
    assert (
        find_column(load(path), "a").mean < find_column(load(path + "?missing=none,-9"), "a").mean
    )
    assert "none" in find_column(load(path + "?missing=-9"), "a").categories


def test_a_number_that_may_mean_missing_is_mentioned(write):
    path = write("a,b,y", lambda i: f"{-999 if i % 5 == 0 else i % 9},{i % 3}.5,{i % 2}")
    assert "?missing=-999" in load(path).note
    assert find_column(load(path + "?missing=-999"), "a").mean == pytest.approx(4, abs=0.5)


@pytest.mark.parametrize(
    "texts", [("0", "1", "0.0", "1.0"), ("0", "1", "0.00", "1e0"), ("0", "1", " 0", "1 ")]
)
def test_equal_numbers_are_one_class(write, texts):
    path = write("a,label", lambda i: f"{i % 3}.{i % 7},{texts[i % 4]}")
    data = load(path)
    assert data.class_names == ("0", "1")
    assert (data.y_train == 1).sum() + (data.y_test == 1).sum() == 30


def test_labels_that_differ_in_case_alone_need_an_option(write):
    path = write("a,y", lambda i: f"{i % 7}.5,{['Yes', 'yes ', 'no'][i % 3]}")
    assert "?case=ignore" in read_refusal(path)
    assert load(path + "?case=ignore").classes == 2
    assert load(path + "?case=keep").classes == 3


# ------------------------------------------------------------------------------------- F4: the header
@pytest.mark.parametrize(
    "first_line", ["5.1,3.5,setosa", "1,2,0", "5.1,x,setosa", "a,x,setosa", "1;2;setosa"]
)
def test_a_first_line_that_may_be_a_sample_needs_an_option(write, first_line):
    mark = ";" if ";" in first_line else ","
    cells = first_line.split(mark)

    def make_row(i):
        label = ["setosa", "other"][i % 2]
        if first_line.startswith("a,"):
            return f"{'ab'[i % 2]},{'xy'[i % 3 % 2]},{label}"
        return mark.join([cells[0] if i % 2 else "5.5", cells[1], label])

    path = write(first_line, make_row)
    message = read_refusal(path)
    assert "?header=no" in message
    assert "?header=yes" in message
    assert len(load(path + "?header=yes").y_train) + len(load(path + "?header=yes").y_test) == 60


def test_a_file_without_a_header_keeps_all_rows(write):
    path = write("5.1,3.5,setosa", lambda i: f"{i % 7}.1,{i % 5}.5,{['setosa', 'b'][i % 2]}")
    data = load(path, header="no")
    assert len(data.y_train) + len(data.y_test) == 61
    assert data.class_names == ("b", "setosa")
    assert np.array_equal(data.schema.encode([[5.1, 3.5]]), data.schema.encode([[5.1, 3.5, "?"]]))


# ------------------------------------------------------------------------------------- F5, F6: names of rows
def test_row_numbers_are_not_features(write, tmp_path):
    table = pd.DataFrame({"a": [0.5, 0.1] * 30, "label": [0] * 30 + [1] * 30})
    shuffled = table.sample(frac=1, random_state=0)
    for number, frame in enumerate([table, shuffled]):
        frame.to_csv(tmp_path / f"saved{number}.csv")
        data = load(tmp_path / f"saved{number}.csv")
        assert data.input_shape == (1,)
        assert "saved with the table" in data.note
    data = load(write("id,a,label", lambda i: f"{i * 7 + 100},{i % 7}.5,{i // 30}"))
    assert data.input_shape == (1,)
    assert "Left out: id" in data.note
    data = load(write("z,a,label", lambda i: f"{i + 5},{i % 7}.5,{i // 30}"))
    assert data.input_shape == (1,)
    assert "counts the rows" in data.note
    data = load(write("id,a,label", lambda i: f"{i},{i % 7}.5,{i // 30}"), number="id")
    assert data.input_shape == (2,)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("id", lambda i: f"{i}.5"),  # decimals are never row numbers
        ("weight", lambda i: str(i * i + 40)),  # unique, but neither consecutive nor named as an id
        ("number", lambda i: str(i // 2)),  # not unique
        ("time", lambda i: f"{i / 4:g}"),
    ],
)
def test_measurements_are_features(write, name, row):
    data = load(write(f"{name},a,label", lambda i: f"{row(i)},{i % 7}.5,{i % 2}"))
    assert find_column(data, name).kind == "number"


# ------------------------------------------------------------------------------------- F8: notations of numbers
COLUMNS = {
    "decimal comma, tabs": ("\t", lambda i: (f"{i % 10},5", i % 10 + 0.5)),
    "decimal comma, pipes": ("|", lambda i: (f"{i % 30},25", i % 30 + 0.25)),
    "decimal comma, quoted": (",", lambda i: (f'"{i % 30},5"', i % 30 + 0.5)),
    "thousands and comma": (";", lambda i: (f"{i % 9 + 1}.{i % 90 + 100},56", 1000 * (i % 9 + 1) + i % 90 + 100.56)),
    "dollars": (",", lambda i: (f'"$1,{i % 90 + 100}.50"', 1000 + i % 90 + 100.5)),
    "euros": (";", lambda i: (f"{i % 90},50 €", i % 90 + 0.5)),
    "percent": (",", lambda i: (f"{i % 90}%", i % 90)),
    "minus sign": (",", lambda i: (f"\u2212{i % 50}.5", -(i % 50) - 0.5)),
    "limit": (",", lambda i: ("<0.1" if i % 4 == 0 else f"{i / 10}", 0.1 if i % 4 == 0 else i / 10)),
    "Swiss": (";", lambda i: (f"{i % 9 + 1}'234.50", 1000 * (i % 9 + 1) + 234.5)),
    "narrow blanks": (";", lambda i: (f"{i % 9 + 1}\u202f234,5", 1000 * (i % 9 + 1) + 234.5)),
    "unit": (",", lambda i: (f"{i % 50} mg", i % 50)),
    "exponent": (",", lambda i: (f"{i % 50}.5e-3", (i % 50 + 0.5) / 1000)),
    "millions": (";", lambda i: (f"{i % 8 + 1}.000.{100 + i % 9}", 1e6 * (i % 8 + 1) + 100 + i % 9)),
}  # fmt: skip


@pytest.mark.parametrize("kind", COLUMNS)
def test_numbers_are_read_in_every_common_notation(write, kind):
    mark, cell = COLUMNS[kind]
    path = write(
        mark.join("ab") + f"{mark}label",
        lambda i: mark.join([cell(i)[0], "xy"[i % 2], str(i % 2)]),
        120,
    )
    data = load(path)
    assert find_column(data, "a").kind == "number", data.note
    assert read_values(data, path, "a") == pytest.approx(
        [cell(i)[1] for i in range(120)], rel=1e-5, abs=1e-5
    )


def test_an_ambiguous_comma_needs_an_option(write):
    path = write("a,b,label", lambda i: f'"1,{i % 90 + 100}",{"xy"[i % 2]},{i % 2}')
    assert "?decimal=" in read_refusal(path)
    comma = load(path + "?decimal=,")
    point = load(path, decimal="point")
    assert read_values(comma, path, "a")[:2] == pytest.approx([1.100, 1.101])
    assert read_values(point, path, "a")[:2] == pytest.approx([1100, 1101])
    settled = write("a,b,label", lambda i: f'"1,{i % 90 + 100}",{i % 9}.5,{i % 2}', name="g.csv")
    assert read_values(load(settled), settled, "a")[0] == pytest.approx(1100)
    semicolons = write(
        "a;b;label", lambda i: f"{i % 9 + 1}.{i % 900 + 100};x{i % 3};{i % 2}", name="h.csv"
    )
    assert "?decimal=" in read_refusal(semicolons)


@pytest.mark.parametrize(
    "cell",
    [
        lambda i: f"{100 + i}/{60 + i % 30}",
        lambda i: f"({i + 1}.50)",
        lambda i: f"{i + 1}{'kM'[i % 2]}",
        lambda i: f'"1,{i + 10},234"',
        lambda i: f"0x{i:02x}",
        lambda i: f"{i}.5-",
        lambda i: f"'{i % 30}",
        lambda i: f"{i}{' mg' if i % 2 else ''}",
        lambda i: f"{i}{'%' if i % 2 else ''}",
        lambda i: f"{i}.5" if i % 2 else f'"{i},5"',
        lambda i: f"+49 171 {i * 79 + 1000}",
        lambda i: f"{i * 37 % 1000:05d}",
        lambda i: f"2020-01-{i % 28 + 1:02d}" if i % 2 else f"{i % 28 + 1}.1.2020",
        lambda i: "inf" if i == 5 else str(i % 9),
        lambda i: "#DIV/0!" if i == 5 else str(i % 9),
        lambda i: "l2" if i == 5 else str(i % 9),
    ],
)  # fmt: skip
def test_cells_that_are_nearly_numbers_are_refused_instead_of_read_as_words(write, cell):
    path = write("a,b,label", lambda i: f"{cell(i)},{i % 7}.5,{i % 2}")
    assert "Column 'a'" in read_refusal(path)


# ------------------------------------------------------------------------------------- F9, F10, F22: files and paths
@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("r,t,label,", "{a}.5,{b}.5,{y}"),
        ("r,t,label,", "{a}.5,{b}.5,{y},"),
        ("r,t,label", "{a}.5,{b}.5,{y},"),
        ("sep=;\nr;t;label", "{a},5;{b},5;{y}"),
        ('"sep=|"\nr|t|label', "{a}.5|{b}.5|{y}"),
        ("# made by a program\n# in 2024\nr;t;label", "{a},5;{b},5;{y}"),
        ("#r,t,label", "{a}.5,{b}.5,{y}"),
        ("\n\nr,t,label", "{a}.5,{b}.5,{y}\n"),
        ("r t label", "{a}.5   {b}.5 {y}"),
    ],
)
def test_lines_that_are_not_rows_are_skipped(write, head, row):
    path = write(head, lambda i: row.format(a=i % 7, b=i % 5, y=i % 2))
    data = load(path)
    assert data.input_shape == (2,)
    assert len(data.y_train) + len(data.y_test) == 60
    assert read_values(data, path, "r") == pytest.approx([i % 7 + 0.5 for i in range(60)], abs=1e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Report of 2024\n\na,b,y\n1,2,0\n", "remove lines that are not rows"),
        ("a,b,y\n" + "1,2,0\n" * 20 + "(20 rows)\n", "Line 22"),
        ("a,b,y\n" + '1,"2,0\n' * 20, "."),
        ("Patient,,Lab,,y\n" + "1,2,3,4,0\n" * 20, "undo merged cells"),
        (
            "s,a,y\n"
            + "".join(f"{'AB'[i % 2]},{i % 9},{i % 2}\n" for i in range(60))
            + "Total,99,30\n",
            "totals",
        ),
    ],
)
def test_unusable_files_are_refused(tmp_path, text, message):
    (tmp_path / "f.csv").write_text(text)
    assert message in read_refusal(tmp_path / "f.csv")


def test_a_plus_in_a_name_stays_a_plus(write):
    path = write("a,HER2+", lambda i: f"{i % 9}.5,{i % 2}")
    assert load(path + "?label=HER2+").schema.label == "HER2+"
    assert load(path, label="HER2+").schema.label == "HER2+"
    odd = write("a,50% & more,y", lambda i: f"{i % 9}.5,{i % 3},{i % 2}", name="g.csv")
    assert load(odd, label="50% & more").schema.label == "50% & more"


def pack_table(kind, text, path):
    if kind == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inside/data.csv", text)
            archive.writestr("__MACOSX/inside/._data.csv", "x")
    else:
        path.write_bytes(gzip.compress(text.encode()))


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.zip", ".zip", ".tsv.gz"])
def test_compressed_tables_are_read(tmp_path, ending):
    mark = "\t" if "tsv" in ending else ","
    rows = [mark.join([f"{i % 7}.5", "xy"[i % 3 % 2], str(i % 2)]) for i in range(60)]
    text = "\n".join([mark.join(["a", "b", "y"]), *rows])
    (tmp_path / "plain.csv").write_text(text)
    pack_table("." + ending.rpartition(".")[2], text, tmp_path / f"f{ending}")
    assert torch.equal(load(tmp_path / f"f{ending}").x_train, load(tmp_path / "plain.csv").x_train)


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_encoding_and_line_ending_is_read(write, encoding, end):
    path = write(
        "größe;y", lambda i: f"{i % 7},5;{['groß', 'klein'][i % 2]}", end=end, encoding=encoding
    )
    data = load(path)
    assert data.class_names == ("groß", "klein")
    assert find_column(data, "größe").kind == "number"
    assert ("Windows-1252" in data.note) == (encoding in ("cp1252", "latin-1"))


def test_a_file_is_read_in_the_given_encoding(write):
    path = write("a;y", lambda i: f"{i % 7},5;{['да', 'нет'][i % 2]}", encoding="koi8-r")
    assert load(path, encoding="koi8-r").class_names == ("да", "нет")


@pytest.mark.parametrize("name", ["x.mat", "x.foo", "x.xls", "x.csv.gz", "folder/x"])
def test_the_refusal_of_an_unknown_format_names_those_that_are_read(name, tmp_path, monkeypatch):
    assert ".csv" in read_refusal(name)
    assert ".npz" in read_refusal(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.mat").write_bytes(b"x")
    assert ".csv" in read_refusal("x.mat")


def test_spreadsheets_are_read_and_several_sheets_need_an_option(tmp_path):
    pytest.importorskip("openpyxl")
    rows = []
    for i in range(60):
        rows.append(
            {
                "id": i,
                "when": pd.Timestamp(2020, 1, i % 28 + 1),
                "dose": i % 9 / 4,
                "sex": "fm"[i % 2],
                "n": i % 5,
                "ill": ["yes", "no"][i % 3 % 2],
            }
        )
    pd.DataFrame(rows).to_excel(tmp_path / "t.xlsx", index=False)
    pd.DataFrame(rows).to_csv(tmp_path / "t.csv", index=False)
    sheet = load(tmp_path / "t.xlsx")
    text = load(tmp_path / "t.csv")
    assert torch.equal(sheet.x_train, text.x_train)
    assert sheet.class_names == ("no", "yes")
    assert find_column(sheet, "id").kind == "left out"
    with pd.ExcelWriter(tmp_path / "two.xlsx") as writer:
        pd.DataFrame(rows).to_excel(writer, sheet_name="data", index=False)
        pd.DataFrame({"note": ["x"]}).to_excel(writer, sheet_name="notes", index=False)
    assert "sheet=" in read_refusal(tmp_path / "two.xlsx")
    assert torch.equal(load(f"{tmp_path}/two.xlsx?sheet=data").x_train, text.x_train)


def test_single_arrays_are_read_with_labels_in_a_column_or_a_second_file(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 4))
    np.save(tmp_path / "t.npy", np.column_stack([x, np.arange(60) % 2]))
    assert load(tmp_path / "t.npy").class_names == ("0", "1")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((60, 8, 8)))
    np.save(tmp_path / "y.npy", np.arange(60) % 2)
    assert "?y=" in read_refusal(tmp_path / "x.npy")
    assert load(f"{tmp_path}/x.npy?y=y.npy").input_shape == (1, 8, 8)


# ------------------------------------------------------------------------------------- F11, F18, F19: from memory
LABELS = ["cat", "dog"] * 50


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(LABELS),
        pd.Series(LABELS, dtype="category"),
        pd.Series(LABELS).astype(object),
        pd.Series(LABELS, dtype="string"),
        pd.Categorical(LABELS),
        np.array(LABELS, dtype=object),
        np.array(LABELS),
        np.array(LABELS, dtype="S3"),
        LABELS,
        tuple(LABELS),
    ],
)
def test_labels_of_any_type_equal_those_of_a_list(labels):
    x = np.random.default_rng(0).random((100, 4))
    data = load({"x": x, "y": labels})
    same = load({"x": x, "y": LABELS})
    assert data.class_names == ("cat", "dog")
    assert torch.equal(data.y_train, same.y_train)
    assert data.digest == same.digest


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (pd.Series([1, None] * 50, dtype="Int64"), "50 missing values"),
        (pd.Series(["a", None] * 50), "50 missing values"),
        (pd.Series(pd.date_range("2020-01-01", periods=100)), "holds dates"),
        (np.ma.masked_array([0, 1] * 50, mask=[True, False] * 50), "50 masked values"),
    ],
)
def test_labels_with_missing_values_are_refused(labels, message):
    assert message in read_refusal({"x": np.ones((100, 4)), "y": labels})


def make_frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "n": rng.normal(size=100), "c": pd.Categorical(rng.choice(list("uvw"), 100)), "b": rng.random(100) > 0.5,
        "d": pd.date_range("2020-01-01", periods=100), "i": pd.array([1, None, 3, 4] * 25, dtype="Int64"),
        "s": rng.choice(["x", "y"], 100), "y": LABELS,
    })  # fmt: skip


def test_a_dataframe_equals_its_file(tmp_path):
    table = make_frame()
    table.to_csv(tmp_path / "t.csv", index=False)
    data = load(table, label="y")
    file = load(tmp_path / "t.csv", label="y")
    assert torch.equal(data.x_train, file.x_train)
    assert torch.equal(data.y_test, file.y_test)
    separate_labels = load({"x": table.drop(columns="y"), "y": table.y})
    assert torch.equal(separate_labels.x_train, data.x_train)
    x = table.drop(columns="y")
    y = table.y
    halves = {"x_train": x[:80], "y_train": y[:80], "x_test": x[80:100], "y_test": y[80:100]}
    assert len(load(halves).x_test) == 20
    assert add_dataset("mine", table) == "mine"
    assert load("mine").classes == 2


def test_tensors_masked_arrays_and_sparse_matrices_are_accepted():
    import scipy.sparse

    x = np.random.default_rng(0).random((60, 4)).astype(np.float32)
    y = np.arange(60) % 2
    plain = load({"x": x, "y": y})
    for same in (torch.from_numpy(x), torch.from_numpy(x).requires_grad_(), scipy.sparse.csr_array(x),
                 np.ma.masked_array(x), pd.DataFrame(x), x.tolist()):  # fmt: skip
        assert torch.equal(load({"x": same, "y": torch.from_numpy(y)}).x_train, plain.x_train)
    assert load({"x": torch.from_numpy(x).bfloat16(), "y": y}).input_shape == (4,)
    assert "masked" in read_refusal({"x": np.ma.masked_array(x, mask=x > 0.9), "y": y})


def test_labels_that_start_at_1_leave_no_empty_class():
    data = load({"x": DIGITS.images, "y": DIGITS.target + 1})
    assert data.class_names == tuple(str(k) for k in range(1, 11))
    assert "labels are 1..10" in data.note
    zero = load({"x": DIGITS.images, "y": DIGITS.target})
    assert torch.equal(zero.y_train, data.y_train)


def test_narrow_images_can_be_declared_recordings():
    x = np.random.default_rng(0).random((50, 128, 9))
    y = [0, 1] * 25
    data = load({"x": x, "y": y})
    assert "pictures of 128x9" in data.note
    assert "kind=recordings" in data.note
    assert load({"x": x, "y": y}, kind="recordings").input_shape == (9, 128)


def test_a_dict_is_accepted_and_a_misspelt_key_is_named():
    assert load({"x": DIGITS.data, "y": DIGITS.target}).input_shape == (64,)
    assert "did you mean" in read_refusal({"x": DIGITS.data, "y": DIGITS.target, "x_tests": 1})


# ------------------------------------------------------------------------------------- F23: split and groups
def make_patient_row(i):
    return f"{i % 9}.5,{'train' if i % 3 else 'Test'},{i // 4},{i // 2 % 2}"


def test_columns_can_define_the_split_and_groups(write):
    path = write("a,split,patient_id,label", make_patient_row)
    without_options = load(path)
    assert without_options.input_shape == (1,)
    assert "?split=split" in without_options.note
    assert "?group=patient_id" in without_options.note
    for data in (load(path, split="split"), load(path + "?split=split")):
        assert len(data.y_test) == 20
        assert data.input_shape == (1,)
    cells = pd.read_csv(path)
    grouped_data = load(path, group="patient_id", split="")
    assert 8 <= len(grouped_data.y_test) <= 16
    assert len(grouped_data.y_test) % 4 == 0
    assert "both sides" in read_refusal(path + "?split=split&group=patient_id")
    arrays = {"x": cells[["a"]].to_numpy(), "y": cells.label.to_numpy()}
    split = load(arrays | {"split": cells.split.to_numpy()})
    assert len(split.y_test) == 20
    assert len(load(arrays | {"group": cells.patient_id}).y_test) % 4 == 0


@pytest.mark.parametrize("clients", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_no_group_is_on_both_sides_of_the_split(seed, clients):
    from fedlab_nb.data.tables import draw_test_rows_in_whole_groups

    rng = np.random.default_rng(seed)
    groups = np.sort(rng.integers(0, 30, 200))
    y = rng.integers(0, 3, 200)
    owner = groups % 3 if clients else None
    test = draw_test_rows_in_whole_groups(y, groups, owner)
    assert not set(groups[test]) & set(groups[~test])
    assert 20 <= test.sum() <= 70
    assert set(y[~test]) == {0, 1, 2}
    if clients:
        assert set(owner[~test]) == {0, 1, 2}


@pytest.mark.parametrize(
    ("word", "message"), [("maybe", "holds 'maybe'"), ("train", "has no test rows")]
)
def test_an_unclear_split_column_is_refused(write, word, message):
    path = write("a,part,label", lambda i: f"{i % 9}.5,{word if i == 3 else 'train'},{i % 2}")
    assert message in read_refusal(path, split="part")


# ------------------------------------------------------------------------------------- further files
def test_an_unknown_word_among_numbers_needs_an_option(write):
    path = write("a,b,y", lambda i: f"{'ND' if i % 5 == 0 else i * 7 % 40},{i % 7}.5,{i % 2}")
    assert "?missing=ND" in read_refusal(path)
    assert find_column(load(path, missing="ND"), "a").kind == "number"


def test_a_last_line_of_sums_is_refused(write, tmp_path):
    path = write("a,b,y", lambda i: f"{i % 9 + 1},{i % 7}.5,{i % 2}")
    cells = pd.read_csv(path)
    pd.concat([cells, cells.sum().to_frame().T]).to_csv(tmp_path / "sums.csv", index=False)
    assert "holds the sums" in read_refusal(tmp_path / "sums.csv")


def test_repeated_header_lines_are_skipped(write):
    path = write(
        "kind,b,y",
        lambda i: "kind,b,y" if i == 30 else f"{'uv'[i % 2]},{i % 7}.5,{'ab'[i % 3 % 2]}",
    )
    data = load(path)
    assert data.class_names == ("a", "b")
    assert find_column(data, "kind").categories == ("u", "v")
    assert "repeat the names" in data.note


def test_patient_numbers_with_gaps_are_not_features(tmp_path):
    table = pd.DataFrame(
        {"patient_id": [None, *range(1, 60)], "time": np.arange(60.0), "y": [0, 1] * 30}
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    for data in (load(tmp_path / "t.csv"), load(table)):
        assert find_column(data, "patient_id").kind == "left out"
        assert find_column(data, "time").kind == "number"


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        (lambda i: f"{i % 9 * 5}-{i % 9 * 5 + 4}", "category"),  # age groups
        (lambda i: ["0-4", "5-9", "10-14", "85+", "<1"][i % 5], "category"),
        (lambda i: ["1st", "2nd", "3rd"][i % 3], "category"),
        (lambda i: ["T1", "T2a", "T2b"][i % 3], "category"),
        (lambda i: ["1a", "1b", "2a"][i % 3], "category"),
        (lambda i: ["0", "1", "2", "3+"][i % 4], "category"),
        (lambda i: f"{i % 5:03d}", "category"),  # wards
        (lambda i: f"E{i % 30}.1", "words"),  # codes of diagnoses
        (lambda i: f"{i % 24}:{i % 60:02d}", "number"),  # times of day
        (lambda i: f"2020-{i % 12 + 1:02d}", "number"),  # months
        (lambda i: f"{i % 28 + 1}. {['Jan', 'Feb'][i % 2]} 2020", "refused"),
        (lambda i: f"{i % 28 + 1} {['Jan', 'Feb'][i % 2]} 2020", "number"),
        (lambda i: f"{i % 28 + 1}/{i % 12 + 1}/2020", "number"),  # 28/1: days first
        (lambda i: f"{i % 12 + 1}/{i % 11 + 1}/2020", "refused"),
        (lambda i: f"{i % 40}°{i % 60}'N", "refused"),
        (lambda i: f"{i % 40}h {i % 60}min", "refused"),
        (lambda i: f"~{i % 40}", "refused"),
        (lambda i: f"{i}.{i}.{i}", "refused"),
        (lambda i: "\u0661\u0662"[i % 2] * (i % 30 + 1), "refused"),  # Arabic digits
        (lambda i: ["*", "**", "***"][i % 3], "category"),
        (lambda i: ["TRUE", "FALSE"][i % 2], "category"),
        (lambda i: f"{i % 30 + 1}k", "number"),
    ],
)  # fmt: skip
def test_the_kind_of_a_column_follows_its_cells(write, cell, kind):
    path = write("a,b,y", lambda i: f"{cell(i)},{i % 7}.5,{i % 3 % 2}")
    if kind == "refused":
        assert "'a'" in read_refusal(path)
    else:
        assert find_column(load(path), "a").kind == kind
