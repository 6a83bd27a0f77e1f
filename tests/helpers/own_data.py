"""Data as users bring it: folders of images, files of arrays, tables."""

import numpy as np


def blobs(count=40, size=(8, 8), classes=2, seed=0, low=40):
    """Images in bytes, (n, height, width), with a bright half that tells the class, and their classes."""
    random = np.random.default_rng(seed)
    y = np.arange(count) % classes
    x = random.integers(0, low, (count, *size))
    width = size[1] // classes
    for number in range(classes):
        x[y == number, :, number * width : (number + 1) * width] += 150
    return x.astype(np.uint8), y


def write_images(folder, images, y, names, ending=".png", mode=None):
    """One file per image, in a folder per class."""
    from PIL import Image

    for number, (image, label) in enumerate(zip(images, y, strict=True)):
        path = folder / names[label] / f"{number:04}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray(image)
        (picture if mode is None else picture.convert(mode)).save(path)
    return folder


def write_pets(folder, count=40, size=(8, 8), **options):
    """A folder of gray PNG files: cats are bright on the left, dogs on the right."""
    return write_images(folder, *blobs(count, size), ("cat", "dog"), **options)


def write_houses(path, rows=120, seed=0):
    """A CSV file: the price follows from the rooms and the town."""
    random = np.random.default_rng(seed)
    rooms, town = random.integers(1, 9, rows), random.choice(["Delft", "Gouda"], rows)
    price = 50 * rooms + 100 * (town == "Delft") + random.normal(0, 5, rows)
    lines = [f"{r},{t},{p:.1f},{'yes' if p > 250 else 'no'}" for r, t, p in zip(rooms, town, price, strict=True)]
    path.write_text("\n".join(["rooms,town,price,dear", *lines]) + "\n", encoding="utf-8")
    return path
