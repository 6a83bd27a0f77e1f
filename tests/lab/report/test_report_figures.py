"""Charts: the numbers behind them, the same bytes for the same data, and elements that can share a page."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from made_trials import made_trial
from report_cases import MATCHES, TABLES, made_up_records
from warm import run

from dendritree_lab.report.chart import Chart, Line, Panel
from dendritree_lab.report.chart_images import draw
from dendritree_lab.report.looks import FAMILIES, looks
from dendritree_lab.studies.paper.analysis import summarize
from dendritree_lab.studies.paper.paper_charts import learning_curves, mean_curve
from dendritree_lab.studies.paper.matched import matched_rows

EPOCHS = (0.0, 1.0, 2.0)
TREE = Line("dendritic b=32", "dendritic", 32, EPOCHS, (0.2, 0.5, 0.8), (0.1, 0.4, 0.7), (0.3, 0.6, 0.9))
MLP = Line("MLP h=11, p=0.3", "mlp", 11, EPOCHS, (0.125, 0.3, 0.375))
FAINT = Line("MLP h=11, p=0.3", "mlp", 11, EPOCHS, (0.3, 0.4, 0.5), faint=True)


def chart(form="curves", name="one", lines=(TREE, MLP, FAINT)):
    panels = (Panel("accuracy", lines), Panel("loss", lines, limits=(0.0, 2.0)))
    return Chart(name, "Title", "Accuracy & loss of <two> models", "epoch", panels, form)


def svg(of):
    return draw(of, looks([of]))


@pytest.fixture(scope="module")
def curves():
    records = made_up_records(TABLES[2:4], trials=3, epochs=7)
    return records, learning_curves(records, matched_rows(summarize(records), MATCHES))


# -------------------------------------------------------------------------------------------------------------- data


def test_a_mean_curve_is_the_mean_of_each_epoch():
    trials = [made_trial(index=index, epochs=epochs) for index, epochs in ((0, 4), (1, 3), (2, 3))]
    mean, sd = mean_curve(trials, "val_acc")
    columns = list(zip(*(trial.curves["val_acc"] for trial in trials), strict=False))  # as long as the shortest
    assert mean == pytest.approx([sum(column) / 3 for column in columns])
    for got, column in zip(sd, columns, strict=True):
        middle = sum(column) / 3
        assert got == pytest.approx((sum((value - middle) ** 2 for value in column) / 2) ** 0.5)


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


# ------------------------------------------------------------------------------------------------------------- looks


def test_a_model_looks_the_same_whatever_else_is_drawn():
    alone, among = looks([]), looks([chart()])
    assert alone["dendritic", 32] == among["dendritic", 32]
    assert alone["mlp", 11] == among["mlp", 11]
    new = chart(lines=(Line("MLP h=99", "mlp", 99, EPOCHS, EPOCHS),))
    assert looks([new])["mlp", 99].color in FAMILIES["mlp"].colors
    assert looks([new])["mlp", 11] == alone["mlp", 11]


def test_no_task_of_the_paper_has_two_models_of_one_look():
    known = looks([])
    for task in ("binary", "multiclass", "cnn"):
        models = {("dendritic", size) for of, size in MATCHES if of == task}
        controls = {control for (of, _), pair in MATCHES.items() if of == task for control in pair}
        models |= {("mlp" if size else "perceptrons", size) for _, size in controls}
        drawn = [known[model] for model in models]
        assert len({look.color for look in drawn}) == len({look.mark for look in drawn}) == len(models)


# ------------------------------------------------------------------------------------------------------------ drawing


@pytest.mark.parametrize("form", ["curves", "sweep", "points"])
def test_a_chart_is_one_well_formed_element_with_a_title(form):
    root = ET.fromstring(svg(chart(form)))
    assert root.tag == "svg"
    assert root[0].tag == "title"
    assert root[0].text == "Accuracy & loss of <two> models"
    assert root.get("aria-labelledby") == root[0].get("id")
    texts = {"".join(element.itertext()) for element in root.iter("text")}
    assert {"epoch", "accuracy", "loss", "dendritic b=32", "MLP h=11, p=0.3"} <= texts
    strokes = re.findall("stroke: (#[0-9a-f]{6})", svg(chart(form)), re.IGNORECASE)
    if form != "points":
        assert {looks([])["dendritic", 32].color.lower(), looks([])["mlp", 11].color.lower()} <= set(strokes)


def test_large_numbers_are_short_so_that_the_name_of_the_axis_stays_in_the_chart():
    line = Line("trees", "tree", 0, (0.0, 400_000.0), (-25_000.0, 30_000.0))
    drawn = svg(Chart("errors", "Errors", "Errors", "price", (Panel("predicted minus true", (line,)),), form="values"))
    texts = {element.text for element in ET.fromstring(drawn).iter("text")}
    assert {"200k", "400k", "\N{MINUS SIGN}20k", "20k", "0"} <= texts


@pytest.mark.parametrize(
    ("sizes", "ticks"), [((64_000.0, 160_000.0), {"70k", "100k", "150k"}), ((1000.0, 9000.0), {"1k", "2k", "5k"})]
)
def test_sizes_have_several_ticks_however_close_they_are(sizes, ticks):
    line = Line("trees", "tree", 0, sizes, (0.4, 0.5))
    drawn = svg(Chart("sizes", "Sizes", "Sizes", "parameters", (Panel("accuracy", (line,)),), form="scaling"))
    assert ticks <= {element.text for element in ET.fromstring(drawn).iter("text")}


def test_ticks_are_read_as_they_were_written():
    """Coordinates are shortened to keep the page small; numbers that people read are not."""
    line = Line("MLP h=11", "mlp", 11, (0.0, 1.0), (0.9975, 0.99875))
    texts = [element.text for element in ET.fromstring(svg(chart(lines=(line,)))).iter("text")]
    assert {"0.99750", "0.99800", "0.99850"} <= set(texts)


def test_the_same_data_gives_the_same_bytes_in_any_process():
    code = (
        "import sys\n"
        "from dendritree_lab.report.chart import Chart, Line, Panel\n"
        "from dendritree_lab.report.looks import looks\n"
        "from dendritree_lab.report.chart_images import draw\n"
        f"chart = {chart()!r}\n"
        "print(draw(chart, looks([chart])), end=''); assert 'matplotlib.pyplot' not in sys.modules"
    )
    assert run(code) == (0, svg(chart()), "")
    assert svg(chart()) == svg(chart())


def test_charts_on_one_page_share_no_ids_and_refer_to_nothing_else():
    texts = [svg(chart("curves", name)) + svg(chart("sweep", f"{name}-s")) for name in ("one", "two")]
    ids = re.findall(r'\bid="([^"]+)"', "".join(texts))
    assert len(ids) == len(set(ids)) > 4
    for text in texts:
        referred = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text)
        assert {first or second for first, second in referred} <= set(re.findall(r'\bid="([^"]+)"', text))
        assert "http" not in text
