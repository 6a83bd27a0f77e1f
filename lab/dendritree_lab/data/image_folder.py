"""Images in one folder per class: PNG and JPEG files, resized to one shape. Needs the extra `images`."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dendritree.errors import FormatError, OptionError, import_extra

from .arrays import PART_NAMES, Array, Parts, split_arrays
from .split import DataSplit

ENDINGS = (".png", ".jpg", ".jpeg")
LONGEST_SIDE = 64
"""Maximum side of images of one size that are not resized: trees read single pixels, and more cost parameters."""
SIDE = 32
"""Height and width to which images of several sizes, or larger ones, are resized."""
ON_ITS_SIDE = (5, 6, 7, 8)
"""EXIF orientations that swap height and width."""
IMAGE_MODES_16 = ("I", "I;16", "I;16B", "I;16L", "I;16N")


def has_images(folder: Path) -> bool:
    """Whether there is an image in a folder, at any depth."""
    return next(_images(folder), None) is not None


def split_image_folder(
    folder: Path, *, image_shape: tuple[int, int, int] | None = None, seed: int = 0, name: str = ""
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
    import_extra("PIL.Image", extra="images")
    if image_shape is not None and image_shape[0] not in (1, 3):
        raise OptionError(f"images have 1 channel (gray) or 3 (color): got {image_shape[0]}")
    by_part = {PART_NAMES[each.name.lower()]: each for each in _folders(folder) if each.name.lower() in PART_NAMES}
    parts = by_part if "train" in by_part else {"train": folder}
    files = {part: _by_class(place) for part, place in parts.items()}
    classes = sorted(files["train"])
    for part, found in files.items():
        if unknown := sorted(set(found) - set(classes)):
            raise FormatError(f"every class must be in {parts['train']}: {parts[part]} also has {unknown[0]!r}")
    arrays: Parts = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, about metadata: unreadable pixels are errors
        size, note = _size([path for found in files.values() for each in found.values() for path in each], image_shape)
        for part, found in files.items():
            named = [(path, number) for number, each in enumerate(classes) for path in found.get(each, [])]
            x = np.stack([_pixels(path, size) for path, _ in named])  # (images, height, width, channels)
            arrays[part] = np.moveaxis(x, -1, 1), np.array([number for _, number in named])
    gray = image_shape[0] == 1 if image_shape else all(_is_gray(x) for x, _ in arrays.values())
    if gray:
        arrays = {part: (_to_gray(x), y) for part, (x, y) in arrays.items()}
    split = split_arrays(arrays, names=classes, seed=seed, name=name)
    shape = f"{size[0]} x {size[1]} pixels, {'gray' if gray else 'in color'}"
    return replace(split, notes=(*split.notes, f"images of {shape}{note}"))


def _folders(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))


def _images(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and not path.name.startswith("."))


def _by_class(folder: Path) -> dict[str, list[Path]]:
    """The images of each class, sorted by name."""
    classes = _folders(folder)
    if not classes:
        raise FormatError(f"images must be in one folder per class: {folder} has no folders")
    found = {each.name: sorted(_images(each)) for each in classes}
    if empty := [name for name, images in found.items() if not images]:
        raise FormatError(f"every class must have PNG or JPEG images: there are none in {folder / empty[0]}")
    for path in (path for images in found.values() for path in images):
        if not path.is_file():  # opening a pipe would block
            raise FormatError(f"an image must be a whole PNG or JPEG file: {path} is not a file")
    if len(found) == 1:
        raise FormatError(f"there must be at least two classes, one folder each: {folder} has only {classes[0].name!r}")
    return found


def _open(path: Path) -> Any:
    """The opened image, or an error that names the file."""
    image = import_extra("PIL.Image", extra="images")
    try:
        with path.open("rb") as file:
            opened = image.open(file, formats=("PNG", "JPEG"))
            opened.load()
        return import_extra("PIL.ImageOps", extra="images").exif_transpose(opened)
    except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
        reason = "not one of these" if isinstance(error, image.UnidentifiedImageError) else str(error)
        raise FormatError(
            f"an image must be a whole PNG or JPEG file: {path} ({reason.partition(chr(10))[0]:.120})"
        ) from None


def _size(paths: list[Path], image_shape: tuple[int, int, int] | None) -> tuple[tuple[int, int], str]:
    """Common height and width, and how they were determined, in words."""
    image = import_extra("PIL.Image", extra="images")
    if image_shape is not None:
        return image_shape[1:], ", resized as requested"
    sizes: Counter[tuple[int, int]] = Counter()
    for path in paths:
        try:
            with path.open("rb") as file, image.open(file, formats=("PNG", "JPEG")) as opened:  # reads only the header
                turned = opened.getexif().get(0x0112) in ON_ITS_SIDE
                sizes[opened.size if turned else opened.size[::-1]] += 1
        except (OSError, SyntaxError, ValueError, image.DecompressionBombError):
            _open(path)  # raises with the reason
            raise
    (most, _), *others = sizes.most_common()
    if not others and max(most) <= LONGEST_SIDE:
        return most, ""
    sides = sorted(sizes, key=lambda size: size[0] * size[1])
    from_to = " to ".join(f"{height} x {width}" for height, width in dict.fromkeys((sides[0], sides[-1])))
    return (SIDE, SIDE), f", resized from {from_to}"


def _pixels(path: Path, size: tuple[int, int]) -> Array:
    """The pixels as bytes, (height, width, 3). Transparent areas become white."""
    image = import_extra("PIL.Image", extra="images")
    opened = _open(path)
    if opened.mode in IMAGE_MODES_16:
        opened = image.fromarray((np.asarray(opened, dtype=np.int64) >> 8).astype(np.uint8))
    if opened.has_transparency_data:
        opened = opened.convert("RGBA")
        opened = image.alpha_composite(image.new("RGBA", opened.size, "white"), opened)
    opened = opened.convert("RGB")
    height, width = size
    if opened.size != (width, height):
        shrinks = opened.width >= width and opened.height >= height
        opened = opened.resize((width, height), image.Resampling.BOX if shrinks else image.Resampling.BILINEAR)
    return np.asarray(opened)


def _is_gray(x: Array) -> bool:
    return bool((x == x[:, :1]).all())


def _to_gray(x: Array) -> Array:
    """Luminance (ITU-R 601) as in Pillow, (images, 1, height, width); gray images keep their values."""
    if _is_gray(x):
        return x[:, :1]
    red, green, blue = np.moveaxis(x.astype(np.int64), 1, 0)
    gray: Array = (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16
    return gray.astype(np.uint8)[:, None]
