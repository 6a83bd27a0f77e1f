"""The paper's ten class neurons on MNIST, with dendrites that read small windows instead of rows of the image.

Window, learning rate and dropout are chosen on the validation images, with one seed; then three other seeds are
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

WINDOWS = (8, 10, 12)
LEARNING_RATES = (0.01, 0.02)
DROPOUTS = (0.0, 0.1)


def make(window: int, dropout: float, seed: int) -> MLNClassifier:
    """Ten neurons of 17 dendrites; each dendrite reads 49 pixels of a window of its own."""
    torch.manual_seed(seed)
    wiring = Local(window=window, place="free")
    return MLNClassifier(784, 10, branching=[49, 17], wiring=wiring, dropout=dropout, output="logits")


def train(split: Split, window: int, lr: float, dropout: float, epochs: int, seed: int) -> tuple[MLNClassifier, float]:
    """A trained model and its best validation loss."""
    model = make(window, dropout, seed)
    history = fit(model, split, FitConfig(epochs=epochs, lr=lr, schedule="one-cycle", seed=seed))
    return model, history.best.val_loss


def main(argv: list[str] | None = None) -> int:
    """Choose, train, test, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20, help="passes over the training images (default: 20)")
    parser.add_argument("--seeds", type=int, default=3, help="models that are tested (default: 3)")
    parser.add_argument("--data-dir", help="look for MNIST here first")
    options = parser.parse_args(argv)
    try:
        raw = load("mnist", data_dir=options.data_dir)
    except DendritreeError as error:
        print(error, file=sys.stderr)
        return 2
    split = Split(*(Examples(normalise(part.x), part.y) for part in (raw.train, raw.val, raw.test)))
    losses = {}
    for window, lr, dropout in itertools.product(WINDOWS, LEARNING_RATES, DROPOUTS):
        _, losses[window, lr, dropout] = train(split, window, lr, dropout, max(1, options.epochs // 2), seed=100)
        print(
            f"window {window:2}, lr {lr}, dropout {dropout}: validation loss {losses[window, lr, dropout]:.4f}",
            flush=True,
        )
    window, lr, dropout = min(losses, key=losses.__getitem__)
    print(f"chosen: window {window}, lr {lr}, dropout {dropout}")
    accuracies = []
    for seed in range(options.seeds):
        model, _ = train(split, window, lr, dropout, options.epochs, seed)
        accuracies.append(evaluate(model, split.test)[1])
        print(f"seed {seed}: test accuracy {accuracies[-1]:.4f}", flush=True)
    spread = statistics.stdev(accuracies) if len(accuracies) > 1 else 0.0
    print(f"local, D=17, f=49  {count(model).total:,} parameters  {statistics.mean(accuracies):.4f} +- {spread:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
