"""The page on the user's own data: samples, names, scaling and strokes from the data."""

import json

import numpy as np
import pytest
import torch
from own_data import blobs, write_houses, write_images, write_pets

from dendritree import MLNClassifier, create_model, save
from dendritree.errors import FormatError, ShapeError
from dendritree_lab.data import Scaling, load_dataset
from dendritree_lab.data.inputs import INPUTS_FILE, Inputs
from dendritree_lab.studies.engine.runner import Workers
from dendritree_lab.studies.fair import tune
from dendritree_lab.view import open_gallery
from dendritree_lab.view.page_examples import exhibit_of, exhibit_of_split
from dendritree_lab.view.pixels import measure_strokes


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """Folders of models that were tuned on images and on a table, and the images."""
    folder = tmp_path_factory.mktemp("own")
    pets = write_pets(folder / "pets", 60)
    houses = write_houses(folder / "houses.csv")
    options = {"budget": 300, "trials": 1, "steps": 40, "workers": Workers("here")}
    tune(str(pets), families=["sparse"], out=folder / "of-pets", **options)
    tune(str(houses), families=["tree"], target="price", out=folder / "of-houses", **options)
    return folder


def test_what_a_tuned_model_read_is_known_without_being_asked(tuned):
    exhibit = open_gallery(tuned / "of-pets")[0]
    split = load_dataset(tuned / "pets")
    assert exhibit.class_names == ["cat", "dog"]
    assert exhibit.pixels.scaling == split.scaled().scaling
    assert exhibit.pixels.image_shape == (1, 8, 8)
    assert {sample.label for sample in exhibit.samples} == {"cat", "dog"}
    assert exhibit.notes == ["Examples: pets. Accuracy 100.0% on 12 test examples."]
    assert "normalized with mean" in exhibit.pixels.describe()


def test_a_table_is_shown_in_its_own_units_and_read_scaled(tuned):
    exhibit = open_gallery(tuned / "of-houses")[0]
    split = load_dataset(tuned / "houses.csv", target="price")
    assert exhibit.pixels is None
    assert exhibit.features == split.features
    assert torch.equal(exhibit.samples[0].x[0], split.test.x[0])
    scaled = split.scaled().test.x[:1]
    assert exhibit.activity(split.test.x[:1], 0, 0)["output"] == pytest.approx(
        exhibit.model(scaled).tolist()[0], rel=1e-3
    )
    assert exhibit.notes[0].startswith("Examples: houses.csv. RMSE ")


def test_data_that_is_gone_leaves_its_names_and_its_scaling(tuned, tmp_path):
    inputs = json.loads((tuned / "of-pets" / INPUTS_FILE).read_text(encoding="utf-8"))
    assert inputs["data"] == str(tuned / "pets")
    model = open_gallery(tuned / "of-pets")[0].model
    save(model, tmp_path / "model")
    (tmp_path / INPUTS_FILE).write_text(json.dumps(inputs | {"data": str(tmp_path / "gone")}), encoding="utf-8")
    exhibit = open_gallery(tmp_path)[0]
    assert (exhibit.class_names, list(exhibit.samples)) == (["cat", "dog"], [])
    assert exhibit.pixels.scaling is not None
    assert exhibit.notes[0].startswith("No samples: there is no ")
    (tmp_path / INPUTS_FILE).write_text("{}", encoding="utf-8")
    with pytest.raises(FormatError, match="dendritree tune"):
        open_gallery(tmp_path)[0]
    built_in = Inputs("digits", image_shape=(1, 8, 8), scaling=Scaling((0.1307,), (0.3081,)))
    digits = exhibit_of("net", MLNClassifier(64, 10, branching=8), inputs=built_in)
    assert digits.pixels.scaling == built_in.scaling


def test_data_of_other_sizes_is_rejected(tuned):
    with pytest.raises(ShapeError, match=r"2 classes.*10 outputs"):
        exhibit_of("net", MLNClassifier(64, 10, branching=8), data=tuned / "pets")
    model = create_model("perceptrons", in_features=9, out_features=1)
    with pytest.raises(ShapeError, match=r"5 inputs.*9 inputs"):
        exhibit_of("net", model, data=tuned / "houses.csv", target="price")


# ------------------------------------------------------------------------------------------------------------- pixels


def strokes_image(top, left, ink=1.0, paper=0.0):
    image = np.full((1, 20, 20), paper)
    image[0, top : top + 10, left : left + 3] = ink
    return image


def test_size_place_and_width_of_strokes_are_measured():
    still = measure_strokes(np.stack([strokes_image(5, 8)] * 4))
    assert (still.box, still.centered, still.inverted) == (0.5, True, False)
    assert still.width == pytest.approx(3 / 20, abs=0.03)
    moving = measure_strokes(np.stack([strokes_image(2 * n, 3 * n) for n in range(5)]))
    assert not moving.centered
    dark = measure_strokes(np.stack([strokes_image(5, 8, ink=0.0, paper=1.0)] * 4))
    assert (dark.inverted, dark.box, dark.width) == (True, still.box, still.width)
    assert measure_strokes(np.zeros((2, 3, 8, 8))).inverted is False


def test_a_drawing_on_light_paper_reaches_the_model_as_dark_ink(tmp_path):
    x, y = blobs(40)
    pixels_of = {}
    for name, images in (("dark", x), ("light", 255 - x // 4)):
        split = load_dataset(write_images(tmp_path / name, images, y, ("cat", "dog")))
        model = create_model("perceptrons", in_features=64, out_features=1)
        pixels_of[name] = exhibit_of_split("net", model, split, [None]).pixels
    drawing = np.zeros(pixels_of["light"].raster, np.uint8)
    drawing[:, :20] = 255
    light, dark = (
        pixels_of[name].to_input(pixels_of[name].of_drawing(drawing, centered=False)) for name in ("light", "dark")
    )
    assert pixels_of["light"].drawn.inverted
    assert torch.allclose(light, 1 - dark)


def test_floats_of_any_range_are_shown_from_0_to_1_and_read_as_they_are():
    x, y = blobs(40)
    split = load_dataset((x.astype(np.float64) * 3 - 100, y))
    exhibit = exhibit_of_split("net", create_model("perceptrons", in_features=64, out_features=1), split, [None])
    shown = torch.cat([sample.x for sample in exhibit.samples])
    assert -0.05 <= shown.min() <= shown.max() <= 1.05
    assert exhibit.pixels.to_input(exhibit.samples[0].x).min() < 0
    split_rows = {tuple(row.round().int().tolist()) for row in split.test.x}
    assert tuple(exhibit.pixels.to_input(exhibit.samples[0].x)[0].round().int().tolist()) in split_rows
