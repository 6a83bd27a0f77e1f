"""Images in one folder per class: PNG and JPEG files, resized to one shape."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dendritree.errors import FormatError, OptionError

from .arrays import PART_NAMES, Array, ImageShape, Parts, split_arrays
from .split import DataSplit

ENDINGS = (".png", ".jpg", ".jpeg")
LONGEST_SIDE = 64
"""Maximum side of images of one size that are not resized: trees read single pixels, and more cost parameters."""
SIDE = 32
"""Height and width to which images of several sizes, or larger ones, are resized."""


def has_images(folder: Path) -> bool:
    """Whether there is an image in a folder, at any depth."""
    return next(_images(folder), None) is not None


def find_images(path: Path) -> list[Path]:
    """An image, or all images in a folder at any depth, sorted; empty if it is neither."""
    return sorted(_images(path)) if path.is_dir() else [path] if path.suffix.lower() in ENDINGS else []


def read_image(path: Path, image_shape: ImageShape) -> Array:
    """The pixels of an image as bytes, converted to (channels, height, width): 1 channel for gray, 3 for color."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, about metadata: unreadable pixels are errors
        return np.ascontiguousarray(_pixels(path, image_shape[1:], "L" if image_shape[0] == 1 else "RGB"))


def split_image_folder(
    folder: Path, *, image_shape: ImageShape | None = None, seed: int = 0, name: str = ""
) -> DataSplit:
    """The images under a folder; the class of an image is the name of its folder.

    There may be one folder per class, or `train` and `test` (and `val`) with one folder per class each. The images keep
    their size if they have the same one, up to 64 pixels; otherwise they are resized to 32 x 32 pixels. They are gray
    if all of them are, else in color.

    Args:
        folder: the folder.
        image_shape: (channels, height, width) to convert them to: 1 channel for gray, 3 for color.
        seed: seed of the split into parts.
        name: the name of the data in reports.
    """
    if image_shape is not None and image_shape[0] not in (1, 3):
        raise OptionError(f"images have 1 channel (gray) or 3 (color): got {image_shape[0]}")
    by_part = {PART_NAMES[each.name.lower()]: each for each in _folders(folder) if each.name.lower() in PART_NAMES}
    parts = by_part if "train" in by_part else {"train": folder}
    files = {part: _by_class(path) for part, path in parts.items()}
    classes = sorted(files["train"])
    for part, by_class in files.items():
        if unknown := sorted(set(by_class) - set(classes)):
            raise FormatError(f"every class must be in {parts['train']}: {parts[part]} also has {unknown[0]!r}")
    mode = "L" if image_shape and image_shape[0] == 1 else "RGB"
    arrays: Parts = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, about metadata: unreadable pixels are errors
        paths = [path for by_class in files.values() for images in by_class.values() for path in images]
        size, note = (image_shape[1:], ", resized as requested") if image_shape else _common_size(paths)
        for part, by_class in files.items():
            named = [(path, number) for number, each in enumerate(classes) for path in by_class.get(each, [])]
            x = np.stack([_pixels(path, size, mode) for path, _ in named])  # (images, channels, height, width)
            arrays[part] = x, np.array([number for _, number in named])
    if image_shape is None and all((x == x[:, :1]).all() for x, _ in arrays.values()):
        arrays = {part: (x[:, :1], y) for part, (x, y) in arrays.items()}
    split = split_arrays(arrays, names=classes, seed=seed, name=name)
    color = "gray" if arrays["train"][0].shape[1] == 1 else "in color"
    return replace(split, notes=(*split.notes, f"images of {size[0]} x {size[1]} pixels, {color}{note}"))


def _folders(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))


def _images(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and not path.name.startswith("."))


def _by_class(folder: Path) -> dict[str, list[Path]]:
    """The images of each class, sorted by name."""
    images = {each.name: sorted(_images(each)) for each in _folders(folder)}
    if len(images) < 2:
        raise FormatError(f"images must be in one folder per class, two or more: {folder} has {[*images] or 'none'}")
    if empty := [name for name, own in images.items() if not own]:
        raise FormatError(f"every class must have PNG or JPEG images: there are none in {folder / empty[0]}")
    return images


def _read(path: Path, read: Callable[[Any], Any]) -> Any:
    """The result of a function of the opened image, or an error that names the file."""
    from PIL import Image

    try:
        with Image.open(path, formats=("PNG", "JPEG")) as opened:
            return read(opened)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise FormatError(f"could not read {path} as a PNG or JPEG image: {error!s:.120}") from None


def _common_size(paths: list[Path]) -> tuple[tuple[int, int], str]:
    """Height and width for all images, and how they were determined, in words."""

    def upright(image: Any) -> tuple[int, int]:
        width, height = image.size
        on_its_side = image.getexif().get(0x0112) in (5, 6, 7, 8)  # the orientation, which `_pixels` respects
        return (width, height) if on_its_side else (height, width)

    sizes = sorted({_read(path, upright) for path in paths}, key=lambda size: (size[0] * size[1], size))
    if len(sizes) == 1 and max(sizes[0]) <= LONGEST_SIDE:
        return sizes[0], ""
    from_to = " to ".join(f"{height} x {width}" for height, width in dict.fromkeys((sizes[0], sizes[-1])))
    return (SIDE, SIDE), f", resized from {from_to}"


def _pixels(path: Path, size: tuple[int, int], mode: str) -> Array:
    """The pixels as bytes, (channels, height, width). Transparent areas become white."""
    from PIL import Image, ImageOps

    image = _read(path, ImageOps.exif_transpose)
    if image.mode.startswith("I"):  # 16 bits
        image = Image.fromarray((np.asarray(image, dtype=np.int64) >> 8).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    image = image.convert("RGB")
    height, width = size
    if image.size != (width, height):
        shrinks = image.width >= width and image.height >= height
        image = image.resize((width, height), Image.Resampling.BOX if shrinks else Image.Resampling.BILINEAR)
    pixels = np.asarray(image.convert(mode))
    return pixels[None] if mode == "L" else np.moveaxis(pixels, -1, 0)
