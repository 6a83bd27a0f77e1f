"""The one public op: the choice of the backend, what it rejects, autocast."""

from functools import partial
from itertools import product

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


def call(x=(5, 4), weight=(6,), bias=(3,), dtype=torch.float32, **options):
    """The op on ones, with sizes to spoil."""
    tensors = [torch.ones(size, dtype=dtype) for size in (x, weight, bias)]
    return dendritic(*tensors, PLAN, torch.tanh, **options)


def test_the_backends():
    assert {"auto", "eager", "reference"} <= set(ops.BACKENDS)


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
    found = run(lambda *t: dendritic(*t, plan, act, root_activation=root_activation, backend=backend), case)
    assert_same(found, run(lambda *t: loop(*t, forest, act, root_activation), case))


def test_the_default_activates_the_root_drops_nothing_and_takes_any_backend():
    case = random_case(FOREST)
    found = dendritic(*case[:3], PLAN, torch.tanh)
    torch.testing.assert_close(found, loop(*case[:3], FOREST, torch.tanh))


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
    found = run(lambda *t: dendritic(*t, plan, in_place, root_activation=root_activation, backend=backend), case)
    assert_same(found, run(lambda *t: loop(*t, forest, function, root_activation), case))


# ---------------------------------------------------------------------------------------------------------- refusals


@backends
@pytest.mark.parametrize("devices", [d for d in product(["cpu", "meta"], repeat=3) if len(set(d)) > 1], ids="-".join)
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("planned", ["cpu", "meta"])
def test_tensors_on_several_devices_are_refused(backend, devices, grad, planned):
    tensors = [t.to(device).requires_grad_(grad) for t, device in zip(random_case(FOREST)[:3], devices, strict=True)]
    with pytest.raises(
        DeviceError, match=rf"same device: got the input on {devices[0]}, the parameters on .*{devices[1]}"
    ):
        dendritic(*tensors, make_plan(FOREST, planned), torch.tanh, backend=backend)


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("eagr", r"backend must be one of .*'auto'.*'eager'.*'reference'.*: got 'eagr'; did you mean 'eager'\?"),
        ("Reference", r"backend must be one of .*: got 'Reference'; did you mean 'reference'\?"),
        ("xyz", r"backend must be one of .*: got 'xyz'$"),
        (None, r"backend must be one of .*: got None$"),
    ],
)
def test_an_unknown_backend_is_refused_with_a_near_match(backend, message):
    with pytest.raises(OptionError, match=message):
        call(backend=backend)


@backends
@pytest.mark.parametrize("shape", [(5, 3), (5, 5), (4, 1), (4, 5, 2), (0,), (5, 0), ()])
def test_the_last_dimension_must_be_in_features(backend, shape):
    with pytest.raises(ShapeError) as error:
        call(x=shape, backend=backend)
    assert str(error.value) == f"the last dimension of the input must be in_features 4: got {shape}"


@backends
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int64, torch.bool])
def test_the_input_must_have_the_type_of_the_weights(backend, dtype):
    x = torch.ones(5, 4, dtype=dtype)
    with pytest.raises(OptionError) as error:
        dendritic(x, torch.ones(6), torch.ones(3), PLAN, torch.tanh, backend=backend)
    assert str(error.value) == f"the input must have the type of the weights, torch.float32: got {dtype}"


@backends
def test_the_bias_must_have_the_type_of_the_weights(backend):
    with pytest.raises(OptionError, match=r"bias must .*torch\.float32: got torch\.float64"):
        dendritic(torch.ones(5, 4), torch.ones(6), torch.ones(3).double(), PLAN, torch.tanh, backend=backend)


@backends
@pytest.mark.parametrize("size", [(1,), (5,), (7,), (12,), (2, 3), (1, 6)])
def test_there_must_be_one_weight_per_edge(backend, size):
    with pytest.raises(ShapeError) as error:
        call(weight=size, backend=backend)
    assert "one weight for each of 6 edges" in str(error.value)
    assert f": got {size}" in str(error.value)


@backends
@pytest.mark.parametrize("size", [(1,), (2,), (4,), (3, 1), (1, 3)])
def test_there_must_be_one_bias_per_node(backend, size):
    with pytest.raises(ShapeError) as error:
        call(bias=size, backend=backend)
    assert "one bias for each of 3 nodes" in str(error.value)
    assert str(error.value).endswith(f"{size}")


@backends
@pytest.mark.parametrize("dropout", [float("nan"), -0.1, 1.0, 1.5, "0.5", None])
def test_dropout_must_be_a_probability(backend, dropout):
    with pytest.raises(OptionError) as error:
        call(dropout=dropout, backend=backend)
    assert str(error.value) == f"dropout must be a probability in [0, 1): got {dropout!r}"


# ---------------------------------------------------------------------------------------------------------- autocast


@backends
@pytest.mark.parametrize("name", ["balanced, shared", "unequal"])
def test_trees_compute_in_the_type_of_their_weights_under_autocast(name, backend):
    forest = NAMED[name]
    plan, case = make_plan(forest), random_case(forest, dtype=torch.float32)

    def op(*tensors, autocast):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            return dendritic(*tensors, plan, torch.tanh, backend=backend)

    found, wanted = (run(partial(op, autocast=autocast), case) for autocast in (True, False))
    assert found["output"].dtype == torch.float32
    assert all(torch.equal(found[key], wanted[key]) for key in wanted)


@backends
def test_autocast_hands_a_layer_inputs_of_low_precision(backend):
    case = random_case(FOREST, dtype=torch.float32)
    low = case.x.bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = dendritic(low, case.weight, case.bias, PLAN, torch.tanh, backend=backend)
    torch.testing.assert_close(found, loop(low.float(), case.weight, case.bias, FOREST, torch.tanh))
    found.sum().backward()
    assert low.grad.dtype == torch.bfloat16


def test_autocast_is_as_it_was_afterwards():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        call()
        assert torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("backend", ["auto", "eager", "reference"])
def test_low_precision_weights_compute_in_low_precision(backend):
    assert call(dtype=torch.bfloat16, backend=backend).dtype == torch.bfloat16
