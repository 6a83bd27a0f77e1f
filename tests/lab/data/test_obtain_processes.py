"""Real processes: two that download at once, one that is killed, one that may not write."""

import contextlib
import signal
import time

import pytest
from data_cases import NAMES, closed_mirror, make_contents, make_file_set, serve
from warm import WarmProcess

from dendritree_lab.data.obtain import obtain

CONTENTS = make_contents()
NAME = "tiny-images"
pytestmark = pytest.mark.usefixtures("bare_machine")

OBTAIN = """
import encodings.idna  # here, while Python's own files can be read
import hashlib, os, sys
from data_cases import make_file_set
from dendritree_lab.data.obtain import obtain
from dendritree_lab.data.sources import Mirror

file_set = make_file_set(Mirror(sys.argv[1], "gzip"))
print("ready", flush=True)
sys.stdin.readline()
if "unprivileged" in sys.argv and os.getuid() == 0:
    os.setuid(65534)  # the administrator may write anywhere
files = obtain(file_set)
print(hashlib.sha256(b"".join(file.content for file in files.values())).hexdigest())
print([file.path is not None for file in files.values()])
"""


@pytest.fixture
def start():
    """Start processes that wait, after their imports, for a line on standard input; end those that are left."""
    with contextlib.ExitStack() as started:
        yield lambda *arguments: started.enter_context(WarmProcess(OBTAIN, *arguments))


def go(*processes):
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_processes_at_once_fetch_each_file_once_and_both_get_all(start, bare_machine):
    with serve(CONTENTS) as server:
        server.hold.clear()  # no answer until both are at work
        processes = [start(server.url) for _ in range(2)]
        go(*processes)
        wait_for(lambda: server.asked)
        time.sleep(0.3)  # long enough for the other to come to the lock; if it does not, it finds the cache
        server.hold.set()
        results = [process.communicate(timeout=60) for process in processes]
        assert server.asked == dict.fromkeys(NAMES, 1)
    assert [process.returncode for process in processes] == [0, 0]
    assert results[0][0] == results[1][0]
    said = sorted(error for _, error in results)
    assert said[0] == ""
    assert said[1] in ("", f"dendritree: waiting for another process that downloads {NAME}\n")
    assert {path.name for path in (bare_machine / NAME).iterdir()} == {*NAMES, ".lock"}


def test_after_a_kill_in_mid_download_the_next_goes_on_with_whole_files(start, bare_machine):
    with serve(CONTENTS, t10k_images="hang") as server:
        process = start(server.url)
        go(process)
        wait_for(lambda: server.asked[NAMES[2]])
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
        assert {path.name for path in (bare_machine / NAME).iterdir()} == {NAMES[0], NAMES[1], ".lock"}
    with serve(CONTENTS) as server:
        obtained = obtain(make_file_set(server.mirror()))  # the lock went with its process
        assert server.asked == {NAMES[2]: 1, NAMES[3]: 1}
    assert {name: file.content for name, file in obtained.items()} == CONTENTS


def test_a_read_only_cache_is_told_once_and_the_data_is_used_all_the_same(start, bare_machine):
    bare_machine.mkdir(parents=True)
    bare_machine.chmod(0o555)
    with serve(CONTENTS) as server:
        process = start(server.url, "unprivileged")
        go(process)
        out, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert server.asked == dict.fromkeys(NAMES, 1)
    assert out.splitlines()[-1] == "[False, False, False, False]"
    told = f"{NAME} cannot be stored in {bare_machine / NAME} (Permission denied) and is downloaded each time"
    assert error == f"dendritree: {told}\n"
    assert list(bare_machine.iterdir()) == []


def test_a_cache_that_cannot_be_a_folder_is_told_once(bare_machine, capsys):
    bare_machine.parent.write_text("a file in its place")
    with serve(CONTENTS) as server:
        obtained = obtain(make_file_set(server.mirror()))
    assert {name: file.content for name, file in obtained.items()} == CONTENTS
    assert [file.path for file in obtained.values()] == [None] * 4
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(FileNotFoundError, match=r"Connection refused"):
        obtain(make_file_set(closed_mirror()))
