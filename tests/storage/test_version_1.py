"""Folders that version 1 wrote, made by hand: models gave probabilities by default, tables had a file of columns."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import dendritree
from dendritree.errors import FormatError
from dendritree.sklearn import DendriticClassifier, DendriticRegressor
from dendritree.sklearn.tables import TableModel, load_table_model
from dendritree.storage import load, load_model, save
from dendritree.storage.folders import folder_format


def write(folder, config, tensors, **files):
    folder.mkdir(parents=True)
    for name, content in {"config": config, **files}.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    save_file(tensors, folder / "weights.safetensors")
    return folder


def model_config(model, **arguments):
    return {
        "format": "dendritree-model",
        "version": 1,
        "model": model,
        "arguments": arguments,
        "dtype": "float32",
    }


def mln(**options):
    return dendritree.MLNClassifier(16, 3, branching=4, **options).eval()


MLN = {"in_features": 16, "out_features": 3, "branching": 4}


@pytest.mark.parametrize(
    ("said", "last"),
    [({}, nn.Softmax), ({"output": "logits"}, nn.Identity), ({"output": "probabilities"}, nn.Softmax)],
    ids=str,
)
def test_a_model_gives_probabilities_unless_its_arguments_say_otherwise(tmp_path, said, last):
    expected, x = mln(**{"output": "probabilities", **said}), torch.randn(5, 16)
    loaded = load(write(tmp_path / "net", model_config("mln", **MLN, **said), expected.state_dict()))
    assert isinstance(loaded.output, last)
    assert torch.equal(loaded(x), expected(x))


def test_what_was_loaded_is_saved_as_version_2_and_gives_the_same(tmp_path):
    expected, x = mln(output="probabilities"), torch.randn(5, 16)
    folder = write(tmp_path / "net", model_config("mln", **MLN), expected.state_dict())
    save(load_model(folder), folder)
    config = json.loads((folder / "config.json").read_text())
    assert (config["version"], config["arguments"]["output"]) == (2, "probabilities")
    assert torch.equal(load(folder)(x), expected(x))


def test_a_model_without_an_output_is_built_as_it_was(tmp_path, monkeypatch):
    from dendritree.models import registry

    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))

    @registry.register("scaled", example={})
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

    folder = write(tmp_path / "net", model_config("scaled"), Scaled().state_dict())
    assert isinstance(load(folder), Scaled)


def estimator_config(name, network, **more):
    """As `DendriticClassifier(epochs=3, ...)` was described."""
    return {
        "format": "dendritree-estimator",
        "version": 1,
        "estimator": name,
        "options": {"epochs": 3, "random_state": 3, "budget": "0.3k", "device": "cpu"},
        "n_features": 2,
        "feature_names": None,
        "epochs": 3,
        "loss_curve": [1.0, 0.5, 0.25],
        "seed": 7,
        "network": network,
        **more,
    }


NETWORK = model_config("perceptrons", in_features=2, out_features=3, output="logits")
WEIGHT = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])


def scales(part, count):
    values = {"total": torch.tensor(4.0), "mean": torch.zeros(count), "squares": 4 * torch.ones(count)}
    return {f"{part}.{name}": value.double() for name, value in values.items()}


def network_tensors(outputs):
    """A linear network that gives its inputs, and minus their sum."""
    net = dendritree.create_model("perceptrons", in_features=2, out_features=outputs, output="logits")
    state = {key: torch.zeros_like(value) for key, value in net.state_dict().items()}
    (weight,) = [key for key, value in state.items() if value.shape == (outputs, 2)]
    state[weight] = WEIGHT[:outputs]
    return {f"network.{key}": value for key, value in state.items()}


def write_classifier(folder, **files):
    classes = {"dtype": "str", "values": ["first", "neither", "second"]}
    config = estimator_config("DendriticClassifier", NETWORK, classes=classes)
    return write(folder, config, network_tensors(3) | scales("inputs", 2), **files)


ROWS = np.array([[2.0, 1.0], [0.0, 3.0], [-1.0, -2.0]])


def test_a_classifier_opens(tmp_path):
    loaded = load(write_classifier(tmp_path / "model"))
    assert isinstance(loaded, DendriticClassifier)
    assert loaded.predict(ROWS).tolist() == ["first", "neither", "second"]
    assert (loaded.n_iter_, loaded.loss_curve_, loaded.budget) == (3, [1.0, 0.5, 0.25], "0.3k")


def test_a_regressor_opens(tmp_path):
    network = {**NETWORK, "arguments": {**NETWORK["arguments"], "out_features": 1}}
    tensors = network_tensors(1) | scales("inputs", 2) | scales("targets", 1)
    config = estimator_config("DendriticRegressor", network, one_target=True)
    loaded = load(write(tmp_path / "model", config, tensors))
    assert isinstance(loaded, DendriticRegressor)
    np.testing.assert_allclose(loaded.predict(ROWS), ROWS[:, 0])


def columns(*names):
    number = {"kind": "number", "fill": 0.0, "categories": [], "rare": [], "missing": False}
    return {
        "format": "dendritree-table",
        "version": 1,
        "target": "winner",
        "task": "classification",
        "columns": [{"name": name, **number} for name in names],
        "left_out": [{"name": "land", "why": "has only one value"}],
    }


def test_a_model_of_a_table_opens_with_its_file_of_columns_and_is_replaced_without(tmp_path):
    pandas = pytest.importorskip("pandas")
    folder = write_classifier(tmp_path / "model", columns=columns("a", "b"))
    assert folder_format(folder) == "dendritree-table"
    table, expected = pandas.DataFrame(ROWS, columns=["a", "b"]), ["first", "neither", "second"]
    for loaded in (load(folder), load_table_model(folder)):
        assert isinstance(loaded, TableModel)
        assert loaded.estimator.predict(loaded.encoding.encode(table).x).tolist() == expected
        assert loaded.encoding.left_out == (("land", "has only one value"),)
    save(loaded, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "weights.safetensors"]
    again = load(folder)
    assert (again.target, again.task, again.encoding) == (loaded.target, loaded.task, loaded.encoding)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, r"columns\.json must have format 'dendritree-table': got {}"),
        ([], r"columns\.json must have format 'dendritree-table': got \[\]"),
        (columns("a"), r"columns must be the inputs of the estimator: got 1 and 2"),
        (columns("a", "b") | {"target": 3}, r"target of a table model must be a string: got 3"),
        (columns("a", "b") | {"version": 3}, r"must have version 1 or 2: got 3"),
        (columns("a", "b") | {"columns": [{"name": "a"}]}, r"."),
    ],
)
def test_a_file_of_columns_that_does_not_fit_is_rejected(tmp_path, content, message):
    folder = write_classifier(tmp_path / "model", columns=content)
    with pytest.raises(FormatError, match=message + r".*\(in .*model\)$"):
        load(folder)


def test_other_formats_are_rejected_where_one_is_asked_for(tmp_path):
    folder = write_classifier(tmp_path / "model")
    with pytest.raises(FormatError, match=r"must have format 'dendritree-table': got 'dendritree-estimator'"):
        load_table_model(folder)
    with pytest.raises(FormatError, match=r"must have format 'dendritree-model': got 'dendritree-estimator'"):
        load_model(folder)
