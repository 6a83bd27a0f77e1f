"""What a run still lacks: stacks are those of the spec, whatever is left of them."""

import dataclasses
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_trials import made_trial

from dendritree_lab.studies.paper.paper_jobs import chosen_lr, missing_jobs, run_config, wanted_trials
from dendritree_lab.studies.paper.protocol import FULL, LR_SEARCH, PAPER
from dendritree_lab.studies.paper.records import Row
from dendritree_lab.studies.paper.spec import ModelSpec, TableSpec, read_specs

ROW = Row("binary-mlp", "binary", "mlp", 2, 0.0)


def named(key):
    """The named values of a key as the store has it."""
    return json.loads(key[1])


def table(trials=10, stack=4, dropouts=(0.0, 0.4), sizes=(2, 3)):
    models = tuple(ModelSpec("mlp", size, 0.4) for size in sizes)
    return TableSpec("binary-mlp", "T", "l", "binary", "mnist-4-9", 0.001, dropouts, trials, stack, models)


def test_trials_are_wanted_table_by_table_in_order():
    wanted = wanted_trials(read_specs(), PAPER, [])
    tables = [table for table, _ in itertools.groupby(wanted, lambda key: named(key)["table"])]
    assert tables == [spec.table for spec in read_specs()]
    assert len(wanted) == 1190 + 4 * 70


def test_a_trial_belongs_to_the_stack_of_its_number():
    for key, job in wanted_trials([table(trials=10, stack=4)], PAPER, []).items():
        index = named(key)["iteration"]
        assert index in job.indices
        assert (job.first, job.count) == (index // 4 * 4, 4)  # the last stack is as large as the others


@given(
    trials=st.integers(1, 12),
    stack=st.integers(1, 6),
    more=st.integers(0, 8),
    data=st.data(),
)
def test_jobs_depend_on_the_spec_and_never_on_what_is_left(trials, stack, more, data):
    spec = table(trials, stack)
    wanted = wanted_trials([spec], PAPER, [])
    stored = {key for key in wanted if data.draw(st.booleans())}
    every = missing_jobs(wanted, set())
    missing = missing_jobs(wanted, stored)
    lacking = wanted.keys() - stored
    assert len(missing) == len(set(missing))
    assert [job for job in every if job in missing] == missing  # a part of all the jobs, in their order
    assert set(missing) == {wanted[key] for key in lacking}
    larger = missing_jobs(wanted_trials([spec], PAPER, [], trials=trials + more), set())
    assert set(every) <= set(larger)  # asking for more trials later changes no stack


def test_a_partly_stored_stack_is_one_whole_job_and_a_stored_one_none():
    wanted = wanted_trials([table(trials=8, stack=4, dropouts=(0.0,), sizes=(2,))], PAPER, [])
    keys = list(wanted)
    assert [(job.first, job.count) for job in missing_jobs(wanted, set(keys[:3]))] == [(0, 4), (4, 4)]
    assert [(job.first, job.count) for job in missing_jobs(wanted, {*keys[:4], keys[5]})] == [(4, 4)]
    assert missing_jobs(wanted, set(keys)) == []


def test_a_number_of_trials_replaces_the_spec_s():
    assert len(wanted_trials([table()], PAPER, [])) == 10 * 4
    assert len(wanted_trials([table()], PAPER, [], trials=3)) == 3 * 4
    assert len(wanted_trials([table()], PAPER, [], trials=15)) == 15 * 4


def test_another_protocol_s_trials_are_not_taken_for_ours():
    wanted = wanted_trials([table()], PAPER, [])
    others = {(study, text.replace('"protocol": "paper"', '"protocol": "full"')) for study, text in wanted}
    assert missing_jobs(wanted, others) == missing_jobs(wanted, set())


# ------------------------------------------------------------------------------------------------------ learning rates


def search(losses, row=ROW):
    return [
        made_trial(row, i, protocol=LR_SEARCH, lr=lr, history={c: [9.0, loss, 8.0] for c in ("train_loss", "val_loss")})
        for i, (lr, loss) in enumerate(losses.items())
    ]


GRID = dataclasses.replace(FULL, lr_grid=(0.001, 0.01, 0.1))


@pytest.mark.parametrize(
    ("losses", "rate"),
    [
        ({0.001: 0.5, 0.01: 0.3, 0.1: 0.4}, 0.01),
        ({0.001: 0.3, 0.01: 0.3, 0.1: 0.4}, 0.001),  # the smaller one of equals
        ({0.001: 0.5, 0.01: float("nan"), 0.1: 0.6}, 0.001),
        ({0.001: 0.5, 0.01: 0.3}, None),
        ({}, None),
    ],
    ids=str,
)
def test_the_rate_with_the_lowest_best_validation_loss_is_chosen_once_all_were_tried(losses, rate):
    assert chosen_lr(GRID, ROW, search(losses)) == rate


def test_a_model_that_fails_at_one_rate_is_judged_by_the_others():
    nan = float("nan")
    records = search({0.001: 0.5, 0.01: 0.2, 0.1: 0.6})
    failed = dataclasses.replace(records[1], history={"train_loss": [nan] * 3, "val_loss": [nan] * 3})
    assert chosen_lr(GRID, ROW, [records[0], failed, records[2]]) == 0.001


def test_another_row_s_search_does_not_count():
    other = dataclasses.replace(ROW, dropout=0.4)
    assert chosen_lr(GRID, other, search({0.001: 0.5, 0.01: 0.3, 0.1: 0.4})) is None


def test_full_first_searches_alone_then_trains_each_row_at_its_rate():
    spec = table(sizes=(2,))
    first = wanted_trials([spec], GRID, [])
    assert [(named(key)["protocol"], named(key)["dropout"], job.lr) for key, job in first.items()] == [
        (LR_SEARCH, p, lr) for p in (0.0, 0.4) for lr in GRID.lr_grid
    ]
    assert {job.count for job in first.values()} == {1}
    then = wanted_trials([spec], GRID, search({0.001: 0.5, 0.01: 0.3, 0.1: 0.4}))
    final = [(named(key), job) for key, job in then.items() if named(key)["protocol"] == "full"]
    assert [(key["dropout"], key["iteration"], job.lr) for key, job in final] == [(0.0, i, 0.01) for i in range(3)]
    assert {job.count for _, job in final} == {1}


def test_the_config_of_a_run_names_all_tables_and_protocols():
    config = run_config(read_specs(), [PAPER, FULL])
    assert set(config["tables"]) == {spec.table for spec in read_specs()}
    assert config["protocols"] == {"paper": PAPER.as_config(), "full": FULL.as_config()}
