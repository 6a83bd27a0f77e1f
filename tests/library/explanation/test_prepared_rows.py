"""Estimators and table models, on rows as their users have them: explained, pruned, drawn, exported."""

import numpy as np
import pandas
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dendritree import count, explain, load, prune, save, summary, to_onnx
from dendritree.errors import DendritreeError, OptionError
from dendritree.plot import plot_explanation, plot_tree
from dendritree.sklearn import DendriticClassifier, DendriticRegressor
from dendritree_lab.data.tables.encoding import TableEncoding
from dendritree_lab.studies.table.table_model import TableModel

QUICK = {"epochs": 8, "budget": 250, "random_state": 0}


@pytest.fixture(scope="module")
def houses():
    """Columns of very different sizes, a category, and prices far from 0."""
    random = np.random.default_rng(0)
    rooms, year = random.integers(1, 8, 150), random.normal(1960, 30, 150)
    town = random.choice(["Delft", "Gouda", "Leiden"], 150)
    frame = pandas.DataFrame({"rooms": rooms.astype(float), "town": town, "year": year})
    return frame, 200_000 + 30_000.0 * rooms + 500 * (year - 1960) + 40_000 * (town == "Delft")


@pytest.fixture(scope="module")
def regressor(houses):
    frame, price = houses
    return DendriticRegressor(**QUICK).fit(frame[["rooms", "year"]], price)


@pytest.fixture(scope="module")
def classifiers(houses):
    frame, price = houses
    numbers = frame[["rooms", "year"]].to_numpy()
    three = np.digitize(price, np.quantile(price, [0.3, 0.6]))
    return (
        numbers,
        DendriticClassifier(**QUICK).fit(numbers, price > 300_000),
        DendriticClassifier(**QUICK).fit(numbers, np.array(["low", "mid", "top"])[three]),
    )


@pytest.fixture(scope="module")
def table(houses):
    frame, price = houses
    frame = frame.assign(rooms=frame.rooms.where(frame.rooms > 1))  # a few are missing
    encoding = TableEncoding.learn(frame)
    return frame, TableModel(
        DendriticRegressor(**QUICK).fit(encoding.encode(frame).x, price), encoding, "price", "regression"
    )


# ------------------------------------------------------------------------------------------------------------- explain


def test_a_regressor_is_explained_by_column_in_the_units_of_the_target(houses, regressor):
    rows = houses[0][["rooms", "year"]][:6]
    result = explain(regressor, rows)
    np.testing.assert_allclose(result.output[:, 0], regressor.predict(rows), rtol=1e-12)
    mean = houses[0][["rooms", "year"]].mean().to_frame().T
    np.testing.assert_allclose(result.baseline[0], regressor.predict(mean), rtol=1e-9)
    parts = result.contributions(example=2)
    assert list(parts) == ["rooms", "year"]
    assert float(result.baseline[2, 0]) + sum(parts.values()) == pytest.approx(regressor.predict(rows)[2], rel=1e-12)
    assert result.check() < 1e-6 * 1e-3
    synapses = result.synapses(0).sum(-1)  # the trees' parts are in the same units
    np.testing.assert_allclose(synapses, (result.output - result.baseline)[:, 0], rtol=1e-9)


def test_classes_are_explained_in_log_odds(classifiers):
    numbers, two, three = classifiers
    result = explain(two, numbers[:5])
    assert result.outputs == ("True",)
    np.testing.assert_allclose(result.output[:, 0].sigmoid(), two.predict_proba(numbers[:5])[:, 1], rtol=1e-9)
    result = explain(three, numbers[:5])
    assert (result.outputs, result.names) == (("low", "mid", "top"), ("x0", "x1"))
    np.testing.assert_allclose(result.output.softmax(-1), three.predict_proba(numbers[:5]), rtol=1e-9)
    assert result.contributions("top", 1) == dict(zip(result.names, result.inputs[1, 2].tolist(), strict=True))
    assert result.check() < 1e-8


@pytest.mark.parametrize("form", ["array", "list", "series", "frame", "as many"])
def test_a_reference_is_a_row_of_the_users_own(form, houses, regressor):
    rows = houses[0][["rooms", "year"]]
    given = {
        "array": rows.to_numpy()[9],
        "list": rows.to_numpy()[9].tolist(),
        "series": rows.iloc[9],
        "frame": rows[9:10][["year", "rooms"]],
        "as many": rows.iloc[[9, 9, 9]],
    }[form]
    result = explain(regressor, rows[:3], given)
    np.testing.assert_allclose(result.baseline[:, 0], [regressor.predict(rows[9:10])[0]] * 3, rtol=1e-9)
    assert result.check() < 1e-6


