"""What is to be predicted, inferred from a column."""

import numpy as np
import pandas as pd
import pytest

from dendritree.errors import OptionError
from dendritree_lab.data.tables.target import read_target


def frame(values):
    return pd.DataFrame({"y": values})


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b"] * 15, "classification"),
        ([True, False] * 15, "classification"),
        ([0, 1, 2] * 10, "classification"),
        ([0.0, 1.0] * 15, "classification"),
        ([0.5, 1.0] * 15, "regression"),
        (list(range(30)), "regression"),
        (pd.Categorical(["a", "b"] * 15), "classification"),
    ],
)
def test_the_task_is_told_from_the_values(values, task):
    assert read_target(frame(values), "y").task == task


def test_what_is_told_is_overruled_by_what_is_said():
    target = read_target(frame([0, 1, 2] * 10), "y", "regression")
    assert target.y.dtype == np.float64


@pytest.mark.parametrize(
    ("values", "task", "label"),
    [
        ([3, 11] * 15, "auto", 11),
        ([2**62, 2**62 + 1] * 15, "auto", 2**62 + 1),
        ([0.0, 1.0, None] * 15, "auto", 1),  # a missing cell makes floats of whole numbers
        (pd.array([0, 1, None] * 15, dtype="Int64"), "auto", 1),
        (pd.Categorical([0, 1] * 15), "auto", 1),
        ([False, True] * 15, "auto", True),
        ([False, True, None] * 15, "auto", True),
        (["no", "yes"] * 15, "auto", "yes"),
        (["0", "1"] * 15, "auto", "1"),
        ([0, "one"] * 15, "auto", "one"),
        ([0.5, 1.0] * 15, "classification", "1"),
    ],
)
def test_classes_keep_their_type(values, task, label):
    last = np.unique(read_target(frame(values), "y", task).y)[-1].item()
    assert (last, type(last)) == (label, type(label))


def test_rows_that_cannot_teach_are_left_out_and_counted():
    target = read_target(frame(["a", "b", None] * 20 + ["c", "d", "d"]), "y", per_class=3)
    assert len(target.y) == len(target.rows) == 40
    assert set(target.y) == {"a", "b"}
    assert target.notices == (
        "20 rows left out: they have no 'y'",
        "3 rows left out: they have a class with fewer than 3 rows ('c', 'd')",
    )


@pytest.mark.parametrize(
    ("values", "task", "match"),
    [
        (["a"] * 30, "auto", "'y' is 'a' in every row"),
        ([4] * 30, "regression", "'y' is 4 in every row"),
        ([None] * 30, "auto", "'y' is empty"),
        (["1", "x"] * 15, "regression", "must be numbers: 'y' holds 'x'"),
        ([1.5, 2.5] * 5, "auto", "at least 20 rows with a target: got 10"),
        ([f"name {i}" for i in range(50)], "auto", "'y' has 50 different values"),
        ([f"class {i}" for i in range(101)] * 5, "auto", "at most 100 classes: 'y' has 101"),
        ([1, 2] * 15, "ranking", "'ranking'"),
    ],
)
def test_a_target_that_cannot_be_learned_is_rejected(values, task, match):
    with pytest.raises(OptionError, match=match):
        read_target(frame(values), "y", task)


def test_numbers_with_commas_between_thousands_are_numbers():
    target = read_target(frame([f"{1000 * (i + 1):,}" for i in range(30)]), "y")
    assert target.task == "regression"
    assert target.y.tolist() == [1000.0 * (i + 1) for i in range(30)]


def test_a_few_cells_that_are_no_numbers_are_left_out_with_a_notice():
    target = read_target(frame([*(f"{i}.5" for i in range(40)), "unknown"]), "y")
    assert target.task == "regression"
    assert target.rows.tolist() == list(range(40))
    assert target.notices == ("1 row left out: it has a target that is not a number ('unknown')",)
    labels = read_target(frame([*"0123" * 10, "x"] + ["x"] * 4), "y", per_class=2)
    assert labels.task == "classification"
    assert "x" in labels.y
