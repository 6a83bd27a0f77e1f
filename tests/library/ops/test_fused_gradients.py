"""Gradients of the fused backend: frozen arguments, gradcheck, second derivatives, what is saved for backward."""

from itertools import product

import pytest
import torch
from forests import NAMED, assert_same, loop, random_case, run, share
from torch import nn
from torch.utils.checkpoint import checkpoint

from dendritree.errors import ShapeError
from dendritree.ops import dendritic, make_plan
from dendritree.tree import Forest

FORESTS = {
    "matmul": share(Forest.grow([8, 2], neurons=2)),
    "balanced": NAMED["balanced, own inputs"],
    "shared": NAMED["unbalanced, shared"],
    "any order": NAMED["any order"],
}
names = pytest.mark.parametrize("name", FORESTS)
dropouts = pytest.mark.parametrize("dropout", [0.0, 0.4])


def fused(forest, activation=torch.tanh, dropout=0.0, **options):
    """The op with the same dropout mask at every call."""
    plan = make_plan(forest)

    def op(x, weight, bias=None):
        torch.manual_seed(7)
        return dendritic(x, weight, bias, plan, activation, dropout=dropout, backend="fused", **options)

    return op


def leaves(case):
    """Fresh tensors that ask for gradients."""
    return [t.clone().requires_grad_() for t in case[:3]]


# ------------------------------------------------------------------------------------------------- who needs gradients


@names
@dropouts
@pytest.mark.parametrize("needs", list(product([True, False], repeat=3)), ids=str)
def test_any_of_x_weight_and_bias_may_be_frozen(name, needs, dropout):
    forest = FORESTS[name]
    case, op = random_case(forest, (5,)), fused(forest, dropout=dropout)
    everything = run(op, case)
    tensors = [t.clone().requires_grad_(need) for t, need in zip(case[:3], needs, strict=True)]
    output = op(*tensors)
    torch.testing.assert_close(output.detach(), everything["output"], rtol=0, atol=0)
    assert output.requires_grad == any(needs)
    if any(needs):
        output.backward(case.cotangent)
    for tensor, need, key in zip(tensors, needs, ("x", "weight", "bias"), strict=True):
        assert (tensor.grad is not None) == need
        if need:
            torch.testing.assert_close(tensor.grad, everything[f"gradient of {key}"])


@names
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@dropouts
def test_no_grad_and_inference_mode_give_the_same_numbers(name, mode, dropout):
    forest = FORESTS[name]
    case, op = random_case(forest, (5,)), fused(forest, dropout=dropout)
    tensors = leaves(case)
    with mode():
        actual = op(*tensors)
    assert not actual.requires_grad
    torch.testing.assert_close(actual.clone(), op(*tensors).detach(), rtol=0, atol=0)


# ------------------------------------------------------------------------------------------------- finite differences


@names
@dropouts
@pytest.mark.parametrize("activation", [nn.Tanh(), nn.Sigmoid(), nn.GELU(), nn.SiLU(), nn.LeakyReLU(0.2)], ids=repr)
def test_gradcheck(name, activation, dropout):
    forest = FORESTS[name]
    op = fused(forest, activation, dropout, root_activation=dropout > 0)
    assert torch.autograd.gradcheck(op, leaves(random_case(forest, (3,))))


@names
@dropouts
def test_gradgradcheck(name, dropout):
    forest = FORESTS[name]
    op = fused(forest, torch.tanh, dropout)
    assert torch.autograd.gradgradcheck(op, leaves(random_case(forest, (2,))), fast_mode=True)


@names
def test_a_gradient_penalty_trains_the_weights(name):
    forest = FORESTS[name]
    case, actual = random_case(forest, (4,)), []
    for op in (fused(forest), lambda *t: loop(*t, forest, torch.tanh)):
        x, weight, bias = leaves(case)
        (slope,) = torch.autograd.grad(op(x, weight, bias).sum(), x, create_graph=True)
        (slope**2).sum().backward()
        actual.append({"slope": slope.detach(), "weight": weight.grad, "bias": bias.grad})
    assert_same(*actual)


# -------------------------------------------------------------------------------------------- the graph between passes


@names
@dropouts
def test_backward_twice_through_one_graph_gives_the_same(name, dropout):
    forest = FORESTS[name]
    case = random_case(forest, (5,))
    tensors = leaves(case)
    output = fused(forest, dropout=dropout)(*tensors)
    first = torch.autograd.grad(output, tensors, case.cotangent, retain_graph=True)
    again = torch.autograd.grad(output, tensors, case.cotangent)
    for one, other in zip(first, again, strict=True):
        assert torch.equal(one, other)


