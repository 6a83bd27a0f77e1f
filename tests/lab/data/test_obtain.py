"""The order of the sources, what happens to wrong files in each of them, and the message when all fail."""

import gzip
import re

import pytest
from data_cases import NAMES, closed_mirror, make_contents, make_file_set, serve, write_files

from dendritree.errors import DendritreeError, FormatError, MissingDataError
from dendritree_lab.data.images import parse_images
from dendritree_lab.data.obtain import obtain

CONTENTS = make_contents()
NAME = "tiny-images"
pytestmark = pytest.mark.usefixtures("bare_machine")


def contents_of(obtained):
    return {name: file.content for name, file in obtained.items()}


def test_files_come_from_the_mirror_once_and_then_from_the_cache(bare_machine):
    with serve(CONTENTS) as server:
        file_set = make_file_set(server.mirror())
        first, second = obtain(file_set), obtain(file_set)
        assert server.asked == dict.fromkeys(NAMES, 1)
    assert contents_of(first) == contents_of(second) == CONTENTS
    assert list(first) == list(NAMES)
    assert {path.name: path.read_bytes() for path in (bare_machine / NAME).glob("[!.]*")} == CONTENTS
    assert [file.path for file in second.values()] == [bare_machine / NAME / name for name in NAMES]


@pytest.mark.parametrize("packed", [False, True])
def test_each_place_is_asked_before_the_next(bare_machine, tmp_path, packed):
    """One file in each place: nothing is read from a later place than the first that has it."""
    folders = [tmp_path / "named", bare_machine / NAME, tmp_path / "system" / NAME]
    for place, folder in enumerate(folders):
        write_files(folder, dict(list(CONTENTS.items())[place:-1]), packed)
    # what lies behind a genuine file is never looked at
    for place, folder in enumerate(folders[1:], start=1):
        write_files(folder, {NAMES[place - 1]: b"never read"}, packed)
    with serve(CONTENTS) as server:
        file_set = make_file_set(server.mirror())
        obtained = obtain(file_set, data_dir=tmp_path / "named")
        assert server.asked == {NAMES[3]: 1}
    assert contents_of(obtained) == CONTENTS
    assert [file.path.parent for file in obtained.values()] == [folders[0]] * 3 + [folders[1]]


def test_the_systems_folder_serves_without_any_copy(bare_machine, tmp_path):
    write_files(tmp_path / "system" / NAME, CONTENTS, packed=True)
    assert contents_of(obtain(make_file_set(closed_mirror()))) == CONTENTS
    assert not bare_machine.exists()


def test_md5_serves_as_well_as_sha256(tmp_path):
    write_files(tmp_path, CONTENTS)
    assert contents_of(obtain(make_file_set(algorithm="md5"), data_dir=tmp_path)) == CONTENTS


# ------------------------------------------------------------------------------------------------- wrong files here


WRONG = {
    "corrupt": CONTENTS[NAMES[0]][:-1] + b"\x00",
    "truncated": CONTENTS[NAMES[0]][:500],
    "swapped": CONTENTS[NAMES[2]],
    "empty": b"",
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_in_the_folder_that_the_user_named_is_an_error(bare_machine, tmp_path, kind):
    write_files(tmp_path / "named", {**CONTENTS, NAMES[0]: WRONG[kind]})
    with serve(CONTENTS) as server:
        file_set = make_file_set(server.mirror())
        message = (
            rf"^{NAMES[0]} must have {file_set.files[0].digest.replace(':', ' ')}: got \w{{64}}.*{tmp_path}/named/"
        )
        with pytest.raises(FormatError, match=message):
            obtain(file_set, data_dir=tmp_path / "named")
        assert not server.asked
    assert not bare_machine.exists()


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_in_the_cache_is_ignored_with_one_line_and_fetched_anew(bare_machine, capsys, kind):
    write_files(bare_machine / NAME, {**CONTENTS, NAMES[0]: WRONG[kind]})
    with serve(CONTENTS) as server:
        file_set = make_file_set(server.mirror())
        assert contents_of(obtain(file_set)) == CONTENTS
        assert server.asked == {NAMES[0]: 1}
    out, error = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"dendritree: ignoring a file of the cache: {NAMES[0]} must have sha256 .*\n", error)
    assert contents_of(obtain(file_set, download=False)) == CONTENTS  # it was replaced
    assert capsys.readouterr().err == ""


def test_a_wrong_file_among_the_systems_is_ignored_too(tmp_path, capsys):
    write_files(tmp_path / "system" / NAME, {**CONTENTS, NAMES[0]: b"wrong"})
    with serve(CONTENTS) as server:
        assert contents_of(obtain(make_file_set(server.mirror()))) == CONTENTS
    assert capsys.readouterr().err.startswith("dendritree: ignoring a file of the system's data sets: ")


