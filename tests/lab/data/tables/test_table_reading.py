"""Files that are tables, and files that are not."""

import gzip

import pytest
from table_cases import houses

from dendritree.errors import DendritreeError, MissingDataError, OptionError
from dendritree_lab.data.tables import read_table

PACKED = gzip.compress(houses().to_csv(index=False).encode())


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_any_usual_separator_is_read(separator, tmp_path):
    houses().to_csv(tmp_path / "houses.csv", sep=separator, index=False)
    frame = read_table(tmp_path / "houses.csv")
    assert list(frame.columns) == list(houses().columns)
    assert frame["rooms"].isna().tolist() == houses()["rooms"].isna().tolist()


def test_parquet_and_packed_csv_hold_what_csv_holds(tmp_path):
    frame = houses()
    frame.to_parquet(tmp_path / "houses.parquet")
    frame.to_csv(tmp_path / "houses.csv.gz", index=False)
    assert read_table(tmp_path / "houses.parquet")["price"].tolist() == frame["price"].tolist()
    assert read_table(tmp_path / "houses.csv.gz")["price"].tolist() == frame["price"].tolist()


def test_spaces_marks_for_unknown_and_the_encodings_of_spreadsheets(tmp_path):
    (tmp_path / "a.csv").write_bytes("name, Städte\n1, ?\n2, Köln\n".encode("cp1252"))
    frame = read_table(tmp_path / "a.csv")
    assert list(frame.columns) == ["name", "Städte"]
    assert frame["Städte"].isna().tolist() == [True, False]
    (tmp_path / "b.csv").write_bytes("\ufeffname,x\n1,2\n".encode())
    assert list(read_table(tmp_path / "b.csv").columns) == ["name", "x"]


@pytest.mark.parametrize(
    ("content", "names", "first"),
    [
        ('"a","b"\n1,2\n', ["a", "b"], [1, 2]),
        ('name,x,y\n"Smith, J",1,0\n', ["name", "x", "y"], ["Smith, J", 1, 0]),
        ('rooms;"price, EUR, net"\n1;2\n', ["rooms", "price, EUR, net"], [1, 2]),
        ('\ufeff"a ""b, c"", d";"e"\n1;2\n', ['a "b, c", d', "e"], [1, 2]),
        ('"two,\nlines,";b\n1;2\n', ["two,\nlines,", "b"], [1, 2]),
        ('size 5";b\n1;2\n3"; 4,5,6"\n', ['size 5"', "b"], ["1", "2"]),
        ("\n\na|b\r\n1|2\r\n", ["a", "b"], [1, 2]),
    ],
)
def test_quotes_are_read_and_what_they_hold_separates_nothing(content, names, first, tmp_path):
    (tmp_path / "q.csv").write_bytes(content.encode())
    frame = read_table(tmp_path / "q.csv")
    assert list(frame.columns) == names
    assert frame.iloc[0].tolist() == first


def test_decimal_commas_beside_semicolons_are_numbers(tmp_path):
    lines = ["a;b;c;d", "1,5;1.234,50;x;1,5", "-2;2.000;3,4,5;2.25", "+0,25;;4 m;unknown"]
    (tmp_path / "de.csv").write_text("\n".join(lines) + "\n")
    frame = read_table(tmp_path / "de.csv")
    assert frame["a"].tolist() == [1.5, -2.0, 0.25]
    assert frame["b"].tolist()[:2] == [1234.5, 2000.0]
    assert frame["b"].isna().tolist() == [False, False, True]
    assert frame["c"].tolist() == ["x", "3,4,5", "4 m"]
    assert frame["d"].tolist() == ["1,5", "2.25", "unknown"]
    (tmp_path / "en.csv").write_text('a,b\n"1,500",x\n')
    assert read_table(tmp_path / "en.csv")["a"].tolist() == [1500.0]


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("empty.csv", b"", "empty.csv is empty"),
        ("names.csv", b"a;b\n", "names.csv has only column names"),
        ("ragged.csv", b"a,b\n1,2\n1,2,3\n", "Expected 2 fields"),
        ("broken.parquet", b"nothing", "broken.parquet"),
        ("table.xlsx", b"PK", "table.xlsx"),
        ("broken.csv.gz", b"nothing", "broken.csv.gz"),
        ("cut.csv.gz", PACKED[: len(PACKED) // 2], "cut.csv.gz"),
        ("sum.csv.gz", PACKED[:-8] + bytes(8), "CRC"),
    ],
)
def test_anything_that_is_not_a_table_is_rejected_in_a_line(name, content, match, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DendritreeError, match=match) as caught:
        read_table(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named_with_a_similar_one(tmp_path):
    (tmp_path / "houses.csv").write_text("a\n1\n")
    with pytest.raises(MissingDataError, match=r"house\.csv does not exist; did you mean houses\.csv\?"):
        read_table(tmp_path / "house.csv")
    with pytest.raises(OptionError, match="one file"):
        read_table(tmp_path)


def test_rows_with_more_cells_than_names_are_rejected_unless_these_are_empty(tmp_path):
    file = tmp_path / "more.csv"
    file.write_text("a,b,c\n" + "".join(f"{i},{i % 3},{10 * i},\n" for i in range(9)))
    assert read_table(file)["b"].tolist() == [0, 1, 2] * 3
    file.write_text("a,b,c\n" + "".join(f"{i},{i % 3},{10 * i},5\n" for i in range(9)))
    with pytest.raises(DendritreeError, match="no more cells"):
        read_table(file)


@pytest.mark.parametrize("header", ["y,a,y", "a, b,b", "a;b;a"])
def test_a_name_that_occurs_twice_is_rejected(header, tmp_path):
    file = tmp_path / "twice.csv"
    file.write_text(header + "\n" + (";" if ";" in header else ",").join("123") + "\n")
    with pytest.raises(DendritreeError, match="occurs twice"):
        read_table(file)
