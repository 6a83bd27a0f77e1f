"""`dendritree predict`, `export` and `view` with the models of `dendritree fit`."""

import json
import shutil
import warnings

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from table_cases import houses

import dendritree
from dendritree_lab.cli import main
from dendritree_lab.report.layout import four_digits
from dendritree_lab.studies.table.table_model import UnknownCellsWarning

QUICK = ["--splits", "2", "--epochs", "1", "--budget", "0.3k"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a model of prices, one of classes, and their tables."""
    folder = tmp_path_factory.mktemp("models")
    for target, other, keep in (("price", "dear", "sparse"), ("dear", "price", "tree")):
        table = folder / f"{target}.csv"
        houses(60).drop(columns=other).to_csv(table, index=False)
        out = str(folder / target)
        assert main(["fit", str(table), "--target", target, "--out", out, *QUICK, "--keep", keep]) == 0
        assert dendritree.load(out).estimator.neurons == keep
    return folder


def test_export_of_a_table_with_categories_takes_encoded_rows(models, tmp_path, call):
    status, out, error = call("export", models / "dear", tmp_path / "model.onnx")
    assert (status, error) == (0, "")
    assert "inputs: rows as returned by `TableModel.encoded`: rooms, rooms is missing, town=" in out
    model, frame = dendritree.load(models / "dear"), houses(20, seed=4).drop(columns=["price", "dear"])
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["inputs"]) == model.encoding.features
    assert json.loads(metadata["outputs"]) == ["no", "yes"]
    (given,) = session.run(None, {"input": model.encoded(frame)})
    wanted = model.predict(frame)[["probability no", "probability yes"]]
    np.testing.assert_allclose(given, wanted, atol=2e-6)


def test_export_of_a_table_of_numbers_takes_its_rows_with_missing_cells(tmp_path, call):
    frame = houses(60)[["rooms", "price"]].assign(area=np.linspace(30, 90, 60) ** 1.1)
    frame.to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", tmp_path / "t.csv", "--target", "price", "--out", tmp_path / "model", *QUICK]
    assert call(*fit, "--keep", "dense")[0] == 0
    status, out, _ = call("export", tmp_path / "model")
    assert status == 0
    assert "inputs: the columns, with NaN for missing cells: rooms, area" in out
    rows = pd.DataFrame({"rooms": [3, np.nan, np.inf, 1e9], "area": [40, 50, np.nan, -1e9]})
    session = onnxruntime.InferenceSession(tmp_path / "model" / "model.onnx")
    (given,) = session.run(None, {"input": rows.to_numpy(dtype=np.float64)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownCellsWarning)  # of the infinite number
        wanted = dendritree.load(tmp_path / "model").predict(rows)["prediction"]
    np.testing.assert_allclose(given[:, 0], wanted, rtol=1e-5)


def test_predict_adds_predictions_to_a_file_or_prints_them(models, tmp_path, call):
    houses(20, seed=1).drop(columns=["price", "dear"]).to_csv(tmp_path / "new.csv", index=False)
    status, out, error = call("predict", models / "price", tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert (status, out, error) == (0, f"wrote {tmp_path / 'out.csv'}: 20 rows\n", "")
    result = pd.read_csv(tmp_path / "out.csv")
    assert (list(result.columns)[-1], len(result)) == ("prediction", 20)
    status, out, error = call("predict", models / "dear", tmp_path / "new.csv")
    printed = out.splitlines()
    assert printed[0].endswith("country,prediction,probability no,probability yes")
    cells = np.array([line.split(",")[-2:] for line in printed[1:]], dtype=float)
    np.testing.assert_allclose(cells.sum(1), 1.0, atol=2e-6)
    assert (status, error) == (0, "")


def test_predict_reads_parquet_says_what_it_has_not_seen_and_evaluates(models, tmp_path, call):
    frame = houses(20, seed=2).drop(columns="dear")
    frame.loc[:1, "town"] = "Utrecht"
    frame.to_parquet(tmp_path / "new.parquet")
    status, _, error = call("predict", models / "price", tmp_path / "new.parquet", "--out", tmp_path / "out.csv")
    assert status == 0
    unseen, evaluated = error.splitlines()
    assert "'town'" in unseen
    assert "'Utrecht'" in unseen
    result = pd.read_csv(tmp_path / "out.csv")
    assert all(value == float(f"{value:.6g}") for value in result["prediction"])
    rmse = np.sqrt(np.mean((result["prediction"] - result["price"]) ** 2))
    assert f"RMSE {four_digits(rmse)} on these 20 rows" in evaluated
    status, _, error = call("predict", models / "price", tmp_path / "new.parquet", "--strict")
    assert status == 2
    assert "'Utrecht'" in error


def test_predict_rejects_what_is_not_a_model_or_does_not_fit_it(models, tmp_path, call):
    table, frame = models / "price.csv", houses(10)
    frame.drop(columns=["town"]).to_csv(tmp_path / "less.csv", index=False)
    frame.assign(prediction=1).to_csv(tmp_path / "more.csv", index=False)
    shutil.copytree(models / "price", tmp_path / "model")
    (tmp_path / "model" / "config.json").write_text("{}")
    before = (models / "price" / "config.json").read_bytes()
    for arguments, word in (
        ((tmp_path / "nothing", table), "nothing"),
        ((tmp_path / "model", table), "config.json"),
        ((models / "price", tmp_path / "less.csv"), "'town'"),
        ((models / "price", tmp_path / "more.csv"), "'prediction'"),
        ((models / "price", table, "--out", table), "--out"),
        ((models / "price", table, "--out", models / "price" / "config.json"), "--out"),
    ):
        status, out, error = call("predict", *arguments)
        assert (status, out, error.count("\n")) == (2, "", 1)
        assert word in error
    assert (models / "price" / "config.json").read_bytes() == before


def test_predict_leaves_the_cells_as_they_are(models, tmp_path, call):
    rows = houses(20, seed=3).drop(columns=["price", "dear"]).assign(id=[f"{i:05}" for i in range(20)], note="NA")
    rows["half"] = ["1.50", "?", *[""] * 18]
    rows.to_csv(tmp_path / "new.csv", index=False)
    assert call("predict", models / "price", tmp_path / "new.csv", "--out", tmp_path / "out.csv")[0] == 0
    before = pd.read_csv(tmp_path / "new.csv", dtype=str, keep_default_na=False)
    after = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(after.drop(columns="prediction"), before)
    assert after["id"][7] == "00007"
