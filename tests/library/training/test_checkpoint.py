"""fit(checkpoint=): a run that was stopped and resumed ends, bit for bit, like one that was not."""

import itertools
import random
import signal
import time

import pytest
import torch
from checkpoint_cases import (
    MODELS,
    THREE_EPOCHS,
    Stopped,
    assert_same,
    bytes_after_two_epochs,
    callbacks_of,
    make_network,
    outcome,
    run_through,
    stop_by,
)
from killed import killed_at
from training_cases import figures, make_examples, make_model, make_split, same_state
from warm import WarmProcess

from dendritree import FitConfig, fit
from dendritree.errors import DendritreeError, FormatError
from dendritree.training import EarlyStopping
from dendritree.training.examples import Examples, Split


def epochs_in(path):
    return len(torch.load(path, weights_only=True)["epochs"])


def fit_until(name, config, path, *stops, seed=0):
    """A run with a fresh model that something in `stops` ends."""
    return fit(make_network(name, seed), make_split(), config, callbacks=[*callbacks_of(name), *stops], checkpoint=path)


def resumed(name, config, path):
    """Finish a run with a model of other weights and, if it is drawn, another wiring: all comes from the file."""
    model = make_network(name, 99)
    return outcome(model, fit(model, make_split(), config, callbacks=callbacks_of(name), checkpoint=path))


# ----------------------------------------------------------------------------------------------------- stopped, resumed

RUNS = [(name, "adam", "one-cycle") for name in MODELS]
RUNS += [("dropout", "adamw", "constant"), ("rewired", "sgd", "constant"), ("dropout", "sgd", "one-cycle")]


@pytest.mark.parametrize(("name", "optimizer", "schedule"), RUNS)
def test_a_resumed_run_ends_as_one_without_a_stop(name, optimizer, schedule, tmp_path):
    config = FitConfig(epochs=5, batch_size=8, optimizer=optimizer, schedule=schedule, lr=0.05, weight_decay=0.01)
    path = tmp_path / "run"
    with pytest.raises(Stopped):
        fit_until(name, config, path, stop_by(Stopped, 3))
    assert epochs_in(path) == 2  # the third was not over
    assert_same(resumed(name, config, path), run_through(name, config))
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(("batch_size", "restore_best"), [(None, True), (7, False)])
def test_however_often_a_run_is_stopped(batch_size, restore_best, tmp_path):
    """By an error, by Ctrl-C after an epoch, and in the middle of one."""
    config = FitConfig(epochs=5, batch_size=batch_size, lr=0.1, restore_best=restore_best, seed=3)
    path = tmp_path / "deep" / "er" / "run"
    with pytest.raises(Stopped):
        fit_until("rewired", config, path, stop_by(Stopped, 2))
    interrupted = fit_until("rewired", config, path, stop_by(KeyboardInterrupt, 4), seed=50)
    assert interrupted.interrupted
    assert [epoch.epoch for epoch in interrupted.epochs] == [0, 1, 2, 3]
    model, passes = make_network("rewired", 51), []

    def press_ctrl_c(module, _inputs):
        passes.append(module.training)
        if passes.count(True) == 5:
            raise KeyboardInterrupt

    model.register_forward_pre_hook(press_ctrl_c)
    fit(model, make_split(), config, callbacks=callbacks_of("rewired"), checkpoint=path)
    assert_same(resumed("rewired", config, path), run_through("rewired", config))


def test_a_checkpoint_changes_nothing_of_a_run_and_leaves_the_random_state(tmp_path):
    state, config = torch.get_rng_state(), FitConfig(epochs=3, batch_size=8)
    assert_same(run_through("dropout", config, checkpoint=tmp_path / "run"), run_through("dropout", config))
    assert torch.equal(torch.get_rng_state(), state)


def test_an_interrupt_in_the_first_epoch_leaves_no_file(tmp_path):
    assert fit_until("plain", THREE_EPOCHS, tmp_path / "run", stop_by(KeyboardInterrupt, 1)).interrupted
    assert list(tmp_path.iterdir()) == []


def test_regression_whose_accuracies_are_nan_resumes(tmp_path):
    parts = make_split().parts
    split = Split(*(Examples(part.x, part.x[:, :3].sum(1, keepdim=True)) for part in parts))
    config, outcomes = FitConfig("squared-error", epochs=4, batch_size=8), []
    for stops, path in (([], None), ([stop_by(KeyboardInterrupt, 2)], tmp_path / "run"), ([], tmp_path / "run")):
        torch.manual_seed(0)
        model = torch.nn.Linear(16, 1, dtype=torch.float64)
        outcomes.append(outcome(model, fit(model, split, config, callbacks=stops, checkpoint=path)))
    assert_same(outcomes[2], outcomes[0])


def test_a_learning_rate_that_a_callback_set_is_kept(tmp_path):
    def halve(run):
        run.optimizer.param_groups[0]["lr"] /= 2

    config = FitConfig(epochs=4, optimizer="sgd", lr=0.5)
    whole, model = make_model(), make_model()
    fit(whole, make_split(), config, callbacks=[halve])
    stops = [halve, stop_by(KeyboardInterrupt, 3)]
    fit(make_model(), make_split(), config, callbacks=stops, checkpoint=tmp_path / "run")
    fit(model, make_split(), config, callbacks=[halve], checkpoint=tmp_path / "run")
    assert same_state(model.state_dict(), whole.state_dict())


# ------------------------------------------------------------------------------------------------------------- finished


