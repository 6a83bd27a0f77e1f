"""The reference: the paper's masks and matrices by hand, and the same numbers as a plain loop over the edges."""

import pytest
import torch
from forests import (
    ACTIVATIONS,
    NAMED,
    assert_same,
    forests,
    leading_shapes,
    loop,
    random_case,
    random_scale,
    run,
    seeds,
)
from hypothesis import given
from hypothesis import strategies as st

from dendritree.ops import reference
from dendritree.tree import Forest


def dense(forest, weight, bias=None):
    """Masks, masked weights and biases of `masked_levels`, as lists."""
    levels = reference.masked_levels(weight, bias, forest)
    return [(level.mask.tolist(), (level.weight * level.mask).tolist()) for level in levels]


# ------------------------------------------------------------------------------------------------- masks and weights


def test_the_papers_masks_of_two_neurons_of_four_inputs():
    forest = Forest.grow(2, fan_in=4, neurons=2)
    (mask_1, weight_1), (mask_2, weight_2) = dense(forest, torch.arange(1.0, 13.0))
    assert mask_1 == [
        [1, 1, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, 0, 0],
        [0, 0, 0, 0, 0, 0, 1, 1],
    ]
    assert weight_1 == [
        [1, 2, 0, 0, 0, 0, 0, 0],
        [0, 0, 3, 4, 0, 0, 0, 0],
        [0, 0, 0, 0, 5, 6, 0, 0],
        [0, 0, 0, 0, 0, 0, 7, 8],
    ]
    assert mask_2 == [[1, 1, 0, 0], [0, 0, 1, 1]]
    assert weight_2 == [[9, 10, 0, 0], [0, 0, 11, 12]]


def test_shared_inputs_have_one_column_per_synapse_as_in_the_papers_repeated_input():
    (mask, weight), *_ = dense(NAMED["balanced, shared"], torch.ones(NAMED["balanced, shared"].edges))
    assert (len(mask), len(mask[0])) == (12, 24)
    assert mask == weight == [[float(column // 2 == row) for column in range(24)] for row in range(12)]


def test_rows_that_a_later_level_reads_are_carried():
    forest = Forest.nested([1, [2]])  # the root reads a synapse of its own, then a dendrite of two
    first, second = reference.masked_levels(torch.ones(4), None, forest)
    assert sum(first.mask.flatten().tolist()) == 2
    assert first.mask.shape == (1, 3)
    assert len(first.carried) == 1
    assert first.mask[0, first.carried].item() == 0  # what is carried has not been read
    assert second.mask.tolist() == [[1, 1]]
    assert len(second.carried) == 0


@given(forests())
def test_the_matrices_hold_every_edge_once_and_are_as_large_as_the_count_says(forest):
    levels = reference.masked_levels(torch.arange(1.0, forest.edges + 1), torch.arange(float(forest.nodes)), forest)
    assert sum(level.weight.numel() for level in levels) == forest.masked_weights
    assert sum(level.mask.sum().item() for level in levels) == forest.edges
    held = torch.cat([level.weight[level.mask.bool()] for level in levels])
    assert sorted(held.tolist()) == list(range(1, forest.edges + 1))
    assert torch.cat([level.bias for level in levels]).tolist() == list(range(forest.nodes))
    assert {value for level in levels for value in level.mask.flatten().tolist()} <= {0.0, 1.0}


# --------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("root_activation", "bias", "output"),
    [
        # dendrites: 1*1 + 2*2 + 10 = 15 and 3*(-1) + 4*(-2) + 1 = -10 -> -1.0; root: 5*15 - 6*1 ... and so on
        (True, [10.0, 1.0, -100.0], [-3.1]),
        (False, [10.0, 1.0, -100.0], [-31.0]),
        (True, None, [18.4]),
    ],
)
def test_one_neuron_by_hand(root_activation, bias, output):
    x, weight = torch.tensor([1.0, 2.0, -1.0, -2.0]), torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    bias = None if bias is None else torch.tensor(bias)
    forest, activation = Forest.grow(2, fan_in=4), ACTIVATIONS["leaky_relu"]
    actual = reference.dendritic(x, weight, bias, forest, activation, root_activation)
    torch.testing.assert_close(actual, torch.tensor(output))


@pytest.mark.parametrize(("branching", "depth", "neurons"), [(2, 3, 1), (3, 2, 4), (5, 1, 3), (2, 1, 1)])
def test_balanced_trees_are_a_stack_of_block_diagonal_matrices(branching, depth, neurons):
    forest = Forest.grow(branching, depth=depth, neurons=neurons)
    case = random_case(forest, (6,))
    z, edge, node = case.x, 0, 0
    for level in range(depth):  # W_i * M_i of the paper: row r holds the weights of node r in columns r*b ... r*b+b-1
        rows = neurons * branching ** (depth - 1 - level)
        blocks = case.weight[edge : edge + rows * branching].reshape(rows, 1, branching)
        z = torch.tanh(z @ torch.block_diag(*blocks).T + case.bias[node : node + rows])
        edge, node = edge + rows * branching, node + rows
    actual = reference.dendritic(case.x, case.weight, case.bias, forest, torch.tanh)
    torch.testing.assert_close(actual, z)


@given(
    forest=forests(),
    leading=leading_shapes,
    activation=st.sampled_from(sorted(ACTIVATIONS)),
    root_activation=st.booleans(),
    bias=st.booleans(),
    dropped=st.booleans(),
    seed=seeds,
)
def test_outputs_and_gradients_are_those_of_a_loop_over_the_edges(
    forest, leading, activation, root_activation, bias, dropped, seed
):
    case = random_case(forest, leading, bias=bias, seed=seed)
    options = forest, ACTIVATIONS[activation], root_activation, random_scale(forest, leading) if dropped else None
    actual = run(lambda *tensors: reference.dendritic(*tensors, *options), case)
    assert actual["output"].shape == (*leading, forest.neurons)
    assert_same(actual, run(lambda *tensors: loop(*tensors, *options), case))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_type_is_kept(dtype):
    forest = NAMED["unequal"]
    actual = run(lambda *tensors: reference.dendritic(*tensors, forest, torch.tanh), random_case(forest, dtype=dtype))
    assert {tensor.dtype for tensor in actual.values()} == {dtype}


@pytest.mark.parametrize("name", ["ragged, shared", "unequal", "any order"])
def test_gradcheck(name):
    forest = NAMED[name]
    tensors = [t.requires_grad_() for t in random_case(forest, (2,))[:3]]
    assert torch.autograd.gradcheck(lambda *t: reference.dendritic(*t, forest, torch.tanh), tensors)
