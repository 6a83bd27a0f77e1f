"""Estimators in threads: one that many threads ask, and fits that depend on their seed alone."""

import copy

import numpy as np
import pytest
import torch
from effort import thorough
from joblib import Parallel, delayed
from sklearn.datasets import load_iris

from dendritree.sklearn import DendriticClassifier

SEEDS = thorough(4, 8)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def in_threads(calls):
    return Parallel(n_jobs=8, backend="threading")(calls)


def test_many_threads_may_ask_one_estimator_and_its_network_stays_as_it_is(iris):
    x, y = iris
    model = DendriticClassifier(epochs=2, random_state=0).fit(x, y)
    before, expected = copy.deepcopy(model.network_.state_dict()), model.predict_proba(x)
    parameters = list(model.network_.parameters())
    for answer in in_threads(delayed(model.predict_proba)(x) for _ in range(thorough(100, 400))):
        np.testing.assert_array_equal(answer, expected)
    assert all(now is then for now, then in zip(model.network_.parameters(), parameters, strict=True))
    after = model.network_.state_dict()
    assert list(after) == list(before)
    assert all(after[key].dtype == before[key].dtype and after[key].equal(before[key]) for key in before)


def answers(seed, neurons, dropout, x, y):
    """What an estimator answers after a fit, and after two partial ones."""
    model = DendriticClassifier(neurons=neurons, dropout=dropout, epochs=thorough(2, 4), budget=400, random_state=seed)
    whole = model.fit(x, y).predict_proba(x)
    return whole, model.partial_fit(x, y).partial_fit(x, y).predict_proba(x)


@pytest.mark.parametrize(("neurons", "dropout"), [("tree", 0.3), ("sparse", 0.0), ("dense", 0.3), ("linear", 0.0)])
def test_a_fit_in_a_thread_is_the_serial_fit_to_the_last_bit(neurons, dropout, iris):
    state = torch.get_rng_state()
    alone = [answers(seed, neurons, dropout, *iris) for seed in range(SEEDS)]
    assert torch.get_rng_state().equal(state)
    together = in_threads(delayed(answers)(seed, neurons, dropout, *iris) for seed in range(SEEDS))
    np.testing.assert_array_equal(together, alone)
    assert torch.get_rng_state().equal(state)