# --------------------------------------------------------------------------------------------------- wrong mirrors

FAULTS = {
    "truncate": r"[\d,]+ bytes were promised by http.*: got [\d,]+",
    "shorten": r"must be intact gzip data: it ends too early",
    "swap": rf"{NAMES[0]} must have sha256 \w+: got \w+, [\d,]+ bytes instead of",
    "absent": r"HTTP status 404 for http",
    "hang": r"no answer within 0.3 s",
    "endless": r"at most [\d,]+ bytes were expected from http.*: got more",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_mirror_is_passed_over_and_what_it_sent_never_cached(bare_machine, capsys, fault):
    with serve(CONTENTS, train_images=fault) as bad, serve(CONTENTS) as good:
        file_set = make_file_set(bad.mirror(timeout=0.3 if fault == "hang" else 5.0))
        with pytest.raises(MissingDataError, match=FAULTS[fault]):
            obtain(file_set)
        assert [path.name for path in (bare_machine / NAME).iterdir()] == [".lock"]
        file_set = make_file_set(bad.mirror(timeout=0.3 if fault == "hang" else 5.0), good.mirror())
        assert contents_of(obtain(file_set)) == CONTENTS
    assert capsys.readouterr() == ("", "")


def test_good_files_of_a_mirror_that_fails_later_are_kept():
    with serve(CONTENTS, t10k_images="swap") as half, serve(CONTENTS) as good:
        file_set = make_file_set(half.mirror(), good.mirror())
        assert contents_of(obtain(file_set)) == CONTENTS
        assert good.asked == {NAMES[2]: 1, NAMES[3]: 1}


def test_when_all_fails_one_line_lists_what_was_tried_and_why(bare_machine, tmp_path, monkeypatch):
    (tmp_path / "named").mkdir()
    monkeypatch.setenv("DENDRITREE_DATA", str(tmp_path / "named"))
    write_files(bare_machine / NAME, {**CONTENTS, NAMES[0]: b"wrong"})
    closed = closed_mirror()
    with serve(CONTENTS, train_images="absent") as server:
        absent = server.mirror()
        with pytest.raises(MissingDataError) as caught:
            obtain(make_file_set(closed, absent))
    text = str(caught.value)
    assert isinstance(caught.value, DendritreeError | FileNotFoundError)
    assert "\n" not in text
    assert text.startswith(f"{NAME} must be on this machine or within reach: {NAMES[0]} not found in ")
    reasons = [
        f"DENDRITREE_DATA {tmp_path}/named (not there)",
        f"the cache {bare_machine} (corrupt)",
        f"the system's data sets {tmp_path}/system (not there)",
        f"{closed} (Connection refused)",
        f"{absent} (HTTP status 404",
        "name it with data_dir, --data-dir or DENDRITREE_DATA",
    ]
    places = [text.index(reason) for reason in reasons]
    assert places == sorted(places)


def test_without_leave_to_download_no_mirror_is_asked(bare_machine):
    with serve(CONTENTS) as server:
        with pytest.raises(MissingDataError, match=r"the network was not tried \(download=False\)"):
            obtain(make_file_set(server.mirror()), download=False)
        assert not server.asked
    assert not bare_machine.exists()


# ------------------------------------------------------------------------------------------------ from bytes to arrays


def test_obtained_files_become_images(tmp_path):
    write_files(tmp_path, CONTENTS, packed=True)
    obtained = obtain(make_file_set(), data_dir=tmp_path)
    images = parse_images(*(file.content for file in obtained.values()))
    assert images.train_images.tobytes() == CONTENTS[NAMES[0]][16:]
    assert images.test_labels.tobytes() == CONTENTS[NAMES[3]][8:]
    assert images.test_images.shape == (5, 28, 28)


def test_a_packed_file_of_the_right_name_but_not_packed_is_rejected(tmp_path):
    (tmp_path / f"{NAMES[0]}.gz").write_bytes(CONTENTS[NAMES[0]])
    with pytest.raises(FormatError, match=rf"^{NAMES[0]}.gz must be intact gzip data: .*header"):
        obtain(make_file_set(), data_dir=tmp_path)
    (tmp_path / f"{NAMES[0]}.gz").write_bytes(gzip.compress(gzip.compress(CONTENTS[NAMES[0]])))
    with pytest.raises(FormatError, match=rf"^{NAMES[0]} must have sha256"):
        obtain(make_file_set(), data_dir=tmp_path)
