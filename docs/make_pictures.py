"""The pictures of docs/pictures.md and docs/explain.md: `python docs/make_pictures.py [FOLDER] [--gallery]`.

With `--page` it takes docs/view.png instead, the screenshot of the live page; this needs Chromium.
Those of the gallery are drawn by the code on its page. The others need two small models (digits and MNIST, one seed),
which takes less than a minute on two quiet cores.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image

from dendritree import FitConfig, MLNClassifier, count, explain, fit
from dendritree.plot import plot_explanation, plot_pruning
from dendritree.pruning import PruningPoint, pruning_curve
from dendritree.training import Examples, Split
from dendritree.wiring import Local
from dendritree_lab.data import load_dataset, normalize
from dendritree_lab.report.chart import Chart, Line, Panel
from dendritree_lab.report.chart_images import draw_png
from dendritree_lab.report.looks import looks
from dendritree_lab.view import demo_gallery

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


def trained(name: str) -> tuple[MLNClassifier, Split]:
    """One class neuron per digit, trained for a few epochs, and its data."""
    split = load_dataset(name)
    torch.manual_seed(0)
    if name == "digits":
        net = MLNClassifier(64, 10, branching=8)
        fit(net, split, FitConfig(epochs=30, lr=0.01))
        return net, split
    split = Split(*(Examples(normalize(part.x), part.y) for part in (split.train, split.val, split.test)))
    wiring = Local(window=12, place="free", image_shape=(1, 28, 28), seed=0)
    net = MLNClassifier(784, 10, branching=[36, 12], wiring=wiring)
    config = FitConfig(epochs=6, lr=0.02, schedule="one-cycle", optimizer="adamw", weight_decay=0.05)
    fit(net, split, config)
    return net, split


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


def draw_gallery(folder: Path) -> None:
    """Run the code of docs/pictures.md, which writes its pictures where it runs."""
    page = (DOCS / "pictures.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"(?ms)^```python\n(.*?)^```$", page))
    with contextlib.chdir(folder):
        exec(compile(code, "docs/pictures.md", "exec"), {"__name__": "gallery"})


def photograph_page() -> None:
    """Draw a four on the page of `dendritree view --demo`, in the browser of the tests, and keep what it shows."""
    sys.path.insert(0, str(DOCS.parent / "tests" / "helpers"))
    from browser import Browser
    from view_page import ANSWER, DESK, FOUR, READY, on_sheet
    from view_server import serving

    with serving(demo_gallery()) as port, Browser() as browser:
        page = browser.open(f"http://127.0.0.1:{port}/", DESK)
        page.wait_until(READY)
        for stroke in on_sheet(page, FOUR):
            page.drag(stroke)
        page.wait_until(f"{ANSWER} === '4'")
        time.sleep(1)  # the tree has settled
        page.screenshot(DOCS / "view.png")
    with Image.open(DOCS / "view.png") as picture:
        small = picture.convert("RGB").quantize(256)
    small.save(DOCS / "view.png", optimize=True)


def main() -> None:
    """Draw the gallery, then train, and draw the rest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=DOCS / "pictures", type=Path)
    parser.add_argument("--gallery", action="store_true", help="only the pictures of the gallery")
    parser.add_argument("--page", action="store_true", help="only the screenshot of the live page")
    arguments = parser.parse_args()
    if arguments.page:
        photograph_page()
        return
    out = arguments.folder
    draw_gallery(out)
    charts = comparison_charts()
    mnist = next(chart for chart in charts if chart.name == "sizes-mnist")
    (out / "efficiency.png").write_bytes(draw_png(mnist, looks(charts)))
    if arguments.gallery:
        return
    digits, digits_split = trained("digits")
    net, split = trained("mnist")
    print("digits")
    curves = pruned(digits, digits_split, FitConfig(epochs=10, lr=0.003), SHARES)
    plot_pruning(curves, path=out / "pruning.png")
    print("mnist")
    pruned(net, split, FitConfig(epochs=1, lr=0.003), SHARES[::2])
    image = split.test.x[split.test.y == 4][:1].flatten(1)
    explanation = explain(net, image, split.train.x.flatten(1).mean(0))
    print("explanation off by", explanation.check())
    plot_explanation(explanation, 4, image_shape=(28, 28), x=image, path=out / "explanation.png")


if __name__ == "__main__":
    main()
