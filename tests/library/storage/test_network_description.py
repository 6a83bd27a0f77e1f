"""Networks of one's own: layers and sequences as descriptions, any other model filled in, conversions reopened."""

import copy
import json
import textwrap
import warnings

import pytest
import torch
from neuron_cases import NEURONS
from torch import nn
from warm import run

from dendritree import DendriticLayer, MLNClassifier, convert, load, prune, save
from dendritree.errors import FormatError, OptionError
from dendritree.neurons import DANN, DMNN, KTree
from dendritree.storage.folders import describe, rebuild
from dendritree.wiring import Local


def rows(model, shape):
    return torch.randn(3, *shape, dtype=next(model.parameters()).dtype)


CASES = {
    "readme": lambda: (nn.Sequential(DendriticLayer(20, 6), DendriticLayer(6, 3)), (20,)),
    "norms": lambda: (
        nn.Sequential(
            DendriticLayer(12, 8, wiring="random", fan_in=4),
            nn.LayerNorm(8),
            nn.GELU(approximate="tanh"),
            nn.Dropout(0.3),
            nn.BatchNorm1d(8, momentum=None),
            nn.Sequential(nn.Linear(8, 4, bias=False), nn.Hardtanh(-2, 3)),
            nn.Softmax(-1),
        ),
        (12,),
    ),
    "images": lambda: (
        nn.Sequential(
            nn.Conv2d(1, 4, 3, padding="same"),
            nn.BatchNorm2d(4),
            nn.MaxPool2d(2),
            nn.Flatten(),
            DendriticLayer(64, 5, branching=[4, 2], wiring=Local(window=3, image_shape=(4, 4, 4), seed=1)),
        ),
        (1, 8, 8),
    ),
    "names": lambda: (nn.Sequential(dict_of(trees=DendriticLayer(4, 2), readout=nn.Linear(2, 1))), (4,)),
    "model inside": lambda: (nn.Sequential(MLNClassifier(16, 3, branching=4), nn.Linear(3, 2)), (16,)),
    "float64": lambda: (DendriticLayer(16, 2, branching=2, wiring="partition", activation="tanh").double(), (16,)),
    "options": lambda: (DendriticLayer(16, 2, branching=4, dropout=0.2, dropout_per="input", bias=False), (16,)),
    "nested": lambda: (DendriticLayer(16, 2, branching=[3, [2], [2, [4]]], wiring="random"), (16,)),
    "repeats": lambda: (DendriticLayer(16, 2, branching=4, repeats=2, wiring="strided"), (16,)),
    **{name: lambda make=make: (make(), (16,)) for name, make in NEURONS.items()},
    "k-trees": lambda: (KTree(8, 2, trees=3, wiring="random"), (8,)),
    "signs": lambda: (DMNN(8, 3, dendrites=2, signs=[1, -1]), (8,)),
    "receptive fields": lambda: (DANN(16, 3, field="local", image_shape=(4, 4), activation="tanh"), (16,)),
    "converted": lambda: (convert(nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4)))[0], (16,)),
}


def dict_of(**modules):
    from collections import OrderedDict

    return OrderedDict(modules)


@pytest.mark.parametrize("case", CASES)
def test_layers_and_sequences_of_known_layers_are_rebuilt(case, tmp_path):
    model, shape = CASES[case]()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.eval()
    save(model, tmp_path / "net")
    state = torch.get_rng_state()
    again = load(tmp_path / "net")
    assert torch.equal(torch.get_rng_state(), state)
    assert repr(again) == repr(model)
    assert not again.training
    x = rows(model, shape)
    assert torch.equal(again(x), model(x))


