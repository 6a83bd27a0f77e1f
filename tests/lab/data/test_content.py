"""Content: the genuine bytes pass, everything else is rejected with rule and value, and nothing fills the memory."""

import gzip
import hashlib
import io
import re
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dendritree.errors import FormatError
from dendritree_lab.data.content import DataFile, check_content, unpack


def zipped(content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("other", b"something else")
        archive.writestr("part", content)
    return buffer.getvalue()


def tarred(content):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        member = tarfile.TarInfo("part")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


PACK = {"plain": bytes, "gzip": gzip.compress, "zip": zipped, "tar": tarred}


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
@given(content=st.binary(max_size=50), other=st.binary(max_size=50))
def test_only_the_genuine_bytes_pass(algorithm, content, other):
    expected = hashlib.new(algorithm, content).hexdigest()
    file = DataFile("labels", len(content), f"{algorithm}:{expected}")
    check_content(file, content, "here")
    if other != content:
        found = hashlib.new(algorithm, other).hexdigest()
        message = rf"^labels must have {algorithm} {expected}: got {found}.*\(there\)$"
        with pytest.raises(FormatError, match=message) as caught:
            check_content(file, other, "there")
        assert ("bytes instead of" in str(caught.value)) == (len(other) != len(content))


def test_a_wrong_size_is_told():
    file = DataFile("images", 47_040_016, "md5:0")
    with pytest.raises(FormatError, match="1,234 bytes instead of 47,040,016"):
        check_content(file, bytes(1234), "here")


@pytest.mark.parametrize("packing", PACK)
@given(content=st.binary(max_size=100))
def test_what_was_packed_is_unpacked(packing, content):
    assert unpack(PACK[packing](content), packing, "part", len(content)) == content


@pytest.mark.parametrize("packing", ["gzip", "zip", "tar"])
def test_a_small_file_that_unpacks_to_a_giant_is_cut_one_byte_beyond_the_limit(packing):
    assert unpack(PACK[packing](bytes(5_000_000)), packing, "part", 1000) == bytes(1001)


@pytest.mark.parametrize("packing", ["gzip", "zip", "tar"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_rejected(packing, share):
    packed = PACK[packing](bytes(range(256)) * 100)
    with pytest.raises(FormatError, match=rf"^part must be intact {packing} data: \w"):
        unpack(packed[: int(share * len(packed))], packing, "part", 25_600)


def test_a_gzip_file_with_one_changed_byte_is_rejected_by_its_checksum():
    packed = bytearray(gzip.compress(b"content" * 20))
    packed[-6] ^= 1  # in the checksum
    with pytest.raises(FormatError, match=r"intact gzip data: .*incorrect data check"):
        unpack(bytes(packed), "gzip", "part", 1000)


@pytest.mark.parametrize("packing", ["zip", "tar"])
def test_an_archive_without_the_part_is_rejected_by_its_name(packing):
    with pytest.raises(FormatError, match=re.escape("nothing must be intact")):
        unpack(PACK[packing](b"abc"), packing, "nothing", 3)


def test_a_folder_is_no_part():
    with pytest.raises(FormatError, match="folder is not a file"):
        unpack(tarred(b"abc"), "tar", "folder", 3)
