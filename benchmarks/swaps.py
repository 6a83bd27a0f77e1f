"""What does a dendritic layer cost and bring in place of `nn.Linear`? MNIST, one thread.

For every model the learning rate is the best of four on validation (one seed, three epochs); then ten epochs with three
seeds, evaluated on the test images. Steps of a batch of 128 are timed in turns. Writes one CSV row per model.

    python benchmarks/swaps.py     about ten minutes of one core
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from pathlib import Path

import torch
from measure import timed, write_csv
from torch import nn

from dendritree import DendriticLayer, FitConfig, count, evaluate, fit
from dendritree_lab.data import load_dataset

RATES, SEEDS = (0.001, 0.003, 0.01, 0.03), (0, 1, 2)


def _dense(*sizes: int) -> nn.Module:
    layers = [module for ins, outs in itertools.pairwise(sizes) for module in (nn.Linear(ins, outs), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


MODELS: dict[str, Callable[[], nn.Module]] = {
    "one Linear": lambda: _dense(784, 10),
    "one DendriticLayer": lambda: nn.Sequential(DendriticLayer(784, 10, root_activation=False)),
    "Linear 64, Linear": lambda: _dense(784, 64, 10),
    "DendriticLayer 64, DendriticLayer": lambda: nn.Sequential(DendriticLayer(784, 64), DendriticLayer(64, 10)),
    "the same, linear roots at the end": lambda: nn.Sequential(
        DendriticLayer(784, 64), DendriticLayer(64, 10, root_activation=False)
    ),
    "Linear 64, ReLU, DendriticLayer": lambda: nn.Sequential(
        nn.Linear(784, 64), nn.ReLU(), DendriticLayer(64, 10, root_activation=False)
    ),
    "Linear 256, Linear": lambda: _dense(784, 256, 10),
    "Linear 21, Linear": lambda: _dense(784, 21, 10),
    "DendriticLayer 256, local, Linear": lambda: nn.Sequential(
        DendriticLayer(784, 256, branching=[25, 2], wiring="local"), nn.Linear(256, 10)
    ),
    "DendriticLayer 256, random, Linear": lambda: nn.Sequential(
        DendriticLayer(784, 256, fan_in=50, branching=[25, 2], wiring="random"), nn.Linear(256, 10)
    ),
}


def _trained(name: str, data: object, lr: float, epochs: int, seed: int) -> tuple[nn.Module, float]:
    torch.manual_seed(seed)
    model = MODELS[name]()
    history = fit(model, data, FitConfig(epochs=epochs, lr=lr, schedule="one-cycle", seed=seed))
    return model, history.best.val_loss


def _step(model: nn.Module) -> Callable[[], object]:
    x, y = torch.randn(128, 784), torch.arange(128) % 10
    optimizer = torch.optim.Adam(model.parameters(), fused=True)

    def step() -> object:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        return optimizer.step()

    return step


def main() -> None:
    """Train and time all models."""
    torch.set_num_threads(1)
    data = load_dataset("mnist")
    times = timed({name: _step(build()) for name, build in MODELS.items()}, seconds=10.0)
    rows = []
    for name, build in MODELS.items():
        lr = min(RATES, key=lambda lr: _trained(name, data, lr, 3, 0)[1])
        scores = [evaluate(_trained(name, data, lr, 10, seed)[0], data.test)[1] for seed in SEEDS]
        spread = statistics.stdev(scores)
        parameters, step = count(build()).total, times[name]["q25_ms"]
        print(
            f"{name:36} {parameters:8,} {statistics.fmean(scores):.4f} ± {spread:.4f}  {step:.2f} ms  lr {lr}",
            flush=True,
        )
        rows.append({"model": name, "parameters": parameters, "accuracy": statistics.fmean(scores), "spread": spread})
        rows[-1] |= {"lr": lr, "step_ms": step}
    write_csv(Path(__file__).parent / "results" / "swaps.csv", rows)


if __name__ == "__main__":
    main()
