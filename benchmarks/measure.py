"""Time several callables in one interleaved run, and write the measurements with a description of the machine."""

from __future__ import annotations

import csv
import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import torch

import dendritree
from dendritree.ops import native

__all__ = ["machine", "timed", "write_csv"]

WARM_UP = 3
WINDOW = 0.5
"""Seconds of measurements between two checks of the load from other programs."""
QUIET = 0.1
"""The share of the machine that other programs may use."""
PATIENCE = 6
"""How many times longer than planned a measurement may wait for quiet windows."""


def machine() -> dict[str, str]:
    """What a measurement depends on: processor, threads, versions, date."""
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    return {
        "cpu": model,
        "cores": str(os.cpu_count()),
        "threads": str(torch.get_num_threads()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "kernels": "none" if native.kernels is None else native.kernels.selected,
        "dendritree": dendritree.__version__,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def timed(callables: Mapping[str, Callable[[], object]], *, seconds: float = 2.0) -> dict[str, dict[str, float]]:
    """Quartiles in milliseconds of callables that take turns, in random order, for about `seconds`.

    Taking turns spreads the load from other programs over all of them. A callable that would use more than its share of
    the time takes fewer turns. Turns are taken in windows; a window in which other programs were busy is discarded,
    within the limits of `PATIENCE`, and `busy` is the share of the machine that others used in those that count.
    """
    once = {}
    for name, call in callables.items():
        for _ in range(WARM_UP):
            start = time.perf_counter()
            call()
            once[name] = time.perf_counter() - start
            if once[name] > seconds / 4:
                break  # slow enough that one call is sufficient
    share = seconds / len(callables)
    turns = {name: max(3, min(2000, int(share / max(spent, 1e-7)))) for name, spent in once.items()}
    rounds, times = max(turns.values()), {name: list[float]() for name in callables}
    generator, load, busy = random.Random(0), Load(), list[float]()
    turn, give_up = 0, time.perf_counter() + PATIENCE * seconds
    while turn < rounds:
        window: list[tuple[str, float]] = []
        end, first = time.perf_counter() + WINDOW, turn
        while turn < rounds and (turn == first or time.perf_counter() < end):
            for name in generator.sample(list(callables), len(callables)):
                if turn * turns[name] // rounds != (turn + 1) * turns[name] // rounds:
                    start = time.perf_counter()
                    callables[name]()
                    window.append((name, 1e3 * (time.perf_counter() - start)))
            turn += 1
        share_of_others = load.of_others()
        if share_of_others > QUIET and time.perf_counter() < give_up:
            turn = first
            continue
        busy.append(share_of_others)
        for name, spent in window:
            times[name].append(spent)
    result = {}
    for name, values in times.items():
        low, median, high = statistics.quantiles(values, n=4)
        result[name] = {"median_ms": median, "q25_ms": low, "q75_ms": high, "repeats": len(values)}
        result[name]["busy"] = statistics.fmean(busy)
    return result


class Load:
    """How much of the machine other programs used since the last call; 0 if the system does not report it."""

    def __init__(self) -> None:
        self.last = self._now()

    def of_others(self) -> float:
        """Their share of all cores, including other virtual machines on the same processor."""
        before, self.last = self.last, self._now()
        busy, own, wall = (now - then for now, then in zip(self.last, before, strict=True))
        return max(0.0, busy - own) / max(wall, 1e-9) / (os.cpu_count() or 1)

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Busy seconds of all cores, busy seconds of this process, and elapsed seconds."""
        busy = 0.0
        if Path("/proc/stat").exists():
            user, nice, system, _idle, _waiting, *more = map(int, Path("/proc/stat").read_text().split()[1:9])
            busy = (user + nice + system + sum(more)) / os.sysconf("SC_CLK_TCK")
        return busy, time.process_time(), time.perf_counter()


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """One row per measurement, each with the machine it was taken on."""
    about = machine()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*rows[0], *about])
        writer.writeheader()
        for row in rows:
            cells = {key: f"{value:.5g}" if isinstance(value, float) else value for key, value in row.items()}
            writer.writerow({**cells, **about})
