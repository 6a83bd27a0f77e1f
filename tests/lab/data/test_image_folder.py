"""Folders of images, one per class."""

import numpy as np
import pytest
import torch
from own_data import blobs, write_images, write_pets
from PIL import Image

from dendritree.errors import FormatError, OptionError
from dendritree_lab.data import load_dataset


def test_gray_images_of_one_size_keep_it_and_every_pixel(tmp_path):
    x, y = blobs(40, (8, 6))
    split = load_dataset(write_images(tmp_path / "pets", x, y, ("cat", "dog")))
    assert (split.name, split.image_shape, split.classes) == ("pets", (1, 8, 6), ("cat", "dog"))
    assert split.notes == (
        "24 training, 8 validation and 8 test examples, split at random with seed 0",
        "images of 8 x 6 pixels, gray",
    )
    expected = x.reshape(40, -1).astype(np.float32) / np.float32(255)
    rows = {row.tobytes(): label for row, label in zip(expected, y, strict=True)}
    for part in split.parts:
        assert all(rows[row.numpy().tobytes()] == label for row, label in zip(part.x, part.y, strict=True))


def test_train_and_test_folders_are_kept_apart(tmp_path):
    write_pets(tmp_path / "train", 30)
    write_pets(tmp_path / "test", 10)
    split = load_dataset(str(tmp_path))
    assert [len(part) for part in split.parts] == [24, 6, 10]
    assert split.classes == ("cat", "dog")


def test_color_is_found_in_the_pixels_and_kept_channel_by_channel(tmp_path):
    gray, y = blobs(20)
    color = np.stack([gray, gray // 2, 255 - gray], axis=-1)
    split = load_dataset(write_images(tmp_path / "color", color, y, "ab"))
    assert split.image_shape == (3, 8, 8)
    red, green, blue = split.train.x.reshape(-1, 3, 64).unbind(1)
    assert torch.allclose(red + blue, torch.ones(1))
    assert torch.allclose(green, red / 2, atol=1 / 255)
    assert load_dataset(write_images(tmp_path / "gray", gray, y, "ab", mode="RGB")).image_shape == (1, 8, 8)
    assert load_dataset(tmp_path / "color", image=(1, 8, 8)).image_shape == (1, 8, 8)
    assert load_dataset(tmp_path / "gray", image=(3, 4, 4)).image_shape == (3, 4, 4)


def test_sizes_that_differ_are_resized_and_it_is_said(tmp_path):
    write_pets(tmp_path, 20, size=(8, 8))
    write_images(tmp_path, *blobs(3, (12, 16)), ("cat", "dog"), ending=".jpg")
    split = load_dataset(tmp_path)
    assert split.image_shape == (1, 32, 32)
    assert split.notes[1] == "images of 32 x 32 pixels, gray, resized from 8 x 8 to 12 x 16"
    assert load_dataset(tmp_path, image=(1, 10, 12)).image_shape == (1, 10, 12)


def test_transparency_palettes_16_bits_and_turned_photographs(tmp_path):
    write_pets(tmp_path, 20)
    clear = np.zeros((8, 8, 4), np.uint8)
    Image.fromarray(clear).save(tmp_path / "cat" / "z-clear.png")
    Image.fromarray(np.full((8, 8), 200, np.uint8)).convert("P").save(tmp_path / "cat" / "z-palette.png")
    Image.fromarray(np.full((8, 8), 0x8000, np.uint16)).save(tmp_path / "dog" / "z-deep.png")
    split = load_dataset(tmp_path)
    means = {round(float(row.mean()), 3) for part in split.parts for row in part.x}
    assert {1.0, round(200 / 255, 3), round(0x80 / 255, 3)} <= means
    turned = Image.fromarray(np.zeros((6, 10), np.uint8))
    exif = turned.getexif()
    exif[0x0112] = 6
    for name in ("cat", "dog"):
        for number in range(3):
            (tmp_path / "phone" / name).mkdir(parents=True, exist_ok=True)
            turned.save(tmp_path / "phone" / name / f"{number}.jpg", exif=exif)
    assert load_dataset(tmp_path / "phone").image_shape == (1, 10, 6)


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "header"])
def test_an_image_that_cannot_be_read_is_named(tmp_path, damage):
    write_pets(tmp_path, 20)
    bad = tmp_path / "dog" / "0003.png"
    content = bad.read_bytes()
    damaged = {"cut": content[:-30], "text": b"not an image", "empty": b"", "header": content[:20]}
    bad.write_bytes(damaged[damage])
    with pytest.raises(FormatError, match=r"dog/0003\.png"):
        load_dataset(tmp_path)


def test_folders_that_are_not_classes_are_told_what_is_missing(tmp_path):
    write_pets(tmp_path / "pets", 20)
    (tmp_path / "pets" / ".thumbnails").mkdir()
    load_dataset(tmp_path / "pets")
    (tmp_path / "pets" / "bird").mkdir()
    (tmp_path / "pets" / "bird" / "notes.txt").touch()
    with pytest.raises(FormatError, match=r"every class must have .*pets/bird"):
        load_dataset(tmp_path / "pets")
    with pytest.raises(FormatError, match=r"one folder per class, two or more: .* has \['pets'\]"):
        load_dataset(tmp_path)
    with pytest.raises(FormatError, match=r"one folder per class, two or more: .*cat has none"):
        load_dataset(tmp_path / "pets" / "cat")


def test_a_class_without_training_images_or_with_too_few_is_named(tmp_path):
    write_pets(tmp_path / "train", 20)
    write_pets(tmp_path / "test", 6)
    (tmp_path / "test" / "cat").rename(tmp_path / "test" / "bird")
    with pytest.raises(FormatError, match="also has 'bird'"):
        load_dataset(tmp_path)
    write_pets(tmp_path / "few", 5)
    with pytest.raises(OptionError, match=r"at least 3 examples .* 'dog' has 2"):
        load_dataset(tmp_path / "few")
    with pytest.raises(OptionError, match=r"1 channel .* got 2"):
        load_dataset(tmp_path / "few", image=(2, 8, 8))
