"""The report of a table in a real browser: nothing fetched, nothing cut, nothing complained about."""

from dendritree.report import write_report
from dendritree.sklearn.tables import TableEncoding, TableModel
from dendritree.studies.engine.statistics import Difference
from dendritree.studies.table.controls import FamilyScores
from dendritree.studies.table.fit import TableFit
from dendritree.studies.table.sections import table_report


class Estimator:
    """What a report asks of an estimator."""

    n_parameters_, n_iter_, weight_decay, lr = 812, 120, "auto", 0.01


def made_fit(task="regression"):
    from table_cases import houses

    encoding = TableEncoding.learn(houses().drop(columns=["price", "dear"]))
    means = {"tree": 21.5, "sparse": 22.0, "dense": 24.0, "linear": 40.0, "baseline": 120.0}
    if task == "classification":
        means = {family: 1 / (1 + mean / 100) for family, mean in means.items()}
    results = [
        FamilyScores(
            family,
            tuple(mean * (1 + 0.01 * split) for split in range(5)),
            0 if family == "baseline" else 800,
            1.5,
            None if family == "tree" else Difference(abs(mean - means["tree"]), -0.1, 2 * abs(mean - means["tree"])),
        )
        for family, mean in means.items()
    ]
    model = TableModel(Estimator(), encoding, "price" if task == "regression" else "dear", task)
    return TableFit(model, results, 60, 820, 5, 0, ("column 'id' counts the rows: left out",))


def test_the_report_says_scores_gains_and_columns():
    report = table_report(made_fit(), "houses.csv")
    assert report.title == "price from houses.csv"
    assert report.summary[0].startswith("Do dendrites help? ")
    assert "trees have an RMSE of 21.93; guessing the mean has 122.40" in report.summary[1]
    rows = {row[0]: row for row in report.section("scores").rows}
    assert rows["dense MLP"][3:6] == (2.5, (-0.1, 5.0), "undecided")
    assert rows["guessing"][1] is None
    columns = {row[0]: row for row in report.section("columns").rows}
    assert columns["id"][1:] == ("left out", 0, "counts the rows")
    assert columns["town"][2] == 4


def test_the_page_is_whole_on_a_phone_and_a_desk(browser, tmp_path):
    for task in ("regression", "classification"):
        page = write_report(table_report(made_fit(task), "houses.csv"), tmp_path / task, pictures=True).html
        for width in (360, 1280):
            shown = browser.open(page, width)
            assert shown.complaints == []
            assert len(shown.requests) == 1
            assert shown.cut_labels == []
            assert shown.value("document.documentElement.scrollWidth") <= width
            shown.close()
