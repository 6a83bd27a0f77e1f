"""Files that are whole, always the same ones, and replaced in one step."""

import csv
import os
import sys

import pytest
from report_cases import EXPECTED_FILE, MATCHES, TABLES, made_up_records

from dendritree.errors import DendritreeError, MissingExtraError
from dendritree_lab.report import write_report
from dendritree_lab.report.files import own_report_files
from dendritree_lab.studies.paper.analysis import read_expected
from dendritree_lab.studies.paper.paper_report import build_report


def small_report(tables):
    records = made_up_records(tables, trials=2, epochs=4, dropouts=(0.0, 0.3))
    return build_report(records, {"torch": "2.6.0"}, read_expected(EXPECTED_FILE), MATCHES)


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_report_is_written_whole_and_rewritten_in_its_place(tmp_path):
    folder = tmp_path / "run" / "report"
    files = write_report(small_report(()), folder)
    assert files.markdown == folder / "report.md"
    assert files.html == folder / "report.html"
    before = contents(folder)
    again = write_report(small_report(TABLES[:1]), folder)
    after = contents(folder)
    assert again == files
    assert set(before) == set(after) == {"report.md", "report.html", *(f"csv/{path.name}" for path in files.csvs)}
    assert before["report.md"] != after["report.md"]
    with (folder / "csv" / "paper.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 34
    assert files.html.stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_same_records_give_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        write_report(small_report(TABLES[2:3]), tmp_path / name)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_place_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DendritreeError, match=r"a report must be writable: .*file \(File exists\)"):
        write_report(small_report(()), tmp_path / "file")
    assert contents(tmp_path) == {"file": b"mine"}


def test_files_of_others_are_never_replaced_but_a_report_of_ours_is(tmp_path):
    (tmp_path / "report.md").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(
        DendritreeError, match=r"existing files are never replaced: .*report\.md is in the way; move it"
    ):
        write_report(small_report(()), tmp_path)
    assert contents(tmp_path) == before
    (tmp_path / "report.html").write_text("<h1>mine</h1>")
    with pytest.raises(DendritreeError, match=r"existing files are never replaced"):
        write_report(small_report(()), tmp_path)
    (tmp_path / "report.html").unlink()
    (tmp_path / "report.md").unlink()
    for tables in ((), TABLES[:1]):
        files = write_report(small_report(tables), tmp_path)
        files.html.unlink()  # its Markdown text still says whose it is
    assert len(files.markdown.read_text().splitlines()) > 20
    assert contents(tmp_path)["notes.txt"] == b"mine"


def test_without_matplotlib_one_line_says_what_to_install_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # what an absent package looks like to import
    records = made_up_records(TABLES[:1], trials=1, epochs=3, dropouts=(0.0,))
    with pytest.raises(MissingExtraError, match=r"matplotlib is needed here .*: pip install 'dendritree\[report\]'$"):
        write_report(build_report(records, {}, [], MATCHES), tmp_path)
    assert contents(tmp_path) == {}


def test_a_pipe_in_the_folder_of_a_report_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "report.html")
    assert own_report_files(tmp_path, ["report.html"]) == ()
