import copy
import inspect
import json
import pickle
from typing import TypedDict, Unpack

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import dendritree
import dendritree.models
from dendritree.budget import stated_input_shape
from dendritree.errors import OptionError
from dendritree.models import MLP, MLNClassifier, create_model, list_models, registry
from dendritree.models.registry import model_entry, model_origin, register
from dendritree.storage import load, save

NAMES = [
    "conv-dnm",
    "conv-mln",
    "conv-mlp",
    "conv-network",
    "conv-perceptrons",
    "dann",
    "dendritic",
    "dendritic-network",
    "dense-network",
    "mln",
    "mln-binary",
    "mlp",
    "neuron-network",
    "perceptrons",
]


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


@pytest.mark.parametrize("name", list_models())
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


@pytest.mark.parametrize("name", list_models())
def test_every_model_s_state_dict_loads_with_weights_only(name, tmp_path):
    net, x, labels = example(name)
    train_a_step(net, x, labels)
    torch.save(net.state_dict(), tmp_path / "state.pt")
    other, _, _ = example(name)
    assert not torch.equal(other.eval()(x), net.eval()(x))
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert torch.equal(other.eval()(x), net.eval()(x))


@pytest.mark.parametrize("name", list_models())
@pytest.mark.parametrize("twin", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))], ids=["copy", "pickle"])
def test_every_model_copies_and_pickles_and_the_copy_still_saves(name, twin, tmp_path):
    net, x, _ = example(name)
    save(twin(net), tmp_path / "net")
    assert torch.equal(load(tmp_path / "net")(x), net(x))


@pytest.mark.parametrize("name", list_models())
def test_every_model_gives_logits_unless_asked_for_probabilities(name):
    net, x, _ = example(name)
    asked, _, _ = example(name, output="probabilities")
    asked.load_state_dict(net.state_dict())
    expected = net(x).sigmoid() if net(x).shape[-1] == 1 else net(x).softmax(-1)
    torch.testing.assert_close(asked.eval()(x), expected)


@pytest.mark.parametrize("name", list_models())
def test_every_model_has_probabilities_logits_and_dropout(name):
    for output in ("probabilities", "logits"):
        net, x, _ = example(name, output=output, dropout=0.5)
        assert torch.equal(net.eval()(x), net(x))
        assert not torch.equal(net.train()(x), net(x))
        assert model_origin(net)[1]["output"] == output


@pytest.mark.parametrize("name", [name for name in list_models() if not name.startswith("conv-")])
def test_the_chain_of_a_model_is_what_its_forward_runs(name):
    net, x, _ = example(name, output="probabilities")
    y = x
    for step in net.chain():
        y = step(y)
    assert torch.equal(net.output(y), net(x))


@pytest.mark.parametrize("name", list_models())
def test_every_model_documents_itself(name):
    entry = model_entry(name)
    assert entry.summary == inspect.getdoc(entry.build).splitlines()[0]
    assert entry.summary.endswith(".")
    json.dumps(entry.example)  # plain values, fit for documentation


def test_the_registry_holds_the_paper_s_models_and_their_controls():
    assert list_models() == NAMES
    exported = [getattr(dendritree.models, name) for name in dendritree.models.__all__]
    classes = {value for value in exported if isinstance(value, type)}
    assert {model_entry(name).build for name in NAMES} - {dendritree.models.dendritic_preset} == classes


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("*", NAMES), ("conv-*", NAMES[:5]), ("mln*", ["mln", "mln-binary"]), ("ml?", ["mln", "mlp"]), ("x", [])],
)
def test_list_models_takes_a_shell_pattern(pattern, names):
    assert list_models(pattern) == names


# -------------------------------------------------------------------------------------------------- wrong requests


@pytest.mark.parametrize(
    ("name", "near"), [("mln-binry", "mln-binary"), ("perceptron", "perceptrons"), ("ConvMLN", None)]
)
def test_unknown_name_lists_all_and_the_nearest(name, near):
    rule = f"model must be one of {', '.join(map(repr, NAMES))}: got {name!r}"
    with pytest.raises(OptionError, match=rule + (f"; did you mean '{near}'" if near else "")):
        create_model(name, in_features=16)


@pytest.mark.parametrize("name", [None, 3, nn.Linear])
def test_a_name_must_be_a_string(name):
    with pytest.raises(OptionError, match=r"model must be one of .*: got "):
        create_model(name)


