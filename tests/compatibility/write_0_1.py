"""What wrote tests/compatibility/0.1: run with the code of 0.1 (`git archive dba2ba3^ dendritree`) on PYTHONPATH.

Not run again; it is here to tell where those files are from.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import dendritree
from dendritree import Random, create_model, save
from dendritree.sklearn import DendriticClassifier, DendriticRegressor
from dendritree.sklearn.tables import TableEncoding, TableModel

SMALL = {"budget": 120, "epochs": 2, "random_state": 0}


def rows(count, features):
    return torch.sin(torch.arange(1, count * features + 1, dtype=torch.float64) * 0.7).reshape(count, features)


def networks():
    sizes = {"in_features": 6, "hidden": [3], "out_features": 3}
    yield (
        "network",
        create_model("dendritic-network", **sizes, branching=[2, 2], wiring=Random(seed=1), norm="batch"),
    )
    yield "ktree", create_model("neuron-network", **sizes, neuron="ktree")
    yield "dnm", create_model("neuron-network", **sizes, neuron="dnm", options={"dendrites": 2, "soma": "log"})
    yield "dmnn", create_model("neuron-network", **sizes, neuron="dmnn", options={"dendrites": 2})
    yield "paper", create_model("mln-binary", in_features=8, branching=2)
    yield "mlp", create_model("mlp", in_features=8, out_features=3, hidden=2)


def main(folder):
    folder.mkdir()
    expected = {"dendritree": dendritree.__version__, "torch": torch.__version__}
    torch.manual_seed(0)
    for name, model in networks():
        inputs = next(module.in_features for module in model.modules() if hasattr(module, "in_features"))
        save(model.eval(), folder / name)
        x = rows(4, inputs).to(next(model.parameters()).dtype)
        expected[name] = {"inputs": inputs, "outputs": model(x).tolist()}
    x = rows(24, 5).numpy()
    classifier = DendriticClassifier(**SMALL).fit(x, np.where(x[:, 0] > 0, "above", "below"))
    save(classifier, folder / "classifier")
    expected["classifier"] = {"classes": list(classifier.classes_), "outputs": classifier.predict_proba(x).tolist()}
    regressor = DendriticRegressor(**SMALL).fit(x, x[:, 0] * x[:, 1])
    save(regressor, folder / "regressor")
    expected["regressor"] = {"outputs": regressor.predict(x).tolist()}
    numbers = rows(24, 2).numpy()
    frame = pd.DataFrame({"size": numbers[:, 0], "kind": np.where(numbers[:, 1] > 0, "new", "old")})
    encoding = TableEncoding.learn(frame)
    estimator = DendriticClassifier(**SMALL).fit(encoding.encode(frame).x, np.where(numbers[:, 0] > 0, "yes", "no"))
    model = TableModel(estimator, encoding, "answer", "classification")
    save(model, folder / "table")
    cells = {"size": [0.5, -0.5, None], "kind": ["new", "old", "new"]}
    predicted, _ = model.predict(pd.DataFrame(cells))
    expected["table"] = {"cells": cells, "outputs": predicted["probability yes"].tolist()}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
