"""What users attach to the fused op and what they hand it: hooks on saved tensors and activations, negative views,
autocast around the backward pass."""

import pytest
import torch
from forests import NAMED, assert_same, assert_same_bits, loop, random_case, run
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from dendritree.ops import dendritic, make_plan

FORESTS = {name: NAMED[name] for name in ("balanced", "balanced, shared", "ragged", "unequal")}
names = pytest.mark.parametrize("name", FORESTS)
dropouts = pytest.mark.parametrize("dropout", [0.0, 0.4])


def op(forest, activation=torch.tanh, dropout=0.0, backend="fused"):
    """The op of a forest, with the same masks whenever it is called."""
    plan = make_plan(forest)

    def call(*tensors):
        torch.manual_seed(3)
        return dendritic(*tensors, plan, activation, dropout=dropout, backend=backend)

    return call


# ---------------------------------------------------------------------------------------------- hooks on saved tensors


def apart(tensor):
    """The same numbers, none of them beside another."""
    return tensor.new_zeros(*tensor.shape, 2).select(-1, 0).copy_(tensor)


def transposed(tensor):
    """The same numbers, with the first axis the contiguous one."""
    return tensor.transpose(0, -1).contiguous().transpose(0, -1)


def shifted(tensor):
    """The same numbers, not at the beginning of their storage."""
    return tensor.new_zeros(tensor.numel() + 1)[1:].view(tensor.shape).copy_(tensor)


def negative(tensor):
    """The same numbers, as a view of their opposites."""
    return torch._neg_view(-tensor) if tensor.is_floating_point() else tensor.clone()


@names
@dropouts
@pytest.mark.parametrize("change", [apart, transposed, shifted, negative])
@pytest.mark.parametrize("when", ["packed", "unpacked"])
def test_saved_tensors_may_come_back_with_other_strides(name, dropout, change, when):
    case, call = random_case(FORESTS[name], (50,)), op(FORESTS[name], dropout=dropout)
    hooks = (change, lambda t: t) if when == "packed" else (lambda t: t, change)

    def hooked(*tensors):
        with saved_tensors_hooks(*hooks):
            return call(*tensors)

    assert_same_bits(run(hooked, case), run(call, case))


# ------------------------------------------------------------------------------------------------------ negative views


@names
@dropouts
@pytest.mark.parametrize("grad", [True, False])
def test_a_negative_view_keeps_its_sign(name, dropout, grad):
    forest, case = FORESTS[name], random_case(FORESTS[name], (50,))
    call = op(forest, dropout=dropout)
    with torch.set_grad_enabled(grad):
        for place in range(3):
            tensors = [negative(t) if i == place else t for i, t in enumerate(case[:3])]
            assert tensors[place].is_neg()
            assert torch.equal(call(*tensors), call(*case[:3]))
    wanted = run(call, case)
    assert_same_bits(run(lambda x, w, b: call(*map(negative, (x, w, b))), case), wanted)
    assert_same_bits(run(call, case._replace(cotangent=negative(case.cotangent))), wanted)


# --------------------------------------------------------------------------------- autocast around the backward pass


@names
@dropouts
def test_a_backward_pass_inside_autocast_is_that_outside(name, dropout):
    case, call = random_case(FORESTS[name], (50,), torch.float32), op(FORESTS[name], dropout=dropout)
    wanted = run(call, case)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same_bits(run(call, case), wanted)


def test_gradients_that_are_not_finite_are_computed_outside_autocast_too():
    """Another way leads to them, through operations that autocast would have in bfloat16."""
    forest = NAMED["balanced, shared"]
    case, call = random_case(forest, (50,), torch.float32), op(forest, nn.LeakyReLU(0.1))
    case.cotangent[0] = torch.inf
    wanted = run(call, case)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = run(call, case)
    for key, values in wanted.items():
        torch.testing.assert_close(found[key], values, rtol=0, atol=0, equal_nan=True)


# ------------------------------------------------------------------------------------------------ hooks on activations

CALLS = []


def count_call(*_):
    CALLS.append(1)


def patch(activation):
    """A forward of the instance's own."""
    forward = activation.forward
    activation.forward = lambda x: (count_call(), forward(x))[1]


ATTACHED = {
    "forward": lambda activation, _: activation.register_forward_hook(count_call),
    "before forward": lambda activation, _: activation.register_forward_pre_hook(count_call),
    "backward": lambda activation, _: activation.register_full_backward_hook(count_call),
    "before backward": lambda activation, _: activation.register_full_backward_pre_hook(count_call),
    "patched": lambda activation, _: patch(activation),
    "patched class": lambda activation, monkeypatch: monkeypatch.setattr(
        type(activation), "forward", lambda _, x: (count_call(), x.tanh())[1]
    ),
}


@pytest.mark.parametrize("kind", ATTACHED)
def test_an_activation_that_somebody_watches_is_called(kind, monkeypatch):
    forest, activation = NAMED["balanced"], nn.Tanh()
    case = random_case(forest, (5,))
    CALLS.clear()
    run(op(forest, activation, backend="auto"), case)
    assert not CALLS
    ATTACHED[kind](activation, monkeypatch)
    found = run(op(forest, activation, backend="auto"), case)
    assert len(CALLS) == forest.depth
    assert_same(found, run(lambda *t: loop(*t, forest, torch.tanh), case))
