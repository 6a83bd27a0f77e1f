"""Do trees help as parts of deep networks? Feed-forward blocks or convolutions are replaced, and networks are trained.

For every host, data set, kind of part and share of the original's parameters, three learning rates are tried with one
seed and compared on validation examples; then fresh seeds are trained and tested. The folder keeps all trials (the same
command resumes, and more hosts and kinds can be added) and gets inside.csv: test accuracy, the share of the original's
that is kept, the gain over a narrower network of the same size with Welch's test, and processor time per step.

    python benchmarks/inside.py gpt --divisors 10 --steps 436 --run inside
    python benchmarks/inside.py vit --data fashion-mnist --kinds sparse-near tree-near --divisors 10 30 --run inside
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from inside_hosts import HOSTS, load_for_hosts
from inside_parts import KINDS, ORIGINAL, PartShape, make_part
from torch import nn

from dendritree.training import FitConfig, evaluate
from dendritree_lab.studies.engine.configuration import ONE_CYCLE, fit_through
from dendritree_lab.studies.engine.runner import Workers, alone_on_one_thread, run_jobs
from dendritree_lab.studies.engine.statistics import corrected, spread, welch
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.engine.trial import SEARCH, TEST, Trial, Value, seed_of

RATES = (0.003, 0.01, 0.03)
BATCH_SIZE, WEIGHT_DECAY = 128, 0.01


@dataclass(frozen=True)
class Replacement:
    """A kind of part with 1 / divisor of the original's parameters, in a host on a data set; 1 is the original."""

    host: str
    task: str
    kind: str
    divisor: int

    @property
    def key(self) -> dict[str, Any]:
        """Its part of the keys of trials."""
        return vars(self)

    def build(self, task: Any) -> nn.Module | None:
        """The network; None if no part of the kind is small enough."""
        missing = False

        def part(shape: PartShape) -> nn.Module:
            nonlocal missing
            made = make_part(self.kind, shape, self.divisor)
            missing = missing or made is None
            return nn.Identity() if made is None else made

        network = HOSTS[self.host].build(task, part)
        return None if missing else network


@dataclass(frozen=True)
class InsideJob:
    """A network to train."""

    study: ClassVar[str] = "inside"
    phase: str
    cell: Replacement
    index: int
    lr: float
    steps: int

    @property
    def key(self) -> dict[str, Value]:
        """The key of its trial."""
        return {"phase": self.phase, **self.cell.key, "trial": self.index}

    @property
    def seed(self) -> int:
        """The seed of weights, wiring and batches; in the search it is the same for all rates."""
        index = 0 if self.phase == SEARCH else self.index
        return seed_of(self.study, self.phase, *self.cell.key.values(), index)


def train(job: InsideJob, data_dir: str | None = None) -> Trial:
    """Train the job's network on one thread of torch."""
    task, split = load_for_hosts(job.cell.task, data_dir)
    steps = math.ceil(len(split.train) / BATCH_SIZE)
    epochs = max(1, round(job.steps / steps))
    with alone_on_one_thread():
        torch.manual_seed(job.seed)
        network = job.cell.build(task)
        sizes: dict[str, Any] = {"epochs": epochs, "batch_size": BATCH_SIZE}
        config = FitConfig(task.loss, lr=job.lr, weight_decay=WEIGHT_DECAY, seed=job.seed, **sizes, **ONE_CYCLE)
        start, used = time.perf_counter(), time.thread_time()
        history = fit_through(network, split, config)
        seconds, used = time.perf_counter() - start, time.thread_time() - used
        scores = {"step_seconds": used / (epochs * steps)}  # processor time, which other processes do not increase
        if job.phase == TEST:
            scores |= dict(zip(("test_loss", "test_acc"), evaluate(network, split.test, task.loss, 512), strict=True))
    settings = {"lr": job.lr, "steps": job.steps}
    return Trial.of_history(job.study, job.key, job.seed, settings, network, history, seconds, scores)


