"""One line on the terminal while files are on their way."""

from __future__ import annotations

import sys

__all__ = ["Progress"]

BAR = 30  # characters


class Progress:
    """What is being done and, where the end is known, a bar; gone afterwards, and silent where no terminal is."""

    def __init__(self, task: str, total: int = 0) -> None:
        self.task, self.total, self.shown = task, total, -1
        self.visible = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        self.show(0)
        return self

    def __exit__(self, *_: object) -> None:
        self._draw("")

    def show(self, done: int) -> None:
        """Say how many bytes are done; drawn once for each per cent, or each megabyte where the end is unknown."""
        share = min(100, 100 * done // self.total) if self.total else done >> 20
        if share == self.shown:
            return
        self.shown = share
        if self.total:
            bar = "#" * (BAR * share // 100)
            self._draw(f"{self.task} [{bar:.<{BAR}}] {done / 1e6:.1f} of {self.total / 1e6:.1f} MB")
        else:
            self._draw(f"{self.task} ... " + (f"{done / 1e6:.1f} MB" if done else ""))

    def _draw(self, line: str) -> None:
        if self.visible:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
