"""`dendritree fit` and `dendritree predict` as a user meets them."""

import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from table_cases import houses

import dendritree
from dendritree.cli import main
from dendritree.sklearn.tables import load_table_model

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
    for said in ("Do dendrites help?", "dense MLP", "sparse neurons", "linear", "column 'owner'", "left out"):
        assert said in text
    page = (models / "price" / "report.html").read_text()
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    model = dendritree.load(models / "dear")
    assert isinstance(model.estimator, dendritree.sklearn.DendriticClassifier)
    assert model.target == "dear"


def test_export_says_that_a_model_of_a_table_takes_more_than_numbers(models, call):
    status, _, error = call("export", models / "dear")
    assert status == 2
    assert "an ONNX file takes numbers: give model.estimator" in error
    assert error.count("\n") == 1


def test_fit_says_what_it_found_and_the_same_seed_gives_the_same_model_and_touches_no_generator(models, tmp_path, call):
    torch.manual_seed(5)
    before = torch.get_rng_state().clone()
    status, out, error = call("fit", models / "price.csv", "--target", "price", "--out", tmp_path / "model", *QUICK)
    assert status == 0
    for said in ("Do dendrites help?", "trees", "dense MLP", "linear", "95 % interval", str(tmp_path / "model")):
        assert said in out
    assert "comparing: 8 models, " in error
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
        ("a,price\n", "has column names alone"),
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
    assert "--out must be a new folder, or --force be given" in error
    assert (models / "price" / "config.json").read_bytes() == kept
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    status, _, error = fit(tmp_path / "mine", "--force")
    assert status == 2
    assert "--force replaces model folders only" in error
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
