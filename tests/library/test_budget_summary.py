"""A model's layers as a table: what it lists, what it adds up, how it looks."""

import pytest
import torch
from torch import nn

from dendritree import ConvMLN, DendriticLayer, count, create_model
from dendritree.budget import summary
from dendritree.errors import OptionError
from dendritree.models import DANNClassifier, DendriticNetwork, list_models
from dendritree.models.registry import model_entry
from dendritree.neurons import DNM, KTree


def small():
    return nn.Sequential(
        DendriticLayer(16, 8, branching=[4, 2], wiring="random"), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 3)
    )


def test_a_line_per_layer_and_the_sums():
    table = str(summary(small()))
    assert table.splitlines() == [
        "name   layer                  trees                        wiring  parameters  if dense  mult-adds  if dense",
        "-----  ---------------------  ---------------------------  ------  ----------  --------  ---------  --------",
        "0      DendriticLayer(16, 8)  8 synapses, 2 + 1 dendrites  random         104       136         80       128",
        "2      BatchNorm1d                                                         16        16          0         0",
        "3      Linear(8, 3)                                                        27        27         24        24",
        "-----  ---------------------  ---------------------------  ------  ----------  --------  ---------  --------",
        "total                                                                     147       179        104       152",
    ]
    assert repr(summary(small())) == table  # a prompt shows it too


@pytest.mark.parametrize("name", list_models())
def test_every_parameter_and_multiply_add_of_a_model_is_in_one_line(name):
    model = create_model(name, **model_entry(name).example)
    layers, counted = summary(model).layers, count(model)
    assert sum(layer.parameters for layer in layers) == counted.total
    assert sum(layer.multiply_adds for layer in layers) == counted.multiply_adds
    assert [layer.name for layer in layers if layer.name != "model"] == [
        name for name, _ in model.named_modules() if name in {layer.name for layer in layers}
    ]


def test_dense_layers_have_the_sizes_of_the_neurons_and_their_bias():
    (with_bias,) = summary(DendriticLayer(64, 10)).layers
    linear = nn.Linear(64, 10)
    assert (with_bias.name, with_bias.dense_parameters, with_bias.dense_multiply_adds) == ("model", 650, 640)
    assert with_bias.dense_parameters == count(linear).total
    (without,) = summary(DendriticLayer(64, 10, bias=False)).layers
    assert without.dense_parameters == 640
    (dnm,) = summary(DNM(6, 2, dendrites=3)).layers
    assert (dnm.trees, dnm.parameters, dnm.dense_parameters) == ("dendrites=3", 72, 14)
    (conv, *_, head) = summary(ConvMLN()).layers
    assert conv.dense_parameters == conv.parameters
    assert (head.parameters, head.dense_parameters) == (2890, 2570)


def test_a_layer_that_runs_for_every_row_is_counted_for_every_row():
    once, often = summary(small()[:1]).layers, summary(small()[:1], (7, 16)).layers
    assert often[0].multiply_adds == 7 * once[0].multiply_adds == 7 * 80
    assert often[0].dense_multiply_adds == 7 * 128


def test_trees_and_wirings_are_named():
    deep = summary(DendriticLayer(64, 2, branching=2, wiring="shared")).layers[0]
    assert deep.trees == "64 synapses, 32 + 16 + ... + 1 dendrites"
    trees = summary(KTree(16, trees=2, wiring=["original", "random"])).layers[0]
    assert trees.wiring == "shared + random"
    assert summary(DANNClassifier(64, 3, somata=4)).layers[0].name == "neurons.trees"


def test_a_parameter_of_two_layers_is_counted_once():
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    assert [layer.parameters for layer in summary(nn.Sequential(first, second)).layers] == [20, 4]


def test_what_is_not_known_is_a_dash():
    attention = summary(nn.TransformerEncoderLayer(8, 2, dim_feedforward=4)).layers
    assert {layer.name: layer.multiply_adds for layer in attention} == {
        "self_attn": None, "self_attn.out_proj": None, "linear1": 32, "linear2": 32, "norm1": 0, "norm2": 0,
    }  # fmt: skip
    meta = summary(DendriticLayer(10, 2, device="meta"))
    assert meta.layers[0].multiply_adds is None
    assert str(meta).split()[-2:] == ["-", "-"]
    assert str(summary(nn.ReLU())).split()[-4:] == ["0"] * 4


def test_the_model_is_left_as_it_was():
    net = DendriticNetwork(16, [4], 3, norm="batch", dropout=0.5).train()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    summary(net)
    assert net.training
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    assert not any(module._forward_hooks for module in net.modules())


def test_anything_that_is_not_a_module_is_rejected():
    with pytest.raises(OptionError, match=r"^the model must be an nn.Module, a Dendritic.*: got int$"):
        summary(3)