@pytest.mark.parametrize(
    ("name", "argument", "near"),
    [
        ("mln", "brnching", "branching"),
        ("mln", "in_feature", "in_features"),
        ("mln", "root_activation", "activation"),
        ("mln", "droput_per", "dropout_per"),
        ("mln-binary", "outptu", "output"),
        ("mlp", "hiden", "hidden"),
        ("conv-mln", "in_features", "out_features"),
        ("dendritic-network", "synapse_droput", "synapse_dropout"),
        ("perceptrons", "d_type", "dtype"),
    ],
)
def test_unknown_argument_is_refused_with_a_near_match(name, argument, near):
    rule = rf"an argument of model '{name}' must be one of .*'{near}'.*: got '{argument}'; did you mean '{near}'"
    with pytest.raises(OptionError, match=rule):
        create_model(name, **{**model_entry(name).example, argument: 4})


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("mln", {}, "model 'mln' needs in_features: got nothing"),
        ("mln-binary", {"branching": 4}, "model 'mln-binary' needs in_features: got branching"),
        ("mlp", {"out_features": 3}, "model 'mlp' needs in_features, hidden: got out_features"),
        ("conv-mlp", {}, "model 'conv-mlp' needs hidden: got nothing"),
        ("dendritic-network", {"fan_in": 4}, "'dendritic-network' needs in_features, hidden: got fan_in"),
        ("perceptrons", {"dropout": 0.5, "output": "logits"}, "'perceptrons' needs in_features: got dropout, output"),
    ],
)
def test_missing_required_arguments_are_named(name, arguments, message):
    with pytest.raises(OptionError, match=message):
        create_model(name, **arguments)


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_those_the_class_takes(name):
    entry = model_entry(name)
    for argument, required in entry.arguments.items():
        assert required == (argument in {"in_features", "hidden", "budget", "neuron"}), argument
    layer_options = {"depth", "ragged", "bias", "dropout_per", "activation", "backend"}
    common = {"dropout", "output", "device", "dtype"}
    assert common <= entry.arguments.keys()
    assert (layer_options <= entry.arguments.keys()) == ("mln" in name)


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
    with pytest.raises(OptionError, match=r"must hold layers of this library, .*: Doubled is not a layer"):
        save(net, tmp_path / "net")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("own_init", [True, False])
def test_a_registered_subclass_is_saved_as_itself(own_init, tmp_path):
    class Doubled(MLP):
        def forward(self, x: Tensor) -> Tensor:
            return 2 * super().forward(x)

    class DoubledEight(Doubled):
        def __init__(self, *, hidden: int, dtype: torch.dtype | None = None) -> None:
            super().__init__(8, 3, hidden=hidden, dtype=dtype)

    cls = register("doubled", example={})(DoubledEight if own_init else Doubled)
    net = cls(hidden=2) if own_init else cls(8, 3, hidden=2)
    assert model_origin(net)[0] == "doubled"
    assert model_origin(MLP(8, 3, hidden=2))[0] == "mlp"
    save(net, tmp_path / "net")
    loaded, x = load(tmp_path / "net"), torch.randn(3, 8)
    assert type(loaded) is cls
    assert torch.equal(loaded(x), net(x))


class Extra(TypedDict, total=False):
    gain: float
    dtype: torch.dtype | None


def test_further_options_may_have_any_name(tmp_path):
    class Scaled(nn.Module):
        """A linear layer and a gain."""

        def __init__(self, in_features: int, **extra: Unpack[Extra]) -> None:
            super().__init__()
            self.linear = nn.Linear(in_features, 2, dtype=extra.get("dtype"))
            self.gain = extra.get("gain", 1.0)

        def forward(self, x: Tensor) -> Tensor:
            return self.gain * self.linear(x)

    register("scaled", example={"in_features": 4})(Scaled)
    net, x = create_model("scaled", in_features=4, gain=3.0), torch.randn(2, 4)
    assert model_origin(net) == ("scaled", {"in_features": 4, "gain": 3.0})
    save(net, tmp_path / "net")
    assert torch.equal(load(tmp_path / "net")(x), net(x))


def test_arguments_are_those_of_the_moment_of_building(tmp_path):
    branching = [4, 4]
    net, x = MLNClassifier(16, 3, branching=branching), torch.randn(2, 16)
    branching.append(2)
    save(net, tmp_path / "net")
    assert torch.equal(load(tmp_path / "net")(x), net(x))


@pytest.mark.parametrize("name", NAMES)
def test_every_model_says_what_inputs_it_takes(name):
    net = create_model(name, **model_entry(name).example)
    x = torch.randn(2, *stated_input_shape(net))
    wrong = {
        "numpy.ndarray": x.numpy(),
        "list": x.tolist(),
        "NoneType": None,
        "one of layout torch.sparse_coo": x.to_sparse(),
        "a nested tensor of layout torch.jagged": torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged),
    }
    for kind, value in wrong.items():
        with pytest.raises(OptionError, match=f"^the input must be a dense torch.Tensor: got {kind}$"):
            net(value)
