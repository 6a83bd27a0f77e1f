"""Callbacks, schedules and interruption of a run."""

import copy
import os
import signal

import pytest
import torch
from training_cases import Recorder, make_model, make_split, same_state

from dendritree import FitConfig, fit

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
    """The rate of every step, read just before the step."""
    rates, model = [], make_model()
    runs = []

    def note(module, _inputs):
        if module.training and runs:
            rates.append(runs[0].optimizer.param_groups[0]["lr"])

    hook = model.register_forward_pre_hook(note)
    config = FitConfig(epochs=epochs, batch_size=batch_size, lr=0.05, schedule=schedule, optimizer=optimizer)
    fit(model, make_split(), config, callbacks=[runs.append])
    hook.remove()
    return rates  # from the second epoch on: a callback hands out the optimizer after the first


def test_the_constant_schedule_keeps_the_rate():
    assert set(learning_rates(5, 4, "constant")) == {0.05}


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
def test_one_cycle_climbs_to_lr_and_falls_to_nothing_over_exactly_the_steps_of_the_run(optimizer):
    rates = learning_rates(None, 50, "one-cycle", optimizer)  # full batch: one step per epoch
    peak = rates.index(max(rates))
    assert len(rates) == 49
    assert max(rates) == pytest.approx(0.05, rel=1e-2)
    assert max(rates) <= 0.05
    assert all(rates[i] < rates[i + 1] for i in range(peak))
    assert all(rates[i] > rates[i + 1] for i in range(peak, len(rates) - 1))
    assert 0 < peak < 25
    assert rates[0] < 0.2 * 0.05
    assert rates[-1] < 1e-4 * 0.05


def test_one_cycle_counts_the_steps_of_mini_batches():
    rates = learning_rates(6, 10, "one-cycle")  # 20 examples: four steps per epoch, the last one short
    assert len(rates) == 4 * 9
    assert rates[-1] < 1e-4 * 0.05
    assert max(rates) == pytest.approx(0.05, rel=1e-2)


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


@pytest.mark.parametrize("restore_best", [True, False])
@pytest.mark.parametrize("step", [0, 2, 9], ids=["first step", "first epoch", "third epoch"])
def test_an_interrupt_inside_an_epoch_drops_that_epoch_alone(step, restore_best):
    model, recorder, steps = make_model(), Recorder(), []

    def interrupt(module, _inputs):
        if module.training:
            steps.append(1)
            if len(steps) > step:
                raise KeyboardInterrupt

    hook = model.register_forward_pre_hook(interrupt)
    config = FitConfig(epochs=5, batch_size=5, restore_best=restore_best)  # four steps per epoch
    history = fit(model, make_split(), config, callbacks=[recorder])
    hook.remove()
    assert history.interrupted
    assert len(history.epochs) == step // 4
    if history.epochs and restore_best:
        assert same_state(model.state_dict(), recorder.states[history.best.epoch])
    assert model.training
    assert model(torch.randn(2, 16, dtype=torch.float64)).isfinite().all()


@pytest.fixture
def python_handles_sigint():
    """A process started in the background ignores SIGINT; Python's own handler raises KeyboardInterrupt."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.mark.usefixtures("python_handles_sigint")
def test_a_real_sigint_ends_the_run():
    def press_ctrl_c(run):
        if len(run.history.epochs) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    history = fit(make_model(), make_split(), FitConfig(epochs=500), callbacks=[press_ctrl_c])
    assert history.interrupted
    assert 3 <= len(history.epochs) < 500
