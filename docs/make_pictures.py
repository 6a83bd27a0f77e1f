"""The pictures of docs/pictures.md and docs/explain.md: `python docs/make_pictures.py [FOLDER] [--dark]`.

Trains two small models (digits and MNIST, one seed), which takes less than a minute on two quiet cores.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

import torch

from dendritree import (
    DendriticLayer,
    FitConfig,
    History,
    Local,
    MLNClassifier,
    Tied,
    count,
    explain,
    fit,
    pruning_curve,
)
from dendritree.data import Examples, Split, load_dataset, normalize
from dendritree.plot import (
    plot_comparison,
    plot_efficiency,
    plot_explanation,
    plot_history,
    plot_masks,
    plot_pruning,
    plot_tree,
    plot_weights,
    plot_wiring,
)
from dendritree.pruning import PruningPoint
from dendritree.report.chart import Chart, Line, Panel

DOCS = Path(__file__).parent
SHARES = (1.0, 0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1)
FAMILY_OF = {"trees": "tree", "sparse": "sparse", "dense": "dense", "linear": "linear"}


def comparison_charts() -> list[Chart]:
    """The results in docs/comparison/cells.csv as charts: the run itself is too large for the repository."""
    cells: dict[str, dict[str, list[tuple[float, ...]]]] = {}
    with (DOCS / "comparison" / "cells.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            point = tuple(float(row[key]) for key in ("parameters", "score", "interval_low", "interval_high"))
            cells.setdefault(row["task"], {}).setdefault(row["family"], []).append(point)
    charts = []
    for task, families in cells.items():
        metric = "test RMSE" if task == "california-housing" else "test accuracy"
        lines = [
            Line(name, FAMILY_OF[name], 0, *map(tuple, zip(*sorted(points), strict=True)), level=name == "linear")
            for name, points in families.items()
            if name in FAMILY_OF  # neurons of other authors would make the picture too crowded
        ]
        scale = "linear" if "RMSE" in metric else "errors"
        panel = Panel(metric, tuple(lines), scale=scale)
        charts.append(Chart(f"sizes-{task}", task, task, "parameters", (panel,), form="scaling"))
    return [chart for chart in charts if len(chart.panels[0].lines) > 1]


def trained(name: str) -> tuple[MLNClassifier, Split, History]:
    """One class neuron a digit, trained for a few epochs; its data and its history."""
    split = load_dataset(name)
    torch.manual_seed(0)
    if name == "digits":
        net = MLNClassifier(64, 10, branching=8)
        return net, split, fit(net, split, FitConfig(epochs=30, lr=0.01))
    split = Split(*(Examples(normalize(part.x), part.y) for part in (split.train, split.val, split.test)))
    wiring = Local(window=12, place="free", image_shape=(1, 28, 28), seed=0)
    net = MLNClassifier(784, 10, branching=[36, 12], wiring=wiring)
    config = FitConfig(epochs=6, lr=0.02, schedule="one-cycle", optimizer="adamw", weight_decay=0.05)
    return net, split, fit(net, split, config)


def pruned(
    net: MLNClassifier, split: Split, retrain: FitConfig, shares: Sequence[float]
) -> dict[str, list[PruningPoint]]:
    """Test accuracy against size, without and with training again; printed too, for docs/explain.md."""
    budgets = [round(share * count(net).total) for share in shares]
    curves = {
        "pruned": pruning_curve(net, split, budgets=budgets, part="test"),
        "pruned and trained again": pruning_curve(net, split, budgets=budgets, part="test", retrain=retrain),
    }
    for name, points in curves.items():
        print(name, *(f"{p.parameters}: {p.accuracy:.4f} ({p.synapses} synapses)" for p in points), sep="\n  ")
    return curves


def main() -> None:
    """Train, then draw everything in each theme."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=DOCS / "pictures", type=Path)
    parser.add_argument("--dark", action="store_true", help="also on dark paper, into FOLDER/dark")
    arguments = parser.parse_args()
    torch.manual_seed(3)
    small, large = DendriticLayer(27, 1, branching=3), DendriticLayer(1024, 1, branching=4)
    tied = DendriticLayer(784, 100, branching=[16, 4], wiring=Tied(5, 7, (1, 28, 28), seed=0))
    digits, digits_split, history = trained("digits")
    net, split, _ = trained("mnist")
    print("digits")
    curves = pruned(digits, digits_split, FitConfig(epochs=10, lr=0.003), SHARES)
    print("mnist")
    pruned(net, split, FitConfig(epochs=1, lr=0.003), SHARES[::2])
    image = split.test.x[split.test.y == 4][:1].flatten(1)
    found = explain(net, image, split.train.x.flatten(1).mean(0))
    print("explanation off by", found.check())
    charts = comparison_charts()
    for theme in ("light", "dark") if arguments.dark else ("light",):
        out = arguments.folder / ("dark" if theme == "dark" else "")
        plot_tree(small, dropout=0.3, theme=theme, path=out / "tree.png")
        plot_tree(large, theme=theme, path=out / "tree-1024.png")
        plot_masks(DendriticLayer(4, 1, branching=2), theme=theme, path=out / "masks.png")
        plot_efficiency(charts, "mnist", theme=theme, path=out / "efficiency.png")
        plot_comparison(charts, theme=theme, path=out / "comparison.png")
        plot_history(history, theme=theme, path=out / "history.png")
        plot_pruning(curves, theme=theme, path=out / "pruning.png")
        plot_wiring(net, 4, theme=theme, path=out / "wiring.png")
        plot_wiring(tied, 2, theme=theme, path=out / "tied.png")
        plot_weights(net, [0, 3, 4], theme=theme, path=out / "weights.png")
        plot_explanation(found, 4, image_shape=(28, 28), x=image, theme=theme, path=out / "explanation.png")


if __name__ == "__main__":
    main()
