"""What `dendritree reproduce` shows while it runs: a bar a table on a terminal, a line a table elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from ..errors import import_extra
from ..studies.engine.store import RunStore
from ..studies.paper.reproduce import Observer, RunPlan
from ..studies.paper.spec import TableSpec
from ..studies.paper.trials import Job

__all__ = ["make_display"]

Report = Callable[[], object]


def make_display(plan: RunPlan, report: Report) -> PlainDisplay:
    """A display for what standard error is; `report` is called whenever a table is done."""
    return (LiveDisplay if sys.stderr.isatty() else PlainDisplay)(plan, report)


class PlainDisplay(Observer):
    """A line when a table is done."""

    def __init__(self, plan: RunPlan, report: Report) -> None:
        self.plan, self.report = plan, report
        self.totals: dict[str, int] = {}
        self.done: dict[str, int] = {}
        self.start = time.monotonic()

    def planned(self, totals: dict[str, int], done: dict[str, int]) -> None:
        """Remember the numbers."""
        self.totals, self.done = dict(totals), dict(done)

    def stored(self, job: Job, trials: int) -> None:
        """Count."""
        self.done[job.row.table] += trials

    def table_done(self, spec: TableSpec, store: RunStore) -> None:
        """Say so and renew the report."""
        del store
        self.say(f"{spec.table}: {self.totals[spec.table]} trials done, {time.monotonic() - self.start:.0f} s")
        self.report()

    def say(self, text: str) -> None:
        """A line on standard error."""
        print(text, file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to clean up."""


class LiveDisplay(PlainDisplay):
    """A bar a table and one for all: done, left, rate, time to go."""

    def __init__(self, plan: RunPlan, report: Report) -> None:
        super().__init__(plan, report)
        progress = import_extra("rich.progress", extra="experiments")
        console = import_extra("rich.console", extra="experiments").Console(stderr=True)
        self.bars: Any = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeElapsedColumn(),
            progress.TextColumn("to go"),
            progress.TimeRemainingColumn(),
            console=console,
        )
        tables = [spec.table for spec in plan.tables]
        self.of_table = {table: self.bars.add_task(table, total=None, start=False, rate="") for table in tables}
        self.of_all = self.bars.add_task("all", total=None, rate="")
        self.begun_with = 0

    def planned(self, totals: dict[str, int], done: dict[str, int]) -> None:
        """Set the bars."""
        if not self.totals:
            self.begun_with = sum(done.values())
        super().planned(totals, done)
        for table, bar in self.of_table.items():
            self.bars.update(bar, total=totals[table], completed=done[table])
        self.bars.update(self.of_all, total=sum(totals.values()), completed=sum(done.values()))

    def stored(self, job: Job, trials: int) -> None:
        """Move the bars."""
        super().stored(job, trials)
        rate = f"{(sum(self.done.values()) - self.begun_with) / (time.monotonic() - self.start):.1f} trials/s"
        bar = self.of_table[job.row.table]
        self.bars.start_task(bar)
        self.bars.update(bar, advance=trials)
        self.bars.update(self.of_all, advance=trials, rate=rate)

    def table_done(self, spec: TableSpec, store: RunStore) -> None:
        """Renew the report; the bar is full."""
        del store
        self.bars.stop_task(self.of_table[spec.table])
        self.report()

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the bars on the screen."""
        self.bars.stop()
