"""Intervals against the formula by hand, verdicts for every outcome, and models on the same splits."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics, model_selection
from table_cases import houses

from dendritree.errors import OptionError
from dendritree_lab.data.tables.target import read_target
from dendritree_lab.studies.engine.statistics import Difference
from dendritree_lab.studies.table.controls import LABELS, TRAINED, FamilyScores, compare_families
from dendritree_lab.studies.table.recommendation import best_family, is_preferred, kept_family, reason, verdict

AHEAD, BEHIND, OPEN = Difference(2.0, 1.0, 3.0), Difference(-2.0, -3.0, -1.0), Difference(0.0, -1.0, 1.0)


def made(sparse, dense, linear, baseline, *, splits=5, short=False):
    """Results of which every family is better than guessing as `baseline` says."""
    gains = {"tree": None, "sparse": sparse, "dense": dense, "linear": linear, "boosting": OPEN, "baseline": baseline}
    over = {**dict.fromkeys(gains, baseline), "baseline": None}
    return [FamilyScores(each, (1.0,) * splits, 10, 1.0, gain, over[each], short) for each, gain in gains.items()]


@pytest.mark.parametrize(
    ("gains", "options", "says"),
    [
        ((AHEAD, AHEAD, AHEAD, AHEAD), {}, "Yes: trees are better here than every control"),
        ((OPEN, OPEN, AHEAD, OPEN), {}, "Not shown: no model is better than guessing"),
        ((OPEN, BEHIND, AHEAD, AHEAD), {}, "No: on this table, trees are worse than a dense MLP."),
        ((BEHIND, OPEN, BEHIND, AHEAD), {}, "No: on this table, trees are worse than sparse neurons and one linear"),
        ((AHEAD, AHEAD, OPEN, AHEAD), {}, "Not shown: trees are not significantly better than one linear unit"),
        ((AHEAD, OPEN, AHEAD, AHEAD), {}, "In part: trees beat sparse neurons"),
        ((OPEN, AHEAD, AHEAD, AHEAD), {}, "In part: trees beat the dense MLP"),
        ((OPEN, OPEN, AHEAD, AHEAD), {}, "Not shown: trees, sparse neurons and a dense MLP"),
        # a small comparison does not say no for want of a gain
        ((OPEN, OPEN, OPEN, OPEN), {"splits": 2}, "Not shown: a comparison this small"),
        ((OPEN, OPEN, OPEN, AHEAD), {"splits": 2}, "Not shown: a comparison this small"),
        ((OPEN, OPEN, OPEN, OPEN), {"short": True}, "Not shown: a comparison this small"),
        ((OPEN, BEHIND, AHEAD, AHEAD), {"short": True}, "Not shown: after so few epochs"),
        ((OPEN, BEHIND, AHEAD, AHEAD), {"splits": 2}, "No: on this table, trees are worse than a dense MLP."),
        ((AHEAD, AHEAD, AHEAD, AHEAD), {"splits": 2}, "Yes: trees are better here than every control"),
    ],
)
def test_the_verdict_in_plain_words(gains, options, says):
    assert verdict(made(*gains, **options)).startswith(says)


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ({"tree": (0.6,) * 5}, "Not shown: trees are not significantly better than one linear unit"),
        (
            {"tree": (0.4,) * 5, "dense": (0.6,) * 5},
            "Not shown: trees are not significantly better than one linear unit",
        ),
    ],
)
def test_trees_are_not_said_to_be_better_than_linear_where_they_are_worse_on_average(scores, says):
    everyone = {**dict.fromkeys((*TRAINED, "baseline"), (0.5,) * 5), **scores}
    gains = {**dict.fromkeys(everyone, OPEN), "tree": None, "baseline": AHEAD}
    results = [FamilyScores(each, of, 10, 1.0, gains[each], AHEAD) for each, of in everyone.items()]
    assert verdict(results).startswith(says)


@pytest.mark.parametrize("name", ["price", "dear"])
def test_every_family_is_evaluated_on_the_same_splits(name):
    frame = houses(40)
    target = read_target(frame, name)
    inputs = frame.drop(columns=["price", "dear"])
    seen = []
    results = compare_families(
        inputs, target, budget=300, splits=2, epochs=3, observer=lambda *progress: seen.append(progress)
    )
    assert [result.family for result in results] == [*TRAINED, "baseline"]
    assert seen[: len(TRAINED)] == [(LABELS[family], 0, 2) for family in TRAINED]
    assert seen[len(TRAINED) :] == [(LABELS[family], done, 2) for done in (1, 2) for family in TRAINED]
    assert all(len(result.scores) == 2 and (result.fit_time > 0) == (result.family in TRAINED) for result in results)
    assert all(result.parameters <= 300 for result in results if result.family != "boosting")
    for result in results:
        assert (result.gain is None) == (result.family == "tree")
        assert (result.learned is None) == (result.family == "baseline")
        assert result.short == (result.family not in ("boosting", "baseline"))
        assert result.metric == ("accuracy" if name == "dear" else "RMSE")
    tree, baseline = results[0].mean, results[-1].mean
    sign = 1 if name == "dear" else -1  # less error is better
    np.testing.assert_equal(vars(results[-1].gain), vars(results[0].learned))  # NaN too
    assert results[-1].gain.mean == pytest.approx(sign * (tree - baseline))


@pytest.mark.parametrize("name", ["price", "dear"])
def test_every_row_is_predicted_by_a_model_that_was_not_trained_on_it(name):
    """The scores of the splits are those of the predictions, row by row."""
    frame = houses(40)
    target = read_target(frame, name)
    inputs = frame.drop(columns=["price", "dear"])
    classifies = name == "dear"
    folds = (model_selection.StratifiedKFold if classifies else model_selection.KFold)(2, shuffle=True, random_state=3)
    parts = [test for _, test in folds.split(inputs, target.y)]
    for result in compare_families(inputs, target, budget=300, splits=2, epochs=3, seed=3)[:-1]:
        told = result.predicted.values
        if classifies:
            told = np.unique(target.y)[told]
            assert ((result.predicted.certainty >= 0.5) & (result.predicted.certainty <= 1)).all()
        score = metrics.accuracy_score if classifies else metrics.root_mean_squared_error
        assert [score(target.y[part], told[part]) for part in parts] == list(result.scores)


def scored(metric="accuracy", **scores):
    """Families with these scores."""
    everyone = dict.fromkeys((*TRAINED, "baseline"), (0.5, 0.5, 0.5)) | scores
    return [FamilyScores(family, each, 10, 1.0, OPEN, OPEN, metric=metric) for family, each in everyone.items()]


NOISY = (0.80, 0.90, 0.85)  # 0.04 from (0.84, 0.86, 0.85) and back, so that the mean difference is 0


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ({"tree": (0.9, 0.91, 0.92)}, "tree"),
        ({}, "linear"),
        ({"tree": NOISY, "linear": (0.84, 0.87, 0.85)}, "linear"),  # a little behind, or ahead: the simpler one
        ({"tree": NOISY, "linear": (0.83, 0.86, 0.84)}, "linear"),
        ({"tree": NOISY, "dense": (0.84, 0.87, 0.85)}, "tree"),
        ({"tree": NOISY, "dense": (0.95, 0.99, 0.97)}, "dense"),
        ({"tree": NOISY, "dense": (0.95, 0.99, 0.97), "sparse": (0.96, 0.99, 0.97)}, "sparse"),
        ({"tree": NOISY, "dense": (0.95, 0.99, 0.97), "linear": (0.95, 0.99, 0.97)}, "linear"),
        ({"tree": (0.9, 0.91, 0.92), "boosting": (0.99, 0.99, 0.99)}, "tree"),  # it is not kept
    ],
)
def test_the_best_network_is_trees_unless_another_is_preferred_and_linear_unless_that_is(scores, best):
    results = scored(**scores)
    assert best_family(results) == kept_family("best", results) == best
    assert kept_family("dense", results) == "dense"
    errors = {family: tuple(1 - score for score in each) for family, each in scores.items()}
    assert best_family(scored("RMSE", **errors)) == best


def test_preferred_is_by_more_than_one_standard_error_of_the_paired_difference():
    first, second = (0.91, 0.88, 0.93, 0.90), (0.85, 0.87, 0.86, 0.88)
    differences = np.subtract(first, second)
    error = math.sqrt(differences.var(ddof=1) * (1 / 4 + 1 / 3))
    better, worse = (FamilyScores("tree", scores, 10, 1.0) for scores in (first, second))
    assert is_preferred(better, worse) == (differences.mean() > error)
    near = FamilyScores("tree", tuple(np.add(first, error * 0.99 - differences.mean())), 10, 1.0)
    far = FamilyScores("tree", tuple(np.add(first, error * 1.01 - differences.mean())), 10, 1.0)
    assert [is_preferred(each, worse) for each in (near, far)] == [False, True]


@pytest.mark.parametrize(
    ("boosting", "short", "says"),
    [
        ((0.96, 0.97, 0.98), False, "No: gradient boosting is ahead of trees by 0.0600"),
        (
            (0.93, 0.96, 0.94),
            False,
            "Not shown: gradient boosting is better than trees on average, by 0.0333 in accuracy, but undecided",
        ),
        ((0.88, 0.91, 0.90), False, "Yes: "),
        ((0.96, 0.97, 0.98), True, "Not shown: after so few epochs, gradient boosting is ahead"),
    ],
)
def test_trees_do_not_help_where_gradient_boosting_is_preferred(boosting, short, says):
    results = scored(tree=(0.9, 0.91, 0.92), boosting=boosting)
    changes = {"learned": AHEAD, "short": short}
    results = [replace(each, gain=None if each.family == "tree" else AHEAD, **changes) for each in results]
    assert verdict(results).startswith(says)


def test_gradient_boosting_ahead_of_another_network_does_not_say_that_trees_are_behind():
    results = scored(tree=(0.3, 0.9, 0.4), linear=(0.8, 0.81, 0.8), boosting=(0.97, 0.98, 0.97))
    assert verdict(results).startswith("Not shown: gradient boosting is ahead of one linear unit per output by 0.1700")


def test_only_a_decided_difference_is_called_ahead():
    results = scored(tree=NOISY, dense=(0.89, 0.92, 0.90), linear=(0.5, 0.6, 0.7))
    assert kept_family("best", results) == "dense"
    assert "better than trees on average, by 0.0533 in accuracy, but undecided (95% interval" in reason("best", results)
    results = scored(tree=(0.80, 0.81, 0.80), dense=(0.95, 0.96, 0.96))
    assert reason("best", results).endswith(": ahead of trees by 0.1533 in accuracy.")


def test_more_splits_than_rows_are_rejected():
    frame = houses(30)
    with pytest.raises(OptionError, match="splits must leave two rows per part: got 20 for 30 rows"):
        compare_families(frame[["rooms"]], read_target(frame, "price"), budget=300, splits=20)
