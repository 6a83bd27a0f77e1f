"""What load rejects: files that are not ours, not whole, or not of one model."""

import functools
import json
import shutil

import pytest
import torch
from full_disk import files_under
from safetensors.torch import load_file, save_file

from dendritree.errors import DendritreeError, FormatError, OptionError
from dendritree.models import MLP, MLNClassifier
from dendritree.storage import load, save


def edit(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    for key, value in changes.items():
        if value is ...:
            del config[key]
        else:
            config[key] = value
    (folder / "config.json").write_text(json.dumps(config))


def edit_argument(folder, key, value):
    arguments = json.loads((folder / "config.json").read_text())["arguments"]
    edit(folder, arguments={**arguments, key: value})


def assert_rejected(folder, error, message):
    """Load rejects with that message and changes neither the files nor the random state."""
    before, random_state = files_under(folder.parent), torch.get_rng_state()
    with pytest.raises(error, match=message):
        load(folder)
    assert files_under(folder.parent) == before
    assert torch.equal(torch.get_rng_state(), random_state)


# --------------------------------------------------------------------------------------------- load: the config


def test_a_missing_folder_is_rejected(tmp_path):
    assert_rejected(tmp_path / "none", FormatError, r"a model folder must hold config\.json: found none \(in .*none\)")


def test_a_file_is_no_model_folder(tmp_path):
    (tmp_path / "net").write_text("hello")
    assert_rejected(tmp_path / "net", FormatError, r"a model folder must hold config\.json: found none \(in .*net\)")


def test_a_folder_without_config_is_rejected(folder):
    (folder / "config.json").unlink()
    assert_rejected(folder, FormatError, r"a model folder must hold config\.json: found none \(in .*net\)")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"not json", b'{"format": "dendritree-model",}', b"\xff\xfe\x00"], ids=repr
)
def test_a_config_that_is_no_json_is_rejected(folder, content):
    (folder / "config.json").write_bytes(content)
    assert_rejected(folder, FormatError, r"config\.json must be JSON")


@pytest.mark.parametrize(
    "content",
    [b"[" * 100_000, b'{"a":' * 100_000, b'{"lr": NaN}', b'{"lr": -Infinity}', b'{"name": "\\ud800"}', b"9" * 5000],
    ids=lambda content: repr(content[:20]),
)
def test_a_config_that_python_alone_would_read_is_rejected(folder, content):
    (folder / "config.json").write_bytes(content)
    assert_rejected(folder, FormatError, r"config\.json must be JSON: .{1,200} \(in .*net\)$")


def test_nesting_that_is_json_and_too_deep_for_an_argument_is_rejected(folder):
    edit_argument(folder, "branching", functools.reduce(lambda inner, _: [inner], range(400), []))
    assert_rejected(folder, FormatError, r"config\.json must describe a dendritree-model")


@pytest.mark.parametrize("content", ["[]", "3", "null", '"dendritree-model"', "{}", '{"model_type": "bert"}'])
def test_a_foreign_config_is_rejected(folder, content):
    (folder / "config.json").write_text(content)
    assert_rejected(folder, FormatError, r"config\.json must have format 'dendritree-model' or .*: got .*\(in .*net\)")


@pytest.mark.parametrize("value", ["dendritree-layer", "Dendritree-Model", 1, None, ...])
def test_another_format_is_rejected(folder, value):
    edit(folder, format=value)
    assert_rejected(folder, FormatError, r"config\.json must have format 'dendritree-model' or .*: got .*\(in .*net\)")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(3, "3; a newer dendritree"), (0, "0"), ("1", "'1'"), (True, "True"), (None, "None"), (..., "None")],
)
def test_another_version_is_rejected(folder, value, shown):
    edit(folder, version=value)
    assert_rejected(folder, FormatError, rf"config\.json must have version 1 or 2: got {shown}")


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("model", 3, "str"),
        ("model", ..., "str"),
        ("arguments", [], "dict"),
        ("arguments", ..., "dict"),
        ("dtype", None, "str"),
        ("dtype", ..., "str"),
    ],
)
def test_a_config_entry_of_the_wrong_kind_is_rejected(folder, key, value, kind):
    edit(folder, **{key: value})
    shown = "None" if value is ... else repr(value).replace("[", r"\[")
    assert_rejected(folder, FormatError, rf"{key} in config\.json must be a {kind}: got {shown}")


@pytest.mark.parametrize("value", ["float33", "load", "Tensor", "", "float8_e5m2"])
def test_a_dtype_torch_does_not_have_is_rejected(folder, value):
    edit(folder, dtype=value)
    assert_rejected(
        folder, FormatError, rf"dtype in config\.json must name a floating-point type of torch: got '{value}'"
    )


@pytest.mark.parametrize("build", [lambda: MLNClassifier(16, 3, branching=4), lambda: MLP(16, 3, hidden=2)])
@pytest.mark.parametrize("value", ["int32", "bool"])
def test_a_dtype_that_holds_no_weights_is_rejected(tmp_path, build, value):
    save(build(), tmp_path / "net")
    edit(tmp_path / "net", dtype=value)
    assert_rejected(tmp_path / "net", DendritreeError, rf"dtype.*{value}")


