import contextlib
import json
import textwrap

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn
from warm import run

from dendritree.errors import OptionError
from dendritree.models import MLP, ConvMLN, ConvMLP, MLNBinaryClassifier, MLNClassifier
from dendritree.storage import load, save
from dendritree.wiring import Partition, Shared


def small(**options):
    """16 inputs, three neurons (two for the partition)."""
    return MLNClassifier(**{"in_features": 16, "out_features": 3, "branching": 4, **options}).eval()


def randomize(net):
    """Values that only the file can know, also where a fresh model has zeros."""
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.normal_(std=0.5)
    return net


def round_trip(net, folder):
    save(randomize(net), folder)
    return load(folder)


def reject_constant(name):
    raise AssertionError(f"{name} is not JSON")


def config_of(folder):
    return json.loads((folder / "config.json").read_text(encoding="utf-8"), parse_constant=reject_constant)


# ------------------------------------------------------------------------------------------------------ the files


def test_config_is_plain_versioned_json(tmp_path):
    save(small(dropout=0.25, wiring=Shared(), activation=nn.ELU(0.5)), tmp_path / "net")
    config = config_of(tmp_path / "net")
    assert (config["format"], config["version"], config["model"], config["dtype"]) == (
        "dendritree-model",
        2,
        "mln",
        "float32",
    )
    arguments = config["arguments"]
    assert {key: arguments[key] for key in ("in_features", "out_features", "branching", "dropout")} == {
        "in_features": 16,
        "out_features": 3,
        "branching": 4,
        "dropout": 0.25,
    }
    assert arguments["wiring"]["wiring"] == "shared"
    assert arguments["activation"] == {"torch.nn": "ELU", "alpha": 0.5, "inplace": False}


def test_weights_are_a_safetensors_file_of_the_whole_state(tmp_path):
    net = ConvMLP(3, hidden=4)
    net.train()(torch.randn(4, 1, 32, 32))  # moves the batch-norm statistics
    save(net, tmp_path / "net")
    assert sorted(path.name for path in (tmp_path / "net").iterdir()) == ["config.json", "weights.safetensors"]
    stored, state = load_file(tmp_path / "net" / "weights.safetensors"), net.state_dict()
    assert stored.keys() == state.keys()
    assert all(torch.equal(stored[key], state[key]) for key in state)


def test_the_tree_and_its_wiring_are_in_the_weights_file(tmp_path):
    save(small(), tmp_path / "net")
    with safe_open(tmp_path / "net" / "weights.safetensors", "pt") as file:
        source = file.get_tensor("layer.forest_source")
        assert file.get_tensor("layer.forest_offsets").tolist() == [4 * node for node in range(16)]
    assert source[:48].tolist() == list(range(16)) * 3


def test_names_may_be_strings_paths_and_nested(tmp_path):
    net, x = small(), torch.randn(2, 16)
    save(net, str(tmp_path / "deep" / "er" / "net"))
    assert torch.equal(load(tmp_path / "deep" / "er" / "net")(x), net(x))
    assert [path.name for path in (tmp_path / "deep" / "er").iterdir()] == ["net"]


def test_a_relative_folder_is_saved_in_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net, x = small(), torch.randn(2, 16)
    save(net, "net")
    assert torch.equal(load("net")(x), net(x))
    assert [path.name for path in tmp_path.iterdir()] == ["net"]


def test_a_model_loads_in_a_fresh_process(tmp_path):
    net, x = randomize(small(activation="tanh")), torch.linspace(-1, 1, 16)
    save(net, tmp_path / "net")
    script = f"""
        import torch, dendritree
        net = dendritree.load({str(tmp_path / "net")!r})
        print(net(torch.linspace(-1, 1, 16)).tolist())
    """
    status, out, errors = run(textwrap.dedent(script))
    assert (status, errors) == (0, "")
    assert json.loads(out) == net(x).tolist()


# ----------------------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize(
    "activation",
    [
        None,
        "leaky_relu",
        "tanh",
        "gelu",
        nn.ReLU,
        nn.LeakyReLU,  # PyTorch's own slope 0.01, not the paper's
        nn.PReLU,
        nn.LeakyReLU(0.3),
        nn.ELU(0.5),
        nn.GELU(approximate="tanh"),
        nn.Softplus(beta=2.0, threshold=10.0),
        nn.Hardtanh(-2.0, 0.5),
        nn.Threshold(0.1, 0.2),
        nn.PReLU(init=0.7),
        nn.ReLU6(),
        nn.LogSigmoid(),
        nn.Tanhshrink(),
    ],
    ids=str,
)
def test_activations_round_trip(activation, tmp_path):
    net = small(activation=activation)
    loaded, x = round_trip(net, tmp_path / "net"), 3 * torch.randn(20, 16)
    assert repr(loaded.layer.activation) == repr(net.layer.activation)
    assert torch.equal(loaded(x), net(x))


@pytest.mark.parametrize("wiring", ["partition", "shared", Partition(), Shared()], ids=str)
def test_wirings_round_trip_as_names_and_as_objects(wiring, tmp_path):
    net = small(in_features=32, out_features=2, branching=2, wiring=wiring)
    loaded, x = round_trip(net, tmp_path / "net"), torch.randn(5, 32)
    assert loaded.layer.wiring == net.layer.wiring
    assert torch.equal(loaded(x), net(x))


