"""Progress of a command: bars if standard error is a terminal, otherwise lines."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

from .messages import tell

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

WIDE = 110
"""Minimum width of a terminal for long bars, in columns."""
BESIDE_STEP = 60
"""Columns that a narrower terminal reserves for everything besides the name of a step."""
EVERY = 10.0
"""Minimum seconds between two lines about unfinished steps."""
ALL = ""
"""The key of all steps together."""


class Progress:
    """An observer of studies, called with a step, how many of its items are done, and how many there are.

    On a terminal, every step has a bar with the time left. Otherwise, every finished step is reported on
    a line, and unfinished ones from time to time. Times include only the step's own items.

    Args:
        items: what is counted.
        overall: the name of an additional bar for all steps together, for a study that names all steps at its start.
    """

    def __init__(self, items: str = "trials", *, overall: str | None = None) -> None:
        self.items, self.overall = items, overall
        self.latest = self.told = time.monotonic()
        self.counts: dict[str, tuple[int, int]] = {}
        self.spent: dict[str, float] = {}
        self.ran: Counter[str] = Counter()
        self.tasks: dict[str, TaskID] = {}
        self.bars = _bars() if sys.stderr.isatty() else None

    def __call__(self, what: str, done: int, total: int, note: str = "") -> None:
        """Show that `done` of `total` items of the step `what` are done.

        Args:
            what: the step.
            done: how many of its items are done.
            total: how many it has; may grow.
            note: a short text on the last item.
        """
        now, before = time.monotonic(), self.counts.get(what)
        self.counts[what] = done, total
        if before is not None and done > before[0]:  # the first call reports what an earlier run has done
            for name in (what, ALL):
                self.spent[name] = self.spent.get(name, 0.0) + now - self.latest
                self.ran[name] += done - before[0]
        self.latest = now
        if self.bars is not None:
            if self.overall is not None:
                finished, planned = (sum(column) for column in zip(*self.counts.values(), strict=True))
                self._move(self.bars, self.overall, finished, planned, "")
            self._move(self.bars, what, done, total, note)
        elif done and before != (done, total) and (done == total or now - self.told >= EVERY):
            self.told = now
            count = (
                f"{total} {self.items}" if done == total > 1 else f"{done} of {total} {self.items}" if total > 1 else ""
            )
            parts = (count, self._time(what, done, total), note)
            print(f"{what}: {', '.join(filter(None, parts))}", file=sys.stderr, flush=True)

    def _time(self, what: str, done: int, total: int) -> str:
        """The time that a finished step took, or the time left, as far as this run can tell."""
        if done < total:
            ran = self.ran[what]
            return f"{_clock(self.spent[what] / ran * (total - done))} left" if ran else ""
        return _clock(self.spent.get(what, 0.0))

    def _move(self, bars: Bars, name: str, done: int, total: int, note: str) -> None:
        if name not in self.tasks:
            self.tasks[name] = bars.add_task(name, total=total, note="", time="")
        key = ALL if name == self.overall else name
        bars.update(self.tasks[name], completed=done, total=total, note=note, time=self._time(key, done, total))

    def __enter__(self) -> Self:
        if self.bars is not None:
            self.bars.start()
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._stop)
        return self

    def _stop(self, *_: object) -> None:
        """On Ctrl-C, say so at once: to end the workers takes a moment."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.bars is not None:
            self.bars.stop()
        tell(f"stopping: ending the {self.items} that are running")
        raise KeyboardInterrupt

    def __exit__(self, *error: object) -> None:
        """Leave the bars on the screen."""
        if signal.getsignal(signal.SIGINT) == self._stop:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.bars is not None:
            self.bars.stop()


def _clock(seconds: float) -> str:
    """A time to the second.

    >>> _clock(7.4), _clock(200), _clock(7300)
    ('7 s', '3 min 20 s', '2 h 1 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _bars() -> Bars:
    """Bars on standard error: spinner, step, bar, count, time left (at the end: time taken), note."""
    from rich import progress
    from rich.console import Console
    from rich.table import Column

    console = Console(stderr=True)
    wide = console.width >= WIDE
    step = None if wide else max(12, console.width - BESIDE_STEP)
    return progress.Progress(
        progress.SpinnerColumn(finished_text=" "),
        progress.TextColumn("{task.description}", table_column=Column(no_wrap=True, max_width=step)),
        progress.BarColumn(bar_width=40 if wide else 10),
        progress.MofNCompleteColumn(table_column=Column(no_wrap=True)),
        progress.TextColumn("{task.fields[time]}", table_column=Column(no_wrap=True)),
        progress.TextColumn("{task.fields[note]}"),
        console=console,
    )


@contextlib.contextmanager
def resumable(what: object) -> Iterator[None]:
    """On Ctrl-C, say that `what` keeps the finished work."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; {what} keeps the finished work, and the same command resumes it") from None
