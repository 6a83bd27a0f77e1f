"""Charts of a comparison: the numbers behind them, logarithmic axes, labels that leave each other room."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from comparison_cases import made_up_run
from hypothesis import given
from hypothesis import strategies as st

from dendritree_lab.report.chart import Chart, Line, Panel
from dendritree_lab.report.chart_images import draw
from dendritree_lab.report.looks import looks
from dendritree_lab.report.score_axes import LABEL_LENGTH, LABEL_SPACE, apart
from dendritree_lab.studies.engine.statistics import bootstrap_mean
from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.fair import summarize
from dendritree_lab.studies.fair.score_charts import example_charts, size_charts

FAMILIES = ("tree", "sparse", "dense", "linear")


@pytest.fixture(scope="module")
def comparison():
    return summarize(made_up_run(("mnist", "mnist:128", "mnist:1000", "california-housing")))


def texts(chart):
    root = ET.fromstring(draw(chart, looks([chart])))
    return [element.text for element in root.iter("text")]


def scaling(*lines, scale="errors"):
    return Chart("c", "C", "alt", "parameters", (Panel("accuracy", lines, scale=scale),), "scaling")


# --------------------------------------------------------------------------------------------------------------- data


def test_a_chart_a_data_set_with_every_family_over_its_true_parameters(comparison):
    charts = {chart.name: chart for chart in size_charts(comparison)}
    assert list(charts) == ["sizes-mnist", "sizes-california-housing"]  # one budget of few examples is not a curve
    lines = {line.family: line for line in charts["sizes-mnist"].panels[0].lines}
    assert tuple(lines) == FAMILIES
    results = comparison.of(Task.parse("mnist"), "dense")
    assert lines["dense"].x == tuple(result.parameters for result in results)
    assert lines["dense"].y == tuple(np.mean(result.scores) for result in results)
    assert [(low, high) for low, high in zip(lines["dense"].low, lines["dense"].high, strict=True)] == [
        bootstrap_mean(result.scores) for result in results
    ]
    assert [line.level for line in lines.values()] == [False, False, False, True]
    scales = [chart.panels[0].scale for chart in charts.values()]
    assert scales == ["errors", "linear"]


def test_a_learning_curve_goes_to_all_examples(comparison):
    (chart,) = example_charts(comparison)
    assert (chart.name, chart.x_label) == ("examples-mnist-9000", "training examples")
    lines = {line.family: line for line in chart.panels[0].lines}
    assert tuple(lines) == FAMILIES
    assert {line.x for line in lines.values()} == {(128.0, 1000.0, 50_000.0)}
    assert lines["tree"].y == pytest.approx((0.781, 0.914, 0.981))
    assert lines["linear"].y == pytest.approx((0.768, 0.882, 0.921))


# ------------------------------------------------------------------------------------------------------------ drawing


def test_a_level_far_away_takes_no_room_and_says_where_it_is():
    near = Line("trees", "tree", 0, (1000.0, 4000.0), (0.50, 0.52))
    for far, arrow in ((0.9, "\N{UPWARDS ARROW}"), (0.1, "\N{DOWNWARDS ARROW}")):
        level = Line("linear", "linear", 0, (9.0,), (far,), level=True)
        found = texts(scaling(near, level, scale="linear"))
        assert f"linear {arrow}" in found
        assert {"0.500", "0.520"} <= set(found)
        assert not {"9", "10", "100"} & set(found)
    assert "linear" in texts(scaling(near, Line("linear", "linear", 0, (9.0,), (0.49,), level=True)))


@given(st.lists(st.tuples(st.floats(0, 400), st.floats(0, 220)), max_size=6))
def test_labels_leave_each_other_room(places):
    heights = apart(places)
    assert len(heights) == len(places)
    for first in range(len(places)):
        for second in range(first):
            if abs(places[first][0] - places[second][0]) < LABEL_LENGTH:
                assert abs(heights[first] - heights[second]) > LABEL_SPACE - 1
    if all(abs(a[1] - b[1]) >= LABEL_SPACE for a in places for b in places if a is not b):
        assert heights == [height for _, height in places]
