"""Timing several callables in one interleaved run, and writing what was measured beside what measured it."""

from __future__ import annotations

import csv
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numba
import torch

import dendritree

__all__ = ["machine", "timed", "write_csv"]

WARM_UP = 3


def machine() -> dict[str, str]:
    """What a figure depends on: processor, threads, versions, date."""
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
        "numba": numba.__version__,
        "dendritree": dendritree.__version__,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def timed(callables: Mapping[str, Callable[[], object]], *, seconds: float = 2.0) -> dict[str, dict[str, float]]:
    """Median and quartiles, in milliseconds, of callables that take turns for about so many seconds.

    Taking turns spreads what the machine does besides over all of them. A callable that would use up more than its
    share of the time takes fewer turns.
    """
    once = {}
    for name, call in callables.items():
        for _ in range(WARM_UP):
            start = time.perf_counter()
            call()
            once[name] = time.perf_counter() - start
            if once[name] > seconds / 4:
                break  # slow enough for a first call to tell
    share = seconds / len(callables)
    turns = {name: max(3, min(2000, int(share / max(spent, 1e-7)))) for name, spent in once.items()}
    rounds, times = max(turns.values()), {name: list[float]() for name in callables}
    for turn in range(rounds):
        for name, call in callables.items():
            if turn * turns[name] // rounds != (turn + 1) * turns[name] // rounds:
                start = time.perf_counter()
                call()
                times[name].append(1e3 * (time.perf_counter() - start))
    result = {}
    for name, values in times.items():
        low, median, high = statistics.quantiles(values, n=4)
        result[name] = {"median_ms": median, "q25_ms": low, "q75_ms": high, "repeats": len(values)}
    return result


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
