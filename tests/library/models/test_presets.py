"""Presets: the architecture for a size and a budget."""

import functools
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dendritree import FitConfig, create_model, fit, load, save
from dendritree.errors import DendritreeError, OptionError, ShapeError
from dendritree.models import ConvNetwork, DendriticNetwork, cnn_preset, dendritic_preset, single_layer_preset
from dendritree.models.conv_network import STAGES
from dendritree.models.registry import model_origin
from dendritree.training.examples import Examples, Split


def parameters(model):
    return sum(p.numel() for p in model.parameters())


IMAGES = [None, (1, 28, 28), (3, 8, 8), (3, 14, 20), (1, 28, 56), (2, 3, 5), (1, 1, 1)]


@given(
    image=st.sampled_from(IMAGES),
    inputs=st.integers(1, 300),
    outputs=st.sampled_from([1, 2, 10, 49, 50, 100]),
    budget=st.integers(3000, 40_000),
    neurons=st.sampled_from(["tree", "sparse"]),
)
def test_a_single_layer_fills_its_budget_and_never_exceeds_it(image, inputs, outputs, budget, neurons):
    inputs = inputs if image is None else image[0] * image[1] * image[2]
    net = single_layer_preset(inputs, outputs, budget=budget, image_shape=image, neurons=neurons)
    assert parameters(net) <= budget
    arguments = dict(model_origin(net)[1])
    arguments["hidden"] = [arguments["hidden"][0] + 1]
    assert parameters(create_model("dendritic-network", **arguments)) > budget
    assert net(torch.randn(3, inputs)).shape == (3, outputs)
    layer = net.hidden[0]
    if neurons == "sparse":
        assert layer.depth == 1
    elif neurons == "tree" and inputs > 1:
        assert layer.depth >= 2


SIDES = st.integers(8, 96)


@given(
    st.tuples(st.integers(1, 4), SIDES, SIDES) | st.tuples(st.integers(1, 4), st.just(1), SIDES),
    st.sampled_from([1, 2, 10]),
    st.integers(500, 500_000),
    st.sampled_from(STAGES),
)
def test_a_stack_fills_its_budget_and_never_exceeds_it(image, outputs, budget, stage):
    build = dendritic_preset if stage == "dendritic" else functools.partial(cnn_preset, stage=stage)
    net = build(out_features=outputs, image_shape=image, budget=budget, device="meta")
    assert isinstance(net, ConvNetwork)
    assert 0.95 * budget <= parameters(net) <= budget
    assert net(torch.zeros(2, *image, device="meta")).shape == (2, outputs)


def test_many_outputs_take_at_most_half_of_the_parameters():
    net = dendritic_preset(out_features=100, image_shape=(1, 28, 56), budget="9k")
    assert parameters(net.readout) <= parameters(net) / 2


def test_a_table_has_one_hidden_layer():
    assert isinstance(dendritic_preset(20, 3, budget=800), DendriticNetwork)


def test_a_preset_by_name_is_a_network_that_can_be_saved_whatever_becomes_of_presets(tmp_path):
    net = create_model("dendritic", image_shape=(1, 28, 28), budget=8000)
    assert isinstance(net, ConvNetwork)
    assert parameters(net) <= 8000
    name, arguments = model_origin(net)
    assert name == "conv-network"
    assert "budget" not in arguments
    save(net.eval(), tmp_path / "net")
    x = torch.randn(4, 784)
    assert torch.equal(load(tmp_path / "net")(x), net(x))


@pytest.mark.parametrize(
    ("image", "outputs", "tied", "shared_by"),
    [
        ((3, 32, 32), 10, [27, 25], 16),
        ((1, 28, 28), 10, [16, 25], 25),
        ((3, 11, 11), 1, [16, 25], 16),
        ((3, 10, 40), 10, None, None),
        ((3, 32, 32), 100, [27, 25], 1),
        ((1, 11, 11), 100, None, None),
    ],
)
def test_weights_are_shared_in_images_with_room_for_the_copies(image, outputs, tied, shared_by):
    inputs = image[0] * image[1] * image[2]
    layer = single_layer_preset(inputs, outputs, budget="9k", image_shape=image).hidden[0]
    assert (layer.forest.template is not None) == (tied is not None)
    assert tied in (None, list(layer.branching))
    assert getattr(layer.wiring, "shared_by", None) == shared_by
    sparse = dendritic_preset(inputs, outputs, budget="9k", image_shape=image, neurons="sparse").hidden[0]
    assert sparse.forest.template is None


