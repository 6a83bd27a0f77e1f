"""What a report says of a model: scores against scikit-learn's, importances and effects against `explain`."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from table_cases import houses

from dendritree import explain
from dendritree_lab.studies.table import column_effects, column_importances, explain_rows, fit_table
from dendritree_lab.studies.table.contributions import BINS, MOST_ROWS, Contributions
from dendritree_lab.studies.table.explained_rows import explained_rows
from dendritree_lab.studies.table.findings import findings

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


# ------------------------------------------------------------------------------------------------------- contributions


@pytest.mark.parametrize("keep", ["tree", "sparse", "dense", "linear"])
def test_importances_are_the_mean_sizes_of_exact_contributions(keep):
    fit = fitted("price", keep)
    exact = explain(fit.model, fit.frame)
    exact.check()
    result = column_importances(explain_rows(fit.model, fit.frame))
    size = exact.inputs[:, 0].abs().mean(0).tolist()
    assert {each.column: each.size for each in result} == pytest.approx(dict(zip(exact.names, size, strict=True)))
    assert [each.size for each in result] == pytest.approx(sorted(size, reverse=True))
    assert sum(each.share for each in result) == pytest.approx(1)
    assert all(0 <= each.low <= each.share <= each.high <= 1 for each in result)
    assert set(exact.names) == {"rooms", "town", "built", "garden"}  # one-hot parts are their column's


def test_intervals_are_those_of_the_bootstrap_and_narrower_with_more_rows():
    random = np.random.default_rng(1)

    def importance(rows):
        values = random.normal(size=(rows, 1, 2)) * [1.0, 2.0]
        return column_importances(Contributions(None, values, ("a", "b"), ("y",)))[0]

    few, many = importance(40), importance(4000)
    assert (many.low, many.high) == pytest.approx((2 / 3 - 0.014, 2 / 3 + 0.014), abs=0.012)
    assert few.high - few.low > 5 * (many.high - many.low)


def test_of_several_classes_contributions_are_against_the_mean_of_all():
    fit = fitted("town")
    exact = explain(fit.model, fit.frame).inputs.numpy()
    result = explain_rows(fit.model, fit.frame)
    np.testing.assert_allclose(result.values, exact - exact.mean(1, keepdims=True))
    np.testing.assert_allclose(result.values.sum(1), 0, atol=1e-12)
    assert result.outputs == ("Delft", "Gouda", "Leiden")


def test_a_long_table_is_explained_by_a_sample_that_the_seed_draws():
    fit = fitted("price", "linear")
    frame = pd.concat([fit.frame] * 20, ignore_index=True)
    first, again, other = (explain_rows(fit.model, frame, seed=seed) for seed in (0, 0, 1))
    assert len(first.values) == len(first.frame) == MOST_ROWS < len(frame)
    assert first.values.tobytes() == again.values.tobytes() != other.values.tobytes()
    np.testing.assert_allclose(explain(fit.model, first.frame[-3:]).inputs.numpy(), first.values[-3:])


def test_effects_are_quantiles_of_contributions_by_value():
    fit = fitted("price")
    result = explain_rows(fit.model, fit.frame)
    effects = {each.column: each for each in column_effects(result, fit.model.encoding.columns)}
    assert list(effects) == ["rooms", "town", "built", "garden"]
    rooms, place = effects["rooms"], result.columns.index("rooms")
    assert [point.value for point in rooms.points] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, "missing"]
    for point in rooms.points:
        there = fit.frame["rooms"].isna() if point.value == "missing" else fit.frame["rooms"] == point.value
        given = result.values[there.to_numpy(), 0, place]
        assert (point.rows, point.low, point.median, point.high) == (
            there.sum(), *np.quantile(given, (0.1, 0.5, 0.9)).tolist(),
        )  # fmt: skip
    assert {point.value for point in effects["town"].points} == {"Delft", "Gouda", "Leiden", "missing"}
    built = effects["built"].points
    assert len(built) == BINS
    assert sum(point.rows for point in built) == 60
    assert 2001 < built[0].value < built[-1].value < 2026


# ------------------------------------------------------------------------------------------------------------ examples


@pytest.mark.parametrize("target", ["price", "dear", "town"])
def test_three_rows_are_explained_and_their_parts_add_up(target):
    fit = fitted(target)
    groups = explained_rows(fit)
    hard = (
        ["largest overestimate", "largest underestimate"]
        if target == "price"
        else ["most confident mistake", "least certain"]
    )
    assert [group.rows[0][1] for group in groups] == ["typical", *hard]
    numbers = {number: place for place, number in enumerate(fit.row_numbers)}
    assert len({group.rows[0][0] for group in groups}) == 3
    for group in groups:
        *parts, (number, _, _, _, shown, about, _, output) = group.rows
        assert output == pytest.approx(sum(part[-1] for part in parts))
        predicted = fit.model.predict(fit.frame.iloc[[numbers[number]]]).iloc[0]
        if target == "price":
            assert output == pytest.approx(predicted["prediction"])
            assert float(shown) == pytest.approx(output, rel=1e-5)
            continue
        assert shown.startswith(f"{predicted['prediction']} (")
        told, other = about.removeprefix("sum: log-odds of ").split(" against ")
        chances = predicted[[f"probability {told}", f"probability {other}"]].astype(float)
        assert output == pytest.approx(np.log(chances.iloc[0] / chances.iloc[1]), abs=1e-4)
    if target != "price":
        truth, predicted = groups[1].rows[0][2:4]
        right = np.unique(fit.y)[fit.predicted.values] == fit.y
        assert truth not in predicted
        assert predicted.endswith(f"({fit.predicted.certainty[~right].max():.0%})")
