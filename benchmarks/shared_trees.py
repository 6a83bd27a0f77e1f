"""How far can parameters fall? Networks of trees that neurons share, beside controls that differ in one thing each.

The preset of one hidden layer at several sizes; the same with linear dendrites, which shows what nonlinear ones add;
and a dense MLP. (Earlier results also have one convolution with the same windows and strides.) All have batch
normalization, and are trained alike. The better of two learning rates on validation is trained with three fresh seeds,
and each of these models is evaluated on the test set once. The same command resumes.

    python benchmarks/shared_trees.py mnist --sizes 1k 2k 4k 9k
    python benchmarks/shared_trees.py mnist --sizes --png mnist.png  # draw it, without training
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import machine, write_csv

from dendritree.models.presets import preset_options
from dendritree.models.sizing import fill_budget, parameters_of, parse_count
from dendritree.training import evaluate
from dendritree_lab.report.chart import Chart, Line, Panel
from dendritree_lab.report.chart_images import draw_png
from dendritree_lab.report.looks import looks
from dendritree_lab.studies.engine.configuration import Configuration, train
from dendritree_lab.studies.engine.runner import alone_on_one_thread
from dendritree_lab.studies.engine.task import Task, batch_size_for, epochs_for

RESULTS = Path(__file__).parent / "results"
KINDS = ("tree", "linear", "dense")
LINES = (
    ("tree", "tied", "shared trees"),
    ("linear", "tied-linear", "linear dendrites"),
    ("convolution", "cnn", "one convolution"),
)
TUNED = Path(__file__).parent.parent / "docs" / "comparison" / "cells.csv"
STEPS, RATES, SEEDS, WEIGHT_DECAY = 2000, (0.01, 0.03), 3, 0.05


def configurations(task: Task, budget: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(kind, network, arguments) of the networks that are compared at a size."""
    preset = preset_options(task.in_features, task.out_features, budget=budget, image_shape=task.image_shape)
    yield "tree", "dendritic-network", preset
    yield "linear", "dendritic-network", preset | {"linear_dendrites": True}
    common = {name: preset[name] for name in ("in_features", "out_features", "activation", "norm")}
    hidden = fill_budget("dense-network", common, (1.0,), budget)
    if hidden is not None:
        yield "dense", "dense-network", common | {"hidden": hidden}


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of results, without the machine."""
    about = machine()
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: row[name] for name in row if name not in about} for row in csv.DictReader(file)]


def main() -> None:
    """Train what a file of results lacks, write it after each network, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", help="such as mnist, fashion-mnist or cifar10")
    parser.add_argument("--sizes", nargs="*", default=["1k", "2k", "4k", "9k"], metavar="N")
    parser.add_argument(
        "--kinds", nargs="+", default=KINDS, choices=KINDS, metavar="KIND", help=f"of {', '.join(KINDS)}"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS, help="fresh seeds, with those that are there", metavar="N")
    parser.add_argument("--out", type=Path, help="by default results/shared_trees_TASK.csv")
    parser.add_argument("--png", type=Path, help="a chart to write, with the tuned dense MLPs of docs/comparison")
    arguments = parser.parse_args()
    task = Task.parse(arguments.task)
    out = arguments.out or RESULTS / f"shared_trees_{arguments.task}.csv"
    rows: list[dict[str, Any]] = read(out) if out.exists() else []
    earlier = {(row["kind"], int(row["budget"])): row for row in rows}
    split = task.load()
    epochs = epochs_for(len(split.train), STEPS)
    for budget in (parse_count("size", size) for size in arguments.sizes):
        for kind, network, options in configurations(task, budget):
            row = earlier.get((kind, budget), {})
            scores = row.get("test", "").split()
            if kind not in arguments.kinds or len(scores) >= arguments.seeds:
                continue
            with alone_on_one_thread():
                if not row:
                    tried = {}
                    for lr in RATES:
                        configuration = Configuration(network, options, lr, WEIGHT_DECAY)
                        tried[lr] = train(configuration, task, split, epochs=epochs, seed=0)[1].best.val_acc
                    lr = max(tried, key=tried.__getitem__)
                    row = {"task": task.name, "kind": kind, "budget": budget, "parameters": 0, "lr": lr}
                    row["validation"] = round(tried[lr], 4)
                    rows.append(row)
                configuration = Configuration(network, options, float(row["lr"]), WEIGHT_DECAY)
                start = time.thread_time()
                fresh = range(len(scores) + 1, arguments.seeds + 1)
                for seed in fresh:
                    model = train(configuration, task, split, epochs=epochs, seed=seed)[0]
                    scores.append(f"{evaluate(model, split.test, task.loss)[1]:.4f}")
                steps = len(fresh) * epochs * math.ceil(len(split.train) / batch_size_for(len(split.train)))
                milliseconds = 1000 * (time.thread_time() - start) / steps
            row |= {"parameters": parameters_of(model), "test": " ".join(scores)}
            row |= {"step_ms": round(milliseconds, 1), "code": configuration.code}
            print(*list(row.values())[:-1], flush=True)
            write_csv(out, rows)
    if arguments.png is not None:
        chart = draw(task.name, rows)
        arguments.png.write_bytes(draw_png(chart, looks([chart])))


def draw(task: str, rows: list[dict[str, Any]]) -> Chart:
    """Scores against parameters; dense MLPs are those of the fair comparison, which were tuned and trained longer."""
    lines = []
    for kind, family, label in LINES:
        own = [(int(row["parameters"]), [float(x) for x in row["test"].split()]) for row in rows if row["kind"] == kind]
        if own:
            at, scores = zip(*sorted(own), strict=True)
            bands = [tuple(map(end, scores)) for end in (min, max)]
            lines.append(Line(label, family, 0, at, tuple(map(statistics.mean, scores)), *bands))
    dense = [row for row in read(TUNED) if (row["family"], row["task"]) == ("dense", task)]
    if dense:
        sizes, *ends = (
            [float(row[name]) for row in dense] for name in ("parameters", "score", "interval_low", "interval_high")
        )
        lines.append(Line("dense", "dense", 0, tuple(sizes), *map(tuple, ends)))
    alt = f"Test accuracy on {task} against parameters: {', '.join(line.label for line in lines)}"
    panel = Panel("test accuracy", tuple(lines), scale="errors")
    return Chart(f"shared-trees-{task}", task, alt, "parameters", (panel,), "scaling")


if __name__ == "__main__":
    main()