def replacements(arguments: argparse.Namespace) -> list[Replacement]:
    """The original of each host and data set, and all parts that are small enough."""
    result = []
    for host in arguments.hosts:
        for dataset in arguments.data or HOSTS[host].datasets:
            task, _ = load_for_hosts(dataset, arguments.data_dir)
            kinds = [kind for kind in arguments.kinds if HOSTS[host].where in KINDS[kind]]
            wanted = [Replacement(host, dataset, kind, divisor) for divisor in arguments.divisors for kind in kinds]
            with torch.device("meta"):
                result += [Replacement(host, dataset, ORIGINAL, 1)]
                result += [each for each in wanted if each.divisor > 1 and each.build(task) is not None]
    return result


def jobs_of(cell: Replacement, trials: list[Trial], seeds: int, steps: int) -> list[InsideJob]:
    """A job per learning rate and, once these are done, one per seed with the best rate."""
    done = [trial for trial in trials if trial.key["phase"] == SEARCH and cell.key.items() <= trial.key.items()]
    if len(done) < len(RATES):
        return [InsideJob(SEARCH, cell, index, lr, steps) for index, lr in enumerate(RATES)]
    best = max(done, key=lambda trial: (trial.at_best("val_acc"), -int(trial.key["trial"])))
    return [InsideJob(TEST, cell, index, float(best.config["lr"]), steps) for index in range(seeds)]


def rows_of(trials: list[Trial]) -> list[dict[str, Any]]:
    """A row per replacement that was tested."""
    tests: dict[Replacement, list[Trial]] = {}
    for trial in trials:
        if trial.key["phase"] == TEST:
            key = {name: trial.key[name] for name in ("host", "task", "kind", "divisor")}
            tests.setdefault(Replacement(**key), []).append(trial)
    scores = {cell: [trial.scores["test_acc"] for trial in own] for cell, own in tests.items()}
    seconds = {cell: min(trial.scores["step_seconds"] for trial in own) for cell, own in tests.items()}
    rows, over_narrow = [], []
    for cell in sorted(tests, key=lambda of: (of.host, of.task, of.divisor, list(KINDS).index(of.kind))):
        original, narrow = (Replacement(cell.host, cell.task, ORIGINAL, divisor) for divisor in (1, cell.divisor))
        row = {**cell.key, "parameters": tests[cell][0].parameters}
        row |= dict(zip(("score", "score_sd"), spread(scores[cell]), strict=True))
        row["kept"] = np.mean(scores[cell]) / np.mean(scores.get(original, [math.nan]))
        row["slower"] = seconds[cell] / seconds.get(narrow, math.nan)
        over_narrow.append(welch(scores[cell], scores.get(narrow, [math.nan])))
        rows.append({**row, "lr": tests[cell][0].config["lr"], "seeds": len(scores[cell])})
    for row, test in zip(rows, corrected(over_narrow), strict=True):
        row |= {"gain": test.mean, "p": test.p}
    return rows


def main() -> None:
    """Train what the folder lacks, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", nargs="+", choices=HOSTS, help="networks whose parts are replaced")
    parser.add_argument("--data", nargs="+", help="data sets (default: those of the host)")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument(
        "--divisors", nargs="+", type=int, default=[2, 3, 10, 30], metavar="N", help="1/N of parameters"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000, help="training steps of every network, about")
    parser.add_argument("--run", type=Path, default=Path("inside"), help="folder of the trials and the CSV file")
    parser.add_argument("--data-dir", help="folder to look for data sets in first")
    parser.add_argument("--workers", type=int, help="processes (default: all cores)")
    arguments = parser.parse_args()
    config = {"inside": 1, "steps": arguments.steps, "rates": RATES, "batch_size": BATCH_SIZE}
    cells = replacements(arguments)
    with RunStore.create_or_open(arguments.run, config) as store, Workers(count=arguments.workers) as pool:
        for _phase in (SEARCH, TEST):
            trials = store.trials()
            jobs = [job for cell in cells for job in jobs_of(cell, trials, arguments.seeds, arguments.steps)]
            jobs = [job for job in jobs if job not in store]
            for _, trial in run_jobs(jobs, pool, train, data_dir=arguments.data_dir):
                store.add([trial])
        rows = rows_of(store.trials())
    with (arguments.run / "inside.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print("  ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))


if __name__ == "__main__":
    main()
