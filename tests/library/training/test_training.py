"""What goes into `fit` and comes out of it: config, history, best epoch, mode of the model."""

import copy
import json
import math

import pytest
import torch
from torch import nn
from training_cases import Recorder, make_model, make_split, same_state

from dendritree import FitConfig, fit
from dendritree.errors import DendritreeError, OptionError
from dendritree.training import Epoch, History, evaluate

# --------------------------------------------------------------------------------------------------------------- config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "cross_entropy"}, "loss must be one of .*: got 'cross_entropy'; did you mean 'cross-entropy'"),
        ({"loss": None}, "loss must be one of .*: got None"),
        ({"optimizer": "adan"}, "optimizer must be one of 'adam', 'adamw', 'sgd': got 'adan'; did you mean 'adam'"),
        ({"optimizer": torch.optim.Adam}, "optimizer must be one of .*: got <class"),
        ({"schedule": "onecycle"}, "schedule must be one of .*: got 'onecycle'; did you mean 'one-cycle'"),
        ({"epochs": 0}, "epochs must be an integer of at least 1: got 0"),
        ({"epochs": -3}, "epochs must be an integer of at least 1: got -3"),
        ({"epochs": 2.0}, "epochs must be an integer of at least 1: got 2.0"),
        ({"epochs": True}, "epochs must be an integer of at least 1: got True"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1: got 0"),
        ({"batch_size": -1}, "batch_size must be an integer of at least 1: got -1"),
        ({"batch_size": 12.5}, "batch_size must be an integer of at least 1: got 12.5"),
        ({"batch_size": "all"}, "batch_size must be an integer of at least 1: got 'all'"),
        ({"seed": -1}, "seed must be an integer .*0.*: got -1"),
        ({"seed": 1.5}, "seed must be an integer .*0.*: got 1.5"),
        ({"seed": None}, "seed must be an integer .*0.*: got None"),
        ({"seed": 2**64}, "seed must be .*: got 18446744073709551616"),  # torch's generators take 64 bits
        ({"lr": 0}, "lr must be a positive number: got 0"),
        ({"lr": -0.1}, "lr must be a positive number: got -0.1"),
        ({"lr": math.nan}, "lr must be a positive number: got nan"),
        ({"lr": math.inf}, "lr must be a positive number: got inf"),
        ({"lr": "0.1"}, "lr must be a positive number: got '0.1'"),
        ({"lr": True}, "lr must be a positive number: got True"),
        ({"weight_decay": -1e-9}, "weight_decay must be a number of at least 0: got -1e-09"),
        ({"weight_decay": math.nan}, "weight_decay must be a number of at least 0: got nan"),
        ({"weight_decay": math.inf}, "weight_decay must be a number of at least 0: got inf"),
        ({"weight_decay": None}, "weight_decay must be a number of at least 0: got None"),
        ({"restore_best": "no"}, "restore_best must be .*: got 'no'"),  # a true string that means the opposite
    ],
    ids=lambda value: ", ".join(f"{k}={v!r:.30}" for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_config_rejects_bad_values_and_states_the_rule(options, message):
    with pytest.raises(OptionError, match=message):
        FitConfig(**options)


@pytest.mark.parametrize(
    "options", [{"epochs": 1}, {"batch_size": None}, {"batch_size": 1}, {"seed": 0}, {"lr": 1}, {"weight_decay": 0}]
)
def test_config_takes_the_extremes_that_make_sense(options):
    (name,) = options
    assert getattr(FitConfig(**options), name) == options[name]


def test_config_cannot_be_changed_after_the_check():
    with pytest.raises(AttributeError, match="epochs"):
        FitConfig().epochs = -1


@pytest.mark.parametrize(("train", "val"), [(0, 10), (20, 0), (0, 0)])
def test_a_split_without_training_or_validation_examples_is_rejected(train, val):
    model = make_model()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(OptionError, match=rf"training and validation examples: got {train} and {val}"):
        fit(model, make_split(train, val))
    assert same_state(before, model.state_dict())


def test_a_model_without_parameters_is_rejected():
    with pytest.raises(DendritreeError, match="parameter"):
        fit(nn.Flatten(), make_split())


# -------------------------------------------------------------------------------------------------- history, best epoch


def history_with(*val_losses):
    return History(FitConfig(), [Epoch(i, 1.0, loss, 0.5, 0.5, 0.1) for i, loss in enumerate(val_losses)])


@pytest.mark.parametrize(
    ("val_losses", "best"),
    [
        ([3.0, 1.0, 2.0], 1),
        ([1.0, 1.0, 0.5, 0.5], 2),
        ([math.nan, 5.0], 1),
        ([5.0, math.nan, 4.0, math.nan], 2),
        ([math.nan, math.nan], 0),
    ],
)
def test_best_is_the_lowest_validation_loss_the_earlier_of_equals_and_nan_last(val_losses, best):
    assert history_with(*val_losses).best.epoch == best


def test_an_empty_history_has_no_best_epoch():
    with pytest.raises(OptionError, match=r"at least one completed epoch .*: got none"):
        _ = History(FitConfig()).best


def test_history_gives_columns_and_plain_values_for_json():
    history = fit(make_model(), make_split(), FitConfig(epochs=3, lr=0.03))
    columns = history.columns()
    assert list(columns) == ["epoch", "train_loss", "val_loss", "train_acc", "val_acc", "seconds"]
    assert columns["epoch"] == [0, 1, 2]
    assert all(seconds > 0 for seconds in columns["seconds"])
    read_back = json.loads(json.dumps(history.as_dict(), allow_nan=False))
    assert read_back["config"]["lr"] == 0.03
    assert [row["val_loss"] for row in read_back["epochs"]] == columns["val_loss"]


def overfit(**options):
    """A run whose validation loss is best somewhere in the middle, with the weights of each epoch."""
    model, recorder = make_model(), Recorder()
    config = FitConfig(epochs=40, batch_size=None, lr=0.03, **options)
    return model, fit(model, make_split(), config, callbacks=[recorder]), recorder.states


def test_best_state_holds_the_weights_of_the_best_epoch_and_they_are_restored():
    model, history, states = overfit()
    val_losses = history.columns()["val_loss"]
    best = val_losses.index(min(val_losses))
    assert 0 < best < 39  # else this test shows nothing
    assert history.best.epoch == best
    assert same_state(history.best_state, states[best])
    assert same_state(model.state_dict(), states[best])
    assert evaluate(model, make_split().val)[0] == pytest.approx(min(val_losses), rel=1e-6)


def test_without_restore_best_the_weights_of_the_last_epoch_stay():
    model, history, states = overfit(restore_best=False)
    assert same_state(model.state_dict(), states[-1])
    assert same_state(history.best_state, states[history.best.epoch])
    assert not same_state(history.best_state, states[-1])


def test_best_state_is_a_copy_that_later_training_does_not_change():
    model, history, states = overfit()
    fit(model, make_split(), FitConfig(epochs=2, restore_best=False))
    assert same_state(history.best_state, states[history.best.epoch])


def test_a_run_whose_losses_are_nan_ends_and_says_so():
    split = make_split()
    split.train.x[3, 5] = math.nan
    model = make_model()
    with pytest.warns(UserWarning, match=r"^train\.x has values that are NaN or infinite$"):
        history = fit(model, split, FitConfig(epochs=3, batch_size=None))
    assert len(history.epochs) == 3
    assert all(math.isnan(epoch.train_loss) and math.isnan(epoch.val_loss) for epoch in history.epochs)
    assert history.best.epoch == 0
    assert not history.interrupted


def test_weights_that_turn_nan_late_are_replaced_by_the_best_ones():
    def spoil(run):
        if len(run.history.epochs) == 2:
            with torch.no_grad():
                run.model.layer.weight.fill_(math.nan)

    model = make_model()
    history = fit(model, make_split(), FitConfig(epochs=4, batch_size=None), callbacks=[spoil])
    assert [math.isnan(loss) for loss in history.columns()["val_loss"]] == [False, False, True, True]
    assert history.best.epoch < 2
    assert model.layer.weight.isfinite().all()


# ----------------------------------------------------------------------------------------------------------------- mode


@pytest.mark.parametrize("training", [True, False])
def test_fit_and_evaluate_restore_the_mode_of_the_model(training):
    model = make_model().train(training)
    evaluate(model, make_split().val)
    assert model.training is training
    fit(model, make_split(), FitConfig(epochs=1))
    assert {module.training for module in model.modules()} == {training}


def test_modules_in_different_modes_keep_them():
    """A frozen part is in evaluation mode inside a model in training mode; measuring must not thaw it."""
    model = nn.Sequential(nn.BatchNorm1d(16, dtype=torch.float64).eval(), make_model())
    evaluate(model, make_split().val)
    assert [model[0].training, model[1].training] == [False, True]
    fit(model, make_split(), FitConfig(epochs=1))
    assert [model[0].training, model[1].training] == [False, True]


def test_an_error_in_a_callback_comes_through_and_leaves_mode_and_random_state():
    def fail(_run):
        raise RuntimeError("disk full")

    model = make_model().eval()
    random_state = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="disk full"):
        fit(model, make_split(), FitConfig(epochs=3), callbacks=[fail])
    assert torch.equal(torch.get_rng_state(), random_state)
    assert not model.training
