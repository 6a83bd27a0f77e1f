"""Can ONE neuron separate two spirals? A DNM and a DMNN neuron with 128 dendrites, on points they have not seen.

Two spirals of one and a half turns, 200 training points and 1,000 test points per class, five seeds for points and
weights. Writes one CSV row per neuron and seed.

    python benchmarks/two_spirals.py
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path

import torch
from measure import write_csv
from torch import Tensor, nn
from torch.nn import functional as F

from dendritree.neurons import DMNN, DNM

RESULTS = Path(__file__).parent / "results"
DENDRITES, TRAIN_POINTS, TEST_POINTS, BAR = 128, 200, 1000, 0.98


def spirals(points: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Points of each class, uniform in the square of the radius, and their classes."""
    radius, y = torch.rand(2 * points, generator=generator).sqrt(), torch.arange(2 * points) % 2
    angle = 2 * math.pi * 1.5 * radius + math.pi * y
    return torch.stack([radius * angle.cos(), radius * angle.sin()], -1), y


def train(layer: nn.Module, x: Tensor, y: Tensor, *, steps: int, lr: float) -> None:
    """Full-batch Adam with a one-cycle learning rate, on logits."""
    optimizer = torch.optim.Adam(layer.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    for _ in range(steps):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(layer(x).flatten(), y.float()).backward()
        optimizer.step()
        schedule.step()


def dnm(x: Tensor, y: Tensor) -> nn.Module:
    """One DNM neuron, trained by gradient descent.

    A dendrite with two inputs is a soft quadrant, and quadrants can only be added. The complement of a quadrant is a
    half-plane plus another quadrant, so any shape can be built if the threshold counts many dendrites instead of one.
    """
    layer = DNM(2, 1, dendrites=DENDRITES, soma="logit", soma_threshold=DENDRITES / 4)
    train(layer, x, y, steps=800, lr=0.1)
    return layer


def boxes(x: Tensor, y: Tensor) -> nn.Module:
    """One DMNN neuron with boxes from the data, without training."""
    layer = DMNN(2, 1, dendrites=DENDRITES)
    layer.fit_boxes(x, y)
    return layer


def dmnn(x: Tensor, y: Tensor) -> nn.Module:
    """One DMNN neuron with boxes from the data, then trained with smooth minima and maxima."""
    layer = DMNN(2, 1, dendrites=DENDRITES, temperature=0.02, scale=20)
    layer.fit_boxes(x, y)
    train(layer, x, y, steps=200, lr=0.01)
    return layer


NEURONS: dict[str, Callable[[Tensor, Tensor], nn.Module]] = {"DNM": dnm, "DMNN, boxes only": boxes, "DMNN": dmnn}


def accuracy(layer: nn.Module, x: Tensor, y: Tensor) -> float:
    """Share of points on the right side of 0."""
    with torch.no_grad():
        return (layer(x).flatten() > 0).eq(y == 1).float().mean().item()


def main() -> None:
    """Train, write the CSV, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="how many (default: 5)")
    parser.add_argument("--out", type=Path, default=RESULTS / "two_spirals.csv", help="where the CSV goes")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    for name, make in NEURONS.items():
        for seed in range(options.seeds):
            generator = torch.Generator().manual_seed(seed)
            (x, y), test = spirals(TRAIN_POINTS, generator), spirals(TEST_POINTS, generator)
            torch.manual_seed(seed)
            start = time.perf_counter()
            layer = make(x, y)
            seconds = time.perf_counter() - start
            row = {"neuron": name, "dendrites": DENDRITES, "seed": seed, "train_acc": accuracy(layer, x, y)}
            rows.append({**row, "test_acc": accuracy(layer, *test), "seconds": seconds})
            print(f"{name:16} seed {seed}: test accuracy {rows[-1]['test_acc']:.4f}, {seconds:.1f} s", flush=True)
        least = min(float(str(row["test_acc"])) for row in rows if row["neuron"] == name)
        print(f"{name:16} least of {options.seeds} seeds: {least:.4f}, {'within' if least >= BAR else 'below'} {BAR}")
    write_csv(options.out, rows)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
