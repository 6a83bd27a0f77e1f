"""What does a training step cost compared with that of the dense MLP of the same accuracy?

Uses the models that a comparison chose. For each tree, the size of the dense MLP follows from the comparison's
efficiency factor, in the shape chosen at the nearest size. A step is forward, loss, backward and Adam, interleaved.

    python benchmarks/equal_accuracy.py comparison
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measure import timed, write_csv

from dendritree import create_model
from dendritree.budget import count
from dendritree.models.sizing import fill_budget
from dendritree.training import LOSSES
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.engine.task import BATCH_SIZES, Task
from dendritree_lab.studies.fair.comparison import tasks_in
from dendritree_lab.studies.fair.comparison_results import CellResult, Comparison, summarize

RESULTS = Path(__file__).parent / "results"


def stepper(model: torch.nn.Module, task: Task, inputs: int) -> Callable[[], None]:
    """A training step on random examples."""
    x, loss = torch.randn(BATCH_SIZES[1], inputs), LOSSES[task.loss]
    y = torch.rand(BATCH_SIZES[1]) if task.classes is None else torch.randint(task.classes, (BATCH_SIZES[1],))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss.per_example(model(x), y).mean().backward()
        optimizer.step()

    return step


def dense_of_equal_accuracy(comparison: Comparison, tree: CellResult) -> dict[str, Any] | None:
    """Arguments of the dense MLP that is as good as a tree; None if none was found."""
    found = [e for e in comparison.efficiencies if e.cell == tree.cell]
    if not found or math.isnan(found[0].factor):
        return None
    size = round(found[0].factor * tree.parameters)
    nearest = min(comparison.of(tree.cell.task, "dense"), key=lambda r: abs(math.log(r.parameters / size)))
    config = dict(nearest.configuration.arguments)
    hidden = config.pop("hidden")
    wide = fill_budget(nearest.configuration.network, config, [width / hidden[0] for width in hidden], size)
    return None if wide is None else config | {"hidden": wide}


def main() -> None:
    """Measure, write the CSV, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a `dendritree compare` run")
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each pair (default: 2)")
    parser.add_argument("--out", type=Path, default=RESULTS / "equal_accuracy.csv", help="where the CSV goes")
    options = parser.parse_args()
    with RunStore.open_for_reading(options.run) as store:
        comparison = summarize(store.trials(), tasks_in(store))
    rows: list[dict[str, object]] = []
    for tree in (r for r in comparison.cells if r.cell.family == "tree"):
        dense_config = dense_of_equal_accuracy(comparison, tree)
        if dense_config is None:
            continue
        task, inputs = tree.cell.task, int(tree.configuration.arguments["in_features"])
        torch.manual_seed(0)
        models = {
            "tree": create_model(tree.configuration.network, **tree.configuration.arguments),
            "dense": create_model("dense-network", **dense_config),
        }
        figures = timed({name: stepper(model, task, inputs) for name, model in models.items()}, seconds=options.seconds)
        ratio = figures["tree"]["median_ms"] / figures["dense"]["median_ms"]
        for name, model in models.items():
            rows.append(
                {"task": task.name, "budget": tree.cell.budget, "model": name, "parameters": count(model).total}
                | figures[name]
                | {"against_dense": figures[name]["median_ms"] / figures["dense"]["median_ms"]}
            )
        print(f"{task.name:20} {tree.cell.budget:6,} parameters: tree {ratio:.2f} x dense", flush=True)
    write_csv(options.out, rows)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
