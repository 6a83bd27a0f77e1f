"""A study whose database somebody edited, or that ends in the middle of a search: one line, and no traceback."""

import contextlib
import shutil
import sqlite3

import pytest
from tune_cases import made_up

from dendritree.errors import DendritreeError
from dendritree_lab.data import load_dataset
from dendritree_lab.studies.tuning import search, tune

pytest.importorskip("optuna")
OPTIONS = {"budget": 300, "trials": 2, "steps": 1}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    tune(made_up(), out=folder, **OPTIONS)
    return folder / "study.db"


def edit(path, sql):
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(sql).rowcount


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "UPDATE study_user_attributes SET value_json = '3'",
            "a study must have been made by dendritree to be resumed",
        ),
        ("UPDATE study_user_attributes SET value_json = '{'", "storage must be a database that Optuna can open"),
        (
            "UPDATE study_user_attributes SET value_json = '3' WHERE key = 'dendritree judged'",
            "must be a list of trials",
        ),
        ("UPDATE trials SET datetime_start = 'noon'", "storage must be a database that Optuna can open"),
        ("UPDATE trials SET state = 'DONE'", "storage must be a database that Optuna can open"),
        ("UPDATE trials SET number = 'first'", "the trials of a study must be as a search wrote them: number"),
        (
            "UPDATE trial_user_attributes SET value_json = '\"x\"'",
            "the trials of a study must be as a search wrote them: number",
        ),
        ("DELETE FROM trial_user_attributes", "the trials of a study must be as a search wrote them: number"),
        ("DELETE FROM trial_values", "the trials of a study must be as a search wrote them: number"),
        (
            "DELETE FROM trial_params WHERE param_name = 'depth'",
            "the trials of a study must be as a search wrote them: number",
        ),
        ("UPDATE trial_params SET param_value = 99", "storage must be a database that Optuna can open"),
        ("UPDATE trial_params SET distribution_json = '[]'", "storage must be a database that Optuna can open"),
    ],
)
def test_an_edited_study_is_rejected_in_a_line(study, sql, message, tmp_path):
    shutil.copy(study, tmp_path)
    edit(tmp_path / "study.db", sql)
    with pytest.raises(DendritreeError, match=message) as caught:
        tune(made_up(), out=tmp_path, **OPTIONS)
    assert "\n" not in str(caught.value)


def test_a_study_of_images_by_a_version_without_tied_trees_is_rejected(tmp_path):
    digits = load_dataset("digits")
    options = OPTIONS | {"budget": 1000, "out": tmp_path}
    tune(digits, **options)
    tune(digits, **options)  # resumes
    edit(
        tmp_path / "study.db",
        "UPDATE study_user_attributes SET value_json = json_remove(value_json, '$.wirings') "
        "WHERE key = 'dendritree settings'",
    )
    with pytest.raises(DendritreeError, match="resumes with the wirings it was started with, None: got"):
        tune(digits, **options)


def test_a_database_that_is_a_link_to_itself_is_one_line(tmp_path):
    (tmp_path / "study.db").symlink_to("study.db")
    with pytest.raises(DendritreeError, match="storage must be a database that Optuna can open"):
        tune(made_up(), out=tmp_path, **OPTIONS)


def test_a_database_that_goes_away_during_the_search_is_one_line(tmp_path):
    def observer(*_):
        edit(tmp_path / "study.db", "ALTER TABLE trials RENAME TO gone")

    with pytest.raises(DendritreeError, match=r"the database of a study must be whole and writable: "):
        tune(made_up(), out=tmp_path, observer=observer, **OPTIONS)


def test_an_error_that_is_not_the_databases_is_not_called_one(monkeypatch, tmp_path):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(search, "train", broken)
    with pytest.raises(ZeroDivisionError):
        tune(made_up(), out=tmp_path, **OPTIONS)
