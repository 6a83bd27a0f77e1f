"""Made-up tables for the tests of `dendritree fit`."""

import numpy as np
import pandas as pd

TOWNS = np.array(["Delft", "Gouda", "Leiden"])


def houses(rows=60, seed=0):
    """Numbers, categories, dates, missing cells, a name per row and a constant; the price follows rooms and town."""
    random = np.random.default_rng(seed)
    rooms = random.integers(1, 8, rows).astype(float)
    town = random.integers(0, 3, rows)
    frame = pd.DataFrame(
        {
            "id": np.arange(100, 100 + rows),
            "owner": [f"owner {place}" for place in range(rows)],
            "rooms": rooms,
            "town": TOWNS[town],
            "built": pd.Timestamp("2001-03-04") + pd.to_timedelta(random.integers(0, 9000, rows), unit="D"),
            "garden": random.random(rows) < 0.5,
            "country": "NL",
            "price": (50.0 * rooms + 80.0 * town + random.normal(0, 5, rows)).round(1),
        }
    )
    frame.loc[3, "rooms"] = np.nan
    frame.loc[5, "town"] = None
    frame["built"] = frame["built"].dt.strftime("%Y-%m-%d")
    frame["dear"] = np.where(frame["price"] > frame["price"].median(), "yes", "no")
    return frame
