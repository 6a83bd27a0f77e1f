"""The page of a comparison in a real browser: desk and phone, light and dark."""

import pytest
from comparison_cases import CONFIG, made_up_run

from dendritree_lab.report import write_report
from dendritree_lab.studies.fair import summarize
from dendritree_lab.studies.fair.comparison_report import comparison_report

PHONE, DESK = 360, 1280


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    records = made_up_run(("mnist", "mnist:128", "mnist-pairs", "california-housing"))
    report = comparison_report(summarize(records), records, CONFIG, {"cpu": "A processor " * 20})
    return report, write_report(report, tmp_path_factory.mktemp("page"), name="comparison").html


@pytest.fixture(
    params=[
        (PHONE, False),
        (DESK, True),
        *(pytest.param(each, marks=pytest.mark.slow) for each in ((768, True), (DESK, False))),
    ],
    ids=str,
)
def page(request, browser, written):
    width, dark = request.param
    shown = browser.open(written[1], width, dark=dark)
    yield shown
    shown.close()


def test_nothing_goes_wrong_and_nothing_is_fetched_or_wider_than_the_window(page, written):
    page.value("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    assert page.complaints == []
    assert page.requests == [written[1].resolve().as_uri()]
    assert page.value("document.documentElement.scrollWidth") <= page.value("window.innerWidth")
    assert page.value("window.innerWidth") < DESK or page.tables_that_scroll == []


def test_every_chart_is_there_and_no_label_is_cut_or_covers_another(page, written):
    charts = [chart for section in written[0].sections for chart in section.charts]
    assert len(page.chart_widths) == len(charts) == 4
    assert page.cut_labels == []
    covered = """[...document.querySelectorAll('figure svg')].flatMap((svg) => {
        const boxes = [...svg.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
        return boxes.flatMap(([name, a], place) => boxes.slice(place + 1).filter(([, b]) =>
            Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.35 * Math.min(a.height, b.height)
        ).map(([other]) => [name, other]));
    })"""
    assert page.value(covered) == []
