"""What does the first call of a layer cost: compiling the kernels, and loading them in a later process?

Each measurement is a separate process; a cache that is empty for the first call is used again by the second. Times are
those of a forward and a backward pass, after `import dendritree`; the time of a second pass in the same process is
subtracted.

    python benchmarks/first_call.py
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import write_csv

RESULTS = Path(__file__).parent / "results"
CALL = """
import time, torch
from dendritree import DendriticLayer
layer, x = DendriticLayer(1024, 10, branching=32, dtype=getattr(torch, "{dtype}")), torch.randn(128, 1024)
spent = []
for _ in range(2):
    start = time.perf_counter()
    layer(x.to(layer.weight.dtype)).sum().backward()
    spent.append(time.perf_counter() - start)
print(spent[0] - spent[1])
"""


def first_call(dtype: str, cache: str) -> float:
    """Seconds of the first call in a new process."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", CALL.format(dtype=dtype)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def main() -> None:
    """Measure, write the CSV, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="processes per measurement (default: 3)")
    parser.add_argument("--out", type=Path, default=RESULTS / "first_call.csv", help="where the CSV goes")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for dtype in ("float32", "float64"):
        compiled, loaded = [], []
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as cache:
                compiled.append(first_call(dtype, cache))
                loaded.append(first_call(dtype, cache))
        for what, seconds in (("compile", compiled), ("load from the cache", loaded)):
            rows.append({"dtype": dtype, "what": what, "median_s": statistics.median(seconds), "best_s": min(seconds)})
            print(f"{dtype}, {what}: {statistics.median(seconds):.2f} s (best {min(seconds):.2f})", flush=True)
    write_csv(options.out, rows)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
