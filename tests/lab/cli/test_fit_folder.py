"""The folder of `dendritree fit`: checked first, resumed after a stop, used by one process, with files of others."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest
from command_runs import ROOT, command_line, count_trials, wait_until
from dendritree.folders import reserved
from full_disk import files_under
from stopping import press_ctrl_c, stopped
from table_cases import houses

import dendritree
from dendritree import folders
from dendritree.sklearn.estimator import DendriticEstimator
from dendritree_lab.cli import main
from dendritree_lab.cli.fit import UNFINISHED

QUICK = ("--splits", "2", "--epochs", "1", "--budget", "0.3k", "--keep", "tree")
MODELS = 2 * 4 + 1  # networks; gradient boosting is not one
TIMED = ("scores.csv", "report.html", "report.md")
"""Files with the seconds of training; all others are the same to the last bit."""
FILES = ["config.json", "csv", "figures", "report.html", "report.md", "weights.safetensors"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "houses.csv"
    houses(60).to_csv(path, index=False)
    return path


@pytest.fixture
def fit(table, call):
    """A function that runs the command; more options come last."""
    return lambda out, *options: call("fit", table, "--target", "price", "--out", out, *QUICK, *options)


@pytest.fixture
def trained(monkeypatch):
    """The families of the models that have been trained, one after the other."""
    families, real = [], DendriticEstimator.fit

    def count(self, *args, **options):
        found = real(self, *args, **options)
        families.append(self.neurons)
        return found

    monkeypatch.setattr(DendriticEstimator, "fit", count)
    return families


@pytest.fixture(scope="module")
def quiet(table, tmp_path_factory):
    """The folder of an undisturbed fit."""
    out = tmp_path_factory.mktemp("quiet") / "model"
    assert main(["fit", str(table), "--target", "price", "--out", str(out), *QUICK]) == 0
    return out


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def assert_same_model(out, quiet):
    assert names(out) == FILES
    timeless = sorted(path.relative_to(quiet) for path in quiet.rglob("*") if path.is_file() and path.name not in TIMED)
    assert len(timeless) > 15
    for name in timeless:
        assert (out / name).read_bytes() == (quiet / name).read_bytes(), name


# ---------------------------------------------------------------------------------------------------------- resuming


def test_ctrl_c_before_a_model_is_trained_leaves_nothing(fit, tmp_path):
    with stopped(press_ctrl_c, after=0):
        status, out, error = fit(tmp_path / "a" / "model")
    assert (status, out) == (130, "")
    assert error.startswith("houses.csv: 60 rows, 9 columns\n")
    assert error.endswith("dendritree: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_after_ctrl_c_the_same_command_resumes_and_ends_as_if_nothing_had_been(fit, trained, quiet, tmp_path):
    out = tmp_path / "model"
    for after, kept in ((1, ["tree"]), (3, ["sparse", "dense", "linear", "tree"])):
        trained.clear()
        with stopped(press_ctrl_c, after=after):
            status, said, error = fit(out)
        assert (status, said) == (130, "")
        assert error.endswith(f"dendritree: stopped; {out} keeps the finished work, and the same command resumes it\n")
        assert (names(out), trained) == ([UNFINISHED], kept)
    trained.clear()
    status, _, error = fit(out)
    assert status == 0
    assert "comparing 6 of 10: trained before\n" in error
    assert trained == ["sparse", "dense", "linear", "tree"]
    assert_same_model(out, quiet)


def test_after_ctrl_c_in_the_last_training_only_that_is_repeated(fit, trained, quiet, tmp_path):
    with stopped(press_ctrl_c, after=6):
        assert fit(tmp_path / "model")[0] == 130
    trained.clear()
    assert fit(tmp_path / "model")[0] == 0
    assert trained == ["tree"]
    assert_same_model(tmp_path / "model", quiet)


def test_another_table_or_other_options_do_not_resume(fit, table, trained, tmp_path, call):
    out = tmp_path / "model"
    with stopped(press_ctrl_c, after=1):
        fit(out)
    before = files_under(out)
    houses(60).assign(rooms=3).to_csv(tmp_path / "houses.csv", index=False)
    trained.clear()
    for given, option, differs in (
        (tmp_path / "houses.csv", "--seed=0", "table: "),
        (table, "--seed=1", "seed: 0 -> 1"),
        (table, "--epochs=2", "epochs: 1 -> 2"),
        (table, "--splits=3", "splits: 2 -> 3"),
    ):
        status, _, error = call("fit", given, "--target", "price", "--out", out, *QUICK, option)
        rule = (
            f"dendritree: a run resumes with the settings it was started with: {out / UNFINISHED} differs in {differs}"
        )
        assert (status, error.count("\n")) == (2, 1)
        assert error.startswith(rule)
        assert error.endswith("; remove that folder to start over\n")
        assert files_under(out) == before
    assert trained == []
    assert fit(out, "--seed", "1", "--force")[0] == 0
    assert len(trained) == MODELS
    assert names(out) == FILES


def test_without_file_locks_nothing_is_kept_and_the_model_is_written(fit, quiet, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)  # and Windows's own module is not here either
    assert fit(tmp_path / "model")[0] == 0
    assert_same_model(tmp_path / "model", quiet)


@pytest.mark.slow
def test_killed_and_interrupted_processes_are_resumed(table, quiet, tmp_path):
    out = tmp_path / "model"
    command = command_line("fit", table, "--target", "price", "--out", out, *QUICK)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for end, status in ((signal.SIGKILL, -9), (signal.SIGINT, 130), (None, 0)):
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        if end is not None:
            assert process.stderr.readline() == "houses.csv: 60 rows, 9 columns\n"  # in main, and training
            assert wait_until(lambda: count_trials(out / UNFINISHED), 60)
            os.killpg(process.pid, end)
        _, error = process.communicate(timeout=120)
        assert process.returncode == status, error
        assert not error.startswith("Traceback")
    assert_same_model(out, quiet)


# ------------------------------------------------------------------------------------------------------ one at a time


def test_a_folder_that_another_process_writes_is_rejected_before_training(fit, trained, tmp_path):
    with reserved(tmp_path / "model") as place:
        status, _, error = fit(place)
    message = f"a folder takes one writer at a time: {place} is in use by process {os.getpid()}"
    assert (status, error, trained) == (2, f"dendritree: {message}\n", [])


def test_the_first_of_two_fits_to_one_folder_is_kept(fit, table, quiet, tmp_path):
    """The second one comes while the first one trains."""
    second = []

    def start_another():
        if not second:
            second.append(None)
            second[0] = main(["fit", str(table), "--target", "dear", "--out", str(tmp_path / "model"), *QUICK])

    with stopped(start_another, after=3):
        status, _, error = fit(tmp_path / "model")
    assert (status, second) == (0, [2])
    assert "dendritree: a folder takes one writer at a time: " in error
    assert_same_model(tmp_path / "model", quiet)


# ---------------------------------------------------------------------------------------------------- files of others


def test_files_of_others_stay_also_those_that_come_while_it_trains(fit, quiet, tmp_path):
    out = tmp_path / "model"
    with stopped(lambda: (out / "letter.txt").write_text("dear"), after=3):
        assert fit(out)[0] == 0
    (out / "csv" / "mine.csv").write_text("mine")
    (out / "link").symlink_to("letter.txt")
    assert fit(out, "--force", "--seed", "1")[0] == 0
    assert (out / "letter.txt").read_text() == (out / "link").read_text() == "dear"
    assert (out / "csv" / "mine.csv").read_text() == "mine"
    assert names(out) == sorted([*FILES, "letter.txt", "link"])
    assert (out / "weights.safetensors").read_bytes() != (quiet / "weights.safetensors").read_bytes()


def test_a_report_of_the_users_own_is_not_replaced(fit, quiet, trained, tmp_path):
    dendritree.save(dendritree.load(quiet), tmp_path / "model")
    (tmp_path / "model" / "report.md").write_text("mine")
    before = files_under(tmp_path)
    status, _, error = fit(tmp_path / "model", "--force")
    assert (status, trained) == (2, [])
    assert "existing files are never replaced: " in error
    assert files_under(tmp_path) == before


def test_an_empty_folder_and_a_link_are_taken_as_they_are(fit, quiet, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert fit(tmp_path / "link")[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert_same_model(tmp_path / "real", quiet)


# ------------------------------------------------------------------------------------------- places that do not take it


@pytest.mark.parametrize("place", ["file", "file/model"])
def test_a_place_that_cannot_be_written_is_found_before_training(place, fit, trained, tmp_path):
    (tmp_path / "file").write_text("mine")
    status, _, error = fit(tmp_path / place)
    assert (status, error.count("\n"), trained) == (2, 1, [])
    assert error.startswith("dendritree: --out must be ")
    assert files_under(tmp_path) == {"file": b"mine"}


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The folder of temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


def test_a_full_disk_at_the_end_loses_no_model_and_with_room_only_the_last_training_is_repeated(
    fit, trained, quiet, temporary, tmp_path, monkeypatch
):
    out, real = tmp_path / "model", folders._flush

    def full(path):
        if out in path.parents:
            raise OSError(28, "No space left on device")
        real(path)

    with monkeypatch.context() as patch:
        patch.setattr(folders, "_flush", full)
        status, _, error = fit(out)
    (kept,) = temporary.iterdir()
    last = error.splitlines()[-1]
    assert status == 2
    assert last == (
        f"dendritree: --out must be writable: {out} (No space left on device); the model and its report are in {kept}"
    )
    assert_same_model(kept, quiet)
    assert names(out) == [UNFINISHED]
    trained.clear()
    assert fit(out)[0] == 0
    assert trained == ["tree"]
    assert_same_model(out, quiet)


def test_a_folder_that_somebody_removes_while_it_trains_loses_no_model(fit, quiet, temporary, tmp_path):
    with stopped(lambda: shutil.rmtree(tmp_path / "model"), after=6):
        status, _, error = fit(tmp_path / "model")
    (kept,) = temporary.iterdir()
    assert status == 2
    assert error.endswith(f"the model and its report are in {kept}\n")
    assert_same_model(kept, quiet)


def test_where_no_place_takes_the_model_both_reasons_are_said(fit, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with stopped(lambda: shutil.rmtree(tmp_path / "model"), after=6):
        status, _, error = fit(tmp_path / "model")
    assert status == 2
    assert "; nor could the model be saved elsewhere (" in error.splitlines()[-1]
