"""The paper's ten class neurons on MNIST, with dendrites that read small windows instead of rows of the image.

The shape of the trees and the window are chosen on the validation images, with one seed; then three other seeds are
trained and judged once on the test images. Run it: `python examples/local_wiring.py` (about five minutes on two cores).
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys

import torch

from dendritree import FitConfig, Local, MLNClassifier, count, fit
from dendritree.data import Examples, Split, load, normalise
from dendritree.errors import DendritreeError
from dendritree.training import evaluate

TREES = ([25, 33], [33, 25], [49, 17], [72, 12])
"""Synapses of a dendrite and dendrites of a neuron: at most 9,000 parameters in ten neurons."""
WINDOWS = (10, 12, 14)
LEARNING_RATE = 0.02


def make(tree: list[int], window: int, seed: int) -> MLNClassifier:
    """Ten neurons; each dendrite reads pixels of a window of its own."""
    torch.manual_seed(seed)
    return MLNClassifier(784, 10, branching=tree, wiring=Local(window=window, place="free"), output="logits")


def train(split: Split, tree: list[int], window: int, epochs: int, seed: int) -> tuple[MLNClassifier, float]:
    """A trained model and its best accuracy on the validation images."""
    model = make(tree, window, seed)
    config = FitConfig(epochs=epochs, lr=LEARNING_RATE, schedule="one-cycle", seed=seed)
    return model, fit(model, split, config).best.val_acc


def main(argv: list[str] | None = None) -> int:
    """Choose, train, test, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=30, help="passes over the training images (default: 30)")
    parser.add_argument("--seeds", type=int, default=3, help="models that are tested (default: 3)")
    parser.add_argument("--data-dir", help="look for MNIST here first")
    options = parser.parse_args(argv)
    try:
        raw = load("mnist", data_dir=options.data_dir)
    except DendritreeError as error:
        print(error, file=sys.stderr)
        return 2
    split = Split(*(Examples(normalise(part.x), part.y) for part in (raw.train, raw.val, raw.test)))
    found: list[tuple[float, list[int], int]] = []
    for tree, window in itertools.product(TREES, WINDOWS):
        _, accuracy = train(split, tree, window, max(1, options.epochs // 3), seed=100)
        found.append((accuracy, tree, window))
        print(f"{tree[1]} dendrites of {tree[0]}, window {window}: validation accuracy {accuracy:.4f}", flush=True)
    _, tree, window = max(found)
    print(f"chosen: {tree[1]} dendrites of {tree[0]}, window {window}")
    accuracies = []
    for seed in range(options.seeds):
        model, _ = train(split, tree, window, options.epochs, seed)
        accuracies.append(evaluate(model, split.test)[1])
        print(f"seed {seed}: test accuracy {accuracies[-1]:.4f}", flush=True)
    spread = statistics.stdev(accuracies) if len(accuracies) > 1 else 0.0
    print(f"local trees  {count(model).total:,} parameters  test accuracy {statistics.mean(accuracies):.4f} +- {spread:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
