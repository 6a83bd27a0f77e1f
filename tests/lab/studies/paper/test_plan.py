"""What a run consists of: stacks are those of the spec, whatever is left of them."""

import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_trials import made_trial

from dendritree_lab.studies.paper.reproduction import RunPlan, best_lr
from dendritree_lab.studies.paper.spec import FULL, LR_SEARCH, PAPER, ModelSpec, TableRow, TableSpec, read_specs

ROW = TableRow("binary-mlp", "binary", "mlp", 2, 0.0)
GRID = dataclasses.replace(FULL, lr_grid=(0.001, 0.01, 0.1))


def table(trials=10, stack=4, dropouts=(0.0, 0.4), sizes=(2, 3)):
    models = tuple(ModelSpec("mlp", size, 0.4) for size in sizes)
    return TableSpec("binary-mlp", "T", "l", "binary", "mnist-4-9", 0.001, dropouts, trials, stack, models)


def jobs_of(*specs, protocol=PAPER, done=(), trials=None):
    return list(RunPlan(specs, protocol, trials).jobs(done))


def test_all_trials_of_the_paper_are_planned_table_by_table_and_no_two_share_a_seed():
    jobs = jobs_of(*read_specs())
    assert [name for name, _ in itertools.groupby(job.row.table for job in jobs)] == [s.table for s in read_specs()]
    seeds = [job.seed(index) for job in jobs for index in job.indices[: job.size]]
    assert len(seeds) == len(set(seeds)) == sum(job.size for job in jobs) == 1190 + 4 * 70


@given(trials=st.integers(1, 12), stack=st.integers(1, 6), more=st.integers(0, 8))
def test_jobs_cover_each_trial_once_and_asking_for_more_changes_no_stack(trials, stack, more):
    spec = table(trials, stack)
    jobs = jobs_of(spec)
    keys = [key["iteration"] for job in jobs if job.row == ROW for key in job.keys]
    assert keys == list(range(trials))
    assert all((job.first % stack, job.stack) == (0, stack) for job in jobs)  # the last stack is as large as the others
    larger = {(job.row, job.first, job.stack): job for job in jobs_of(spec, trials=trials + more)}
    for job in jobs:
        again = larger[job.row, job.first, job.stack]
        assert dataclasses.replace(again, size=job.size) == job
        assert again.size >= job.size


# ------------------------------------------------------------------------------------------------------ learning rates


def search(losses, row=ROW):
    return [
        made_trial(row, i, protocol=LR_SEARCH, lr=lr, curves={"val_loss": [9.0, loss, 8.0]})
        for i, (lr, loss) in enumerate(losses.items())
    ]


@pytest.mark.parametrize(
    ("losses", "rate"),
    [
        ({0.001: 0.5, 0.01: 0.3, 0.1: 0.4}, 0.01),
        ({0.001: 0.3, 0.01: 0.3, 0.1: 0.4}, 0.001),  # the smaller one of equals
        ({0.001: 9.5, 0.01: float("nan"), 0.1: 0.6}, 0.1),
        ({0.001: 0.5, 0.01: 0.3}, None),
        ({}, None),
    ],
    ids=str,
)
def test_the_rate_with_the_lowest_best_validation_loss_is_selected_once_all_were_tried(losses, rate):
    assert best_lr(GRID, ROW, search(losses)) == rate
    assert best_lr(GRID, dataclasses.replace(ROW, dropout=0.4), search(losses)) is None


def test_full_first_searches_alone_then_trains_each_row_at_its_rate():
    spec = table(sizes=(2,))
    first = jobs_of(spec, protocol=GRID)
    rates = [(LR_SEARCH, p, lr) for p in (0.0, 0.4) for lr in GRID.lr_grid]
    assert [(job.kept_as, job.row.dropout, job.lr) for job in first] == rates
    assert {(job.stack, job.size) for job in first} == {(1, 1)}
    then = jobs_of(spec, protocol=GRID, done=search({0.001: 0.5, 0.01: 0.3, 0.1: 0.4}))
    final = [job for job in then if job.kept_as == "full"]
    assert [(job.row.dropout, job.first, job.stack, job.lr) for job in final] == [(0.0, i, 1, 0.01) for i in range(3)]
    assert not {job.seed(job.first) for job in first} & {job.seed(job.first) for job in final}


# -------------------------------------------------------------------------------------------------------------- options


def test_a_plan_is_all_tables_and_full_leaves_out_the_cnn_unless_asked():
    assert len(RunPlan.make().tables) == 6
    assert {spec.task for spec in RunPlan.make(protocol="full").tables} == {"binary", "multiclass"}
    assert {spec.task for spec in RunPlan.make(["cnn"], "full").tables} == {"cnn"}
    assert RunPlan.make().protocol == PAPER
    assert RunPlan.make(draw="once").protocol == dataclasses.replace(PAPER, draw="once")


def test_a_part_of_the_tables_and_another_protocol_go_into_the_same_folder():
    config = RunPlan.make().config
    assert set(config["tables"]) == {spec.table for spec in read_specs()}
    assert config["protocols"] == {"paper": PAPER.as_config(), "full": FULL.as_config()}
    assert RunPlan.make(["binary"], trials=3).config == RunPlan.make(["cnn"], "full").config == config
    assert RunPlan.make(draw="once").config != config
