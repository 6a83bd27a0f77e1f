"""What can be opened, what is inferred from it, and how a model responds to an input."""

import numpy as np
import pytest
import safetensors.torch
import torch
from table_cases import houses

from dendritree import (
    DendriticClassifier,
    DendriticLayer,
    DendriticRegressor,
    MLNClassifier,
    create_model,
    list_models,
    save,
)
from dendritree.errors import FormatError, MissingDataError, OptionError, ShapeError
from dendritree.models.registry import model_entry
from dendritree.training import FitConfig, fit
from dendritree.training.examples import Split
from dendritree_lab.data import load_dataset, normalize
from dendritree_lab.data.builtin import PAPER
from dendritree_lab.data.tables.encoding import TableEncoding
from dendritree_lab.studies.engine.store import RunStore
from dendritree_lab.studies.paper.paper_trials import PaperTrial
from dendritree_lab.studies.paper.spec import TableRow
from dendritree_lab.studies.table.table_model import TableModel
from dendritree_lab.view import Exhibit, Pixels, open_gallery
from dendritree_lab.view.page_examples import exhibit_of


@pytest.mark.parametrize("name", list_models())
def test_every_registered_model_can_be_shown(name):
    torch.manual_seed(0)
    model = create_model(name, **model_entry(name).example)
    exhibit = exhibit_of(name, model)
    about = exhibit.describe()
    assert about["parameters"] == sum(p.numel() for p in model.parameters())
    x = torch.rand(1, exhibit.in_features if "in_features" in model_entry(name).example else 784)
    given = exhibit.pixels.to_input(x) if exhibit.pixels else x
    out = model(given).detach()
    for number, layer in enumerate(exhibit.layers):
        grid = about["layers"][number]["grid"]
        assert grid["tiles"] * grid["height"] * grid["width"] >= layer.in_features
        seen = exhibit.activity(x, number, layer.neurons - 1)
        assert len(seen["reads"]) == layer.in_features
        assert seen["dendrites"][-1] == pytest.approx(seen["neurons"][number][-1], abs=1e-3)
        np.testing.assert_allclose(seen["output"], out.flatten(), atol=1e-3)
    assert sum(seen["classes"]) == pytest.approx(1, abs=1e-3)


def test_layers_come_in_the_order_in_which_they_run():
    net = create_model("dendritic-network", in_features=64, hidden=[12, 6], out_features=10, fan_in=4, norm="batch")
    exhibit = Exhibit("net", net, Pixels((1, 8, 8)))
    assert [(layer.name, layer.neurons) for layer in exhibit.layers] == [
        ("hidden.0", 12),
        ("hidden.2", 6),
        ("readout", 10),
    ]
    assert [layer["grid"]["of"] for layer in exhibit.describe()["layers"]] == ["pixels", "neurons", "neurons"]
    x = torch.rand(1, 64)
    with torch.no_grad():
        expected = net.hidden[1](net.hidden[0](x)).flatten()
    np.testing.assert_allclose(exhibit.activity(x, 1, 0)["reads"], expected, atol=1e-4)


def test_one_output_is_two_classes_and_a_quantity_is_a_number():
    yes_or_no = Exhibit("binary", create_model("mln-binary", in_features=16, branching=4), None, classes=("4", "9"))
    seen = yes_or_no.activity(torch.ones(1, 16), 0, 0)
    likely = torch.tensor(seen["output"][0]).sigmoid().item()
    assert seen["classes"] == pytest.approx([1 - likely, likely], abs=1e-3)
    model = create_model("dendritic-network", in_features=8, hidden=[4], out_features=1, output="logits")
    quantity = Exhibit("houses", model, None)
    assert quantity.describe()["classes"] == []
    assert quantity.activity(torch.ones(1, 8), 0, 0)["classes"] == []


def test_pixels_are_told_by_the_models_own_answers(tmp_path):
    """The same sizes, trained on pixels from 0 to 1 and on normalized ones: each is recognized."""
    digits = load_dataset("digits")
    shifted = Split(*(type(part)(normalize(part.x), part.y) for part in (digits.train, digits.val, digits.test)))
    for name, split in (("plain", digits), ("shifted", shifted)):
        torch.manual_seed(0)
        net = MLNClassifier(64, 10, branching=8, output="logits")
        fit(net, split, FitConfig(epochs=6, lr=0.03))
        save(net, tmp_path / name)
    gallery = open_gallery(tmp_path)
    assert gallery.names == ["plain", "shifted"]
    assert [gallery[number].pixels.scaling for number in (0, 1)] == [None, PAPER]
    assert open_gallery(tmp_path / "plain", normalized=True)[0].pixels.scaling == PAPER  # options take precedence
    assert "digits" in gallery[0].notes[0]
    assert len(gallery[0].samples) == 40
    assert [sample.label for sample in gallery[0].samples[:10]] == list("0123456789")
    assert open_gallery(tmp_path / "plain", image="none")[0].pixels is None