@names
@pytest.mark.parametrize("which", [0, 1], ids=["x", "weight"])
@pytest.mark.parametrize("features_major", [False, True])
def test_a_change_in_place_between_the_passes_raises(name, which, features_major):
    forest = FORESTS[name]
    tensors = leaves(random_case(forest, (5,)))
    if features_major:
        tensors[0] = tensors[0].detach().t().contiguous().t().requires_grad_()
    output = fused(forest)(*tensors)
    with torch.no_grad():
        tensors[which].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


@pytest.mark.parametrize("name", ["matmul", "balanced"])
@pytest.mark.parametrize("leading", [(5,), (2, 3)])
def test_outputs_may_be_changed_in_place(name, leading):
    """As those of nn.Linear: an in-place ReLU after a layer, a sum into it."""
    forest = FORESTS[name]
    case, op = random_case(forest, leading), fused(forest)
    actual = run(lambda *t: op(*t).mul_(2).relu_(), case)
    assert_same(actual, run(lambda *t: (loop(*t, forest, torch.tanh) * 2).relu(), case))


@dropouts
@names
def test_checkpointing_gives_the_same_gradients(name, dropout):
    forest = FORESTS[name]
    case, plan = random_case(forest, (5,)), make_plan(forest)

    def op(*tensors):
        return dendritic(*tensors, plan, torch.tanh, dropout=dropout, backend="fused")

    def seeded(function):
        torch.manual_seed(0)
        return run(function, case)

    actual = seeded(lambda *tensors: checkpoint(op, *tensors, use_reentrant=False))
    assert_same(actual, seeded(op), rtol=0, atol=0)


# --------------------------------------------------------------------------------------------------- the registered op


def op_arguments(forest, dropout, bias=True, grad=True):
    case, program = random_case(forest, (4,), bias=bias), make_plan(forest).program
    x, weight, b = (None if t is None else t.requires_grad_(grad) for t in case[:3])
    seed = torch.tensor([123456789]) if dropout else None
    return x, weight, b, program.tables, list(program.sizes), seed, "Tanh", 0.0, True, dropout


@dropouts
@pytest.mark.parametrize("bias", [True, False])
def test_torch_finds_nothing_wrong_with_the_forward_op(dropout, bias):
    arguments = op_arguments(FORESTS["shared"], dropout, bias)
    actual = torch.library.opcheck(torch.ops.dendritree.forward.default, arguments)
    assert set(actual.values()) == {"SUCCESS"}


@dropouts
@pytest.mark.parametrize("need_gx", [True, False])
def test_torch_finds_nothing_wrong_with_the_backward_op(dropout, need_gx):
    forest = FORESTS["shared"]
    arguments = op_arguments(forest, dropout, grad=False)
    y, kept = torch.ops.dendritree.forward(*arguments)
    x, weight, bias, *rest = arguments
    arguments = (torch.ones_like(y), x, weight, bias, kept, *rest, need_gx)
    actual = torch.library.opcheck(torch.ops.dendritree.backward.default, arguments)
    assert set(actual.values()) == {"SUCCESS"}


def test_the_op_rejects_tensors_of_other_sizes():
    x, weight, *rest = op_arguments(FORESTS["shared"], 0.0)
    for wrong in ((x.t(), weight), (x, weight[1:])):
        with pytest.raises(ShapeError, match="must have"):
            torch.ops.dendritree.forward(*wrong, *rest)


@pytest.mark.parametrize("neurons", [1, 20])
def test_the_op_and_eager_mode_agree(neurons):
    forest = Forest.grow(2, depth=3, neurons=neurons)
    x, weight, bias, *rest = op_arguments(forest, 0.0)
    cotangent = torch.randn(4, forest.neurons, dtype=torch.float64)
    torch.ops.dendritree.forward(x, weight, bias, *rest)[0].backward(cotangent)
    tensors = [t.detach().clone().requires_grad_() for t in (x, weight, bias)]
    loop(*tensors, forest, torch.tanh).backward(cotangent)
    for actual, expected in zip((x.grad, weight.grad, bias.grad), [t.grad for t in tensors], strict=True):
        torch.testing.assert_close(actual, expected)