@pytest.mark.parametrize(
    "layer",
    [
        lambda: DendriticLayer(64, 8, branching=[4, 2], wiring=Local(window=4), activation="tanh"),
        lambda: DendriticLayer(64, 4, branching=4, repeats=2),
        lambda: KTree(64, 2, trees=3, branching=4, wiring="random"),
    ],
    ids=["windows", "repeats", "ktree"],
)
def test_a_pruned_layer_in_a_sequence_is_rebuilt(layer, tmp_path):
    whole = layer()
    model = nn.Sequential(whole, nn.Linear(whole.out_features, 2))
    small = prune(model, budget=70, examples=torch.randn(40, 64)).eval()
    save(small, tmp_path / "small")
    again = load(tmp_path / "small")
    assert again[0].forest == small[0].forest
    assert repr(again) == repr(small)
    x = torch.randn(5, 64)
    assert torch.equal(again(x), small(x))


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"os": "system", "arguments": {}}, "torch.nn"),
        ({"torch.nn": "Module", "arguments": {}}, "torch.nn"),
        ({"dendritree": "save", "arguments": {}}, "torch.nn"),
        ({"torch.nn": "Linear", "arguments": {"in_features": 4, "out_features": 2, "device": "meta"}}, "device"),
        ({"torch.nn": "Linear", "arguments": {"in_featurs": 4}}, "in_featurs"),
        ({"torch.nn": "Linear", "arguments": {"in_features": 4, "out_features": 2}, "dtype": "int8"}, "dtype"),
        ("Linear", "torch.nn"),
    ],
)
def test_a_file_names_layers_of_a_fixed_list(node, message):
    config, tensors = describe(nn.Sequential(DendriticLayer(4, 2)))
    config["layers"]["modules"]["0"] = node
    with pytest.raises(FormatError, match=message):
        rebuild(config, tensors)


# ------------------------------------------------------------------------------------------------ models of one's own


class Own(nn.Module):
    """A model with a forward of its own."""

    def __init__(self, hidden=8, activation="leaky_relu"):
        super().__init__()
        self.trees = DendriticLayer(16, hidden, fan_in=8, wiring="random", activation=activation)
        self.norm = nn.LayerNorm(hidden)
        self.readout = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.readout(self.norm(self.trees(x)) + 1)


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


@pytest.mark.parametrize("activation", ["leaky_relu", Swish()], ids=["known", "own"])
def test_a_model_of_ones_own_is_filled_in_place(activation, tmp_path):
    model = Own(activation=activation).eval()
    save(model, tmp_path / "own")
    with pytest.raises(FormatError, match="into=model"):
        load(tmp_path / "own")
    other = Own(activation=activation)  # another wiring, other weights
    weights = [*other.parameters()]
    assert load(tmp_path / "own", into=other) is other
    assert all(a is b for a, b in zip(weights, other.parameters(), strict=True))  # an optimizer keeps them
    x = torch.randn(3, 16)
    assert torch.equal(other(x), model(x))


def test_a_layer_with_other_options_is_replaced_by_the_saved_one(tmp_path):
    model = Own(activation="tanh").eval()
    model.trees = prune(model.trees, budget=60)
    save(model, tmp_path / "own")
    other = load(tmp_path / "own", into=Own())
    assert repr(other) == repr(model)
    x = torch.randn(3, 16)
    assert torch.equal(other(x), model(x))


def test_what_load_can_build_also_fills_a_model(tmp_path):
    net = nn.Sequential(DendriticLayer(16, 4, wiring="random", fan_in=4), nn.Linear(4, 2)).eval()
    save(net, tmp_path / "net")
    into = nn.Sequential(DendriticLayer(16, 4, wiring="random", fan_in=4), nn.Linear(4, 2))
    x = torch.randn(3, 16)
    assert torch.equal(load(tmp_path / "net", into=into)(x), net(x))


@pytest.mark.parametrize(
    ("into", "message"),
    [
        (lambda: Own(hidden=6), "norm.weight"),
        (lambda: nn.Linear(2, 2), "trees"),
        (lambda: nn.Sequential(dict_of(trees=nn.Bilinear(1, 2, 3))), "trees must be the DendriticLayer"),
        (lambda: with_more(Own()), "more.weight"),
    ],
)
def test_a_model_that_does_not_fit_is_rejected_and_left_as_it_was(into, message, tmp_path):
    save(Own(), tmp_path / "own")
    model = into()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(FormatError, match=message):
        load(tmp_path / "own", into=model)
    assert model.training
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


def with_more(model):
    model.more = nn.Linear(1, 1)
    return model


