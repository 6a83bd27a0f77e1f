"""What a command shows while it works: bars where standard error is a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any, Self

from ..errors import import_extra

__all__ = ["LiveBar", "StepBar"]


class LiveBar:
    """A bar that is on the screen as long as the block lasts; `live` is None where there is no terminal.

    Args:
        rich: imports `rich.progress`, or says which extra to install; asked only where there is a terminal.
        texts: fields to show at the end of a bar, such as `"{task.fields[best]}"`.
    """

    def __init__(self, rich: Callable[[], ModuleType], *texts: str) -> None:
        self.live: Any = None
        if sys.stderr.isatty():
            progress = rich()
            columns = (*progress.Progress.get_default_columns(), *map(progress.TextColumn, texts))
            self.live = progress.Progress(*columns, console=progress.Console(stderr=True))

    def __enter__(self) -> Self:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()


class StepBar(LiveBar):
    """A bar a step of the work on a terminal; elsewhere a line when a step is done."""

    def __init__(self, of: str = "trials") -> None:
        super().__init__(lambda: import_extra("rich.progress", extra="experiments"))
        self.of, self.start = of, time.monotonic()
        self.bars: dict[str, Any] = {}

    def __call__(self, what: str, done: int, total: int, note: str = "") -> None:
        """Show that `done` of `total` are there."""
        if self.live is None:
            if done == total:
                count = f"{total} {self.of}, " if total > 1 else ""
                print(f"{what}: {count}{time.monotonic() - self.start:.0f} s", file=sys.stderr, flush=True)
            return
        if what not in self.bars:
            self.bars[what] = self.live.add_task(what, total=total)
        self.live.update(self.bars[what], completed=done)
