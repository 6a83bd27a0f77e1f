"""The page of a comparison in a real browser: desk and phone, light and dark."""

import pytest
from comparison_cases import CONFIG, made_up_run

from dendritree_lab.report import write_report
from dendritree_lab.studies.fair import comparison_report, summarize

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


CONTRAST = """(() => {
    const light = (colour) => {
        const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((part) => part / 255)
            .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const ground = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = getComputedStyle(at).backgroundColor;
            if (!/, 0\\)$/.test(colour)) return colour;
        }
        return 'rgb(255, 255, 255)';
    };
    return [...document.querySelectorAll('h1, h2, h3, p, li, dt, dd, a, td, th, .badge, summary, figcaption')]
        .filter((element) => element.getClientRects().length).map((element) => {
            const pair = [light(getComputedStyle(element).color), light(ground(element))].sort((a, b) => b - a);
            return [(pair[0] + 0.05) / (pair[1] + 0.05), element.textContent.slice(0, 40)];
        }).sort((a, b) => a[0] - b[0])[0];
})()"""


def test_text_can_be_read_on_its_ground(page):
    contrast, text = page.value(CONTRAST)
    assert contrast >= 4.5, text


def test_dark_is_dark(browser, written):
    grounds = []
    for dark in (False, True):
        page = browser.open(written[1], DESK, dark=dark)
        grounds.append(page.value("getComputedStyle(document.querySelector('main > section')).backgroundColor"))
        grounds.append(page.value("getComputedStyle(document.querySelector('.chart')).filter"))
        page.close()
    assert grounds[:2] == ["rgb(255, 255, 255)", "none"]
    assert grounds[2] == "rgb(26, 30, 36)"
    assert grounds[3].startswith("invert(")
