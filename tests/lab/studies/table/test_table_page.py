"""The report of a table: what it says, and the page in a real browser, nothing fetched, nothing cut."""

import functools
from dataclasses import replace

from table_cases import houses

from dendritree_lab.report import write_report
from dendritree_lab.studies.engine.statistics import Difference
from dendritree_lab.studies.table.controls import FamilyScores
from dendritree_lab.studies.table.table_fit import fit_table
from dendritree_lab.studies.table.table_sections import table_report


@functools.cache
def made_fit(task="regression"):
    """A real model whose comparison has scores of our own, and a column with a long name."""
    target, other = ("price", "dear") if task == "regression" else ("dear", "price")
    frame = houses().drop(columns=other).rename(columns={"garden": "a garden, a balcony or at least a window sill"})
    fit = fit_table(frame, target, keep="tree", budget=300, splits=2, epochs=2)
    means = {"tree": 21.5, "sparse": 22.0, "dense": 24.0, "linear": 40.0, "boosting": 23.0, "baseline": 120.0}
    if task == "classification":
        means = {family: 1 / (1 + mean / 100) for family, mean in means.items()}
    results = [
        FamilyScores(
            family,
            tuple(mean * (1 + 0.01 * split) for split in range(5)),
            0 if family == "baseline" else 800,
            1.5,
            None if family == "tree" else Difference(abs(mean - means["tree"]), -0.1, 2 * abs(mean - means["tree"])),
            metric="RMSE" if task == "regression" else "accuracy",
            predicted=found.predicted,
        )
        for (family, mean), found in zip(means.items(), fit.results, strict=True)
    ]
    return replace(fit, results=results, splits=5)


def test_the_report_says_scores_gains_and_columns():
    report = table_report(made_fit(), "houses.csv")
    assert report.title == "price from houses.csv"
    assert "trees have an RMSE of 21.93; guessing the mean gives 122.40" in report.summary[2]
    rows = {row[0]: row for row in report.section("scores").rows}
    assert rows["dense"][4:7] == (2.5, (-0.1, 5.0), "undecided")
    assert rows["baseline"][2] is None
    columns = {row[0]: row for row in report.section("columns").rows}
    assert columns["id"][1:] == ("left out", 0, "counts the rows")
    assert columns["town"][2] == 4


def test_every_part_is_in_the_text_and_in_csv_files(tmp_path):
    for task, sections in (("regression", ["residuals"]), ("classification", ["confusion"])):
        files = write_report(table_report(made_fit(task), "houses.csv"), tmp_path / task, pictures=True)
        names = {path.stem for path in files.csvs}
        assert names >= {"scores", "quality", "importances", "effects", "examples", *sections}
        assert (tmp_path / task / "csv" / "scores.csv").read_text().splitlines()[0].endswith(",fit_time")
        pictures = {path.stem for path in files.pictures}
        assert pictures >= {"importances-bars", "effect-0", "effect-3"}
        text = files.markdown.read_text()
        for said in ("Which columns matter", "How the strongest columns act", "Three rows explained", "fit time"):
            assert said in text
        header = (tmp_path / task / "csv" / "examples.csv").read_text().splitlines()[0]
        assert header == "row,why,truth,held_out,predicted,part,cell,contribution"


def test_the_page_is_whole_on_a_phone_and_a_desk(browser, tmp_path):
    for task in ("regression", "classification"):
        page = write_report(table_report(made_fit(task), "houses.csv"), tmp_path / task, pictures=True).html
        for width in (360, 1280):
            shown = browser.open(page, width)
            assert shown.complaints == []
            assert len(shown.requests) == 1
            assert shown.cut_labels == []
            assert shown.value("document.documentElement.scrollWidth") <= width
            assert width < 600 or shown.tables_that_scroll == []
            shown.close()
