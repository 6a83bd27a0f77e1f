"""How do time and memory grow with the number of inputs?

One neuron over 2^10 ... 2^22 inputs, forward + backward, each size in a separate process, to measure its peak memory.
Writes one CSV row per size: milliseconds, nanoseconds per synapse and sample, peak memory.

    python benchmarks/layer_scaling.py            2^10 ... 2^22
    python benchmarks/layer_scaling.py --short    2^10 ... 2^16
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

import torch
from measure import timed, write_csv

from dendritree import DendriticLayer

RESULTS = Path(__file__).parent / "results"
BATCH = 128


def one(exponent: int, branching: int) -> dict[str, float]:
    """Time one size; peak memory includes torch itself, which is measured separately."""
    torch.manual_seed(0)
    small = DendriticLayer(branching, 1, branching=branching, backend="fused")
    small(torch.randn(2, branching)).sum().backward()  # compile or load the kernels first
    empty = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    layer = DendriticLayer(2**exponent, 1, branching=branching, backend="fused")
    x = torch.randn(BATCH, 2**exponent)

    def train() -> None:
        layer.zero_grad()
        layer(x).sum().backward()

    figures = timed({"layer": train}, seconds=2.0)["layer"]
    per_synapse = 1e6 * figures["median_ms"] / 2**exponent / BATCH
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - empty
    memory = {"peak_mb": peak, "input_mb": x.numel() * 4 / 2**20}
    return {**figures, "ns_per_synapse_and_sample": per_synapse, **memory}


def main() -> None:
    """Measure every size in its own process, write the CSV, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="up to 2^16 inputs only")
    parser.add_argument(
        "--branching", type=int, default=4, help="a power of 2 whose powers include all sizes (default: 4)"
    )
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS / "layer_scaling.csv", help="where the CSV goes")
    options = parser.parse_args()
    if options.size:
        print(json.dumps(one(options.size, options.branching)))
        return
    rows: list[dict[str, object]] = []
    for exponent in range(10, 17 if options.short else 23, 2):
        command = [sys.executable, __file__, "--size", str(exponent), "--branching", str(options.branching)]
        figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        rows.append({"in_features": 2**exponent, "branching": options.branching, "batch": BATCH, **figures})
        print(
            f"2^{exponent:<3} inputs {figures['median_ms']:9.2f} ms {figures['ns_per_synapse_and_sample']:7.3f} ns per "
            f"synapse and sample {figures['peak_mb']:8.0f} MB peak ({figures['input_mb']:.0f} MB of input)",
            flush=True,
        )
    write_csv(options.out, rows)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
