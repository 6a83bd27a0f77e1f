"""The training loop against plain PyTorch written out by hand, and what decides its result."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn
from training_cases import digits, figures, make_examples, make_model, make_split, same_state

from dendritree import DendriticLayer, FitConfig, MLNClassifier, fit
from dendritree.training.examples import Examples, Split

OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


def by_hand(out, y):
    """Summed loss and number of right answers, one example at a time."""
    losses = [-torch.log(torch.exp(row[target]) / torch.exp(row).sum()) for row, target in zip(out, y, strict=True)]
    return torch.stack(losses), sum(int(row.argmax()) == int(target) for row, target in zip(out, y, strict=True))


def watch_batches(model, split):
    """A list that fills with (training mode, indices of the batch in its part) at each forward pass."""
    seen, places = [], {}
    for part in (split.train, split.val):
        places |= {tuple(row.tolist()): index for index, row in enumerate(part.x)}

    def note(module, inputs):
        seen.append((module.training, [places[tuple(row.tolist())] for row in inputs[0]]))

    return seen, model.register_forward_pre_hook(note)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("batch_size", [None, 23, 5])
def test_history_and_weights_are_those_of_a_loop_written_out_in_plain_pytorch(optimizer, batch_size):
    split, model = make_split(23, 11), make_model()
    twin = copy.deepcopy(model)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 1e6)  # what an earlier run left behind must not count
    seen, hook = watch_batches(model, split)
    config = FitConfig(
        epochs=3, batch_size=batch_size, optimizer=optimizer, lr=0.02, weight_decay=0.1, restore_best=False
    )
    history = fit(model, split, config)
    hook.remove()

    stepper = OPTIMIZERS[optimizer](twin.parameters(), lr=0.02, weight_decay=0.1)
    batches = [indices for training, indices in seen if training]
    per_epoch = 1 if batch_size is None else math.ceil(23 / batch_size)
    assert len(batches) == 3 * per_epoch
    for epoch in range(3):
        losses, right = [], 0
        for indices in batches[epoch * per_epoch : (epoch + 1) * per_epoch]:
            batch_losses, batch_right = by_hand(twin(split.train.x[indices]), split.train.y[indices])
            stepper.zero_grad()
            batch_losses.mean().backward()
            stepper.step()
            losses += batch_losses.tolist()
            right += batch_right
        with torch.no_grad():
            val_losses, val_right = by_hand(twin(split.val.x), split.val.y)
        got = history.epochs[epoch]
        assert got.epoch == epoch
        assert got.train_loss == pytest.approx(sum(losses) / 23, rel=1e-9)
        assert got.train_acc == pytest.approx(right / 23)
        assert got.val_loss == pytest.approx(val_losses.mean().item(), rel=1e-9)
        assert got.val_acc == pytest.approx(val_right / 11)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("batch_size", [1, 7, 22, 23, 100])
def test_an_epoch_visits_every_training_example_once_in_a_new_order(batch_size):
    split, model = make_split(23, 11), make_model()
    seen, hook = watch_batches(model, split)
    fit(model, split, FitConfig(epochs=3, batch_size=batch_size))
    hook.remove()
    batches = [indices for training, indices in seen if training]
    per_epoch = math.ceil(23 / batch_size)
    visits = [index for batch in batches for index in batch]
    orders = [visits[0:23], visits[23:46], visits[46:]]
    assert [sorted(order) for order in orders] == [list(range(23))] * 3
    assert len({tuple(order) for order in [*orders, range(23)]}) == 4
    full, rest = divmod(23, batch_size)
    assert [len(batch) for batch in batches[:per_epoch]] == [batch_size] * full + [rest] * (rest > 0)


def test_a_full_batch_is_one_step_over_the_examples_as_they_stand():
    split, model = make_split(23, 11), make_model()
    seen, hook = watch_batches(model, split)
    fit(model, split, FitConfig(epochs=2, batch_size=None))
    hook.remove()
    assert seen == [(True, list(range(23))), (False, list(range(11)))] * 2


@pytest.mark.parametrize("training", [True, False], ids=["model in training mode", "model in evaluation mode"])
def test_training_steps_use_dropout_and_validation_does_not(training):
    split, model = make_split(23, 11), make_model(dropout=0.5).train(training)
    modes = []
    hook = model.layer.register_forward_pre_hook(lambda layer, _: modes.append(layer.training))
    history = fit(model, split, FitConfig(epochs=2, batch_size=None, restore_best=False))
    hook.remove()
    assert modes == [True, False, True, False]
    with torch.no_grad():
        losses, _ = by_hand(model.eval()(split.val.x), split.val.y)
    assert history.epochs[-1].val_loss == pytest.approx(losses.mean().item(), rel=1e-9)


@pytest.mark.parametrize("batch_size", [None, 6])
def test_the_same_seed_gives_bitwise_the_same_history_and_weights(batch_size):
    split, config = make_split(), FitConfig(epochs=4, batch_size=batch_size, seed=7)
    first, second = make_model(dropout=0.3), make_model(dropout=0.3)
    assert figures(fit(first, split, config)) == figures(fit(second, split, config))
    assert same_state(first.state_dict(), second.state_dict())


@pytest.mark.parametrize(
    ("dropout", "batch_size"), [(0.0, 6), (0.3, None)], ids=["order of the examples", "dropped synapses"]
)
def test_another_seed_gives_another_order_and_other_dropped_synapses(dropout, batch_size):
    first, second = make_model(dropout), make_model(dropout)
    histories = [
        fit(model, make_split(), FitConfig(epochs=2, batch_size=batch_size, seed=seed))
        for model, seed in ((first, 0), (second, 1))
    ]
    assert figures(histories[0]) != figures(histories[1])
    assert not same_state(first.state_dict(), second.state_dict())


def test_the_result_does_not_depend_on_the_global_random_state_and_leaves_it():
    models, histories = [make_model(dropout=0.3) for _ in range(2)], []
    for model, seed in zip(models, (11, 12), strict=True):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002  the global generator is the point
        before = torch.get_rng_state(), str(np.random.get_state())  # noqa: NPY002
        histories.append(fit(model, make_split(), FitConfig(epochs=2, batch_size=6)))
        assert torch.equal(torch.get_rng_state(), before[0])
        assert str(np.random.get_state()) == before[1]  # noqa: NPY002
    assert figures(histories[0]) == figures(histories[1])
    assert same_state(models[0].state_dict(), models[1].state_dict())


def test_the_test_part_is_never_looked_at():
    test = Examples(torch.empty(5, 16, device="meta"), torch.empty(5, device="meta"))  # has no values to read
    plain, models, config = make_split(), [make_model(), make_model()], FitConfig(epochs=3, batch_size=6)
    clean, spoiled = (
        fit(model, split, config)
        for model, split in zip(models, (plain, Split(plain.train, plain.val, test)), strict=True)
    )
    assert figures(clean) == figures(spoiled)
    assert same_state(models[0].state_dict(), models[1].state_dict())


def test_the_validation_part_is_not_trained_on():
    plain = make_split()
    first, second = make_model(), make_model()
    config = FitConfig(epochs=3, batch_size=6, restore_best=False)
    fit(first, plain, config)
    fit(second, Split(plain.train, make_examples(9, 99), plain.test), config)
    assert same_state(first.state_dict(), second.state_dict())


def test_the_data_is_left_as_it_was():
    split = make_split()
    before = [split.train.x.clone(), split.train.y.clone(), split.val.x.clone(), split.val.y.clone()]
    fit(make_model(), split, FitConfig(epochs=2, batch_size=6))
    after = [split.train.x, split.train.y, split.val.x, split.val.y]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_a_layer_alone_and_a_foreign_module_can_be_trained():
    x = torch.randn(12, 16, generator=torch.Generator().manual_seed(0))
    split = Split(*[Examples(x, x.sum(1))] * 3)
    config = FitConfig(loss="squared-error", epochs=3, batch_size=None, lr=0.01)
    for model in (DendriticLayer(16, 1, branching=4, root_activation=False), nn.Linear(16, 1)):
        history = fit(model, split, config)
        assert history.epochs[-1].train_loss < history.epochs[0].train_loss


def test_a_dendritic_model_learns_the_digits():
    torch.manual_seed(0)
    model = MLNClassifier(64, 10, branching=8, output="logits")
    history = fit(model, digits(), FitConfig(epochs=10, batch_size=128, lr=0.03))
    assert history.best.val_acc > 0.85
