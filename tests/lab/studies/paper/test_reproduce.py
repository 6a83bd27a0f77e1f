"""A run from beginning to end in this process: what is requested is run once, stored immediately, and reported."""

import dataclasses

import pytest
from effort import thorough
from small_paper import CONTROLS, write_specs
from small_paper import TREES as MORE_TREES

from dendritree.errors import FormatError, OptionError
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.paper import reproduction as module
from dendritree_lab.studies.paper.paper_trials import run_job
from dendritree_lab.studies.paper.protocol import FULL, PROTOCOLS
from dendritree_lab.studies.paper.records import Row
from dendritree_lab.studies.paper.reproduction import (
    RunPlan,
    planned_trials,
    records_of,
    reference_seconds_of,
    reproduce,
)

PAPER = dataclasses.replace(PROTOCOLS["paper"], epochs=thorough(20, 100))
RATES = thorough([0.0, 0.3], [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
TREES = MORE_TREES.replace("0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6", str(RATES)[1:-1])
OF_TREES = len(RATES) * 5
TRIALS = OF_TREES + 2 * 2 * 3


@pytest.fixture(scope="module", autouse=True)
def _few_epochs():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PROTOCOLS, "paper", PAPER)
        yield


def run(folder, specs, **options):
    """Run; return what an observer was told, in order."""
    notes = []
    plan = RunPlan.make(specs=specs, **options)
    reproduce(folder, plan, workers=Workers("here"), observer=lambda *told: notes.append(told))
    return notes


def stored(notes):
    """How many trials were stored, by what was told."""
    first, last = {}, {}
    for table, done, _ in notes:
        first.setdefault(table, done)
        last[table] = done
    return sum(last.values()) - sum(first.values())


def records_in(folder, table=None, **options):
    with RunStore.open_for_reading(folder) as store:
        return [record for record in records_of(store, **options) if table in (None, record.row.table)]


def contents(records):
    return [dataclasses.replace(record, seconds=0.0) for record in records]


@pytest.fixture(scope="module")
def whole(real_data, tmp_path_factory):
    """The small paper, run without interruption: its tables, its folder and what was told."""
    real_data("mnist")
    folder = tmp_path_factory.mktemp("whole")
    specs = write_specs(folder / "specs", TREES, CONTROLS)
    return specs, folder / "run", run(folder / "run", specs)


# ------------------------------------------------------------------------------------------------------- a whole run


def test_every_trial_is_there_once(whole):
    specs, folder, _ = whole
    records = records_in(folder)
    keys = [(record.row, record.index) for record in records]
    assert len(keys) == len(set(keys)) == TRIALS
    assert set(keys) == {
        (Row(spec.table, "binary", model.network, model.size, dropout), index)
        for spec in specs
        for model in spec.models
        for dropout in spec.dropouts
        for index in range(spec.trials)
    }


def test_trials_are_those_of_their_jobs(whole):
    specs, folder, _ = whole
    row = specs[0].row(specs[0].models[0], 0.3)
    kept = [record for record in records_in(folder, with_weights=True) if record.row == row]
    job = module.Job(PAPER, row, "mnist-4-9", 1, 4, 2, 0.05)
    assert contents(run_job(job))[:1] == contents(kept)[4:]  # of the last stack one trial is wanted, and one is stored
    assert [record.weights is None for record in kept] == [False, True, True, True, True]


def test_the_observer_hears_of_tables_and_trials_in_order(whole):
    _, _, notes = whole
    assert notes[:2] == [("binary-dendritic", 0, OF_TREES), ("binary-mlp", 0, 12)]
    assert [table for table, *_ in notes[2:]] == ["binary-dendritic"] * 3 * len(RATES) + ["binary-mlp"] * 8
    assert ("binary-dendritic", OF_TREES, OF_TREES) in notes
    assert notes[-1] == ("binary-mlp", 12, 12)
    assert stored(notes) == TRIALS


def test_the_reference_is_timed_for_every_dendritic_row_and_only_once(whole):
    specs, folder, _ = whole
    with RunStore.open_for_reading(folder) as store:
        before = reference_seconds_of(store)
    assert {row.dropout for _, row in before} == set(specs[0].dropouts)
    assert {(row.table, row.network, row.size) for _, row in before} == {("binary-dendritic", "mln-binary", 32)}
    assert all(seconds > 0 for seconds in before.values())
    run(folder, specs)
    with RunStore.open_for_reading(folder) as store:
        assert reference_seconds_of(store) == before


def test_a_second_call_runs_nothing_and_changes_nothing(whole):
    specs, folder, _ = whole
    before = records_in(folder, with_weights=True)
    notes = run(folder, specs)
    assert notes == [("binary-dendritic", OF_TREES, OF_TREES), ("binary-mlp", 12, 12)]
    assert records_in(folder, with_weights=True) == before


# --------------------------------------------------------------------------------------------------- parts, and more


def test_raising_the_number_of_trials_keeps_the_old_ones_and_gives_what_one_run_gives(whole, tmp_path):
    specs, folder, _ = whole
    first = run(tmp_path, specs, names=["binary-mlp"], trials=1)
    assert [done for _, done, _ in first] == [0, 1, 2, 3, 4]  # one of each stack of two
    before = records_in(tmp_path, with_weights=True)
    assert [record.index for record in before] == [0] * 4
    more = run(tmp_path, specs, names=["binary-mlp"])
    assert stored(more) == 8
    after = records_in(tmp_path, with_weights=True)
    assert [record for record in after if record.index == 0] == before  # with their seconds: not run again
    assert contents(after) == contents(records_in(folder, table="binary-mlp", with_weights=True))
    less = run(tmp_path, specs, names=["binary-mlp"], trials=2)
    assert (stored(less), len(records_in(tmp_path))) == (0, 12)


def test_a_partly_stored_stack_is_computed_whole_and_only_what_is_missing_is_stored(whole, tmp_path):
    specs, folder, _ = whole
    everything = records_in(folder, table="binary-mlp", with_weights=True)
    half = [record for record in everything if (record.index + record.row.size) % 2]
    with RunStore.create_or_open(tmp_path, RunPlan.make(specs=specs).config) as store:
        store.add([record.as_trial() for record in half])
    notes = run(tmp_path, specs, names=["binary-mlp"])
    assert stored(notes) == len(everything) - len(half)
    found = records_in(tmp_path, with_weights=True)
    assert contents(found) == contents(everything)
    assert [record for record in found if (record.index + record.row.size) % 2] == half


def test_one_folder_holds_several_tables_one_after_the_other(whole, tmp_path):
    specs, folder, _ = whole
    run(tmp_path, specs, names=["binary-mlp"], trials=1)
    run(tmp_path, specs, names=["binary-dendritic"], trials=1)
    assert len(records_in(tmp_path)) == 4 + len(RATES)
    with RunStore.open_for_reading(tmp_path) as store:
        counts = planned_trials(RunPlan.make(specs=specs), store)
    assert sum(counts.values()) == TRIALS
    assert set(counts) == {("paper", record.row) for record in records_in(folder)}


def test_another_draw_is_refused_in_a_folder_begun_per_trial_with_the_difference(whole):
    specs, folder, _ = whole
    before = records_in(folder)
    with pytest.raises(
        FormatError,
        match=r"it was started with: .* differs in protocols\.paper\.draw: .*once",
    ):
        run(folder, specs, draw="once")
    assert records_in(folder) == before


def test_other_specs_are_refused_with_the_difference(whole, tmp_path):
    _, folder, _ = whole
    other = write_specs(tmp_path / "specs", TREES.replace("stack = 2", "stack = 5"), CONTROLS)
    with pytest.raises(FormatError, match=r"differs in tables\.binary-dendritic\.stack: 2 -> 5"):
        run(folder, other)


# -------------------------------------------------------------------------------------------------------------- plans


def test_a_plan_is_all_tables_and_full_leaves_out_the_cnn_unless_asked():
    assert len(RunPlan.make().tables) == 6
    assert {spec.task for spec in RunPlan.make(protocol="full").tables} == {"binary", "multiclass"}
    assert {spec.task for spec in RunPlan.make(["cnn"], "full").tables} == {"cnn"}
    assert RunPlan.make().protocol == PAPER
    assert RunPlan.make(protocol="full").protocol == FULL
    assert RunPlan.make(draw="once").protocol == dataclasses.replace(PAPER, draw="once")


def test_a_part_of_the_tables_and_another_protocol_go_into_the_same_folder():
    config = RunPlan.make().config
    assert RunPlan.make(["binary"], trials=3).config == config
    assert RunPlan.make(["cnn"], "full").config == config
    assert RunPlan.make(draw="per-trial").config == config
    assert RunPlan.make(draw="once").config != config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["bianry"]}, r"a table or task must be one of .*got 'bianry'; did you mean 'binary'\?"),
        ({"protocol": "papre"}, r"protocol must be one of 'paper', 'full': got 'papre'; did you mean 'paper'\?"),
        ({"trials": 0}, "trials must be an integer of at least 1: got 0"),
        ({"trials": -3}, "trials must be an integer of at least 1: got -3"),
        ({"draw": "twice"}, "draw must be one of 'per-trial', 'once', 'ten': got 'twice'"),
        ({"draw": "all"}, "draw must be one of 'per-trial', 'once', 'ten': got 'all'"),
        ({"protocol": "full", "draw": "once"}, "draw is for protocol 'paper': 'full' uses all images"),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused(options, message):
    with pytest.raises(OptionError, match=message):
        RunPlan.make(**options)


def test_two_tables_of_one_name_are_refused(tmp_path):
    specs = write_specs(tmp_path / "specs", TREES, TREES)
    with pytest.raises(OptionError, match="binary-dendritic"):
        RunPlan.make(specs=specs)
