"""A model of a table in Python: what goes in, what comes out, and the folder that keeps it."""

import numpy as np
import pandas as pd
import pytest

from dendritree.tabular import fit_table, load_table_model

QUICK = {"budget": 200, "splits": 2, "epochs": 40}


def frame(labels, rows=40):
    """Two classes that `x` tells apart."""
    x = np.random.default_rng(0).normal(size=rows)
    return pd.DataFrame({"x": x, "more": x[::-1], "y": [labels[int(each > 0)] for each in x]})


@pytest.mark.parametrize("labels", [(0, 1), (False, True), ("no", "yes")])
def test_predictions_have_the_type_of_the_target_in_memory_and_from_a_folder(labels, tmp_path):
    table = frame(labels)
    model = fit_table(table, "y", **QUICK).model
    model.write(tmp_path)
    for each in (model, load_table_model(tmp_path)):
        predicted, _ = each.predict(table.drop(columns="y"))
        assert predicted["prediction"].dtype == table["y"].dtype
        assert (predicted["prediction"] == table["y"]).mean() > 0.8
        assert list(predicted.columns)[-2:] == [f"probability {label}" for label in labels]
        right = each.judge(predicted.assign(y=table["y"]))
        assert right == f"accuracy {(predicted['prediction'] == table['y']).mean():.4f} on 40 rows with 'y'"


def test_a_folder_of_text_classes_is_judged_by_numbers_too(tmp_path):
    """As folders were written before classes kept their type."""
    table = frame((0, 1))
    fit_table(table.assign(y=table["y"].astype(str)), "y", **QUICK).model.write(tmp_path)
    predicted, _ = load_table_model(tmp_path).predict(table)
    assert set(predicted["prediction"]) == {"0", "1"}
    right = (predicted["prediction"].astype(int) == table["y"]).mean()
    assert load_table_model(tmp_path).judge(predicted) == f"accuracy {right:.4f} on 40 rows with 'y'"
