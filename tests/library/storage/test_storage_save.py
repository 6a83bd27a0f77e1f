"""What save rejects, and what it leaves behind when writing fails."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from full_disk import files_under, largest_file
from killed import killed_at
from torch import nn

from dendritree.errors import FormatError, OptionError
from dendritree.models import MLP, MLNClassifier, registry
from dendritree.models.registry import register
from dendritree.storage import load, save

# -------------------------------------------------------------------------------------------------- what it rejects


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class Tanh(nn.Tanh):
    """Named like PyTorch's, and not it."""

    def forward(self, x):
        return -super().forward(x)


@pytest.mark.parametrize(
    "activation",
    [Swish, Swish(), Tanh, Tanh(), nn.Sequential(nn.Tanh(), nn.Sigmoid())],
    ids=["class", "instance", "namesake class", "namesake instance", "chain"],
)
def test_an_activation_that_a_file_cannot_name_is_never_built_from_one(activation, tmp_path):
    save(MLNClassifier(16, 3, branching=4, activation=activation), tmp_path / "net")
    with pytest.raises(FormatError, match=r"into=model.*activation must be a plain value, a wiring or a module of"):
        load(tmp_path / "net")


def test_what_cannot_be_saved_leaves_the_old_model_alone(folder):
    before = files_under(folder.parent)
    with pytest.raises(OptionError, match="must hold layers of this library"):
        save(nn.LSTM(4, 2), folder)
    assert files_under(folder.parent) == before


@pytest.mark.parametrize(
    "content",
    [
        {"notes.txt": "keep me"},
        {"weights.safetensors": "of somebody else"},
        {"config.json": '{"model_type": "bert"}', "model.safetensors": "years of training"},
        {"config.json": "not even json", "src/main.js": "a whole project"},
    ],
    ids=["notes", "weights only", "another library's model", "another program's config"],
)
def test_a_folder_that_is_no_model_of_ours_is_never_overwritten(content, tmp_path):
    (tmp_path / "net").mkdir()
    for name, text in content.items():
        (tmp_path / "net" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "net" / name).write_text(text)
    before = files_under(tmp_path)
    with pytest.raises(FormatError, match=r"save only replaces model folders: .*net exists"):
        save(MLP(4, 3, hidden=2), tmp_path / "net")
    assert files_under(tmp_path) == before


def test_a_file_is_never_overwritten(tmp_path):
    (tmp_path / "net").write_text("keep me")
    with pytest.raises(FormatError, match=r"save only replaces model folders: .*net exists"):
        save(MLP(4, 3, hidden=2), tmp_path / "net")
    assert files_under(tmp_path) == {"net": b"keep me"}


# ----------------------------------------------------------------------------------------------- when writing fails


def test_overwriting_replaces_the_whole_model(folder):
    net, x = MLP(16, 2, hidden=3).eval(), torch.randn(4, 16)
    save(net, folder)
    assert torch.equal(load(folder)(x), net(x))
    assert [path.name for path in folder.parent.iterdir()] == ["net"]


@pytest.fixture
def noted_class(monkeypatch):
    """A model whose config is larger than its weights."""
    monkeypatch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))

    @register("noted", example={"note": ""})
    class Noted(nn.Module):
        def __init__(self, note: str) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1))

    return Noted


@pytest.mark.parametrize("stage", ["weights", "config"])
def test_a_full_disk_leaves_the_old_model_and_no_scratch(folder, noted_class, stage):
    before = files_under(folder.parent)
    large = MLP(400, 10, hidden=20) if stage == "weights" else noted_class("long story " * 500)
    with largest_file(4000), pytest.raises(Exception, match=r"(?i)file too large"):
        save(large, folder)
    assert files_under(folder.parent) == before
    assert isinstance(load(folder), MLNClassifier)
    save(large, folder)  # with room again it works
    assert files_under(folder.parent) != before


def test_a_full_disk_leaves_nothing_where_nothing_was(tmp_path):
    with largest_file(4000), pytest.raises(Exception, match=r"(?i)file too large"):
        save(MLP(400, 10, hidden=20), tmp_path / "net")
    assert files_under(tmp_path) == {}


def test_killed_at_any_moment_the_folder_has_the_old_model_or_the_new_one_and_the_users_files(tmp_path):
    nets, x = [MLNClassifier(16, 3, branching=4).eval() for _ in range(2)], torch.randn(2, 16)
    outputs, seen = [net(x) for net in nets], set()
    for step in itertools.count(1):
        place = tmp_path / f"{step}"
        save(nets[0], place)
        (place / "notes.txt").write_text("mine")
        killed = killed_at(step, lambda place=place: save(nets[1], place), place)
        found = [torch.equal(load(place)(x), wanted) for wanted in outputs]
        assert found in ([True, False], [False, True])
        seen.add(found.index(True))
        assert (place / "notes.txt").read_text() == "mine"
        if not killed:
            break
    assert seen == {0, 1}
    assert step > 10


# --------------------------------------------------------------------------------------------------------- where to


def test_an_empty_folder_and_the_current_one_take_a_model(tmp_path, monkeypatch):
    (tmp_path / ".gitignore").touch()
    monkeypatch.chdir(tmp_path)
    for net in (MLP(4, 3, hidden=2), MLP(4, 3, hidden=5)):
        save(net, ".")
        assert load(".").hidden.out_features == net.hidden.out_features
    assert sorted(files_under(tmp_path)) == [".gitignore", "config.json", "weights.safetensors"]


def test_a_link_to_a_folder_is_followed_and_stays(folder):
    (folder / "notes.txt").write_text("mine")
    (folder.parent / "latest").symlink_to("net")
    save(MLP(4, 3, hidden=2), folder.parent / "latest")
    assert (folder.parent / "latest").is_symlink()
    assert isinstance(load(folder), MLP)
    assert sorted(files_under(folder)) == ["config.json", "notes.txt", "weights.safetensors"]


def test_a_saver_who_comes_in_the_middle_of_another_one_waits_and_costs_nobody_a_file(folder, monkeypatch):
    (folder / "notes.txt").write_text("mine")
    real, others = Path.rename, []

    def rename(self, target):
        moved = real(self, target)
        if not others:  # the first step of the first saver
            others.append(threading.Thread(target=save, args=(MLP(4, 3, hidden=2), folder)))
            others[0].start()
            others[0].join(timeout=0.3)
        return moved

    monkeypatch.setattr(Path, "rename", rename)
    save(MLP(16, 3, hidden=2), folder)
    others[0].join(timeout=60)
    assert load(folder).hidden.in_features == 4  # the later one's
    assert sorted(files_under(folder)) == ["config.json", "notes.txt", "weights.safetensors"]
    assert (folder / "notes.txt").read_text() == "mine"
    assert [path.name for path in folder.parent.iterdir()] == ["net"]


def test_a_reader_beside_two_savers_sees_one_model_or_the_other(tmp_path):
    nets, x, place = [MLNClassifier(16, 3, branching=4).eval() for _ in range(2)], torch.randn(2, 16), tmp_path / "net"
    outputs = [net(x) for net in nets]
    save(nets[0], place)
    with ThreadPoolExecutor(2) as pool:
        saving = [pool.submit(lambda net=net: [save(net, place) for _ in range(15)]) for net in nets]
        reads = 0
        while not all(each.done() for each in saving) or not reads:
            found = load(place)(x)
            assert any(torch.equal(found, wanted) for wanted in outputs)
            reads += 1
        for each in saving:
            each.result()
    assert sorted(files_under(place)) == ["config.json", "weights.safetensors"]
