"""The tables: sizes, halves, formulas, and the real files where they are within reach."""

import dataclasses

import numpy as np
import pytest

from dendritree.errors import FormatError
from dendritree_lab.data.catalog import FILE_SETS
from dendritree_lab.data.tables.keel import read_keel
from dendritree_lab.studies.tables import TABLES, half_of, made_up
from dendritree_lab.studies.tables.families import FAMILIES, make_model
from dendritree_lab.studies.tables.tables import KEEL

FILES = dict.fromkeys(KEEL, "keel") | {"adult": "adult", "california-housing": "california-housing"}
MADE_UP = ("additive", "products", "steps", "radial", "wide", "categories")


@pytest.mark.parametrize("name", TABLES)
def test_every_table_loads_with_its_rows_columns_and_classes(name, real_data):
    if name in FILES:
        real_data(FILES[name])
    frame, y = TABLES[name].load()  # raises for any other shape
    assert len(frame) == len(y)
    assert {str(kind) for kind in frame.dtypes} <= {"float64", "category"}
    if TABLES[name].classes:
        assert np.bincount(y).min() >= 5  # of each class one in every fold
    else:
        assert np.isfinite(y).all()
        assert y.std() > 0


def test_the_halves_alternate_by_rows_within_each_kind_of_task():
    assert len(TABLES) == 47
    for task in ("classification", "regression"):
        own = [table for table in TABLES.values() if table.task == task]
        assert own == sorted(own, key=lambda table: (table.rows, table.name))
        assert [half_of(table.name) for table in own] == [("choose", "held-out")[i % 2] for i in range(len(own))]
    assert [name for name in TABLES if not TABLES[name].classes and half_of(name) == "held-out"] == [
        *("additive", "friedman2", "products", "sparse-uncorrelated", "steps", "california-housing")
    ]


def test_every_table_of_keel_has_a_file_in_the_catalog():
    assert sorted(file.name for file in FILE_SETS["keel"].files) == sorted(f"{name}.dat" for name in KEEL)


def test_adult_keeps_its_categories_and_gaps(real_data):
    real_data("adult")
    frame, y = TABLES["adult"].load()
    assert y.sum() == 7841 + 3846  # over 50,000 dollars
    assert frame["workclass"].isna().sum() == 1836 + 963
    assert (frame.dtypes == "category").sum() == 8


def test_a_file_of_keel_is_read_with_spaces_gaps_and_categories():
    frame, classes = read_keel(b"1.5, red , .4, 7, van \n?, blue, -2, 8, bus\n3,<null>,0,9,van\n")
    assert list(frame.dtypes.astype(str)) == ["float64", "category", "float64", "float64"]
    assert frame["a1"].isna().tolist() == [False, True, False]
    assert frame["a2"].tolist()[:2] == ["red", "blue"]
    assert frame["a2"].isna().tolist() == [False, False, True]
    assert classes.tolist() == ["van", "bus", "van"]


def test_a_table_of_another_size_is_rejected():
    with pytest.raises(FormatError, match="iris must have 151 rows, 4 columns, 3 classes: got 150, 4, 3"):
        dataclasses.replace(TABLES["iris"], rows=151).load()


# ----------------------------------------------------------------------------------------------------------- formulas


@pytest.mark.parametrize("name", MADE_UP)
def test_a_made_up_table_depends_on_its_seed_alone(name):
    (first, y_1), (again, y_2), (_, other) = (getattr(made_up, name)(300, seed) for seed in (3, 3, 4))
    assert first.equals(again)
    assert np.array_equal(y_1, y_2)
    assert not np.array_equal(y_1, other)


def signal_of(name, x):
    c = {column: x[column].to_numpy() for column in x}
    match name:
        case "additive":
            return (
                3 * np.sin(np.pi * c["x1"])
                + 4 * c["x2"] ** 2
                + 2 * abs(c["x3"])
                + np.exp(2 * c["x4"]) / 2
                + 2 * c["x5"]
            )
        case "products":
            return c["x1"] * c["x2"] + c["x3"] * c["x4"] + c["x5"] * c["x6"]
        case "wide":
            return 2 * c["x1"] + 2 * np.sin(2 * c["x2"]) + c["x3"] * c["x4"] + 2 * abs(c["x5"])
        case "steps":
            return np.array([step(*row) for row in x.to_numpy()[:, :6]])


def step(a, b, c, d, e, f):
    first = (3 if b > 0.3 else -1) if a > 0.5 else (-3 if c > 0.6 else 1)
    return first + ((2 if e > 0.5 else -2) if d > 0.7 else 0) + (1 if f > 0.4 else 0)


@pytest.mark.parametrize("name", ["additive", "products", "wide", "steps"])
def test_a_formula_is_what_its_docstring_says_plus_noise_that_leaves_nine_tenths(name):
    x, y = getattr(made_up, name)(20_000, seed=1)
    signal = signal_of(name, x)
    noise = y - signal
    assert abs(np.corrcoef(noise, signal)[0, 1]) < 0.02
    assert noise.std() / signal.std() == pytest.approx(1 / 3, rel=0.03)
    assert 1 - noise.var() / y.var() == pytest.approx(0.9, abs=0.01)


def test_bumps_and_categories_can_be_found():
    """A fit of the right form explains nine tenths; of a wrong one, much less."""
    x, y = made_up.categories(20_000, seed=1)
    cells = x.groupby(["c1", "c2", "c3"], observed=True).ngroup().to_numpy()
    numbers = x[["x1", "x2", "x3", "x4"]].to_numpy()
    inputs = np.column_stack([np.ones(len(x)), numbers, numbers[:, 1] * numbers[:, 2]])
    found = np.zeros(len(y))
    for cell in range(4 * 6 * 3):
        own = cells == cell
        found[own] = inputs[own] @ np.linalg.lstsq(inputs[own], y[own], rcond=None)[0]
    assert 1 - (y - found).var() / y.var() == pytest.approx(0.9, abs=0.015)
    linear = inputs @ np.linalg.lstsq(inputs, y, rcond=None)[0]
    assert 1 - (y - linear).var() / y.var() < 0.5


def test_neural_families_see_standardized_numbers_a_sign_for_gaps_and_an_input_per_category():
    frame, y = made_up.categories(200)
    frame.loc[:9, "x1"] = np.nan
    frame.loc[:4, "c3"] = None
    frames = []
    for family in ("tree", "mlp"):
        columns = make_model(family, "regression", 0)[0].fit(frame, y)
        frames.append(columns.transform(frame))
    assert np.array_equal(*frames)
    inputs = frames[0]
    assert inputs.shape == (200, 4 + 1 + 4 + 6 + 4)  # numbers, the sign of a gap, categories, a missing one of c3
    assert inputs[:, :4].mean(0) == pytest.approx(np.zeros(4), abs=1e-9)
    assert inputs[:, :4].std(0) == pytest.approx(np.ones(4))
    assert len(np.unique(inputs[:, 4])) == 2
    assert (inputs[:, 5:].sum(1) == 3).all()
    assert make_model("boosting", "regression", 0)[0] == "passthrough"
    assert list(FAMILIES) == ["tree", "sparse", "dense", "linear", "mlp", "boosting"]
