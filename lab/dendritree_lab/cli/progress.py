"""Progress of a command: bars if standard error is a terminal, otherwise lines."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from dendritree.errors import import_extra

WIDE = 110
"""Columns of a terminal from which there is room for a note beside a long bar, the rate and the time taken."""
BESIDE_STEP = 58
"""Columns that a narrower one keeps for the count, the time to go and the note."""


class Progress:
    """An observer of studies, called with a step, how many of its items are done, and how many there are.

    On a terminal, every step has a bar. Otherwise a finished step is a line, and so is every call with a note.

    Args:
        items: what is counted.
        counted: steps that count something else, and what that is.
        on_done: called with the name of a step when all its items are done.
        overall: the name of an additional bar for all steps together, for a study that names all steps at its start.
    """

    def __init__(
        self,
        items: str = "trials",
        *,
        counted: Mapping[str, str] | None = None,
        on_done: Callable[[str], object] | None = None,
        overall: str | None = None,
    ) -> None:
        self.items, self.counted, self.on_done, self.overall = items, counted or {}, on_done, overall
        self.start = time.monotonic()
        self.counts: dict[str, tuple[int, int]] = {}
        self.finished: set[tuple[str, int]] = set()
        self.bars: dict[str, Any] = {}
        self.live: Any = _live() if sys.stderr.isatty() else None

    def __call__(self, what: str, done: int, total: int, note: str = "") -> None:
        """Show that `done` of `total` items of the step `what` are done.

        Args:
            what: the step.
            done: how many of its items are done.
            total: how many it has; may grow.
            note: a short text on the last item. A line shows all of it, a bar only the part after the last semicolon:
                `accuracy 0.9, 850 parameters; best accuracy 0.92`.
        """
        self.counts[what] = done, total
        is_done = done == total and (what, total) not in self.finished
        if self.live is not None:
            if self.overall is not None:
                self._move_bar(self.overall, *(sum(column) for column in zip(*self.counts.values(), strict=True)))
            self._move_bar(what, done, total, note.rpartition("; ")[2])
        elif note:
            print(f"{what} {done} of {total}: {note}", file=sys.stderr, flush=True)
        elif is_done:
            count = f"{total} {self._items(what)}, " if total > 1 else ""
            print(f"{what}: {count}{time.monotonic() - self.start:.0f} s", file=sys.stderr, flush=True)
        if is_done:
            self.finished.add((what, total))
            if self.on_done is not None:
                self.on_done(what)

    def _move_bar(self, name: str, done: int, total: int, note: str = "") -> None:
        if name not in self.bars:
            self.bars[name] = self.live.add_task(name, completed=done, total=total, rate="", note="")
        bar = self.bars[name]
        if note and self.live.console.width < WIDE:
            self.live.columns = _columns(self.live.console.width)
        self.live.update(bar, completed=done, total=total, note=note)
        if speed := self.live.tasks[bar].finished_speed or self.live.tasks[bar].speed:
            self.live.update(bar, rate=f"{speed:.1f} {self._items(name)}/s")

    def _items(self, step: str) -> str:
        return self.counted.get(step, self.items)

    def __enter__(self) -> Self:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the bars on the screen."""
        if self.live is not None:
            self.live.stop()


def _live() -> Any:
    """Bars on standard error."""
    progress = import_extra("rich.progress", extra="experiments")
    return progress.Progress(
        *_columns(WIDE),
        console=progress.Console(stderr=True),
        speed_estimate_period=600,  # seconds: a trial may take minutes
    )


def _columns(width: int) -> list[Any]:
    """Step, bar, done, rate, time taken, time to go, note; without rate and time taken where a note needs the room."""
    progress = import_extra("rich.progress", extra="experiments")
    column = functools.partial(import_extra("rich.table", extra="experiments").Column, no_wrap=True)
    wide = width >= WIDE
    step = column() if wide else column(max_width=max(12, width - BESIDE_STEP))
    columns = [
        progress.TextColumn("{task.description}", table_column=step),
        progress.BarColumn(bar_width=40 if wide else 10),
        progress.MofNCompleteColumn(table_column=column()),
        wide and progress.TextColumn("{task.fields[rate]}"),
        wide and progress.TimeElapsedColumn(table_column=column()),
        progress.TextColumn("to go"),
        progress.TimeRemainingColumn(table_column=column()),
        progress.TextColumn("{task.fields[note]}"),
    ]
    return list(filter(None, columns))


@contextlib.contextmanager
def resumable(what: str, kept: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """On Ctrl-C, say that `what` keeps the finished work, if it does."""
    try:
        yield
    except KeyboardInterrupt:
        if not kept():
            raise
        raise KeyboardInterrupt(f"stopped; {what} keeps the finished work, and the same command resumes it") from None
