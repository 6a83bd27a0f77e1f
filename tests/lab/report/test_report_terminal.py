"""The report on a terminal, wide or narrow."""

import io

import pytest
from report_cases import EXPECTED_FILE, MATCHES, TABLES, made_up_records
from rich.console import Console

from dendritree_lab.report import print_report
from dendritree_lab.studies.paper.analysis import read_expected
from dendritree_lab.studies.paper.paper_report import build_report

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


@pytest.fixture(scope="module")
def report():
    records = made_up_records(TABLES[2:4], trials=3, epochs=10)
    return build_report(records, {"torch": "2.6.0"}, read_expected(EXPECTED_FILE), MATCHES)


def printed(report, width, **options):
    file = io.StringIO()
    print_report(report, Console(file=file, width=width), **options)
    return file.getvalue()


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_number_and_no_model_is_cut(report, width):
    text = printed(report, width)
    assert ELLIPSIS not in text
    assert max(map(len, text.splitlines())) <= width
    for row in report.section("paper").rows:
        mean, sd = row[4] or row[5]
        digits = 2 if row[4] else 3
        lines = [line for line in text.splitlines() if line.split()[:1] and line.strip().startswith(row[0])]
        assert any(f"{mean:.{digits}f} ± {sd:.{digits}f}" in line for line in lines)


def test_details_are_shown_where_there_is_room(report):
    assert "Hedges' g" in printed(report, 200)
    assert "Hedges' g" not in printed(report, 80)


def test_long_sections_are_printed_when_asked_for(report):
    brief, whole = printed(report, 100), printed(report, 100, whole=True)
    assert "Errata" not in brief
    assert "Errata" in whole
    assert "torch" in whole
    assert whole.index("The paper's claims") < whole.index(report.title)


def test_what_it_says_comes_last(report):
    last = " ".join(printed(report, 100).rpartition(report.title)[2].split())
    assert last.startswith("• The run is not complete")
    assert report.summary[-1] in last


def test_a_report_of_nothing_is_printed_too():
    report = build_report([], {}, [], {})
    assert "No trial has been run yet." in printed(report, 80)


def test_brackets_are_text_not_markup():
    strange = build_report([], {"[bold]key": "[/]value"}, [], {})
    assert "[bold]key" in printed(strange, 80, whole=True)
