"""The prediction of a row depends on the row only: not on other rows, nor on how its file is written."""

import csv
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from table_cases import houses

from dendritree import load, save
from dendritree_lab.data.tables.deciding import open_table
from dendritree_lab.data.tables.reading import read_like
from dendritree_lab.studies.table import fit_table

ROWS = 40
NUMBERS = st.one_of(st.integers(-3000, 3000), st.floats(-2000, 2000).map(lambda x: round(x, 3)))
TEXTS = {
    "number": NUMBERS,
    "code": st.sampled_from(["007", "7", "1.10", "Genf", "0,5", "12,5", "1.234"]),
    "zip": st.integers(0, 40).map(lambda x: f"{x:05}"),
    "town": st.sampled_from(["Köln", "a, b", "c; d", 'the "x"', "true", "NA", "2024-01-01"]),
    "day": st.dates().map(str),
    "german": st.dates().map(lambda day: f"{day:%d}.{day:%m}.{day.year:04}"),
    "gaps": st.one_of(NUMBERS, st.sampled_from(["", "k.A.", "-", "?"])),
}


@st.composite
def tables(draw):
    """Columns of some kinds, the decimal mark, and how the file is written."""
    kinds = draw(st.lists(st.sampled_from(sorted(TEXTS)), min_size=1, max_size=4))
    columns = {
        f"{kind} {place}": draw(st.lists(TEXTS[kind], min_size=ROWS, max_size=ROWS)) for place, kind in enumerate(kinds)
    }
    separator, decimal = draw(st.sampled_from([(",", "."), (";", ","), (";", "."), ("\t", ","), ("|", ".")]))
    return columns, separator, decimal, draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]))


def as_cells(columns, decimal):
    """The texts of the cells; numbers have the decimal mark."""

    def text(cell):
        return cell if isinstance(cell, str) else str(cell).replace(".", decimal)

    return pd.DataFrame({name: [text(cell) for cell in cells] for name, cells in columns.items()})


def write(path, frame, separator, encoding, *, quoting=csv.QUOTE_MINIMAL, newline="\n"):
    path.write_bytes(frame.to_csv(sep=separator, index=False, quoting=quoting, lineterminator=newline).encode(encoding))
    return path


def predicted(model, path):
    names = [column.name for column in model.encoding.columns]
    return model.predict(read_like(path, model.encoding.schema, names).frame)["prediction"].to_numpy()


