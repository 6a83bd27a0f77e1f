"""Saved models: what their files hold, and what is read back."""

import hashlib
import json
import textwrap

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from warm import run

from dendritree.errors import OptionError
from dendritree.models import MLP, ConvMLN, MLNClassifier
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


def config_of(folder):
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


# ------------------------------------------------------------------------------------------------------ the files


def test_a_folder_holds_plain_versioned_json_and_the_whole_state(tmp_path):
    net = small(dropout=0.25, wiring=Shared(), activation=nn.ELU(0.5))
    save(net, tmp_path / "net")
    config = config_of(tmp_path / "net")
    assert [config[key] for key in ("format", "version", "model", "dtype")] == ["dendritree-model", 1, "mln", "float32"]
    arguments = config["arguments"]
    assert [arguments[key] for key in ("in_features", "out_features", "branching", "dropout")] == [16, 3, 4, 0.25]
    assert arguments["wiring"]["wiring"] == "shared"
    assert arguments["activation"] == {"torch.nn": "ELU", "alpha": 0.5, "inplace": False}
    (weights,) = (tmp_path / "net").glob("*.safetensors")
    assert weights.name == f"weights-{config['weights_sha256'][:8]}.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == config["weights_sha256"]
    stored, state = load_file(weights), net.state_dict()
    assert stored.keys() == state.keys()
    assert all(torch.equal(stored[key], state[key]) for key in state)
    assert stored["layer.forest_source"][:48].tolist() == list(range(16)) * 3  # the wiring too


def test_a_folder_may_be_nested_relative_or_empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    net, x = small(), torch.randn(2, 16)
    for folder in (str(tmp_path / "deep" / "er"), "net", "empty"):
        save(net, folder)
        assert torch.equal(load(folder)(x), net(x))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "empty", "net"]


def test_a_save_that_was_killed_before_its_config_does_not_block_the_next_one(tmp_path):
    (tmp_path / "net").mkdir()
    for name in ("weights-01234567.safetensors", ".config.json.0123"):
        (tmp_path / "net" / name).write_bytes(b"unfinished")
    net = small()
    save(net, tmp_path / "net")
    assert load(tmp_path / "net").state_dict().keys() == net.state_dict().keys()
    assert not (tmp_path / "net" / "weights-01234567.safetensors").exists()


def test_another_model_replaces_the_first_and_leaves_other_files(tmp_path):
    net, x = MLP(16, 2, hidden=3).eval(), torch.randn(4, 16)
    save(small(), tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    save(net, tmp_path)
    assert torch.equal(load(tmp_path)(x), net(x))
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".safetensors", ".txt"]


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
        "tanh",
        nn.LeakyReLU,  # PyTorch's own slope 0.01, not the paper's
        nn.LeakyReLU(0.3),
        nn.GELU(approximate="tanh"),
        nn.Softplus(beta=2.0, threshold=10.0),
        nn.Hardtanh(-2.0, 0.5),
        nn.Threshold(0.1, 0.2),
        nn.PReLU(init=0.7),
        nn.ReLU6(),
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


@pytest.mark.parametrize("name", ["float64", "bfloat16"])
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


def test_the_default_dtype_does_not_change_what_is_loaded(tmp_path):
    save(small(), tmp_path / "net")
    torch.set_default_dtype(torch.float64)
    try:
        assert load(tmp_path / "net").layer.weight.dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_numpy_numbers_round_trip(tmp_path):
    x = torch.randn(2, 16)
    for net in (
        MLNClassifier(16, 3, branching=[np.int32(4)] * 2),
        MLP(16, 3, hidden=np.int64(4), dropout=np.float32(0.25)),
    ):
        assert torch.equal(round_trip(net.eval(), tmp_path / "net")(x), net(x))


def test_infinite_numbers_are_not_json(tmp_path):
    with pytest.raises(OptionError, match="finite"):
        save(small(activation=nn.Hardtanh(0.0, float("inf"))), tmp_path / "net")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------- what load leaves alone


def test_save_and_load_leave_the_model_and_the_random_state_alone(tmp_path):
    net = ConvMLN(3, branching=16, dropout=0.5).train()
    state, before = {key: value.clone() for key, value in net.state_dict().items()}, torch.get_rng_state()
    save(net, tmp_path / "net")
    load(tmp_path / "net")
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
def test_load_to_cuda_and_save_from_it(tmp_path):
    net, x = small(), torch.randn(2, 16)
    save(net.cuda(), tmp_path / "net")
    assert torch.equal(load(tmp_path / "net", device="cuda")(x.cuda()), net(x.cuda()))
