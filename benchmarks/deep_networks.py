"""What deep dendritic networks cost beside CNNs of the same size: multiply-adds of an image, time of a training step.

All networks of a size take turns in one interleaved run, with batches of 128, and memory is kept between steps.

    python benchmarks/deep_networks.py --out benchmarks/results/deep_networks.csv
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measure import timed, write_csv
from torch import nn
from torch.nn import functional as F

from dendritree import count, create_model
from dendritree.training import memory_kept

SIZES = (("mnist", (1, 28, 28), 2000), ("mnist", (1, 28, 28), 9000), ("cifar10", (3, 32, 32), 18_000),
         ("cifar10", (3, 32, 32), 72_000))  # fmt: skip
STAGES = ("plain", "separable", "blueprint", "linear")
BATCH = 128


def step_of(model: nn.Module, image: tuple[int, int, int]) -> Callable[[], None]:
    """A training step on random images."""
    x, y = torch.randn(BATCH, *image), torch.randint(10, (BATCH,))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="of measuring, for each size")
    parser.add_argument("--out", type=Path, help="a CSV file to write")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for data, image, budget in SIZES:
        common: dict[str, Any] = {"image_shape": image, "budget": budget}
        models = {"dendritic": create_model("dendritic", **common)}
        models |= {stage: create_model("cnn", stage=stage, **common) for stage in STAGES}
        with memory_kept():
            times = timed({name: step_of(model, image) for name, model in models.items()}, seconds=arguments.seconds)
        for name, model in models.items():
            found = count(model)
            ratio = times[name]["q25_ms"] / times["plain"]["q25_ms"]
            row = {"data": data, "budget": budget, "stage": name, "parameters": found.total}
            row |= {"multiply_adds": found.multiply_adds, "step_ms": round(times[name]["median_ms"], 2)}
            rows.append(row | {"against_plain": round(ratio, 2)})
            print(*rows[-1].values(), sep="\t", flush=True)
    if arguments.out is not None:
        write_csv(arguments.out, rows)


if __name__ == "__main__":
    main()
