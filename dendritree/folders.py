"""Folders with one writer at a time, whose files change together; other files in them are kept, links are followed.

New files are written to a hidden folder inside the real one. Renaming the hidden folder commits the change: before
that, the old files are untouched; after it, the new files are moved into place, by us or, if we are killed meanwhile,
by the next process that opens the folder. Nothing else in the folder is ever moved, replaced or removed.

    model/
      .dendritree.lock       exists while a process writes
      .dendritree.1f0c...    new files, not yet committed; removed by the next writer if we are killed
      .dendritree.decided    new files of a committed change, to be moved into place
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path

from .errors import DendritreeError
from .files import Lock, followed, reject_device, scratch_beside, writable

PREFIX = ".dendritree."
LOCK, DECIDED = f"{PREFIX}lock", f"{PREFIX}decided"
PATIENCE_SECONDS = 10.0
"""How long a writer waits for another one, which takes well under a second unless it reserves the folder for longer."""


@contextlib.contextmanager
def reserved(
    folder: str | os.PathLike[str], what: str = "a folder", *, patience: float = PATIENCE_SECONDS
) -> Iterator[Path]:
    """Reserve a folder for one writer, this process, during the block; yields its real path.

    The folder is created if needed. A change that a killed process had committed is finished first. A new folder that
    is still empty after an error is removed again.

    Args:
        folder: the folder; a link is followed.
        what: what the folder is, for the error if it cannot be written.
        patience: seconds to wait for another writer before raising.

    >>> import tempfile
    >>> with reserved(Path(tempfile.mkdtemp()) / "model") as place:
    ...     [path.name for path in place.iterdir()]
    ['.dendritree.lock']
    """
    place = followed(folder)
    made = [each for each in (place, *place.parents) if not os.path.lexists(each)]
    try:
        with contextlib.ExitStack() as stack:
            with writable(folder, what):
                lock = stack.enter_context(_lock(place, patience))
                _finish(place, ours=False)
                if lock.held:  # nobody else is writing: these are leftovers of a killed process
                    for path in place.glob(f"{PREFIX}{'[0-9a-f]' * 32}"):
                        shutil.rmtree(path)
            try:
                yield place
            finally:
                with contextlib.suppress(OSError):  # after Ctrl-C during a change; otherwise there is nothing to do
                    _finish(place)
    except BaseException:
        with contextlib.suppress(OSError):
            for each in made:
                each.rmdir()
        raise


@contextlib.contextmanager
def files_together(place: Path, ours: Collection[str] = (), what: str = "a folder") -> Iterator[Path]:
    """A new folder to fill, whose files are moved to `place` together at the end of the block.

    On an error nothing changes. A file that is in the way and not ours is an error.

    Args:
        place: a folder that is `reserved`.
        ours: names of files that we wrote before, such as `csv/scores.csv`; those not written again are removed.
        what: what the folder is, for the error if it cannot be written.

    >>> import tempfile
    >>> with reserved(Path(tempfile.mkdtemp()) / "model") as place:
    ...     with files_together(place) as fresh:
    ...         _ = (fresh / "config.json").write_text("{}")
    ...         before = (place / "config.json").exists()
    >>> before, [path.name for path in place.iterdir()]
    (False, ['config.json'])
    """
    fresh = place / f"{PREFIX}{uuid.uuid4().hex}"
    with writable(place, what):
        try:
            fresh.mkdir()
            yield fresh
            written = _files_in(fresh)
            for name in written:
                check_free(place, name, ours)
                _flush(fresh / name)
            fresh.rename(place / DECIDED)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        _finish(place)
    for name in sorted({*ours} - {*written}):
        with contextlib.suppress(OSError):
            (place / name).unlink()


def finish_changes(folder: str | os.PathLike[str]) -> None:
    """Before reading a folder: finish a change that a killed process had committed, or wait until its writer has.

    Nothing is done if we may not write, or would have to wait for long.

    >>> import tempfile
    >>> finish_changes(tempfile.mkdtemp())
    """
    if (followed(folder) / DECIDED).is_dir():
        with contextlib.suppress(DendritreeError), reserved(folder):
            pass


def files_of_others(folder: str | os.PathLike[str], ours: Collection[str] = ()) -> list[str]:
    """Names in a folder that are neither ours nor hidden, sorted; none if there is no such folder.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in (".gitignore", "config.json", "letter.txt"):
    ...     (folder / name).touch()
    >>> files_of_others(folder, ["config.json"])
    ['letter.txt']
    """
    try:
        names = [path.name for path in Path(folder).iterdir()]
    except FileNotFoundError:
        return []
    return sorted(name for name in names if not name.startswith(".") and name not in ours)


def check_free(place: Path, name: str, ours: Collection[str] = ()) -> None:
    """Reject a new file if something that is not ours is already at its path in a folder.

    >>> check_free(Path("nowhere"), "csv/scores.csv")
    """
    target = place / name
    between = [place.joinpath(*Path(name).parts[:depth]) for depth in range(1, len(Path(name).parts))]
    taken = [each for each in between if os.path.lexists(each) and not each.is_dir()]
    if target.is_dir() or (os.path.lexists(target) and name not in ours):
        taken.append(target)
    reject_device(target, "a file of a folder")
    if taken:
        raise DendritreeError(
            f"existing files are never replaced: {taken[0]} is in the way; move it, or write elsewhere"
        )


def _lock(place: Path, patience: float) -> Lock:
    for attempt in itertools.count():
        place.mkdir(parents=True, exist_ok=True)
        try:
            return Lock(place / LOCK, on_wait=lambda _: None, patience=patience, stays=False)
        except FileNotFoundError:  # the process that had created the folder has failed and removed it
            if attempt == 10:
                raise
    raise AssertionError


def _files_in(folder: Path) -> list[str]:
    """All files below a folder; in the reverse order of their names, so that a config comes after its weights."""
    found = (path for path in folder.rglob("*") if not path.is_dir())
    return sorted((path.relative_to(folder).as_posix() for path in found), reverse=True)


def _finish(place: Path, *, ours: bool = True) -> None:
    """Move the files of a committed change into place. The caller has reserved the folder.

    Unless the change is `ours`, links out of the folder are not followed: a malicious folder could use them to
    overwrite any file of the user.
    """
    decided = place / DECIDED
    if decided.is_symlink() or not decided.is_dir():
        return
    for name in _files_in(decided):
        target = followed(place / name) if ours else place / name
        if not ours and not followed(target.parent).is_relative_to(place):
            raise DendritreeError(f"an unfinished change must stay in its folder: {target.parent} leads out of {place}")
        target.parent.mkdir(parents=True, exist_ok=True)
        _move(decided / name, target)
    shutil.rmtree(decided)


def _move(source: Path, target: Path) -> None:
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        scratch = scratch_beside(target)  # a link led to another drive
        try:
            shutil.copyfile(source, scratch)
            scratch.replace(target)
        finally:
            scratch.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Wait until the content of a file is on disk: a change is then all or nothing even after a power failure."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
