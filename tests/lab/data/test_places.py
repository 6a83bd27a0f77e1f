"""Places on this machine: which are looked at, in which order, and who may write to the cache."""

import gzip

import pytest
from data_cases import make_contents, make_file_set, write_files

from dendritree.errors import FormatError, OptionError
from dendritree.files import scratch_beside
from dendritree_lab.data.places import Place, cache_folder, local_places, locked, read_verified

FILE = make_file_set(name="tiny-images").files[1]
CONTENT = make_contents()[FILE.name]


def test_the_cache_is_where_the_desktop_standard_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "dendritree"


@pytest.mark.parametrize("ignored", [None, "", "relative/folder"])
def test_without_an_absolute_folder_the_cache_is_in_the_home(monkeypatch, tmp_path, ignored):
    monkeypatch.setenv("HOME", str(tmp_path))
    if ignored is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
    assert cache_folder() == tmp_path / ".cache" / "dendritree"


def test_the_named_folder_goes_first_and_the_argument_before_the_environment(bare_machine, monkeypatch, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    assert [place.folder for place in local_places()] == [bare_machine, tmp_path / "system"]
    monkeypatch.setenv("DENDRITREE_DATA", str(second))
    assert [place.folder for place in local_places()] == [second, bare_machine, tmp_path / "system"]
    assert [place.folder for place in local_places(first)] == [first, bare_machine, tmp_path / "system"]
    monkeypatch.setenv("DENDRITREE_DATA", "")
    assert local_places()[0].kind == "cache"


@pytest.mark.usefixtures("bare_machine")
def test_a_tilde_is_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    assert local_places("~/data")[0].folder == tmp_path / "data"


@pytest.mark.usefixtures("bare_machine")
@pytest.mark.parametrize("named", ["", "nowhere", "file"])
def test_a_named_folder_must_exist(monkeypatch, tmp_path, named):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OptionError, match=f"^data_dir must name a folder: got '{named}'$"):
        local_places(named)
    if named:
        monkeypatch.setenv("DENDRITREE_DATA", named)
        with pytest.raises(OptionError, match=f"^DENDRITREE_DATA must name a folder: got '{named}'$"):
            local_places()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("folder", ["", "tiny-images", "tiny_images"])
def test_a_named_folder_may_hold_files_directly_or_in_a_folder_of_the_data_set(tmp_path, folder, packed):
    write_files(tmp_path / folder, {FILE.name: CONTENT}, packed)
    path = Place("named", tmp_path, "").find("tiny-images", FILE)
    assert path == tmp_path / folder / (f"{FILE.name}.gz" if packed else FILE.name)
    assert read_verified(FILE, path) == CONTENT


def test_the_folder_of_the_data_set_goes_before_the_named_folder(tmp_path):
    """MNIST's and Fashion-MNIST's files have equal names: a folder of its own says which they are."""
    write_files(tmp_path, {FILE.name: b"of another data set"})
    write_files(tmp_path / "tiny-images", {FILE.name: CONTENT}, packed=True)
    assert Place("named", tmp_path, "").find("tiny-images", FILE).parent.name == "tiny-images"


@pytest.mark.parametrize("kind", ["cache", "system"])
def test_in_the_cache_and_the_systems_folder_only_the_folder_of_the_data_set_counts(tmp_path, kind):
    write_files(tmp_path, {FILE.name: CONTENT})
    assert Place(kind, tmp_path, "").find("tiny-images", FILE) is None


def test_a_folder_with_the_name_of_a_file_is_not_it(tmp_path):
    (tmp_path / FILE.name).mkdir()
    assert Place("named", tmp_path, "").find("tiny-images", FILE) is None


def test_a_wrong_file_is_rejected_by_its_path(tmp_path):
    write_files(tmp_path, {FILE.name: b"wrong"})
    with pytest.raises(FormatError, match=rf"^{FILE.name} must have sha256 \w+: got .*\({tmp_path}/{FILE.name}\)$"):
        read_verified(FILE, tmp_path / FILE.name)


def test_a_truncated_packed_file_is_rejected_by_its_path(tmp_path):
    path = tmp_path / f"{FILE.name}.gz"
    path.write_bytes(gzip.compress(CONTENT)[:-9])
    with pytest.raises(FormatError, match=rf"^{FILE.name}.gz must be intact gzip data: .*\({path}\)$"):
        read_verified(FILE, path)


def test_the_lock_makes_the_folder_and_clears_what_a_killed_process_left(tmp_path):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    scratch_beside(folder / "images").write_bytes(b"half")
    (folder / "images").write_bytes(b"whole")
    (folder / ".notes.of the user").touch()
    said = []
    with locked(folder, said.append):
        assert sorted(path.name for path in folder.iterdir()) == [".lock", ".notes.of the user", "images"]
    assert said == []
