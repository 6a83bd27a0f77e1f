"""Progress of a command: bars if standard error is a terminal, otherwise lines."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

WIDE = 110
"""Columns of a terminal from which there is room for long bars."""
BESIDE_STEP = 60
"""Columns that a narrower one keeps for everything besides the name of a step."""


class Progress:
    """An observer of studies, called with a step, how many of its items are done, and how many there are.

    On a terminal, every step has a bar. Otherwise a finished step is a line, and so is every call with a note.

    Args:
        items: what is counted.
        counted: steps that count something else, and what that is.
        overall: the name of an additional bar for all steps together, for a study that names all steps at its start.
    """

    def __init__(
        self, items: str = "trials", *, counted: Mapping[str, str] | None = None, overall: str | None = None
    ) -> None:
        self.items, self.counted, self.overall = items, counted or {}, overall
        self.start = time.monotonic()
        self.counts: dict[str, tuple[int, int]] = {}
        self.tasks: dict[str, TaskID] = {}
        self.bars = _bars() if sys.stderr.isatty() else None

    def __call__(self, what: str, done: int, total: int, note: str = "") -> None:
        """Show that `done` of `total` items of the step `what` are done.

        Args:
            what: the step.
            done: how many of its items are done.
            total: how many it has; may grow.
            note: a short text on the last item. A line shows all of it, a bar only the part after the last semicolon:
                `accuracy 0.9, 850 parameters; best accuracy 0.92`.
        """
        before = self.counts.get(what)
        self.counts[what] = done, total
        if self.bars is not None:
            if self.overall is not None:
                finished, planned = (sum(column) for column in zip(*self.counts.values(), strict=True))
                self._move(self.bars, self.overall, finished, planned)
            self._move(self.bars, what, done, total, note.rpartition("; ")[2])
        elif note:
            print(f"{what} {done} of {total}: {note}", file=sys.stderr, flush=True)
        elif done == total and before != (done, total):
            count = f"{total} {self.counted.get(what, self.items)}, " if total > 1 else ""
            print(f"{what}: {count}{time.monotonic() - self.start:.0f} s", file=sys.stderr, flush=True)

    def _move(self, bars: Bars, name: str, done: int, total: int, note: str = "") -> None:
        """Move a bar; it ends with the note, or with the rate."""
        if name not in self.tasks:
            self.tasks[name] = bars.add_task(name, completed=done, total=total, note="")
        bars.update(self.tasks[name], completed=done, total=total)
        task = bars.tasks[self.tasks[name]]
        speed = task.finished_speed or task.speed
        rate = f"{speed:.1f} {self.counted.get(name, self.items)}/s" if speed else ""
        bars.update(self.tasks[name], note=note or rate)

    def __enter__(self) -> Self:
        if self.bars is not None:
            self.bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the bars on the screen."""
        if self.bars is not None:
            self.bars.stop()


def _bars() -> Bars:
    """Bars on standard error: step, bar, count, time to go (at the end: time taken), note or rate."""
    from rich import progress
    from rich.console import Console
    from rich.table import Column

    console = Console(stderr=True)
    wide = console.width >= WIDE
    step = None if wide else max(12, console.width - BESIDE_STEP)
    return progress.Progress(
        progress.TextColumn("{task.description}", table_column=Column(no_wrap=True, max_width=step)),
        progress.BarColumn(bar_width=40 if wide else 10),
        progress.MofNCompleteColumn(table_column=Column(no_wrap=True)),
        progress.TimeRemainingColumn(elapsed_when_finished=True, table_column=Column(no_wrap=True)),
        progress.TextColumn("{task.fields[note]}"),
        console=console,
        speed_estimate_period=600,  # seconds: a trial may take minutes
    )


@contextlib.contextmanager
def resumable(what: object) -> Iterator[None]:
    """On Ctrl-C, say that `what` keeps the finished work."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; {what} keeps the finished work, and the same command resumes it") from None
