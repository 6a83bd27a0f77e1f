"""What a stopped fit is known by, and what it keeps."""

import pytest
from table_cases import houses

from dendritree.errors import FormatError
from dendritree_lab.studies.table.controls import LABELS, TRAINED
from dendritree_lab.studies.table.table_fit import MODEL, fit_table, table_digest


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


def test_a_call_resumes_from_what_another_has_trained_and_gives_the_same_scores(tmp_path):
    options = {"budget": 300, "splits": 2, "epochs": 1, "unfinished": tmp_path / "kept"}
    first, seen = fit_table(houses(40), "price", **options), []
    again = fit_table(houses(40), "price", **options, observer=lambda *progress: seen.append(progress))
    assert [result.scores for result in again.results] == [result.scores for result in first.results]
    assert [result.fit_time for result in again.results] == [result.fit_time for result in first.results]
    for one, other in zip(first.results[:-1], again.results[:-1], strict=True):
        assert one.predicted.values.tobytes() == other.predicted.values.tobytes()
        assert one.predicted.certainty.tobytes() == other.predicted.certainty.tobytes()
    assert seen == [(MODEL, 0, 1), (MODEL, 1, 1), *((LABELS[family], 2, 2) for family in TRAINED)]
    with pytest.raises(FormatError, match="table changed from"):
        fit_table(houses(40, seed=1), "price", **options)
    assert fit_table(houses(40, seed=1), "price", **options, anew=True).rows == 40
