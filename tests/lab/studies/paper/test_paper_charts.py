"""Learning curves: a line is the mean of its trials, and charts of one task share their axes."""

import numpy as np
import pytest
from report_cases import MATCHES, TABLES, made_up_records

from dendritree_lab.studies.paper.analysis import summarize
from dendritree_lab.studies.paper.matched import matched_rows
from dendritree_lab.studies.paper.paper_charts import learning_curves


@pytest.fixture(scope="module")
def curves():
    records = made_up_records(TABLES[2:4], trials=3, epochs=7)
    return records, learning_curves(records, matched_rows(summarize(records), MATCHES))


def test_there_is_a_chart_for_each_tree_without_dropout_and_at_the_best(curves):
    _, charts = curves
    assert [chart.name for chart in charts] == [
        f"curves-paper-multiclass-b{branching}-{kind}" for kind in ("none", "best") for branching in (2, 4, 32)
    ]
    labels = [line.label for line in charts[1].panels[0].lines if not line.faint]
    assert labels == ["dendritic b=4", "MLP h=14", "MLP h=16", "perceptrons"]


def test_lines_are_mean_and_band_of_the_trials(curves):
    records, charts = curves
    trials = [r for r in records if (r.row.network, r.row.size, r.row.dropout) == ("mln", 32, 0.0)]
    values = np.array([trial.curves["val_loss"] for trial in trials])
    loss = next(panel for panel in charts[2].panels if panel.y_label == "loss")
    tree, training = loss.lines[:2]
    assert tree.x == tuple(range(7))
    assert tree.y == pytest.approx(values.mean(axis=0))
    assert tree.high == pytest.approx(values.mean(axis=0) + values.std(axis=0, ddof=1))
    assert training.faint
    assert training.y == pytest.approx(np.array([trial.curves["train_loss"] for trial in trials]).mean(axis=0))


def test_charts_of_a_task_share_their_axes(curves):
    _, charts = curves
    for place in (0, 1):
        (limits,) = {chart.panels[place].limits for chart in charts}
        values = [value for chart in charts for line in chart.panels[place].lines for value in line.y]
        assert limits[0] < min(values) < max(values) < limits[1]
