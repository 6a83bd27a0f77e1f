"""`dendritree fit` and `dendritree predict` as a person meets them."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from table_cases import houses

import dendritree
from dendritree.cli import main
from dendritree.sklearn.tables import load_table_model

ROOT = Path(dendritree.__file__).parents[1]
QUICK = ["--splits", "2", "--epochs", "3", "--budget", "0.3k"]


def call(*arguments):
    """Exit status of `main`."""
    try:
        return main([str(each) for each in arguments])
    except SystemExit as end:  # argparse ends this way
        return end.code or 0


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "houses.csv"
    houses(60).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model of prices and one of classes."""
    folder = tmp_path_factory.mktemp("models")
    classes = folder / "houses.csv"
    houses(60).drop(columns="price").to_csv(classes, index=False)
    prices = folder / "prices.csv"
    houses(60).drop(columns="dear").to_csv(prices, index=False)
    assert call("fit", prices, "--target", "price", "--out", folder / "price", *QUICK) == 0
    assert call("fit", classes, "--target", "dear", "--out", folder / "dear", *QUICK) == 0
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


def test_export_says_that_a_model_of_a_table_is_another_format(models, capsys):
    assert call("export", models / "dear") == 2
    error = capsys.readouterr().err
    assert error.endswith("config.json must have format 'dendritree-model': got 'dendritree-estimator'\n")


def test_fit_says_what_it_found(table, tmp_path, capsys):
    assert call("fit", table, "--target", "price", "--out", tmp_path / "model", *QUICK) == 0
    out, error = capsys.readouterr()
    for said in ("Do dendrites help?", "trees", "dense MLP", "linear", "95 % interval", str(tmp_path / "model")):
        assert said in out
    assert "comparing: 8 models, " in error


def test_the_same_seed_gives_the_same_model_and_touches_no_generator(table, tmp_path):
    torch.manual_seed(5)
    before = torch.get_rng_state().clone()
    for name in ("a", "b"):
        assert call("fit", table, "--target", "price", "--out", tmp_path / name, "--seed", "4", *QUICK) == 0
    weights = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("a", "b")]
    assert weights[0] == weights[1]
    assert torch.equal(before, torch.get_rng_state())


def test_predict_adds_predictions(models, tmp_path, capsys):
    houses(20, seed=1).drop(columns=["price", "dear"]).to_csv(tmp_path / "new.csv", index=False)
    assert call("predict", models / "price", tmp_path / "new.csv", "--out", tmp_path / "out.csv") == 0
    result = pd.read_csv(tmp_path / "out.csv")
    assert list(result.columns)[-1] == "prediction"
    assert len(result) == 20
    assert call("predict", models / "dear", tmp_path / "new.csv") == 0
    out, error = capsys.readouterr()
    printed = out.partition("rows\n")[2].splitlines()
    assert printed[0].endswith("country,prediction,probability no,probability yes")
    cells = np.array([line.split(",")[-2:] for line in printed[1:]], dtype=float)
    np.testing.assert_allclose(cells.sum(1), 1.0, atol=2e-6)
    assert error == ""


def test_predict_reads_parquet_says_what_it_has_not_seen_and_judges(models, tmp_path, capsys):
    frame = houses(20, seed=2).drop(columns="dear")
    frame.loc[:1, "town"] = "Utrecht"
    frame.to_parquet(tmp_path / "new.parquet")
    assert call("predict", models / "price", tmp_path / "new.parquet", "--out", tmp_path / "out.csv") == 0
    _, error = capsys.readouterr()
    lines = error.splitlines()
    assert lines[0] == (
        "dendritree: column 'town': 2 rows hold what the model has not seen, taken as missing ('Utrecht')"
    )
    result = pd.read_csv(tmp_path / "out.csv")
    rmse = np.sqrt(np.mean((result["prediction"] - result["price"]) ** 2))
    assert lines[1] == f"dendritree: RMSE {rmse:.4g} on 20 rows with 'price'"
    assert call("predict", models / "price", tmp_path / "new.parquet", "--strict") == 2
    assert "with --strict every cell must be known" in capsys.readouterr().err


