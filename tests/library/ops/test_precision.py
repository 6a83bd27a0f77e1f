"""Types: float32 is close to float64, low precision is no worse than twice plain PyTorch's own error."""

import pytest
import torch
from forests import ACTIVATIONS, NAMED, assert_same, forests, loop, plain_pytorch, random_case, run, seeds, share
from hypothesis import given

from dendritree.ops import eager
from dendritree.ops.eager import make_layout
from dendritree.tree import Forest

LOW_PRECISION = {
    **{name: NAMED[name] for name in ("unbalanced, shared", "unequal", "any order")},
    "wide, shared": share(Forest.grow(8, depth=2, neurons=2)),
    "deep, own inputs": Forest.grow(2, depth=4, neurons=2),
    "ragged, shared": share(Forest.grow(5, fan_in=33, neurons=2, ragged=True)),
}


def mean_square_errors(forest, activation, dtype, repeats=10, batch=64):
    """Of eager and of plain PyTorch, both against float64 on the same rounded numbers; several draws pooled."""
    layout, ours, plain = make_layout(forest), {}, {}
    for seed in range(repeats):
        case = random_case(forest, (batch,), dtype, seed=seed)
        exact = run(lambda *t: plain_pytorch(*t, forest, activation), case.to(torch.float64))
        for total, function in (
            (ours, lambda *t: eager.dendritic(*t, layout, activation)),
            (plain, lambda *t: plain_pytorch(*t, forest, activation)),
        ):
            for name, value in run(function, case).items():
                total[name] = total.get(name, 0.0) + (value.double() - exact[name]).square().mean().item() / repeats
    return ours, plain


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("name", LOW_PRECISION)
def test_no_worse_than_twice_the_error_of_plain_pytorch(name, dtype):
    ours, plain = mean_square_errors(LOW_PRECISION[name], torch.tanh, dtype)
    assert ours.keys() == {"output", "gradient of x", "gradient of weight", "gradient of bias"}
    for what, error in ours.items():
        assert error**0.5 <= 2 * plain[what] ** 0.5, what


@pytest.mark.parametrize("name", LOW_PRECISION)
def test_outputs_of_leaky_relu_in_bfloat16(name):
    # Outputs alone: next to the kink a rounding changes the slope, so that gradients have no small error to compare.
    ours, plain = mean_square_errors(LOW_PRECISION[name], ACTIVATIONS["leaky_relu"], torch.bfloat16)
    assert ours["output"] ** 0.5 <= 2 * plain["output"] ** 0.5


@given(forests(), seeds)
def test_float32_is_close_to_the_loop_in_float64(forest, seed):
    case, layout = random_case(forest, dtype=torch.float32, seed=seed), make_layout(forest)
    actual = run(lambda *tensors: eager.dendritic(*tensors, layout, torch.tanh), case)
    expected = run(lambda *tensors: loop(*tensors, forest, torch.tanh), case.to(torch.float64))
    assert_same(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["balanced, shared", "ragged", "unequal", "unbalanced"])
def test_outputs_and_gradients_keep_the_type(name, dtype):
    forest = NAMED[name]
    layout = make_layout(forest)
    actual = run(
        lambda *t: eager.dendritic(*t, layout, ACTIVATIONS["leaky_relu"], False), random_case(forest, dtype=dtype)
    )
    assert {tensor.dtype for tensor in actual.values()} == {dtype}
