"""The study from end to end on two small tables, stopped and resumed; its statistics by hand; its report."""

import math

import numpy as np
import pytest
from command_runs import count_trials, interrupt_when

from dendritree.errors import FormatError, OptionError
from dendritree_lab.report.critical_difference import critical_difference
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.statistics import bootstrap_mean
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.tables import TABLES, TablesPlan, compare_tables, half_of, read_half, write_tables
from dendritree_lab.studies.tables.families import FAMILIES, size_of
from dendritree_lab.studies.tables.plan import TableJob, read_table_trial, run_table_job
from dendritree_lab.studies.tables.results import Half, Measured, TableResult

QUICK = {
    **{family: {"epochs": 3} for family in ("tree", "sparse", "dense", "linear")},
    "mlp": {"max_iter": 5},
    "boosting": {"max_iter": 4},
}
NAMES = ("wine", "diabetes")
"""One of each half and of each kind of task."""


def small_plan(**options):
    return TablesPlan.make(NAMES, **{"folds": 2, "changes": QUICK, **options})


def trials_in(folder):
    with RunStore.open_for_reading(folder) as store:
        return store.read_trials(read_table_trial, with_weights=False)


def without_times(trials):
    times = {"predict_seconds"}
    return [
        (t.key, t.seed, t.config, t.parameters, {k: v for k, v in t.scores.items() if k not in times}) for t in trials
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that was out of time at first, then stopped by Ctrl-C, then completed."""
    folder, told = tmp_path_factory.mktemp("tables") / "run", []
    here = {"workers": Workers("here")}
    assert not compare_tables(folder, small_plan(), hours=1e-9, **here)
    assert count_trials(folder) == 0
    with pytest.raises(KeyboardInterrupt), interrupt_when(lambda: count_trials(folder) >= 3):
        compare_tables(folder, small_plan(), **here)
    kept = trials_in(folder)
    assert 3 <= len(kept) < 24
    assert compare_tables(folder, small_plan(), observer=lambda *given: told.append(given), **here)
    assert told[0] == ("tables", len(kept), 24)
    assert [given[3] for given in told[1:] if given[3]] == ["wine is complete", "diabetes is complete"]
    assert all(trial in trials_in(folder) for trial in kept)  # seconds included: none was fitted again
    return folder


def test_a_run_has_every_family_on_every_fold_with_size_score_and_times(run):
    trials = trials_in(run)
    assert {tuple(trial.key.values()) for trial in trials} == {
        (table, family, fold) for table in NAMES for family in FAMILIES for fold in range(2)
    }
    for trial in trials:
        score = "accuracy" if trial.key["table"] == "wine" else "r2"
        assert set(trial.scores) == {score, "predict_seconds"}
        assert trial.scores[score] <= 1
        assert trial.parameters > 0
        assert trial.seconds > 0
        assert trial.scores["predict_seconds"] >= 0  # some clocks of processor time tick only every 16 ms
    mlp = next(t for t in trials if (t.key["table"], t.key["family"]) == ("wine", "mlp"))
    assert mlp.parameters == (13 + 1) * 100 + 101 * 3


def test_a_stopped_run_ends_as_one_in_one_go(run, tmp_path):
    plan = small_plan(families=["tree", "mlp", "boosting"])
    assert compare_tables(tmp_path / "again", plan, workers=Workers("here"))
    again = without_times(trials_in(tmp_path / "again"))
    assert len(again) == 12
    assert all(trial in without_times(trials_in(run)) for trial in again)


def test_a_score_is_the_estimators_own():
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import KFold

    x, y = load_diabetes(return_X_y=True)
    train, test = list(KFold(5, shuffle=True, random_state=0).split(x))[3]
    model = HistGradientBoostingRegressor(max_iter=4, random_state=3).fit(x[train], y[train])
    trial = run_table_job(TableJob("diabetes", "boosting", 3, 5, (("max_iter", 4),)))
    assert trial.scores["r2"] == pytest.approx(model.score(x[test], y[test]))
    assert trial.parameters == size_of(model) == sum(len(tree.nodes) for (tree,) in model._predictors)
    assert trial.parameters % 2 == 0  # four trees, each with one leaf more than splits


def test_untouched_means_untouched():
    plan = TablesPlan.make(["iris"])
    config = plan.as_config()
    assert plan.jobs()[0].changes == ()
    assert config["estimators"]["mlp"]["regression"]["hidden_layer_sizes"] == [100]
    assert config["estimators"]["sparse"]["classification"]["neurons"] == "sparse"
    assert {family: (len(tasks)) for family, tasks in config["estimators"].items()} == dict.fromkeys(FAMILIES, 2)


def test_a_run_with_other_options_is_another_run(run):
    other = small_plan(changes={**QUICK, "tree": {"epochs": 4}})
    with pytest.raises(FormatError, match=r"differs in estimators\.tree\.classification\.epochs: 3 -> 4"):
        compare_tables(run, other, workers=Workers("here"))


def test_a_plan_takes_tables_of_a_half_small_ones_first():
    plan = TablesPlan.make(["adult", "wine", "heart"], half="held-out", families=["boosting", "tree"])
    assert (plan.tables, plan.families) == (("wine", "heart"), ("tree", "boosting"))
    assert [job.stored_key[1] for job in plan.jobs()[:2]] == [
        '{"table": "wine", "family": "tree", "fold": 0}',
        '{"table": "wine", "family": "boosting", "fold": 0}',
    ]
    assert len(TablesPlan.make(half="choose").tables) == 24


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tables": ["irsi"]}, "table must be one of.*iris"),
        ({"half": "other"}, "half must be one of"),
        ({"families": ["forest"]}, "family must be one of"),
        ({"folds": 1}, "folds must be"),
        ({"tables": ["iris"], "half": "held-out"}, "the held-out half must contain one of the tables: got iris"),
        ({"changes": {"forest": {}}}, "family must be one of"),
    ],
)
def test_a_plan_rejects_what_it_does_not_know(options, message):
    with pytest.raises(OptionError, match=message):
        TablesPlan.make(options.pop("tables", ()), **options)


# --------------------------------------------------------------------------------------------------------- statistics


def result(name, parameters=100, **scores):
    sizes = {"tree": parameters, "mlp": 100, "boosting": 9999}
    measured = {family: Measured(tuple(own), sizes.get(family, 50), 1.0, 0.1) for family, own in scores.items()}
    return TableResult(TABLES[name], measured)


def test_level_is_within_one_standard_error_of_the_paired_difference():
    """Differences 0.1 and 0.3: mean 0.2, s 0.1 sqrt(2), standard error s sqrt(1/2 + 1) = 0.1732 < 0.2."""
    found = result("iris", tree=[0.9, 0.8], mlp=[0.8, 0.5])
    mean, error = found.gain("mlp")
    assert (mean, error) == pytest.approx((0.2, math.sqrt(0.02) * math.sqrt(1.5)))
    assert found.standing("mlp") == "ahead"
    assert result("iris", tree=[0.8, 0.5], mlp=[0.9, 0.8]).standing("mlp") == "behind"
    assert result("iris", tree=[0.9, 0.8], mlp=[0.85, 0.5]).standing("mlp") == "level"  # 0.175 against 0.2165
    assert result("iris", tree=[0.9, 0.8], mlp=[0.9, 0.8]).standing("mlp") == "level"
    assert result("iris", mlp=[0.9, 0.8]).standing("mlp") is None


def test_bars_count_tables_on_which_trees_hold_with_few_enough_parameters():
    """Ranks of trees 2, 1.5 and 1.5, of mlp 3, 3 and 1.5."""
    results = [
        result("iris", tree=[0.9, 0.9], mlp=[0.8, 0.8], boosting=[0.95, 0.95]),
        result("sonar", 101, tree=[0.9, 0.9], mlp=[0.8, 0.8], boosting=[0.9, 0.9]),
        result("wdbc", 15_001, tree=[0.9, 0.9], mlp=[0.9, 0.9], boosting=[0.8, 0.8]),
    ]
    rank, mlp, boosting = Half.of("choose", results).bars()
    assert rank.found == "1.67 against 2.50"
    assert (mlp.found, boosting.found) == ("1 of 3 tables", "1 of 3 tables")
    assert {bar.state for bar in (rank, mlp, boosting)} == {"partial"}
    assert Half.of("held-out", results).bars() == []
    whole = [result(name, tree=[0.9, 0.9], mlp=[0.8, 0.8], boosting=[0.95, 0.95]) for name in TABLES]
    assert [bar.state for bar in Half.of("held-out", whole).bars()] == ["holds", "holds", "does not hold"]
    assert Half.of("held-out", whole).bars()[1].found == "23 of 23 tables"


def test_gains_are_means_over_tables_by_kind_of_task_with_a_bootstrap_interval():
    means = [0.1, 0.2, 0.06]
    results = [
        result(name, tree=[0.5 + gain, 0.5 + gain], sparse=[0.5, 0.5])
        for name, gain in zip(("iris", "sonar", "wdbc"), means, strict=True)
    ]
    results.append(result("diabetes", tree=[0.4, 0.5], sparse=[0.5, 0.6]))
    classes, numbers = Half.of("choose", results).gains()
    assert (classes.rival, classes.task, classes.count) == ("sparse", "classification", 3)
    assert classes.mean == pytest.approx(0.12)
    assert (classes.low, classes.high) == pytest.approx(bootstrap_mean(means))
    assert (numbers.task, numbers.mean) == ("regression", pytest.approx(-0.1))
    assert math.isnan(numbers.low)


def test_ranks_are_over_tables_that_have_every_family():
    results = [
        result("iris", tree=[0.9, 0.9], mlp=[0.8, 0.8], linear=[0.7, 0.7]),
        result("sonar", tree=[0.8, 0.8], mlp=[0.9, 0.9], linear=[0.7, 0.7]),
        result("wdbc", tree=[0.1, 0.1], mlp=[0.9, 0.9]),
    ]
    half = Half.of("all", results)
    assert half.ranking.count == 2
    standings = {each.family: each for each in half.standings()}
    assert {family: each.rank for family, each in standings.items()} == {"tree": 1.5, "mlp": 1.5, "linear": 3.0}
    assert (standings["mlp"].ahead, standings["mlp"].level, standings["mlp"].behind) == (1, 0, 2)


# ------------------------------------------------------------------------------------------------------------- report


def test_the_report_has_every_table_the_bars_and_a_diagram_per_half(run):
    report, files = write_tables(run)
    assert len(report.summary) == 9  # three bars of each half and of all
    assert report.summary[-1].startswith("On all tables, trees ahead of or level with boosting, with at most 15,000")
    rows = files.html.parent.joinpath("csv/tables.csv").read_text(encoding="utf-8").splitlines()
    assert [row.split(",")[0] for row in rows] == ["table", "diabetes", "wine"]
    assert {"tree", "tree_sd", "boosting_parameters", "mlp_fit_seconds"} <= set(rows[0].split(","))
    assert half_of("wine") in rows[2]
    text = files.markdown.read_text(encoding="utf-8")
    assert "Nadeau and Bengio 2003" in text
    page = files.html.read_text(encoding="utf-8")
    assert page.count("<figure") == 3
    assert "critical difference" in page


def test_the_diagram_of_a_run_is_that_of_its_ranking(run):
    ranking = read_half(run).ranking
    shown = [text.get_text() for text in critical_difference(run).axes[0].texts]
    assert f"{ranking.names[0]}  {ranking.ranks[0]:.2f}" in shown
    assert sum(ranking.ranks) == pytest.approx(21)
    assert np.array_equal(read_half(run, "held-out").ranking.count, 1)
    with pytest.raises(OptionError, match="half must be one of"):
        critical_difference(run, "other")


def test_the_command_line(tmp_path, call):
    words = ["compare", "tables", "--tables", "iris", "--families", "linear", "boosting", "--folds", "2"]
    folder = tmp_path / "run"
    status, out, errors = call(*words, "--run", folder, "--backend", "here")
    assert status == 0, errors
    assert errors.splitlines()[-1] == "tables 4 of 4: iris is complete"
    assert f"wrote {folder}/tables.html" in out
    assert call("report", folder)[0] == 0
    assert call("report", folder, "--all")[0] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["tables", "--budgets", "9k"],
            "compare tables uses default estimators on its own tables: got --budgets",
        ),
        (["tables", "--steps", "10"], "got --steps"),
        (["mnist", "--half", "choose"], "--half is for dendritree compare tables: got mnist"),
        (["--folds", "3"], "--folds is for dendritree compare tables: got no word"),
        (["tables", "--tables", "irsi"], "table must be one of"),
    ],
)
def test_options_of_another_study_are_rejected(words, message, call, tmp_path):
    status, out, errors = call("compare", *words, "--run", tmp_path / "run")
    assert (status, out) == (2, "")
    assert message in errors
    assert not (tmp_path / "run").exists()
