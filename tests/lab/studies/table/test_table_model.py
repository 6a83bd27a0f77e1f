"""A table model in Python: what goes in, what comes out, and the folder that stores it."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest

from dendritree import load, save
from dendritree.errors import FormatError, OptionError
from dendritree_lab.data.tables.encoding import TableEncoding
from dendritree_lab.studies.table.table_fit import fit_table
from dendritree_lab.studies.table.table_model import UnknownCellsWarning, load_table_model

LEARNS = {"budget": 200, "splits": 2, "epochs": 40}
QUICK = LEARNS | {"epochs": 2}


def frame(labels, rows=40):
    """Two classes that `x` tells apart."""
    x = np.random.default_rng(0).normal(size=rows)
    return pd.DataFrame({"x": x, "more": x[::-1], "y": [labels[int(each > 0)] for each in x]})


@functools.lru_cache(typed=True)  # 0 is not False here
def fitted(no=0, yes=1):
    """A model of `frame((no, yes))` that has learned it."""
    return fit_table(frame((no, yes)), "y", **LEARNS).model


@pytest.mark.parametrize("labels", [(0, 1), (False, True), ("no", "yes")], ids=str)
def test_predictions_have_the_type_of_the_target_in_memory_and_from_a_folder(labels, tmp_path):
    table, model = frame(labels), fitted(*labels)
    save(model, tmp_path / "model")
    for each in (model, load_table_model(tmp_path / "model")):
        predicted = each.predict(table.drop(columns="y"))
        assert predicted["prediction"].dtype == table["y"].dtype
        assert (predicted["prediction"] == table["y"]).mean() > 0.8
        assert list(predicted.columns)[-2:] == [f"probability {label}" for label in labels]
        right = each.evaluate(predicted.assign(y=table["y"]))
        score = f"accuracy {(predicted['prediction'] == table['y']).mean():.4f}"
        assert right.startswith(f"{score} on these 40 rows, which have 'y'; too good if")


def test_names_that_are_not_texts_are_read_as_texts():
    table = frame((0, 1))
    numbered = table.set_axis([0, 1, 2], axis=1)
    model = fit_table(numbered, 2, **LEARNS).model
    predicted = model.predict(numbered)
    assert list(predicted.columns)[:4] == [0, 1, 2, "prediction"]
    assert predicted["prediction"].tolist() == fitted().predict(table)["prediction"].tolist()
    assert model.evaluate(predicted).startswith("accuracy ")
    assert TableEncoding.learn(numbered[[0, 1]]).features == ["0", "1"]


@pytest.mark.parametrize(
    ("table", "target", "match"),
    [
        (np.zeros((30, 2)), "y", "data frame"),
        (frame((0, 1)).set_axis(["x", "x ", "y"], axis=1), "y", "'x' occurs twice"),
        (frame((0, 1)), 7, "'7'"),
        (frame((0, 1)).assign(more=[[1, 2]] * 40), "y", "numbers, strings or dates"),
    ],
)
def test_anything_that_is_not_a_table_is_rejected(table, target, match):
    with pytest.raises(OptionError, match=match):
        fit_table(table, target, **QUICK)


def test_cells_that_the_model_has_not_seen_are_a_warning_per_column_or_with_strict_an_error():
    rows = pd.DataFrame({"x": [[1, 2], 3], "more": ["much", "more"]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        predicted = fitted().predict(rows)
    assert len(predicted) == 2
    assert [each.category for each in caught] == [UnknownCellsWarning] * 2
    assert all(f"'{name}'" in str(each.message) for name, each in zip(("x", "more"), caught, strict=True))
    assert all(each.filename == __file__ for each in caught)
    with pytest.raises(OptionError, match="'x'"):
        fitted().predict(rows, strict=True)


def test_save_and_load_keep_a_model_of_a_table(tmp_path):
    table, model = frame((0, 1)), fitted()
    place = tmp_path / "new" / "model"
    for _ in range(2):  # a model folder is replaced
        save(model, place)
        pd.testing.assert_frame_equal(load(place).predict(table), model.predict(table))
    assert sorted(path.suffix for path in place.iterdir()) == [".json", ".safetensors"]
    save(model.estimator, place)
    assert type(load(place)) is type(model.estimator)
    with pytest.raises(FormatError, match="dendritree-estimator"):
        load_table_model(place)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    with pytest.raises(FormatError, match="save only replaces model folders"):
        save(model, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_no_rows_give_a_table_with_the_columns_of_others(task):
    table = frame((0, 1)).assign(day="2026-11-16", town="Delft")
    table.loc[:9, ["day", "town"]] = "2026-11-20", "Gouda"
    model = fit_table(table, "y", task=task, **QUICK).model
    empty, full = model.predict(table.iloc[:0]), model.predict(table)
    assert len(empty) == 0
    assert empty.dtypes.tolist() == full.dtypes.tolist()
    assert list(empty.columns) == list(full.columns)
    assert model.evaluate(empty) is None
