"""What a stopped fit is known by, and what it keeps."""

import pandas as pd
import pytest
from table_cases import houses

from dendritree.errors import FormatError, OptionError
from dendritree_lab.studies.engine.trial import CURVES, Trial
from dendritree_lab.studies.table.stored_trials import kept_trials, table_digest
from dendritree_lab.studies.table.table_fit import fit_table


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
    assert [result.fit_time for result in again.results] == [result.fit_time for result in first.results]
    for one, other in zip(first.results[:-1], again.results[:-1], strict=True):
        assert one.predicted.values.tobytes() == other.predicted.values.tobytes()
        assert one.predicted.certainty.tobytes() == other.predicted.certainty.tobytes()
    assert seen == [("comparing", 0, 10), ("comparing", 10, 10, "trained before"), ("training on all rows", 1, 1)]
    with pytest.raises(FormatError, match=r"differs in table: .*; remove that folder to start over$"):
        fit_table(houses(40, seed=1), "price", **options)


def test_a_folder_from_before_gradient_boosting_is_not_resumed(tmp_path):
    """It has the key `neurons`, and no predictions."""
    options = {"budget": 300, "splits": 2, "seed": 0, "epochs": 1}
    old = {"target": "price", "task": "regression", "neurons": "tree", **options}
    with kept_trials(tmp_path / "kept", houses(40), old) as store:
        curves = {curve: [1.0] for curve in CURVES}
        store.add([Trial("table", {"split": 0, "family": "tree"}, 0, {}, 300, 1.0, curves, {"test_score": 1.0})])
    with pytest.raises(
        FormatError,
        match=r"a run resumes with the settings it was started with: .*differs in families.*; remove that folder",
    ):
        fit_table(houses(40), "price", **options, unfinished=tmp_path / "kept")
    assert fit_table(houses(40), "price", **options, unfinished=tmp_path / "kept", anew=True).rows == 40


def test_another_family_is_kept_without_training_the_comparison_again(tmp_path):
    options = {"budget": 300, "splits": 2, "epochs": 1, "unfinished": tmp_path / "kept"}
    first, seen = fit_table(houses(40), "dear", keep="linear", **options), []
    second = fit_table(houses(40), "dear", keep="dense", **options, observer=lambda *progress: seen.append(progress))
    assert [each.model.estimator.neurons for each in (first, second)] == ["linear", "dense"]
    assert (second.keep, second.kept) == ("dense", "dense")
    assert ("comparing", 10, 10, "trained before") in seen


def test_the_old_name_of_keep_works_with_a_warning():
    options = {"budget": 300, "splits": 2, "epochs": 1}
    with pytest.warns(DeprecationWarning, match="neurons of fit_table is now keep"):
        assert fit_table(houses(40), "price", neurons="sparse", **options).kept == "sparse"
    with pytest.raises(OptionError, match="neurons is the old name of keep, so give one of them: got 'tree' and 'dens"):
        fit_table(houses(40), "price", neurons="tree", keep="dense", **options)
    with pytest.raises(OptionError, match="keep must be one of 'best', 'tree', 'sparse', 'dense', 'linear': got 'boo"):
        fit_table(houses(40), "price", keep="boosting", **options)


def test_a_store_without_a_trial_is_removed(tmp_path):
    with kept_trials(tmp_path / "kept", houses(30), {}) as store:
        assert len(store) == 0
    assert list(tmp_path.iterdir()) == []
