"""Files that are whole and always the same; CSV files that hold every digit."""

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dendritree.errors import DendritreeError
from dendritree_lab.report import write_report
from dendritree_lab.report.csvs import csv_files, section_csv
from dendritree_lab.report.layout import Column, Group, Section

COLUMNS = (
    Column("name", "name"),
    Column("hidden"),
    Column("count", "count", "count"),
    Column("acc", "acc", "spread"),
    Column("ends", "ends", "interval"),
    Column("p", "p", "p"),
)
FLOATS = st.floats(allow_nan=True, allow_infinity=True)
PAIRS = st.none() | st.tuples(FLOATS, FLOATS)
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)
ROWS = st.lists(st.tuples(TEXTS, TEXTS, st.integers(), PAIRS, PAIRS, st.none() | FLOATS), max_size=5)


def same(text, value):
    """Bit for bit, so far as Python can tell: signs of zero count, any NaN is NaN."""
    if value is None or not text:
        return value is None and not text
    return math.isnan(float(text)) if math.isnan(value) else repr(float(text)) == repr(value)


@given(ROWS, ROWS)
def test_a_table_reads_back_bit_for_bit(first, second):
    section = Section("s", "S", "", COLUMNS, (Group("a", "A", tuple(first)), Group("b", "B", tuple(second))))
    lines = list(csv.reader(io.StringIO(section_csv(section), newline="")))
    assert lines[0] == ["name", "hidden", "count", "acc", "acc_sd", "ends_low", "ends_high", "p"]
    assert len(lines) == 1 + len(first) + len(second)
    for (name, hidden, count, acc, ends, p), line in zip([*first, *second], lines[1:], strict=True):
        assert (line[0], line[1], int(line[2])) == (name, hidden, count)
        assert all(map(same, line[3:], [*(acc or (None, None)), *(ends or (None, None)), p]))


def test_every_point_of_a_chart_is_in_a_file_of_its_own(report):
    rows = list(csv.DictReader(io.StringIO(csv_files(report)["chart-points.csv"])))
    first = [row for row in rows if (row["chart"], row["panel"]) == ("curves", "accuracy")]
    assert [tuple(row[name] for name in ("model", "curve", "x", "y", "low", "high")) for row in first[2:7]] == [
        ("dendritic b=32", "", "2.0", "0.8", "0.7", "0.9"),
        ("MLP h=11, p=0.3", "", "0.0", "0.125", "", ""),
        ("MLP h=11, p=0.3", "", "1.0", "0.3", "", ""),
        ("MLP h=11, p=0.3", "", "2.0", "0.375", "", ""),
        ("MLP h=11, p=0.3", "training", "0.0", "0.3", "", ""),
    ]
    assert len(rows) == 3 * 2 * 9


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_report_is_written_whole_and_again_with_the_same_bytes(report, tmp_path):
    files = write_report(report, tmp_path / "run" / "report", pictures=True)
    before = contents(tmp_path / "run" / "report")
    assert {name for name in before if "/" not in name} == {"report.md", "report.html"}
    assert {path.name for path in files.csvs} == {"tables.csv", "charts.csv", "missing.csv", "chart-points.csv"}
    assert {path.name for path in files.pictures} == {"curves.png", "sweep.png", "points.png"}
    assert all(path.stat().st_size > 0 for path in (*files.csvs, *files.pictures, files.html, files.markdown))
    assert "![Accuracy & loss" in files.markdown.read_text(encoding="utf-8")
    assert write_report(report, tmp_path / "run" / "report", pictures=True) == files
    assert contents(tmp_path / "run" / "report") == before


def test_a_page_that_is_not_a_report_is_never_replaced(report, tmp_path):
    (tmp_path / "report.html").write_text("<h1>mine</h1>")
    with pytest.raises(DendritreeError, match="not a report"):
        write_report(report, tmp_path)
    assert contents(tmp_path) == {"report.html": b"<h1>mine</h1>"}
