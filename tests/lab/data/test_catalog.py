"""The table of files and sources: complete, over HTTPS, and with the checksums that were published."""

import re

import pytest

from dendritree_lab.data import DATASETS
from dendritree_lab.data.catalog import COLLECTIONS, FILE_SETS
from dendritree_lab.data.sources import Carrier, Mirror, SpriteCarrier

FILE_SETS_ONCE = {file_set.name: file_set for file_set in FILE_SETS.values()}
OFFICIAL_MNIST = {
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}


def test_every_data_set_has_files_or_a_package_but_not_both():
    for name, data_set in DATASETS.items():
        assert (name in FILE_SETS) != bool(data_set.package)
    assert set(FILE_SETS) <= {*DATASETS, *COLLECTIONS}
    assert not set(DATASETS) & set(COLLECTIONS)


@pytest.mark.parametrize(
    ("name", "parent"), [("mnist-4-9", "mnist"), ("mnist-pairs", "mnist"), ("fashion-pairs", "fashion-mnist")]
)
def test_what_is_made_of_another_data_set_is_in_its_files(name, parent):
    assert FILE_SETS[name] is FILE_SETS[parent]


@pytest.mark.parametrize("file_set", FILE_SETS_ONCE.values(), ids=lambda file_set: file_set.name)
def test_every_file_has_a_digest_of_its_own_and_at_least_two_sources(file_set):
    digests = [file.digest for file in file_set.files]
    assert all(re.fullmatch(r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", digest) for digest in digests)
    assert len(set(digests)) == len(digests)
    assert len(file_set.sources) >= 2
    assert file_set.size == sum(file.size for file in file_set.files)


@pytest.mark.parametrize("file_set", FILE_SETS_ONCE.values(), ids=lambda file_set: file_set.name)
def test_mirrors_are_reached_over_https_and_given_up_within_seconds(file_set):
    mirrors = [source for source in file_set.sources if isinstance(source, Mirror)]
    assert mirrors
    assert all(mirror.url.startswith("https://") for mirror in mirrors)
    assert all(mirror.timeout <= 10 for mirror in mirrors)
    assert all(source.url.startswith("https://") for source in file_set.sources if isinstance(source, SpriteCarrier))


def test_mnist_has_its_official_checksums_and_after_the_mirrors_its_carrier():
    mnist = FILE_SETS["mnist"]
    assert {file.name: file.digest for file in mnist.files} == {
        name: f"md5:{digest}" for name, digest in OFFICIAL_MNIST.items()
    }
    assert [type(source) for source in mnist.sources] == [Mirror, Mirror, Carrier]


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_sizes_are_those_of_the_format(name):
    """An IDX file of d dimensions has 4 + 4 d bytes before its elements."""
    assert [file.size for file in FILE_SETS[name].files] == [
        16 + 60_000 * 784,
        8 + 60_000,
        16 + 10_000 * 784,
        8 + 10_000,
    ]
