"""Your own table: train a model on a CSV file from Python, see whether dendrites help, predict new rows.

What `dendritree fit houses.csv --target sold --out model` and `dendritree predict model new.csv` do, without a folder.
The table is synthetic: price, area, town and year, with missing cells; was the house sold within a month? Run it:
`python examples/own_table.py`.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from dendritree_lab.data.tables import read_table
from dendritree_lab.studies.table import column_importances, explain_rows, fit_table, verdict


def houses(rows: int, seed: int = 0) -> pd.DataFrame:
    """Cheap houses for their area, town and year are sold soon: curves and interactions, and some chance."""
    random = np.random.default_rng(seed)
    area, year = random.uniform(30, 250, rows), random.integers(1900, 2026, rows)
    town = random.choice(["Delft", "Gouda", "Leiden"], rows)
    worth = area * (np.where(town == "Leiden", 4.0, 2.5) + 0.01 * np.maximum(0, year - 1980))
    price = worth * random.normal(1, 0.2, rows)
    sold = np.where(price < worth * random.normal(1, 0.05, rows), "yes", "no")
    frame = pd.DataFrame({"price": price, "area": area, "town": town, "year": year, "sold": sold})
    frame.loc[random.random(rows) < 0.05, "year"] = np.nan
    return frame


def main() -> None:
    """Print a row for each model, the verdict and some predictions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="splits of the rows, at least two (default: 3)")
    parser.add_argument("--epochs", type=int, default=40, help="passes over the rows (default: 40)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "houses.csv"
        houses(600).to_csv(path, index=False)
        table = read_table(path)
    fitted = fit_table(table, "sold", budget=600, splits=max(2, options.seeds), epochs=options.epochs)
    print(f"{'model':<16}{'parameters':>12}{'fit time':>12}{'accuracy':>18}")
    for each in fitted.results:
        spread = float(np.std(each.scores, ddof=1))
        numbers = f"{each.parameters:>12,}{each.fit_time:>10.2f} s{each.mean:>11.3f} +- {spread:.3f}"
        print(f"{each.family:<16}{numbers}")
    print(f"\nDo dendrites help? {verdict(fitted.results)} Kept: {fitted.kept}.\n")
    for column in column_importances(explain_rows(fitted.model, fitted.frame)):
        print(f"{column.column:<16}{column.share:>8.0%} of all contributions ({column.low:.0%} to {column.high:.0%})")
    print()
    with warnings.catch_warnings(record=True) as caught:  # the model has not seen Utrecht
        warnings.simplefilter("always")
        predicted = fitted.model.predict(houses(3, seed=1).assign(town=["Delft", "Leiden", "Utrecht"]))
    print(predicted.round(2).to_string(index=False))
    print("\n".join(str(each.message) for each in caught))
    scores = ", ".join(f"{each.family} {each.mean:.3f}" for each in fitted.results)
    print(f"Result: {scores} on rows left out; the comparison recommends {fitted.kept}, which is kept.")


if __name__ == "__main__":
    main()
