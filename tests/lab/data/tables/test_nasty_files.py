"""Files as people have them, and what each must be read as."""

import json

import numpy as np
import pandas as pd
import pytest

from dendritree.errors import DendritreeError, OptionError
from dendritree_lab.data.tables.deciding import decide_schema, open_table, read_table

NAN = None


def day(text):
    return pd.Timestamp(text)


def repeated(header, rows, separator=";", times=10):
    return "\n".join([header, *[separator.join(row) if isinstance(row, tuple) else row for row in rows] * times]) + "\n"


FILES = {
    # name: content, cells of the first rows by column, columns about which something is said
    "leading zeros": ("code,y\n007,1\n7,2\n012,3\n", {"code": ["007", "7", "012"], "y": [1, 2, 3]}, {"code"}),
    "categories like numbers": ("c,y\n007,1\n7,2\n1.10,3\nGenf,4\n", {"c": ["007", "7", "1.10", "Genf"]}, {"c"}),
    "decimal commas between tabs": ("a\tb\n0,138\tx\n12,345\ty\n0,5\tz\n", {"a": [0.138, 12.345, 0.5]}, set()),
    "only three decimals between tabs": ("a\tb\n0,138\tx\n0,250\ty\n", {"a": [0.138, 0.25]}, {"a"}),
    "quoted decimal commas": ('a,b\n"0,138",x\n"1,5",y\n', {"a": [0.138, 1.5]}, set()),
    "quoted thousands": ('a,b\n"1,500",x\n"12,250.5",y\n', {"a": [1500, 12250.5]}, set()),
    "thousands or decimals": ('a,b\n"1,500",x\n"2,250",y\n', {"a": [1500, 2250]}, {"a"}),
    "points beside decimal commas": (
        "a;b\n1.234;0,5\n12.345;1,25\n123;3,0\n",
        {"a": [1234, 12345, 123], "b": [0.5, 1.25, 3]},
        {"a"},
    ),
    "points beside semicolons": ("a;b\n1.5;0.25\n12.345;1.125\n", {"a": [1.5, 12.345], "b": [0.25, 1.125]}, set()),
    "ambiguous beside semicolons": ("a;b\n1,234;x\n2,345;y\n", {"a": [1.234, 2.345]}, {"a"}),
    "a column with its own mark": (
        'a,b,c\n1.5,2.5,"0,5"\n2.5,3.5,"1,25"\n',
        {"a": [1.5, 2.5], "c": [0.5, 1.25]},
        set(),
    ),
    "Swiss and French thousands": ("a;b\n1'234.5;1\u202f234\n2;3\n", {"a": [1234.5, 2], "b": [1234, 3]}, set()),
    "day first": ("d;y\n25.10.2025;1\n1.2.2024;2\n", {"d": [day("2025-10-25"), day("2024-02-01")]}, set()),
    "month first": ("d,y\n10/25/2025,1\n2/1/2024,2\n", {"d": [day("2025-10-25"), day("2024-02-01")]}, set()),
    "day or month first": ("d,y\n10/11/2025,1\n2/1/2024,2\n", {"d": [day("2025-10-11"), day("2024-02-01")]}, {"d"}),
    "as another column": (
        "d,e\n01/02/2024,13/02/2024\n03/04/2024,31/01/2024\n",
        {"d": [day("2024-02-01"), day("2024-04-03")]},
        {"d"},
    ),
    "times and zones": (
        "d,y\n2025-10-25T10:00:00+02:00,1\n2025-10-25 08:30,2\n",
        {"d": [day("2025-10-25 08:00"), day("2025-10-25 08:30")]},
        set(),
    ),
    "never": ("d,y\n9999-12-31,1\n9999-12-31,2\n2025-01-02,3\n", {"d": [NAN, NAN, day("2025-01-02")]}, {"d"}),
    "dates of two orders": ("d,y\n25/10/2025,1\n10/26/2025,2\n", {"d": ["25/10/2025", "10/26/2025"]}, {"d"}),
    "versions": ("v,y\n1.2.25,1\n1.10.3,2\n", {"v": ["1.2.25", "1.10.3"]}, set()),
    "words for missing": (
        "a;b\nk.A.;-\n1,5;2\n2,5;unknown\n?;3\n",
        {"a": [NAN, 1.5, 2.5, NAN], "b": [NAN, 2, NAN, 3]},
        {"a", "b"},
    ),
    "a word of its own": (
        repeated("a;b", ["1;x", "2;x", "3;x", "n.q.;x"]),
        {"a": ["1", "2", "3", "n.q."]},
        {"a"},
    ),
    "a boolean with an empty cell": ("a;b\ntrue;1\n;2\nfalse;3\n", {"a": ["true", NAN, "false"]}, set()),
    "a category called unknown": ("a;b\nunknown;1\nNA;2\nyes;3\n", {"a": ["unknown", NAN, "yes"]}, set()),
    "sep= of Excel": ("sep=;\r\na;b\r\n1,5;x\r\n", {"a": [1.5], "b": ["x"]}, set()),
    "commas in names": ("price, EUR;area, m2\n1,5;2,5\n", {"price, EUR": [1.5], "area, m2": [2.5]}, set()),
    "a column called self": ("self,prediction,index\n1,a,2\n", {"self": [1], "prediction": ["a"], "index": [2]}, set()),
    "line ends of old Macs": ("a;b\r1;x\r2;y\r", {"a": [1, 2], "b": ["x", "y"]}, set()),
    "line ends in quotes": ('a,b\n"two\nlines",1\n', {"a": ["two\nlines"], "b": [1]}, set()),
    "a minus of typesetters": ("a,b\n\u22121.5,x\n+2,y\n", {"a": [-1.5, 2]}, set()),
    "underscores and full-width digits": ("a,b\n1_000,x\n\uff11\uff12,y\n", {"a": ["1_000", "\uff11\uff12"]}, set()),
    "huge, tiny and infinite": ("a,b\n1e400,x\n" + "1e-300,y\n" * 30, {"a": [NAN, 1e-300]}, {"a"}),
}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252")


