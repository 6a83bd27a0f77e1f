"""A run from beginning to end in this process: what is requested is run once, stored immediately, and reported."""

import dataclasses

import pytest
from effort import thorough
from small_paper import CONTROLS, write_specs
from small_paper import TREES as MORE_TREES

from dendritree.errors import FormatError
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.paper.paper_trials import PaperJob, PaperTrial, run_job
from dendritree_lab.studies.paper.reproduction import (
    RunPlan,
    planned_trials,
    reference_seconds_of,
    reproduce,
    trials_of,
)
from dendritree_lab.studies.paper.spec import PROTOCOLS

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
    reproduce(folder, plan, workers=Workers("here"), observer=lambda *call: notes.append(call[:3]))
    return notes


def trials_in(folder, table=None):
    with RunStore.open_for_reading(folder) as store:
        return [trial for trial in trials_of(store) if table in (None, trial.row.table)]


def contents(trials):
    return [dataclasses.replace(trial, seconds=0.0, weights=None) for trial in trials]


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
    keys = [(trial.row, trial.index) for trial in trials_in(folder)]
    assert len(keys) == len(set(keys)) == TRIALS
    assert set(keys) == {
        (spec.row(model, dropout), index)
        for spec in specs
        for model in spec.models
        for dropout in spec.dropouts
        for index in range(spec.trials)
    }


def test_a_run_remembers_how_many_trials_were_asked_for(whole, tmp_path, monkeypatch):
    specs, _, _ = whole
    monkeypatch.setattr("dendritree_lab.studies.paper.reproduction.read_specs", lambda: specs)
    run(tmp_path / "run", specs, names=["binary-mlp"], trials=2)
    with RunStore.open_for_reading(tmp_path / "run") as store:
        assert set(planned_trials(store).values()) == {2}
        assert {row.table for _, row in planned_trials(store)} == {"binary-mlp"}


def test_trials_are_those_of_their_jobs_and_the_first_of_a_row_keeps_its_weights(whole):
    specs, folder, _ = whole
    row = specs[0].row(specs[0].models[0], 0.3)
    stored = [trial for trial in trials_in(folder) if trial.row == row]
    job = PaperJob(PAPER, row, "mnist-4-9", 1, 4, 2, 1, 0.05)
    assert contents(run_job(job)) == contents(stored)[4:]  # of the last stack one trial is wanted, and one is stored
    with RunStore.open_for_reading(folder) as store:
        kept = [PaperTrial.of(trial) for trial in store.kept_trials()]
    assert [trial.index for trial in kept if trial.row == row] == [0]


def test_a_second_call_runs_and_times_nothing_and_changes_nothing(whole):
    specs, folder, _ = whole
    trials = trials_in(folder)
    with RunStore.open_for_reading(folder) as store:
        seconds = reference_seconds_of(store)
    assert {row.dropout for _, row in seconds} == set(specs[0].dropouts)
    assert {(row.table, row.network, row.size) for _, row in seconds} == {("binary-dendritic", "mln-binary", 32)}
    assert all(each > 0 for each in seconds.values())
    assert [done for _, done, _ in run(folder, specs)] == [OF_TREES, TRIALS - OF_TREES]  # told once, as stored
    assert trials_in(folder) == trials
    with RunStore.open_for_reading(folder) as store:
        assert reference_seconds_of(store) == seconds


# --------------------------------------------------------------------------------------------------- parts, and more


def test_more_trials_later_give_the_same_as_all_at_once(whole, tmp_path):
    specs, folder, _ = whole
    for trials in (1, 3):
        run(tmp_path, specs, names=["binary-dendritic"], trials=trials)
    run(tmp_path, specs, names=["binary-dendritic"])
    assert contents(trials_in(tmp_path)) == contents(trials_in(folder, "binary-dendritic"))


def test_lost_trials_are_made_again_bit_for_bit(whole, tmp_path):
    specs, folder, _ = whole
    trials = trials_in(folder)
    half = [trial for trial in trials if (trial.index + trial.row.size) % 2]
    with RunStore.create_or_open(tmp_path, RunPlan.make(specs=specs).config) as store:
        store.add(half)
    run(tmp_path, specs)
    resumed = trials_in(tmp_path)
    assert contents(resumed) == contents(trials)
    assert [trial for trial in resumed if (trial.index + trial.row.size) % 2] == half


def test_another_draw_and_other_specs_are_rejected_with_the_difference(whole, tmp_path):
    specs, folder, _ = whole
    before = trials_in(folder)
    with pytest.raises(FormatError, match=r"protocols\.paper\.draw changed"):
        run(folder, specs, draw="once")
    other = write_specs(tmp_path / "specs", TREES.replace("stack = 2", "stack = 5"), CONTROLS)
    with pytest.raises(FormatError, match=r"stack changed from 2 to 5"):
        run(folder, other)
    assert trials_in(folder) == before
