"""fit(checkpoint=): a run that was stopped and resumed ends, bit for bit, like one that was not."""

import itertools
import os
import stat

import pytest
import torch
from checkpoint_cases import (
    MODELS,
    Stopped,
    assert_same,
    callbacks_of,
    make_network,
    names_in,
    outcome,
    run_through,
    stop_by,
)
from torch.nn import functional as F
from training_cases import figures, make_model, make_split, same_state

from dendritree import FitConfig, fit
from dendritree.training import evaluate
from dendritree.training.examples import Examples, Split
from dendritree.training.tensor_file import read_checkpoint


def fit_until(name, config, path, *stops, seed):
    """A run with a fresh model that something in `stops` ends."""
    model = make_network(name, seed)
    return fit(model, make_split(), config, callbacks=[*callbacks_of(name), *stops], checkpoint=path)


def go_on(name, config, path, seed=99):
    """Finish a run with a model of other weights and, if it is drawn, another wiring: all comes from the file."""
    model = make_network(name, seed)
    history = fit(model, make_split(), config, callbacks=callbacks_of(name), checkpoint=path)
    return outcome(model, history)


# ----------------------------------------------------------------------------------------------------- stopped, resumed


RUNS = [(name, "adam", "one-cycle") for name in MODELS]
RUNS += itertools.product(["dropout", "rewired"], ["adamw", "sgd"], ["constant", "one-cycle"])
RUNS += [("rewired", "adam", "constant")]


@pytest.mark.parametrize(("name", "optimizer", "schedule"), RUNS)
def test_a_run_that_goes_on_ends_as_one_without_a_stop(name, optimizer, schedule, tmp_path):
    config = FitConfig(epochs=5, batch_size=8, optimizer=optimizer, schedule=schedule, lr=0.05, weight_decay=0.01)
    path = tmp_path / "run.safetensors"
    whole = run_through(name, config)
    with pytest.raises(Stopped):
        fit_until(name, config, path, stop_by(Stopped, 3), seed=0)
    assert len(read_checkpoint(path)[1]["epochs"]) == 2  # the third was not over
    assert_same(go_on(name, config, path), whole)
    assert names_in(tmp_path) == [path.name]


@pytest.mark.parametrize("name", ["dropout", "rewired"])
@pytest.mark.parametrize("restore_best", [True, False])
@pytest.mark.parametrize("batch_size", [None, 7])
def test_however_often_a_run_is_stopped(name, batch_size, restore_best, tmp_path):
    """By an error, by Ctrl-C after an epoch, and in the middle of one; the last part begins at the last epoch."""
    config = FitConfig(epochs=5, batch_size=batch_size, lr=0.1, restore_best=restore_best, seed=3)
    path = tmp_path / "deep" / "er" / "run"
    with pytest.raises(Stopped):
        fit_until(name, config, path, stop_by(Stopped, 2), seed=0)
    interrupted = fit_until(name, config, path, stop_by(KeyboardInterrupt, 4), seed=50)
    assert interrupted.interrupted
    assert len(interrupted.epochs) == 4
    model, passes = make_network(name, 51), []

    def press_ctrl_c(module, _inputs):
        passes.append(module.training)
        if passes.count(True) == 5:
            raise KeyboardInterrupt

    model.register_forward_pre_hook(press_ctrl_c)
    fit(model, make_split(), config, callbacks=callbacks_of(name), checkpoint=path)
    assert_same(go_on(name, config, path), run_through(name, config))


@pytest.mark.parametrize("name", ["plain", "rewired"])
def test_a_checkpoint_changes_nothing_of_a_run(name, tmp_path):
    config = FitConfig(epochs=3, batch_size=8)
    assert_same(run_through(name, config, checkpoint=tmp_path / "run"), run_through(name, config))
    assert names_in(tmp_path) == ["run"]


