"""The page in a real browser, at the width of a desk and of a phone."""

import pytest
from report_cases import MATCHES, TABLES, made_up_records

from dendritree_lab.report import write_report
from dendritree_lab.studies.paper.analysis import read_expected
from dendritree_lab.studies.paper.paper_report import build_report

PHONE, DESK = 360, 1280
SVGS = "[...document.querySelectorAll('figure svg')].filter((svg) => svg.getClientRects().length)"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A run with two tables of six, so that every section has rows; and one with nothing."""
    folder = tmp_path_factory.mktemp("reports")
    records = made_up_records(TABLES[2:4], trials=3, epochs=12)
    records += made_up_records(TABLES[:1], trials=2, epochs=5, protocol="full", dropouts=(0.0, 0.3), with_test=True)
    expected = read_expected()
    report = build_report(records, {"cpu": "A processor " * 20, "commit": "0123456789" * 9}, expected, MATCHES)
    paths = {"some": write_report(report, folder / "some").html}
    paths["none"] = write_report(build_report([], {}, expected, MATCHES), folder / "none").html
    return report, paths


@pytest.fixture(params=[PHONE, DESK, *(pytest.param(width, marks=pytest.mark.slow) for width in (390, 768))])
def page(request, browser, written):
    shown = browser.open(written[1]["some"], request.param)
    yield shown
    shown.close()


def test_nothing_is_fetched_nothing_goes_wrong_and_the_page_never_scrolls_sideways(page, written):
    assert page.complaints == []
    assert page.requests == [written[1]["some"].resolve().as_uri()]
    page.value("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    width = page.value("window.innerWidth")
    assert page.value("document.documentElement.scrollWidth") <= width
    assert page.value("document.body.scrollWidth") <= width
    outside = """[...document.querySelectorAll('body *')].filter((element) =>
        !element.closest('.scroll table') && !element.closest('svg') && element.getClientRects().length
        && element.getBoundingClientRect().right > window.innerWidth + 0.5).map((element) => element.outerHTML)"""
    assert page.value(outside) == []
    assert width != DESK or page.tables_that_scroll == []


def test_every_chart_is_there_large_enough_to_read_and_has_a_name_for_those_who_do_not_see_it(page, written):
    charts = [chart for section in written[0].sections for chart in section.charts]
    label = "document.getElementById(svg.getAttribute('aria-labelledby')).textContent"
    assert page.value(f"{SVGS}.map((svg) => {label})") == [chart.alt for chart in charts]
    assert len(charts) > 8
    assert min(page.value(f"{SVGS}.map((svg) => svg.clientWidth)")) >= 280
    sizes = f"{SVGS}.flatMap((svg) => [...svg.querySelectorAll('text')]).map((text) => getComputedStyle(text).fontSize)"
    scale = min(page.value(f"{SVGS}.map((svg) => svg.getScreenCTM().a)"))
    assert min(float(size.removesuffix("px")) for size in page.value(sizes)) * scale >= 8.5
    assert page.cut_labels == []


def test_a_click_on_a_title_sorts_by_numbers_and_absent_ones_stay_last(browser, written):
    page = browser.open(written[1]["some"], DESK)
    table = "document.querySelector('#paper-multiclass-mlp table')"
    column = f"[...{table}.tHead.rows[0].cells].findIndex((cell) => cell.textContent === 'val., paper')"
    cells = f"[...{table}.tBodies[0].rows].map((row) => row.cells[{column}].dataset.value)"
    before = page.value(cells)
    click = f"{table}.tHead.rows[0].cells[{column}].querySelector('button').click()"
    numbers = sorted(float(value) for value in before if value)
    page.value(click)
    assert [float(value) for value in page.value(cells) if value] == numbers
    assert page.value(cells)[len(numbers) :] == [""] * (len(before) - len(numbers))
    page.value(click)
    assert [float(value) for value in page.value(cells) if value] == numbers[::-1]
    assert page.value(cells)[len(numbers) :] == [""] * (len(before) - len(numbers)) != []
    assert page.complaints == []
    page.close()


def test_a_report_of_nothing_is_a_page_too(browser, written):
    page = browser.open(written[1]["none"], PHONE)
    assert page.complaints == []
    assert "No trial has been run yet." in page.value("document.body.innerText")
    assert page.value("document.body.scrollWidth") <= PHONE
    page.close()
