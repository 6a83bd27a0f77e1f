"""CSV files hold every digit and read back to what was written."""

import csv
import io
import math

from hypothesis import given
from hypothesis import strategies as st

from dendritree_lab.report.chart import Chart, Line, Panel
from dendritree_lab.report.csvs import csv_files, section_csv
from dendritree_lab.report.layout import Column, Group, Report, Section

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


def same(first, second):
    """Bit for bit, so far as Python can tell: signs of zero count, any NaN is NaN."""
    if first is None or second is None:
        return first is second
    return math.isnan(first) == math.isnan(second) and (math.isnan(first) or repr(first) == repr(second))


def number(text):
    return float(text) if text else None


@given(ROWS, ROWS)
def test_a_table_reads_back_bit_for_bit(first, second):
    section = Section("s", "S", "", COLUMNS, (Group("a", "A", tuple(first)), Group("b", "B", tuple(second))))
    lines = list(csv.reader(io.StringIO(section_csv(section), newline="")))
    assert lines[0] == ["name", "hidden", "count", "acc", "acc_sd", "ends_low", "ends_high", "p"]
    assert len(lines) == 1 + len(first) + len(second)
    for (name, hidden, count, acc, ends, p), line in zip([*first, *second], lines[1:], strict=True):
        assert (line[0], line[1], int(line[2])) == (name, hidden, count)
        expected = [*(acc or (None, None)), *(ends or (None, None)), p]
        assert all(map(same, map(number, line[3:]), expected))


def test_every_point_of_a_chart_is_in_a_file_of_its_own():
    strong = Line("MLP h=11", "mlp", 11, (0.0, 1.0), (0.5, 0.6), (0.4, 0.5), (0.6, 0.7))
    faint = Line("MLP h=11", "mlp", 11, (0.0, 1.0), (0.7, 0.8), faint=True)
    chart = Chart("curves-1", "Curves", "alt", "epoch", (Panel("accuracy", (strong, faint)),))
    text = csv_files(Report("R", (), (Section("curves", "C", "", COLUMNS, (), (chart,)),)))["chart-points.csv"]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["model"], row["curve"], row["x"], row["y"], row["low"], row["high"]) for row in rows] == [
        ("MLP h=11", "", "0.0", "0.5", "0.4", "0.6"),
        ("MLP h=11", "", "1.0", "0.6", "0.5", "0.7"),
        ("MLP h=11", "training", "0.0", "0.7", "", ""),
        ("MLP h=11", "training", "1.0", "0.8", "", ""),
    ]
    assert {(row["chart"], row["panel"]) for row in rows} == {("curves-1", "accuracy")}


def test_a_section_without_rows_has_a_file_with_its_header():
    assert section_csv(Section("s", "S", "", COLUMNS)) == "name,hidden,count,acc,acc_sd,ends_low,ends_high,p\n"
