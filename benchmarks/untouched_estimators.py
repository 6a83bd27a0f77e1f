"""Are the estimators good untouched? `DendriticClassifier()` against `MLPClassifier()`, five folds, one run.

Both stand behind the same scikit-learn columns: numbers through `StandardScaler`, Adult's categories through
`OneHotEncoder`. Folds are stratified and shuffled with seed 0, both models have `random_state=0`, all else is as it
comes. The defaults were chosen on other tables (docs/tables.md).

    python benchmarks/untouched_estimators.py
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measure import write_csv
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dendritree.data.catalog import FILE_SETS
from dendritree.data.obtain import obtain
from dendritree.data.tables import ADULT_COLUMNS, ADULT_NUMERIC, _adult_rows
from dendritree.sklearn import DendriticClassifier

RESULTS = Path(__file__).parent / "results"


def adult() -> tuple[pd.DataFrame, np.ndarray]:
    """Both files of Adult, as they are: 48,842 people."""
    files = obtain(FILE_SETS["adult"])
    rows = [row for name in sorted(files) for row in _adult_rows(files[name].content)]
    frame = pd.DataFrame(rows, columns=[*ADULT_COLUMNS, "income"])
    numeric = sorted(ADULT_NUMERIC)
    return frame[ADULT_COLUMNS].astype(dict.fromkeys(numeric, float)), (frame["income"] == ">50K").to_numpy()


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, np.ndarray]]] = {
    "digits": lambda: load_digits(return_X_y=True, as_frame=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True, as_frame=True),
    "wine": lambda: load_wine(return_X_y=True, as_frame=True),
    "adult": adult,
}
MODELS: dict[str, Callable[[], Any]] = {
    "DendriticClassifier()": lambda: DendriticClassifier(random_state=0),
    "MLPClassifier()": lambda: MLPClassifier(random_state=0),
}


def parameters_of(model: Any) -> int:
    """All of them."""
    if isinstance(model, MLPClassifier):
        return sum(part.size for part in (*model.coefs_, *model.intercepts_))
    return int(model.n_parameters_)


def main() -> None:
    """Measure, write the CSV, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "tables", nargs="*", default=list(TABLES), help="digits, breast cancer, wine, adult (default: all)"
    )
    parser.add_argument("--out", type=Path, default=RESULTS / "untouched_estimators.csv", help="where the CSV goes")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # untouched, it stops after 200 epochs and warns
    rows: list[dict[str, object]] = []
    for table in options.tables:
        x, y = TABLES[table]()
        y = np.asarray(y)
        scores: dict[str, list[float]] = {name: [] for name in MODELS}
        figures: dict[str, tuple[int, float]] = dict.fromkeys(MODELS, (0, 0.0))
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(x, y):
            for name, make in MODELS.items():
                columns = make_column_transformer(
                    (StandardScaler(), make_column_selector(dtype_include=np.number)),
                    (
                        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                        make_column_selector(dtype_exclude=np.number),
                    ),
                )
                model = make_pipeline(columns, make())
                start = time.perf_counter()
                model.fit(x.iloc[train], y[train])
                seconds = time.perf_counter() - start
                scores[name].append(model.score(x.iloc[test], y[test]))
                figures[name] = max(figures[name][0], parameters_of(model[-1])), figures[name][1] + seconds / 5
        for name in MODELS:
            mean, sd = statistics.mean(scores[name]), statistics.stdev(scores[name])
            print(f"{table:15} {name:22} {figures[name][0]:7,} parameters  {mean:.4f} ± {sd:.4f}", flush=True)
            folds = {f"fold_{place}": value for place, value in enumerate(scores[name], 1)}
            rows.append(
                {"table": table, "model": name, "parameters": figures[name][0], "accuracy": mean, "sd": sd, **folds}
                | {"seconds_per_fit": figures[name][1]}
            )
    write_csv(options.out, rows)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
