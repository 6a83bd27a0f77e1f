"""Trees with default options against scikit-learn's MLPs and gradient boosting, on 47 tables.

The tables were fixed before any results were seen, and divided into a half for choosing defaults and a held-out half.
Every family is fitted on all folds but one and tested on that one. The folder keeps all trials (the same command
resumes, and tables and families can be added) and gets tables.csv (scores, sizes and processor times by table) and
ranks.csv (mean ranks; on how many tables trees are ahead, level or behind). Friedman's test and Nemenyi's critical
difference (Demšar 2006, "Statistical comparisons of classifiers over multiple data sets") are printed.

    python benchmarks/tables.py --half held-out --run tables
    python benchmarks/tables.py --tables iris wine --families tree mlp --run some
"""

from __future__ import annotations

import argparse
import functools
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas
import sklearn.datasets
from scipy import stats
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from dendritree.sklearn import DendriticClassifier, DendriticRegressor
from dendritree_lab.data.catalog import FILE_SETS
from dendritree_lab.data.fetch import obtain
from dendritree_lab.data.tables.published import adult_frame, california_frame, read_keel
from dendritree_lab.studies.engine.runner import Workers, alone_on_one_thread, run_jobs
from dendritree_lab.studies.engine.statistics import SIGNIFICANT, paired_mean
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.engine.trial import CURVES, Trial

FAMILIES = ("tree", "sparse", "dense", "linear", "mlp", "boosting")
HALVES = ("choose", "held-out")
SIGNALS: dict[str, tuple[int, str, int, Callable[[Any], Any]]] = {  # rows, distribution, columns, formula
    "additive": (2000, "uniform", 10, lambda x: 3 * np.sin(np.pi * x[0]) + 4 * x[1] ** 2 + 2 * np.abs(x[2])
                 + np.exp(2 * x[3]) / 2 + 2 * x[4]),
    "products": (2000, "normal", 10, lambda x: x[0] * x[1] + x[2] * x[3] + x[4] * x[5]),
    "steps": (5000, "positive", 10, lambda x: np.where(x[0] > 0.5, np.where(x[1] > 0.3, 3, -1),
              np.where(x[2] > 0.6, -3, 1)) + np.where(x[3] > 0.7, np.where(x[4] > 0.5, 2, -2), 0) + (x[5] > 0.4)),
    "wide": (2000, "normal", 100, lambda x: 2 * x[0] + 2 * np.sin(2 * x[1]) + x[2] * x[3] + 2 * np.abs(x[4])),
}  # fmt: skip
"""Synthetic regressions that show what a model can learn: formulas of the columns."""


def signal_table(name: str) -> tuple[Any, Any]:
    """A table of `SIGNALS`, with noise of a third of the signal's standard deviation: the best possible R² is 0.9."""
    rows, distribution, columns, formula = SIGNALS[name]
    random, size = np.random.default_rng(0), (rows, columns)
    low = -1 if distribution == "uniform" else 0
    x = random.normal(size=size) if distribution == "normal" else random.uniform(low, 1, size)
    return as_frame(x), with_noise(formula(x.T), random)


def radial_table() -> tuple[Any, Any]:
    """Bumps around four centers, y = sum of ±exp(-2 |x - center|²), with the same noise."""
    random = np.random.default_rng(0)
    x, centers = random.uniform(-1, 1, (2000, 5)), random.uniform(-1, 1, (4, 5))
    squares = ((x[:, None] - centers) ** 2).sum(2)  # (rows, centers)
    return as_frame(x), with_noise(np.exp(-2 * squares) @ np.array([1, -1, 1, -1]), random)


def categories_table() -> tuple[Any, Any]:
    """y = slope[c1] x1 + shift[c2] + (2 x2 x3 if c3 is "a", x4 if it is "b", 0 if it is "c"), with the same noise."""
    random = np.random.default_rng(0)
    x = random.uniform(-1, 1, (2000, 4))
    slopes, shifts = random.normal(0, 2, 4), random.normal(0, 1, 6)
    codes = [random.integers(0, count, 2000) for count in (4, 6, 3)]
    by_third = np.choose(codes[2], [2 * x[:, 1] * x[:, 2], x[:, 3], np.zeros(2000)])
    frame = as_frame(x)
    for number, column in enumerate(codes, start=1):
        frame[f"c{number}"] = pandas.Categorical(np.array(list("abcdef"))[column])
    return frame, with_noise(slopes[codes[0]] * x[:, 0] + shifts[codes[1]] + by_third, random)


def as_frame(x: Any) -> Any:
    """Columns x1, x2, ..."""
    return pandas.DataFrame(x, columns=[f"x{number}" for number in range(1, x.shape[1] + 1)])


