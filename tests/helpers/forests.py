"""What tests of tree arithmetic share: random forests, a loop that computes them edge by edge, comparison.

The loop and the walkers read nothing but the raw edge list of a forest (`in_features`, `source`, `offsets`,
`roots`), one Python step per edge, so that they can be trusted by reading them.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from hypothesis import note
from hypothesis import strategies as st
from torch import Tensor, nn

from dendritree.tree import Forest

ACTIVATIONS = {"leaky_relu": nn.LeakyReLU(0.1), "tanh": torch.tanh, "none": nn.Identity()}

# ------------------------------------------------------------------------------------------------------------ loops


def edges_of(forest, node):
    """The rows that a node reads, as plain ints."""
    return [int(row) for row in forest.source[forest.offsets[node] : forest.offsets[node + 1]]]


def loop(x, weight, bias, forest, activation, root_activation=True, synapse_scale=None):
    """The outputs of a forest, one edge after the other; `synapse_scale` is (..., synapses) in edge order."""
    rows = [x[..., i] for i in range(forest.in_features)]
    roots, edge, synapse = set(forest.roots.tolist()), 0, 0
    for node in range(len(forest.offsets) - 1):
        total = torch.zeros_like(rows[0])
        for row in edges_of(forest, node):
            value = rows[row]
            if row < forest.in_features:
                if synapse_scale is not None:
                    value = value * synapse_scale[..., synapse]
                synapse += 1
            total = total + weight[edge] * value
            edge += 1
        if bias is not None:
            total = total + bias[node]
        rows.append(activation(total) if root_activation or node not in roots else total)
    return torch.stack([rows[forest.in_features + root] for root in forest.roots.tolist()], dim=-1)


def plain_pytorch(x, weight, bias, forest, activation):
    """What one would write in plain PyTorch, a matrix product for every node: the yardstick of low precision."""
    rows = list(x.unbind(-1))
    for node in range(len(forest.offsets) - 1):
        children = torch.stack([rows[row] for row in edges_of(forest, node)], dim=-1)
        y = children @ weight[int(forest.offsets[node]) : int(forest.offsets[node + 1])]
        rows.append(activation(y if bias is None else y + bias[node]))
    return torch.stack([rows[forest.in_features + root] for root in forest.roots.tolist()], dim=-1)


def as_lists(forest):
    """Each neuron as nested lists: an int is the input a synapse reads, a list is a dendrite."""

    def walk(node):
        inputs = forest.in_features
        return [row if row < inputs else walk(row - inputs) for row in edges_of(forest, node)]

    return [walk(int(root)) for root in forest.roots]


def flat(tree):
    """The inputs that one neuron of `as_lists` reads."""
    return [i for child in tree for i in (flat(child) if isinstance(child, list) else [child])]


def longest_path(tree):
    """Edges from the farthest leaf of one neuron of `as_lists` to its root."""
    return 1 + max((longest_path(child) for child in tree if isinstance(child, list)), default=0)


def rank_in_neuron(forest):
    """For each synapse, in edge order, how many synapses of its neuron come before it."""
    neuron = {int(root): n for n, root in enumerate(forest.roots)}
    for node in reversed(range(len(forest.offsets) - 1)):  # a node after its reader
        neuron |= {row - forest.in_features: neuron[node] for row in edges_of(forest, node)}
    ranks, seen = [], [0] * len(forest.roots)
    for node in range(len(forest.offsets) - 1):
        for row in edges_of(forest, node):
            if row < forest.in_features:
                ranks.append(seen[neuron[node]])
                seen[neuron[node]] += 1
    return ranks


def share(forest):
    """All neurons read the same inputs, each its synapse k the input k."""
    ranks = rank_in_neuron(forest)
    return forest.wired(ranks, max(ranks) + 1)


NAMED = {
    "fan-in 1": Forest.grow(2, fan_in=1, ragged=True),
    "a perceptron": Forest.grow(7, depth=1),
    "balanced": Forest.grow(2, depth=3),
    "balanced, own inputs": Forest.grow(3, depth=2, neurons=3),
    "balanced, shared": share(Forest.grow(2, depth=3, neurons=3)),
    "perceptrons, shared": share(Forest.grow(7, depth=1, neurons=13)),
    "by level": Forest.grow([4, 3, 2], neurons=2),
    "ragged": Forest.grow(3, fan_in=10, ragged=True),
    "ragged, shared": share(Forest.grow(3, fan_in=10, neurons=3, ragged=True)),
    "unbalanced": Forest.nested([3, [2], [2, [4]]]),
    "unbalanced, shared": share(Forest.join([Forest.nested([1, [2], [1, [3]]])] * 3)),
    "unequal": Forest.join([Forest.nested([4]), Forest.nested([1, [[2]]]), Forest.grow(3, fan_in=7, ragged=True)]),
    "unequal, shared": share(Forest.join([Forest.grow(2, depth=2), Forest.nested([[3], [1]]), Forest.nested([4])])),
    "same inputs, other order": Forest.grow(2, depth=2, neurons=2).wired([0, 1, 2, 3, 3, 1, 0, 2], 4),
    "duplicates": Forest.join([Forest.grow(2, depth=2), Forest.nested([2, [2]])]).wired([1, 1, 0, 2, 1, 2, 2, 2], 4),
    # Depth first: dendrites 0 -> 1 -> 4 and 2 -> 3 -> 4, a neuron that stands before them all, outputs swapped.
    "any order": Forest(3, [0, 2, 1, 0, 4, 1, 2, 6, 5, 0, 7], [0, 2, 4, 5, 7, 8, 11], [5, 0]),
}
"""One forest of every kind."""

# -------------------------------------------------------------------------------------------------------- comparison


class Case(NamedTuple):
    """Numbers for one run through a forest; `cotangent` is what the gradients are taken of."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    cotangent: Tensor

    def to(self, dtype):
        return Case(*(None if t is None else t.to(dtype) for t in self))


