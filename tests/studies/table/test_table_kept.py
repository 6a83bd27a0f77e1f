"""What a stopped fit is known by, and what it keeps."""

import pandas as pd
import pytest
from table_cases import houses

from dendritree.errors import FormatError
from dendritree.studies.table.fit import fit_table
from dendritree.studies.table.kept import kept_trials, table_digest


def test_a_table_is_known_by_its_cells_columns_and_types():
    frame = houses(30)
    others = [
        frame.iloc[::-1],
        frame.iloc[:-1],
        frame.rename(columns={"town": "city"}),
        frame[[*frame.columns[1:], frame.columns[0]]],
        frame.assign(id=frame["id"].astype(float)),
        frame.assign(town=frame["town"].fillna("")),
    ]
    digests = {table_digest(each) for each in [frame, *others]}
    assert len(digests) == 1 + len(others)
    assert table_digest(frame.copy()) == table_digest(frame.set_axis(range(7, 37)))


def test_a_table_with_cells_that_are_lists_or_of_several_types_is_known_too():
    frames = [pd.DataFrame({"a": cells}) for cells in ([[1], [2]], [[1], [3]], [1, "x"], [1, "y"], [None, "y"])]
    assert len({table_digest(frame) for frame in frames}) == len(frames)


def test_a_call_resumes_from_what_another_has_trained_and_gives_the_same_scores(tmp_path):
    options = {"budget": 300, "splits": 2, "epochs": 1, "unfinished": tmp_path / "kept"}
    first, seen = fit_table(houses(40), "price", **options), []
    again = fit_table(houses(40), "price", **options, observer=lambda *progress: seen.append(progress))
    assert [result.scores for result in again.results] == [result.scores for result in first.results]
    assert [result.seconds for result in again.results] == [result.seconds for result in first.results]
    assert seen == [("comparing", 0, 8), ("comparing", 8, 8, "trained before"), ("training on all rows", 1, 1)]
    with pytest.raises(FormatError, match=r"differs in table: .*; remove that folder to begin anew$"):
        fit_table(houses(40, seed=1), "price", **options)


def test_a_store_without_a_trial_is_removed(tmp_path):
    with kept_trials(tmp_path / "kept", houses(30), {}) as store:
        assert len(store) == 0
    assert list(tmp_path.iterdir()) == []