def with_noise(signal: Any, random: np.random.Generator) -> Any:
    """The signal and normal noise of a third of its standard deviation."""
    return signal + random.normal(0, 1 / 3 * signal.std(), len(signal))


def keel_table(name: str, data_dir: str | None) -> tuple[Any, Any]:
    """A table of the KEEL repository."""
    return read_keel(*obtain(FILE_SETS["keel"], data_dir=data_dir).values(), name)


def generated_table(name: str, **options: Any) -> tuple[Any, Any]:
    """One of scikit-learn's synthetic regressions; the noise is as in the literature."""
    x, y = getattr(sklearn.datasets, f"make_{name}")(random_state=0, **options)
    return as_frame(x), y


def load_table(name: str, data_dir: str | None = None) -> tuple[Any, Any]:
    """The columns as a frame, with categories as pandas categoricals, and the targets: class indices or numbers."""
    if name in SIGNALS:
        frame, y = signal_table(name)
    elif name in ("adult", "california-housing"):
        read: Any = adult_frame if name == "adult" else california_frame
        frame, y = read(*obtain(FILE_SETS[name], data_dir=data_dir).values())
    elif name in ("digits", "iris", "wine", "diabetes"):
        frame, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True, as_frame=True)
        frame, y = frame.astype(float), y.to_numpy()
    elif name in OTHERS:
        frame, y = OTHERS[name]()
    else:
        frame, y = keel_table(name, data_dir)
    return frame, np.unique(y, return_inverse=True)[1] if name in CLASSIFICATIONS else np.asarray(y, np.float64)


OTHERS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "radial": radial_table,
    "categories": categories_table,
    "friedman1": functools.partial(generated_table, "friedman1", n_samples=10_000, noise=1.0),
    "friedman2": functools.partial(generated_table, "friedman2", n_samples=2000, noise=125.0),
    "friedman3": functools.partial(generated_table, "friedman3", n_samples=2000, noise=0.1),
    "sparse-uncorrelated": functools.partial(generated_table, "sparse_uncorrelated", n_samples=2000),
}
CLASSIFICATIONS = (
    "iris", "wine", "sonar", "heart", "ionosphere", "movement_libras", "wdbc", "crx", "australian", "pima",
    "mammographic", "vehicle", "vowel", "german", "contraceptive", "digits", "titanic", "segment", "splice",
    "chess", "spambase", "banana", "phoneme", "page-blocks0", "texture", "optdigits", "mushroom", "satimage",
    "marketing", "ring", "twonorm", "penbased", "magic", "letter", "adult",
)  # fmt: skip
REGRESSIONS = (
    "diabetes", "additive", "categories", "friedman2", "friedman3", "products", "radial", "sparse-uncorrelated",
    "wide", "steps", "friedman1", "california-housing",
)  # fmt: skip
"""Small tables first; every other one is held out."""
TABLES = (*CLASSIFICATIONS, *REGRESSIONS)


def half_of(table: str) -> str:
    """The half that a table belongs to."""
    return HALVES[(CLASSIFICATIONS if table in CLASSIFICATIONS else REGRESSIONS).index(table) % 2]


def make_model(family: str, classifies: bool, seed: int) -> Any:
    """An estimator with default options. Gradient boosting takes the frame unchanged.

    All others get standardized numbers (a missing one is replaced by the median and flagged by another input) and one
    0/1 input per category (missing is a category).
    """
    if family == "boosting":
        return (HistGradientBoostingClassifier if classifies else HistGradientBoostingRegressor)(random_state=seed)
    if family == "mlp":
        estimator = (MLPClassifier if classifies else MLPRegressor)(random_state=seed)
    else:
        estimator = (DendriticClassifier if classifies else DendriticRegressor)(neurons=family, random_state=seed)
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, estimator)


