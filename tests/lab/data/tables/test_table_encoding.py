"""Columns as numbers, counted by hand; and back from JSON."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest
from table_cases import houses

from dendritree.errors import FormatError, OptionError
from dendritree_lab.data.tables import TableEncoding, decide_schema
from dendritree_lab.data.tables.encoding import MOST_CATEGORIES


def learned(values):
    """The encoding of a table with a column `c`, or why the column is left out."""
    both = TableEncoding.learn(pd.DataFrame({"c": values, "d": np.arange(len(values)) % 3 - 0.5}))
    return both if len(both.columns) == 2 else both.left_out[0][1]


def inputs():
    return houses().drop(columns=["price", "dear"])


def test_every_kind_of_column_is_known():
    encoding = TableEncoding.learn(inputs())
    kinds = {"rooms": "number", "town": "category", "built": "date", "garden": "category"}
    assert {each.name: each.kind for each in encoding.columns} == kinds
    assert [name for name, _ in encoding.left_out] == ["id", "owner", "country"]


def test_cells_become_the_numbers_one_expects():
    encoding = TableEncoding.learn(inputs())
    encoded = encoding.encode(inputs())
    table = dict(zip(encoding.features, encoded.x.T, strict=True))
    frame = inputs()
    assert encoded.unknown == {}
    median = np.median([rooms for rooms in frame["rooms"] if rooms == rooms])
    for row in range(len(frame)):
        missing = row == 3
        assert table["rooms"][row] == (median if missing else frame["rooms"][row])
        assert table["rooms is missing"][row] == missing
        assert table["town is missing"][row] == (row == 5)
        for town in ("Delft", "Gouda", "Leiden"):
            assert table[f"town={town}"][row] == (frame["town"][row] == town)
        assert table["garden=True"][row] == bool(frame["garden"][row])
        day = datetime.date.fromisoformat(frame["built"][row])
        assert table["built: day"][row] == (day - datetime.date(1970, 1, 1)).days
        assert (table["built: month"][row], table["built: weekday"][row]) == (day.month, day.weekday())


def test_unseen_cells_count_as_missing_and_are_counted():
    encoding = TableEncoding.learn(inputs())
    fresh = inputs().iloc[:4].assign(town=["Utrecht", "Utrecht", "Delft", "Assen"], rooms=["many", "2", "3", None])
    encoded = encoding.encode(fresh)
    assert encoded.unknown == {"town": {"Utrecht": 2, "Assen": 1}, "rooms": {"many": 1}}
    table = dict(zip(encoding.features, encoded.x.T, strict=True))
    assert table["town is missing"].tolist() == [1, 1, 0, 1]
    assert table["rooms is missing"].tolist() == [1, 0, 0, 1]
    assert [notice.split(":")[0] for notice in encoded.notices()] == ["column 'rooms'", "column 'town'"]


def test_columns_in_another_order_and_more_of_them_do_not_matter():
    encoding = TableEncoding.learn(inputs())
    shuffled = inputs()[sorted(inputs().columns)].assign(more=1)
    np.testing.assert_array_equal(encoding.encode(shuffled).x, encoding.encode(inputs()).x)
    with pytest.raises(OptionError, match="lacks 'rooms', 'town'"):
        encoding.encode(inputs().drop(columns=["rooms", "town"]))


def test_types_of_parquet_and_csv_give_the_same_numbers():
    frame = inputs()
    encoding = TableEncoding.learn(frame)
    typed = frame.assign(
        built=pd.to_datetime(frame["built"]),
        town=frame["town"].astype("category"),
        rooms=frame["rooms"].astype("Int64"),
        garden=frame["garden"].astype("boolean"),
    )
    np.testing.assert_array_equal(encoding.encode(typed).x, encoding.encode(frame).x)
    assert TableEncoding.learn(typed) == encoding


def test_rare_categories_share_an_input():
    texts = [f"t{place:02}" for place in range(MOST_CATEGORIES + 5)]
    encoding = learned(texts * 3 + texts[:MOST_CATEGORIES])
    column = encoding.columns[0]
    assert (len(column.categories), len(column.rare)) == (MOST_CATEGORIES, 5)
    encoded = encoding.encode(pd.DataFrame({"c": ["t00", "t34", "new"], "d": 0.0}))
    assert encoded.x.sum(1).tolist() == [1, 1, 0]
    assert encoded.x[1, -2] == 1
    assert encoded.unknown == {"c": {"new": 1}}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([None, None], "is empty"),
        ([1, 1, 1], "has only one value"),
        (list(range(5, 40)), "counts the rows"),
        ([np.inf, -np.inf, np.inf], "is empty"),
        ([f"{i / 4}" if i % 2 else f"item {i}" for i in range(100)], "identifiers"),
    ],
)
def test_columns_that_say_nothing_are_left_out(values, why):
    assert learned(values).endswith(why)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, 1], "number"),  # whether it is there says something
        (list(range(5, 20)), "number"),  # too short to be sure that it counts rows
        ([1.5, 2.5, np.inf], "number"),
        ([True, False], "category"),
        (["2020-01-02", "2021-02-03T10:00:00"], "date"),
        (["2020-01-02", "soon"], "category"),
        ([1, "a", 2.0], "category"),
        (pd.Categorical(["1", "2", "3"] * 10), "category"),
        ([True, False, None] * 10, "category"),
    ],
)
def test_the_kind_of_a_column(values, kind):
    assert learned(values).columns[0].kind == kind


@pytest.mark.parametrize("bad", [None, "unknown"])
@pytest.mark.parametrize("shown", ["{:.2f}", " {:,.2f} ", "{:g}"])
def test_numbers_as_texts_are_numbers_and_a_few_other_cells_are_missing(shown, bad):
    numbers = np.random.default_rng(0).normal(scale=5000, size=40)
    texts = [shown.format(number) for number in numbers]
    want = np.array([float(text.replace(",", "")) for text in texts])
    if bad:
        texts[7] = bad
    encoding = learned(texts)
    column = encoding.columns[0]
    assert (column.kind, column.missing) == ("number", bad is not None)
    encoded = encoding.encode(pd.DataFrame({"c": texts, "d": 0.0}))
    keep = np.arange(40) != 7
    np.testing.assert_array_equal(encoded.x[keep, 0], want[keep])
    assert encoded.unknown == {}
    assert len(encoding.schema.notices) == (bad is not None)
    if bad:
        assert encoded.x[7, :2].tolist() == [column.fill, 1.0]
        assert column.fill == np.median(want[keep])


def test_json_keeps_an_encoding():
    encoding = TableEncoding.learn(inputs())
    assert TableEncoding.from_dict(json.loads(json.dumps(encoding.as_dict()))) == encoding


NUMBER = {"name": "a", "kind": "number", "fill": 0.5, "categories": [], "rare": [], "missing": False}
SCHEMA = {"columns": {"a": {"type": "number"}}}


@pytest.mark.parametrize(
    ("columns", "schema"),
    [
        ([], SCHEMA),
        ([{"name": "a"}], SCHEMA),
        ([NUMBER, NUMBER], SCHEMA),
        ([NUMBER | {"fill": "1"}], SCHEMA),
        ([NUMBER], {"columns": {}}),
        ([NUMBER], {"columns": {"a": {"type": "category"}}}),
        ([NUMBER], {"columns": {"a": {"type": "number", "color": "red"}}}),
        ([NUMBER], SCHEMA | {"decimal": ";"}),
    ],
)
def test_json_that_is_not_an_encoding_is_rejected(columns, schema):
    assert TableEncoding.from_dict({"columns": [NUMBER], "left_out": [], "schema": SCHEMA}).features == ["a"]
    with pytest.raises(FormatError):
        TableEncoding.from_dict({"columns": columns, "left_out": [], "schema": schema})


def test_a_table_must_have_a_column_to_learn_from():
    with pytest.raises(OptionError, match="a column to learn from"):
        TableEncoding.learn(pd.DataFrame({"country": ["NL"] * 3}))


def test_a_column_that_counts_the_rows_is_left_out_of_any_part_of_the_table():
    frame = pd.DataFrame({"id": range(70_001, 70_061), "rooms": [1.0, 2.0, 4.0] * 20})
    encoding = TableEncoding.learn(frame.drop(index=[3, 4, 20]), decide_schema(frame))
    assert (encoding.features, encoding.left_out) == (["rooms"], (("id", "counts the rows"),))
    assert decide_schema(frame).notices == []  # said once, as a column left out
