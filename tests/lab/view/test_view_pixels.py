"""From a drawing to the model's input: the same steps as in training, and MNIST's way of centering."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dendritree.errors import ShapeError
from dendritree_lab.data.builtin import PAPER
from dendritree_lab.studies.paper.paper_trials import enlarged
from dendritree_lab.view.pixels import Pixels

MNIST, DIGITS = Pixels((1, 28, 28)), Pixels((1, 8, 8))


def middle_of(image):
    """Row and column of the center of mass, in pixels from the edge."""
    return [float(image.sum(1 - axis) @ (np.arange(image.shape[axis]) + 0.5) / image.sum()) for axis in (0, 1)]


@pytest.mark.parametrize("shape", [(1, 28, 28), (1, 8, 8), (1, 28, 56), (1, 32, 32), (1, 200, 130)])
def test_an_image_that_is_drawn_as_squares_comes_back_as_it_was(shape):
    pixels = Pixels(shape)
    image = np.random.default_rng(0).integers(0, 256, shape[1:], dtype=np.uint8)
    scale = pixels.raster[0] // shape[1]
    drawing = image.repeat(scale, 0).repeat(scale, 1)
    assert drawing.shape == pixels.raster
    np.testing.assert_allclose(pixels.shrink(drawing, centered=False), image / 255, atol=1e-6)


@given(
    top=st.integers(0, 70), left=st.integers(0, 70), height=st.integers(6, 40), width=st.integers(6, 40),
)  # fmt: skip
def test_a_centered_drawing_has_mnists_size_and_place_wherever_it_was_drawn(top, left, height, width):
    drawing = np.zeros(MNIST.raster, dtype=np.uint8)
    drawing[top : top + height, left : left + width] = 255
    image = MNIST.shrink(drawing, centered=True)
    np.testing.assert_allclose(middle_of(image), [14, 14], atol=1e-5)
    rows, columns = (image > 0.01).any(1).sum(), (image > 0.01).any(0).sum()
    assert 20 <= max(rows, columns) <= 21  # 20 pixels, which may lie across one more
    assert image.sum() == pytest.approx(20 * 20 * min(height, width) / max(height, width), rel=1e-4)


def test_the_center_of_mass_counts_but_nothing_is_cut_off():
    drawing = np.zeros(MNIST.raster, dtype=np.uint8)
    drawing[10:90, 10:13] = 255  # a thin bar of 80 pixels with a heavy foot
    drawing[80:90, 10:60] = 255
    image = MNIST.shrink(drawing, centered=True)
    assert middle_of(image)[1] == pytest.approx(14, abs=0.1)  # ink is counted at the middle of its pixel
    assert image.sum() == pytest.approx((drawing > 0).sum() * (20 / 80) ** 2, rel=1e-4)  # all the ink is there
    assert image[0].sum() > 0 or image[-1].sum() > 0  # pushed to an edge, not over it


def test_the_papers_images_are_made_as_in_its_experiments():
    images = np.random.default_rng(0).integers(0, 256, (3, 28, 28), dtype=np.uint8)
    paper = Pixels((1, 28, 28), PAPER, side=32)
    given_images = torch.from_numpy(images).float().div(255).flatten(1)
    assert torch.equal(paper.to_input(given_images), enlarged(images))
    assert Pixels((1, 28, 28), PAPER, 32, as_image=True).to_input(given_images).shape == (3, 1, 32, 32)
    assert paper.to_unit(given_images).max() <= 1


def test_wrong_sizes_are_rejected():
    with pytest.raises(ShapeError, match="28x28"):
        Pixels((1, 8, 8), side=32)
    with pytest.raises(ShapeError, match="112"):
        MNIST.shrink(np.zeros((28, 28), dtype=np.uint8), centered=True)
