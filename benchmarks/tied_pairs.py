"""What does the nonlinearity of dendrites add, with nothing else changed? Pairs of networks with tied dendrites.

Every configuration that a comparison tried for `tied` and `tied-linear` is trained once more with the other kind of
dendrites, from the same seed: wiring, initial weights and batches are the same. So the difference on validation is not
affected by the noise of a search.

    dendritree compare cifar10 --budgets 18k --families tied tied-linear
    python benchmarks/tied_pairs.py comparison
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from measure import write_csv

from dendritree_lab.studies.engine.configuration import train
from dendritree_lab.studies.engine.runner import alone_on_one_thread
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.fair.comparison import tasks_in
from dendritree_lab.studies.fair.comparison_plan import ComparisonCell, configuration_of, validation_score

RESULTS = Path(__file__).parent / "results"
FAMILIES = ("tied", "tied-linear")


def main() -> None:
    """Train the counterparts of all configurations in a run; print the pairs and write them as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of a comparison with both families")
    parser.add_argument("--out", type=Path, default=RESULTS / "tied_pairs.csv")
    arguments = parser.parse_args()
    with RunStore.open_for_reading(arguments.run) as store:
        tasks = tasks_in(store)
        tried = [trial for family in FAMILIES for trial in store.trials(phase="search", family=family)]
    rows = []
    for trial in sorted(tried, key=lambda trial: int(trial.key["trial"])):
        cell, drawn = ComparisonCell.of(trial, tasks), configuration_of(trial)
        linear = bool(drawn.arguments.get("linear_dendrites", False))
        swapped = {**drawn.arguments, "linear_dendrites": not linear}
        partner = replace(drawn, arguments=swapped)
        with alone_on_one_thread():
            epochs = len(trial.curves["val_acc"])
            _, history = train(partner, cell.task, cell.task.load(), epochs=epochs, seed=trial.seed)
        partners = cell.task.score(history.best.val_loss, history.best.val_acc)
        scores = [validation_score(cell.task, trial), partners]
        nonlinear, without = reversed(scores) if linear else scores
        row = {"task": cell.task.name, "budget": cell.budget, "drawn_for": cell.family, "try": trial.key["trial"]}
        row |= {"nonlinear": nonlinear, "linear": without, "difference": nonlinear - without, "choice": drawn.code}
        rows.append(row)
        print(*list(row.values())[:-1], flush=True)
        write_csv(arguments.out, rows)


if __name__ == "__main__":
    main()
