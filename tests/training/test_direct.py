import copy

import pytest
import torch
from helpers.training_cases import figures, same_state
from torch import nn

from dendritree.data import Examples, Split
from dendritree.models import create_model
from dendritree.training import FitConfig, fit, loop
from dendritree.training.committee import Committee
from dendritree.training.direct import direct
from dendritree.training.losses import LOSSES
from dendritree.training.updates import quick_step

ROWS = 203
"""With batches of 64 the last one is shorter."""


def make_committee(out_features=1, held_out=True, **options):
    torch.manual_seed(0)
    options = {"norm": "batch", "branching": [3, 2]} | options
    network = create_model("dendritic-network", in_features=6, hidden=[9], out_features=out_features, **options)
    return Committee(network, 4, held_out=held_out)


def make_examples(committee, loss, weights=False):
    random = torch.Generator().manual_seed(1)
    x, outputs = torch.randn(ROWS, 6, generator=random), committee.bias.shape[1]
    if loss == "squared-error":
        y = torch.randn(ROWS, outputs, generator=random)
    else:
        y = torch.randint(max(2, outputs), (ROWS,), generator=random)
    if committee.held_out:
        x = torch.cat([x, torch.arange(ROWS)[:, None] % 4], 1)
    weight = torch.rand(ROWS, generator=random) if weights else None
    return committee.train().examples(x, y, weight), committee.eval().examples(x, y, weight)


def trained(committee, loss, weights, **options):
    train, val = make_examples(committee, loss, weights)
    config = FitConfig(loss=loss, epochs=3, batch_size=64, optimizer="adamw", weight_decay=0.1, schedule="one-cycle")
    return fit(committee, Split(train, val, val), config, **options)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize(
    ("loss", "outputs"),
    [("binary-logits", 1), ("cross-entropy", 3), ("squared-error", 1), ("squared-error", 2)],
)
def test_a_run_is_that_of_autograd_to_the_last_bit(loss, outputs, held_out, weights, monkeypatch):
    ours = make_committee(outputs, held_out)
    theirs = copy.deepcopy(ours)
    assert direct(ours, make_examples(ours, loss)[0], loss) is not None
    history = trained(ours, loss, weights)
    monkeypatch.setattr(loop, "direct", lambda *_: None)
    monkeypatch.setattr(loop, "quick_step", lambda optimizer: optimizer.step)
    expected = trained(theirs, loss, weights)
    assert same_state(ours.state_dict(), theirs.state_dict())
    assert str(figures(history)) == str(figures(expected))  # NaN is not equal to itself


@pytest.mark.parametrize("held_out", [False, True])
def test_every_gradient_is_that_of_autograd(held_out):
    committee = make_committee(3, held_out).train()
    twin, examples = copy.deepcopy(committee), make_examples(committee, "cross-entropy")[0]
    committee.train()
    twin.train()
    with torch.no_grad():
        out, losses = direct(committee, examples, "cross-entropy").step(examples, 1.0)
    expected = twin(examples.x)
    LOSSES["cross-entropy"].per_example(expected, examples.y).mean().backward()
    assert torch.equal(out, expected)
    assert losses.shape == (ROWS,)
    for (name, one), other in zip(committee.named_parameters(), twin.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None), name
        assert one.grad is None or torch.equal(one.grad, other.grad), name


@pytest.mark.parametrize(
    "change",
    [
        lambda committee: committee.network.hidden[0].register_forward_hook(lambda *_: None),
        lambda committee: committee.bias.register_hook(lambda gradient: gradient),
        lambda committee: committee.network.hidden[1].weight.requires_grad_(False),
        lambda committee: setattr(committee.network.hidden[0], "dropout", 0.5),
        lambda committee: setattr(committee.network.hidden[0], "backend", "eager"),
        lambda committee: committee.network.hidden.append(nn.Tanh()),
        lambda committee: committee.double(),
    ],
    ids=["module hook", "tensor hook", "frozen", "dropout", "backend", "another step", "another type"],
)
def test_autograd_does_what_is_not_known_here(change):
    committee = make_committee()
    change(committee)
    assert direct(committee, make_examples(committee, "binary-logits")[0], "binary-logits") is None


def test_targets_that_do_not_fit_are_left_to_autograd_which_says_so():
    committee = make_committee(3)
    train, _ = make_examples(committee, "cross-entropy")
    assert direct(committee, Examples(train.x, train.y + 1), "cross-entropy") is None
    assert direct(committee, Examples(train.x, train.y[:, :1]), "cross-entropy") is None
    assert direct(committee, Examples(train.x[:, 1:], train.y), "cross-entropy") is None
    assert direct(committee, train, "binary-probabilities") is None


def test_numbers_that_are_not_finite_go_the_same_way():
    committee, twin = make_committee(), make_committee()
    with torch.no_grad():
        for model in (committee, twin):
            model.network.hidden[0].weight[0] = torch.inf
    examples = make_examples(committee, "binary-logits")[0]
    committee.train()
    twin.train()
    with torch.no_grad():
        direct(committee, examples, "binary-logits").step(examples, 1.0)
    LOSSES["binary-logits"].per_example(twin(examples.x), examples.y).mean().backward()
    for one, other in zip(committee.parameters(), twin.parameters(), strict=True):
        assert one.grad is other.grad is None or torch.equal(one.grad.isnan(), other.grad.isnan())


# ------------------------------------------------------------------------------------------------------------ updates


def make_parameters():
    random = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(size, generator=random)) for size in (7, 3, 1)]


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
@pytest.mark.parametrize("fused", [True, False])
def test_quick_steps_are_the_steps_of_the_optimizer(kind, fused):
    ours, theirs = make_parameters(), make_parameters()
    one, other = (kind(parameters, lr=0.1, weight_decay=0.2, fused=fused) for parameters in (ours, theirs))
    step, random = quick_step(one), torch.Generator().manual_seed(1)
    for number in range(6):
        for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            gradient = torch.randn(a.shape, generator=random)
            a.grad = b.grad = None if place == 1 and number in (0, 4) else gradient  # a parameter that is not used
        for optimizer in (one, other):
            optimizer.param_groups[0]["lr"] = 0.1 / (number + 1)
        step()
        other.step()
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    for a, b in zip(ours, theirs, strict=True):
        state, expected = one.state[a], other.state[b]
        assert state.keys() == expected.keys()
        assert all(torch.equal(state[name], expected[name]) for name in state if state[name] is not None)


def test_hooks_of_an_optimizer_see_every_step():
    parameters, seen = make_parameters(), []
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.AdamW(parameters, fused=True)
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    step = quick_step(optimizer)
    step()
    step()
    assert len(seen) == 2
