"""The fused backend on images: what the eager backend computes, without a copy of patches, in any number of threads."""

import pytest
import torch
from forests import assert_same_bits
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dendritree.errors import OptionError
from dendritree.ops import PatchGrid, dendritic, make_plan
from dendritree.tree import Forest

SAME = PatchGrid(3, (3, 3), padding=(1, 1, 1, 1))


def shared(branching, neurons, inputs):
    """Neurons that all read all inputs."""
    return Forest.grow(branching, fan_in=inputs, neurons=neurons, ragged=True).wired([*range(inputs)] * neurons, inputs)


def numbers(forest, grid, x, backend, *, activation=nn.LeakyReLU(0.1), dropout=0.0, need_gx=True, bias=True):  # noqa: B008
    """Outputs and gradients, with weights, cotangent and dropout of fixed seeds."""
    random = torch.Generator().manual_seed(0)
    weight = torch.randn(forest.edges, generator=random, dtype=x.dtype).mul_(0.5).requires_grad_()
    b = torch.randn(forest.nodes, generator=random, dtype=x.dtype).requires_grad_() if bias else None
    x = x.detach().clone().requires_grad_(need_gx)
    torch.manual_seed(1)
    options = {"backend": backend, "dropout": dropout, "patches": grid}
    y = dendritic(x, weight, b, make_plan(forest), activation, **options)
    y.backward(torch.randn(y.shape, generator=random, dtype=x.dtype))
    actual = {"y": y.detach(), "x": x.grad, "weight": weight.grad, "bias": b.grad if bias else None}
    return {name: value for name, value in actual.items() if value is not None}


def assert_close(actual, expected, tolerance=1e-9):
    assert actual.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(
            actual[name],
            expected[name],
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
            msg=lambda m, n=name: f"{n}: {m}",
        )


@st.composite
def convolutions(draw):
    """A grid and images that it fits: any strides, paddings and dilations, and images for several blocks."""
    channels, kernel, stride, dilation = (
        draw(st.integers(1, 3)), *(draw(st.tuples(st.integers(1, 3), st.integers(1, most))) for most in (4, 3, 3))
    )  # fmt: skip
    padding = draw(st.tuples(*[st.integers(0, 4)] * 4))
    grid = PatchGrid(channels, kernel, stride, padding, dilation)
    (high, wide), (left, right, top, bottom) = grid.span, padding
    size = [
        max(1, high - top - bottom) + draw(st.integers(0, 6)),
        max(1, wide - left - right) + draw(st.integers(0, 6)),
    ]
    return grid, (draw(st.sampled_from([1, 2, 3, 8, 19, 33])), channels, *size)


@settings(max_examples=60)
@given(
    convolutions(),
    st.sampled_from([2, 3, [4, 3]]),
    st.sampled_from([1, 3, 4, 9]),
    st.sampled_from([nn.LeakyReLU(0.1), nn.ReLU(), torch.tanh]),
    st.sampled_from([0.0, 0.3]),
    st.booleans(),
    st.integers(0, 99),
)
def test_it_computes_what_the_eager_backend_does(convolution, branching, neurons, activation, dropout, flag, seed):
    grid, shape = convolution
    features = grid.features
    if branching == [4, 3] and features > 12:
        branching = 3
    forest = shared(branching, neurons, features)
    random = torch.Generator().manual_seed(seed)
    if seed % 2:
        forest = forest.wired(torch.randint(features, (forest.synapses,), generator=random).tolist(), features)
    x = torch.randn(shape, generator=random, dtype=torch.float64)
    options = {"activation": activation, "dropout": dropout, "need_gx": flag, "bias": flag}
    assert_close(numbers(forest, grid, x, "fused", **options), numbers(forest, grid, x, "eager", **options))


UNREAD = [(2, 2, 5), (3, 3, 7), (3, 3, 8), (4, 4, 9), (5, 5, 14), (8, 4, 33), (1, 2, 6)]
"""(kernel, stride, side) of images whose last rows and columns no patch reads."""


