"""Mirrors: archives, addresses, error messages, and the progress bar on a terminal."""

import contextlib
import io
import os
import pty
import socket
import tarfile
import termios
import threading
import zipfile

import pytest
import torch
from data_cases import NAMES, make_contents, make_file_set, serve

from dendritree.errors import FormatError, MissingDataError
from dendritree_lab.data.content import DataFile
from dendritree_lab.data.sources import Mirror, _bar, download

CONTENTS = make_contents()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def zipped(parts):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(name, content):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def data_url(content, folder):
    path = folder / "archive"
    path.write_bytes(content)
    return path.as_uri()


def test_an_archive_of_several_files_is_fetched_once(tmp_path):
    files = [DataFile("a", 3, ""), DataFile("b", 4, "")]
    mirror = Mirror(data_url(zipped({"a": b"one", "b": b"four", "c": b"other"}), tmp_path), "zip")
    fetching = mirror.fetch(files)
    assert next(fetching) == (files[0], b"one")
    (tmp_path / "archive").unlink()
    assert next(fetching) == (files[1], b"four")


def test_a_header_that_the_mirror_leaves_out_goes_before_the_content(tmp_path):
    file = DataFile("houses.csv", 10, "")
    mirror = Mirror(data_url(tarred("Houses/houses.data", b"1,2\n"), tmp_path), "tar", "Houses/houses.data", b"x,y\n")
    assert list(mirror.fetch([file])) == [(file, b"x,y\n1,2\n")]


@pytest.mark.parametrize("packing", ["zip", "tar"])
def test_a_page_in_place_of_an_archive_is_rejected(tmp_path, packing):
    mirror = Mirror(data_url(b"<html>please log in</html>", tmp_path), packing, "part")
    with pytest.raises(FormatError, match=f"^part must be intact {packing} data: "):
        list(mirror.fetch([DataFile("part", 10, "")]))


def test_a_mirror_is_called_by_its_address_without_the_file():
    assert str(Mirror("https://example.org/mnist/{file}.gz")) == "https://example.org/mnist"
    assert str(Mirror("https://example.org/adult.zip", "zip")) == "https://example.org/adult.zip"


def test_a_name_that_nobody_has_is_told():
    with pytest.raises(MissingDataError, match=r"\w+ .*(known|name|resolution|refused)"):  # a proxy may reject it
        download("http://no-such-host.invalid/x", 10, 5.0)


def test_a_server_that_closes_without_an_answer_is_told():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: listener.accept()[0].close())
        thread.start()
        with pytest.raises(MissingDataError, match=r"closed connection|reset by peer"):
            download(f"http://127.0.0.1:{listener.getsockname()[1]}/x", 10, 5.0)
        thread.join()


def test_a_server_that_speaks_no_http_is_told():
    def answer():
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"220 this is a mail server\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(MissingDataError, match="220 this is a mail server"):
            download(f"http://127.0.0.1:{listener.getsockname()[1]}/x", 10, 5.0)
        thread.join()


def test_a_server_that_stops_in_mid_answer_is_not_waited_for():
    def answer():
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegin")
            done.wait(20)

    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(MissingDataError, match=r"^no answer within 0\.2 s$"):
            download(f"http://127.0.0.1:{listener.getsockname()[1]}/x", 1000, 0.2)
        done.set()
        thread.join()


# --------------------------------------------------------------------------------------------------------- progress


@contextlib.contextmanager
def terminal():
    """A real terminal as standard error; a list that holds, at the end, the pieces of what was drawn."""
    reader, screen = pty.openpty()
    termios.tcsetwinsize(screen, (24, 100))
    drawn = []
    try:
        with os.fdopen(screen, "w") as stream, contextlib.redirect_stderr(stream):
            yield drawn
        with contextlib.suppress(OSError):  # how the end of a terminal shows on Linux
            while piece := os.read(reader, 10_000):
                drawn.append(piece.decode())
    finally:
        os.close(reader)


def test_a_terminal_sees_a_bar_that_fills_and_is_wiped():
    with terminal() as seen, serve(CONTENTS) as server:
        fetched = dict(server.mirror().fetch(make_file_set().files[:1]))
    assert list(fetched.values()) == [CONTENTS[NAMES[0]]]
    drawn = "".join(seen)
    assert f"{NAMES[0]}.gz" in drawn
    assert drawn.split("\r")[-2].strip() == ""  # drawn over with blanks


def test_without_tqdm_there_is_still_something_to_see(monkeypatch):
    monkeypatch.setattr(torch.hub, "tqdm", torch.hub._Faketqdm)
    with terminal() as seen, serve(CONTENTS) as server:
        list(server.mirror().fetch(make_file_set().files[:1]))
    assert "100.0%" in "".join(seen)


def test_where_the_end_is_unknown_there_is_no_bar():
    with terminal() as seen, _bar("pip download") as bar:
        bar.update(3 << 20)
    assert "pip download: 0.00B" in "".join(seen)
    assert "%" not in "".join(seen)


def test_nothing_is_drawn_where_there_is_no_terminal(capsys):
    with serve(CONTENTS) as server, _bar("task", 100):
        list(server.mirror().fetch(make_file_set().files[:1]))
    assert capsys.readouterr() == ("", "")