@pytest.mark.parametrize("name", FILES)
def test_a_nasty_file_is_read_as_it_must_be(name, tmp_path):
    content, wanted, remarked = FILES[name]
    path = tmp_path / "nasty.csv"
    path.write_bytes(content.encode())
    file, schema = open_table(path)
    values, _ = schema.read(file.frame)
    for column, cells in wanted.items():
        found = [None if pd.isna(cell) else cell for cell in values[column][: len(cells)]]
        assert found == cells, (column, schema.columns[column])
    assert {name for name, column in schema.columns.items() if column.notes} == remarked
    again = type(schema).from_dict(json.loads(json.dumps(schema.as_dict())))
    assert again == schema
    pd.testing.assert_frame_equal(again.read(file.frame)[0], values)
    pd.testing.assert_frame_equal(schema.read(values)[0], values)  # what is read is read as itself


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_encodings_of_spreadsheets_are_found(encoding, tmp_path):
    path = tmp_path / "towns.csv"
    path.write_bytes("Größe;Stadt\r\n1,5;Köln\r\n2;Zürich\r\n".encode(encoding))
    frame = read_table(path)
    assert frame["Stadt"].tolist() == ["Köln", "Zürich"]
    assert frame["Größe"].tolist() == [1.5, 2]


@pytest.mark.parametrize(
    ("given", "column", "cells"),
    [
        ({"columns": {"zip": {"type": "number"}}}, "zip", [501, 10001]),
        ({"columns": {"area": {"type": "category"}}}, "area", ["1.234", "2.345"]),
        ({"decimal": ","}, "area", [1234, 2345]),
        ({"columns": {"area": {"decimal": ","}}}, "area", [1234, 2345]),
        ({"columns": {"sold": {"order": "day first"}}}, "sold", [day("2024-02-01"), day("2024-04-03")]),
        ({"columns": {"town": {"missing": ["none"]}}}, "town", ["NA", None]),
        ({"columns": {"rooms": {"missing": ["-1"]}}}, "rooms", [3, None]),
    ],
)
def test_what_is_given_is_not_decided(given, column, cells, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("zip,area,sold,town,rooms\n00501,1.234,01/02/2024,NA,3\n10001,2.345,03/04/2024,none,-1\n")
    found = [None if pd.isna(cell) else cell for cell in read_table(path, schema=given)[column]]
    assert found == cells


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"colums": {}}, "did you mean 'columns'"),
        ({"columns": {"a": {"typ": "number"}}}, "did you mean 'type'"),
        ({"columns": {"a": {"type": "text"}}}, "'category'"),
        ({"columns": {"aa": {"type": "number"}}}, "did you mean 'a'"),
        ({"columns": {"a": "number"}}, "objects, one per column"),
        ({"decimal": ";"}, "decimal"),
        ({"encoding": "utf-9"}, "encoding"),
        ({"separator": "::"}, "separator"),
        ({"thousands": "."}, "thousands"),
    ],
)
def test_a_schema_with_mistakes_is_rejected(given, match, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,y\n")
    with pytest.raises(DendritreeError, match=match):
        read_table(tmp_path / "t.csv", schema=given)


@pytest.mark.parametrize("cells", [np.array([1 + 2j, 3]), [1 + 2j, "x"]])
def test_complex_numbers_are_rejected(cells):
    with pytest.raises(OptionError, match=r"column 'z'"):
        decide_schema(pd.DataFrame({"z": cells}))


def test_types_of_pandas_are_kept_unless_told_otherwise():
    frame = pd.DataFrame({"a": [1.5, np.inf], "b": [True, False], "c": pd.Categorical([7, 8]), "d": ["1", "2"]})
    frame["e"] = pd.to_datetime(["2024-01-01", "9999-12-31"])
    kinds = {name: column.type for name, column in decide_schema(frame).columns.items()}
    assert kinds == {"a": "number", "b": "category", "c": "category", "d": "number", "e": "date"}
    schema = decide_schema(frame, types={"a": "category", "b": "number", "c": "number", "d": "ignore"})
    values, _ = schema.read(frame)
    assert values["a"].tolist() == ["1.5", "inf"]
    assert values[["b", "c"]].to_numpy().tolist() == [[1, 7], [0, 8]]
    assert list(values) == ["a", "b", "c", "e"]
    assert values["e"].isna().tolist() == [False, True]
    with pytest.raises(OptionError, match="'a'"):
        decide_schema(frame, types={"a": "date"})
