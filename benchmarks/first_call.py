"""What does the first call of a layer cost in a new process: loading the kernels, laying out the trees?

Each measurement is a separate process, in which torch is imported. *First* is the import of dendritree, a layer, a
forward and a backward pass; *second* is another forward and backward pass.

    python benchmarks/first_call.py
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from measure import write_csv

RESULTS = Path(__file__).parent / "results"
CALL = """
import json, time, torch
x, spent = torch.randn(128, 1024, dtype=torch.{dtype}), []
for turn in range(2):
    start = time.perf_counter()
    if not turn:
        from dendritree import DendriticLayer
        layer = DendriticLayer(1024, 10, branching=32, dtype=torch.{dtype}, backend="fused")
    layer(x).sum().backward()
    spent.append(time.perf_counter() - start)
print(json.dumps(spent))
"""


def main() -> None:
    """Measure, write the CSV, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="processes per measurement (default: 5)")
    parser.add_argument("--out", type=Path, default=RESULTS / "first_call.csv", help="where the CSV goes")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for dtype in ("float32", "float64"):
        command = [sys.executable, "-c", CALL.format(dtype=dtype)]
        spent = [json.loads(subprocess.check_output(command)) for _ in range(options.repeats)]
        for what, seconds in zip(("first", "second"), zip(*spent, strict=True), strict=True):
            rows.append({"dtype": dtype, "what": what, "median_s": statistics.median(seconds), "best_s": min(seconds)})
            print(f"{dtype}, {what}: {statistics.median(seconds):.3f} s (best {min(seconds):.3f})", flush=True)
    write_csv(options.out, rows)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