@pytest.mark.filterwarnings("ignore::dendritree_lab.studies.table.table_model.UnknownCellsWarning")
@given(table=tables(), data=st.data())
@settings(deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_a_row_is_predicted_alike_alone_and_with_any_others(table, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    columns, separator, decimal, encoding = table
    frame = as_cells(columns | {"x": [(7 * i % ROWS) / 4 - 3 for i in range(ROWS)]}, decimal)
    frame["y"] = [str(round(np.sin(i) + 2, 3)).replace(".", decimal) for i in range(ROWS)]
    whole = write(folder / "whole.csv", frame, separator, encoding)
    file, schema = open_table(whole)
    model = fit_table(file.frame, "y", schema=schema, quick=True, budget=300, epochs=1).model
    save(model, folder / "model")
    model = load(folder / "model")
    wanted = predicted(model, whole)
    for quoting, newline in itertools.product((csv.QUOTE_MINIMAL, csv.QUOTE_ALL), ("\n", "\r\n")):
        rows = data.draw(st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=6))
        part = frame.iloc[rows].drop(columns="y" if quoting == csv.QUOTE_ALL else [])
        some = write(folder / "some.csv", part, separator, encoding, quoting=quoting, newline=newline)
        np.testing.assert_allclose(predicted(model, some), wanted[rows], rtol=1e-12, atol=1e-12)


def test_what_the_issue_reproduced_is_no_more(tmp_path, call):
    """Categories 007, 7, 1.10 and Genf; a file with only the first two is predicted as in the company of Genf."""
    random = np.random.default_rng(0)
    codes = random.choice(["007", "7", "1.10", "Genf"], 60)
    worth = {"007": 300.0, "7": 700.0, "1.10": 100.0, "Genf": 500.0}
    pd.DataFrame({"code": codes, "y": [worth[code] + random.normal() for code in codes]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    fit = [
        "fit",
        tmp_path / "t.csv",
        "--target",
        "y",
        "--out",
        tmp_path / "m",
        "--quick",
        "--budget",
        "300",
        "--epochs",
        "30",
    ]
    assert call(*fit)[0] == 0
    predictions = {}
    for name, rows in {"two": "007 7", "three": "007 7 Genf", "versions": "1.10 1.1"}.items():
        (tmp_path / "new.csv").write_text("code\n" + rows.replace(" ", "\n") + "\n")
        status, out, error = call("predict", tmp_path / "m", tmp_path / "new.csv")
        assert status == 0
        predictions[name] = dict(line.split(",") for line in out.splitlines()[1:])
    assert "'1.1'" in error
    assert "'1.10'" not in error
    assert predictions["two"].items() <= predictions["three"].items()
    assert abs(float(predictions["two"]["007"]) - 300) < abs(float(predictions["two"]["7"]) - 300)


def test_classes_with_leading_zeros_are_evaluated_as_what_they_are(tmp_path, call):
    x = np.linspace(-1, 1, 90)
    labels = np.where(x < -0.3, "01", np.where(x < 0.3, "02", "A"))
    frame = pd.DataFrame({"x": x, "prediction": labels})
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", tmp_path / "t.csv", "--target", "prediction", "--out", tmp_path / "m", "--quick", "--epochs", "60"]
    assert call(*fit)[0] == 0
    frame[frame["x"].abs() > 0.5].query("x < 0.3").to_csv(tmp_path / "new.csv", index=False)
    status, _, error = call("predict", tmp_path / "m", tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert status == 0
    assert "accuracy 1.0000" in error
    written = pd.read_csv(tmp_path / "out.csv", dtype=str)
    assert (written["predicted prediction"] == "01").all()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_predict_writes_the_format_it_reads(encoding, tmp_path, call):
    random = np.random.default_rng(0)
    size, town = random.uniform(0, 9, 40), random.choice(["Köln", "Genf"], 40)
    cells = {"größe": [f"{each:.2f}".replace(".", ",") for each in size], "ort": town, "self": "x"}
    frame = pd.DataFrame(cells | {"preis": [f"{1000 + 100 * each:.1f}".replace(".", ",") for each in size]})
    text = "sep=;\r\n" + frame.to_csv(sep=";", index=False, lineterminator="\r\n")
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    fit = ["fit", tmp_path / "t.csv", "--target", "preis", "--out", tmp_path / "m", "--quick", "--epochs", "2"]
    assert call(*fit)[0] == 0
    status, _, error = call("predict", tmp_path / "m", tmp_path / "t.csv", "--out", tmp_path / "out.csv")
    assert (status, "RMSE" in error) == (0, True)
    written = (tmp_path / "out.csv").read_bytes().decode(encoding).removeprefix("\ufeff").split("\r\n")
    before = text.split("\r\n")
    assert written[0] == "sep=;"
    assert written[1] == before[1] + ";prediction"
    for line, old in zip(written[2:-1], before[2:], strict=False):
        cells, _, prediction = line.rpartition(";")
        assert cells == old
        assert float(prediction.replace(",", ".")) > 100
        assert "." not in prediction


def test_a_file_that_is_written_otherwise_is_rejected_and_read_when_it_is_said_how(tmp_path, call):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"x": random.normal(size=40).round(3), "town": random.choice(["Köln", "Genf"], 40)})
    frame["y"] = frame["x"] * 2
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert call("fit", tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "m", "--quick", "--epochs", "2")[0] == 0
    frame.to_csv(tmp_path / "new.csv", index=False, sep=";", decimal=",")
    status, out, error = call("predict", tmp_path / "m", tmp_path / "new.csv")
    assert (status, out, error.count("\n")) == (2, "", 1)
    assert "';'" in error
    assert "--schema" in error
    (tmp_path / "how.json").write_text('{"separator": ";", "decimal": ",", "thousands": "."}')
    status, out, _ = call("predict", tmp_path / "m", tmp_path / "new.csv", "--schema", tmp_path / "how.json")
    wanted = load(tmp_path / "m").predict(frame)["prediction"]
    found = [float(line.split(";")[-1].replace(",", ".")) for line in out.splitlines()[1:]]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)  # six significant digits
    frame.to_csv(tmp_path / "new.csv", index=False, encoding="cp1252")
    status, _, error = call("predict", tmp_path / "m", tmp_path / "new.csv")
    assert status == 2
    assert "cp1252" in error


def test_dry_run_prints_the_schema_and_writes_nothing(tmp_path, call):
    rows = "".join(
        f"0{i % 9};{i % 7 + 1}.{i % 3 + 1}.2025;1.{i:03};k.A.\n1{i};3.4.2025;2.{i:03};{i}\n" for i in range(9)
    )
    (tmp_path / "t.csv").write_text("zip;day;area;size\n" + rows)
    status, out, error = call("fit", tmp_path / "t.csv", "--dry-run")
    assert (status, error) == (0, "")
    lines = {line.split()[0]: line for line in out.splitlines() if line}
    assert "category" in lines["zip"]
    assert "leading zeros" in lines["zip"]
    assert "date, day first" in lines["day"]
    assert "month first" in lines["day"]
    assert '"decimal": ","' in lines["area"]
    assert "'k.A.'" in lines["size"]
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    for mistake, word in ((["--dry-run", "--target", "dai"], "'day'"), (["--out", tmp_path / "m"], "--target")):
        status, _, error = call("fit", tmp_path / "t.csv", *mistake)
        assert (status, error.count("\n")) == (2, 1)
        assert word in error


def test_dry_run_says_which_columns_fit_leaves_out(tmp_path, call):
    frame = houses(60)
    frame.loc[10:20, "price"] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    status, out, _ = call("fit", tmp_path / "t.csv", "--target", "price", "--dry-run")
    lines = {line.split()[0]: line for line in out.splitlines() if line}
    assert status == 0
    assert lines["id"].endswith("left out: counts the rows")
    assert lines["country"].endswith("left out: has only one value")
    assert lines["price"].endswith("the target")
    assert "left out" not in lines["rooms"]


def test_a_mistake_in_the_target_is_the_only_message(tmp_path, call):
    frame = houses(60).astype({"rooms": object})
    frame.loc[0, "rooms"] = "k.A."
    frame.to_csv(tmp_path / "t.csv", index=False)
    for target, advice in (("prise", "did you mean 'price'?"), ("built", '--schema FILE with {"columns": {"built": {')):
        status, _, error = call("fit", tmp_path / "t.csv", "--target", target, "--out", tmp_path / "m")
        assert (status, error.count("\n")) == (2, 1)
        assert advice in error


def test_types_in_python_and_a_schema_on_the_command_line_overrule(tmp_path, call):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"zip": random.integers(100, 104, 40), "x": random.normal(size=40), "y": random.normal(size=40)}
    )
    fit = fit_table(frame, "y", types={"zip": "category", "x": "ignore"}, quick=True, epochs=1, budget=300)
    assert {column.name: column.kind for column in fit.model.encoding.columns} == {"zip": "category"}
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "mine.json").write_text('{"columns": {"zip": {"type": "category"}}}')
    options = ["--quick", "--epochs", "1", "--budget", "300", "--schema", tmp_path / "mine.json"]
    assert call("fit", tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "m", *options)[0] == 0
    model = load(tmp_path / "m")
    assert model.encoding.schema.columns["zip"].type == "category"
    again = ["fit", tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "n", "--quick", "--epochs", "1"]
    assert call(*again, "--budget", "300", "--schema", tmp_path / "m" / "schema.json")[0] == 0
    assert load(tmp_path / "n").encoding == model.encoding