def size_of(model: Any) -> int:
    """Parameters of a fitted model; for gradient boosting, the nodes of its trees."""
    if isinstance(model, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        return sum(len(tree.nodes) for step in model._predictors for tree in step)
    estimator = model[-1]
    if hasattr(estimator, "n_parameters_"):
        return int(estimator.n_parameters_)
    return sum(part.size for part in (*estimator.coefs_, *estimator.intercepts_))


@dataclass(frozen=True)
class TableJob:
    """A model to fit on all folds except one and to test on that one."""

    study: ClassVar[str] = "tables"
    table: str
    family: str
    fold: int
    folds: int

    @property
    def key(self) -> dict[str, Any]:
        """The key of its trial."""
        return {"table": self.table, "family": self.family, "fold": self.fold}


def run(job: TableJob, data_dir: str | None = None) -> Trial:
    """Fit and test a model on one thread; seconds are processor time, including the encoding of the columns."""
    frame, y = load_table(job.table, data_dir)
    classifies = job.table in CLASSIFICATIONS
    folds = (StratifiedKFold if classifies else KFold)(job.folds, shuffle=True, random_state=0)
    train, test = list(folds.split(frame, y))[job.fold]
    model = make_model(job.family, classifies, job.fold)
    with alone_on_one_thread(), threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # by default, scikit-learn's MLP stops after 200 epochs
        start = time.thread_time()
        model.fit(frame.iloc[train], y[train])
        seconds = time.thread_time() - start
        predicted = model.predict(frame.iloc[test])
    score = (accuracy_score if classifies else r2_score)(y[test], predicted)
    curves = {name: [math.nan] for name in CURVES}
    return Trial("tables", job.key, job.fold, {}, size_of(model), seconds, curves, {"score": float(score)})


def table_rows(trials: Any) -> Any:
    """A row per table: mean and standard deviation of each family's scores, its size and its time."""
    families = trials.groupby(["table", "family"], sort=False)
    rows = {"": families.score.mean(), "_sd": families.score.std(), "_parameters": families.parameters.max()}
    rows["_fit_seconds"] = families.seconds.mean()
    columns = [values.unstack().add_suffix(suffix) for suffix, values in rows.items()]
    table = pandas.concat(columns, axis=1).reindex([name for name in TABLES if name in set(trials.table)])
    table.insert(0, "half", [half_of(name) for name in table.index])
    return table


def rank_rows(trials: Any, half: str) -> list[dict[str, Any]]:
    """A row per family: its mean rank over the tables that have all families, and trees against it."""
    own = trials[[half in ("all", half_of(table)) for table in trials.table]]
    scores = own.pivot_table(index="table", columns=["family", "fold"], values="score").dropna()
    means = scores.T.groupby(level="family").mean().T
    count, models = means.shape
    ranks = means.round(12).rank(axis=1, ascending=False).mean().sort_values()  # equal sums in another order are ties
    error = math.sqrt(models * (models + 1) / (12 * count))
    critical = stats.studentized_range.ppf(1 - SIGNIFICANT, models, np.inf) * error
    p = stats.friedmanchisquare(*means.to_numpy().T).pvalue if models > 2 and count > 1 else math.nan
    print(f"{half}: {count} tables, Friedman's test p = {p:.2g}, critical difference {critical:.2f}")
    rows = []
    for family, rank in ranks.items():
        states = [
            compared(row["tree"], row[family]) for _, row in scores.iterrows() if "tree" in means and family != "tree"
        ]
        row = {"family": family, "half": half, "rank": rank}
        rows.append(row | {state: states.count(state) for state in ("ahead", "level", "behind")})
        print("  {family:9} {rank:.2f}  trees ahead {ahead}, level {level}, behind {behind}".format(**rows[-1]))
    return rows


def compared(trees: Any, others: Any) -> str:
    """Trees are level with another family if the means differ by no more than one standard error of the difference."""
    mean, error = paired_mean(trees, others, 1 / (len(trees) - 1))
    return "level" if abs(mean) <= error else "ahead" if mean > 0 else "behind"


def main() -> None:
    """Fit what the folder lacks, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES, metavar="T", help=" ".join(TABLES))
    parser.add_argument("--half", choices=(*HALVES, "all"), default="all")
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=FAMILIES)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--run", type=Path, default=Path("tables"), help="folder of the trials and the CSV files")
    parser.add_argument("--data-dir", help="folder to look for data sets in first")
    parser.add_argument("--workers", type=int, help="processes (default: all cores)")
    arguments = parser.parse_args()
    tables = [name for name in TABLES if name in arguments.tables and arguments.half in ("all", half_of(name))]
    folds, families = arguments.folds, arguments.families
    jobs = [TableJob(table, family, fold, folds) for table in tables for fold in range(folds) for family in families]
    config = {"collection": 1, "folds": folds, "scikit-learn": sklearn.__version__}
    with RunStore.create_or_open(arguments.run, config) as store, Workers(count=arguments.workers) as pool:
        missing = [job for job in jobs if job not in store]
        for _, trial in run_jobs(missing, pool, run, data_dir=arguments.data_dir):
            store.add([trial])
        rows = [
            {**trial.key, **trial.scores, "parameters": trial.parameters, "seconds": trial.seconds}
            for trial in store.trials()
        ]
    trials = pandas.DataFrame(rows)
    table_rows(trials).to_csv(arguments.run / "tables.csv")
    halves = list(dict.fromkeys(half_of(table) for table in trials.table))
    ranks = [row for half in (*halves, *["all"] * (len(halves) > 1)) for row in rank_rows(trials, half)]
    pandas.DataFrame(ranks).to_csv(arguments.run / "ranks.csv", index=False)


if __name__ == "__main__":
    main()
