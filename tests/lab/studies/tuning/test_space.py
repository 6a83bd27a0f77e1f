"""What the search may choose: every choice is a model within its share of the budget, and as wide as that allows."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dendritree import create_model
from dendritree.models.presets import preset_options
from dendritree_lab.studies.tuning import Space
from dendritree_lab.studies.tuning.space import NETWORK, PARAMETERS


class Chooser:
    """Stands for an Optuna trial: chooses by hypothesis, and remembers the names."""

    def __init__(self, draw):
        self.draw, self.names = draw, []

    def suggest_categorical(self, name, choices):
        self.names.append(name)
        return self.draw(st.sampled_from(choices))

    def suggest_int(self, name, low, high, log=False):
        self.names.append(name)
        assert 1 <= low <= high
        return self.draw(st.integers(low, high))

    def suggest_float(self, name, low, high, log=False, step=None):
        self.names.append(name)
        return self.draw(st.floats(low, high))


shapes = st.none() | st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9))


@given(st.data(), shapes, st.integers(1, 12), st.integers(1, 5), st.integers(30, 1500))
def test_every_choice_fills_its_share_of_the_budget(data, shape, inputs, outputs, budget):
    inputs = inputs if shape is None else shape[0] * shape[1] * shape[2]
    space = Space(inputs, outputs, budget, shape)
    chooser = Chooser(data.draw)
    chosen = space.suggest(chooser)
    assert chooser.names == list(chosen)
    tied = shape is not None and min(shape[1:]) >= 6
    absent = ({"window"} if shape is None else set()) | (set() if tied else {"copies", "stride", "shared_by"})
    assert set(chosen) == set(PARAMETERS) - absent
    configuration = space.configuration(chosen)

    def parameters(hidden):
        options = {key: value for key, value in configuration.arguments.items() if key != "hidden"}
        return sum(p.numel() for p in create_model(NETWORK, **options, hidden=[hidden]).parameters())

    if configuration is None:
        return
    (hidden,) = configuration.arguments["hidden"]
    assert parameters(hidden) <= chosen["share"] * budget < parameters(hidden + 1)
    model = create_model(NETWORK, **configuration.arguments)
    assert model(torch.randn(2, inputs)).shape == (2, outputs)
    assert model.hidden[0].depth == chosen["depth"] + (chosen["wiring"] == "tied")


SPACES = [
    Space(64, 10, 2000),
    Space(64, 10, 2000, (1, 8, 8)),
    Space(784, 10, 2000, (1, 28, 28)),
    Space(3072, 10, 9000, (3, 32, 32)),
    Space(1568, 100, 9000, (1, 28, 56)),
    Space(2, 1, 200),
]


@pytest.mark.parametrize("space", SPACES)
def test_the_choice_tried_first_is_in_the_space(space):
    default = space.default()

    class Follower:
        def suggest_categorical(self, name, choices):
            assert default[name] in choices
            return default[name]

        def suggest_int(self, name, low, high, log=False):
            assert low <= default[name] <= high
            return default[name]

        def suggest_float(self, name, low, high, log=False, step=None):
            return self.suggest_int(name, low, high)

    assert space.suggest(Follower()) == default
    assert space.configuration(default) is not None


def test_the_choice_tried_first_is_the_preset():
    for outputs, shape in ((10, (1, 28, 28)), (10, (3, 32, 32)), (100, (1, 28, 56))):
        inputs = shape[0] * shape[1] * shape[2]
        configuration = Space(inputs, outputs, 9000, shape).configuration(Space(inputs, outputs, 9000, shape).default())
        preset = preset_options(inputs, outputs, budget=9000, image_shape=shape)
        assert configuration.arguments == preset | {"output": "logits"}
