"""Trials made up for tests: any numbers one likes, without training."""

from dendritree_lab.studies.engine.trial import CURVES, Trial
from dendritree_lab.studies.paper.paper_trials import PaperTrial
from dendritree_lab.studies.paper.spec import TableRow

TREE = TableRow("multiclass-dendritic", "multiclass", "mln", 32, 0.0)
MLP = TableRow("multiclass-mlp", "multiclass", "mlp", 11, 0.0)


def made_curves(index, epochs):
    """Curves that depend on the index, so that no two trials are equal."""
    return {curve: [(i + 1) / (epoch + index + 2) for epoch in range(epochs)] for i, curve in enumerate(CURVES)}


def made_trial(row=MLP, index=0, *, epochs=3, protocol="paper", **options):
    """A trial of the paper's experiments."""
    defaults = {"seed": 100 + index, "dataset": "mnist", "lr": 0.001, "parameters": 11_395, "seconds": 0.25}
    return PaperTrial.make(protocol, row, index, **{"curves": made_curves(index, epochs), **defaults, **options})


def scored_trials(row, accuracies, *, protocol="paper", loss=1.0, train_acc=1.0, test=False):
    """One trial per accuracy, of one epoch; with `test` it is the test accuracy and validation says nothing."""
    curves = {"train_loss": [loss], "val_loss": [loss], "train_acc": [train_acc]}
    return [
        made_trial(
            row,
            index,
            protocol=protocol,
            curves=curves | {"val_acc": [0.5 if test else accuracy]},
            scores={"test_acc": accuracy, "test_loss": loss} if test else {},
        )
        for index, accuracy in enumerate(accuracies)
    ]


def kept_trial(index=0, *, epochs=3, task="mnist", family="mlp", **options):
    """A trial of some study as the store keeps it."""
    key = {"task": task, "budget": 9000, "family": family, "trial": index}
    defaults = {"seed": 100 + index, "parameters": 11_395, "seconds": 0.25, "config": {"network": "mlp", "lr": 0.01}}
    return Trial(**{"study": "fair", "key": key, "curves": made_curves(index, epochs), **defaults, **options})
