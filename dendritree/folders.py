"""Folders that we write into: one writer, our files change together, files of others stay, links are followed.

New files are written to a hidden folder inside the real one. Renaming that folder is the moment of the change: before
it, the old files are untouched; after it, the new ones are moved to their places, by us or, if we are killed on the
way, by whoever opens the folder next. Nothing else in the folder is ever moved, replaced or removed.

    model/
      .dendritree.lock       while somebody writes
      .dendritree.1f0c...    new files, not yet decided; removed by the next writer if we are killed
      .dendritree.decided    new files that are to take their places
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
"""How long a writer waits for another one, who needs well under a second unless it has reserved the folder for long."""


@contextlib.contextmanager
def reserved(
    folder: str | os.PathLike[str], what: str = "a folder", *, patience: float = PATIENCE_SECONDS
) -> Iterator[Path]:
    """Make sure of a folder, made if needed, in which nobody else of us writes during the block; gives its real path.

    Changes that a killed process had decided are finished first. A new folder that is still empty after an error is
    removed again.

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
                if lock.held:  # what is there is of a killed process: nobody else writes
                    for path in place.glob(f"{PREFIX}{'[0-9a-f]' * 32}"):
                        shutil.rmtree(path)
            try:
                yield place
            finally:
                with contextlib.suppress(OSError):  # after Ctrl-C in the middle of a change; else there is nothing
                    _finish(place)
    except BaseException:
        with contextlib.suppress(OSError):
            for each in made:
                each.rmdir()
        raise


@contextlib.contextmanager
def files_together(place: Path, ours: Collection[str] = (), what: str = "a folder") -> Iterator[Path]:
    """A new folder to fill, whose files take their places in `place` together at the end of the block.

    On an error nothing changes. Files in the way that are not ours raise an error.

    Args:
        place: a folder that is `reserved`.
        ours: names of earlier files of ours, as `csv/scores.csv`; those that are not written again are removed.
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
    """Before reading: finish changes that a killed process had decided, or wait for the one that is about to.

    Where we may not write, or have to wait for long, nothing is done.

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
    """Reject a new file whose place in a folder is taken by what is not ours.

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
        except FileNotFoundError:  # a process that had made the folder has failed and removed it again
            if attempt == 10:
                raise
    raise AssertionError


def _files_in(folder: Path) -> list[str]:
    """All files below a folder; in the reverse order of their names, so that a config comes after its weights."""
    found = (path for path in folder.rglob("*") if not path.is_dir())
    return sorted((path.relative_to(folder).as_posix() for path in found), reverse=True)


def _finish(place: Path, *, ours: bool = True) -> None:
    """Move files that are decided to their places. The caller has reserved the folder.

    What we have not decided ourselves stays in the folder, whatever its links say: a folder that was made to harm would
    lead it to any file of the user's.
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
    """Wait until the content of a file is on the disk: after a power cut too, a change is whole or did not happen."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
