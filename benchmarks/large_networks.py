"""CIFAR-10 with 72,000 parameters, and long training beside ResNet-8 of MLPerf Tiny, which has 78,000.

`finals` trains for 12 epochs, with the configurations that the search with 18,000 parameters selected for each family,
made wider: a search of its own would take three hours for each. `long` trains with flips and shifts, for 30 epochs by
default. Every training is a row of the CSV
file; those that it has are not run again.

    python benchmarks/large_networks.py finals deep cnn --seeds 3 --out benchmarks/results/large_networks.csv
    python benchmarks/large_networks.py long deep resnet8 --seeds 1 --out benchmarks/results/large_networks.csv
"""

from __future__ import annotations

import argparse
import csv
import fcntl
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dendritree import FitConfig, count, create_model, evaluate, fit
from dendritree.models.sizing import fill_budget
from dendritree.training.threads import torch_threads
from dendritree_lab.data import load_dataset

IMAGE = (3, 32, 32)
SEARCHED: dict[str, tuple[dict[str, Any], tuple[float, ...], float, float]] = {
    "deep": ({"stage": "dendritic", "depth": 3, "activation": "relu"}, (1.0, 1.4, 1.96), 0.021, 0.05),
    "cnn": ({"stage": "plain", "depth": 2, "places": 2, "activation": "silu"}, (1.0, 2.0, 4.0), 0.038, 0.05),
}
"""Options, widths, learning rate and weight decay that were best with 18,000 parameters."""
RATES = {"deep": (0.021,), "cnn": (0.038,), "resnet8": (0.01, 0.02)}
"""Learning rates of long training: that of the search, or those of which the better one after two epochs is used."""
FIELDS = ("part", "family", "parameters", "multiply_adds", "lr", "epochs", "seed", "val_acc", "test_acc", "seconds")


class Residual(nn.Module):
    """Two convolutions and what goes past them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.past = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Maps of `outputs` channels."""
        return torch.relu(self.body(x) + self.past(x))


def resnet8() -> nn.Sequential:
    """ResNet-8 of MLPerf Tiny (Banbury et al. 2021), without the biases of its convolutions."""
    stem = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()
    blocks = Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2)
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)
    images = nn.Unflatten(1, IMAGE)
    return nn.Sequential(images, *stem, *blocks, *head).to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def make(family: str, budget: int) -> nn.Module:
    """A network of at most `budget` parameters."""
    if family == "resnet8":
        return resnet8()
    options, widths, _, _ = SEARCHED[family]
    sizes: dict[str, Any] = {"in_features": 3072, "out_features": 10, "image_shape": IMAGE, "pool": 2, **options}
    hidden = fill_budget("conv-network", sizes, widths, budget)
    return create_model("conv-network", **sizes, hidden=hidden)


def rows_of(file: Path) -> list[dict[str, str]]:
    """The trainings that a file has."""
    return list(csv.DictReader(file.open(encoding="utf-8"))) if file.exists() else []


def run(out: Path, part: str, family: str, *, lr: float, epochs: int, seed: int, budget: int, **options: Any) -> float:
    """Train, unless the file has it, add the row, and return the validation accuracy. Only finals see test images."""
    key = {"part": part, "family": family, "lr": str(lr), "epochs": str(epochs), "seed": str(seed)}
    if found := [row for row in rows_of(out) if key.items() <= row.items()]:
        return float(found[0]["val_acc"])
    torch.manual_seed(1000 + seed)
    data, net = load_dataset("cifar10").scaled(), make(family, budget)
    options |= {"optimizer": "adamw", "schedule": "one-cycle", "batch_size": 256, "flips": True}
    config = FitConfig(epochs=epochs, lr=lr, seed=seed, **options)
    with torch_threads(1):
        history = fit(net, data, config, verbose=True)
        val, test = history.best.val_acc, "" if part == "rate" else f"{evaluate(net, data.test)[1]:.4f}"
    found_sizes = count(net, (3072,))
    values = (part, family, found_sizes.total, found_sizes.multiply_adds, lr, epochs, seed, f"{val:.4f}", test,
              round(sum(epoch.seconds for epoch in history.epochs)))  # fmt: skip
    with out.open("a", encoding="utf-8", newline="") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # two may run at once
        writer = csv.writer(file)
        if not file.tell():
            writer.writerow(FIELDS)
        writer.writerow(values)
    print(*values, sep="\t", flush=True)
    return val


def main() -> None:
    """Train what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("finals", "long"))
    parser.add_argument("families", nargs="+", choices=RATES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="default: 12 for finals, 30 for long")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    for family in given.families:
        if given.part == "finals":
            _, _, rate, decay = SEARCHED[family]
            options: dict[str, Any] = {"budget": 72_000, "weight_decay": decay}
        else:
            options = {"budget": 78_000, "shifts": 2, "weight_decay": 0.05}
            rate, *others = RATES[family]
            if others:
                tried = {
                    lr: run(given.out, "rate", family, lr=lr, epochs=2, seed=100, **options) for lr in RATES[family]
                }
                rate = max(tried, key=lambda lr: tried[lr])
        for seed in range(given.seeds):
            epochs = given.epochs or (12 if given.part == "finals" else 30)
            run(given.out, given.part, family, lr=rate, epochs=epochs, seed=seed, **options)


if __name__ == "__main__":
    main()
