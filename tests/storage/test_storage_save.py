"""What save rejects, and what it leaves behind when writing fails."""

import os

import pytest
import torch
from full_disk import files_under, largest_file
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
    with pytest.raises(FormatError, match=r"save replaces model folders only: .*net exists"):
        save(MLP(4, 3, hidden=2), tmp_path / "net")
    assert files_under(tmp_path) == before


def test_a_file_is_never_overwritten(tmp_path):
    (tmp_path / "net").write_text("keep me")
    with pytest.raises(FormatError, match=r"save replaces model folders only: .*net exists"):
        save(MLP(4, 3, hidden=2), tmp_path / "net")
    assert files_under(tmp_path) == {"net": b"keep me"}


# ----------------------------------------------------------------------------------------------- when writing fails


@pytest.fixture
def failing_rename(monkeypatch):
    """Make the n-th rename fail with an error; all others work."""

    def install(n, error):
        calls = 0
        for name in ("rename", "replace"):
            real = getattr(os, name)

            def rename(*args, real=real, **kwargs):
                nonlocal calls
                calls += 1
                if calls == n:
                    raise error
                return real(*args, **kwargs)

            monkeypatch.setattr(os, name, rename)

    return install


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


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(
    "error", [OSError("no rename today"), KeyboardInterrupt("no rename today")], ids=["error", "ctrl-c"]
)
def test_a_failing_rename_leaves_the_old_model_and_no_scratch(folder, failing_rename, n, error):
    before = files_under(folder.parent)
    failing_rename(n, error)
    with pytest.raises(type(error), match="no rename today"):
        save(MLP(16, 2, hidden=3), folder)
    assert files_under(folder.parent) == before
    assert isinstance(load(folder), MLNClassifier)
