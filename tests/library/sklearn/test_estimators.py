"""The estimators as people use them: pipelines, searches, frames, weights."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.datasets import load_digits, load_iris, make_classification, make_friedman1
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from dendritree import count, explain, load, save
from dendritree.errors import DendritreeError, OptionError
from dendritree.sklearn import DendriticClassifier, DendriticRegressor
from dendritree.sklearn.networks import FAMILIES
from dendritree.training.examples import no_leftover
from dendritree.wiring import Local, Random


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def numbers():
    return make_friedman1(200, random_state=0)


def quick(**options):
    return DendriticClassifier(**{"epochs": 8, "budget": 400, "random_state": 0} | options)


def quick_regressor(**options):
    return DendriticRegressor(**{"epochs": 8, "budget": 400, "random_state": 0} | options)


# ------------------------------------------------------------------------------------------------------------ learning


def test_the_defaults_learn(iris, numbers):
    x, y = iris
    assert DendriticClassifier(random_state=0, epochs=40).fit(x[::2], y[::2]).score(x[1::2], y[1::2]) > 0.9
    model = DendriticRegressor(random_state=0, epochs=60).fit(numbers[0][:150], numbers[1][:150])
    assert model.score(numbers[0][150:], numbers[1][150:]) > 0.6


def test_pixels_of_an_image_are_read_from_windows_and_kept_so(tmp_path):
    x, y = load_digits(return_X_y=True)
    model = quick(image_shape=(1, 8, 8), budget=2000, batch_size=64).fit(x[:600], y[:600])
    layer = model.network_.hidden[0]
    assert isinstance(layer.wiring, Local)
    assert layer.wiring.image_shape == (1, 8, 8)
    assert model.score(x[600:900], y[600:900]) > 0.8
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.get_params()["image_shape"] == (1, 8, 8)
    np.testing.assert_array_equal(again.predict_proba(x[:5]), model.predict_proba(x[:5]))
    with pytest.raises(DendritreeError, match="image_shape"):
        quick(image_shape=(1, 8, 9), budget=2000).fit(x, y)


def test_texts_for_classes_and_a_frame(iris):
    x, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = quick().fit(x, names)
    assert model.classes_.tolist() == sorted(set(names))
    assert model.feature_names_in_.tolist() == list(x.columns)
    assert set(model.predict(x)) <= set(names)
    probabilities = model.predict_proba(x)
    np.testing.assert_allclose(probabilities.sum(1), 1.0)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(1)], model.predict(x))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(x.rename(columns={x.columns[0]: "other"}))


def test_probabilities_are_those_of_the_network(iris):
    x, y = iris[0].to_numpy(), iris[1].to_numpy()
    for classes in (2, 3):
        part = y < classes
        model = quick().fit(x[part], y[part])
        inputs = np.clip((x[part] - x[part].mean(0)) / x[part].std(0), -5, 5)
        with torch.no_grad():
            logits = model.network_(torch.tensor(inputs, dtype=torch.float32)).double()
        expected = logits.softmax(1) if classes == 3 else torch.cat([1 - logits.sigmoid(), logits.sigmoid()], 1)
        np.testing.assert_allclose(model.predict_proba(x[part]), expected.numpy(), atol=1e-5)


def test_in_a_pipeline_a_search_and_cross_validation(iris):
    x, y = iris
    pipeline = make_pipeline(MinMaxScaler(), quick(epochs=5))
    search = GridSearchCV(pipeline, {"dendriticclassifier__neurons": ["tree", "sparse"]}, cv=2).fit(x, y)
    assert search.best_params_["dendriticclassifier__neurons"] in ("tree", "sparse")
    assert cross_val_score(quick(epochs=5), x, y, cv=2).shape == (2,)


def test_several_targets_at_once(numbers):
    x, y = numbers
    both = np.stack([y, -3 * y + 1], axis=1)
    predicted = quick_regressor(epochs=40).fit(x, both).predict(x)
    assert predicted.shape == both.shape
    assert np.corrcoef(predicted[:, 1], both[:, 1])[0, 1] > 0.8


def test_the_scale_of_inputs_and_targets_does_not_matter(numbers):
    x, y = numbers
    plain = quick_regressor().fit(x, y).predict(x)
    scaled = quick_regressor().fit(x * 1e6 - 3e7, y * 1e-4 + 7).predict(x * 1e6 - 3e7)
    np.testing.assert_allclose((scaled - 7) * 1e4, plain, rtol=1e-3, atol=1e-2)


# --------------------------------------------------------------------------------------------------------------- size


@pytest.mark.parametrize("neurons", FAMILIES)
def test_a_budget_is_kept(neurons, iris):
    x, y = iris
    model = quick(neurons=neurons, budget="0.6k", epochs=1).fit(x, y)
    assert model.n_parameters_ == count(model.network_).total <= 600
    assert model.n_parameters_ > 500 or neurons == "linear"


@pytest.mark.parametrize("rows", [2, 3, 65, 67])  # 65 and 67 would leave one row for 64, 2 and 3
def test_no_batch_is_ever_one_row(rows):
    x = np.random.default_rng(0).normal(size=(rows, 3))
    for batch_size in ("auto", 2, 3):
        quick(epochs=1, batch_size=batch_size).fit(x, np.arange(rows) % 2)
        quick(batch_size=batch_size).partial_fit(x, np.arange(rows) % 2, classes=[0, 1])


def test_a_batch_size_is_the_nearest_below_then_above_that_leaves_no_single_row():
    assert [no_leftover(rows, size) for rows, size in ((128, 64), (129, 64), (65, 2), (67, 3))] == [64, 63, 3, 4]
    for rows in range(2, 200):
        assert all(rows % no_leftover(rows, size) != 1 for size in range(2, 70))


def test_early_stopping_must_leave_two_rows_to_train_on(numbers):
    x, y = numbers
    with pytest.raises(OptionError, match="early_stopping"):
        quick_regressor(early_stopping=True).fit(x[:2], y[:2])


# ------------------------------------------------------------------------------------------------------------- chance


def test_the_result_depends_on_random_state_alone(iris):
    x, y = iris
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002 - the global generator is what is asked about
    first = quick().fit(x, y).predict_proba(x)
    before = torch.get_rng_state().clone(), np.random.get_state()[1].copy()  # noqa: NPY002
    second = quick().fit(x, y).predict_proba(x)
    np.testing.assert_array_equal(first, second)
    assert torch.equal(before[0], torch.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002
    assert not np.array_equal(first, quick(random_state=1).fit(x, y).predict_proba(x))


# ------------------------------------------------------------------------------------------------------------ weights


def test_a_weight_of_0_is_no_row(numbers):
    x, y = numbers
    weight = np.ones(len(x))
    weight[50:] = 0
    with_zeros = quick_regressor().fit(x, y, sample_weight=weight)
    np.testing.assert_array_equal(with_zeros.predict(x), quick_regressor().fit(x[:50], y[:50]).predict(x))


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_a_weight_of_0_is_no_row_for_classes_and_their_balance(class_weight, iris):
    x, y = iris[0].to_numpy(), iris[1].to_numpy()
    for counts in (np.arange(len(x)) % 3 + y > 1, y < 2):  # classes of other sizes; a class less
        with_zeros = quick(class_weight=class_weight).fit(x, y, sample_weight=counts)
        without = quick(class_weight=class_weight).fit(x[counts], y[counts])
        np.testing.assert_array_equal(with_zeros.classes_, without.classes_)
        np.testing.assert_array_equal(with_zeros.predict_proba(x), without.predict_proba(x))


def test_a_class_of_weight_0_is_known_but_has_no_rows(iris):
    x, y = iris[0].to_numpy(), iris[1].to_numpy()
    model = quick(class_weight={0: 1.0, 1: 1.0, 2: 0.0}).fit(x, y)
    assert model.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(model._scaler.mean_, x[y < 2].mean(0))


def test_weights_that_are_all_alike_are_none(numbers):
    x, y = numbers
    alike = quick_regressor().fit(x, y, sample_weight=np.full(len(x), 7.0))
    np.testing.assert_array_equal(alike.predict(x), quick_regressor().fit(x, y).predict(x))


def test_weights_pull_towards_their_rows(iris):
    x, y = iris[0].to_numpy()[50:], iris[1].to_numpy()[50:]
    heavy = quick(class_weight={1: 1.0, 2: 50.0}).fit(x, y)
    assert (heavy.predict(x) == 2).mean() > (quick().fit(x, y).predict(x) == 2).mean()
    same = quick(class_weight="balanced").fit(x, y).predict_proba(x)
    np.testing.assert_array_equal(same, quick().fit(x, y).predict_proba(x))  # 50 of each


# ----------------------------------------------------------------------------------------------------- early stopping


def test_early_stopping_stops_and_keeps_the_best(numbers):
    x = numbers[0]
    noise = np.random.default_rng(0).normal(size=len(x))  # nothing to learn: training on makes it worse
    model = quick_regressor(epochs=200, early_stopping=True, n_iter_no_change=5, budget=3000).fit(x, noise)
    assert model.n_iter_ < 200
    curve = model.validation_loss_curve_
    assert len(curve) == model.n_iter_
    assert int(np.argmin(curve)) == model.n_iter_ - 6


def test_verbose_writes_a_line_per_epoch_with_its_time(iris, capsys):
    x, y = iris
    quick(epochs=6, verbose=True).fit(x, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 6
    assert lines[-1].startswith("epoch 6 of 6: loss ")
    assert lines[-1].endswith("s in all")
    quick(epochs=2).fit(x, y)
    assert capsys.readouterr() == ("", "")


# --------------------------------------------------------------------------------------------------------- rejections


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"budget": "many"}, "budget"),
        ({"budget": 10}, "budget must be at least"),
        ({"neurons": "trees"}, "did you mean"),
        ({"epochs": 0}, "epochs"),
        ({"batch_size": 1}, "batch_size"),
        ({"lr": -1.0}, "lr"),
        ({"dropout": 1.5}, "dropout"),
        ({"early_stopping": True, "n_iter_no_change": 0}, "n_iter_no_change"),
    ],
)
def test_bad_options_are_rejected_when_fitted(options, match, iris):
    x, y = iris
    with pytest.raises(DendritreeError, match=match):
        quick(**options).fit(x, y)


def test_bad_data_is_rejected(iris):
    x, y = iris
    with pytest.raises(ValueError, match="two classes"):
        quick().fit(x, np.zeros(len(x)))
    with pytest.raises(ValueError, match="infinity"):
        quick().fit(x.mask(x > 7, np.inf), y)
    with pytest.raises(OptionError, match=r"2 GiB: got 1,000,000 x 5,000; .* TruncatedSVD"):
        quick().fit(scipy.sparse.csr_matrix((10**6, 5000)), np.arange(10**6) % 2)
    with pytest.raises(OptionError, match="negative"):
        quick().fit(x, y, sample_weight=np.full(len(x), -1.0))
    with pytest.raises(OptionError, match="at least 2 rows"):
        quick().fit(x, y, sample_weight=np.arange(len(x)) < 1)


@pytest.mark.parametrize("neurons", FAMILIES)
def test_training_that_diverges_raises_and_leaves_the_estimator_as_it_was(neurons, numbers):
    model = quick_regressor(neurons=neurons).fit(*numbers)
    before = model.predict(numbers[0])
    model.set_params(lr=1e38)
    for train in (model.fit, model.partial_fit):
        with pytest.raises(OptionError, match="finite weights"):
            train(*numbers)
    np.testing.assert_array_equal(model.predict(numbers[0]), before)


def test_a_frame_with_a_category_gives_scikit_learns_own_message():
    with pytest.raises(ValueError, match="could not convert string"):
        quick().fit(pd.DataFrame({"town": ["Delft", "Gouda"] * 5}), [0, 1] * 5)


@pytest.mark.parametrize("neurons", ["tree", "dense"])
@pytest.mark.parametrize("rows", [300, 5000])
def test_the_bits_do_not_depend_on_the_threads_of_torch(neurons, rows):
    x, y = make_classification(rows, 60, n_informative=20, n_classes=3, random_state=0)
    before, answers = torch.get_num_threads(), set()
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            model = DendriticClassifier(neurons=neurons, epochs=2, random_state=0).fit(x, y)
            answers.add(model.predict_proba(x).tobytes())
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert len(answers) == 1
    with pytest.raises(OptionError, match="threads"):
        DendriticClassifier(threads=0).fit(x, y)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_inputs_and_targets_of_any_scale_are_learned(scale):
    x, y = make_friedman1(300, noise=0.1, random_state=0)
    wanted = DendriticRegressor(epochs=40, random_state=0).fit(x, y).score(x, y)
    tiny = DendriticRegressor(epochs=40, random_state=0).fit(x, y * scale)
    assert np.corrcoef(tiny.predict(x) / scale, y)[0, 1] ** 2 > wanted - 0.05
    assert DendriticRegressor(epochs=40, random_state=0).fit(x * scale, y).score(x * scale, y) > wanted - 0.05


def test_complex_numbers_are_rejected():
    x, y = make_friedman1(60, random_state=0)
    for data in (x + 1j, pd.DataFrame({"a": y, "z": 1j * y})):
        with pytest.raises(ValueError, match=r"(?i)complex"):
            DendriticRegressor(epochs=1).fit(data, y)
    with pytest.raises(ValueError, match=r"(?i)complex"):
        DendriticRegressor(epochs=1).fit(x, y + 1j)


def test_missing_numbers_are_told_apart_from_means(tmp_path):
    """Whether a number is missing is all that decides the class; the other column never misses one in training."""
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 2))
    y = random.random(200) < 0.5
    x[y, 1] = np.nan
    model = DendriticClassifier(random_state=0, epochs=20).fit(x, y)
    assert model.score(x, y) == 1
    assert model.input_columns.tolist() == [0, 1, 1]
    save(model, tmp_path / "model")
    new = np.array([[np.nan, 0.3], [0.3, np.nan], [np.nan, np.nan]])
    probabilities = model.predict_proba(new)
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(new), probabilities)
    np.testing.assert_allclose(model.as_module()(torch.from_numpy(new)).detach(), probabilities, atol=1e-6)
    filled = np.array([[x[:, 0].mean(), 0.3]])
    np.testing.assert_allclose(model.predict_proba(filled), probabilities[:1], atol=1e-12)
    explained = explain(model, new)
    assert explained.names == ("x0", "x1")
    np.testing.assert_allclose(explained.inputs.sum(-1) + explained.baseline, explained.output, atol=1e-9)


def test_a_column_without_a_number_says_nothing_until_it_has_one():
    x, y = np.full((20, 2), np.nan), np.arange(20.0)
    x[:, 0] = y
    model = quick_regressor().fit(x, y)
    assert np.isfinite(model.predict(x)).all()
    partial = quick_regressor().partial_fit(x, y).partial_fit(np.column_stack([y, y + 7]), y)
    assert partial._scaler.mean_.tolist() == [9.5, 16.5]


def test_sparse_rows_are_the_same_rows(iris):
    x, y = iris
    rows = scipy.sparse.csr_array(x.to_numpy())
    model = quick().fit(rows, y)
    np.testing.assert_array_equal(model.predict_proba(rows), quick().fit(x.to_numpy(), y).predict_proba(x.to_numpy()))


def test_trees_and_wiring_can_be_chosen(iris, tmp_path):
    x, y = iris
    model = quick(branching=[3, 2], wiring=Random(seed=3)).fit(x, y)
    layer = model.network_.hidden[0]
    assert (layer.branching, layer.wiring) == ((3, 2), Random(seed=3))
    assert 300 < model.n_parameters_ <= 400
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.get_params()["wiring"] == Random(seed=3)
    np.testing.assert_array_equal(again.fit(x, y).predict_proba(x), model.predict_proba(x))
    with pytest.raises(OptionError, match="branching needs neurons='tree': got 'dense'"):
        quick(neurons="dense", branching=[3, 2]).fit(x, y)
    with pytest.raises(OptionError, match="budget must be at least"):
        quick(branching=[4, 4, 4, 4]).fit(x, y)
