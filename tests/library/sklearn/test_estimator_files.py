"""Estimators as folders: what is read back predicts the same; anything that is not an estimator is rejected."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier

import dendritree
from dendritree.errors import FormatError, OptionError
from dendritree.sklearn import DendriticClassifier, DendriticRegressor
from dendritree.storage.folders import describe, rebuild

X, Y = load_iris(return_X_y=True, as_frame=True)


def fitted(**options):
    return DendriticClassifier(**{"epochs": 3, "budget": 300, "random_state": 3} | options).fit(X, Y)


@pytest.mark.parametrize(
    "labels",
    [
        Y.to_numpy(),
        Y.to_numpy(dtype=np.int8),
        np.array(["a", "b", "longer"])[Y],
        np.array(["a", "b", "c"], dtype=object)[Y],
        Y.to_numpy() == 1,
        Y.to_numpy() / 2,
    ],
    ids=["int64", "int8", "str", "object", "bool", "float"],
)
def test_a_classifier_is_read_back_as_it_was(labels, tmp_path):
    if labels.dtype.kind == "f":
        labels = labels * 2  # whole numbers, or they are no classes
    model = DendriticClassifier(epochs=3, budget=300, random_state=3).fit(X, labels)
    dendritree.save(model, tmp_path / "model")
    again = dendritree.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.predict(X).tolist()[0].__class__ is model.predict(X).tolist()[0].__class__
    assert again.get_params() == model.get_params()
    assert again.feature_names_in_.tolist() == list(X.columns)
    assert (again.n_parameters_, again.n_iter_, again.loss_curve_) == (model.n_parameters_, 3, model.loss_curve_)


@pytest.mark.parametrize("targets", [1, 2])
def test_a_regressor_is_read_back_as_it_was_and_goes_on(targets, tmp_path):
    x, y = make_friedman1(60, random_state=0)
    y = y if targets == 1 else np.stack([y, 2 * y], 1)
    model = DendriticRegressor(epochs=3, budget=300, random_state=3).fit(x, y)
    dendritree.save(model, tmp_path / "model")
    again = dendritree.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    np.testing.assert_array_equal(again.partial_fit(x, y).predict(x), model.partial_fit(x, y).predict(x))


def test_options_of_all_kinds_are_kept(tmp_path):
    model = fitted(class_weight={0: 1.0, 1: 2.0, 2: np.float32(3.0)}, budget="0.3k", random_state=np.int64(5))
    dendritree.save(model, tmp_path / "model")
    options = dendritree.load(tmp_path / "model").get_params()
    assert (options["class_weight"], options["budget"]) == ({0: 1.0, 1: 2.0, 2: 3.0}, "0.3k")


def test_models_and_estimators_replace_each_other_and_leave_other_files(tmp_path):
    dendritree.save(fitted(), tmp_path / "model")
    (tmp_path / "model" / "notes.txt").write_text("mine")
    dendritree.save(dendritree.models.MLP(4, 3, hidden=2), tmp_path / "model")
    assert isinstance(dendritree.load(tmp_path / "model"), torch.nn.Module)
    dendritree.save(fitted(), tmp_path / "model")
    assert isinstance(dendritree.load(tmp_path / "model"), DendriticClassifier)
    assert (tmp_path / "model" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (DendriticClassifier, NotFittedError, "not fitted"),
        (lambda: fitted(random_state=np.random.RandomState(0)), OptionError, "random_state"),
        (lambda: RidgeClassifier().fit(X, Y), OptionError, "RidgeClassifier"),
    ],
)
def test_what_cannot_be_saved_is_refused_before_anything_is_written(make, error, match, tmp_path):
    model = make()
    with pytest.raises(error, match=match):
        dendritree.save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def description():
    return describe(fitted())


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"estimator": "DendriticClasifier"}, "did you mean 'DendriticClassifier'"),
        ({"classes": None}, "classes"),
        ({"classes": {"dtype": "int64", "values": [0, 1, 1]}}, "different values"),
        ({"classes": {"dtype": "O", "values": [0, 1, 2]}}, "different values"),
        ({"classes": {"dtype": "int64", "values": [0, 1]}}, "one output per"),
        ({"n_features": 5, "feature_names": None}, "must read n_features"),
        ({"n_features": True}, "n_features"),
        ({"feature_names": ["a"]}, "feature_names"),
        ({"loss_curve": ["low"]}, "loss_curve"),
        ({"options": {"epoch": 3}}, "epoch"),
        ({"network": {"format": "dendritree-estimator", "version": 1}}, "must have format 'dendritree-model'"),
        ({"network": {"format": "dendritree-model", "version": 9}}, "version"),
    ],
)
def test_a_changed_config_is_refused(change, match, description):
    config, tensors = description
    with pytest.raises(FormatError, match=match):
        rebuild(config | change, tensors)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("inputs.mean_", torch.ones(3, dtype=torch.float64)),
        ("inputs.mean_", torch.full((4,), float("nan"), dtype=torch.float64)),
        ("network.readout.weight", torch.ones(3, 3)),
    ],
)
def test_changed_tensors_are_refused(key, value, description):
    config, tensors = description
    with pytest.raises(FormatError):
        rebuild(config, tensors | {key: value})


@pytest.mark.parametrize("device", ["cuda", 3, None])
def test_the_device_is_not_the_files_to_choose(device, description):
    config, tensors = description
    again = rebuild(config | {"options": config["options"] | {"device": device}}, tensors)
    assert again.device == "cpu"
    np.testing.assert_array_equal(again.predict(X), rebuild(config, tensors).predict(X))