def test_the_least_budget_that_is_told_is_enough():
    with pytest.raises(OptionError) as refused:
        dendritic_preset(64, 10, budget=1)
    least = int(str(refused.value).split("at least ")[1].split(" ")[0].replace(",", ""))
    assert parameters(dendritic_preset(64, 10, budget=least)) == least
    with pytest.raises(OptionError):
        dendritic_preset(64, 10, budget=least - 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget"),
        ({"neurons": "dense"}, "'tree', 'sparse'"),
        ({"in_features": 0}, "in_features"),
        ({"image_shape": (1, 5, 5)}, "25 pixels"),
    ],
)
def test_invalid_options_are_rejected(options, message):
    with pytest.raises(DendritreeError, match=message):
        dendritic_preset(**{"in_features": 16, "out_features": 3, "budget": "1k", **options})


# ----------------------------------------------------------------------------------------------------- forgotten shapes


@pytest.mark.parametrize("name", ["dendritic", "dendritic-single"])
@pytest.mark.parametrize(("inputs", "shape"), [(784, "(1, 28, 28)"), (1024, "(1, 32, 32)"), (3072, "(3, 32, 32)")])
def test_as_many_inputs_as_an_image_has_pixels_are_asked_about(name, inputs, shape):
    with pytest.warns(UserWarning, match=re.escape(f"pass image_shape={shape}")) as seen:
        create_model(name, in_features=inputs, budget=2000)
    assert [Path(warning.filename).name for warning in seen] == ["test_presets.py"]


@pytest.mark.parametrize("inputs", [16, 64, 100, 768, 783, 785])
def test_other_numbers_are_those_of_a_table(inputs):
    create_model("dendritic", in_features=inputs, budget=2000)  # a warning would be an error


@pytest.mark.parametrize("name", ["dendritic", "dendritic-single", "cnn"])
@pytest.mark.parametrize("shape", [(12, 12), (1, 12, 12), (3, 12, 12)])
def test_a_model_knows_the_shape_of_its_images(name, shape):
    images, labels = (np.random.default_rng(0).random((40, *shape)) * 255).astype(np.uint8), np.arange(40) % 4
    net = create_model(name, (images, labels), budget=900)
    fit(net, (images, labels), FitConfig(epochs=1, shifts=1))
    x = torch.from_numpy(images).float() / 255
    net.eval()
    assert net(x).shape == (40, 4)
    assert torch.equal(net(x), net(x.flatten(1)))


def test_sizes_come_from_data_unless_they_are_given():
    table = torch.randn(30, 7), torch.randn(30, 2)
    assert create_model("dendritic", table, budget=300)(table[0]).shape == (30, 2)
    split = Split(*[Examples(torch.randn(30, 7), torch.arange(30) % 3)] * 3)
    assert create_model("mlp", split, hidden=4, out_features=5)(table[0]).shape == (30, 5)
    with pytest.raises(ShapeError, match="channels first"):
        create_model("cnn", (np.zeros((9, 32, 32, 3)), np.arange(9)), budget=900)
    with pytest.raises(OptionError, match="data must be a pair"):
        create_model("cnn", [1, 2, 3], budget=900)


def test_the_shape_of_an_image_determines_the_inputs_of_one_layer():
    net = create_model("dendritic-single", image_shape=(1, 12, 12), budget=900)
    assert net(torch.zeros(2, 144)).shape == (2, 10)
    with pytest.raises(OptionError, match="needs in_features or image_shape"):
        create_model("dendritic-single", budget=900)