def test_a_loaded_model_predicts_in_python(models):
    model = load_table_model(models / "dear")
    predicted, notices = model.predict(houses(8, seed=3).drop(columns="dear"))
    assert set(predicted["prediction"]) <= {"yes", "no"}
    assert notices == []
    assert model.judge(predicted) is None


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["nothing.csv", "--target", "price"], "a table must be a file that is there: found no nothing.csv"),
        (["TABLE", "--target", "pric"], "found no 'pric'; did you mean 'price'?"),
        (["TABLE", "--target", "country"], "the target must have different values: 'country' is 'NL' in every row"),
        (["TABLE", "--target", "town", "--task", "regression"], "must be numbers: 'town' holds 'Leiden'"),
        (["TABLE", "--target", "owner"], "at least two classes must have 5 rows or more"),
        (["TABLE", "--target", "price", "--budget", "5"], "budget must be at least"),
        (["TABLE", "--target", "price", "--budget", "big"], "budget must be a whole number of parameters"),
        (["TABLE", "--target", "price", "--task", "rank"], "task must be one of"),
        (["TABLE", "--target", "price", "--neurons", "dense"], "neurons must be one of 'tree', 'sparse': got 'dense'"),
        (["TABLE", "--target", "price", "--splits", "1"], "splits must be an integer of at least 2: got 1"),
        (["TABLE", "--target", "price", "--epochs", "few"], "--epochs must be a whole number or auto: got 'few'"),
        (["TABLE", "--target", "price", "--seed", "-1"], "seed must be an integer of at least 0: got -1"),
        (["TABLE"], "--target"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(arguments, match, table, tmp_path, capsys):
    given = [str(table) if each == "TABLE" else each for each in arguments]
    assert call("fit", *given, "--out", tmp_path / "model") == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert match in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "is empty"),
        ("a,price\n", "has column names alone"),
        ("a,price\n1,2\n2,3\n", "a table must have at least 20 rows with a target: got 2"),
        ("price\n" + "\n".join(map(str, np.arange(30) / 4)), "a column to learn from besides its target"),
    ],
)
def test_a_table_with_nothing_to_learn_is_refused(content, match, tmp_path, capsys):
    (tmp_path / "t.csv").write_text(content)
    assert call("fit", tmp_path / "t.csv", "--target", "price", "--out", tmp_path / "model") == 2
    error = capsys.readouterr().err
    assert match in error
    assert error.count("\n") == 1
    assert not (tmp_path / "model").exists()


def test_a_folder_that_is_there_is_kept_unless_forced(models, table, tmp_path, capsys):
    kept = (models / "price" / "config.json").read_bytes()
    assert call("fit", table, "--target", "price", "--out", models / "price", *QUICK) == 2
    assert "--out must be a new folder, or --force be given" in capsys.readouterr().err
    assert (models / "price" / "config.json").read_bytes() == kept
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    assert call("fit", table, "--target", "price", "--out", tmp_path / "mine", "--force", *QUICK) == 2
    assert "--force replaces model folders only" in capsys.readouterr().err
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"
    target = tmp_path / "again"
    for options in ([], ["--force"]):
        assert call("fit", table, "--target", "price", "--out", target, *QUICK, *options) == 0
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
def test_predict_refuses_what_is_no_model(spoil, match, models, table, tmp_path, capsys):
    folder = tmp_path / "model"
    shutil.copytree(models / "price", folder)
    spoil(folder)
    assert call("predict", folder, table) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert match in error


def test_predict_refuses_tables_that_do_not_fit(models, table, tmp_path, capsys):
    frame = houses(10)
    frame.drop(columns=["town"]).to_csv(tmp_path / "less.csv", index=False)
    frame.assign(prediction=1).to_csv(tmp_path / "more.csv", index=False)
    for arguments, match in (
        ((models / "price", tmp_path / "less.csv"), "it lacks 'town'"),
        ((models / "price", tmp_path / "more.csv"), "must not have a column 'prediction'"),
        ((tmp_path / "nothing", table), "a model must be a folder that `dendritree fit` wrote"),
        ((models / "price", table, "--out", table), "--out must be a file other than the table"),
        ((models / "price", table, "--out", tmp_path / "no" / "out.csv"), "--out must be writable"),
    ):
        assert call("predict", *arguments) == 2
        assert match in capsys.readouterr().err


def test_ctrl_c_leaves_nothing(table, tmp_path):
    command = [sys.executable, "-m", "dendritree", "fit", str(table), "--target", "price"]
    command += ["--out", str(tmp_path / "model"), "--epochs", "100000"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    said = process.stderr.readline()
    assert said == "houses.csv: 60 rows, 9 columns\n"
    time.sleep(1.0)  # into the training, or the imports before it: wherever it is, the answer is the same
    os.killpg(process.pid, signal.SIGINT)
    out, error = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert error == "dendritree: interrupted\n"
    assert list(tmp_path.iterdir()) == []