@pytest.mark.parametrize(
    ("options", "branching"),
    [
        ({"branching": 2}, 2),
        ({"branching": [8, 2]}, (8, 2)),
        ({"branching": (2, 8)}, (2, 8)),
        ({"branching": 16, "depth": 1}, 16),
        ({"branching": 3, "ragged": True}, 3),
        ({"branching": [5, 5], "ragged": True, "bias": False}, (5, 5)),
    ],
    ids=str,
)
def test_trees_round_trip(options, branching, tmp_path):
    net = small(**options)
    loaded, x = round_trip(net, tmp_path / "net"), torch.randn(5, 16)
    assert loaded.layer.branching == branching
    assert loaded.layer.forest == net.layer.forest
    assert torch.equal(loaded(x), net(x))


def test_dropout_output_and_backend_round_trip(tmp_path):
    net = small(dropout=0.5, dropout_per="input", output="logits", backend="reference")
    loaded = round_trip(net, tmp_path / "net")
    assert (loaded.layer.dropout, loaded.layer.dropout_per) == (0.5, "input")
    assert loaded.layer.backend == "reference"
    assert isinstance(loaded.output, nn.Identity)


@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("cast_later", [True, False])
@pytest.mark.parametrize("build", [small, lambda **o: ConvMLN(3, branching=16, **o).eval()], ids=["mln", "conv-mln"])
def test_dtype_round_trips(name, cast_later, build, tmp_path):
    dtype = getattr(torch, name)
    net = build().to(dtype) if cast_later else build(dtype=dtype)
    loaded = round_trip(net, tmp_path / "net")
    assert config_of(tmp_path / "net")["dtype"] == name
    assert {key: value.dtype for key, value in loaded.state_dict().items()} == {
        key: value.dtype for key, value in net.state_dict().items()
    }
    x = torch.randn(2, *((1, 32, 32) if isinstance(net, ConvMLN) else (16,)), dtype=dtype)
    assert torch.equal(loaded(x), net(x))


def test_dtype_of_an_activation_s_own_parameters_round_trips(tmp_path):
    net = small(activation=nn.PReLU()).double()
    loaded, x = round_trip(net, tmp_path / "net"), torch.randn(2, 16, dtype=torch.float64)
    assert loaded.layer.activation.weight.dtype == torch.float64
    assert torch.equal(loaded(x), net(x))


def test_the_default_dtype_does_not_change_what_is_loaded(tmp_path):
    save(small(), tmp_path / "net")
    torch.set_default_dtype(torch.float64)
    try:
        assert load(tmp_path / "net").layer.weight.dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    "build",
    [
        lambda: MLNBinaryClassifier(np.int64(16), branching=4),
        lambda: MLNClassifier(16, 3, branching=np.int64(4)),
        lambda: MLNClassifier(16, 3, branching=[np.int32(4), np.int32(4)]),
        lambda: MLP(16, 3, hidden=np.int64(4), dropout=np.float32(0.25)),
    ],
    ids=["in_features", "branching", "branching by level", "hidden and dropout"],
)
def test_numpy_numbers_round_trip(build, tmp_path):
    net, x = build().eval(), torch.randn(2, 16)
    assert torch.equal(round_trip(net, tmp_path / "net")(x), net(x))
    config_of(tmp_path / "net")


def test_infinite_numbers_never_reach_the_json(tmp_path):
    with contextlib.suppress(OptionError):  # rejecting is as good as another spelling
        save(small(activation=nn.Hardtanh(0.0, float("inf"))), tmp_path / "net")
    for path in tmp_path.rglob("config.json"):
        config_of(path.parent)


# ---------------------------------------------------------------------------------------------- what load leaves alone


def test_load_leaves_the_random_state_alone(tmp_path):
    save(ConvMLN(3, branching=16, dropout=0.5), tmp_path / "net")
    before = torch.get_rng_state()
    load(tmp_path / "net")
    assert torch.equal(torch.get_rng_state(), before)


def test_save_leaves_the_model_and_the_random_state_alone(tmp_path):
    net = ConvMLN(3, branching=16, dropout=0.5).train()
    state, before = {key: value.clone() for key, value in net.state_dict().items()}, torch.get_rng_state()
    save(net, tmp_path / "net")
    assert torch.equal(torch.get_rng_state(), before)
    assert all(module.training for module in net.modules())
    assert all(torch.equal(value, state[key]) for key, value in net.state_dict().items())


def test_a_loaded_model_is_independent_of_its_files(tmp_path):
    net, x = randomize(small()), torch.randn(2, 16)
    save(net, tmp_path / "net")
    loaded = load(tmp_path / "net")
    save(randomize(small()), tmp_path / "net")
    assert torch.equal(loaded(x), net(x))


def test_load_takes_a_device(tmp_path):
    save(small(), tmp_path / "net")
    assert load(tmp_path / "net", device="cpu").layer.weight.device == torch.device("cpu")
    assert load(tmp_path / "net", device="meta").layer.weight.is_meta


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_load_to_cuda_and_save_from_it(tmp_path):
    net, x = small(), torch.randn(2, 16)
    save(net.cuda(), tmp_path / "net")
    assert torch.equal(load(tmp_path / "net", device="cuda")(x.cuda()), net(x.cuda()))
