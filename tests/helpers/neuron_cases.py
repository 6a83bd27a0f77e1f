"""All registered neurons, so that tests of what holds for every neuron need no list of them."""

import functools

from dendritree.neurons.families import neuron_family, neuron_names


def layer_of(name, in_features=16, out_features=3, **options):
    """A layer of registered neurons with the options of its example."""
    family = neuron_family(name)
    return family.layer(in_features, out_features, **(family.example | options))


NEURONS = {name: functools.partial(layer_of, name) for name in neuron_names()}
"""By name, a function that makes a layer of 16 inputs and 3 neurons, or of other sizes."""
