"""What a comparison consists of: its cells, the configurations drawn for each, and the best on validation."""

import functools
import json
import math
import random

import numpy as np
import pytest
import torch
from compare_cases import SMALL, made_trial, small_plan
from hypothesis import given
from hypothesis import strategies as st

from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.engine.trial import SEARCH, TEST
from dendritree_lab.studies.fair.comparison_plan import BUDGETS, ComparisonCell, ComparisonPlan, draw_configuration
from dendritree_lab.studies.fair.families import OURS

DIGITS = Task.parse("digits:128")


def names(plan):
    return [(cell.task.name, cell.budget, cell.family) for cell in plan.cells]


# ------------------------------------------------------------------------------------------------------------- cells


def test_nothing_said_is_everything():
    plan = ComparisonPlan.make()
    found = names(plan)
    assert len(set(found)) == len(found)
    assert {task for task, _, _ in found} == set(BUDGETS)
    for task, text in BUDGETS.items():
        budgets = [1000 * int(word.removesuffix("k")) for word in text.split()]
        images = Task.parse(task).image_shape is not None
        for family in ("dense", "deep", "cnn") if images else ("dense", "sparse", "tree"):
            mine = [budget for name, budget, each in found if (name, each) == (task, family)]
            larger = [72_000, 144_000] if family == "dense" and task in ("mnist", "fashion-mnist") else []
            assert mine == budgets + larger
        assert [budget for name, budget, each in found if (name, each) == (task, "linear")] == [0]


def test_what_is_said_is_all_there_is():
    plan = ComparisonPlan.make(["mnist", "digits:128"], budgets=["9k", 500], families=["tree", "linear"])
    assert names(plan) == [
        (task, budget, family)
        for task in ("mnist", "digits:128")
        for budget, family in ((0, "linear"), (9000, "tree"), (500, "tree"))
    ]


def test_the_config_is_json_and_says_what_decides_a_trial():
    plan = small_plan()
    config = plan.as_config()
    assert json.loads(json.dumps(config)) == config
    for changed in ({"trials": 4}, {"steps": 9}, {"test_steps": 9}):
        assert small_plan(**changed).as_config() != config
    for kept in ({"seeds": 9}, {"budgets": [900]}, {"families": ["tree"]}):  # may grow
        assert small_plan(**kept).as_config() == config
    assert small_plan("digits").as_config() == config


# ----------------------------------------------------------------------------------------------------------- searches


@pytest.fixture(scope="module")
def jobs():
    """The searches of a small plan by cell."""
    plan = small_plan("digits:128", "digits", budgets=[300, 500])
    return {cell: list(plan.searches(cell)) for cell in plan.cells}


def test_every_cell_tries_as_many_choices_for_as_long(jobs):
    assert {cell.family for cell in jobs} == set(OURS)
    for cell, found in jobs.items():
        assert [job.index for job in found] == list(range(SMALL["trials"]))
        assert {(job.phase, job.cell) for job in found} == {(SEARCH, cell)}
        assert {job.steps for job in found} == {SMALL["steps"]}
        assert len({(job.configuration.lr, repr(job.configuration.arguments)) for job in found}) == len(found)


def test_a_choice_hangs_on_task_family_budget_and_index_alone(jobs):
    """Whatever else the plan has, whatever was drawn before, whatever state the random numbers are in."""
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    random.seed(1)
    for cell, found in reversed(jobs.items()):
        assert draw_configuration(cell, 1) == found[1].configuration
    longer = small_plan(trials=4, seeds=7, steps=99)
    cell = ComparisonCell(DIGITS, 300, "sparse")
    assert [job.configuration for job in longer.searches(cell)][:3] == [job.configuration for job in jobs[cell]]


# ----------------------------------------------------------------------------------------------- the best on validation

TREE = ComparisonCell(DIGITS, 500, "tree")
HOUSES = ComparisonCell(Task.parse("california-housing"), 500, "dense")


@functools.cache
def searches_of(cell):
    return list(small_plan().searches(cell))


def found_by(cell, curves):
    """The configuration that a search with these three validation curves leads to, the drawn ones, and the search."""
    searches = searches_of(cell)
    records = [
        made_trial(job, val_loss=[loss for loss, _ in points], val_acc=[accuracy for _, accuracy in points])
        for job, points in zip(searches, curves, strict=True)
    ]
    random.Random(0).shuffle(records)
    return small_plan().best(cell, records), [job.configuration for job in searches], records


@given(st.lists(st.integers(0, 4), min_size=3, max_size=3), st.sampled_from([TREE, HOUSES]))
def test_the_best_on_validation_is_chosen_the_first_of_equals(ranks, cell):
    if cell is TREE:
        chosen, drawn, _ = found_by(cell, [[(1.0, rank / 4)] for rank in ranks])
        best = ranks.index(max(ranks))
    else:
        chosen, drawn, _ = found_by(cell, [[(rank / 4, math.nan)] for rank in ranks])
        best = ranks.index(min(ranks))
    assert chosen == drawn[best]


def test_a_model_is_judged_at_its_best_epoch_by_loss():
    """The weights that are kept are those of the lowest loss, so a high accuracy of another epoch does not count."""
    chosen, drawn, _ = found_by(TREE, [[(0.9, 0.5), (2.0, 0.99)], [(1.0, 0.4), (0.8, 0.6)], [(1.0, 0.55)]])
    assert chosen == drawn[1]


def test_a_search_that_diverged_is_never_the_best():
    nan = math.nan
    chosen, drawn, _ = found_by(HOUSES, [[(nan, nan)], [(4.0, nan)], [(math.inf, nan)]])
    assert chosen == drawn[1]
    chosen, drawn, _ = found_by(TREE, [[(nan, 0.1)], [(nan, nan)], [(2.0, 0.3)]])
    assert chosen == drawn[2]


def test_none_is_chosen_and_none_judged_before_the_search_is_whole():
    _, drawn, records = found_by(TREE, [[(1.0, 0.1)], [(1.0, 0.2)], [(1.0, 0.3)]])
    plan = small_plan()
    cells = ComparisonCell(DIGITS, 300, "tree"), ComparisonCell(DIGITS, 500, "dense")
    others = [made_trial(job, val_loss=[0.1], val_acc=[1.0]) for cell in cells for job in searches_of(cell)]
    for few in ([], records[:2], [*records[:2], *others]):
        assert plan.best(TREE, few) is None
        assert list(plan.tests(TREE, few)) == []
    assert plan.best(TREE, [*others, *records]) == drawn[2]


def test_the_choice_is_judged_with_fresh_seeds_for_longer():
    _, drawn, records = found_by(TREE, [[(1.0, 0.1)], [(1.0, 0.3)], [(1.0, 0.2)]])
    judged = list(small_plan().tests(TREE, records))
    assert [(job.phase, job.index, job.configuration, job.steps) for job in judged] == [
        (TEST, index, drawn[1], SMALL["test_steps"]) for index in range(SMALL["seeds"])
    ]
    assert not {job.seed for job in judged} & {record.seed for record in records}
    assert list(small_plan(seeds=5).tests(TREE, records))[:2] == judged  # more seeds later leave the first ones
