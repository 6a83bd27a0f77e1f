"""Dendritic networks in scikit-learn: a pipeline for mixed columns, a search, a folder instead of a pickle.

Run it: `python examples/sklearn_pipeline.py`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import dendritree
from dendritree.sklearn import DendriticClassifier
from dendritree_lab.studies.engine.statistics import welch

STANDS = {"ahead": "better than", "behind": "worse than"}
"""By Welch's test; otherwise not clearly different from."""


def digits() -> tuple[pd.DataFrame, pd.Series]:
    """Scikit-learn's digits, every third, as a frame; one column is turned into a category to have mixed ones."""
    x, y = load_digits(return_X_y=True, as_frame=True)
    x, y = x.iloc[::3].reset_index(drop=True), y.iloc[::3].reset_index(drop=True)
    middle = pd.cut(x.pop("pixel_3_3"), [-1, 4, 12, 16], labels=["pale", "gray", "dark"])
    return x.assign(middle=middle.astype(str)), y


def main() -> None:
    """Print one row for each kind of neuron, then what a search selected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="parts for cross-validation (default: 3)")
    parser.add_argument("--epochs", type=int, default=30, help="passes over the data (default: 30)")
    options = parser.parse_args()
    folds = max(2, options.seeds)
    x, y = digits()
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["middle"]), remainder="passthrough")
    model = make_pipeline(columns, DendriticClassifier(budget=4000, epochs=options.epochs, random_state=0))
    scores_of: dict[str, list[float]] = {}
    print(f"{'neurons':<16}{'parameters':>12}{'accuracy':>18}")
    for neurons in ("tree", "sparse", "dense", "linear"):
        model.set_params(dendriticclassifier__neurons=neurons)
        scores = scores_of[neurons] = list(cross_val_score(model, x, y, cv=folds))
        parameters = model.fit(x, y)[-1].n_parameters_
        print(f"{neurons:<16}{parameters:>12,}{statistics.mean(scores):>11.3f} +- {statistics.stdev(scores):.3f}")
    model.set_params(dendriticclassifier__neurons="tree")
    search = GridSearchCV(model, {"dendriticclassifier__weight_decay": [0.01, 1.0]}, cv=2).fit(x, y)
    print(f"\nbest of the search: {search.best_params_}")
    with tempfile.TemporaryDirectory() as folder:
        classifier, inputs = search.best_estimator_[-1], search.best_estimator_[:-1].transform(x)
        dendritree.save(classifier, Path(folder) / "digits")
        same = (dendritree.load(Path(folder) / "digits").predict(inputs) == classifier.predict(inputs)).all()
    print(f"the model read back from its folder predicts the same: {bool(same)}")
    means = {neurons: statistics.mean(scores) for neurons, scores in scores_of.items()}
    best = max(means, key=lambda neurons: means[neurons])
    word = STANDS.get(welch(scores_of["tree"], scores_of["dense"]).state or "", "not clearly different from")
    print(
        f"Result: {best} neurons have the highest accuracy, {means[best]:.3f}; trees ({means['tree']:.3f}) are {word}"
        f" the dense MLP of the same size ({means['dense']:.3f}), so compare before you choose."
    )


if __name__ == "__main__":
    main()