@pytest.mark.parametrize(("kernel", "stride", "side"), UNREAD)
def test_pixels_that_no_patch_reads_change_nothing(kernel, stride, side):
    grid = PatchGrid(3, (kernel, kernel), (stride, stride))
    forest = shared(3, 4, grid.features)
    x = torch.randn(32, 3, side, side, dtype=torch.float64)
    actual = numbers(forest, grid, x, "fused")
    assert_close(actual, numbers(forest, grid, x, "eager"))
    read = (side - kernel) // stride * stride + kernel
    assert read < side
    assert (actual["x"][..., read:, :] == 0).all()
    assert (actual["x"][..., read:] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_of_any_length_are_copied_whole(dtype):
    forest = shared(3, 5, 27)
    for width in (*range(1, 36), 47, 48, 49, 63, 64, 65):  # in pieces of 4, 8 or 16 numbers that overlap
        x = torch.randn(2, 3, 2, width, dtype=dtype)
        actual, expected = (numbers(forest, SAME, x, backend) for backend in ("fused", "eager"))
        assert_close(actual, expected, 1e-9 if dtype is torch.float64 else 1e-4)


def test_no_patch_is_copied(monkeypatch):
    monkeypatch.setattr(PatchGrid, "copied", lambda *_: pytest.fail("a patch was copied"))
    actual = numbers(shared([9, 3], 5, 27), SAME, torch.randn(2, 3, 8, 8), "auto")
    assert actual["y"].shape == (2, 5, 8, 8)
    assert actual["y"].is_contiguous()


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("shape", [(1, 3, 30, 21), (37, 3, 7, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_results_are_the_same_bits_for_any_number_of_threads(dropout, shape, dtype, set_threads, thread_counts):
    forest, x = shared([9, 3], 21, 27), torch.randn(shape, dtype=dtype)
    set_threads(1)
    alone = numbers(forest, SAME, x, "fused", dropout=dropout)
    for count in (2, 3, 7):
        set_threads(count)
        assert_same_bits(numbers(forest, SAME, x, "fused", dropout=dropout), alone, f"with {count} threads")
    assert thread_counts == [1, 1, 2, 2, 3, 3, 7, 7]


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("at", ["a pixel", "a weight"])
def test_numbers_that_are_not_finite_give_what_the_eager_backend_gives(odd, at):
    forest, x = shared([9, 3], 5, 27), torch.randn(9, 3, 6, 7, dtype=torch.float64)
    if at == "a pixel":
        x[4, 1, 2, 3] = odd
        assert_close(numbers(forest, SAME, x, "fused"), numbers(forest, SAME, x, "eager"))
        y = numbers(forest, SAME, x, "fused")["y"]
        reached = torch.zeros(9, 6, 7, dtype=torch.bool)
        reached[4, 1:4, 2:5] = True
        assert torch.equal(~y.isfinite().all(1), reached)  # its patches and no others
        return
    actual = {}
    for backend in ("fused", "eager"):
        weight = torch.ones(forest.edges, dtype=torch.float64)
        weight[7] = odd
        weight.requires_grad_()
        y = dendritic(x, weight, None, make_plan(forest), nn.LeakyReLU(0.1), backend=backend, patches=SAME)
        y.sum().backward()
        actual[backend] = {"y": y.detach(), "weight": weight.grad}
    assert_close(actual["fused"], actual["eager"])


def test_single_precision_is_as_good_as_that_of_the_eager_backend():
    forest, x = shared([24, 6], 8, 144), torch.randn(5, 16, 12, 13)
    grid = PatchGrid(16, (3, 3), padding=(1, 1, 1, 1))
    expected = numbers(forest, grid, x.double(), "eager")
    actual, yardstick = (numbers(forest, grid, x, backend) for backend in ("fused", "eager"))
    for name in expected:
        error, allowed = ((each[name] - expected[name]).abs().max() for each in (actual, yardstick))
        assert error <= 2 * allowed + 1e-6, name


def test_no_images_and_no_batch():
    forest, plan = shared(3, 4, 27), make_plan(shared(3, 4, 27))
    actual = numbers(forest, SAME, torch.randn(0, 3, 5, 6), "fused")
    assert (actual["y"].shape, actual["x"].shape) == ((0, 4, 5, 6), (0, 3, 5, 6))
    assert not actual["weight"].any()
    x, weight = torch.randn(2, 2, 3, 5, 6), torch.randn(forest.edges)
    y = dendritic(x, weight, None, plan, nn.ReLU(), patches=SAME)
    assert torch.equal(dendritic(x[1, 0], weight, None, plan, nn.ReLU(), patches=SAME), y[1, 0])


def test_what_it_cannot_do_is_an_error_or_falls_back():
    forest, x = shared(3, 4, 27), torch.randn(2, 3, 5, 6)
    with pytest.raises(OptionError, match=r"backend 'fused' cannot do this: it supports .*, not ELU"):
        numbers(forest, SAME, x, "fused", activation=nn.ELU())
    assert_close(
        numbers(forest, SAME, x, "auto", activation=nn.ELU()), numbers(forest, SAME, x, "eager", activation=nn.ELU())
    )
