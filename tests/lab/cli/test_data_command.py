"""`dendritree data`: what it lists, fetches and verifies, and its exit status."""

import gzip
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
        table = {"mnist": tiny, "mnist-4-9": tiny, "mnist-pairs": tiny, "adult": closed}
        for name in FILE_SETS:
            monkeypatch.setitem(FILE_SETS, name, table.get(name, closed))
        yield server


@pytest.fixture
def data(call):
    """A function that runs `dendritree data`; returns status, lines of standard output, lines of standard error."""

    def run(*arguments):
        status, out, errors = call("data", *arguments)
        return status, out.splitlines(), errors.splitlines()

    return run


def cells(line):
    return re.split(r" {2,}", line.strip())


def test_list_names_every_data_set_with_its_size(data):
    status, (header, *lines), error = data("list")
    assert (status, error) == (0, [])
    assert cells(header) == ["name", "what it is", "size", "where"]
    assert [cells(line)[0] for line in lines] == [*DATASETS, *COLLECTIONS]
    by_name = {cells(line)[0]: cells(line) for line in lines}
    assert by_name["mnist"][2:] == ["55.0 MB", "not here"]
    assert by_name["fashion-pairs"][2:] == by_name["fashion-mnist"][2:] == ["55.0 MB", "not here"]
    assert by_name["adult"][2:] == ["6.0 MB", "not here"]
    assert by_name["keel"][2:] == ["13.3 MB", "not here"]
    assert by_name["digits"][2:] == ["in the package sklearn"]


def test_get_fetches_and_list_then_says_where(mirror, bare_machine, data):
    in_files = ["mnist", "mnist-4-9", "mnist-pairs"]
    assert data("get", *in_files, "digits") == (
        0,
        [*(f"{name}: {bare_machine}/mnist" for name in in_files), "digits: in the package sklearn"],
        [],
    )
    assert mirror.asked == dict.fromkeys(NAMES, 1)
    status, lines, _ = data("list", "mnist", "adult")
    assert status == 0
    assert [cells(line)[-1] for line in lines[1:]] == [f"{bare_machine}/mnist", "not here"]


@pytest.mark.usefixtures("mirror")
def test_get_goes_on_after_a_data_set_that_cannot_be_had(data):
    status, out, error = data("get", "adult", "mnist")
    assert status == 2
    assert [line.partition(":")[0] for line in out] == ["mnist"]
    assert len(error) == 1
    assert re.match(r"dendritree: adult must be on this machine or within reach: .*\(Connection refused\)", error[0])


def test_get_takes_what_a_named_folder_has(mirror, tmp_path, data):
    write_files(tmp_path / "mine" / "mnist", CONTENTS, packed=True)
    assert data("get", "mnist", "--data-dir", tmp_path / "mine") == (0, [f"mnist: {tmp_path}/mine/mnist"], [])
    assert not mirror.asked


@pytest.mark.usefixtures("mirror")
def test_get_fails_where_nothing_can_be_kept(bare_machine, data):
    bare_machine.parent.write_text("a file in place of the cache")
    status, out, error = data("get", "mnist")
    assert (status, out) == (2, [])
    assert error[-1].startswith(
        "dendritree: mnist must be stored in the cache, which is not writable: lost train-images"
    )


def test_list_tells_a_part_from_the_whole(mirror, tmp_path, data):
    write_files(tmp_path / "mine", {NAMES[0]: CONTENTS[NAMES[0]]})
    _, lines, _ = data("list", "mnist", "--data-dir", tmp_path / "mine")
    assert cells(lines[1])[-1] == f"{tmp_path}/mine (3 of 4 files missing)"
    assert not mirror.asked


def test_verify_tells_ok_corrupt_and_absent_of_every_copy(mirror, bare_machine, tmp_path, data):
    write_files(bare_machine / "mnist", {NAMES[0]: CONTENTS[NAMES[0]], NAMES[1]: b"wrong"})
    write_files(tmp_path / "mine", {NAMES[0]: CONTENTS[NAMES[0]]}, packed=True)
    (tmp_path / "mine" / f"{NAMES[2]}.gz").write_bytes(gzip.compress(CONTENTS[NAMES[2]])[:-5])
    status, lines, error = data("verify", "mnist", "mnist-4-9", "mnist-pairs", "--data-dir", tmp_path / "mine")
    assert (status, error) == (1, [])
    found = [cells(line) for line in lines[1:]]
    assert [(row[0], row[1], row[2]) for row in found] == [
        ("mnist", NAMES[0], "ok"),
        ("mnist", NAMES[0], "ok"),
        ("mnist", NAMES[1], "corrupt"),
        ("mnist", NAMES[2], "corrupt"),
        ("mnist", NAMES[3], "absent"),
    ]
    assert found[0][3] == f"{tmp_path}/mine/{NAMES[0]}.gz"
    assert found[1][3] == f"{bare_machine}/mnist/{NAMES[0]}"
    assert re.match(rf"{NAMES[1]} must have sha256 \w+: got \w+, 5 bytes instead of .*{bare_machine}", found[2][3])
    assert "must be intact gzip data" in found[3][3]
    assert not mirror.asked


@pytest.mark.usefixtures("mirror")
def test_verify_is_content_with_good_and_absent_files(data):
    data("get", "mnist")
    status, lines, error = data("verify")
    assert (status, error) == (0, [])
    states = {tuple(cells(line)[:3]) for line in lines[1:]}
    assert ("mnist", NAMES[0], "ok") in states
    assert ("digits", "package sklearn", "ok") in states
    assert ("adult", NAMES[0], "absent") in states
