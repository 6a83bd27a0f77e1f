"""A small real comparison, from the command to its files."""

import contextlib
import csv
import io
import math

import pytest
import torch
from comparison_cases import CONFIG, made_up_run
from effort import thorough

from dendritree.errors import FormatError
from dendritree_lab.cli import main
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.fair import summarize, write_comparison

SMALL = ["--budgets", "1k", "2k", "--trials", "2", "--seeds", "2", "--steps", thorough("5", "20")]
TABLES = {"overview", "answers", "cells", "gains", "efficiency", "configurations", "coverage", "machine"}
FILES = {f"csv/{name}.csv" for name in {*TABLES, "chart-points"}}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a real run on digits, and what the command printed."""
    folder, out = tmp_path_factory.mktemp("comparison") / "run", io.StringIO()
    with contextlib.redirect_stdout(out), torch.random.fork_rng(devices=[]):
        assert main(["compare", "digits", "--run", str(folder), "--backend", "here", *SMALL]) == 0
    return folder, out.getvalue()


def table(folder, name):
    with (folder / "csv" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_files_are_there_and_nothing_else(run):
    files = set(contents(run[0]))
    expected = {"comparison.html", "comparison.md", "figures/sizes-digits.png", *FILES}
    assert {name for name in files if not name.startswith("trials.")} == expected


def test_tables_hold_what_the_store_holds(run):
    folder, _ = run
    with RunStore.open_for_reading(folder) as store:
        records = store.trials()
    assert len(records) == 7 * (2 + 2)
    rows = {(row["family"], row["budget"]): row for row in table(folder, "cells")}
    assert len(rows) == 7
    trees = [r for r in records if list(r.key.values())[:4] == ["test", "digits", 2000, "deep"]]
    row = rows["deep", "2000"]
    mean = sum(record.scores["test_acc"] for record in trees) / 2
    assert float(row["score"]) == pytest.approx(mean, abs=1e-15)
    assert float(row["score_sd"]) == pytest.approx(
        abs(trees[0].scores["test_acc"] - trees[1].scores["test_acc"]) / math.sqrt(2)
    )
    assert int(row["parameters"]) == trees[0].parameters <= 2000
    assert float(row["seconds"]) == pytest.approx(sum(record.seconds for record in trees) / 2)
    gains = {(row["kind"], row["budget"]): float(row["gain"]) for row in table(folder, "gains")}
    assert gains["deep-cnn", "2000"] == pytest.approx(100 * (mean - float(rows["CNN", "2000"]["score"])))
    (configuration,) = [r for r in table(folder, "configurations") if (r["family"], r["budget"]) == ("deep", "2000")]
    assert float(configuration["lr"]) == trees[0].config["lr"]
    assert {row["family"] for row in table(folder, "efficiency")} == {"deep", "CNN"}
    states = {row["task"]: (row["cells"], row["evaluated"], row["state"]) for row in table(folder, "coverage")}
    assert states == {"digits": ("7", "7", "complete")}
    assert {"started", "machine 1.torch", "config.steps"} <= {row["key"] for row in table(folder, "machine")}


def test_a_report_made_anew_is_the_same(run):
    folder, _ = run
    before = contents(folder)
    comparison, paths = write_comparison(folder)
    assert contents(folder) == before
    assert paths == [folder / "comparison.html", folder / "comparison.md", folder / "csv", folder / "figures"]
    with RunStore.open_for_reading(folder) as store:
        assert comparison == summarize(store.trials())


def test_another_kind_of_run_is_rejected_and_left_alone(tmp_path):
    RunStore.create_or_open(tmp_path, {"protocol": "paper"}).close()
    before = contents(tmp_path)
    with pytest.raises(FormatError, match="another run"):
        write_comparison(tmp_path)
    assert contents(tmp_path) == before


def test_a_stored_run_with_learning_curves_has_their_pictures(tmp_path):
    with RunStore.create_or_open(tmp_path, CONFIG) as store:
        store.add(made_up_run(("mnist:128", "mnist:1000"), seeds=2))
        write_comparison(tmp_path)  # while it is being written
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["examples-mnist-9000.png"]
