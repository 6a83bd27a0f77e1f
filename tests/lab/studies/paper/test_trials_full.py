"""Protocol `full`, one epoch of it: learning rates by validation, the test set for the chosen one alone."""

import dataclasses

import pytest
import torch
from small_paper import write_specs
from torch.nn import functional as F

from dendritree.models import create_model
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.paper.draws import full_split
from dendritree_lab.studies.paper.paper_jobs import run_config
from dendritree_lab.studies.paper.protocol import FULL, LR_SEARCH
from dendritree_lab.studies.paper.reproduction import RunPlan, planned_trials, records_of, reproduce

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
    return RunPlan(tuple(specs), SMALL, None, run_config(specs, [SMALL]))


@pytest.fixture(scope="module")
def run(real_data, tmp_path_factory):
    real_data("mnist")
    folder = tmp_path_factory.mktemp("full")
    specs = write_specs(folder / "specs", TABLE)
    notes = []
    reproduce(folder / "run", plan_of(specs), workers=Workers("here"), observer=lambda *call: notes.append(call))
    with RunStore.open_for_reading(folder / "run") as store:
        return folder, specs, notes, records_of(store, with_weights=True), planned_trials(plan_of(specs), store)


def split_by_phase(records):
    searched = [record for record in records if record.protocol == LR_SEARCH]
    final = [record for record in records if record.protocol == "full"]
    assert len(searched) + len(final) == len(records)
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
        losses = {r.lr: min(r.history["val_loss"]) for r in searched if r.row.dropout == p}
        assert {r.lr for r in final if r.row.dropout == p} == {min(losses, key=losses.get)}


def test_the_test_set_is_judged_for_the_chosen_rate_alone(run):
    searched, final = split_by_phase(run[3])
    assert {(r.test_loss, r.test_acc) for r in searched} == {(None, None)}
    assert all(r.test_acc * 1991 == pytest.approx(round(r.test_acc * 1991)) for r in final)  # 1,991 fours and nines
    assert all(0.8 < r.test_acc < 1 and r.test_loss > 0 for r in final)


def test_the_kept_weights_give_the_recorded_test_figures(run):
    from safetensors.torch import load

    searched, final = split_by_phase(run[3])
    assert [r.weights for r in searched] == [None] * 4
    test = full_split("mnist-4-9").test
    for record in final:
        assert (record.weights is None) == (record.index > 0)
        if record.weights is None:
            continue
        assert record.model_config["output"] == "logits"
        model = create_model(record.row.network, **record.model_config)
        model.load_state_dict(load(record.weights))
        with torch.no_grad():
            out = model.eval()(test.x)[:, 0]
        assert ((out > 0) == test.y.bool()).double().mean() == pytest.approx(record.test_acc, abs=1e-12)
        expected = float(F.binary_cross_entropy_with_logits(out, test.y.float()))
        assert record.test_loss == pytest.approx(expected, abs=1e-5)


def test_the_plan_grows_when_rates_are_known_and_the_table_is_done_at_the_end(run):
    notes = run[2]
    assert notes[0] == ("binary-mlp", 0, 4)
    assert ("binary-mlp", 4, 8) in notes
    assert notes[-1] == ("binary-mlp", 8, 8)
    assert sorted(run[4].values()) == [2, 2]  # the search is not a trial of a row


def test_a_second_call_does_nothing_and_a_lost_trial_is_made_again_bit_for_bit(run):
    folder, specs, _, records, _ = run
    again = []
    reproduce(folder / "run", plan_of(specs), workers=Workers("here"), observer=lambda *call: again.append(call))
    assert again == [("binary-mlp", 8, 8)]
    with RunStore.open_for_reading(folder / "run") as store:
        assert records_of(store, with_weights=True) == records
    part = folder / "part"
    kept = [record for record in records if record.protocol == LR_SEARCH or record.index == 1]
    with RunStore.create_or_open(part, plan_of(specs).config) as store:
        store.add([record.as_trial() for record in kept])
    reproduce(part, plan_of(specs), workers=Workers("here"))
    with RunStore.open_for_reading(part) as store:
        found = records_of(store, with_weights=True)
    same = [dataclasses.replace(record, seconds=0.0) for record in records]
    assert [dataclasses.replace(record, seconds=0.0) for record in found] == same


def test_a_model_whose_best_dropout_is_none_has_one_row(tmp_path):
    specs = write_specs(tmp_path / "specs", TABLE.replace("full_dropout = 0.4", "full_dropout = 0.0"))
    plan = plan_of(specs)
    with RunStore.create_or_open(tmp_path / "run", plan.config) as store:
        no_search = dataclasses.replace(plan, protocol=dataclasses.replace(SMALL, lr_grid=()))
        assert list(planned_trials(no_search, store).values()) == [10]
