"""Charts: the same bytes for the same data, and elements that can share a page."""

import re
import xml.etree.ElementTree as ET

import pytest
from warm import run

from dendritree_lab.report.chart import Chart, Line, Panel
from dendritree_lab.report.chart_images import draw
from dendritree_lab.report.looks import FAMILIES, looks


def svg(of):
    return draw(of, looks([of]))


def texts(of):
    return {"".join(element.itertext()) for element in ET.fromstring(svg(of)).iter("text")}


def test_a_model_looks_the_same_whatever_else_is_drawn(chart):
    alone = looks([])
    new = chart(lines=(Line("MLP h=99", "mlp", 99, (0.0,), (0.0,)), Line("x", "unknown", 0, (0.0,), (0.0,))))
    among = looks([new])
    assert all(among[model] == look for model, look in alone.items())
    assert among["mlp", 99].color in FAMILIES["mlp"].colors
    assert ("unknown", 0) in among


@pytest.mark.parametrize(
    ("trees", "mlps"), [((2, 4, 32), (3, 2)), ((2, 4, 32), (30, 14, 16, 11)), ((2, 4, 16), (29, 16, 11))]
)
def test_no_task_of_the_paper_has_two_models_of_one_look(trees, mlps):
    models = [("perceptrons", 0), *(("dendritic", size) for size in trees), *(("mlp", size) for size in mlps)]
    drawn = [looks([])[model] for model in models]
    assert len({look.color for look in drawn}) == len({look.mark for look in drawn}) == len(models)


@pytest.mark.parametrize("form", ["curves", "sweep", "points"])
def test_a_chart_is_one_well_formed_element_with_a_title(form, chart):
    root = ET.fromstring(svg(chart(form)))
    assert (root.tag, root[0].tag, root[0].text) == ("svg", "title", "Accuracy & loss of <two> models")
    assert root.get("aria-labelledby") == root[0].get("id")
    assert {"epoch", "accuracy", "loss", "dendritic b=32", "MLP h=11, p=0.3"} <= texts(chart(form))
    strokes = re.findall("stroke: (#[0-9a-f]{6})", svg(chart(form)), re.IGNORECASE)
    if form != "points":
        assert {looks([])["dendritic", 32].color.lower(), looks([])["mlp", 11].color.lower()} <= set(strokes)


@pytest.mark.parametrize(
    ("form", "x", "y", "ticks"),
    [
        ("values", (0.0, 400_000.0), (-25_000.0, 30_000.0), {"200k", "400k", "\N{MINUS SIGN}20k", "20k", "0"}),
        ("scaling", (64_000.0, 160_000.0), (0.4, 0.5), {"70k", "100k", "150k"}),
        ("scaling", (1000.0, 9000.0), (0.4, 0.5), {"1k", "2k", "5k"}),
        ("curves", (0.0, 1.0), (0.9975, 0.99875), {"0.99750", "0.99800", "0.99850"}),  # not rounded as coordinates are
        ("levels", (0.5,), (0.0,), {"trees", "0.2"}),
        ("shares", (0.25,), (0.0,), {"trees", "25%"}),
    ],
)
def test_ticks_are_round_short_and_exact(form, x, y, ticks):
    line = Line("trees", "tree", 0, x, y)
    assert ticks <= texts(Chart("c", "C", "alt", "x", (Panel("y", (line,)),), form=form))


def test_the_same_data_gives_the_same_bytes_in_any_process(chart):
    code = (
        "import sys\n"
        "from dendritree_lab.report.chart import Chart, Line, Panel\n"
        "from dendritree_lab.report.looks import looks\n"
        "from dendritree_lab.report.chart_images import draw\n"
        f"chart = {chart()!r}\n"
        "print(draw(chart, looks([chart])), end=''); assert 'matplotlib.pyplot' not in sys.modules"
    )
    assert run(code) == (0, svg(chart()), "")


def test_charts_on_one_page_share_no_ids_and_refer_to_nothing_else(chart):
    parts = [svg(chart("curves", name)) + svg(chart("sweep", f"{name}-s")) for name in ("one", "two")]
    ids = re.findall(r'\bid="([^"]+)"', "".join(parts))
    assert len(ids) == len(set(ids)) > 4
    for text in parts:
        referred = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text)
        assert {first or second for first, second in referred} <= set(re.findall(r'\bid="([^"]+)"', text))
        assert "http" not in text
