"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from .errors import DendritreeError


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], what: str = "a file") -> Iterator[Path]:
    """A path to write to, which replaces `path` at the end of the block; after an error nothing has changed.

    Args:
        path: the file to write. Its folder is created if needed; a link is followed, not replaced; a device or a pipe
            is rejected.
        what: what the file is, for the error if it cannot be written.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "notes.txt"
    >>> with whole_file(target) as scratch:
    ...     _ = scratch.write_text("all of it")
    ...     before = target.exists()
    >>> before, [path.name for path in target.parent.iterdir()]
    (False, ['notes.txt'])
    """
    try:
        target = Path(path).resolve()
        if target.exists() and not target.is_file() and not target.is_dir():  # it would be replaced, not written to
            raise DendritreeError(f"could not write {what}: {os.fspath(path)} is a device or a pipe, not a file")
        scratch = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            yield scratch
            scratch.replace(target)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        raise DendritreeError(f"could not write {what}: {os.fspath(path)}: {error.strerror or error}") from None


def write_whole(path: str | os.PathLike[str], content: bytes | str, what: str = "a file") -> Path:
    """Write a file in one step, text as UTF-8; return its path.

    >>> import tempfile
    >>> write_whole(Path(tempfile.mkdtemp()) / "notes.txt", "all of it").read_bytes()
    b'all of it'
    """
    with whole_file(path, what) as scratch:
        scratch.write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(path)
