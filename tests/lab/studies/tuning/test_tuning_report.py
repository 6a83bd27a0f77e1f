"""The report of a search: its figures are those of the trials, and the page is whole in a real browser."""

from torch import nn

from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.tuning import TrialResult, Tuned
from dendritree_lab.studies.tuning.search_sections import tuning_report, write_tuning

CHOSEN = {
    "wiring": "random",
    "depth": 2,
    "branching": 3,
    "fan_in": 12,
    "moving": 0.0,
    "share": 1.0,
    "dropout": 0.1,
    "lr": 0.0123,
    "weight_decay": 0.01,
}
# number, whole, score, parameters, depth
ROWS = [
    (0, True, 0.90, 1000, 2),
    (1, True, 0.80, 250, 1),
    (2, False, 0.40, 990, 2),
    (3, True, 0.85, 500, 2),
    (4, True, 0.84, 600, 1),
    (5, False, None, None, 3),
    (6, True, 0.92, 980, 1),
]


def made_up(metric="accuracy", importance=None, rows=ROWS):
    trials = tuple(
        TrialResult(number, whole, CHOSEN | {"depth": depth}, score, parameters, 5, 0.5)
        for number, whole, score, parameters, depth in rows
    )
    whole = [trial for trial in trials if trial.whole]
    best = (max if metric == "accuracy" else min)(whole, key=lambda trial: trial.score)
    return Tuned(
        name="made up",
        task=Task(97, 10 if metric == "accuracy" else None),
        budget=1000,
        trials=trials,
        best=best,
        preset=trials[0],
        importance=importance if importance is not None else {"lr": 0.6, "depth": 0.3, "wiring": 0.1},
        model=nn.Linear(97, 10),
        epochs=20,
        val_score=0.91,
        test_score=0.905,
        val_examples=300,
        test_looks=1,
    )


def test_the_pareto_front_is_of_those_that_nobody_beats_with_as_few_parameters():
    assert [trial.number for trial in made_up().pareto] == [1, 3, 6]
    assert [trial.number for trial in made_up("rmse").pareto] == [1]
    (chart,) = tuning_report(made_up()).section("pareto").charts
    front, trees, bare = chart.panels[0].lines
    assert (front.x, front.y, front.faint) == ((250.0, 500.0, 980.0), (0.80, 0.85, 0.92), True)
    assert (trees.family, sorted(trees.x)) == ("tree", [500.0, 1000.0])
    assert (bare.family, sorted(bare.x)) == ("sparse", [250.0, 600.0, 980.0])


def test_the_verdict_weighs_differences_against_chance():
    text = " ".join(made_up().verdict)
    assert "search gains 0.0200 in validation accuracy, too little to tell from chance on 300 examples" in text
    assert "The best neurons without dendrites (depth 1) are ahead of the best neurons with dendrites by 0.0200" in text


def test_the_page_is_whole_at_the_width_of_a_desk_and_of_a_phone(browser, tmp_path):
    path = write_tuning(made_up(), tmp_path, task="made-up data").html
    for width in (360, 1280):
        page = browser.open(path, width)
        assert page.complaints == []
        assert page.requests == [path.resolve().as_uri()]
        assert page.value("document.documentElement.scrollWidth") <= width
        assert [chart == room for chart, room in page.chart_widths] == [True] * 2  # each stands alone
        assert width < 600 or page.tables_that_scroll == []
        assert page.cut_labels == []
        assert "Tuned within 1,000 parameters on made-up data" in page.value("document.body.innerText")
        page.close()
