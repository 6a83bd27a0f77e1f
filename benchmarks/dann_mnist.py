"""Does our dANN reach the accuracy that Chavlis and Poirazi (2025) report on MNIST?

Their Table 1 has the best result of each kind of receptive field over many sizes; this is one size for all, at most 64
dendrites per soma and 512 somata. Adam, pixels in [0, 1], 50,000 images for training, 10,000 to choose the epoch
(lowest loss), 10,000 to test once.

    python benchmarks/dann_mnist.py --fields random local global
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from measure import write_csv

from dendritree import FitConfig, count, fit
from dendritree.models import NeuronNetwork
from dendritree.training import Run, evaluate
from dendritree_lab.data import load_dataset

RESULTS = Path(__file__).parent / "results"
PUBLISHED = {"random": 0.9809, "local": 0.9847, "global": 0.9858}


def show(run: Run) -> None:
    """Print one line per epoch."""
    epoch = run.history.epochs[-1]
    print(f"    epoch {epoch.epoch:2d}: val loss {epoch.val_loss:.4f}, acc {epoch.val_acc:.4f}, {epoch.seconds:.0f} s")


def main() -> None:
    """Train, write the CSV, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fields", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED), help="kinds of field")
    parser.add_argument("--somata", type=int, default=512, help="S (default: 512)")
    parser.add_argument("--dendrites", type=int, default=16, help="D (default: 16)")
    parser.add_argument("--epochs", type=int, default=12, help="passes over the training images (default: 12)")
    parser.add_argument("--lr", type=float, default=0.004, help="highest learning rate of one cycle (default: 0.004)")
    parser.add_argument("--batch-size", type=int, default=256, help="images per step (default: 256)")
    parser.add_argument("--dropout", type=float, default=0.0, help="dropout of the somata (default: 0)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="one model per seed (default: 0)")
    parser.add_argument("--out", type=Path, default=RESULTS / "dann_mnist.csv", help="where the CSV goes")
    options = parser.parse_args()
    split, rows = load_dataset("mnist"), list[dict[str, object]]()
    for field in options.fields:
        for seed in options.seeds:
            start = time.perf_counter()
            torch.manual_seed(seed)
            neurons = {"dendrites": options.dendrites, "field": field}
            sizes = 784, [options.somata], 10
            model = NeuronNetwork(*sizes, neuron="dann", options=neurons, dropout=options.dropout)
            config = FitConfig(
                epochs=options.epochs,
                batch_size=options.batch_size,
                lr=options.lr,
                schedule="one-cycle",
                seed=seed,
            )
            history = fit(model, split, config, callbacks=[show])
            accuracy = evaluate(model, split.test)[1]
            published = PUBLISHED.get(field, float("nan"))
            rows.append(
                {
                    "field": field,
                    "somata": options.somata,
                    "dendrites": options.dendrites,
                    "parameters": count(model).total,
                    "seed": seed,
                    "epochs": options.epochs,
                    "lr": options.lr,
                    "batch_size": options.batch_size,
                    "dropout": options.dropout,
                    "best_epoch": history.best.epoch,
                    "val_acc": history.best.val_acc,
                    "test_acc": accuracy,
                    "published": published,
                    "seconds": time.perf_counter() - start,
                }
            )
            print(f"{field}, seed {seed}: {count(model).total:,} parameters, test {accuracy:.4f}, paper {published}")
            write_csv(options.out, rows)  # so that an interrupted run keeps its results
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