def test_a_model_this_version_does_not_know_is_rejected(folder):
    edit(folder, model="mln-quaternary")
    assert_rejected(folder, DendritreeError, r"model must be one of .*: got 'mln-quaternary'")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("branches", 4, r"one of .*'branching'.*: got 'branches'"),
        ("branching", 3, r"fan_in must be branching \*\* depth: got fan_in 16, branching 3"),
        ("dtype", "float32", r"an argument in config\.json must not be device or dtype: got dtype"),
        ("device", "meta", r"an argument in config\.json must not be device or dtype: got device"),
        ("device", "cuda", r"an argument in config\.json must not be device or dtype: got device"),
        ("activation", {"torch.nn": "PReLU", "device": "meta"}, r"must not be device or dtype: got device"),
        ("activation", {"torch.nn": "PReLU", "num_parameters": -1}, r"must describe a dendritree-model: RuntimeError"),
        ("wiring", {"wiring": "random", "dtype": "float32"}, r"must not be device or dtype: got dtype"),
        ("in_features", 10**30, r"must describe a dendritree-model"),
        ("wiring", {"wiring": "tangled"}, r"tangled"),
        ("wiring", {"wiring": ["shared"]}, r"wiring"),
        ("wiring", {"wiring": "shared", "twist": 3}, r"twist"),
        ("activation", {"torch.nn": "LeakyRelu"}, r"known wiring or a module of torch\.nn: got .*LeakyRelu"),
        ("activation", {"torch.nn": "functional"}, r"known wiring or a module of torch\.nn: got .*functional"),
        ("activation", {"torch.nn": "LeakyReLU", "slope": 0.1}, r"slope"),
        ("activation", {"torch.nn": "Linear"}, r"Linear"),
        ("activation", {"os": "system"}, r"known wiring or a module of torch\.nn: got .*system"),
    ],
)
def test_an_argument_no_model_was_saved_with_is_rejected(folder, key, value, message):
    edit_argument(folder, key, value)
    assert_rejected(folder, DendritreeError, message)


# --------------------------------------------------------------------------------------------- load: the weights

WRONG_WEIGHTS = r"weights\.safetensors does not hold the weights that config\.json describes"


def test_missing_weights_are_rejected(folder):
    (folder / "weights.safetensors").unlink()
    assert_rejected(folder, FormatError, r"a model folder must hold weights\.safetensors: found none \(in .*net\)")


@pytest.mark.parametrize("part", [0.0, 0.001, 0.01, 0.2, 0.5, 0.9, 0.999])
def test_truncated_weights_are_rejected(folder, part):
    content = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(content[: int(part * len(content))])
    assert_rejected(folder, FormatError, WRONG_WEIGHTS)


def test_a_pickle_is_rejected(folder):
    torch.save(MLNClassifier(16, 3, branching=4).state_dict(), folder / "weights.safetensors")
    assert_rejected(folder, FormatError, WRONG_WEIGHTS)


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (lambda: MLNClassifier(16, 4, branching=4), r"neurons 3 against 4"),
        (lambda: MLNClassifier(16, 3, branching=2), r"edges 60 against 90"),
        (lambda: MLNClassifier(32, 3, branching=2), r"in_features 16 against 32"),
        (lambda: MLP(16, 3, hidden=4), r"readout"),
    ],
    ids=["neurons", "tree", "inputs", "model"],
)
def test_weights_of_another_model_are_rejected_with_the_difference(folder, other, difference, tmp_path):
    save(other(), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "weights.safetensors", folder / "weights.safetensors")
    assert_rejected(folder, FormatError, rf"(?s){WRONG_WEIGHTS}.*{difference}")


def test_weights_of_another_wiring_are_rejected_with_the_difference(folder):
    state = load_file(folder / "weights.safetensors")
    state["layer.forest_source"][:2] = torch.tensor([1, 0])
    save_file(state, folder / "weights.safetensors")
    assert_rejected(folder, FormatError, rf"(?s){WRONG_WEIGHTS}.*wiring: source\[0\] is 0 against 1")


@pytest.mark.parametrize("key", ["layer.weight", "layer.bias", "layer.forest_source", "layer.forest_format"])
def test_weights_without_an_entry_are_rejected(folder, key):
    state = load_file(folder / "weights.safetensors")
    del state[key]
    save_file(state, folder / "weights.safetensors")
    assert_rejected(folder, FormatError, rf"(?s){WRONG_WEIGHTS}.*layer.*{key.removeprefix('layer.')}")


def test_weights_with_an_entry_too_many_are_rejected(folder):
    state = load_file(folder / "weights.safetensors")
    save_file({**state, "surprise": torch.ones(3)}, folder / "weights.safetensors")
    assert_rejected(folder, FormatError, rf"(?s){WRONG_WEIGHTS}.*surprise")


def test_weights_of_the_same_form_that_were_not_saved_with_the_config_are_rejected_unless_asked_for(folder, tmp_path):
    save(MLNClassifier(16, 3, branching=4), tmp_path / "other")
    shutil.copy(tmp_path / "other" / "weights.safetensors", folder / "weights.safetensors")
    message = (
        r"weights\.safetensors must be the file that config\.json was written with: its SHA-256 is .*remove weights_"
    )
    assert_rejected(folder, FormatError, message)
    edit(folder, weights_sha256=...)
    load(folder)


def test_one_changed_bit_is_noticed(folder):
    save(MLP(16, 3, hidden=2), folder)
    content = bytearray((folder / "weights.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "weights.safetensors").write_bytes(content)
    assert_rejected(folder, FormatError, "SHA-256")


def test_a_device_that_is_not_here_is_the_mistake_of_whoever_names_it(folder):
    with pytest.raises(OptionError, match=r"device must be one that torch has here: got 'nowhere' \(.+\)$"):
        load(folder, device="nowhere")
