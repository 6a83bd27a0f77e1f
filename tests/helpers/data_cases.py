"""Small data files, and mirrors on this machine that serve them well or badly."""

import collections
import contextlib
import gzip
import hashlib
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from dendritree_lab.data.catalog import FileSet
from dendritree_lab.data.sources import DataFile, Mirror

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def idx(array):
    """An IDX file written by hand: two zero bytes, 8 for unsigned bytes, dimensions, big-endian sizes, elements."""
    sizes = b"".join(struct.pack(">I", size) for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def make_arrays(train=12, test=5, seed=0):
    """Training images and labels, test images and labels."""
    numbers = np.random.default_rng(seed)
    return [
        numbers.integers(0, high, size, dtype=np.uint8)
        for count in (train, test)
        for high, size in ((256, (count, 28, 28)), (10, (count,)))
    ]


def make_contents(**options):
    """The content of four IDX files by name."""
    return dict(zip(NAMES, map(idx, make_arrays(**options)), strict=True))


def data_file(name, content, algorithm="sha256"):
    return DataFile(name, len(content), f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}")


def make_file_set(*sources, name="tiny-images", **options):
    """The files of `make_contents` with their digests."""
    return FileSet(name, tuple(data_file(*item) for item in make_contents(**options).items()), sources)


def write_files(folder, contents, packed=False):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        path = folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(content) if packed else content)


class Server(ThreadingHTTPServer):
    """A mirror on the loopback interface that counts its requests.

    `faults` says what goes wrong with a file: "truncate" (fewer bytes than promised), "swap" (another file's bytes),
    "absent" (404), "hang" (no answer). Answers wait while the event `hold` is clear.
    """

    def __init__(self, contents, faults):
        super().__init__(("127.0.0.1", 0), Handler)
        self.contents, self.faults = contents, faults
        self.asked = collections.Counter()
        self.closing, self.hold = threading.Event(), threading.Event()
        self.hold.set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/{{file}}.gz"

    def mirror(self, timeout=5.0):
        return Mirror(self.url, "gzip", timeout=timeout)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.strip("/").removesuffix(".gz")
        self.server.asked[name] += 1
        fault = self.server.faults.get(name)
        self.server.hold.wait(20)
        if fault == "hang":
            self.server.closing.wait(20)
            return
        if fault == "absent":
            self.send_error(404)
            return
        other = next(each for each in self.server.contents if each != name)
        content = self.server.contents[other if fault == "swap" else name]
        body = gzip.compress(content) if self.path.endswith(".gz") else content
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # the reader may give up
            self.wfile.write(body[: len(body) // 2] if fault == "truncate" else body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serve(contents, **faults):
    """A running server; faults by the beginning of a file's name, with _ for -: `train_labels="swap"`."""
    broken = {
        name: fault for start, fault in faults.items() for name in NAMES if name.startswith(start.replace("_", "-"))
    }
    with Server(contents, broken) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()


def closed_mirror():
    """A mirror at a port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return Mirror(f"http://127.0.0.1:{probe.getsockname()[1]}/{{file}}.gz", "gzip")
