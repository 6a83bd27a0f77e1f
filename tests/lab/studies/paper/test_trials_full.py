"""Protocol `full`, one epoch of it: learning rates by validation, the test set for the chosen one alone."""

import dataclasses

import pytest
import torch
from small_paper import write_specs
from torch.nn import functional as F

from dendritree.models import create_model
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.paper.paper_trials import PaperTrial, full_split
from dendritree_lab.studies.paper.reproduction import RunPlan, reproduce, trials_of
from dendritree_lab.studies.paper.spec import FULL, LR_SEARCH

SMALL = dataclasses.replace(FULL, epochs=1, lr_grid=(0.001, 0.01))
TABLE = """
table = "binary-mlp"
title = "A perceptron"
label = "none"
task = "binary"
dataset = "mnist-4-9"
lr = 0.001
dropouts = [0.0, 0.1, 0.4]
trials = 10
stack = 10

[[models]]
network = "perceptrons"
size = 0
full_dropout = 0.4
full_trials = 2
"""


def plan_of(specs):
    return RunPlan(tuple(specs), SMALL, None, {"tables": [spec.as_config() for spec in specs]})


@pytest.fixture(scope="module")
def run(real_data, tmp_path_factory):
    real_data("mnist")
    folder = tmp_path_factory.mktemp("full")
    specs = write_specs(folder / "specs", TABLE)
    notes = []
    reproduce(folder / "run", plan_of(specs), workers=Workers("here"), observer=lambda *call: notes.append(call))
    trials = trials_in(folder / "run")
    return folder, specs, notes, trials, plan_of(specs).planned(trials)


def trials_in(folder):
    """All trials, with weights where they were kept."""
    with RunStore.open_for_reading(folder) as store:
        kept = {repr(trial.key): PaperTrial.of(trial) for trial in store.kept_trials()}
        return [kept.get(repr(trial.key), trial) for trial in trials_of(store)]


def split_by_phase(trials):
    searched = [trial for trial in trials if trial.protocol == LR_SEARCH]
    final = [trial for trial in trials if trial.protocol == "full"]
    assert len(searched) + len(final) == len(trials)
    return searched, final


def test_rows_are_no_dropout_and_the_best_one_at_every_rate_once_then_as_many_seeds_as_asked(run):
    searched, final = split_by_phase(run[3])
    assert sorted((r.row.dropout, r.index, r.lr) for r in searched) == [
        (p, i, lr) for p in (0.0, 0.4) for i, lr in enumerate((0.001, 0.01))
    ]
    assert sorted((r.row.dropout, r.index) for r in final) == [(0.0, 0), (0.0, 1), (0.4, 0), (0.4, 1)]


def test_the_rate_is_chosen_by_validation_loss(run):
    searched, final = split_by_phase(run[3])
    for p in (0.0, 0.4):
        losses = {r.lr: min(r.curves["val_loss"]) for r in searched if r.row.dropout == p}
        assert {r.lr for r in final if r.row.dropout == p} == {min(losses, key=losses.get)}


def test_the_test_set_is_judged_for_the_chosen_rate_alone(run):
    searched, final = split_by_phase(run[3])
    assert [trial.scores for trial in searched] == [{}] * 4
    for trial in final:
        right = trial.scores["test_acc"] * 1991  # fours and nines
        assert right == pytest.approx(round(right))
        assert 0.8 < trial.scores["test_acc"] < 1
        assert trial.scores["test_loss"] > 0


def test_the_kept_weights_give_the_recorded_test_figures(run):
    from safetensors.torch import load

    searched, final = split_by_phase(run[3])
    assert [r.weights for r in searched] == [None] * 4
    test = full_split("mnist-4-9").test
    for trial in final:
        assert (trial.weights is None) == (trial.index > 0)
        if trial.weights is None:
            continue
        assert trial.config["arguments"]["output"] == "logits"
        model = create_model(trial.row.network, **trial.config["arguments"])
        model.load_state_dict(load(trial.weights))
        with torch.no_grad():
            out = model.eval()(test.x)[:, 0]
        assert ((out > 0) == test.y.bool()).double().mean() == pytest.approx(trial.scores["test_acc"], abs=1e-12)
        expected = float(F.binary_cross_entropy_with_logits(out, test.y.float()))
        assert trial.scores["test_loss"] == pytest.approx(expected, abs=1e-5)


def test_a_second_call_does_nothing_and_a_lost_trial_is_made_again_bit_for_bit(run):
    folder, specs, _, trials, _ = run
    again = []
    reproduce(folder / "run", plan_of(specs), workers=Workers("here"), observer=lambda *call: again.append(call))
    assert all(done == total for _, done, total, *_ in again)
    assert trials_in(folder / "run") == trials
    part = folder / "part"
    with RunStore.create_or_open(part, plan_of(specs).config) as store:
        store.add([trial for trial in trials if trial.protocol == LR_SEARCH or trial.index == 1])
    reproduce(part, plan_of(specs), workers=Workers("here"))
    same = [dataclasses.replace(trial, seconds=0.0) for trial in trials]
    assert [dataclasses.replace(trial, seconds=0.0) for trial in trials_in(part)] == same
