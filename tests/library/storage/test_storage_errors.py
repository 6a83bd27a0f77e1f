"""Files that are not ours, not whole or not of one model are rejected; a failed or killed save loses nothing."""

import functools
import hashlib
import importlib.metadata
import itertools
import json

import pytest
import safetensors.torch
import torch
from killed import killed_at
from torch import nn

from dendritree.errors import DendritreeError, FormatError, OptionError
from dendritree.models import MLP, MLNClassifier, create_model
from dendritree.storage import load, save
from dendritree.storage import models as storage_models
from dendritree.storage.folders import describe, rebuild


def files_under(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def edit(folder, **changes):
    """Change entries of the config; `...` removes one."""
    config = json.loads((folder / "config.json").read_text()) | changes
    kept = {key: value for key, value in config.items() if value is not ...}
    (folder / "config.json").write_text(json.dumps(kept))


def weights_of(folder):
    return next(folder.glob("*.safetensors"))


def assert_rejected(folder, message, error=FormatError):
    """Load rejects with that message and changes neither the files nor the random state."""
    before, random_state = files_under(folder.parent), torch.get_rng_state()
    with pytest.raises(error, match=message):
        load(folder)
    assert files_under(folder.parent) == before
    assert torch.equal(torch.get_rng_state(), random_state)


# --------------------------------------------------------------------------------------------- load: the config


def test_what_is_no_model_folder_is_rejected_by_name(folder, tmp_path):
    (tmp_path / "file").write_text("hello")
    (folder / "config.json").unlink()
    assert_rejected(tmp_path / "none", "the model folder .*none does not exist")
    for path in (tmp_path / "file", folder):
        assert_rejected(path, rf"must hold config\.json.*{path.name}")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"not json", b"\xff\xfe\x00", b"[" * 100_000, b'{"lr": NaN}', b'{"lr": -Infinity}', b"9" * 5000],
    ids=lambda content: repr(content[:20]),
)
def test_a_config_that_is_no_json_is_rejected(folder, content):
    (folder / "config.json").write_bytes(content)
    assert_rejected(folder, "must be JSON")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "dendritree-layer"}, "must have format 'dendritree-model'"),
        ({"format": ...}, "format"),
        ({"version": 2}, "newer"),
        ({"version": "1"}, "version"),
        ({"version": ...}, "version"),
        ({"weights_sha256": ...}, "weights_sha256"),
        ({"model": 3}, "model"),
        ({"model": "mln-quaternary"}, "mln-quaternary"),
        ({"arguments": []}, "arguments"),
        ({"dtype": ...}, "dtype"),
        ({"dtype": "float33"}, "dtype"),
        ({"dtype": "int32"}, "dtype"),
        ({"dtype": "load"}, "dtype"),
    ],
)
def test_a_changed_config_is_rejected(folder, changes, message):
    edit(folder, **changes)
    assert_rejected(folder, message)


@pytest.mark.parametrize("content", ["[]", "3", "null", "{}", '{"model_type": "bert"}'])
def test_a_foreign_config_is_rejected(folder, content):
    (folder / "config.json").write_text(content)
    assert_rejected(folder, "format")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("branches", 4, "branching"),
        ("branching", 3, "fan_in"),
        ("branching", functools.reduce(lambda inner, _: [inner], range(400), []), "describe"),
        ("device", "meta", "must not be device or dtype"),
        ("activation", {"torch.nn": "PReLU", "device": "meta"}, "must not be device or dtype"),
        ("activation", {"torch.nn": "PReLU", "num_parameters": -1}, "describe"),
        ("in_features", 10**30, "a size of the weights"),
        ("wiring", {"wiring": "tangled"}, "tangled"),
        ("wiring", {"wiring": "shared", "twist": 3}, "twist"),
        ("activation", {"torch.nn": "functional"}, "functional"),
        ("activation", {"torch.nn": "LeakyReLU", "slope": 0.1}, "slope"),
        ("activation", {"torch.nn": "Linear"}, "Linear"),
        ("activation", {"os": "system"}, "system"),
    ],
)
def test_an_argument_no_model_was_saved_with_is_rejected(folder, key, value, message):
    edit(folder, arguments={**json.loads((folder / "config.json").read_text())["arguments"], key: value})
    assert_rejected(folder, message, DendritreeError)


def test_a_format_of_a_package_that_is_not_installed_names_the_package(folder, monkeypatch):
    edit(folder, format="dendritree-table")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: importlib.metadata.EntryPoints())
    assert_rejected(folder, "pip install dendritree-lab")


def test_a_device_that_is_not_here_is_the_mistake_of_whoever_names_it(folder):
    with pytest.raises(OptionError, match="nowhere"):
        load(folder, device="nowhere")


# --------------------------------------------------------------------------------------------- load: the weights


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    ],
    ids=["empty", "half", "one bit"],
)
def test_damaged_weights_are_rejected(folder, damage):
    weights = weights_of(folder)
    weights.write_bytes(damage(weights.read_bytes()))
    assert_rejected(folder, "damaged")


def test_missing_weights_are_rejected(folder):
    weights = weights_of(folder)
    weights.unlink()
    assert_rejected(folder, f"must hold {weights.name}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: describe(MLNClassifier(16, 4, branching=4))[1], "neurons 3 against 4"),
        (lambda _: describe(MLNClassifier(16, 3, branching=2))[1], "edges 60 against 90"),
        (lambda _: describe(MLP(16, 3, hidden=4))[1], "readout"),
        (lambda state: state | {"layer.forest_source": state["layer.forest_source"].flip(0)}, "forest|source|tree"),
        (lambda state: {key: value for key, value in state.items() if key != "layer.weight"}, "weight"),
        (lambda state: state | {"surprise": torch.ones(3)}, "surprise"),
    ],
    ids=["neurons", "tree", "model", "wiring", "missing", "too many"],
)
def test_weights_of_another_model_are_rejected_with_the_difference(change, message):
    config, state = describe(MLNClassifier(16, 3, branching=4))
    with pytest.raises(FormatError, match=rf"(?s)the weights are not .*({message})"):
        rebuild(config, change(state))


