"""What does a wiring cost? Layers with the same trees and number of synapses, wired in different ways.

Forward + backward, batch 128, interleaved. Writes one CSV row per layer and wiring, with its time relative to `shared`.

    python benchmarks/wiring_speed.py
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from measure import timed, write_csv

from dendritree import DendriticLayer
from dendritree.wiring import Local, Random, Shared, Strided, Wiring

RESULTS = Path(__file__).parent / "results"
BATCH, INPUTS = 128, 1024

LAYERS = {
    "ten neurons, b=2": (10, 2),
    "ten neurons, b=4": (10, 4),
    "ten neurons, b=32": (10, 32),
    "256 neurons, b=32": (256, 32),
}
"""Neurons and branching; every neuron has 1024 synapses."""

WIRINGS: dict[str, Wiring] = {
    "shared": Shared(),
    "strided": Strided(),
    "random": Random(seed=0),
    "local": Local(window=10, seed=0),
}


def trainer(layer: DendriticLayer, x: torch.Tensor) -> Callable[[], None]:
    """Forward and backward pass of a layer."""

    def train() -> None:
        layer.zero_grad()
        layer(x).sum().backward()

    return train


def main() -> None:
    """Measure, write the CSV, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="time for each layer (default: 4)")
    parser.add_argument("--out", type=Path, default=RESULTS / "wiring_speed.csv", help="where the CSV goes")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for name, (neurons, branching) in LAYERS.items():
        torch.manual_seed(0)
        x = torch.randn(BATCH, INPUTS)
        calls = {
            wiring: trainer(DendriticLayer(INPUTS, neurons, branching=branching, fan_in=INPUTS, wiring=made), x)
            for wiring, made in WIRINGS.items()
        }
        figures = timed(calls, seconds=options.seconds)
        shared = figures["shared"]["median_ms"]
        for wiring, figure in figures.items():
            rows.append({"layer": name, "wiring": wiring, **figure, "against_shared": figure["median_ms"] / shared})
        print(
            f"{name:18} "
            + "  ".join(f"{w} {f['median_ms']:.2f} ms ({f['median_ms'] / shared:.2f} x)" for w, f in figures.items()),
            flush=True,
        )
    write_csv(options.out, rows)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
