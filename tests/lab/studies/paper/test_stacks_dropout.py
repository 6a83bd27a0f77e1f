"""Dropout in a stack: every trial, image and synapse has its own, and the stack does what its mask says."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dendritree.models import create_model
from dendritree.ops import eager
from dendritree.ops.dropout import draw_seed, synapse_pairs, synapse_scale
from dendritree_lab.studies.paper.stacks import stack_models


def tree_models(trials, branching, depth, outputs, dropout):
    torch.manual_seed(trials + branching)
    options = {"in_features": branching**depth, "branching": branching, "dropout": dropout, "output": "logits"}
    return [create_model("mln", out_features=outputs, **options) for _ in range(trials)]


@given(
    trials=st.integers(1, 4),
    branching=st.integers(2, 5),
    depth=st.integers(1, 3),
    outputs=st.integers(1, 3),
    images=st.integers(1, 20),
    dropout=st.sampled_from([0.1, 0.3, 0.5, 0.6]),
    seed=st.integers(0, 1000),
)
def test_each_tree_drops_what_its_part_of_the_stack_s_mask_says(
    trials, branching, depth, outputs, images, dropout, seed
):
    models = tree_models(trials, branching, depth, outputs, dropout)
    stack = stack_models(models).train()
    x = torch.randn(trials, branching**depth, images)
    torch.manual_seed(seed)
    out = stack(stack.prepare(x))
    torch.manual_seed(seed)
    forest = stack.layer.forest
    pairs = synapse_pairs(forest, torch.device("cpu"))
    mask = synapse_scale(draw_seed(torch.device("cpu")), images, pairs, dropout, torch.float32)  # (images, synapses)
    for trial, model in enumerate(models):
        layer = model.layer
        # A synapse of the stack is known by its neuron and the input that it reads; each reads all of its slice once.
        neuron = forest.neuron_of_synapse - trial * outputs
        reads = forest.source[forest.synapse_edges] - trial * layer.in_features
        ours = {(int(n), int(r)): k for k, (n, r) in enumerate(zip(neuron, reads, strict=True)) if 0 <= n < outputs}
        theirs = zip(layer.forest.neuron_of_synapse, layer.forest.source[layer.forest.synapse_edges], strict=True)
        part = mask[:, [ours[int(n), int(r)] for n, r in theirs]]
        expected = eager.dendritic(
            x[trial].t(),
            layer.weight,
            layer.bias,
            eager.make_layout(layer.forest),
            layer.activation,
            layer.root_activation,
            part,
        )
        torch.testing.assert_close(out[trial].t(), expected, rtol=1e-4, atol=1e-4)


# -------------------------------------------------------------------------------------------------------------- dense


def dense_stack(trials, features, dropout, name="perceptrons", seed=7, **config):
    torch.manual_seed(0)
    model = create_model(name, in_features=features, out_features=1, dropout=dropout, output="logits", **config)
    stack = stack_models([model] * trials).train()
    stack.seed_dropout(seed)
    return stack


def masks(stack, images, features):
    """What a perceptron drops, (trials, features, images): the gradient of its output by its input, over its weight."""
    x = torch.randn(len(stack.state_of(0)) and len(stack.weights[0]), features, images, requires_grad=True)
    stack(stack.prepare(x)).sum().backward()
    return x.grad / stack.weights[0].detach()[:, 0, :, None]


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.6])
def test_kept_inputs_are_scaled_and_their_share_is_right(dropout):
    scale = masks(dense_stack(4, 256, dropout), 128, 256)
    kept = scale != 0
    torch.testing.assert_close(scale[kept], torch.full_like(scale[kept], 1 / (1 - dropout)), rtol=1e-4, atol=0)
    sd = (dropout * (1 - dropout) / kept[0].numel()) ** 0.5
    for trial in kept:
        assert abs(trial.double().mean() - (1 - dropout)) < 5 * sd
    by_input = kept.double().mean(2).flatten()  # no input is special
    assert (by_input - (1 - dropout)).abs().max() < 6 * (dropout * (1 - dropout) / 128) ** 0.5


def test_trials_images_and_steps_have_masks_of_their_own():
    stack = dense_stack(4, 256, 0.5)
    kept = [masks(stack, 128, 256) != 0 for _ in range(3)]
    flat = torch.stack([trial.double().flatten() for step in kept for trial in step])
    correlation = np.corrcoef(flat.numpy()) - np.eye(len(flat))
    assert abs(correlation).max() < 5 / flat.shape[1] ** 0.5
    images = np.corrcoef(kept[0][0].double().t().numpy()) - np.eye(128)
    assert abs(images).max() < 6 / 256**0.5


def test_nothing_is_dropped_in_evaluation_or_without_dropout():
    stack = dense_stack(2, 64, 0.5).eval()
    torch.testing.assert_close(masks(stack, 8, 64), torch.ones(2, 64, 8))
    torch.testing.assert_close(masks(dense_stack(2, 64, 0.0), 8, 64), torch.ones(2, 64, 8))
