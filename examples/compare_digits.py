"""Train a dendritic model and its controls on scikit-learn's digits, and print the comparison.

Every model gets the same data, epochs and choice of learning rates; the rate is chosen on the validation images and
the test images are used once per seed. Run it: `python examples/compare_digits.py`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable

import torch
from torch import nn

from dendritree import FitConfig, MLNClassifier, count, fit, matched_mlp
from dendritree.models import Perceptrons
from dendritree.training import Split, evaluate
from dendritree_lab.data import load_dataset
from dendritree_lab.studies.engine.statistics import welch

STANDS = {"ahead": "better than", "behind": "worse than"}
"""By Welch's test; otherwise not clearly different from."""
LEARNING_RATES = (0.01, 0.03, 0.1, 0.3)


def tree() -> nn.Module:
    """Ten neurons of eight dendrites with eight synapses each: every dendrite reads one row of the 8x8 image."""
    return MLNClassifier(64, 10, branching=8)


def control() -> nn.Module:
    """The MLP with the nearest number of parameters."""
    return matched_mlp(MLNClassifier(64, 10, branching=8))


def linear() -> nn.Module:
    """Ten perceptrons."""
    return Perceptrons(64, 10)


def train(build: Callable[[], nn.Module], split: Split, lr: float, seed: int, epochs: int) -> tuple[nn.Module, float]:
    """A trained model and its validation accuracy."""
    torch.manual_seed(seed)
    model = build()
    config = FitConfig(epochs=epochs, batch_size=64, lr=lr, schedule="one-cycle", seed=seed)
    return model, fit(model, split, config).best.val_acc


def main() -> None:
    """Print one row per model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="runs per model (default: 5)")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the data (default: 20)")
    options = parser.parse_args()
    if options.seeds < 1 or options.epochs < 1:
        parser.error(f"--seeds and --epochs must be at least 1: got {options.seeds} and {options.epochs}")
    split = load_dataset("digits")
    models = {"dendritic, b=8": tree, "MLP, matched": control, "perceptrons": linear}
    tests: dict[str, list[float]] = {}
    print(f"{'model':<16}{'parameters':>12}{'best lr':>10}{'test accuracy':>22}")
    for name, build in models.items():
        runs = {
            lr: [train(build, split, lr, seed, options.epochs) for seed in range(options.seeds)]
            for lr in LEARNING_RATES
        }
        lr = max(runs, key=lambda rate: statistics.mean(val for _, val in runs[rate]))
        test = tests[name] = [evaluate(model, split.test)[1] for model, _ in runs[lr]]
        spread = statistics.stdev(test) if len(test) > 1 else 0.0
        print(f"{name:<16}{count(build()).total:>12,}{lr:>10}{statistics.mean(test):>13.3f} +- {spread:.3f}")
        sys.stdout.flush()
    print(f"\nMean and standard deviation of {options.seeds} seeds; 300 test images.")
    ours, mlp, plain = tests.values()
    words = [STANDS.get(welch(ours, other).state or "", "not clearly different from") for other in (mlp, plain)]
    words[1] = "" if words[1] == words[0] else f"{words[1]} "
    print(
        f"Result: ten trees ({statistics.mean(ours):.3f}) are {words[0]} the MLP of their size"
        f" ({statistics.mean(mlp):.3f}) and {words[1]}ten perceptrons ({statistics.mean(plain):.3f})."
    )


if __name__ == "__main__":
    main()
