"""The content of a data file: its size and digest, how it is unpacked and verified."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from typing import Literal

from dendritree.errors import FormatError

Packing = Literal["plain", "gzip", "zip", "tar"]
"""How content is packed."""


@dataclass(frozen=True)
class DataFile:
    """One file of a data set. Size and digest are those of the unpacked bytes."""

    name: str
    size: int
    digest: str
    """Algorithm and hexadecimal digest, as in `md5:6bbc...`."""


def check_content(file: DataFile, content: bytes, where: str) -> None:
    """Raise for content that is not that of the genuine file.

    >>> labels = DataFile("labels", 3, "md5:900150983cd24fb0d6963f7d28e17f72")
    >>> check_content(labels, b"abc", "here")
    """
    algorithm, _, expected = file.digest.partition(":")
    found = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
    if found == expected:
        return
    size = "" if len(content) == file.size else f", {len(content):,} bytes instead of {file.size:,}"
    raise FormatError(f"{file.name} must have {algorithm} {expected}: got {found}{size} ({where})")


def unpack(packed: bytes, packing: Packing, member: str, limit: int) -> bytes:
    """The unpacked content, where `member` names the part of an archive; at most `limit` bytes plus one.

    The limit keeps a small file from filling the memory; the extra byte makes the verification fail.
    """
    try:
        match packing:
            case "plain":
                return packed
            case "gzip":
                return _gunzip(packed, limit + 1)
            case "zip":
                with zipfile.ZipFile(io.BytesIO(packed)) as archive, archive.open(member) as part:
                    return part.read(limit + 1)
            case "tar":
                with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
                    stream = tar.extractfile(member)
                    if stream is None:
                        raise KeyError(f"{member} is not a file")
                    return stream.read(limit + 1)
    except (zlib.error, zipfile.BadZipFile, tarfile.TarError, EOFError, KeyError, OSError) as error:
        raise FormatError(f"{member} must be intact {packing} data: {error}") from None


def _gunzip(packed: bytes, limit: int) -> bytes:
    decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # 16: with the header and checksum of gzip
    content = decompressor.decompress(packed, limit)
    if not decompressor.eof and len(content) < limit:
        raise EOFError(f"it ends too early, after {len(packed):,} bytes")
    return content
