"""Models by name: what holds for every model, wrong requests, models of a user."""

import copy
import json
import pickle

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import dendritree
import dendritree.models
from dendritree.budget import stated_input_shape
from dendritree.errors import OptionError
from dendritree.models import MLP, create_model, list_models, registry
from dendritree.models.registry import model_entry, model_origin, register
from dendritree.neurons.families import neuron_names
from dendritree.storage import load, save

models = pytest.mark.parametrize("name", list_models())


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))


def example(name, **more):
    """A small model of that name, and a batch of inputs and labels for it."""
    net = create_model(name, **model_entry(name).example, **more)
    inputs = model_entry(name).example.get("in_features")
    shape = (1, 32, 32) if inputs is None else (inputs,)
    x = torch.randn(12, *shape)
    return net, x, torch.arange(12) % net.eval()(x).shape[-1]


def train_a_step(net, x, labels):
    """One step of Adam on the logits; returns the loss before it."""
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    y = net.train()(x)
    if y.shape[-1] == 1:
        loss = F.binary_cross_entropy_with_logits(y.squeeze(-1), torch.arange(len(x)).remainder(2).float())
    else:
        loss = F.cross_entropy(y, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


# ------------------------------------------------------------------------------------------- every registered model


@models
def test_every_model_builds_trains_saves_and_loads(name, tmp_path):
    net, x, labels = example(name)
    before = {key: parameter.detach().clone() for key, parameter in net.named_parameters()}
    losses = [train_a_step(net, x, labels) for _ in range(4)]
    assert losses[-1] < losses[0]
    for key, parameter in net.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        assert not torch.equal(parameter, before[key]), key
    save(net, tmp_path / "net")
    loaded = load(tmp_path / "net")
    assert type(loaded) is type(net)
    assert not loaded.training
    assert net.training  # saving leaves the model as it was
    assert torch.equal(loaded(x), net.eval()(x))
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    assert train_a_step(loaded, x, labels) < losses[0]


@models
@pytest.mark.parametrize("twin", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["copy", "pickle"])
def test_every_model_copies_and_pickles_and_the_copy_still_saves(name, twin, tmp_path):
    net, x, _ = example(name)
    save(twin(net), tmp_path / "net")
    assert torch.equal(load(tmp_path / "net")(x), net(x))


@models
def test_every_model_gives_logits_unless_asked_for_probabilities_and_has_dropout(name):
    net, x, _ = example(name)
    asked, _, _ = example(name, output="probabilities", dropout=0.5)
    asked.load_state_dict(net.state_dict())
    expected = net(x).sigmoid() if net(x).shape[-1] == 1 else net(x).softmax(-1)
    torch.testing.assert_close(asked.eval()(x), expected)
    assert not torch.equal(asked.train()(x), asked(x))


@models
def test_every_model_documents_itself_and_its_arguments(name):
    entry = model_entry(name)
    assert entry.summary
    json.dumps(entry.example)  # plain values, fit for documentation
    assert {"dropout", "output", "device", "dtype"} <= entry.arguments.keys()
    required = {argument for argument, needed in entry.arguments.items() if needed}
    assert required <= {"in_features", "hidden", "budget", "neuron"}
    assert required <= entry.example.keys()


@models
def test_every_model_rejects_anything_that_is_not_a_dense_tensor(name):
    net = create_model(name, **model_entry(name).example)
    x = torch.randn(2, *stated_input_shape(net))
    for value in (x.numpy(), x.tolist(), None, x.to_sparse()):
        with pytest.raises(OptionError, match=r"dense torch\.Tensor"):
            net(value)


def test_the_registry_holds_every_public_class_and_every_neuron():
    exported = [getattr(dendritree.models, name) for name in dendritree.models.__all__]
    classes = {value for value in exported if isinstance(value, type)}
    builders = {model_entry(name).build for name in list_models() if name not in neuron_names()}
    presets = {value for name, value in vars(dendritree.models).items() if name.endswith("_preset")}
    assert builders == classes | presets
    assert set(neuron_names()) <= set(list_models())
    assert list_models("ml?") == ["mln", "mlp"]


# ------------------------------------------------------------------------------------------------------ wrong requests


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("perceptron", {}, "did you mean 'perceptrons'"),
        ("mln", {"in_features": 4, "brnching": 4}, "did you mean 'branching'"),
        ("mln", {"in_features": 4, "droput_per": 4}, "did you mean 'dropout_per'"),  # of **options
        ("conv-mln", {"in_features": 4}, "did you mean 'out_features'"),
        ("mlp", {"out_features": 3}, "needs in_features, hidden: got out_features"),
        ("denn", {"in_features": 3, "hidden": [2, 2]}, "list of one number"),
    ],
)
def test_unknown_names_and_wrong_arguments_are_rejected(name, arguments, message):
    with pytest.raises(OptionError, match=message):
        create_model(name, **arguments)


# ------------------------------------------------------------------------------------------------- own models


def small_class():
    class Halver(nn.Module):
        """Half of what a linear layer says."""

        def __init__(self, in_features: int, *, gain: float = 0.5, dtype: torch.dtype | None = None) -> None:
            super().__init__()
            self.linear = nn.Linear(in_features, 2, dtype=dtype)
            self.gain = gain

        def forward(self, x: Tensor) -> Tensor:
            return self.gain * self.linear(x)

    return Halver


def test_a_registered_class_is_built_saved_and_loaded_by_name(tmp_path):
    cls = register("halver", example={"in_features": 4})(small_class())
    net = create_model("halver", in_features=4, gain=0.25)
    assert type(net) is cls
    assert model_entry("halver").summary == "Half of what a linear layer says."
    save(net, tmp_path / "net")
    x = torch.randn(3, 4)
    assert torch.equal(load(tmp_path / "net")(x), net(x))


def test_arguments_are_remembered_however_they_were_passed():
    by_place, by_name = MLP(8, 3, hidden=4), MLP(hidden=4, out_features=3, in_features=8, dtype=torch.float64)
    expected = "mlp", {"in_features": 8, "out_features": 3, "hidden": 4}
    assert model_origin(by_place) == model_origin(by_name) == expected


def test_a_name_is_registered_once():
    old, cls = model_entry("mlp"), small_class()
    plain_init = cls.__init__
    with pytest.raises(OptionError, match="a model name must be new: 'mlp' is already MLP"):
        register("mlp", example={})(cls)
    assert model_entry("mlp") is old
    assert cls.__init__ is plain_init


def test_a_subclass_that_is_not_registered_cannot_be_saved(tmp_path):
    class Doubled(MLP):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * super().forward(x)

    net = Doubled(4, 3, hidden=2)
    with pytest.raises(OptionError, match="Doubled is not a layer"):
        save(net, tmp_path / "net")
    assert list(tmp_path.iterdir()) == []
