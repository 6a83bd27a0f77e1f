"""A stack of models is its models: outputs, states, and parameters after a step, each against the model alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from dendritree.models import create_model
from dendritree_lab.studies.paper.stacks import stack_models

SHAPES = {
    "b=2": ("mln", {"in_features": 64, "out_features": 10, "branching": 2}),
    "b=4": ("mln", {"in_features": 256, "out_features": 10, "branching": 4}),
    "b=32": ("mln", {"in_features": 1024, "out_features": 10, "branching": 32}),
    "one tree, b=2": ("mln-binary", {"in_features": 1024, "branching": 2}),
    "one tree, b=4": ("mln-binary", {"in_features": 64, "branching": 4}),
    "one tree, b=32": ("mln-binary", {"in_features": 1024, "branching": 32}),
    "h=11": ("mlp", {"in_features": 1024, "out_features": 10, "hidden": 11}),
    "h=1, one output": ("mlp", {"in_features": 9, "out_features": 1, "hidden": 1}),
    "perceptrons": ("perceptrons", {"in_features": 100, "out_features": 10}),
    "one perceptron": ("perceptrons", {"in_features": 1024, "out_features": 1}),
}


def make_models(name, config, trials, seed=0, **options):
    """Models with biases that are not all zero, so that a bias in the wrong place shows."""
    torch.manual_seed(seed)
    models = [create_model(name, **config, output="logits", **options) for _ in range(trials)]
    for model in models:
        for parameter in model.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
    return models


def alone(models, x):
    """(trials, outputs, images) from each model by itself, which takes (images, features)."""
    return torch.stack([model(images.t()).t() for model, images in zip(models, x, strict=True)])


def parameters_of(state):
    return {name: value for name, value in state.items() if "forest_" not in name}


def step(parameters, loss):
    optimizer = torch.optim.Adam(parameters, lr=0.05)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def some_loss(out, y):
    """Cross-entropy after a softmax, or binary cross-entropy; (outputs, images) and (images,)."""
    if len(out) == 1:
        return F.binary_cross_entropy(out[0].sigmoid(), y.remainder(2).to(out.dtype))
    return F.cross_entropy(out.t().softmax(-1), y)


def assert_a_stack_is_its_models(models, features, images, seed):
    torch.manual_seed(seed)
    x = torch.randn(len(models), features, images)
    stack = stack_models(models)
    out = stack(stack.prepare(x))
    expected = alone(models, x)
    assert out.shape == expected.shape
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    y = torch.randint(expected.shape[1], (len(models), images))
    step(stack.parameters(), sum(some_loss(o, t) for o, t in zip(out, y, strict=True)))
    for trial, model in enumerate(models):
        step(model.parameters(), some_loss(alone([model], x[trial : trial + 1])[0], y[trial]))
        state = stack.state_of(trial)
        for name, value in model.named_parameters():
            # Adam's first step is lr * sign of the gradient: where that is rounding noise, its sign is free.
            certain = value.grad.abs() > 1e-6
            torch.testing.assert_close(state[name][certain], value.data[certain], rtol=0, atol=1e-5)
            torch.testing.assert_close(state[name], value.data, rtol=0, atol=0.11)


# ------------------------------------------------------------------------------------------------------ without dropout


@pytest.mark.parametrize("trials", [1, 5])
@pytest.mark.parametrize("shape", SHAPES)
def test_outputs_and_a_step_are_those_of_the_models_alone(shape, trials):
    name, config = SHAPES[shape]
    assert_a_stack_is_its_models(make_models(name, config, trials), config["in_features"], images=32, seed=1)


trees = st.builds(
    lambda branching, depth: ("mln", {"in_features": branching**depth, "branching": branching}),
    st.integers(2, 5),
    st.integers(1, 4),
)
mlps = st.builds(lambda n, hidden: ("mlp", {"in_features": n, "hidden": hidden}), st.integers(1, 40), st.integers(1, 6))
perceptrons = st.builds(lambda n: ("perceptrons", {"in_features": n}), st.integers(1, 40))


@given(trees | mlps | perceptrons, st.integers(1, 4), st.integers(1, 4), st.integers(1, 40), st.integers(0, 100))
def test_any_models_stack(model, outputs, trials, images, seed):
    name, config = model
    models = make_models(name, config | {"out_features": outputs}, trials, seed)
    assert_a_stack_is_its_models(models, config["in_features"], images, seed)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_state_of_a_trial_is_that_of_its_model_and_a_copy(shape):
    name, config = SHAPES[shape]
    models = make_models(name, config, 3)
    stack = stack_models(models)
    for trial, model in enumerate(models):
        state = stack.state_of(trial)
        expected = parameters_of(model.state_dict())
        assert set(state) == set(expected)
        assert all(torch.equal(state[key], expected[key]) for key in expected)
    before = {key: value.clone() for key, value in state.items()}
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.zero_()
    assert all(torch.equal(state[key], before[key]) for key in before)


# ------------------------------------------------------------------------------------------------------------ the CNN


@pytest.mark.parametrize(
    ("name", "config"),
    [("conv-mln", {"branching": 4}), ("conv-mlp", {"hidden": 11}), ("conv-perceptrons", {})],
)
@pytest.mark.parametrize("training", [True, False])
def test_a_cnn_alone_in_its_stack_is_the_model(name, config, training):
    (model,) = make_models(name, config, 1)
    (twin,) = make_models(name, config, 1)
    assert all(map(torch.equal, model.state_dict().values(), twin.state_dict().values()))
    torch.manual_seed(2)
    x, y = torch.randn(1, 1024, 16), torch.randint(10, (16,))
    stack = stack_models([model]).train(training)
    twin.train(training)
    out, expected = stack(stack.prepare(x)), twin(x[0].t().reshape(16, 1, 32, 32)).t()[None]
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)
    step(stack.parameters(), some_loss(out[0], y))
    step(twin.parameters(), some_loss(expected[0], y))
    state = stack.state_of(0)
    assert set(state) == set(twin.state_dict())
    gradients = {key: value.grad for key, value in twin.named_parameters()}
    for key, value in twin.state_dict().items():
        # Where batch norm follows, the gradient of a bias is rounding noise, and Adam follows the sign of noise.
        certain = gradients[key].abs() > 1e-5 if key in gradients else torch.ones_like(value, dtype=torch.bool)
        torch.testing.assert_close(state[key][certain], value[certain], rtol=1e-4, atol=1e-5)
