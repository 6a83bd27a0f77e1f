"""`tune`: compare's search goes on, baselines take part, one model is kept; stopped anywhere, it ends the same."""

import math

import pytest
from compare_cases import small_plan, trials_in
from own_data import blobs

import dendritree
from dendritree.errors import DendritreeError
from dendritree.training import evaluate
from dendritree_lab.data.inputs import Inputs
from dendritree_lab.studies.engine import configuration
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.fair import compare, tune, tuning_report, write_tuning
from dendritree_lab.studies.fair.comparison_plan import ComparisonCell, validation_score
from dendritree_lab.studies.fair.families import OURS

OPTIONS = {"budget": 700, "trials": 3, "steps": 2, "families": OURS, "workers": Workers("here")}
TASK = Task.parse("digits:128")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A search in one go."""
    folder = tmp_path_factory.mktemp("whole") / "tuned"
    return tune("digits:128", out=folder, **OPTIONS), folder


def good(trial):
    return TASK.goodness(validation_score(TASK, trial))


def of_phase(trials, phase):
    return [trial for trial in trials if trial.key["phase"] == phase]


def test_the_search_is_that_of_compare_and_the_leading_family_gets_more(whole, tmp_path):
    result, folder = whole
    compare(tmp_path / "run", small_plan(budgets=[700], steps=2, seeds=1), workers=Workers("here"))
    searched = of_phase(trials_in(folder / "search"), "search")
    assert searched == of_phase(trials_in(tmp_path / "run"), "search")
    leading = max((trial for trial in searched if trial.key["budget"]), key=good).key["family"]
    more = of_phase(result.trials, "more")
    assert {trial.key["family"] for trial in more} == {leading}
    assert [trial.key["trial"] for trial in more] == [3, 4, 5]


def test_the_search_of_a_comparison_is_not_repeated(whole, tmp_path):
    compare(tmp_path / "run", small_plan(budgets=[700], steps=2, seeds=1), workers=Workers("here"))
    first = {}
    again = tune(
        "digits:128",
        out=tmp_path / "out",
        run=tmp_path / "run",
        observer=lambda what, done, total, *_: first.setdefault(what.rpartition(", ")[2], done == total),
        **OPTIONS,
    )
    assert first == {"search": True, "further search": False, "finalists": False}
    assert again.test_score == whole[0].test_score
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"inputs.json", "model"}


def test_the_best_of_every_family_is_trained_to_the_end_and_the_best_of_all_is_kept(whole):
    result, _ = whole
    tried = [trial for trial in result.trials if trial.key["phase"] in ("search", "more")]
    for family in OURS:
        best = max((trial for trial in tried if trial.key["family"] == family), key=good)
        assert any(trial.config == best.config for trial in result.finals)
    assert len(result.finals) == len(OURS) + 2
    assert good(result.finals[0]) == max(map(good, result.finals))
    assert all(trial.parameters <= 700 for trial in result.trials)
    assert result.parameters == result.finals[0].parameters


def test_the_model_in_the_folder_is_the_one_that_was_tested(whole):
    result, folder = whole
    model, split = dendritree.load(folder / "model"), TASK.load()
    assert TASK.score(*evaluate(model, split.test)) == result.test_score
    assert TASK.score(*evaluate(model, split.val)) == validation_score(TASK, result.finals[0])
    assert Inputs.read(folder).scaling == split.scaling
    low, high = result.interval
    assert low < result.test_score < high


def test_a_baseline_that_wins_is_said_to_win(tmp_path):
    """Two Gaussians: the best model is linear."""
    result = tune(blobs(300, classes=2), out=tmp_path, **OPTIONS | {"families": ["linear", "tree"], "steps": 30})
    use, other, count = result.verdict
    if result.family == "linear":
        assert use.startswith("Use one linear unit per output with")
        assert other.startswith("The best dendritic model, trees with")
    else:
        assert other.startswith("The best model without dendrites, one linear unit per output with")
    assert "too little to distinguish from chance on 60 examples" in other
    assert count.startswith("9 configurations of 2 families were tried, and 4 finalists trained for longer")


def test_a_quantity_is_tuned_for_little_error(tmp_path):
    x, _ = blobs(200)
    result = tune(
        (x, x.reshape(len(x), -1).mean(1) / 7), out=tmp_path, **OPTIONS | {"families": ["sparse"], "steps": 20}
    )
    assert result.metric == "rmse"
    assert result.interval is None
    scores = [validation_score(result.task, trial) for trial in result.finals]
    assert scores[0] == min(scores)


def test_families_that_do_not_fit_the_budget_are_left_out(tmp_path):
    result = tune("digits:128", out=tmp_path, **OPTIONS | {"budget": 200, "trials": 1})
    assert {trial.key["family"] for trial in result.trials} == {"tree", "sparse", "dense"}
    with pytest.raises(DendritreeError, match="room for two neurons"):
        tune("digits:128", out=tmp_path / "none", **OPTIONS | {"budget": 20})
    with pytest.raises(DendritreeError, match="budget must be at least 650 for perceptrons"):
        tune("digits:128", out=tmp_path / "none", **OPTIONS | {"budget": 600, "families": ["linear"]})
    assert not (tmp_path / "none").exists()


class Stop:
    """`fit` that is interrupted in its n-th training."""

    def __init__(self, at):
        self.left, self.fit = at, configuration.fit

    def __call__(self, *arguments, **options):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
        return self.fit(*arguments, **options)


def test_a_search_that_was_stopped_resumes_and_ends_the_same(whole, tmp_path, monkeypatch):
    for at in (2, 9, 4):  # in the search, among those that follow, and then a finalist
        with monkeypatch.context() as patch:
            patch.setattr(configuration, "fit", Stop(at))
            with pytest.raises(KeyboardInterrupt):
                tune("digits:128", out=tmp_path / "out", **OPTIONS)
        assert not (tmp_path / "out" / "model").exists()
    result = tune("digits:128", out=tmp_path / "out", **OPTIONS)
    assert trials_in(tmp_path / "out" / "search") == trials_in(whole[1] / "search")
    assert result.test_score == whole[0].test_score


def test_deep_networks_and_cnns_take_part_on_images(tmp_path):
    result = tune("digits:128", out=tmp_path, **OPTIONS | {"families": (), "trials": 1})
    assert {trial.key["family"] for trial in result.finals} == {"linear", "dense", "deep", "cnn"}
    model = dendritree.create_model(result.configuration.network, **result.configuration.arguments)
    assert sum(parameter.numel() for parameter in model.parameters()) == result.parameters


def test_the_report_has_every_finalist_and_the_page_is_whole_on_a_desk_and_a_phone(whole, browser, tmp_path):
    result, _ = whole
    finalists = tuning_report(result).section("finalists")
    assert [row[3] for row in finalists.rows] == [validation_score(TASK, trial) for trial in result.finals]
    assert all(math.isfinite(row[3]) for row in finalists.rows)
    assert ComparisonCell.of(result.finals[0]).name == next(iter(finalists.rows))[0]
    path = write_tuning(result, tmp_path).html
    for width in (360, 1280):
        page = browser.open(path, width)
        assert page.complaints == []
        assert page.value("document.documentElement.scrollWidth") <= width
        assert width < 600 or page.tables_that_scroll == []
        assert "The best model within 700 parameters on digits" in page.value("document.body.innerText")
        page.close()
