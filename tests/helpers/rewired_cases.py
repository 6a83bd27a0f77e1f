"""Layers that can be rewired, and what a layer reads, told by walking its trees edge by edge."""

import torch

from dendritree import DendriticLayer
from dendritree.wiring import Custom, Local, Random

LAYERS = {
    "random": {"in_features": 60, "out_features": 5, "branching": 3, "fan_in": 9, "wiring": Random(seed=1)},
    "drawn anew": {"in_features": 60, "out_features": 4, "branching": "auto", "fan_in": 10, "wiring": "random"},
    "one synapse": {"in_features": 9, "out_features": 3, "branching": 2, "fan_in": 1, "wiring": "random"},
    "few inputs": {"in_features": 6, "out_features": 4, "branching": [5, 2], "fan_in": 10, "wiring": "random"},
    "local": {"in_features": 64, "out_features": 5, "branching": [4, 3], "wiring": Local(window=4)},
    "local by neuron": {
        "in_features": 64,
        "out_features": 4,
        "branching": 4,
        "fan_in": 9,
        "wiring": Local(4, "neuron"),
    },
    "custom": {"in_features": 8, "out_features": 2, "branching": 2, "wiring": Custom([[0, 1, 2, 3], [4, 5, 6, 7]])},
    "nested": {"in_features": 40, "out_features": 3, "branching": [3, [2], [2, [4]]], "wiring": "random"},
    "k-tree": {"in_features": 40, "out_features": 3, "branching": 2, "fan_in": 7, "wiring": "random", "repeats": 3},
    "no bias": {"in_features": 30, "out_features": 3, "branching": 2, "fan_in": 8, "wiring": "random", "bias": False},
}


def make_layer(name, seed=0, **more):
    torch.manual_seed(seed)
    return DendriticLayer(**{**LAYERS[name], **more})


def synapses(layer):
    """(neuron, dendrite, edge, input) of every synapse, found by going down from each root."""
    forest = layer.forest
    source, offsets = forest.source.tolist(), forest.offsets.tolist()
    actual = []
    for neuron, root in enumerate(forest.roots.tolist()):
        pending = [root]
        while pending:
            node = pending.pop()
            for edge in range(offsets[node], offsets[node + 1]):
                if source[edge] < forest.in_features:
                    actual.append((neuron, node, edge, source[edge]))
                else:
                    pending.append(source[edge] - forest.in_features)
    return sorted(actual)


def inputs_by(layer, place):
    """The inputs of each neuron (place 0) or dendrite (place 1)."""
    groups = {}
    for synapse in synapses(layer):
        groups.setdefault(synapse[place], []).append(synapse[3])
    return groups
