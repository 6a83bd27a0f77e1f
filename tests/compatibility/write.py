"""Write one small file of each format into tests/compatibility/VERSION, with the results they must give forever.

Run it once for each release that changes a format, from the root: `python tests/compatibility/write.py 0.3`. Folders of
earlier versions are never written again.
"""

import contextlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

import dendritree
from dendritree import DendriticClassifier, DendriticLayer, DendriticNetwork, DendriticRegressor, fit, save
from dendritree.data.frames.encoding import TableEncoding
from dendritree.models import create_model
from dendritree.sklearn.tables import TableModel
from dendritree.studies.engine.store import STORE_FILE, RunStore
from dendritree.studies.engine.trial import Trial
from dendritree.wiring import Local, Random

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))
from compatibility_cases import CONFIG, rows, split, trained_model

HERE = Path(__file__).parent
SMALL = {"budget": 120, "epochs": 2, "random_state": 0, "members": 2}


def networks():
    """Models by the name of their folder: one of each way in which a network is described."""
    sizes = {"in_features": 6, "hidden": [3], "out_features": 3}
    yield "network", DendriticNetwork(**sizes, branching=[2, 2], wiring=Random(seed=1), norm="batch")
    yield "ragged", DendriticNetwork(**sizes, branching=[2, [3]], wiring="random", dtype=torch.float64)
    yield "paper", create_model("mln-binary", in_features=8, branching=2)
    yield "ktree", create_model("neuron-network", **sizes, neuron="ktree")
    yield "dnm", create_model("neuron-network", **sizes, neuron="dnm", options={"dendrites": 2, "soma": "log"})
    yield "dmnn", create_model("neuron-network", **sizes, neuron="dmnn", options={"dendrites": 2})
    window = Local(window=2, image_shape=(1, 3, 3))
    trees = DendriticLayer(9, 4, branching=[2, 2], wiring=window)
    yield "layers", torch.nn.Sequential(trees, torch.nn.ReLU(), torch.nn.Linear(4, 2))


def write_models(folder, expected):
    for name, model in networks():
        first = next(module for module in model.modules() if hasattr(module, "in_features"))
        x = rows(4, first.in_features).to(next(model.parameters()).dtype)
        save(model.eval(), folder / name)
        expected[name] = {"inputs": first.in_features, "outputs": model(x).tolist()}


def write_estimators(folder, expected):
    x = rows(24, 5).numpy()
    classifier = DendriticClassifier(**SMALL).fit(x, np.where(x[:, 0] > 0, "above", "below"))
    save(classifier, folder / "classifier")
    expected["classifier"] = {"classes": list(classifier.classes_), "outputs": classifier.predict_proba(x).tolist()}
    regressor = DendriticRegressor(**SMALL).fit(x, x[:, 0] * x[:, 1])
    save(regressor, folder / "regressor")
    expected["regressor"] = {"outputs": regressor.predict(x).tolist()}


def write_table(folder, expected):
    import pandas as pd

    numbers = rows(24, 2).numpy()
    frame = pd.DataFrame({"size": numbers[:, 0], "kind": np.where(numbers[:, 1] > 0, "new", "old")})
    encoding = TableEncoding.learn(frame)
    estimator = DendriticClassifier(**SMALL).fit(encoding.encode(frame).x, np.where(numbers[:, 0] > 0, "yes", "no"))
    model = TableModel(estimator, encoding, "answer", "classification")
    save(model, folder / "table")
    cells = {"size": [0.5, -0.5, None], "kind": ["new", "old", "new"]}
    predicted = model.predict(pd.DataFrame(cells))
    expected["table"] = {"cells": cells, "outputs": predicted["probability yes"].tolist()}


class Stopped(Exception):  # noqa: N818  not an error of anything
    """Ends a run within its second epoch."""


def write_training(folder, expected):
    """A checkpoint after one epoch of two; the weights after both are what resuming from it must give."""

    def stop(run):
        if len(run.history.epochs) == 2:
            raise Stopped

    with contextlib.suppress(Stopped):
        fit(trained_model(), split(), CONFIG, checkpoint=folder / "checkpoint", callbacks=[stop])
    model = trained_model()
    history = fit(model, split(), CONFIG)
    save_file(model.state_dict(), folder / "state.safetensors")
    expected["state"] = {"outputs": model.eval()(rows(4, 6).float()).tolist()}
    expected["checkpoint"] = {"first_loss": history.epochs[0].train_loss, "last_loss": history.epochs[1].train_loss}


def write_run(folder, expected):
    curves = {"train_loss": [2.0, 1.0], "val_loss": [2.0, 3.0], "train_acc": [0.4, 0.9], "val_acc": [0.5, 0.6]}
    config = {"network": "mlp", "arguments": {"hidden": 3, "wiring": Random(seed=1)}, "lr": 0.01}
    trial = Trial("fair", {"task": "digits", "trial": 0}, 1, config, 223, 0.25, curves, {"test_acc": 0.75})
    with tempfile.TemporaryDirectory() as scratch:
        with RunStore.create_or_open(scratch, {"trials": 1, "fit": {"lr": 0.05}}) as store:
            store.add([trial])
        (folder / "run").mkdir()
        shutil.copy(Path(scratch) / STORE_FILE, folder / "run")
    expected["run"] = {"curves": curves, "scores": {"test_acc": 0.75}}


def main(version):
    folder = HERE / version
    folder.mkdir()
    expected = {"dendritree": dendritree.__version__, "torch": torch.__version__}
    torch.manual_seed(0)
    for write in (write_models, write_estimators, write_table, write_training, write_run):
        write(folder, expected)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