def test_a_table_is_explained_by_its_columns_with_categories_and_gaps_folded_in(table):
    frame, model = table
    rows = frame[:8]
    for reference in (None, frame[20:21]):
        result = explain(model, rows, reference)
        assert (result.names, result.outputs) == (("rooms", "town", "year"), ("price",))
        np.testing.assert_allclose(result.output[:, 0], model.predict(rows).prediction, rtol=1e-12)
        assert result.check() < 1e-6
    np.testing.assert_allclose(result.baseline[0, 0], model.predict(frame[20:21]).prediction.iloc[0], rtol=1e-12)
    same = rows.town.to_numpy() == frame.town[20]
    assert same.any()
    assert (result.inputs[same, 0, 1] == 0).all()  # a category that does not differ contributes nothing
    assert (result.inputs[~same, 0, 1] != 0).all()


def test_what_is_no_model_or_no_row_is_rejected(houses, regressor):
    frame, _ = houses
    rows = frame[["rooms", "year"]]
    for model, x, reference, rule in (
        (DendriticRegressor(), rows, None, "fitted"),
        (PCA(), rows, None, "got PCA"),
        (make_pipeline(StandardScaler(), regressor), rows, None, "for a pipeline"),
        (regressor, rows[:3], 0.0, "reference must"),
        (regressor, rows[:3], [1.0], "reference must"),
        (regressor, rows[:3], rows[:4], "reference must"),
        (regressor, rows[:3], frame[["rooms", "town"]][:1], "lacks 'year'"),
    ):
        with pytest.raises(DendritreeError, match=rule):
            explain(model, x, reference)
    with pytest.raises(OptionError, match="output must"):
        explain(regressor, rows[:1]).contributions("pric")


# ------------------------------------------------------------------------------------------------ prune, plot, summary


def test_what_holds_a_network_is_pruned_counted_and_summed_up(houses, regressor, table):
    frame, _ = houses
    cases = [(regressor, frame[["rooms", "year"]]), (table[1], table[0])]
    for model, rows in cases:
        before = count(model).total
        assert str(summary(model)).count("DendriticLayer") == 1
        same, small = prune(model, threshold=0, examples=rows), prune(model, budget=0.6, examples=rows)
        assert type(small) is type(model)
        assert count(small).total <= 0.6 * before
        assert count(model).total == before  # the given one is left alone
        wanted, kept, cut = (np.asarray(predictions(each, rows)) for each in (model, same, small))
        np.testing.assert_allclose(kept, wanted, rtol=1e-6)
        assert np.corrcoef(cut, wanted)[0, 1] > 0.8


def predictions(model, rows):
    result = model.predict(rows)
    return result.prediction if hasattr(result, "prediction") else result


def test_a_pruned_estimator_is_saved_and_goes_on_learning(houses, regressor, tmp_path):
    frame, price = houses
    rows = frame[["rooms", "year"]]
    small = prune(regressor, budget=0.5, examples=rows, reference=rows[:1])
    save(small, tmp_path / "small")
    np.testing.assert_array_equal(load(tmp_path / "small").predict(rows), small.predict(rows))
    before = small.predict(rows)
    small.partial_fit(rows, price)
    assert not np.array_equal(small.predict(rows), before)


def test_pictures_show_columns_by_name(regressor, table):
    frame, model = table
    figure = plot_explanation(explain(model, frame[:3]))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert {"rooms", "town", "year"} <= set(labels)
    assert "price" in figure.get_suptitle()
    texts = {text.get_text() for text in plot_tree(regressor).axes[0].texts}
    assert {"rooms", "year"} <= texts
    assert "town=Delft" in {text.get_text() for text in plot_tree(model).axes[0].texts}


# The exporter takes two seconds: fast with outputs that are scaled back, slow with classes.
@pytest.mark.parametrize("kind", [0, *(pytest.param(classes, marks=pytest.mark.slow) for classes in (2, 3))])
def test_an_estimators_onnx_file_takes_raw_rows(kind, houses, regressor, classifiers, tmp_path):
    import onnxruntime

    frame = houses[0][["rooms", "year"]]
    model = {0: regressor, 2: classifiers[1], 3: classifiers[2]}[kind]
    file = to_onnx(model, tmp_path / "model.onnx")
    assert file.difference < 1e-5
    (output,) = onnxruntime.InferenceSession(file.path).run(["output"], {"input": frame.to_numpy()})
    wanted = model.predict_proba(frame.to_numpy()) if kind else model.predict(frame)[:, None]
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