def test_trees_without_a_description_must_be_those_of_the_file(tmp_path):
    save(Own(activation=Swish()), tmp_path / "own")
    model = Own(activation=Swish())
    model.trees = DendriticLayer(16, 8, fan_in=8, branching=2, wiring="random", activation=Swish())
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(FormatError, match="same tree"):
        load(tmp_path / "own", into=model)
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.TransformerEncoderLayer(8, 2, 16), "save_model"),
        (lambda: 3, "save takes"),
        (lambda: with_extra_state(), "_extra_state"),
    ],
)
def test_what_cannot_be_saved_is_told_the_way_that_can(make, message, tmp_path):
    with pytest.raises(OptionError, match=message):
        save(make(), tmp_path / "net")
    assert not (tmp_path / "net").exists()


def with_extra_state():
    class Stateful(nn.Sequential):
        def get_extra_state(self):
            return {"steps": 3}

    return Stateful(DendriticLayer(4, 2))


def test_layers_that_are_used_twice_or_changed_are_not_described(tmp_path):
    trees, changed = DendriticLayer(4, 4), nn.Sequential(DendriticLayer(4, 4))
    changed[0].forward = changed[0].forward
    for number, (model, why) in enumerate([(nn.Sequential(trees, trees), "twice"), (changed, "forward")]):
        save(model, tmp_path / str(number))
        with pytest.raises(FormatError, match=why):
            load(tmp_path / str(number))
        x = torch.randn(2, 4)
        assert torch.equal(load(tmp_path / str(number), into=model)(x), model.eval()(x))


def test_an_activation_may_be_used_twice(tmp_path):
    relu = nn.ReLU()
    save(nn.Sequential(DendriticLayer(4, 4), relu, nn.Linear(4, 4, bias=False), relu), tmp_path / "net")
    assert [type(part).__name__ for part in load(tmp_path / "net")] == ["DendriticLayer", "ReLU", "Linear", "ReLU"]


def test_into_is_for_networks(tmp_path):
    with pytest.raises(OptionError, match=r"into must be an nn\.Module: got int"):
        load(tmp_path / "nowhere", into=3)


# -------------------------------------------------------------------------------------------------------- conversions


def test_the_original_of_a_conversion_is_converted_and_filled(tmp_path):
    original = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 64, batch_first=True), 2)
    converted, _ = convert(original, where="*.linear?", budget=0.4)
    converted.eval()
    save(converted, tmp_path / "encoder")
    into = copy.deepcopy(original)
    assert load(tmp_path / "encoder", into=into) is into
    x = torch.randn(2, 5, 16)
    assert torch.equal(into(x), converted(x))
    assert sum(isinstance(module, DendriticLayer) for module in into.modules()) == 2


VIT = """
import sys, warnings, torch
warnings.simplefilter("ignore")
from transformers.models.vit.configuration_vit import ViTConfig
from transformers.models.vit.modeling_vit import ViTForImageClassification

def vit():
    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    return ViTForImageClassification(ViTConfig(**sizes, image_size=8, patch_size=4, num_labels=5))
"""


@pytest.mark.slow  # transformers takes five seconds to import
def test_a_converted_vit_is_reopened_in_a_new_process(tmp_path):
    space = {}
    with warnings.catch_warnings():
        exec(VIT, space)
        torch.manual_seed(0)
        converted, _ = convert(space["vit"](), where="*.mlp.*", budget=0.5)
    converted.eval()
    save(converted, tmp_path / "vit")
    script = VIT + textwrap.dedent("""
        from dendritree import load
        torch.manual_seed(7)
        model = load(sys.argv[1], into=vit())
        print(model(torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8)).logits.tolist())
    """)
    status, out, errors = run(script, tmp_path / "vit")
    assert (status, errors) == (0, "")
    x = torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8)
    torch.testing.assert_close(torch.tensor(json.loads(out)), converted(x).logits.detach(), rtol=1e-6, atol=1e-6)


def test_a_forward_hook_is_not_lost_in_silence(tmp_path):
    model = nn.Sequential(DendriticLayer(8, 2))
    model[0].register_forward_hook(lambda *_: None)
    save(model, tmp_path)
    with pytest.raises(FormatError, match="into"):
        load(tmp_path)
