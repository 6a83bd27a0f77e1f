"""Replace the MLP head of a trained CNN by dendritic neurons, and let it learn from the original.

A CNN is trained on scikit-learn's digits. Its head, an MLP, is replaced by one of a tenth of the parameters, once of
trees (`convert`) and once of perceptrons; both copies are then distilled alike: they learn the original's outputs on
the training images, without labels. Run it: `python examples/replace_mlp_head.py`.
"""

from __future__ import annotations

import argparse
import copy
import statistics

import torch
from torch import Tensor, nn

from dendritree import FitConfig, convert, count, distill, fit
from dendritree.training import Split, evaluate
from dendritree_lab.data import load_dataset
from dendritree_lab.studies.engine.statistics import welch

STANDS = {"ahead": "better than", "behind": "worse than"}
"""By Welch's test; otherwise not clearly different from."""
BUDGET = 0.1


class DigitsCNN(nn.Module):
    """A convolution and the usual MLP behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.head = nn.Sequential(nn.Linear(12 * 4 * 4, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the ten digits, from 64 pixels in a row."""
        y: Tensor = self.head(self.features(x.reshape(-1, 1, 8, 8)))
        return y


def narrow(original: DigitsCNN, budget: int) -> DigitsCNN:
    """A copy whose head is the widest MLP of at most `budget` parameters, new."""
    model = copy.deepcopy(original)
    inputs = 12 * 4 * 4
    hidden = (budget - 10) // (inputs + 1 + 10)
    model.head = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 10))
    return model


def run(split: Split, epochs: int, seed: int) -> dict[str, tuple[int, float]]:
    """Parameters of the head and test accuracy of every model."""
    torch.manual_seed(seed)
    config = FitConfig(epochs=epochs, batch_size=64, lr=0.01, schedule="one-cycle", seed=seed)
    original = DigitsCNN()
    fit(original, split, config)
    trees, report = convert(original, budget=BUDGET)
    if seed == 0:
        print(report, end="\n\n")
    perceptrons = narrow(original, count(trees.get_submodule("head")).total)
    models: dict[str, nn.Module] = {"original": original, "trees, untrained": copy.deepcopy(trees)}
    for name, student in {"trees, distilled": trees, "MLP, distilled": perceptrons}.items():
        distill(student, original, split, config)
        models[name] = student
    return {
        name: (count(model.get_submodule("head")).total, evaluate(model, split.test)[1])
        for name, model in models.items()
    }


def main() -> None:
    """Print one row per model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="runs (default: 3)")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the data (default: 20)")
    options = parser.parse_args()
    if options.seeds < 1 or options.epochs < 1:
        parser.error(f"--seeds and --epochs must be at least 1: got {options.seeds} and {options.epochs}")
    runs = [run(load_dataset("digits"), options.epochs, seed) for seed in range(options.seeds)]
    print(f"{'head of the CNN':<20}{'parameters':>12}{'test accuracy':>22}")
    for name, (parameters, _) in runs[0].items():
        accuracy = [each[name][1] for each in runs]
        spread = statistics.stdev(accuracy) if len(accuracy) > 1 else 0.0
        print(f"{name:<20}{parameters:>12,}{statistics.mean(accuracy):>13.3f} +- {spread:.3f}")
    print(f"\nMean and standard deviation of {options.seeds} seeds; 300 test images.")
    original, _, trees, mlp = ([each[name][1] for each in runs] for name in runs[0])
    word = STANDS.get(welch(trees, mlp).state or "", "not clearly different from")
    print(
        f"Result: with a tenth of the head's parameters, trees reach {statistics.mean(trees):.3f}, the original"
        f" {statistics.mean(original):.3f}; they are {word} an MLP of that size ({statistics.mean(mlp):.3f})."
    )


if __name__ == "__main__":
    main()
