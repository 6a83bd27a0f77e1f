"""Deep networks on the page: the maps of every stage, and what each pixel adds to the answer."""

import numpy as np
import pytest
import torch
from view_page import ANSWER, DESK, ONE, PHONE, on_sheet
from view_server import serving

from dendritree import FitConfig, create_model, fit
from dendritree_lab.data import load_dataset
from dendritree_lab.view import Gallery
from dendritree_lab.view.page_examples import exhibit_of

OPTIONS = {"in_features": 64, "out_features": 10, "hidden": [6, 8], "image_shape": (1, 8, 8), "kernel_size": 3}


@pytest.fixture(scope="module")
def exhibits():
    """A deep dendritic network that has learned a little, and a CNN, whose max-pooling cannot be taken apart."""
    torch.manual_seed(0)
    deep, cnn = (
        create_model("conv-network", **OPTIONS, stage=stage, places=2, depth=2) for stage in ("dendritic", "plain")
    )
    fit(deep, load_dataset("digits"), FitConfig(epochs=3, lr=0.02))
    return [exhibit_of(name, net, data="digits", normalized=False) for name, net in (("deep", deep), ("cnn", cnn))]


def test_the_pixels_of_a_deep_network_add_up_to_its_answer(exhibits):
    exhibit = exhibits[0]
    assert exhibit.pixels.image_shape == (1, 8, 8)
    assert exhibit.describe()["stages"] == [
        {"tiles": 6, "height": 4, "width": 4},
        {"tiles": 8, "height": 2, "width": 2},
    ]
    x = exhibit.samples[3].x
    found, why = exhibit.activity(x, 0, 3), exhibit.activity(x, 0, 3)["why"]
    assert found["output"][3] == pytest.approx(why["total"], abs=1e-3)
    assert why["blank"] + sum(why["pixels"]) == pytest.approx(why["total"], abs=0.01)
    blank = exhibit.model(torch.zeros(1, 64))[0, 3]
    assert why["blank"] == pytest.approx(float(blank), abs=1e-4)
    assert [len(values) for values in found["maps"]] == [6 * 16, 8 * 4]
    assert exhibit.grid(0) == {"of": "maps", "tiles": 8, "height": 2, "width": 2}


def test_a_cnn_has_maps_and_no_contributions(exhibits):
    found = exhibits[1].activity(exhibits[1].samples[0].x, 0, 0)
    assert found["why"] is None
    assert np.isfinite(found["maps"][0]).all()


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_the_page_shows_stages_contributions_and_that_the_read_out_has_no_dendrites(show, exhibits, width):
    with serving(Gallery("deep", ["deep", "cnn"], exhibits.__getitem__)) as port:
        page = show(width, port)
        assert page.value("document.getElementById('why-part').hidden") is True  # nothing is drawn yet
        for stroke in on_sheet(page, ONE):
            (page.drag if width == DESK else page.touch)(stroke)
        page.wait_until(f"{ANSWER} && !document.getElementById('why-part').hidden")
        captions = page.value("[...document.querySelectorAll('#stages figcaption')].map((each) => each.textContent)")
        assert captions == ["stage 1: 6 maps", "stage 2: 8 maps"]
        assert "exactly" in page.value("document.getElementById('why-text').textContent")
        text = page.value("document.getElementById('tree-text').textContent")
        assert "no dendrites; reads averages of the last maps" in text
        assert page.value("[...document.getElementById('beside').options].map((each) => each.disabled)") == [
            False,
            True,
            False,
        ]
        assert page.value("document.documentElement.scrollWidth") <= width
        assert page.complaints == []
        page.close()
