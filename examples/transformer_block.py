"""Dendritic neurons in the blocks of a small transformer: accuracy against parameters, before and after.

The rows of scikit-learn's digits are the words of a sentence of eight. A transformer learns to name the digit;
`convert` replaces the MLPs of its blocks by trees with a third of their parameters. The converted model is trained
from new weights, as the original was, or distilled: it keeps the original's attention and learns its outputs. A
transformer whose MLPs were simply made narrower, to the same size, is treated alike.

Run it: `python examples/transformer_block.py`.
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

WIDTH, HIDDEN, LAYERS, BUDGET = 32, 128, 2, 0.33

STANDS = {"ahead": "better than", "behind": "worse than"}
"""By Welch's test; otherwise not clearly different from."""


class DigitsTransformer(nn.Module):
    """Eight rows of eight pixels as tokens, an encoder, the mean of its outputs, a linear read-out."""

    def __init__(self, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.embedding = nn.Linear(8, WIDTH)
        self.position = nn.Parameter(torch.randn(8, WIDTH) / 10)
        block = nn.TransformerEncoderLayer(WIDTH, 4, hidden, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(block, LAYERS)
        self.readout = nn.Linear(WIDTH, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the ten digits, from 64 pixels in a row."""
        tokens = self.embedding(x.reshape(-1, 8, 8)) + self.position
        y: Tensor = self.readout(self.encoder(tokens).mean(1))
        return y


def narrower(model: DigitsTransformer, budget: int) -> DigitsTransformer:
    """A copy of a transformer with new MLPs in its blocks, of at most `budget` parameters together."""
    hidden = (budget // LAYERS - WIDTH) // (2 * WIDTH + 1)
    narrow = copy.deepcopy(model)
    for block in narrow.encoder.layers:
        block.linear1, block.linear2 = nn.Linear(WIDTH, hidden), nn.Linear(hidden, WIDTH)
    return narrow


def run(split: Split, epochs: int, seed: int) -> dict[str, tuple[int, float]]:
    """Parameters and test accuracy of every model."""
    config = FitConfig(epochs=epochs, batch_size=64, lr=0.005, schedule="one-cycle", optimizer="adamw", seed=seed)
    torch.manual_seed(seed)
    original = DigitsTransformer()
    untrained = copy.deepcopy(original)
    fit(original, split, config)
    models: dict[str, nn.Module] = {"original": original}
    for name, start in {"trained": untrained, "distilled": original}.items():
        trees, report = convert(start, budget=BUDGET)
        if seed == 0 and name == "trained":
            print(report, end="\n\n")
        budget = sum(change.parameters_after for change in report.changes)
        for kind, model in {"trees": trees, "narrow MLPs": narrower(start, budget)}.items():
            if name == "trained":
                fit(model, split, config)
            else:
                distill(model, original, split, config)
            models[f"{kind}, {name}"] = model
    return {name: (count(model).total, evaluate(model, split.test)[1]) for name, model in models.items()}


def main() -> None:
    """Print one row per model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="runs (default: 3)")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the data (default: 20)")
    options = parser.parse_args()
    if options.seeds < 1 or options.epochs < 1:
        parser.error(f"--seeds and --epochs must be at least 1: got {options.seeds} and {options.epochs}")
    runs = [run(load_dataset("digits"), options.epochs, seed) for seed in range(options.seeds)]
    print(f"{'transformer':<24}{'parameters':>12}{'test accuracy':>22}")
    for name, (parameters, _) in runs[0].items():
        accuracy = [each[name][1] for each in runs]
        spread = statistics.stdev(accuracy) if len(accuracy) > 1 else 0.0
        print(f"{name:<24}{parameters:>12,}{statistics.mean(accuracy):>13.3f} +- {spread:.3f}")
    print(f"\nMean and standard deviation of {options.seeds} seeds; 300 test images.")
    of = {name: [each[name][1] for each in runs] for name in runs[0]}
    trees, narrow, original = of["trees, distilled"], of["narrow MLPs, distilled"], of["original"]
    word = STANDS.get(welch(trees, narrow).state or "", "not clearly different from")
    print(
        f"Result: with a third of the MLPs' parameters, distilled trees reach {statistics.mean(trees):.3f}, the"
        f" original {statistics.mean(original):.3f}; they are {word} narrower MLPs ({statistics.mean(narrow):.3f})."
    )


if __name__ == "__main__":
    main()