def random_case(forest, leading=(3,), dtype=torch.float64, bias=True, seed=0):
    """Random inputs, weights of the size that keeps signals alive, biases and cotangent, all of one type."""
    generator = torch.Generator().manual_seed(seed)
    randn = partial(torch.randn, generator=generator, dtype=torch.float64)
    fan_in = torch.as_tensor(np.repeat(np.diff(forest.offsets), np.diff(forest.offsets)).astype(float))
    return Case(
        x=randn(*leading, forest.in_features),
        weight=randn(len(forest.source)) * (2 / fan_in).sqrt(),
        bias=randn(len(forest.offsets) - 1) if bias else None,
        cotangent=randn(*leading, len(forest.roots)),
    ).to(dtype)


def random_scale(forest, leading=(3,), dtype=torch.float64, p=0.4, seed=1):
    """A dropout mask: 0 or 1 / (1 - p) for every synapse of every sample."""
    synapses = int((forest.source < forest.in_features).sum())
    keep = torch.rand(*leading, synapses, generator=torch.Generator().manual_seed(seed)) >= p
    return keep.to(dtype) / (1 - p)


def run(function, case):
    """Output of `function(x, weight, bias)` and the gradients of its arguments, by name."""
    x, weight, bias = (None if t is None else t.clone().requires_grad_() for t in case[:3])
    output = function(x, weight, bias)
    output.backward(case.cotangent)
    actual = {"output": output.detach(), "gradient of x": x.grad, "gradient of weight": weight.grad}
    return actual if bias is None else {**actual, "gradient of bias": bias.grad}


def assert_same(actual, expected, *, rtol=1e-9, atol=1e-9):
    """Both runs have the same names and shapes, and numbers that are close; types may differ."""
    assert actual.keys() == expected.keys()
    for name in expected:
        assert actual[name] is not None, f"there is no {name}"
        torch.testing.assert_close(
            actual[name].double(),
            expected[name].double(),
            rtol=rtol,
            atol=atol,
            msg=lambda text, name=name: f"{name}: {text}",
        )


def assert_same_bits(actual, expected, about=""):
    """Both runs have the very same numbers."""
    for key in expected:
        assert torch.equal(actual[key], expected[key]), f"{key} differs {about}"


