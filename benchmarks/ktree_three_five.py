"""Do our k-trees perform on MNIST 3 against 5 like those of Jones and Kording (2021)?

Their protocol, as in their code: images padded with zeros to 32 x 32, pixels in [0, 1]; of the 11,552 training images
1,902 (as many as the test images) are held out for validation; both parts are divided into ten, one for each trial, so
that a trial trains on 965 images and validates on 190. Adam at 0.001, batches of 256, binary cross-entropy. Training
stops when the mean of ALL validation losses so far has not fallen for 60 epochs (their list of losses is never
emptied), or after 2,000; the last weights are tested, not the best. The control is their two-layer network with 2k
hidden units, which is smaller than the k-tree; another one matches the true number of parameters.

    python benchmarks/ktree_three_five.py --trees 1 32
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from measure import write_csv
from torch import nn
from torch.nn import functional as F

from dendritree import FitConfig, count, fit, matched_mlp
from dendritree.models import DenseNetwork
from dendritree.neurons import KTree
from dendritree.training import Run, evaluate
from dendritree.training.examples import Examples, Split
from dendritree_lab.data.images import read_images

RESULTS = Path(__file__).parent / "results"
PUBLISHED = {1: 0.805, 32: 0.964}  # of the k-trees, mean of ten trials in the authors' result files
PATIENCE, EPOCHS, PARTS = 60, 2000, 10


class StopOnRunningMean:
    """Stop when the mean of all validation losses so far has not reached a new low for `PATIENCE` epochs."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.best, self.waited = float("inf"), 0

    def __call__(self, run: Run) -> None:
        """Check the epoch that has just ended."""
        self.losses.append(run.history.epochs[-1].val_loss)
        mean = statistics.fmean(self.losses)
        self.best, self.waited = (self.best, self.waited + 1) if mean > self.best else (mean, 0)
        run.stop = self.waited >= PATIENCE


def three_five(images: np.ndarray, labels: np.ndarray) -> Examples:
    """Threes (class 1) and fives (class 0), padded to 1024 pixels."""
    chosen = (labels == 3) | (labels == 5)
    x = F.pad(torch.from_numpy(images[chosen]).float().div_(255), (2, 2, 2, 2)).flatten(1)
    return Examples(x, torch.from_numpy(labels[chosen] == 3).long())


def trial_splits(seed: int) -> list[Split]:
    """The ten tenths of the training and validation images, each with all test images."""
    raw = read_images("mnist")
    whole, test = three_five(raw.train_images, raw.train_labels), three_five(raw.test_images, raw.test_labels)
    order = torch.randperm(len(whole), generator=torch.Generator().manual_seed(seed))
    train, val = order[: len(whole) - len(test)], order[len(whole) - len(test) :]

    def part(rows: torch.Tensor, index: int) -> Examples:
        size = len(rows) // PARTS
        mine = rows[index * size : (index + 1) * size]
        return Examples(whole.x[mine], whole.y[mine])

    return [Split(part(train, i), part(val, i), test) for i in range(PARTS)]


def build(name: str, trees: int) -> nn.Module:
    """A model that gives one logit."""
    if name == "k-tree":
        return KTree(1024, trees=trees)
    hidden = 2 * trees if name == "2k hidden" else matched_mlp(KTree(1024, trees=trees)).hidden_features
    return DenseNetwork(1024, [hidden], 1, activation=nn.LeakyReLU, output="logits")


def run_trial(name: str, trees: int, trial: int, split: Split) -> dict[str, object]:
    """Train one model on its tenth and test it."""
    start = time.perf_counter()
    torch.manual_seed(1000 * trees + trial)
    model = build(name, trees)
    config = FitConfig("binary-logits", epochs=EPOCHS, batch_size=256, lr=0.001, seed=trial, restore_best=False)
    history = fit(model, split, config, callbacks=[StopOnRunningMean()])
    return {
        "model": name,
        "k": trees,
        "parameters": count(model).total,
        "trial": trial,
        "epochs": len(history.epochs),
        "train_acc": history.epochs[-1].train_acc,
        "test_acc": evaluate(model, split.test, "binary-logits")[1],
        "published": PUBLISHED.get(trees, "") if name == "k-tree" else "",
        "seconds": time.perf_counter() - start,
    }


def main() -> None:
    """Measure, write the CSV, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, nargs="+", default=[1, 32], help="values of k (default: 1 32)")
    parser.add_argument("--trials", type=int, default=PARTS, help="trials per model, at most ten (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the split into tenths (default: 0)")
    parser.add_argument("--out", type=Path, default=RESULTS / "ktree_three_five.csv", help="where the CSV goes")
    options = parser.parse_args()
    splits, rows = trial_splits(options.seed), list[dict[str, object]]()
    for trees in options.trees:
        for name in ("k-tree", "2k hidden", "same parameters"):
            found = [run_trial(name, trees, trial, splits[trial]) for trial in range(options.trials)]
            rows += found
            accuracies = [float(str(row["test_acc"])) for row in found]
            mean = statistics.fmean(accuracies)
            error = statistics.stdev(accuracies) / len(accuracies) ** 0.5 if len(accuracies) > 1 else float("nan")
            published = f", published {PUBLISHED[trees]}" if name == "k-tree" and trees in PUBLISHED else ""
            size = f"{found[0]['parameters']:,} parameters"
            epochs = statistics.median(int(str(row["epochs"])) for row in found)
            print(f"k={trees} {name} ({size}): {mean:.4f} +- {error:.4f} (s.e.){published}; {epochs:.0f} epochs")
            print("   ", " ".join(f"{a:.3f}" for a in accuracies), flush=True)
            write_csv(options.out, rows)  # so that an interrupted run keeps its results
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
