"""A small report with every part that a report may have."""

import pytest

from dendritree_lab.report.chart import Chart, Line, Panel
from dendritree_lab.report.layout import Column, Report, Section

EPOCHS = (0.0, 1.0, 2.0)
TREE = Line("dendritic b=32", "dendritic", 32, EPOCHS, (0.2, 0.5, 0.8), (0.1, 0.4, 0.7), (0.3, 0.6, 0.9))
MLP = Line("MLP h=11, p=0.3", "mlp", 11, EPOCHS, (0.125, 0.3, 0.375))
FAINT = Line("MLP h=11, p=0.3", "mlp", 11, EPOCHS, (0.3, 0.4, 0.5), faint=True)
COLUMNS = (
    Column("model", "model"),
    Column("task"),
    Column("trials", "trials", "count"),
    Column("val_acc", "val. accuracy", "spread"),
    Column("ahead", "ahead by", "difference"),
    Column("interval", "95% interval", "interval", detail=True),
    Column("p", "p value", "p", detail=True),
    Column("effect", "Hedges' g of the two groups", "number", detail=True),
    Column("verdict", "verdict", "badge"),
    Column("evidence", "evidence", "evidence"),
)


@pytest.fixture
def chart():
    """A function that makes a chart of two panels."""

    def make(form="curves", name="one", lines=(TREE, MLP, FAINT), **options):
        panels = (Panel("accuracy", lines), Panel("loss", lines, limits=(0.0, 2.0)))
        return Chart(name, "Title", "Accuracy & loss of <two> models", "epoch", panels, form, **options)

    return make


@pytest.fixture
def report(chart):
    same = {"trials": 10, "ahead": -0.03, "interval": (-0.05, -0.01), "p": 0.0004, "effect": -1.25}
    words = {"verdict": "does not hold", "evidence": "1 of 2 won: not b=2."}
    rows = [
        {"model": f"dendritic b={size}", "task": task, "val_acc": (0.771 + size / 1e3, 0.02), **same, **words}
        for task in ("binary", "multiclass")
        for size in (2, 4, 32)
    ]
    charts = (chart("curves", "curves", group="All"), chart("sweep", "sweep", group="All"), chart("points", "points"))
    by_task = Section.of("tables", "Tables", "See `a < b`.", COLUMNS, rows, by=lambda row: (row["task"], row["task"]))
    drawn = Section.of("charts", "Charts", "", COLUMNS[:3], rows, charts=charts, brief=False)
    empty = Section("missing", "What is missing", "", COLUMNS[:1], empty="Nothing is missing.")
    return Report("The report", ("First.", "What it says."), (by_task, drawn, empty), (("6", "models"),))
