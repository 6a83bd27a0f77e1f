"""Gradient boosting on a table's own columns: what it gets to see, and the same bits every time."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from table_cases import houses

from dendritree_lab.data.tables.encoding import TableEncoding
from dendritree_lab.studies.table.table_boosting import MOST_CATEGORIES, Boosting, own_columns


def columns(rows=60):
    frame = houses(rows)
    inputs = frame.drop(columns=["price", "dear"])
    return own_columns(TableEncoding.learn(inputs), inputs), frame


def test_categories_are_categories_and_missing_cells_are_missing():
    own, frame = columns()
    kinds = [str(kind) for kind in own.dtypes]
    assert kinds == ["float64", "category", *["float64"] * 3, "category"]  # rooms, town, built, garden
    assert own["x0"].isna().tolist() == frame["rooms"].isna().tolist()
    assert own["x1"].isna().tolist() == frame["town"].isna().tolist()
    assert own.groupby("x1", observed=True).size().tolist() == frame["town"].value_counts().tolist()


def test_a_missing_date_and_one_of_many_categories():
    rows = 900
    frame = pd.DataFrame({"day": ["2026-11-16", None, "2026-12-24"] * 300, "id": [f"t{n % 300}" for n in range(rows)]})
    own = own_columns(TableEncoding.learn(frame), frame)
    assert own[["x0", "x1", "x2"]].isna().all(axis=1).sum() == 300
    assert own["x1"].dropna().unique().tolist() == [11, 12]
    assert own["x3"].nunique() == MOST_CATEGORIES
    assert Boosting("regression", 0).fit(own, np.arange(rows) % 7.0).predict(own).shape == (rows,)


def test_it_is_scikit_learns_own_and_a_large_target_does_not_change_it():
    own, frame = columns()
    y = frame["price"].to_numpy()
    plain = HistGradientBoostingRegressor().fit(own, y).predict(own)
    np.testing.assert_allclose(Boosting("regression", 0).fit(own, y).predict(own), plain, rtol=1e-5)
    large = Boosting("regression", 0).fit(own, y * 1e60).predict(own)
    np.testing.assert_allclose(large / 1e60, plain, rtol=1e-5)
    labels = frame["dear"].to_numpy(dtype=str)
    chances = HistGradientBoostingClassifier().fit(own, labels).predict_proba(own)
    model = Boosting("classification", 0).fit(own, labels)
    np.testing.assert_array_equal(model.predict(own), chances)
    assert model.size > model.model.n_iter_


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_gives_the_same_bits_and_a_class_of_one_row_is_no_error(seed):
    """With so many rows some are set aside to stop by, drawn from every class."""
    random = np.random.default_rng(0)
    x = pd.DataFrame({"x0": random.normal(size=10_001)})
    y = np.where(x["x0"] > 0, "b", "a")
    first, second = (Boosting("classification", seed).fit(x, y).predict(x[:50]) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    y[0] = "c"
    assert Boosting("classification", seed).fit(x, y).predict(x[:5]).shape == (5, 3)
