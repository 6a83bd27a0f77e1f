"""The paper's ten class neurons on MNIST, with dendrites that read small windows instead of rows of the image.

Weak synapses move within the window of their dendrite while the model trains. Window and share of moving synapses are
selected on the validation images, with one seed; then three other seeds are trained, and tested once.
Run it: `python examples/local_wiring.py` (about three minutes on two cores).
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys

import torch

from dendritree import FitConfig, MLNClassifier, Rewiring, count, fit
from dendritree.errors import DendritreeError
from dendritree.training import Examples, Split, evaluate
from dendritree.wiring import Local
from dendritree_lab.data import first_examples, load_dataset, normalize

WINDOWS = (10, 12, 14)
MOVING = (0.0, 0.3)
"""Shares of a neuron's synapses that move after the first epoch."""


def make(window: int, seed: int) -> MLNClassifier:
    """Ten neurons of 17 dendrites; each dendrite reads 49 pixels of a window of its own."""
    torch.manual_seed(seed)
    wiring = Local(window=window, place="free")
    return MLNClassifier(784, 10, branching=[49, 17], wiring=wiring, dropout=0.1)


def train(split: Split, window: int, moving: float, epochs: int, seed: int) -> tuple[MLNClassifier, float]:
    """A trained model and its best accuracy on the validation images."""
    model = make(window, seed)
    # Weight decay makes a synapse that nothing needs weak: without it those on black pixels would never move.
    config = FitConfig(epochs=epochs, lr=0.02, schedule="one-cycle", optimizer="adamw", weight_decay=0.05, seed=seed)
    callbacks = [Rewiring(moving, where="window", seed=seed)] if moving else []
    return model, fit(model, split, config, callbacks=callbacks).best.val_acc


def main(argv: list[str] | None = None) -> int:
    """Choose, train, test, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=25, help="passes over the training images (default: 25)")
    parser.add_argument("--seeds", type=int, default=3, help="models that are tested (default: 3)")
    parser.add_argument("--images", type=int, help="train on so many images only (default: all)")
    parser.add_argument("--data-dir", help="look for MNIST here first")
    options = parser.parse_args(argv)
    try:
        raw = load_dataset("mnist", data_dir=options.data_dir)
        if options.images is not None:
            raw = first_examples(raw, options.images)
    except DendritreeError as error:
        print(error, file=sys.stderr)
        return 2
    split = Split(*(Examples(normalize(part.x), part.y) for part in (raw.train, raw.val, raw.test)))
    tried: list[tuple[float, int, float]] = []
    for window, moving in itertools.product(WINDOWS, MOVING):
        _, accuracy = train(split, window, moving, max(1, options.epochs // 2), seed=100)
        tried.append((accuracy, window, moving))
        print(f"window {window}, {moving:.0%} moving: validation accuracy {accuracy:.4f}", flush=True)
    _, window, moving = max(tried)
    print(f"chosen: window {window}, {moving:.0%} moving")
    accuracies = []
    for seed in range(options.seeds):
        model, _ = train(split, window, moving, options.epochs, seed)
        accuracies.append(evaluate(model, split.test)[1])
        print(f"seed {seed}: test accuracy {accuracies[-1]:.4f}", flush=True)
    spread = statistics.stdev(accuracies) if len(accuracies) > 1 else 0.0
    mean = statistics.mean(accuracies)
    print(f"local trees  {count(model).total:,} parameters  test accuracy {mean:.4f} +- {spread:.4f}")
    print(
        f"Result: ten trees with windows of {window} x {window} pixels, {moving:.0%} of whose synapses move, reach"
        f" a test accuracy of {mean:.3f} on MNIST with {count(model).total:,} parameters."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
