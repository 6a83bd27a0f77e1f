"""Comparisons on users' own data: stored with the run, checked for changes, answered in plain words."""

import json

import numpy as np
import pytest
import torch
from compare_cases import small_plan, trials_in
from comparison_cases import around, made_up_cell
from own_data import blobs, write_houses, write_pets

import dendritree
from dendritree.errors import FormatError
from dendritree.models.sizing import parameters_of
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.task import Task
from dendritree_lab.studies.fair import answers, compare, summarize, write_comparison
from dendritree_lab.studies.fair.comparison import DATA_FOLDER

TINY = {"budgets": [300], "trials": 1, "seeds": 2, "test_steps": 2}


def run_here(folder, plan):
    with Workers("here") as workers:
        return compare(folder, plan, workers=workers)


# ------------------------------------------------------------------------------------------------------------- tasks


def test_every_form_of_data_makes_a_task_of_its_sizes(tmp_path):
    x, y = blobs(60, classes=3)
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    houses = write_houses(tmp_path / "houses.csv")
    pets = str(write_pets(tmp_path / "pets", 40, (6, 8)))
    tasks = [
        Task.named(str(tmp_path / "mine.npz")),
        Task.named(str(tmp_path / "mine.npz") + ":20"),
        Task.named(houses, target="price"),
        Task.named(pets, image=(3, 5, 5)),
        Task.named((torch.from_numpy(x), torch.from_numpy(y))),
    ]
    assert [(t.name, t.in_features, t.classes, t.image_shape) for t in tasks] == [
        ("mine.npz", 64, 3, (1, 8, 8)),
        ("mine.npz:20", 64, 3, (1, 8, 8)),
        ("houses.csv", 5, None, None),
        ("pets", 75, 2, (3, 5, 5)),
        ("the data", 64, 3, (1, 8, 8)),
    ]
    assert tasks[0].digest == tasks[4].digest
    assert len({task.digest for task in tasks}) == 4
    assert [Task.from_fact(task.name, json.loads(json.dumps(task.as_fact()))) for task in tasks] == tasks
    assert Task.named("digits:128") == Task.parse("digits:128")


def test_examples_are_scaled_by_the_data_and_the_same_in_another_process(tmp_path):
    task = Task.named(blobs(40))
    kept = task.kept_in(tmp_path)
    assert kept == task
    assert kept.held is None
    ours, theirs = task.load(), kept.load()
    assert all(torch.equal(a.x, b.x) for a, b in zip(ours.parts, theirs.parts, strict=True))
    assert ours.train.x.mean().abs() < 1e-5
    low, high = task.input_range
    assert (low, high) == pytest.approx((float(ours.train.x.min()), float(ours.train.x.max())), abs=1e-3)


# -------------------------------------------------------------------------------------------------------------- runs


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A comparison of a file and of arrays, and the file."""
    folder = tmp_path_factory.mktemp("own")
    x, y = blobs(60)
    np.savez(folder / "mine.npz", x=x, y=y)
    plan = small_plan(folder / "mine.npz", (x[:30].astype(float) / 3, y[:30]), **TINY)
    assert run_here(folder / "run", plan)
    return folder


def test_a_run_keeps_a_copy_of_the_data_and_resumes_where_it_was(run):
    copies = sorted((run / "run" / DATA_FOLDER).iterdir())
    assert len(copies) == 2
    before = trials_in(run / "run")
    x, y = blobs(60)
    again = small_plan(run / "mine.npz", (x[:30].astype(float) / 3, y[:30]), **TINY)
    assert run_here(run / "run", again)
    assert trials_in(run / "run") == before
    assert {trial.key["task"] for trial in before} == {"mine.npz", "the data"}
    assert run_here(run / "run", small_plan(run / "mine.npz", **TINY | {"seeds": 3}))
    assert len(trials_in(run / "run")) == len(before) + 4


def test_the_report_needs_the_data_no_more(run):
    (run / "mine.npz").rename(run / "away.npz")
    try:
        comparison, _ = write_comparison(run / "run")
    finally:
        (run / "away.npz").rename(run / "mine.npz")
    assert [task.name for task in comparison.tasks] == ["mine.npz", "the data"]
    assert comparison.tasks[0].image_shape == (1, 8, 8)
    assert "mine.npz" in (run / "run" / "comparison.md").read_text(encoding="utf-8")
    (line,) = [a.code for a in answers(comparison) if a.task.name == "mine.npz"]
    built = eval(line.removeprefix("model = "), {name: getattr(dendritree, name) for name in dendritree.__all__})
    used = next(a.use for a in answers(comparison) if a.task.name == "mine.npz")
    assert parameters_of(built) == used.parameters
    assert built(torch.rand(2, 64)).shape == (2, 1)


@pytest.mark.parametrize("change", ["pixel", "rows"])
def test_data_that_has_changed_is_noticed(run, change):
    content = (run / "mine.npz").read_bytes()
    x, y = blobs(60)
    x[7, 3, 3] ^= 1
    rows = 50 if change == "rows" else 60
    np.savez(run / "mine.npz", x=x[:rows], y=y[:rows])
    before = trials_in(run / "run")
    message = "trained from 36 to 30" if change == "rows" else "other values"
    try:
        with pytest.raises(FormatError, match=message):
            run_here(run / "run", small_plan(run / "mine.npz", **TINY))
    finally:
        (run / "mine.npz").write_bytes(content)
    assert trials_in(run / "run") == before


# ------------------------------------------------------------------------------------------------------------ answers


def made_up(task, **families):
    """Cells of families with a mean score per budget."""
    records = []
    for family, scores in families.items():
        for budget, mean in scores.items():
            records += made_up_cell(task, family, budget, around(mean), parameters=budget or 650)
    return summarize(records)


def test_the_answer_says_where_the_families_meet_and_what_to_use():
    found = made_up(
        "digits",
        tree={1000: 0.94, 2000: 0.96, 4000: 0.98},
        sparse={1000: 0.92, 2000: 0.96, 4000: 0.9795},
        dense={1000: 0.90, 2000: 0.92, 4000: 0.96},
        linear={0: 0.90},
    )
    (answer,) = answers(found)
    assert answer.score == pytest.approx(0.96)
    assert {family: round(size) for family, (size, _) in answer.sizes.items()} == {
        "tree": 2000,
        "sparse": 2000,
        "dense": 4000,
    }
    assert (answer.best.cell.family, answer.use.cell.family, answer.use.parameters) == ("tree", "tree", 4000)
    assert "2,000 parameters as trees, 2,000 as sparse neurons and 4,000 as a dense MLP" in " ".join(answer.sentences)


def test_a_smaller_model_that_may_be_as_good_is_used_instead():
    found = made_up("digits", tree={1000: 0.9795, 4000: 0.98}, dense={1000: 0.9, 4000: 0.95})
    (answer,) = answers(found)
    assert (answer.best.parameters, answer.use.parameters) == (4000, 1000)
    assert answer.sizes["tree"] == (pytest.approx(1000), "<")
    assert "0.95 on digits takes 1,000 or fewer parameters as trees" in " ".join(answer.sentences)


def test_of_errors_less_is_better_and_one_seed_says_little():
    found = made_up("california-housing", tree={1000: 0.50, 2000: 0.44}, dense={1000: 0.6, 2000: 0.5})
    (answer,) = answers(found)
    assert answer.score == pytest.approx(0.5)
    assert round(answer.sizes["tree"][0]) == 1000
    (single,) = answers(summarize(made_up_cell("digits", "tree", 1000, [0.9])))
    assert single.score is None
    assert "too few to tell them apart" in next(single.sentences)
    assert answers(summarize([])) == []