def test_an_interrupt_before_the_first_epoch_is_over_leaves_no_file_and_the_run_begins_anew(tmp_path):
    config = FitConfig(epochs=2)
    history = fit_until("plain", config, tmp_path / "run", stop_by(KeyboardInterrupt, 1), seed=0)
    assert history.interrupted
    assert names_in(tmp_path) == []
    assert_same(go_on("plain", config, tmp_path / "run", seed=0), run_through("plain", config))


def test_the_history_of_a_resumed_run_has_all_epochs_and_the_seconds_of_those_before(tmp_path):
    config = FitConfig(epochs=4)
    with pytest.raises(Stopped):
        fit_until("plain", config, tmp_path / "run", stop_by(Stopped, 3), seed=0)
    before = read_checkpoint(tmp_path / "run")[1]["epochs"]
    seen = []
    model = make_network("plain", 1)
    history = fit(
        model,
        make_split(),
        config,
        callbacks=[lambda run: seen.append(len(run.history.epochs))],
        checkpoint=tmp_path / "run",
    )
    assert seen == [3, 4]
    assert [epoch.epoch for epoch in history.epochs] == [0, 1, 2, 3]
    assert history.columns()["seconds"][:2] == [epoch["seconds"] for epoch in before]
    assert not history.interrupted


def test_regression_whose_accuracies_are_nan_goes_on(tmp_path):
    split = make_split()
    split = Split(*(Examples(p.x, p.x[:, :3].sum(1, keepdim=True)) for p in (split.train, split.val, split.test)))
    config, outcomes = FitConfig("squared-error", epochs=4, batch_size=8), []
    for stops, path in (([], None), ([stop_by(KeyboardInterrupt, 2)], tmp_path / "run"), ([], tmp_path / "run")):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(16, 4, dtype=torch.float64), torch.nn.Linear(4, 1).double())
        outcomes.append(outcome(model, fit(model, split, config, callbacks=stops, checkpoint=path)))
    assert_same(outcomes[2], outcomes[0])


# ------------------------------------------------------------------------------------------------------------- finished


def forbid_training(model):
    def reject(module, _inputs):
        assert not module.training, "a finished run was trained on"

    model.register_forward_pre_hook(reject)


@pytest.mark.parametrize("name", ["dropout", "rewired"])
@pytest.mark.parametrize("restore_best", [True, False])
def test_a_finished_run_returns_at_once_with_its_result(name, restore_best, tmp_path):
    config = FitConfig(epochs=4, lr=0.3, schedule="one-cycle", restore_best=restore_best)
    first = run_through(name, config, checkpoint=tmp_path / "run")
    written = (tmp_path / "run").read_bytes()
    model, calls = make_network(name, 7), []
    forbid_training(model)
    history = fit(model, make_split(), config, callbacks=[calls.append], checkpoint=tmp_path / "run")
    assert_same(outcome(model, history), first)
    assert calls == []
    assert (tmp_path / "run").read_bytes() == written


@pytest.mark.parametrize("restore_best", [True, False])
def test_the_best_epoch_is_restored_even_if_it_was_before_the_stop(restore_best, tmp_path):
    """At this rate the first epochs are the best ones."""
    config, split = FitConfig(epochs=6, lr=1.0, optimizer="adam", restore_best=restore_best), make_split()
    whole = make_model()
    expected = fit(whole, split, config)
    assert expected.best.epoch < 4
    with pytest.raises(Stopped):
        fit(make_model(), split, config, callbacks=[stop_by(Stopped, 6)], checkpoint=tmp_path / "run")
    model = make_model()
    history = fit(model, split, config, checkpoint=tmp_path / "run")
    assert figures(history) == figures(expected)
    assert history.best.epoch == expected.best.epoch
    assert same_state(history.best_state, expected.best_state)
    assert same_state(model.state_dict(), whole.state_dict())
    if restore_best:
        assert evaluate(model, split.val)[0] == history.best.val_loss


