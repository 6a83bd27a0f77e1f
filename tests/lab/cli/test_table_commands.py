"""`dendritree fit` and `dendritree predict` as a user runs them."""

import json
import shutil
import warnings

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from table_cases import houses

import dendritree
from dendritree_lab.cli import main
from dendritree_lab.studies.table import UnknownCellsWarning, load_table_model
from dendritree_lab.studies.table.controls import LABELS
from dendritree_lab.view.opened_models import open_gallery

QUICK = ["--splits", "2", "--epochs", "1", "--budget", "0.3k"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "houses.csv"
    houses(60).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a model of prices, one of classes, and their tables."""
    folder = tmp_path_factory.mktemp("models")
    for target, other in (("price", "dear"), ("dear", "price")):
        table = folder / f"{target}.csv"
        houses(60).drop(columns=other).to_csv(table, index=False)
        assert main(["fit", str(table), "--target", target, "--out", str(folder / target), *QUICK]) == 0
    return folder


def test_fit_writes_a_model_and_a_report(models):
    names = {path.name for path in (models / "price").iterdir()}
    assert names == {
        "config.json", "weights.safetensors", "report.html", "report.md", "csv", "figures",
    }  # fmt: skip
    text = (models / "price" / "report.md").read_text()
    for said in (
        "Do dendrites help?", "Kept: ", "dense MLP", "sparse neurons", "linear", "gradient boosting", "column 'owner'",
        "left out", "Which columns matter", "fit time",
    ):  # fmt: skip
        assert said in text
    page = (models / "price" / "report.html").read_text()
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    model = dendritree.load(models / "dear")
    assert isinstance(model.estimator, dendritree.sklearn.DendriticClassifier)
    assert model.target == "dear"


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
    assert "inputs: the columns, with NaN for missing cells: rooms, area (names are in" in out
    rows = pd.DataFrame({"rooms": [3, np.nan, np.inf, 1e9], "area": [40, 50, np.nan, -1e9]})
    session = onnxruntime.InferenceSession(tmp_path / "model" / "model.onnx")
    (given,) = session.run(None, {"input": rows.to_numpy(dtype=np.float64)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownCellsWarning)  # of the infinite number
        wanted = dendritree.load(tmp_path / "model").predict(rows)["prediction"]
    np.testing.assert_allclose(given[:, 0], wanted, rtol=1e-5)


@pytest.mark.parametrize("target", ["price", "dear"])
def test_view_opens_the_folder_of_fit_and_answers_for_the_typical_row(models, target):
    gallery = open_gallery(models / target)
    exhibit = gallery[0]
    typical = exhibit.samples[0]
    assert (gallery.names, typical.label) == ([target], "the typical row")
    model, frame = dendritree.load(models / target), houses(60)
    days = pd.to_datetime(frame["built"]).median()
    row = pd.DataFrame({"rooms": [frame["rooms"].median()], "built": [days]})
    row = row.assign(**{name: [frame[name].value_counts().sort_index().idxmax()] for name in ("town", "garden")})
    encoded = dict(zip(model.encoding.features, typical.x[0].tolist(), strict=True))
    wanted = dict(zip(model.encoding.features, model.encoded(row)[0].tolist(), strict=True))
    assert encoded == pytest.approx(wanted)
    seen = exhibit.activity(typical.x, 0, 0)
    predicted = model.predict(row).iloc[0]
    if target == "price":
        assert seen["output"][0] == pytest.approx(predicted["prediction"], rel=1e-4)
    else:
        np.testing.assert_allclose(seen["classes"], predicted[-2:].astype(float), atol=1e-3)


@pytest.mark.parametrize("keep", ["sparse", "dense", "linear"])
def test_the_family_that_is_asked_for_is_kept_predicts_and_opens(keep, models, tmp_path, call):
    out = tmp_path / "model"
    status, said, error = call("fit", models / "dear.csv", "--target", "dear", "--out", out, "--keep", keep, *QUICK)
    assert status == 0
    assert dendritree.load(out).estimator.neurons == keep
    assert "as requested" in said or f"{LABELS[keep]} (kept)" in said
    assert "--neurons" not in error
    assert call("predict", out, models / "price.csv", "--out", tmp_path / "p.csv")[0] == 0
    assert open_gallery(out)[0].samples[0].label == "the typical row"


def test_the_old_name_of_keep_works_and_says_so(models, tmp_path, call):
    fit = ("fit", models / "dear.csv", "--target", "dear", "--out", tmp_path / "model", *QUICK, "--neurons", "sparse")
    status, _, error = call(*fit)
    assert status == 0
    assert error.startswith(
        "dendritree: --neurons is deprecated, use --keep, its only name from the next version on: --keep s"
    )
    assert dendritree.load(tmp_path / "model").estimator.neurons == "sparse"
    status, _, error = call(*fit, "--force", "--keep", "tree")
    assert (status, error.count("\n")) == (2, 1)
    assert "--neurons is the old name of --keep, so give one of them" in error


def test_fit_says_what_it_found_and_the_same_seed_gives_the_same_model_and_touches_no_generator(models, tmp_path, call):
    torch.manual_seed(5)
    before = torch.get_rng_state().clone()
    status, out, error = call("fit", models / "price.csv", "--target", "price", "--out", tmp_path / "model", *QUICK)
    assert status == 0
    for said in ("Do dendrites help?", "trees", "dense MLP", "linear", "95% interval", str(tmp_path / "model")):
        assert said in out
    assert "comparing: 10 models, " in error
    weights = [(folder / "weights.safetensors").read_bytes() for folder in (tmp_path / "model", models / "price")]
    assert weights[0] == weights[1]
    assert torch.equal(before, torch.get_rng_state())


def test_predict_adds_predictions(models, tmp_path, call):
    houses(20, seed=1).drop(columns=["price", "dear"]).to_csv(tmp_path / "new.csv", index=False)
    status, out, error = call("predict", models / "price", tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert (status, out, error) == (0, f"wrote {tmp_path / 'out.csv'}: 20 rows\n", "")
    result = pd.read_csv(tmp_path / "out.csv")
    assert list(result.columns)[-1] == "prediction"
    assert len(result) == 20
    status, out, error = call("predict", models / "dear", tmp_path / "new.csv")
    printed = out.splitlines()
    assert printed[0].endswith("country,prediction,probability no,probability yes")
    cells = np.array([line.split(",")[-2:] for line in printed[1:]], dtype=float)
    np.testing.assert_allclose(cells.sum(1), 1.0, atol=2e-6)
    assert (status, error) == (0, "")


def test_predict_reads_parquet_says_what_it_has_not_seen_and_judges(models, tmp_path, call):
    frame = houses(20, seed=2).drop(columns="dear")
    frame.loc[:1, "town"] = "Utrecht"
    frame.to_parquet(tmp_path / "new.parquet")
    status, _, error = call("predict", models / "price", tmp_path / "new.parquet", "--out", tmp_path / "out.csv")
    assert status == 0
    lines = error.splitlines()
    assert lines[0] == (
        "dendritree: column 'town': 2 rows hold what the model has not seen, taken as missing ('Utrecht')"
    )
    result = pd.read_csv(tmp_path / "out.csv")
    rmse = np.sqrt(np.mean((result["prediction"] - result["price"]) ** 2))
    assert lines[1] == f"dendritree: RMSE {rmse:.4g} on 20 rows with 'price'"
    status, _, error = call("predict", models / "price", tmp_path / "new.parquet", "--strict")
    assert status == 2
    rule = "dendritree: strict predictions need every cell to be known to the model:"
    assert error == lines[0].replace("dendritree:", rule) + "\n"


def test_a_loaded_model_predicts_in_python(models):
    model = load_table_model(models / "dear")
    predicted = model.predict(houses(8, seed=3).drop(columns="dear"))
    assert set(predicted["prediction"]) <= {"yes", "no"}
    assert model.evaluate(predicted) is None


# ----------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "is empty"),
        ("a,price\n", "has only column names"),
        ("a,price\n1,2\n2,3\n", "a table must have at least 20 rows with a target: got 2"),
        ("price\n" + "\n".join(map(str, np.arange(30) / 4)), "a column to learn from besides its target"),
    ],
)
def test_a_table_with_nothing_to_learn_is_rejected(content, match, tmp_path, call):
    (tmp_path / "t.csv").write_text(content)
    status, _, error = call("fit", tmp_path / "t.csv", "--target", "price", "--out", tmp_path / "model")
    assert status == 2
    assert match in error
    assert error.count("\n") == 1
    assert not (tmp_path / "model").exists()


def test_a_folder_that_is_there_is_kept_unless_forced(models, table, tmp_path, call):
    def fit(folder, *options):
        return call("fit", table, "--target", "price", "--out", folder, *QUICK, *options)

    kept = (models / "price" / "config.json").read_bytes()
    status, _, error = fit(models / "price")
    assert status == 2
    assert "--out must be a new or empty folder unless --force is given" in error
    assert (models / "price" / "config.json").read_bytes() == kept
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    status, _, error = fit(tmp_path / "mine", "--force")
    assert status == 2
    assert "--force only replaces model folders" in error
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"
    shutil.copytree(models / "dear", tmp_path / "again")
    assert fit(tmp_path / "again", "--force")[0] == 0
    assert dendritree.load(tmp_path / "again").target == "price"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "mine"]


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda folder: (folder / "config.json").unlink(), "must hold config.json"),
        (lambda folder: (folder / "config.json").write_text("{}"), "must have format 'dendritree-table'"),
        (lambda folder: (folder / "weights.safetensors").write_bytes(b""), "does not hold the weights"),
        (lambda folder: (folder / "config.json").write_text("[]"), "must have format"),
    ],
)
def test_predict_rejects_anything_that_is_not_a_model(spoil, match, models, table, tmp_path, call):
    folder = tmp_path / "model"
    shutil.copytree(models / "price", folder)
    spoil(folder)
    status, out, error = call("predict", folder, table)
    assert (status, out, error.count("\n")) == (2, "", 1)
    assert match in error


def test_predict_rejects_tables_that_do_not_fit(models, table, tmp_path, call):
    frame = houses(10)
    frame.drop(columns=["town"]).to_csv(tmp_path / "less.csv", index=False)
    frame.assign(prediction=1).to_csv(tmp_path / "more.csv", index=False)
    for arguments, match in (
        ((models / "price", tmp_path / "less.csv"), "it lacks 'town'"),
        ((models / "price", tmp_path / "more.csv"), "must not have a column 'prediction'"),
        ((tmp_path / "nothing", table), "a model must be a folder that `dendritree fit` wrote"),
        ((models / "price", table, "--out", table), "--out must be a file other than the table"),
        ((models / "price", table, "--out", table / "out.csv"), "--out must be writable"),
    ):
        status, _, error = call("predict", *arguments)
        assert status == 2
        assert match in error


def test_predictions_never_overwrite_the_model(models, call):
    folder = models / "price"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    status, _, error = call("predict", folder, models / "price.csv", "--out", folder / "config.json")
    assert status == 2
    assert "--out must be outside the folder of the model" in error
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("separator", [",", ";"])
def test_predict_leaves_the_cells_as_they_are(separator, models, tmp_path, call):
    rows = houses(20, seed=3).drop(columns=["price", "dear"]).assign(id=[f"{i:05}" for i in range(20)], note="NA")
    rows["half"] = ["1,50" if separator == ";" else "1.50", "?", *[""] * 18]
    rows.to_csv(tmp_path / "new.csv", index=False, sep=separator)
    assert call("predict", models / "price", tmp_path / "new.csv", "--out", tmp_path / "out.csv")[0] == 0
    before = pd.read_csv(tmp_path / "new.csv", sep=separator, dtype=str, keep_default_na=False)
    after = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(after.drop(columns="prediction"), before)
    assert after["id"][7] == "00007"
