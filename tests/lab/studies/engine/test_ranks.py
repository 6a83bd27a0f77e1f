"""Ranks: Demšar's own worked example, scipy's test, groups, and what cannot be ranked."""

import math

import numpy as np
import pytest
from scipy import stats

from dendritree.errors import OptionError
from dendritree_lab.studies.engine.ranks import Ranking, critical_difference, rank_models

# Table 6 of Demšar (2006), the ranks of four variants of C4.5 by AUC on 14 data sets
DEMSAR = {
    "C4.5": [4, 1, 4, 4, 4, 1, 3, 2.5, 4, 2.5, 4, 3, 4, 3],
    "C4.5+m": [3, 2, 1, 1, 2, 2.5, 2, 2.5, 3, 2.5, 2.5, 2, 1, 1],
    "C4.5+cf": [2, 3, 2, 3, 3, 4, 4, 4, 2, 2.5, 1, 4, 2, 4],
    "C4.5+m+cf": [1, 4, 3, 2, 1, 2.5, 1, 1, 1, 2.5, 2.5, 1, 3, 2],
}


def test_the_worked_example_of_the_paper():
    """Mean ranks 3.143, 2.000, 2.893 and 1.964; chi-square 9.28, F 3.69 (critical value 2.85); CD 1.25."""
    found = rank_models({name: [-rank for rank in ranks] for name, ranks in DEMSAR.items()})
    assert found.names == ("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5")
    assert [round(rank, 3) for rank in found.ranks] == [1.964, 2.0, 2.893, 3.143]
    assert (found.count, round(found.chi_square, 2), round(found.f, 2)) == (14, 9.28, 3.69)
    assert found.p == pytest.approx(stats.f.sf(found.f, 3, 39))
    assert 0.01 < found.p < 0.05
    assert round(found.critical, 2) == 1.25
    # "the difference between the best and the worst is already smaller than that": one group of all
    assert found.groups == ((0, 3),)


@pytest.mark.parametrize(("models", "q"), [(2, 1.960), (4, 2.569), (6, 2.850), (10, 3.164)])
def test_critical_values_are_those_of_the_papers_table(models, q):
    assert critical_difference(models, 1) / math.sqrt(models * (models + 1) / 6) == pytest.approx(q, abs=1e-3)


def test_without_ties_the_statistic_is_scipys():
    table = np.random.default_rng(0).normal(size=(4, 9))
    found = rank_models(dict(zip("abcd", table, strict=True)))
    assert found.chi_square == pytest.approx(stats.friedmanchisquare(*table).statistic)


def test_equal_scores_share_their_ranks_also_if_the_last_bit_differs():
    found = rank_models({"a": [0.1 + 0.2, 0.5], "b": [0.3, 0.4], "c": [0.2, 0.3]})
    assert dict(zip(found.names, found.ranks, strict=True)) == {"a": 1.25, "b": 1.75, "c": 3.0}


def test_groups_may_overlap_and_none_is_inside_another():
    ranks = (1.0, 1.4, 2.1, 3.5, 3.6)
    assert Ranking(tuple("abcde"), ranks, 20, 0.8, 0.0, 0.0, 1.0).groups == ((0, 1), (1, 2), (3, 4))
    assert Ranking(tuple("abcde"), ranks, 20, 0.05, 0.0, 0.0, 1.0).groups == ()


def test_the_same_order_everywhere_is_certain_and_one_data_set_says_nothing():
    assert rank_models({"a": [3, 3], "b": [2, 2], "c": [1, 1]}).p == 0
    assert math.isnan(rank_models({"a": [3], "b": [2]}).p)


@pytest.mark.parametrize("scores", [{}, {"a": [1.0]}, {"a": [1.0], "b": []}, {"a": [], "b": []}])
def test_models_without_common_data_sets_are_rejected(scores):
    with pytest.raises(OptionError, match="two models or more must have a score on each"):
        rank_models(scores)


def test_a_score_that_is_none_is_rejected():
    with pytest.raises(OptionError, match="scores must be finite to be ranked: got nan"):
        rank_models({"a": [1.0, math.nan], "b": [1.0, 2.0]})
