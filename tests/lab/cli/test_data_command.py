"""`dendritree data`: what it lists, fetches and verifies, and its exit status."""

import re

import pytest
from data_cases import NAMES, closed_mirror, make_contents, make_file_set, serve, write_files

from dendritree_lab.data import DATASETS
from dendritree_lab.data.catalog import COLLECTIONS, FILE_SETS

CONTENTS = make_contents()
pytestmark = pytest.mark.usefixtures("bare_machine")


@pytest.fixture
def mirror(monkeypatch):
    """A machine without data, and a mirror from which `mnist` is four tiny files; nothing else can be fetched."""
    with serve(CONTENTS) as server:
        tiny = make_file_set(server.mirror(), name="mnist")
        closed = make_file_set(closed_mirror(), name="adult", seed=1)
        for name in FILE_SETS:
            monkeypatch.setitem(FILE_SETS, name, tiny if name in ("mnist", "mnist-4-9", "mnist-pairs") else closed)
        yield server


@pytest.fixture
def data(call):
    """A function that runs `dendritree data`; returns status, the cells of its lines, and lines of standard error."""

    def run(*arguments):
        status, out, errors = call("data", *arguments)
        return status, [re.split(r" {2,}", line.strip()) for line in out.splitlines()], errors.splitlines()

    return run


def test_list_names_every_data_set_with_its_size(data):
    status, (header, *rows), error = data("list")
    assert (status, error) == (0, [])
    assert header == ["name", "description", "size", "where"]
    assert [row[0] for row in rows] == [*DATASETS, *COLLECTIONS]
    by_name = {row[0]: row[2:] for row in rows}
    assert by_name["mnist"] == by_name["fashion-pairs"] == ["55.0 MB", "not on this machine"]
    assert by_name["adult"] == ["6.0 MB", "not on this machine"]
    assert by_name["digits"] == ["in scikit-learn"]


def test_get_fetches_once_and_list_then_says_where(mirror, bare_machine, data):
    in_files = ["mnist", "mnist-4-9", "mnist-pairs"]
    lines = [[f"{name}: {bare_machine}/mnist"] for name in in_files]
    assert data("get", *in_files, "digits") == (0, [*lines, ["digits: in scikit-learn"]], [])
    assert mirror.asked == dict.fromkeys(NAMES, 1)
    status, rows, _ = data("list", "mnist", "adult")
    assert (status, [row[-1] for row in rows[1:]]) == (0, [f"{bare_machine}/mnist", "not on this machine"])


@pytest.mark.usefixtures("mirror")
def test_get_goes_on_after_a_data_set_that_cannot_be_had(data):
    status, rows, error = data("get", "adult", "mnist")
    assert status == 2
    assert [row[0].partition(":")[0] for row in rows] == ["mnist"]
    assert len(error) == 1
    assert "adult" in error[0]


def test_verify_tells_ok_corrupt_and_absent_of_every_copy(mirror, bare_machine, tmp_path, data):
    write_files(bare_machine / "mnist", {NAMES[0]: CONTENTS[NAMES[0]], NAMES[1]: b"wrong"})
    write_files(tmp_path / "mine", {NAMES[0]: CONTENTS[NAMES[0]]}, packed=True)
    status, rows, error = data("verify", "mnist", "mnist-4-9", "--data-dir", tmp_path / "mine")
    assert (status, error) == (1, [])
    assert [tuple(row[:3]) for row in rows[1:]] == [
        ("mnist", NAMES[0], "ok"),
        ("mnist", NAMES[0], "ok"),
        ("mnist", NAMES[1], "corrupt"),
        ("mnist", NAMES[2], "absent"),
        ("mnist", NAMES[3], "absent"),
    ]
    assert rows[1][3] == f"{tmp_path}/mine/{NAMES[0]}.gz"
    assert rows[2][3] == f"{bare_machine}/mnist/{NAMES[0]}"
    assert not mirror.asked
    (bare_machine / "mnist" / NAMES[1]).unlink()
    assert data("verify", "mnist", "digits")[0] == 0  # absent files are not corrupt
