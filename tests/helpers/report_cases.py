"""A whole made-up run with the look of a real one: the paper's models and our extra rows, at every dropout."""

import zlib

import numpy as np

from dendritree_lab.studies.paper.analysis import read_expected
from dendritree_lab.studies.paper.paper_trials import PaperTrial
from dendritree_lab.studies.paper.spec import TableRow, matches, read_specs

DROPOUTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
TABLES = tuple(spec.table for spec in read_specs())
MATCHES = matches(read_specs())
EXTRA = [  # (table, task, network, size, validation accuracy, its deviation)
    ("binary-mlp", "binary", "perceptrons", 0, 0.91, 0.02),
    ("multiclass-mlp", "multiclass", "perceptrons", 0, 0.72, 0.04),
    ("multiclass-mlp", "multiclass", "mlp", 16, 0.60, 0.05),
    ("cnn-mlp", "cnn", "conv-perceptrons", 0, 0.79, 0.03),
]


def models():
    """(table, task, network, size, mean and deviation of accuracy without dropout, the same with, best dropout)."""
    accuracies = {}
    for each in read_expected():
        key = (each.row.table, each.row.task, each.row.network, each.row.size)
        accuracies.setdefault(key, {})["best" if each.row.dropout else "none"] = (*each.val_acc, each.row.dropout)
    for key, both in accuracies.items():
        yield (*key, both["none"], both["best"])
    for table, task, network, size, mean, sd in EXTRA:
        yield table, task, network, size, (mean, sd, 0.0), (mean + 0.01, sd, 0.2)


def made_up_records(tables=TABLES, trials=10, protocol="paper", epochs=100, dropouts=DROPOUTS, with_test=False):
    """Trials that lie near the paper's numbers; the same for the same arguments."""
    records = []
    for table, task, network, size, none, best in models():
        if table not in tables:
            continue
        for dropout in dropouts:
            row = TableRow(table, task, network, size, dropout)
            random = np.random.default_rng(zlib.crc32(repr((protocol, row)).encode()))
            near = np.exp(-(((dropout - best[2]) / 0.35) ** 2))
            mean, sd = none[0] + (best[0] - none[0]) * near * (dropout > 0), best[1] if dropout else none[1]
            for index in range(trials):
                curves = made_up_history(mean + sd * random.standard_normal(), row, epochs, random)
                seed = int(random.integers(2**31))
                seconds = float((0.02 + (task == "cnn")) * (1 + 0.1 * random.random()))
                scores = {}
                if with_test:
                    scores = {"test_acc": float(mean + 0.05 + 0.004 * random.standard_normal()), "test_loss": 0.3}
                records.append(
                    PaperTrial.make(
                        protocol=protocol,
                        row=row,
                        index=index,
                        seed=seed,
                        dataset="mnist-4-9" if task == "binary" else "mnist",
                        lr=0.05 if row.dendritic else 0.001,
                        parameters=1000 + size,
                        seconds=seconds,
                        curves=curves,
                        scores=scores,
                    )
                )
    return records


def made_up_history(accuracy, row, epochs, random):
    """Curves that rise to `accuracy` on the validation images and higher on the training images."""
    start = 0.5 if row.task == "binary" else 0.1
    rise = 1 - np.exp(-np.arange(1, epochs + 1) * (12 if row.dendritic else 4) / epochs)
    gap = (0.05 if row.task == "binary" else 0.2) * (1 - row.dropout) * (0.8 if row.dendritic else 1.2)
    curves = {}
    for part, end in (("train", min(1, accuracy + gap)), ("val", accuracy)):
        noise = 0.012 * random.standard_normal(epochs)
        curves[f"{part}_acc"] = np.clip(start + (end - start) * rise + noise, 0, 1).tolist()
        curves[f"{part}_loss"] = [2.3 - 0.8 * each for each in curves[f"{part}_acc"]]
    return curves
