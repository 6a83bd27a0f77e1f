"""Intervals against the formula by hand, verdicts for every outcome, and models on the same splits."""

import math

import numpy as np
import pytest
from scipy import stats
from table_cases import houses

from dendritree.data.frames.target import read_target, score
from dendritree.errors import OptionError
from dendritree.studies.engine.statistics import Difference, paired_difference
from dendritree.studies.table.controls import FAMILIES, FamilyScores, compare_families, verdict


def test_the_interval_is_that_of_nadeau_and_bengio():
    first, second = [0.91, 0.88, 0.93, 0.90], [0.85, 0.87, 0.86, 0.88]
    differences = [a - b for a, b in zip(first, second, strict=True)]
    mean = sum(differences) / 4
    variance = sum((d - mean) ** 2 for d in differences) / 3
    half = stats.t.ppf(0.975, 3) * math.sqrt(variance * (1 / 4 + 1 / 3))
    found = paired_difference(first, second, 1 / 3)
    assert (found.mean, found.low, found.high) == pytest.approx((mean, mean - half, mean + half))
    one = paired_difference([0.9], [0.8], 0.25)
    assert (one.low, one.high) == (-math.inf, math.inf)
    assert one.state == "undecided"


def test_no_interval_of_accuracies_goes_beyond_what_accuracies_can_differ():
    found = paired_difference([0.9, 0.5], [0.6, 0.8], 1.0, most=1.0)
    assert (found.low, found.high) == (-1.0, 1.0)


def test_scores_are_accuracy_and_rmse():
    assert score(np.array(["a", "b", "b", "a"]), np.array(["a", "b", "a", "a"])) == 0.75
    assert score(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 5.0])) == pytest.approx(math.sqrt(8 / 3))


AHEAD, BEHIND, OPEN = Difference(2.0, 1.0, 3.0), Difference(-2.0, -3.0, -1.0), Difference(0.0, -1.0, 1.0)


@pytest.mark.parametrize(
    ("sparse", "dense", "linear", "baseline", "says"),
    [
        (AHEAD, AHEAD, AHEAD, AHEAD, "Yes: trees are better here than every control"),
        (OPEN, OPEN, AHEAD, OPEN, "No: nothing was learned"),
        (OPEN, BEHIND, AHEAD, AHEAD, "No: on this table trees are worse than a dense MLP."),
        (BEHIND, OPEN, BEHIND, AHEAD, "No: on this table trees are worse than sparse neurons and one linear unit"),
        (AHEAD, AHEAD, OPEN, AHEAD, "No: trees are not surely better than one linear unit"),
        (AHEAD, OPEN, AHEAD, AHEAD, "In part: dendrites beat sparse neurons"),
        (OPEN, AHEAD, AHEAD, AHEAD, "In part: trees beat the dense MLP"),
        (OPEN, OPEN, AHEAD, AHEAD, "Undecided: trees, sparse neurons and a dense MLP"),
    ],
)
def test_the_verdict_in_plain_words(sparse, dense, linear, baseline, says):
    assert verdict(made(sparse, dense, linear, baseline)).startswith(says)


def made(sparse, dense, linear, baseline, *, learned=None, splits=5, short=False):
    """Results of which trees are better than guessing as `baseline` says, and the others as `learned` does."""
    gains = {"tree": None, "sparse": sparse, "dense": dense, "linear": linear, "baseline": baseline}
    over = {**dict.fromkeys(gains, learned or baseline), "tree": baseline, "baseline": None}
    return [FamilyScores(each, (1.0,) * splits, 10, 1.0, gain, over[each], short) for each, gain in gains.items()]


def test_nothing_was_learned_only_if_no_family_learned():
    said = verdict(made(OPEN, OPEN, OPEN, OPEN, learned=AHEAD))
    assert said.startswith("No: trees are not surely better than guessing here, as are sparse neurons, a dense MLP,")


@pytest.mark.parametrize(
    ("gains", "options", "says"),
    [
        ((OPEN, OPEN, OPEN, OPEN), {"splits": 2}, "Undecided: so small a comparison cannot tell trees from guessing."),
        (
            (OPEN, OPEN, OPEN, AHEAD),
            {"splits": 2},
            "Undecided: so small a comparison cannot tell trees from one linear",
        ),
        (
            (OPEN, OPEN, OPEN, OPEN),
            {"short": True},
            "Undecided: so small a comparison cannot tell trees from guessing.",
        ),
        ((OPEN, BEHIND, AHEAD, AHEAD), {"short": True}, "Undecided: after so few epochs trees are worse than a dense"),
        ((OPEN, BEHIND, AHEAD, AHEAD), {"splits": 2}, "No: on this table trees are worse than a dense MLP."),
        ((AHEAD, AHEAD, AHEAD, AHEAD), {"splits": 2}, "Yes: trees are better here than every control"),
    ],
)
def test_a_small_comparison_does_not_say_no_for_want_of_a_gain(gains, options, says):
    said = verdict(made(*gains, **options))
    assert said.startswith(says)
    if "Undecided" in says:
        remedy = "5 splits or more" if "splits" in options else "as many epochs as `auto` takes"
        assert said.endswith(f" To know more, compare with {remedy}.")


@pytest.mark.parametrize("name", ["price", "dear"])
def test_every_family_is_evaluated_on_the_same_splits(name):
    frame = houses(40)
    target = read_target(frame, name)
    inputs = frame.drop(columns=["price", "dear"])
    seen = []
    results = compare_families(
        inputs, target, budget=300, splits=2, epochs=3, observer=lambda *progress: seen.append(progress)
    )
    assert [result.family for result in results] == [*FAMILIES, "baseline"]
    assert seen == [("comparing", done, 8) for done in range(9)]
    assert all(len(result.scores) == 2 and result.parameters <= 300 for result in results)
    for result in results:
        assert (result.gain is None) == (result.family == "tree")
        assert (result.learned is None) == (result.family == "baseline")
        assert result.short == (result.family != "baseline")
    tree, baseline = results[0].mean, results[-1].mean
    sign = 1 if name == "dear" else -1  # less error is better
    assert results[-1].gain == results[0].learned
    assert results[-1].gain.mean == pytest.approx(sign * (tree - baseline))


def test_more_splits_than_rows_are_rejected():
    frame = houses(30)
    with pytest.raises(OptionError, match="splits must leave two rows per part: got 20 for 30 rows"):
        compare_families(frame[["rooms"]], read_target(frame, "price"), budget=300, splits=20)
