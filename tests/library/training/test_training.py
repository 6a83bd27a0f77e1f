"""What goes into `fit` and comes out of it: config, history, best epoch, callbacks, schedules, interruption."""

import copy
import json
import math
import signal

import pytest
import torch
from torch import nn
from training_cases import Recorder, make_model, make_split, same_state

from dendritree import FitConfig, fit
from dendritree.errors import DendritreeError, OptionError
from dendritree.training import Epoch, History, evaluate

# --------------------------------------------------------------------------------------------------------------- config


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("loss", ["cross_entropy", None]),
        ("optimizer", ["adan", torch.optim.Adam]),
        ("schedule", ["onecycle"]),
        ("epochs", [0, -3, 2.0, True]),
        ("batch_size", [0, 12.5, "all"]),
        ("seed", [-1, 1.5, None, 2**64]),  # torch's generators take 64 bits
        ("lr", [0, -0.1, math.nan, math.inf, "0.1", True]),
        ("weight_decay", [-1e-9, math.nan, math.inf, None]),
        ("restore_best", ["no"]),  # a true string that means the opposite
    ],
)
def test_config_rejects_bad_values_and_names_the_option(name, values):
    for value in values:
        with pytest.raises(OptionError, match=f"^{name} must be"):
            FitConfig(**{name: value})


def test_config_cannot_be_changed_after_the_check():
    with pytest.raises(AttributeError, match="epochs"):
        FitConfig().epochs = -1


@pytest.mark.parametrize(("train", "val"), [(0, 10), (20, 0), (0, 0)])
def test_a_split_without_training_or_validation_examples_is_rejected(train, val):
    model = make_model()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(OptionError, match="training and validation"):
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
    with pytest.raises(OptionError, match="epoch"):
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


def test_a_run_whose_losses_are_nan_ends_and_says_so():
    split = make_split()
    split.train.x[3, 5] = math.nan
    model = make_model()
    with pytest.warns(UserWarning, match="NaN or infinite"):
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


# -------------------------------------------------------------------------------------------------- callbacks, schedule


def test_callbacks_run_after_every_epoch_in_order_and_see_the_run():
    calls, model = [], make_model()

    def first(run):
        calls.append(("first", run.history.epochs[-1].epoch))
        assert run.model is model

    def second(run):
        calls.append(("second", len(run.history.epochs) - 1))

    fit(model, make_split(), FitConfig(epochs=3), callbacks=[first, second])
    assert calls == [(name, epoch) for epoch in range(3) for name in ("first", "second")]


def test_a_callback_can_stop_the_run():
    def stop_after_three(run):
        run.stop = len(run.history.epochs) == 3

    history = fit(make_model(), make_split(), FitConfig(epochs=10), callbacks=[stop_after_three])
    assert history.columns()["epoch"] == [0, 1, 2]
    assert not history.interrupted


def test_a_callback_reaches_the_real_optimizer():
    def freeze(run):
        run.optimizer.param_groups[0]["lr"] = 0.0

    recorder = Recorder()
    config = FitConfig(epochs=3, batch_size=None, optimizer="sgd", restore_best=False)
    start = copy.deepcopy(make_model().state_dict())
    fit(make_model(), make_split(), config, callbacks=[recorder, freeze])
    assert not same_state(start, recorder.states[0])
    assert same_state(recorder.states[0], recorder.states[1])
    assert same_state(recorder.states[1], recorder.states[2])


def learning_rates(batch_size, epochs, schedule, optimizer="adam"):
    """The rate of every step, read just before the step, from the second epoch on."""
    rates, model, runs = [], make_model(), []

    def note(module, _inputs):
        if module.training and runs:
            rates.append(runs[0].optimizer.param_groups[0]["lr"])

    model.register_forward_pre_hook(note)
    config = FitConfig(epochs=epochs, batch_size=batch_size, lr=0.05, schedule=schedule, optimizer=optimizer)
    fit(model, make_split(), config, callbacks=[runs.append])
    return rates


def test_the_constant_schedule_keeps_the_rate():
    assert set(learning_rates(5, 4, "constant")) == {0.05}


@pytest.mark.parametrize(("optimizer", "batch_size"), [("adamw", None), ("sgd", None), ("adam", 6)])
def test_one_cycle_climbs_to_lr_and_falls_to_nothing_over_exactly_the_steps_of_the_run(optimizer, batch_size):
    rates = learning_rates(batch_size, 50, "one-cycle", optimizer)
    peak = rates.index(max(rates))
    assert len(rates) == 49 * (4 if batch_size else 1)  # of 20 examples, the last batch is short
    assert 0.99 * 0.05 < max(rates) <= 0.05
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert 0 < peak < len(rates) / 2
    assert rates[-1] < 1e-4 * 0.05


def test_one_cycle_changes_the_learning_rate_and_no_momentum():
    """Plain gradient descent stays plain: PyTorch's one-cycle schedule would give it a momentum of 0.95."""
    momenta = set()

    def note(run):
        momenta.add(run.optimizer.param_groups[0]["momentum"])

    config = FitConfig(epochs=10, batch_size=None, schedule="one-cycle", optimizer="sgd")
    fit(make_model(), make_split(), config, callbacks=[note])
    assert momenta == {0}


@pytest.mark.parametrize(("batch_size", "epochs"), [(None, 1), (100, 1), (None, 2), (19, 1), (1, 1)])
def test_one_cycle_works_for_the_shortest_runs(batch_size, epochs):
    config = FitConfig(epochs=epochs, batch_size=batch_size, schedule="one-cycle")
    assert len(fit(make_model(), make_split(), config).epochs) == epochs


# --------------------------------------------------------------------------------------------------------- interruption


def interrupt_at_epoch(epoch):
    def callback(run):
        if run.history.epochs[-1].epoch == epoch:
            raise KeyboardInterrupt

    return callback


def test_an_interrupt_returns_the_history_so_far_and_a_usable_model():
    model, recorder = make_model().eval(), Recorder()
    random_state = torch.get_rng_state()
    history = fit(
        model, make_split(), FitConfig(epochs=9, batch_size=None), callbacks=[recorder, interrupt_at_epoch(3)]
    )
    assert history.interrupted
    assert history.columns()["epoch"] == [0, 1, 2, 3]
    assert same_state(model.state_dict(), recorder.states[history.best.epoch])
    assert not model.training
    assert torch.equal(torch.get_rng_state(), random_state)
    assert len(fit(model, make_split(), FitConfig(epochs=2)).epochs) == 2


@pytest.mark.parametrize(("step", "restore_best"), [(0, True), (3, False), (4, True), (9, True), (9, False)])
def test_ctrl_c_between_two_steps_keeps_the_epochs_that_were_over(step, restore_best):
    model, recorder, steps = make_model(), Recorder(), []

    def press_ctrl_c(module, _inputs):
        steps.append(module.training)
        if steps.count(True) > step:
            signal.raise_signal(signal.SIGINT)

    hook = model.register_forward_pre_hook(press_ctrl_c)
    config = FitConfig(epochs=5, batch_size=5, restore_best=restore_best)  # four steps per epoch
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it
    try:
        history = fit(model, make_split(), config, callbacks=[recorder])
    finally:
        signal.signal(signal.SIGINT, handler)
    hook.remove()
    assert history.interrupted
    assert len(history.epochs) == step // 4
    if history.epochs and restore_best:
        assert same_state(model.state_dict(), recorder.states[history.best.epoch])
    assert model.training
    assert model(torch.randn(2, 16, dtype=torch.float64)).isfinite().all()
