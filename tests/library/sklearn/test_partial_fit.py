"""A few rows at a time: what is learned adds up, and a call that fails or is interrupted changes nothing."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris, make_friedman1
from sklearn.exceptions import NotFittedError
from stopping import fail, press_ctrl_c, stopped

from dendritree.errors import FormatError, OptionError
from dendritree.sklearn import DendriticClassifier, DendriticRegressor
from dendritree.storage import folders, load, save

X, Y = load_iris(return_X_y=True)
QUICK = {"epochs": 15, "budget": 400, "random_state": 0}


@pytest.fixture(scope="module")
def numbers():
    return make_friedman1(200, random_state=0)


def quick(**options):
    return DendriticClassifier(**QUICK | options)


def quick_regressor(**options):
    return DendriticRegressor(**QUICK | options)


STOPS = pytest.mark.parametrize(("stop", "error"), [(press_ctrl_c, KeyboardInterrupt), (fail, RuntimeError)])

# ------------------------------------------------------------------------------------------------------------ learning


def test_partial_fit_learns_from_batch_to_batch():
    order = np.random.default_rng(0).permutation(len(X))
    model = quick(lr=0.02)
    for _ in range(30):
        for rows in np.array_split(order, 3):
            model.partial_fit(X[rows], Y[rows], classes=[0, 1, 2])
    assert model.score(X, Y) > 0.9
    assert model.n_iter_ == len(model.loss_curve_) == 90


def test_partial_fit_resumes_after_fit_and_a_copy_resumes_alike(numbers):
    x, y = numbers
    model = quick_regressor().fit(x, y)
    model.partial_fit(x, y)
    copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    model.partial_fit(x, y)
    for each in copies:
        each.partial_fit(x, y)
        np.testing.assert_array_equal(each.predict(x), model.predict(x))
    assert model.n_iter_ == 17


def test_the_scale_of_partial_fit_is_that_of_all_rows(numbers):
    x, y = numbers
    model = quick_regressor()
    for rows in np.array_split(np.arange(len(x)), 4):
        model.partial_fit(x[rows], y[rows])
    np.testing.assert_allclose(model._scaler.mean_, x.mean(0))
    np.testing.assert_allclose(model._target_scaler.scale_, [y.std()])


# ---------------------------------------------------------------------------------------------------- all or nothing


@STOPS
def test_a_call_that_does_not_end_changes_nothing(stop, error, numbers):
    x, y = numbers
    fitted, partial = (quick_regressor(batch_size=32) for _ in range(2))  # several steps in a call
    for model in (fitted.fit(x, y), partial.partial_fit(x, y).partial_fit(x, y)):
        network, other = model.network_, copy.deepcopy(model)
        for call in (model.partial_fit, model.fit):
            with stopped(stop, after=2), pytest.raises(error):
                call(x * 100, y * 1000)
            np.testing.assert_array_equal(model.predict(x), other.predict(x))
        assert model.network_ is network
        assert not network.training
        assert (model.n_iter_, model.loss_curve_) == (other.n_iter_, other.loss_curve_)
        np.testing.assert_array_equal(model.partial_fit(x, y).predict(x), other.partial_fit(x, y).predict(x))


@STOPS
def test_a_first_call_that_does_not_end_leaves_nothing(stop, error):
    for call, options in (("fit", {}), ("partial_fit", {"classes": [0, 1, 2]})):
        model = quick()
        before = dict(vars(model))
        with stopped(stop, after=1), pytest.raises(error):
            getattr(model, call)(X, Y, **options)
        assert vars(model) == before
        with pytest.raises(NotFittedError):
            model.predict(X)


def test_a_rejected_first_call_can_be_corrected():
    model = quick()
    with pytest.raises(OptionError, match="at least 2 rows"):
        model.partial_fit(X[:1], Y[:1], classes=[0, 1])
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(np.full((3, 9), np.inf), Y[:3], classes=[0, 1])
    np.testing.assert_array_equal(
        model.partial_fit(X, Y, classes=[0, 1, 2]).predict_proba(X),
        quick().partial_fit(X, Y, classes=[0, 1, 2]).predict_proba(X),
    )


# --------------------------------------------------------------------------------------------------------- rejections


def test_classes_and_rows_that_do_not_fit_are_rejected():
    with pytest.raises(OptionError, match="first call"):
        quick().partial_fit(X, Y)
    for classes in ([], [1]):
        with pytest.raises(OptionError, match="at least two"):
            quick().partial_fit(X, Y, classes=classes)
    model = quick().partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(OptionError, match="stay"):
        model.partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(OptionError, match="only classes"):
        model.partial_fit(X, Y + 7)
    with pytest.raises(OptionError, match="at least 2 rows"):
        model.partial_fit(X[:1], Y[:1])


@pytest.mark.parametrize(("before", "now"), [(1, 2), (2, 1), (2, 3)])
def test_the_number_of_targets_stays(before, now, numbers):
    x, y = numbers
    targets = {columns: y if columns == 1 else np.stack([y] * columns, axis=1) for columns in (before, now)}
    for model in (quick_regressor().fit(x, targets[before]), quick_regressor().partial_fit(x, targets[before])):
        predicted = model.predict(x)
        with pytest.raises(OptionError, match="targets"):
            model.partial_fit(x, targets[now])
        np.testing.assert_array_equal(model.predict(x), predicted)


def test_balanced_classes_are_rejected_and_weights_of_classes_are_not():
    for model in (quick(class_weight="balanced"), quick(class_weight="balanced").fit(X, Y)):
        with pytest.raises(OptionError, match="class_weight"):
            model.partial_fit(X[:60], Y[:60], classes=[0, 1, 2])
    heavy = quick(class_weight={0: 1.0, 1: 1.0, 2: 5.0}).partial_fit(X[:60], Y[:60], classes=[0, 1, 2])
    assert heavy.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("first", ["fit", "partial_fit"])
def test_partial_fit_resumes_from_a_folder_with_its_optimizer(first, numbers, tmp_path):
    x, y = numbers
    model = getattr(quick_regressor(), first)(x, y).partial_fit(x, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    for _ in range(2):
        np.testing.assert_array_equal(again.partial_fit(x, y).predict(x), model.partial_fit(x, y).predict(x))


def test_an_optimizer_of_another_network_is_rejected(numbers):
    config, tensors = folders.describe(quick_regressor().partial_fit(*numbers))
    places = [name for name in tensors if name.startswith("optimizer.")]
    assert len(places) % 3 == 0
    for damaged in (
        {name: each for name, each in tensors.items() if name != places[0]},
        tensors | {"optimizer.0.exp_avg": torch.zeros(3)},
        tensors | {"optimizer.99.step": torch.zeros(())},
    ):
        with pytest.raises(FormatError, match="optimizer"):
            folders.rebuild(config, damaged)
