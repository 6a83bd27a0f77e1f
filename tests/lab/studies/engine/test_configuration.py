"""Training of a configuration: the user's own units, whatever they are."""

import numpy as np
import pytest

from dendritree.training import evaluate
from dendritree_lab.studies.engine.configuration import Configuration, train
from dendritree_lab.studies.engine.task import Task


def houses():
    """Prices in dollars, almost linear in two of four columns."""
    random = np.random.default_rng(0)
    x = random.normal(size=(500, 4)).astype(np.float32)
    return x, (300_000 + 50_000 * x[:, 0] + 10_000 * x[:, 1] + 5_000 * random.normal(size=500)).astype(np.float32)


@pytest.mark.parametrize("make", [Task.named, lambda data: Task.of(Task.named(data).load())], ids=["compare", "tune"])
@pytest.mark.parametrize("network", ["dendritic-network", "dense-network", "perceptrons"])
def test_quantities_may_have_any_unit(network, make):
    task = make(houses())
    hidden = {} if network == "perceptrons" else {"hidden": [8], "norm": "batch"}
    fan_in = {"fan_in": 4} if network == "dendritic-network" else {}
    configuration = Configuration(
        network, {"in_features": 4, "out_features": 1, "output": "logits"} | hidden | fan_in, 0.05
    )
    split = Task.named(houses()).load()
    model, history = train(configuration, task, split, epochs=60, seed=0)
    guessed = split.test.y.double().std().item()
    rmse = task.score(*evaluate(model, split.test, task.loss))
    assert rmse < 0.3 * guessed
    best = evaluate(model, split.val, task.loss)[0]
    assert history.best.val_loss == pytest.approx(best, rel=1e-3)
    assert task.score(history.best.val_loss, float("nan")) == pytest.approx(best**0.5, rel=1e-3)
