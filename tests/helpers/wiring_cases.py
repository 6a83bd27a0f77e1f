"""What tests of wirings share: a forest seen dendrite by dendrite, and random layers of every kind.

The walkers read nothing but the raw edge list of a forest, one Python step per edge.
"""

from hypothesis import strategies as st

from dendritree.wiring import Custom, Local, Morton, Partition, Random, Shared, Strided

# ------------------------------------------------------------------------------------------------------------ walkers


def neurons_of_nodes(forest):
    """The neuron of every node, in node order."""
    neuron = {int(root): n for n, root in enumerate(forest.roots)}
    for node in reversed(range(len(forest.offsets) - 1)):  # a node after its reader
        for row in forest.source[forest.offsets[node] : forest.offsets[node + 1]].tolist():
            if row >= forest.in_features:
                neuron[row - forest.in_features] = neuron[node]
    return [neuron[node] for node in range(len(forest.offsets) - 1)]


def by_dendrite(forest):
    """For each neuron, for each of its dendrites with synapses, the inputs they read."""
    actual = [[] for _ in forest.roots]
    for node, neuron in enumerate(neurons_of_nodes(forest)):
        rows = forest.source[forest.offsets[node] : forest.offsets[node + 1]].tolist()
        inputs = [row for row in rows if row < forest.in_features]
        if inputs:
            actual[neuron].append(inputs)
    return actual


def by_neuron(forest):
    """For each neuron, the inputs its synapses read."""
    return [[i for dendrite in dendrites for i in dendrite] for dendrites in by_dendrite(forest)]


def depth_first(forest, node):
    """Nodes and edges of the tree under a node, in an order that depends on nothing but the tree's shape."""
    nodes, edges = [node], []
    for edge in range(int(forest.offsets[node]), int(forest.offsets[node + 1])):
        edges.append(edge)
        if forest.source[edge] >= forest.in_features:
            below = depth_first(forest, int(forest.source[edge]) - forest.in_features)
            nodes, edges = nodes + below[0], edges + below[1]
    return nodes, edges


# --------------------------------------------------------------------------------------------------------- strategies


def image_shapes(side=5):
    return st.tuples(st.integers(1, 3), st.integers(1, side), st.integers(1, side))


seeds = st.integers(0, 2**32)


@st.composite
def nested_of(draw, synapses):
    """Nested children with this many synapses in all, with at least one dendrite below the root."""

    def split(count, levels):
        children = []
        while count:
            part = draw(st.integers(1, count))
            inner = levels > 0 and draw(st.booleans())
            children.append(split(part, levels - 1) if inner else part)
            count -= part
        return children

    tree = split(synapses, 2)
    return tree if any(isinstance(child, list) for child in tree) else [tree]


def local_wirings(image_shape):
    return st.builds(
        Local,
        window=st.integers(1, 6),
        per=st.sampled_from(["dendrite", "neuron"]),
        place=st.sampled_from(["near", "free"]),
        image_shape=st.just(image_shape),
        seed=st.none() | seeds,
    )


def free_wirings(image_shape):
    """Wirings that take any number of synapses."""
    return st.builds(Random, seed=st.none() | seeds) | st.just(Strided()) | local_wirings(image_shape)


def fixed_wirings(image_shape):
    """Wirings by which a neuron reads every input once."""
    return st.sampled_from([Shared(), Morton(image_shape)])


@st.composite
def branchings(draw, fan_in):
    """A branching of any kind that takes this fan-in, ragged or not."""
    kind = draw(st.sampled_from(["int", "levels", "auto", "nested"]))
    if kind == "int":
        return draw(st.integers(2, 6))
    if kind == "levels":
        leaf = draw(st.integers(2, 6))
        above = max(2, -(-fan_in // leaf))
        return [leaf, above] if draw(st.booleans()) else [leaf, 2, max(2, -(-above // 2))]
    return "auto" if kind == "auto" else draw(nested_of(fan_in))


@st.composite
def layer_options(draw, side=5, most_neurons=3):
    """Keyword arguments of a `DendriticLayer`: any sizes, trees, wirings and repeats that go together."""
    image_shape, neurons = draw(image_shapes(side)), draw(st.integers(1, most_neurons))
    inputs = image_shape[0] * image_shape[1] * image_shape[2]
    repeats = draw(st.sampled_from([None, None, 1, 2, 3]))
    kind = draw(st.sampled_from(["free", "fixed", "partition", "custom"]))
    if kind == "fixed":
        wiring, fan_in, given = fixed_wirings(image_shape), inputs, {"ragged": True}
    elif kind == "partition":
        fan_in, wiring, given = min(inputs, 20), st.just(Partition()), {"ragged": True}
        inputs = fan_in * neurons
    else:
        fan_in = draw(st.integers(1, min(2 * inputs, 24)))
        given, wiring = {"fan_in": fan_in}, free_wirings(image_shape)
        if kind == "custom":
            synapses = neurons * fan_in
            wiring = st.lists(st.integers(0, inputs - 1), min_size=synapses, max_size=synapses).map(Custom)
    return {
        "in_features": inputs,
        "out_features": neurons,
        "branching": draw(branchings(fan_in)),
        "wiring": draw(wiring),
        "repeats": repeats,
        "bias": draw(st.booleans()),
        **given,
    }