# ------------------------------------------------------------------------------------------------------------- save


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class Tanh(nn.Tanh):
    """Named like PyTorch's, and not it."""


@pytest.mark.parametrize("activation", [Swish, Tanh, Tanh(), nn.Sequential(nn.Tanh(), nn.Sigmoid())], ids=str)
def test_an_activation_that_a_file_cannot_name_is_never_built_from_one(activation, tmp_path):
    save(MLNClassifier(16, 3, branching=4, activation=activation), tmp_path / "net")
    with pytest.raises(FormatError, match="activation"):
        load(tmp_path / "net")


def test_what_cannot_be_saved_leaves_the_old_model_alone(folder):
    before = files_under(folder)
    with pytest.raises(OptionError, match="layers of this library"):
        save(nn.LSTM(4, 2), folder)
    assert files_under(folder) == before


@pytest.mark.parametrize(
    "content",
    [{"notes.txt": "keep me"}, {"config.json": '{"model_type": "bert"}', "model.safetensors": "years of training"}],
)
def test_a_path_that_is_no_model_of_ours_is_never_overwritten(content, tmp_path):
    (tmp_path / "net").mkdir()
    for name, text in content.items():
        (tmp_path / "net" / name).write_text(text)
    before = files_under(tmp_path)
    for path in (tmp_path / "net", tmp_path / "net" / next(iter(content))):
        with pytest.raises(FormatError, match="only replaces model folders"):
            save(MLP(4, 3, hidden=2), path)
    assert files_under(tmp_path) == before


def test_killed_at_any_moment_the_folder_has_the_old_model_or_the_new_one_and_the_users_files(tmp_path):
    nets, x = [MLNClassifier(16, 3, branching=4).eval() for _ in range(2)], torch.randn(2, 16)
    outputs, seen = [net(x) for net in nets], set()
    for step in itertools.count(1):
        folder = tmp_path / f"{step}"
        save(nets[0], folder)
        (folder / "notes.txt").write_text("mine")
        killed = killed_at(step, lambda folder=folder: save(nets[1], folder), folder)
        same = [torch.equal(load(folder)(x), output) for output in outputs]
        assert sum(same) == 1
        seen.add(same.index(True))
        assert (folder / "notes.txt").read_text() == "mine"
        if not killed:
            break
    assert seen == {0, 1}
    assert step > 4


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        (MLNClassifier(16, 3, branching=4), {"in_features": 2**31}),
        (
            create_model("dendritic-network", in_features=8, out_features=2, hidden=[4], branching=2, fan_in=4),
            {"fan_in": 2**31},
        ),
        (
            create_model("dendritic-network", in_features=8, out_features=2, hidden=[4], branching=2, fan_in=4),
            {"hidden": [2**31]},
        ),
        (create_model("dense-network", in_features=8, out_features=2, hidden=[5]), {"in_features": 2**31}),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_size_that_the_weights_do_not_have_is_rejected_before_anything_is_built(
    model, changes, tmp_path, monkeypatch
):
    save(model, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    edit(tmp_path / "model", arguments=config["arguments"] | changes)
    monkeypatch.setattr(storage_models, "create_model", None)  # not called
    assert_rejected(tmp_path / "model", f"{next(iter(changes))} .* must be a size of the weights")


def test_a_layer_of_torch_that_the_weights_do_not_have_is_rejected_before_it_is_built(tmp_path):
    save(nn.Sequential(nn.Linear(8, 2)), tmp_path / "model")
    text = (tmp_path / "model" / "config.json").read_text()
    (tmp_path / "model" / "config.json").write_text(text.replace('"in_features": 8', f'"in_features": {2**40}'))
    assert_rejected(tmp_path / "model", "in_features .* must be a size of the weights")


def put_weights(folder, content):
    """Replace the weights by other bytes, with their digest in the config."""
    digest = hashlib.sha256(content).hexdigest()
    weights_of(folder).rename(folder / f"weights-{digest[:8]}.safetensors").write_bytes(content)
    edit(folder, weights_sha256=digest)


def test_weights_that_state_as_many_inputs_as_the_config_are_rejected_too(tmp_path, monkeypatch):
    folder, huge = tmp_path / "model", 2**31
    save(create_model("dendritic-network", in_features=8, out_features=2, hidden=[4], branching=2, fan_in=4), folder)
    tensors = safetensors.torch.load(weights_of(folder).read_bytes())
    put_weights(folder, safetensors.torch.save(tensors | {"hidden.0.forest_in_features": torch.tensor(huge)}))
    arguments = json.loads((folder / "config.json").read_text())["arguments"]
    edit(folder, arguments=arguments | {"in_features": huge})
    monkeypatch.setattr(storage_models, "create_model", None)  # not called
    assert_rejected(folder, "in_features .* must be a size of the weights")


def test_a_header_that_states_more_than_the_file_holds_is_rejected(tmp_path):
    folder = tmp_path / "model"
    save(nn.Sequential(nn.Linear(8, 2)), folder)
    content = weights_of(folder).read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = content[8:end].replace(b"[2,8]", b"[2,2147483648]")
    put_weights(folder, len(header).to_bytes(8, "little") + header + content[end:])
    text = (folder / "config.json").read_text().replace('"in_features": 8', f'"in_features": {2**31}')
    (folder / "config.json").write_text(text)
    assert_rejected(folder, "header")