def test_a_run_that_a_callback_stopped_stays_stopped(tmp_path):
    def stop_early(run):
        run.stop = len(run.history.epochs) == 3

    config = FitConfig(epochs=9)
    model = make_network("dropout")
    first = fit(model, make_split(), config, callbacks=[stop_early], checkpoint=tmp_path / "run")
    again = make_network("dropout", 8)
    forbid_training(again)
    history = fit(again, make_split(), config, callbacks=[stop_early], checkpoint=tmp_path / "run")
    assert len(first.epochs) == len(history.epochs) == 3
    assert_same(outcome(again, history), outcome(model, first))


def test_early_stopping_comes_at_the_same_epoch_after_a_stop(tmp_path):
    def patience(run):
        run.stop = len(run.history.epochs) - 1 - run.history.best.epoch >= 2

    config = FitConfig(epochs=40, lr=0.3)
    whole = fit(make_model(), make_split(), config, callbacks=[patience])
    assert 3 <= len(whole.epochs) < 40
    stops = [patience, stop_by(KeyboardInterrupt, 2)]
    fit(make_model(), make_split(), config, callbacks=stops, checkpoint=tmp_path / "run")
    history = fit(make_model(), make_split(), config, callbacks=[patience], checkpoint=tmp_path / "run")
    assert figures(history) == figures(whole)


# ----------------------------------------------------------------------------------------------- what else stays


def test_torch_s_random_state_is_put_back_after_a_resumed_run(tmp_path):
    config = FitConfig(epochs=3)
    fit_until("dropout", config, tmp_path / "run", stop_by(KeyboardInterrupt, 2), seed=0)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    go_on("dropout", config, tmp_path / "run")
    assert torch.equal(torch.rand(3), expected)


def test_a_rate_that_a_callback_set_is_kept(tmp_path):
    """Reducing the rate when nothing improves: the constant schedule must not put it back."""

    def halve(run):
        run.optimizer.param_groups[0]["lr"] /= 2

    config = FitConfig(epochs=4, optimizer="sgd", lr=0.5)
    whole, resumed = make_model(), make_model()
    expected = fit(whole, make_split(), config, callbacks=[halve])
    stops = [halve, stop_by(KeyboardInterrupt, 3)]
    fit(make_model(), make_split(), config, callbacks=stops, checkpoint=tmp_path / "run")
    history = fit(resumed, make_split(), config, callbacks=[halve], checkpoint=tmp_path / "run")
    assert figures(history) == figures(expected)
    assert same_state(resumed.state_dict(), whole.state_dict())


def test_frozen_parameters_stay_frozen(tmp_path):
    def frozen():
        model = make_model()
        next(iter(model.parameters())).requires_grad_(False)
        return model

    config, split = FitConfig(epochs=3), make_split()
    whole = frozen()
    fit(whole, split, config)
    fit(frozen(), split, config, callbacks=[stop_by(KeyboardInterrupt, 2)], checkpoint=tmp_path / "run")
    resumed = frozen()
    fit(resumed, split, config, checkpoint=tmp_path / "run")
    assert same_state(resumed.state_dict(), whole.state_dict())
    assert not next(iter(resumed.parameters())).requires_grad


def test_a_resumed_model_goes_on_learning_by_hand(tmp_path):
    """Nothing of the file is shared with the model or marked against gradients."""
    config = FitConfig(epochs=2)
    run_through("rewired", config, checkpoint=tmp_path / "run")
    model = make_network("rewired", 4)
    history = fit(model, make_split(), config, checkpoint=tmp_path / "run")
    best = {key: value.clone() for key, value in history.best_state.items()}
    batch = make_split().train
    F.cross_entropy(model.train()(batch.x), batch.y).backward()
    torch.optim.SGD(model.parameters(), lr=1.0).step()
    assert same_state(history.best_state, best)
    assert not same_state(model.state_dict(), best)


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_others_may_read_the_file_as_any_file_of_the_user(tmp_path):
    run_through("plain", FitConfig(epochs=1), checkpoint=tmp_path / "run")
    (tmp_path / "other").write_text("")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("run", "other")}
    assert len(modes) == 1, list(map(oct, modes))