# -------------------------------------------------------------------------------------------------------- strategies


counts, seeds = st.integers(1, 3), st.integers(0, 2**16)


def grown_trees(most_neurons=1):
    """Balanced, ragged, and one branching per level (balanced or ragged); all neurons equal."""
    neurons = st.integers(1, most_neurons)

    @st.composite
    def balanced(draw):
        branching = draw(st.integers(2, 4))
        return Forest.grow(branching, depth=draw(st.integers(1, 3 if branching < 4 else 2)), neurons=draw(neurons))

    @st.composite
    def ragged(draw):
        branching, fan_in = draw(st.integers(2, 6)), draw(st.integers(1, 24))
        return Forest.grow(branching, fan_in=fan_in, neurons=draw(neurons), ragged=True)

    @st.composite
    def by_level(draw):
        branching = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
        full = int(np.prod(branching))
        fan_in = draw(st.just(full) | st.integers(1, full))
        return Forest.grow(branching, fan_in=fan_in, neurons=draw(neurons), ragged=True)

    return balanced() | ragged() | by_level()


nested_lists = st.recursive(
    st.lists(counts, min_size=1, max_size=3),
    lambda dendrites: st.lists(counts | dendrites, min_size=1, max_size=3),
    max_leaves=6,
)
"""Unbalanced trees in the notation of `Forest.nested`."""


@st.composite
def edge_lists(draw):
    """Any forest at all, made edge by edge: roots anywhere, levels mixed, inputs read often or never."""
    in_features, loose, source, offsets = draw(st.integers(1, 5)), [], [], [0]
    for node in range(draw(st.integers(1, 8))):
        for _ in range(draw(st.integers(1, 4))):
            if loose and draw(st.booleans()):
                source.append(in_features + loose.pop(draw(st.integers(0, len(loose) - 1))))
            else:
                source.append(draw(st.integers(0, in_features - 1)))
        offsets.append(len(source))
        loose.append(node)
    return Forest(in_features, np.array(source), np.array(offsets), np.array(draw(st.permutations(loose))))


def several(tree, neurons):
    """Equal neurons, each the nested `tree`."""
    return Forest.join([Forest.nested(tree)] * neurons)


single_trees = grown_trees() | nested_lists.map(Forest.nested) | nested_lists.map(Forest.nested)
kinds = {
    "equal": grown_trees(most_neurons=4),
    "unbalanced": nested_lists.map(Forest.nested),
    "equal and unbalanced": st.builds(several, nested_lists, counts),
    "unequal": st.lists(single_trees, min_size=2, max_size=4).map(Forest.join),
}
unwired_forests = st.sampled_from(sorted(kinds)).flatmap(kinds.get)


@st.composite
def wired_forests(draw):
    """Any kind of trees with any wiring: as grown, all neurons reading the same, shuffled, random with duplicates."""
    forest = draw(unwired_forests)
    synapses, random = int((forest.source < forest.in_features).sum()), np.random.default_rng(draw(seeds))
    kind = draw(st.sampled_from(["as grown", "shared", "shuffled", "duplicates"]))
    if kind == "shared":
        ranks = rank_in_neuron(forest)
        inputs = random.permutation(max(ranks) + draw(st.integers(1, 3)))  # also inputs that nobody reads
        forest = forest.wired(inputs[ranks] if draw(st.booleans()) else ranks, len(inputs))
    elif kind == "shuffled":
        forest = forest.wired(random.permutation(synapses), synapses)
    elif kind == "duplicates":
        in_features = draw(st.integers(1, 8))
        forest = forest.wired(random.integers(0, in_features, synapses), in_features)
    return forest


@st.composite
def forests(draw):
    """Any forest a backend must compute."""
    forest = draw(wired_forests() | edge_lists())
    note(f"Forest({forest.in_features}, {forest.source.tolist()}, {forest.offsets.tolist()}, {forest.roots.tolist()})")
    return forest


leading_shapes = st.sampled_from([(3,), (1,), (0,), (), (2, 3), (2, 0), (1, 2, 2)])
"""Batches: ordinary, one, none; no leading dimension and many."""
