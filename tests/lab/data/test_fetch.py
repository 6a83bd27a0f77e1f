"""Files from this machine or a mirror: the order of the folders, wrong files, what is cached, several processes."""

import contextlib
import gzip
import io
import signal
import tarfile
import time
import zipfile

import pytest
from command_runs import wait_until
from data_cases import NAMES, closed_mirror, data_file, make_contents, make_file_set, serve, write_files
from warm import WarmProcess

from dendritree.errors import FormatError, MissingDataError
from dendritree_lab.data import DATASETS
from dendritree_lab.data.catalog import COLLECTIONS, FILE_SETS, FileSet
from dendritree_lab.data.fetch import DataFolder, cache_folder, data_folders, obtain, read_verified
from dendritree_lab.data.sources import Mirror

CONTENTS = make_contents()
NAME = "tiny-images"
pytestmark = [
    pytest.mark.usefixtures("bare_machine"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # requests leaves sockets open
]


# ----------------------------------------------------------------------------------------------------------- folders


def test_the_named_folder_goes_first_and_the_argument_before_the_environment(bare_machine, monkeypatch, tmp_path):
    others = [bare_machine, tmp_path / "system"]
    assert [folder.path for folder in data_folders()] == others
    monkeypatch.setenv("DENDRITREE_DATA", str(tmp_path))
    assert [folder.path for folder in data_folders()] == [tmp_path, *others]
    assert [folder.path for folder in data_folders(tmp_path.parent)] == [tmp_path.parent, *others]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "dendritree"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("folder", ["", "tiny-images", "tiny_images"])
def test_a_named_folder_may_have_files_directly_or_in_a_folder_of_the_data_set(tmp_path, folder, packed):
    file = make_file_set().files[1]
    write_files(tmp_path / folder, {file.name: CONTENTS[file.name]}, packed)
    path = DataFolder(tmp_path, "", named=True).find(NAME, file)
    assert read_verified(file, path) == CONTENTS[file.name]
    if not folder:  # MNIST's and Fashion-MNIST's files have equal names: only a folder of its own says which they are
        assert DataFolder(tmp_path, "").find(NAME, file) is None


@pytest.mark.parametrize("packed", [False, True])
def test_each_folder_is_searched_before_the_next(bare_machine, tmp_path, packed):
    folders = [tmp_path / "named", bare_machine / NAME, tmp_path / "system" / NAME]
    for number, folder in enumerate(folders):
        write_files(folder, {NAMES[number]: CONTENTS[NAMES[number]]}, packed)
        for earlier in range(number):  # never read
            write_files(folder, {NAMES[earlier]: b"wrong"}, packed)
    with serve(CONTENTS) as server:
        assert obtain(make_file_set(server.mirror()), data_dir=tmp_path / "named") == CONTENTS
        assert server.asked == {NAMES[3]: 1}


@pytest.mark.parametrize("wrong", [CONTENTS[NAMES[0]][:-1], CONTENTS[NAMES[2]], b""])
def test_a_wrong_file_is_an_error_in_a_named_folder_and_replaced_in_the_cache(bare_machine, tmp_path, wrong):
    for folder in (tmp_path / "named", bare_machine / NAME):
        write_files(folder, {**CONTENTS, NAMES[0]: wrong})
    with serve(CONTENTS) as server:
        file_set = make_file_set(server.mirror())
        with pytest.raises(FormatError, match=f"{NAMES[0]} must have sha256 .*{tmp_path}/named"):
            obtain(file_set, data_dir=tmp_path / "named")
        assert not server.asked
        assert obtain(file_set) == CONTENTS
        assert server.asked == {NAMES[0]: 1}
    assert obtain(file_set, download=False) == CONTENTS


# ----------------------------------------------------------------------------------------------------------- mirrors


@pytest.mark.parametrize("fault", ["truncate", "swap", "absent", "hang"])
def test_what_a_bad_mirror_sends_is_never_cached_and_the_next_one_is_asked(bare_machine, fault):
    with serve(CONTENTS, t10k_images=fault) as bad, serve(CONTENTS) as good:
        mirror = bad.mirror(timeout=0.3 if fault == "hang" else 5.0)
        with pytest.raises(MissingDataError, match=NAMES[2]):
            obtain(make_file_set(mirror))
        assert {path.name for path in (bare_machine / NAME).iterdir()} == {NAMES[0], NAMES[1], ".lock"}
        assert obtain(make_file_set(mirror, good.mirror())) == CONTENTS
        assert good.asked == {NAMES[2]: 1, NAMES[3]: 1}


def test_if_everything_fails_one_line_lists_what_was_tried_in_order(bare_machine, tmp_path, monkeypatch):
    (tmp_path / "named").mkdir()
    monkeypatch.setenv("DENDRITREE_DATA", str(tmp_path / "named"))
    write_files(bare_machine / NAME, {**CONTENTS, NAMES[0]: b"wrong"})
    closed = closed_mirror()
    with serve(CONTENTS, train_images="absent") as server, pytest.raises(MissingDataError) as caught:
        obtain(make_file_set(closed, server.mirror()))
    text = str(caught.value)
    assert "\n" not in text
    reasons = [NAMES[0], "DENDRITREE_DATA", str(bare_machine), f"{tmp_path}/system", str(closed), "refused", "404"]
    positions = [text.index(reason) for reason in [*reasons, f"dendritree data get {NAME}"]]
    assert positions == sorted(positions)


def test_without_download_no_mirror_is_asked(bare_machine):
    with serve(CONTENTS) as server:
        with pytest.raises(MissingDataError, match="download=False"):
            obtain(make_file_set(server.mirror()), download=False)
        assert not server.asked
    assert not bare_machine.exists()


def zipped(content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("folder/part", content)
    return buffer.getvalue()


def tarred(content):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("folder/part")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


PACKERS = {"plain": bytes, "gzip": gzip.compress, "zip": zipped, "tar": tarred}


@pytest.mark.parametrize("packing", PACKERS)
def test_mirrors_may_pack_their_files_and_omit_a_header(packing):
    whole = b"rooms,price\n3,200\n"
    header = b"" if packing == "plain" else b"rooms,price\n"
    with serve({"part": PACKERS[packing](whole.removeprefix(header)), "other": b""}) as server:
        mirror = Mirror(server.url.removesuffix(".gz"), packing, "folder/{file}", header)
        assert obtain(FileSet("tiny-table", (data_file("part", whole, "md5"),), (mirror,))) == {"part": whole}


# --------------------------------------------------------------------------------------------------------- processes

OBTAIN = """
import hashlib, sys
from data_cases import make_file_set
from dendritree_lab.data.fetch import obtain
from dendritree_lab.data.sources import Mirror

file_set = make_file_set(Mirror(sys.argv[1], "gzip"))
print("ready", flush=True)
sys.stdin.readline()
print(hashlib.sha256(b"".join(obtain(file_set).values())).hexdigest())
"""


@pytest.fixture
def start():
    """A function that starts processes at once, after their imports; those that are left are ended."""
    with contextlib.ExitStack() as started:

        def start(url, count):
            processes = [started.enter_context(WarmProcess(OBTAIN, url)) for _ in range(count)]
            for process in processes:
                assert process.stdout.readline() == "ready\n", process.communicate()[1]
            for process in processes:
                process.stdin.write("go\n")
                process.stdin.flush()
            return processes

        yield start


def test_of_two_processes_one_downloads_each_file_and_both_get_all(start):
    with serve(CONTENTS) as server:
        server.hold.clear()  # no answer until both are at work
        processes = start(server.url, 2)
        assert wait_until(lambda: server.asked, 60)
        time.sleep(0.3)  # long enough for the other to come to the lock; if it does not, it finds the cache
        server.hold.set()
        results = [process.communicate(timeout=60) for process in processes]
        assert server.asked == dict.fromkeys(NAMES, 1)
    assert [process.returncode for process in processes] == [0, 0]
    assert results[0] == results[1]


def test_after_a_killed_download_the_next_one_continues_with_whole_files(start, bare_machine):
    with serve(CONTENTS, t10k_images="hang") as server:
        (process,) = start(server.url, 1)
        assert wait_until(lambda: server.asked[NAMES[2]], 60)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
        assert {path.name for path in (bare_machine / NAME).iterdir()} == {NAMES[0], NAMES[1], ".lock"}
    with serve(CONTENTS) as server:
        assert obtain(make_file_set(server.mirror())) == CONTENTS  # the lock went with its process
        assert server.asked == {NAMES[2]: 1, NAMES[3]: 1}


# ----------------------------------------------------------------------------------------------------------- catalog


def test_the_catalog_is_complete_and_mirrors_are_reached_over_https():
    assert set(FILE_SETS) | {"digits"} == {*DATASETS, *COLLECTIONS}
    for file_set in FILE_SETS.values():
        lengths = {"md5": 32, "sha256": 64}
        digests = [file.digest.split(":") for file in file_set.files]
        assert all(len(digest) == lengths[algorithm] for algorithm, digest in digests)
        assert len({digest for _, digest in digests}) == len(file_set.files)
        assert file_set.sources
        assert all(each.url.startswith("https://") for each in file_set.sources if isinstance(each, Mirror))
    for name in ("mnist", "fashion-mnist"):  # an IDX file of d dimensions has 4 + 4 d bytes before its elements
        sizes = [16 + 60_000 * 784, 8 + 60_000, 16 + 10_000 * 784, 8 + 10_000]
        assert [file.size for file in FILE_SETS[name].files] == sizes
