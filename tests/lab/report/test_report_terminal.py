"""The report on a terminal, wide or narrow."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from dendritree_lab.report import print_report


def printed(report, width, **options):
    file = io.StringIO()
    print_report(report, Console(file=file, width=width), **options)
    return file.getvalue()


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_number_and_no_model_is_cut_and_details_are_shown_where_there_is_room(report, width):
    text = printed(report, width)
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert max(map(len, text.splitlines())) <= width
    for row in report.section("tables").rows:
        lines = [line for line in text.splitlines() if line.split()[:2] == row[0].split()]
        assert any(f"{row[3][0]:.3f} ± 0.020" in line for line in lines)
    assert ("Hedges' g" in text) is (width == 200)


def test_long_sections_are_printed_when_asked_for_and_what_it_says_comes_last(report):
    brief, whole = printed(report, 100), printed(report, 100, whole=True)
    assert "Charts" not in brief
    assert whole.index("Tables") < whole.index("Charts") < whole.index(report.title)
    assert "Nothing is missing." in brief
    for text in (brief, whole):
        assert text.rpartition(report.title)[2].split() == ["•", "First.", "•", "What", "it", "says."]


def test_brackets_are_text_not_markup(report):
    assert "[bold]key[/]" in printed(replace(report, summary=("[bold]key[/]",)), 80)