@pytest.mark.parametrize("restore_best", [True, False])
def test_a_finished_run_returns_at_once_with_its_result(restore_best, tmp_path):
    config = FitConfig(epochs=4, lr=0.3, schedule="one-cycle", restore_best=restore_best)
    first = run_through("rewired", config, checkpoint=tmp_path / "run")
    written, calls = (tmp_path / "run").read_bytes(), []
    model = make_network("rewired", 7)
    history = fit(model, make_split(), config, callbacks=[calls.append], checkpoint=tmp_path / "run")
    assert_same(outcome(model, history), first)
    assert calls == []
    assert (tmp_path / "run").read_bytes() == written


def test_early_stopping_comes_at_the_same_epoch_and_stays(tmp_path):
    config = FitConfig(epochs=40, lr=0.3)
    whole = fit(make_model(), make_split(), config, callbacks=[EarlyStopping(2)])
    assert 3 <= len(whole.epochs) < 40
    stops = [EarlyStopping(2), stop_by(KeyboardInterrupt, 2)]
    fit(make_model(), make_split(), config, callbacks=stops, checkpoint=tmp_path / "run")
    for _ in range(2):  # the second time it has already stopped
        model = make_model()
        history = fit(model, make_split(), config, callbacks=[EarlyStopping(2)], checkpoint=tmp_path / "run")
        assert figures(history) == figures(whole)
        assert same_state(model.state_dict(), whole.best_state)


# ------------------------------------------------------------------------------------------------------------- rejected


def assert_rejected(path, message, *, model=None, split=None, config=THREE_EPOCHS):
    """Resuming fails with the message, and neither the model nor the file changes."""
    model = model or make_network("plain", 5)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    written = path.read_bytes()
    with pytest.raises(FormatError, match=message):
        fit(model, split or make_split(), config, checkpoint=path)
    assert same_state(model.state_dict(), before)
    assert path.read_bytes() == written


@pytest.fixture
def path(tmp_path):
    """The checkpoint of a run that was stopped in its third and last epoch."""
    bytes_after_two_epochs(tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"config": FitConfig(epochs=4)}, "epochs from 3 to 4"),
        ({"config": FitConfig(epochs=3, lr=0.02, seed=1)}, "lr .*seed"),
        ({"split": make_split(21)}, "data"),
        ({"split": Split(make_examples(20, 8), make_split().val, make_split().test)}, "data"),
        ({"model": make_network("batch norm")}, "model"),
        ({"model": make_model()}, "model"),
        ({"model": make_network("wider")}, "hidden"),
        ({"model": make_network("plain").float()}, "float64"),
    ],
    ids=["epochs", "rate and seed", "size of the data", "data", "layers", "class", "neurons", "type"],
)
def test_a_run_of_another_model_config_or_data_is_rejected(options, message, path):
    assert_rejected(path, message, **options)


def edited(change):
    def edit(path):
        state = torch.load(path, weights_only=True)
        change(state)
        torch.save(state, path)

    return edit


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "text": lambda path: path.write_text("not a checkpoint"),
    "code": lambda path: torch.save({"format": print}, path),
    "another file of torch": lambda path: torch.save(make_model().state_dict(), path),
    "another version": edited(lambda state: state.update(version=9)),
    "no weights": edited(lambda state: state.pop("weights")),
    "fewer weights": edited(lambda state: state["weights"].popitem()),
    "other shapes": edited(lambda state: state["weights"].update({"readout.weight": torch.ones(2, 2)})),
    "no optimizer": edited(lambda state: state.pop("optimizer")),
    "no best": edited(lambda state: state.pop("best")),
    "epochs": edited(lambda state: state.update(epochs=[{"epoch": 0}])),
    "random state": edited(lambda state: state["random"].update(order=torch.ones(3))),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_rejected(damage, path):
    damage(path)
    assert_rejected(path, "run")


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "run", tmp_path):
        with pytest.raises(DendritreeError, match=tmp_path.name):
            fit(make_model(), make_split(), THREE_EPOCHS, checkpoint=path)


# --------------------------------------------------------------------------------------------------------------- killed


def test_a_kill_while_a_checkpoint_is_written_leaves_the_one_before_or_the_new_one(tmp_path):
    config, seen = FitConfig(epochs=3, batch_size=None), set()
    for step in itertools.count(2):
        path = tmp_path / str(step) / "run"
        killed = killed_at(step, lambda path=path: fit_until("plain", config, path), path.parent)
        seen.add(epochs_in(path) if path.exists() else 0)
        if not killed:
            break
        if path.exists():
            assert_same(resumed("plain", config, path), run_through("plain", config))
    assert seen == {0, 1, 2, 3}


# Trains and tells after each epoch.
TRAINER = """
import sys
from checkpoint_cases import callbacks_of, make_network
from training_cases import make_split
from dendritree import FitConfig, fit

path, seed = sys.argv[1:]
config = FitConfig(epochs=40, batch_size=10, schedule="one-cycle")
tell = lambda run: print(len(run.history.epochs), flush=True)
callbacks = [*callbacks_of("rewired"), tell]
fit(make_network("rewired", int(seed)), make_split(), config, callbacks=callbacks, checkpoint=path)
"""


def test_a_killed_process_resumes_to_the_same_end(tmp_path):
    path, moments, last = tmp_path / "run", random.Random(0), 0
    for seed in range(2):
        with WarmProcess(TRAINER, path, seed) as process:
            told = [int(process.stdout.readline()) for _ in range(moments.randint(3, 8))]
            time.sleep(moments.uniform(0.0, 0.02))
            process.send_signal(signal.SIGKILL)
            process.stdout.read()
        assert process.returncode == -signal.SIGKILL
        assert told[0] == last + 1  # where the last one was, not at the beginning
        last = epochs_in(path)
    config = FitConfig(epochs=40, batch_size=10, schedule="one-cycle")
    assert last < 40
    assert_same(resumed("rewired", config, path), run_through("rewired", config))
