"""Files from a public mirror, over HTTPS."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..errors import MissingDataError
from .content import DataFile, Packing, unpack
from .progress import Progress

__all__ = ["Mirror"]

CHUNK = 1 << 16
SLACK = 1 << 20  # what a packed file may be larger than its content, before we stop reading


@dataclass(frozen=True)
class Mirror:
    """A place on the network; in `url` and `member` the word {file} stands for a file's name."""

    url: str
    packing: Packing = "plain"
    member: str = "{file}"
    """Which part of an archive."""
    header: bytes = b""
    """What this mirror leaves out at the beginning."""
    timeout: float = 6.0
    """Seconds without an answer, to connect or while reading, after which we give up."""

    def __str__(self) -> str:
        return self.url.partition("{file}")[0].rstrip("/")

    def fetch(self, files: Sequence[DataFile]) -> Iterator[tuple[DataFile, bytes]]:
        """Each file and its content, not yet verified; an archive that holds several is fetched once."""
        fetched: dict[str, bytes] = {}
        allowed = sum(file.size for file in files) + SLACK
        for file in files:
            url = self.url.replace("{file}", file.name)
            if url not in fetched:
                fetched = {url: download(url, allowed, self.timeout)}
            member = self.member.replace("{file}", file.name)
            yield file, self.header + unpack(fetched[url], self.packing, member, file.size)


def download(url: str, limit: int, timeout: float) -> bytes:
    """The bytes at an address, at most `limit`; a progress bar on standard error where that is a terminal."""
    request = urllib.request.Request(url, headers={"User-Agent": "dendritree"})
    received = bytearray()
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            promised = int(answer.headers.get("Content-Length") or 0)
            with Progress(url.rpartition("/")[2], promised) as progress:
                while len(received) <= limit and (chunk := answer.read(CHUNK)):
                    received += chunk
                    progress.show(len(received))
    except urllib.error.HTTPError as error:
        error.close()
        raise MissingDataError(f"HTTP status {error.code} for {url}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        raise MissingDataError(_reason(cause, timeout)) from None
    if len(received) > limit:
        raise MissingDataError(f"at most {limit:,} bytes were expected from {url}: got more")
    if len(received) < promised:
        raise MissingDataError(f"{promised:,} bytes were promised by {url}: got {len(received):,}")
    return bytes(received)


def _reason(error: object, timeout: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout:g} s"
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).strip()
