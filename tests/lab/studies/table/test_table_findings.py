"""What a report says of a model: scores against scikit-learn's, importances and effects against `explain`."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from table_cases import houses

from dendritree import explain
from dendritree_lab.studies.table import column_effects, column_importances, explain_rows, fit_table
from dendritree_lab.studies.table.contributions import BINS, MOST_ROWS, Contributions, bins
from dendritree_lab.studies.table.explained_rows import example_rows
from dendritree_lab.studies.table.findings import findings
from dendritree_lab.studies.table.quality import class_scores, confusion, number_scores, residual_quantiles

QUICK = {"budget": 300, "splits": 2, "epochs": 3}


@functools.cache
def fitted(target, keep="tree"):
    """A model of houses; of towns there are three classes."""
    frame = houses(60)
    frame = frame.drop(columns=[name for name in ("price", "dear") if name != target])
    return fit_table(frame, target, keep=keep, **QUICK)


def sections(fit):
    return {section.name: section for section in findings(fit)}


# -------------------------------------------------------------------------------------------------------------- scores


def test_scores_of_classes_are_scikit_learns():
    random = np.random.default_rng(0)
    truth, told = random.integers(0, 4, 200), random.integers(0, 3, 200)  # the last class is never told
    matrix = confusion(truth, told, 4)
    np.testing.assert_array_equal(matrix, metrics.confusion_matrix(truth, told))
    found = class_scores(matrix, list("abcd"))
    wanted = metrics.precision_recall_fscore_support(truth, told, zero_division=np.nan)
    np.testing.assert_allclose([each.precision for each in found], wanted[0])
    np.testing.assert_allclose([each.recall for each in found], wanted[1])
    np.testing.assert_allclose([each.f1 for each in found], wanted[2])
    assert [each.rows for each in found] == wanted[3].tolist()


def test_scores_of_numbers_are_scikit_learns():
    random = np.random.default_rng(0)
    truth = random.normal(size=100)
    told = truth + random.normal(0.2, 0.5, 100)
    found = number_scores(truth, told)
    assert found.r2 == pytest.approx(metrics.r2_score(truth, told))
    assert found.rmse == pytest.approx(metrics.root_mean_squared_error(truth, told))
    assert found.mae == pytest.approx(metrics.mean_absolute_error(truth, told))
    assert found.bias == pytest.approx((told - truth).mean())
    quantiles = dict(residual_quantiles(truth, told))
    assert (quantiles[0.0], quantiles[0.5], quantiles[1.0]) == (
        (told - truth).min(), np.median(told - truth), (told - truth).max(),
    )  # fmt: skip


def test_a_report_has_the_scores_of_rows_held_out():
    fit = fitted("price")
    (row,) = sections(fit)["quality"].rows
    assert row[:2] == (
        pytest.approx(metrics.r2_score(fit.y, fit.predicted.values)),
        pytest.approx(metrics.root_mean_squared_error(fit.y, fit.predicted.values)),
    )
    fit = fitted("town")
    told = np.unique(fit.y)[fit.predicted.values]
    matrix = [row[1:] for row in sections(fit)["confusion"].rows]
    np.testing.assert_array_equal(matrix, metrics.confusion_matrix(fit.y, told))
    assert [row[0] for row in sections(fit)["quality"].rows] == ["Delft", "Gouda", "Leiden"]


def test_of_many_classes_the_most_frequent_mistakes_are_listed():
    rows = 90
    frame = pd.DataFrame({"x": np.arange(rows) % 15 + 0.5, "kind": [f"k{n % 15}" for n in range(rows)]})
    fit = fit_table(frame, "kind", keep="linear", budget=400, splits=2, epochs=1)
    found = list(sections(fit)["confusion"].rows)
    told = np.unique(fit.y)[fit.predicted.values]
    pairs = pd.Series(list(zip(fit.y, told, strict=True)))[fit.y != told].value_counts()
    assert all(pairs[(a, b)] == count for a, b, count in found)
    assert [count for _, _, count in found] == sorted(pairs, reverse=True)[:20]


# ------------------------------------------------------------------------------------------------------- contributions


@pytest.mark.parametrize("keep", ["tree", "sparse", "dense", "linear"])
def test_importances_are_the_mean_sizes_of_exact_contributions(keep):
    fit = fitted("price", keep)
    exact = explain(fit.model, fit.frame)
    exact.check()
    found = column_importances(explain_rows(fit.model, fit.frame))
    size = exact.inputs[:, 0].abs().mean(0).tolist()
    assert {each.column: each.size for each in found} == pytest.approx(dict(zip(exact.names, size, strict=True)))
    assert [each.size for each in found] == pytest.approx(sorted(size, reverse=True))
    assert sum(each.share for each in found) == pytest.approx(1)
    assert all(0 <= each.low <= each.share <= each.high <= 1 for each in found)
    assert set(exact.names) == {"rooms", "town", "built", "garden"}  # one-hot parts are their column's


def test_intervals_are_those_of_the_bootstrap_and_narrower_with_more_rows():
    random = np.random.default_rng(1)

    def found(rows):
        values = random.normal(size=(rows, 1, 2)) * [1.0, 2.0]
        return column_importances(Contributions(None, values, ("a", "b"), ("y",)))[0]

    few, many = found(40), found(4000)
    assert (many.low, many.high) == pytest.approx((2 / 3 - 0.014, 2 / 3 + 0.014), abs=0.012)
    assert few.high - few.low > 5 * (many.high - many.low)


def test_of_several_classes_contributions_are_against_the_mean_of_all():
    fit = fitted("town")
    exact = explain(fit.model, fit.frame).inputs.numpy()
    found = explain_rows(fit.model, fit.frame)
    np.testing.assert_allclose(found.values, exact - exact.mean(1, keepdims=True))
    np.testing.assert_allclose(found.values.sum(1), 0, atol=1e-12)
    assert found.outputs == ("Delft", "Gouda", "Leiden")


def test_a_long_table_is_explained_by_a_sample_that_the_seed_draws():
    fit = fitted("price", "linear")
    frame = pd.concat([fit.frame] * 20, ignore_index=True)
    first, again, other = (explain_rows(fit.model, frame, seed=seed) for seed in (0, 0, 1))
    assert len(first.values) == len(first.frame) == MOST_ROWS < len(frame)
    assert first.values.tobytes() == again.values.tobytes() != other.values.tobytes()
    np.testing.assert_allclose(explain(fit.model, first.frame[-3:]).inputs.numpy(), first.values[-3:])


def test_effects_are_quantiles_of_contributions_by_value():
    fit = fitted("price")
    found = explain_rows(fit.model, fit.frame)
    effects = {each.column: each for each in column_effects(found, fit.model.encoding.columns)}
    assert list(effects) == ["rooms", "town", "built", "garden"]
    rooms, place = effects["rooms"], found.columns.index("rooms")
    assert [point.value for point in rooms.points] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, "missing"]
    for point in rooms.points:
        there = fit.frame["rooms"].isna() if point.value == "missing" else fit.frame["rooms"] == point.value
        given = found.values[there.to_numpy(), 0, place]
        assert (point.rows, point.low, point.median, point.high) == (
            there.sum(), *np.quantile(given, (0.1, 0.5, 0.9)).tolist(),
        )  # fmt: skip
    assert {point.value for point in effects["town"].points} == {"Delft", "Gouda", "Leiden", "missing"}
    built = effects["built"].points
    assert len(built) == BINS
    assert sum(point.rows for point in built) == 60
    assert 2001 < built[0].value < built[-1].value < 2026


def test_a_category_called_missing_is_not_a_missing_cell():
    frame = houses(40).assign(town=["missing", None, "x", "y"] * 10).drop(columns="dear")
    fit = fit_table(frame, "price", keep="linear", **QUICK)
    (effect,) = column_effects(
        explain_rows(fit.model, fit.frame), [each for each in fit.model.encoding.columns if each.name == "town"]
    )
    assert [(point.value, point.rows) for point in effect.points].count(("missing", 10)) == 2
    assert len(effect.points) == 4


def test_bins_hold_every_finite_number_once_and_equal_ones_together():
    random = np.random.default_rng(0)
    for numbers in (random.normal(size=100), np.r_[np.zeros(90), np.arange(30.0)], np.array([np.nan, 1.0])):
        parts = bins(numbers)
        np.testing.assert_array_equal(np.sum(parts, axis=0), np.isfinite(numbers).astype(int))
        assert len(parts) <= BINS
        for value in np.unique(numbers[np.isfinite(numbers)]):
            assert sum(bool(part[numbers == value].any()) for part in parts) == 1


# ------------------------------------------------------------------------------------------------------------ examples


@pytest.mark.parametrize("target", ["price", "dear", "town"])
def test_three_rows_are_explained_and_their_parts_add_up(target):
    fit = fitted(target)
    found = example_rows(fit)
    assert len({each.number for each in found}) == len(found) == 3
    hard = ["most too high", "most too low"] if target == "price" else ["surest mistake", "least certain"]
    assert [each.why for each in found] == ["typical", *hard]
    numbers = {number: place for place, number in enumerate(fit.row_numbers)}
    for each in found:
        assert each.output == pytest.approx(each.baseline + sum(part[2] for part in each.parts))
        row = fit.frame.iloc[[numbers[each.number]]]
        predicted = fit.model.predict(row).iloc[0]
        if target == "price":
            assert each.output == pytest.approx(predicted["prediction"])
            continue
        told, other = each.about.removeprefix("log-odds of ").split(" against ")
        chances = predicted[[f"probability {told}", f"probability {other}"]].astype(float)
        assert each.output == pytest.approx(np.log(chances.iloc[0] / chances.iloc[1]), abs=1e-4)
    surest = found[1]
    if target != "price":
        right = np.unique(fit.y)[fit.predicted.values] == fit.y
        assert surest.truth not in surest.predicted
        assert surest.predicted.endswith(f"({fit.predicted.certainty[~right].max():.0%})")


def test_without_a_mistake_two_rows_are_explained():
    x = np.r_[np.linspace(-9, -5, 30), np.linspace(5, 9, 30)]
    frame = pd.DataFrame({"x": x, "y": np.where(x > 0, "yes", "no")}).sample(frac=1, random_state=0)
    fit = fit_table(frame, "y", keep="dense", budget=60, splits=2, epochs=30)
    assert fit.predicted.values.tolist() == (fit.y == "yes").astype(int).tolist()
    assert [each.why for each in example_rows(fit)] == ["typical", "least certain"]
    assert list(sections(fit)["confusion"].rows) == [("no", 30, 0), ("yes", 0, 30)]
