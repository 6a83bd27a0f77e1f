"""Trials made up for tests: any numbers one likes, without training."""

from dendritree_lab.studies.engine.trial import CURVES, Trial
from dendritree_lab.studies.paper.records import Row, TrialRecord

TREE = Row("multiclass-dendritic", "multiclass", "mln", 32, 0.0)
MLP = Row("multiclass-mlp", "multiclass", "mlp", 11, 0.0)


def made_trial(row=MLP, index=0, *, epochs=3, protocol="paper", **options):
    """A trial whose curves depend on its index, so that no two are equal."""
    history = {c: [(i + 1) / (epoch + index + 2) for epoch in range(epochs)] for i, c in enumerate(CURVES)}
    defaults = {"seed": 100 + index, "dataset": "mnist", "lr": 0.001, "parameters": 11_395, "seconds": 0.25}
    return TrialRecord(protocol, row, index, **{"history": history, **defaults, **options})


def scored_trials(row, accuracies, *, protocol="paper", loss=1.0, train_acc=1.0, test=False):
    """One trial per accuracy, of one epoch; with `test` it is the test accuracy and validation says nothing."""
    return [
        made_trial(
            row,
            index,
            protocol=protocol,
            history={
                "train_loss": [loss],
                "val_loss": [loss],
                "train_acc": [train_acc],
                "val_acc": [0.5 if test else accuracy],
            },
            test_acc=accuracy if test else None,
            test_loss=loss if test else None,
        )
        for index, accuracy in enumerate(accuracies)
    ]


def kept_trial(index=0, *, epochs=3, task="mnist", family="mlp", **options):
    """A trial of some study as the store keeps it; its curves depend on its index, so that no two are equal."""
    curves = {c: [(i + 1) / (epoch + index + 2) for epoch in range(epochs)] for i, c in enumerate(CURVES)}
    key = {"task": task, "budget": 9000, "family": family, "trial": index}
    defaults = {"seed": 100 + index, "parameters": 11_395, "seconds": 0.25, "config": {"network": "mlp", "lr": 0.01}}
    return Trial(**{"study": "fair", "key": key, "curves": curves, **defaults, **options})
