"""Charts of a comparison: the numbers behind them, logarithmic axes, labels that leave each other room."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from comparison_cases import around, made_up_cell, made_up_run
from hypothesis import given
from hypothesis import strategies as st

from dendritree.errors import OptionError
from dendritree_lab.data import load_dataset
from dendritree_lab.report.chart import Chart, Line, Panel
from dendritree_lab.report.chart_images import draw, draw_png
from dendritree_lab.report.looks import FAMILIES as LOOKS
from dendritree_lab.report.looks import looks
from dendritree_lab.report.score_axes import LABEL_LENGTH, LABEL_SPACE, apart
from dendritree_lab.studies.engine.statistics import bootstrap_mean
from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.fair import BUDGETS, summarize
from dendritree_lab.studies.fair.score_charts import TRAINING_EXAMPLES, example_charts, size_charts

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


def test_the_names_of_charts_suit_ids_and_files_whatever_the_data_is_called(comparison):
    mine = {task: replace(task, dataset='my "pets"', trained=9) for task in comparison.tasks if task.dataset == "mnist"}
    own = [r for r in comparison.cells if r.cell.task in mine]
    cells = tuple(replace(r, cell=replace(r.cell, task=mine[r.cell.task])) for r in own)
    renamed = replace(comparison, cells=cells)
    names = [chart.name for chart in (*size_charts(renamed), *example_charts(renamed))]
    assert names == ["sizes-my-pets-", "examples-my-pets--9000"]


@pytest.mark.parametrize("name", [name for name in BUDGETS if not name.endswith("-pairs")])
def test_all_examples_are_as_many_as_the_data_sets_have(name, real_data):
    if name != "digits":  # which scikit-learn brings
        real_data(name)
    pairs = f"{name.removesuffix('-mnist')}-pairs"  # of as many images
    assert (
        len(load_dataset(name).train)
        == TRAINING_EXAMPLES[name]
        == TRAINING_EXAMPLES.get(pairs, TRAINING_EXAMPLES[name])
    )


# ------------------------------------------------------------------------------------------------------------ drawing


def test_families_have_looks_of_their_own():
    known = looks([])
    drawn = [known[family, 0] for family in FAMILIES]
    assert len({look.color for look in drawn}) == len({look.mark for look in drawn}) == 4
    for look in drawn:  # their names are written in them, on white
        red, green, blue = (int(look.color[place : place + 2], 16) / 255 for place in (1, 3, 5))
        linear = [((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
        assert 1.05 / (0.05 + np.dot((0.2126, 0.7152, 0.0722), linear)) > 4.5


def test_lines_are_named_where_they_end_and_axes_have_round_numbers(comparison):
    chart = next(size_charts(comparison))
    found = texts(chart)
    assert {"trees", "sparse", "dense", "linear", "5k", "10k", "100k", "0.9", "0.95", "0.98"} <= set(found)
    assert found.count("trees") == 1  # no legend besides
    svg = draw(chart, looks([chart]))
    for family in FAMILIES:
        assert re.search(f"fill: {LOOKS[family].colors[0]}", svg, re.IGNORECASE)


def test_the_same_data_gives_the_same_picture(comparison):
    chart = next(size_charts(comparison))
    pictures = [draw_png(chart, looks([chart])) for _ in range(2)]
    assert pictures[0] == pictures[1]
    assert pictures[0].startswith(b"\x89PNG")
    assert b"matplotlib" not in pictures[0]


def test_a_level_far_away_takes_no_room_and_says_where_it_is():
    near = Line("trees", "tree", 0, (1000.0, 4000.0), (0.50, 0.52))
    for far, arrow in ((0.9, "\N{UPWARDS ARROW}"), (0.1, "\N{DOWNWARDS ARROW}")):
        level = Line("linear", "linear", 0, (9.0,), (far,), level=True)
        found = texts(scaling(near, level, scale="linear"))
        assert f"linear {arrow}" in found
        assert {"0.500", "0.520"} <= set(found)
        assert not {"9", "10", "100"} & set(found)
    assert "linear" in texts(scaling(near, Line("linear", "linear", 0, (9.0,), (0.49,), level=True)))


@pytest.mark.parametrize("mean", [0.15, 0.8551, 0.9999, 1.0, 0.0])
def test_one_point_one_seed_and_the_ends_of_the_scale_can_be_drawn(mean):
    alone = Line("trees", "tree", 0, (1000.0,), (mean,), (np.nan,), (np.nan,))
    assert "trees" in texts(scaling(alone))
    assert "trees" in texts(scaling(alone, Line("dense", "dense", 0, (900.0, 8000.0), (0.1, 0.9))))
    level = Line("linear", "linear", 0, (650.0,), (mean,), level=True)
    assert "linear" in texts(scaling(level))


def test_a_close_range_has_ticks_that_can_be_told_apart():
    records = [
        record
        for budget, mean in ((1000, 0.8541), (2000, 0.8552), (4000, 0.8560))
        for record in made_up_cell("adult", "tree", budget, around(mean, 0.0002))
    ]
    ticks = [text for text in texts(next(size_charts(summarize(records)))) if text.startswith("0.")]
    assert len(ticks) == len(set(ticks)) >= 3


def test_an_unknown_scale_is_refused():
    with pytest.raises(OptionError, match="scale must be one of 'linear', 'errors': got 'log'"):
        Panel("accuracy", (), scale="log")


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
