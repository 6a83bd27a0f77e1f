"""How close is the kernel to the limits of this machine?

Measures the machine's limits on one thread: multiply-adds per second of a large matmul, and bytes per second from
caches and from memory in the simplest loop. Then the forward pass of ten neurons on 1024 shared inputs.

    python benchmarks/roofline.py
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from measure import write_csv

from dendritree import DendriticLayer

RESULTS = Path(__file__).parent / "results"


def add_rows(out: np.ndarray, a: np.ndarray, turns: int) -> None:  # type: ignore[type-arg]
    """Read one array and read and write another."""
    for _ in range(turns):
        np.add(out, a, out=out)


def best_seconds(call: object, repeats: int = 7) -> float:
    """The fastest of several runs: a limit is what the machine does when nothing disturbs it."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Measure, write the CSV, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS / "roofline.csv", help="where the CSV goes")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, object]] = []

    def add(what: str, figure: float, unit: str) -> None:
        rows.append({"what": what, "figure": figure, "unit": unit})
        print(f"{what:58}{figure:10.2f} {unit}", flush=True)

    a = torch.randn(512, 512)
    add("multiply-adds, torch.mm of 512 x 512", 512**3 / best_seconds(lambda: a @ a, repeats=100) / 1e9, "G/s")
    for kilobytes, where in ((128, "second cache"), (4096, "third cache"), (131072, "memory")):
        x, out = np.ones(kilobytes * 256, np.float32), np.zeros(kilobytes * 256, np.float32)
        turns = max(1, 200_000 // kilobytes)
        add_rows(out, x, 1)
        seconds = best_seconds(lambda x=x, out=out, turns=turns: add_rows(out, x, turns))  # type: ignore[misc]
        add(f"bytes moved, {where} (2 x {kilobytes} kB)", 3 * kilobytes * 1024 * turns / seconds / 1e9, "GB/s")
    x = torch.randn(1024, 128).t()  # features-major already, so no transpose is timed
    for branching in (2, 4, 32):
        layer = DendriticLayer(1024, 10, branching=branching, wiring="shared", backend="fused")
        forest = layer.forest
        with torch.no_grad():
            layer(x)
            seconds = best_seconds(lambda layer=layer: layer(x), repeats=300)  # type: ignore[misc]
        add(f"forward, ten neurons, b={branching}: multiply-adds", forest.edges * 128 / seconds / 1e9, "G/s")
        moved = 4 * 128 * (forest.edges + 2 * forest.nodes)  # every edge reads a row, every node writes one
        add(f"forward, ten neurons, b={branching}: bytes of rows moved", moved / seconds / 1e9, "GB/s")
    write_csv(options.out, rows)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
