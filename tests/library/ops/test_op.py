"""The one public op: the choice of the backend, what it rejects, autocast."""

from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from forests import ACTIVATIONS, NAMED, assert_same, forests, leading_shapes, loop, random_case, run, seeds
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dendritree import ops
from dendritree.errors import DeviceError, OptionError, ShapeError
from dendritree.ops import dendritic, make_plan
from dendritree.tree import Forest

FOREST = Forest.grow(2, fan_in=4)  # 6 edges, 3 nodes
PLAN = make_plan(FOREST)
backends = pytest.mark.parametrize("backend", ops.BACKENDS)


def call(x=(5, 4), weight=(6,), bias=(3,), dtype=torch.float32, x_dtype=None, bias_dtype=None, **options):
    """The op on ones, with sizes and types to spoil."""
    dtypes = (x_dtype or dtype, dtype, bias_dtype or dtype)
    tensors = [torch.ones(size, dtype=each) for size, each in zip((x, weight, bias), dtypes, strict=True)]
    return dendritic(*tensors, PLAN, torch.tanh, **options)


@pytest.mark.parametrize("backend", ops.BACKENDS)
@given(
    forest=forests(),
    leading=leading_shapes,
    activation=st.sampled_from(sorted(ACTIVATIONS)),
    root_activation=st.booleans(),
    bias=st.booleans(),
    seed=seeds,
)
def test_every_backend_gives_the_outputs_and_gradients_of_the_loop(
    backend, forest, leading, activation, root_activation, bias, seed
):
    case, act, plan = random_case(forest, leading, bias=bias, seed=seed), ACTIVATIONS[activation], make_plan(forest)
    actual = run(lambda *t: dendritic(*t, plan, act, root_activation=root_activation, backend=backend), case)
    assert_same(actual, run(lambda *t: loop(*t, forest, act, root_activation), case))


class HalfInPlace(nn.Module):
    """Changes what it is given, and returns something else."""

    def forward(self, x):
        return x.mul_(0.5).tanh()


IN_PLACE = {
    "SiLU": (nn.SiLU(inplace=True), nn.functional.silu),
    "LeakyReLU": (nn.LeakyReLU(0.1, inplace=True), ACTIVATIONS["leaky_relu"]),
    "one's own": (HalfInPlace(), lambda x: (x * 0.5).tanh()),
    "a function": (torch.relu_, torch.relu),
}


@pytest.mark.parametrize("backend", ["auto", "eager", "reference"])
@pytest.mark.parametrize("activation", IN_PLACE)
@pytest.mark.parametrize("root_activation", [True, False])
@pytest.mark.parametrize("name", ["balanced", "unequal", "any order"])
def test_an_activation_may_change_what_it_is_given(backend, activation, root_activation, name):
    (in_place, function), forest = IN_PLACE[activation], NAMED[name]
    case, plan = random_case(forest, (7,)), make_plan(forest)
    actual = run(lambda *t: dendritic(*t, plan, in_place, root_activation=root_activation, backend=backend), case)
    assert_same(actual, run(lambda *t: loop(*t, forest, function, root_activation), case))


# ---------------------------------------------------------------------------------------------------------- rejections


@backends
@pytest.mark.parametrize("devices", [d for d in product(["cpu", "meta"], repeat=3) if len(set(d)) > 1], ids="-".join)
def test_tensors_on_several_devices_are_rejected(backend, devices):
    tensors = [t.to(device) for t, device in zip(random_case(FOREST)[:3], devices, strict=True)]
    with pytest.raises(DeviceError, match=rf"got the input on {devices[0]}, the parameters on .*{devices[1]}"):
        dendritic(*tensors, PLAN, torch.tanh, backend=backend)


REJECTED = [
    *(({"x": shape}, ShapeError, "in_features 4") for shape in [(5, 3), (5, 5), (4, 5, 2), (0,), (5, 0), ()]),
    *(({"weight": shape}, ShapeError, "6 edges") for shape in [(1,), (5,), (7,), (2, 3), (1, 6)]),
    *(({"bias": shape}, ShapeError, "3 nodes") for shape in [(1,), (2,), (4,), (3, 1)]),
    *(({"dropout": p}, OptionError, "probability") for p in [float("nan"), -0.1, 1.0, "0.5", None]),
    *(({"x_dtype": dtype}, OptionError, "input.*float32") for dtype in [torch.float64, torch.bfloat16, torch.int64]),
    ({"bias_dtype": torch.float64}, OptionError, "bias.*float32"),
]


@backends
@pytest.mark.parametrize(("change", "error", "word"), REJECTED, ids=str)
def test_arguments_that_do_not_fit_are_rejected(backend, change, error, word):
    with pytest.raises(error, match=word):
        call(**change, backend=backend)


@pytest.mark.parametrize(("backend", "hint"), [("eagr", "did you mean 'eager'"), ("xyz", "'xyz'"), (None, "None")])
def test_an_unknown_backend_is_rejected_with_a_near_match(backend, hint):
    with pytest.raises(OptionError, match=hint):
        call(backend=backend)


@pytest.mark.parametrize("x", [np.ones((5, 4)), torch.ones(5, 4).to_sparse()], ids=["numpy", "sparse"])
def test_the_input_must_be_a_dense_tensor(x):
    with pytest.raises(OptionError, match="dense"):
        dendritic(x, torch.ones(6), None, PLAN, torch.tanh)


# ---------------------------------------------------------------------------------------------------------- autocast


@backends
@pytest.mark.parametrize("name", ["balanced, shared", "unequal"])
def test_trees_compute_in_the_type_of_their_weights_under_autocast(name, backend):
    forest = NAMED[name]
    plan, case = make_plan(forest), random_case(forest, dtype=torch.float32)

    def op(*tensors, autocast):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            return dendritic(*tensors, plan, torch.tanh, backend=backend)

    actual, expected = (run(partial(op, autocast=autocast), case) for autocast in (True, False))
    assert actual["output"].dtype == torch.float32
    assert all(torch.equal(actual[key], expected[key]) for key in expected)


@backends
def test_autocast_hands_a_layer_inputs_of_low_precision(backend):
    case = random_case(FOREST, dtype=torch.float32)
    low = case.x.bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual = dendritic(low, case.weight, case.bias, PLAN, torch.tanh, backend=backend)
    torch.testing.assert_close(actual, loop(low.float(), case.weight, case.bias, FOREST, torch.tanh))
    actual.sum().backward()
    assert low.grad.dtype == torch.bfloat16


@pytest.mark.parametrize("backend", ["auto", "eager", "reference"])
def test_low_precision_weights_compute_in_low_precision(backend):
    assert call(dtype=torch.bfloat16, backend=backend).dtype == torch.bfloat16