def kept(weights):
    torch.manual_seed(0)
    config = {"in_features": 1024, "out_features": 10, "branching": 32}
    curves = {"train_loss": [2.0], "val_loss": [2.0], "train_acc": [0.4], "val_acc": [0.5]}
    row = TableRow("multiclass-dendritic", "multiclass", "mln", 32, 0.4)
    state = safetensors.torch.save(create_model("mln", **config).state_dict()) if weights else None
    return PaperTrial.make("paper", row, 0, 1, "mnist", 0.001, 10_890, 0.1, curves, arguments=config, weights=state)


def test_a_run_shows_the_models_that_it_kept_as_they_were_trained(tmp_path):
    with RunStore.create_or_open(tmp_path, {}) as store:
        store.add([kept(weights=True)])
    gallery = open_gallery(tmp_path)
    assert gallery.names == ["multiclass: dendritic b=32, p=0.4, paper"]
    exhibit = gallery[0]
    assert (exhibit.pixels.scaling, exhibit.pixels.shape) == (PAPER, (1, 32, 32))
    assert exhibit.activity(torch.zeros(1, 784), 0, 3)["reads"][0] == pytest.approx(-0.1307 / 0.3081, abs=1e-4)
    assert "50.0%" in exhibit.notes[0]
    with pytest.raises(OptionError, match="data"):
        open_gallery(tmp_path, data="mnist", image=None)
    with RunStore.create_or_open(tmp_path / "none", {}) as store:
        store.add([kept(weights=False)])
    with pytest.raises(FormatError, match="kept models"):
        open_gallery(tmp_path / "none")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"image": (1, 7, 7)}, ShapeError, "64"),
        ({"data": "mnst"}, MissingDataError, "did you mean 'mnist'"),
        ({"data": "adult"}, ShapeError, "adult has no images"),
    ],
)
def test_what_does_not_fit_the_model_is_rejected(options, error, message):
    with pytest.raises(error, match=message):
        exhibit_of("net", MLNClassifier(64, 10, branching=8), **options)
    with pytest.raises(OptionError, match="has none"):
        exhibit_of("net", torch.nn.ReLU())


def test_an_estimator_and_a_model_of_a_table_are_shown_by_column_on_raw_rows(tmp_path):
    frame = houses()
    rows = frame[["rooms", "garden"]].fillna(3).astype(float)
    quick = {"epochs": 3, "budget": 200, "random_state": 0}
    regressor = DendriticRegressor(**quick).fit(rows, frame.price)
    two = DendriticClassifier(**quick).fit(rows, frame.dear)
    encoding = TableEncoding.learn(frame[["rooms", "town"]])
    table = DendriticClassifier(**quick).fit(encoding.encode(frame).x, frame.town.fillna("Delft"))
    table_model = TableModel(table, encoding, "place", "classification")
    for name, model in {"numbers": regressor, "table": table_model, "two": two}.items():
        save(model, tmp_path / name)
    gallery = open_gallery(tmp_path)
    assert gallery.names == ["numbers", "table", "two"]
    row, given = torch.tensor([[4.0, 1.0]]), rows[:1].assign(rooms=4.0, garden=1.0)
    seen = gallery[0].activity(row, 0, 0)
    assert gallery[0].describe()["features"] == ["rooms", "garden"]
    assert seen["output"][0] == pytest.approx(regressor.predict(given)[0], rel=1e-4)
    assert gallery[0].samples[0].label == "the mean row"
    np.testing.assert_allclose(gallery[0].samples[0].x[0], rows.mean(), rtol=1e-6)
    np.testing.assert_allclose(gallery[2].activity(row, 0, 0)["classes"], two.predict_proba(given)[0], atol=1e-3)
    assert gallery[2].class_names == ["no", "yes"]
    assert gallery[1].features == table_model.encoding.features
    assert gallery[1].class_names == ["Delft", "Gouda", "Leiden"]
    with pytest.raises(OptionError, match="data"):
        open_gallery(tmp_path / "two", data="digits")[0]


def test_a_sequence_of_ones_own_is_shown(tmp_path):
    save(torch.nn.Sequential(DendriticLayer(64, 6, branching=8), torch.nn.Linear(6, 10)), tmp_path / "own")
    assert [layer.neurons for layer in open_gallery(tmp_path / "own")[0].layers] == [6, 10]
