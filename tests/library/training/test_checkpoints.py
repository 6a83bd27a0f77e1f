"""The files themselves: written whole or not at all, and anything else rejected by name."""

import json
import os
import struct
import sys

import pytest
import torch
from checkpoint_cases import THREE_EPOCHS, bytes_after_two_epochs, make_network, names_in, rejected, run_through
from safetensors.torch import save_file
from training_cases import make_model, make_split, same_state

from dendritree import FitConfig, fit, save
from dendritree.errors import FormatError, MissingExtraError
from dendritree.training.checkpoints import optimizer_tensors, put_optimizer_tensors
from dendritree.training.tensor_file import read_checkpoint, write_checkpoint


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return bytes_after_two_epochs(tmp_path_factory.mktemp("whole") / "run")


# ----------------------------------------------------------------------------------------------------- round trips


def test_tensors_and_facts_come_back_exactly(tmp_path):
    tensors = {
        "half": torch.randn(3, 2).half(),
        "double": torch.tensor([0.1, torch.inf, torch.nan, -0.0], dtype=torch.float64),
        "number": torch.tensor(7),
        "bytes": torch.arange(5, dtype=torch.uint8),
        "none of them": torch.empty(0, 4),
        "turned": torch.arange(6.0).reshape(2, 3).T,
        "with gradient": torch.nn.Parameter(torch.ones(2)),
    }
    shared = torch.ones(3)
    tensors |= {"one": shared, "other": shared}
    facts = {"epoch": 3, "rate": 0.1 + 0.2, "best": float("inf"), "names": ["a", None, True]}
    write_checkpoint(tmp_path / "run", tensors, facts)
    found, told = read_checkpoint(tmp_path / "run")
    assert told == facts
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name].nan_to_num(5.0), tensor.detach().nan_to_num(5.0)), name
    assert names_in(tmp_path) == ["run"]


def test_a_failed_write_leaves_the_last_file_and_nothing_else(tmp_path):
    write_checkpoint(tmp_path / "run", {"w": torch.ones(2)}, {"epoch": 1})
    with pytest.raises(TypeError, match="not JSON serializable"):
        write_checkpoint(tmp_path / "run", {"w": torch.zeros(2)}, {"epoch": object()})
    with pytest.raises(TypeError):
        write_checkpoint(tmp_path / "run", {3: torch.zeros(2)}, {"epoch": 2})  # fails inside safetensors
    assert read_checkpoint(tmp_path / "run")[1] == {"epoch": 1}
    assert names_in(tmp_path) == ["run"]


@pytest.mark.parametrize(
    ("build", "options"),
    [(torch.optim.Adam, {}), (torch.optim.AdamW, {"amsgrad": True}), (torch.optim.SGD, {"momentum": 0.9})],
)
def test_an_optimizer_s_memory_goes_into_another(build, options):
    split, models = make_split(), [make_model(), make_model()]
    optimizers = [build(model.parameters(), lr=0.01, **options) for model in models]
    step(models[0], optimizers[0], split)
    models[1].load_state_dict(models[0].state_dict())
    put_optimizer_tensors(
        optimizers[1], {key: value.clone() for key, value in optimizer_tensors(optimizers[0]).items()}
    )
    for model, optimizer in zip(models, optimizers, strict=True):
        step(model, optimizer, split)
    assert same_state(models[0].state_dict(), models[1].state_dict())
    assert same_state(*map(optimizer_tensors, optimizers))


def step(model, optimizer, split):
    for _ in range(2):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(split.train.x), split.train.y).backward()
        optimizer.step()


def test_an_optimizer_without_memory_has_nothing_to_keep():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert optimizer_tensors(optimizer) == {}
    step(model, optimizer, make_split())
    assert optimizer_tensors(optimizer) == {}


# ------------------------------------------------------------------------------------------- files that are rejected


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 100, 0.5, 0.99, -1])
def test_a_file_that_was_cut_off_is_rejected(kept, whole, tmp_path):
    path = tmp_path / "run"
    path.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    rejected(path, rf"a checkpoint must be a safetensors file: {path} \(.+\)")


@pytest.mark.parametrize("content", [b"hello, world, this is text", b"\x80\x04N." * 10, bytes(64)], ids=repr)
def test_a_file_of_another_kind_is_rejected(content, tmp_path):
    (tmp_path / "run").write_bytes(content)
    rejected(tmp_path / "run", r"a checkpoint must be a safetensors file: .*run \(.+\)")


def test_a_folder_or_a_pipe_is_rejected(tmp_path):
    rejected(tmp_path, r"a checkpoint must be a safetensors file: ")
    os.mkfifo(tmp_path / "pipe")
    rejected(tmp_path / "pipe", r"a checkpoint must be a safetensors file: .*pipe \(not a file\)")


def test_weights_of_a_saved_model_are_no_checkpoint(tmp_path):
    save(make_network("plain"), tmp_path / "net")
    path = tmp_path / "net" / "weights.safetensors"
    rejected(path, rf"{path} must have format 'dendritree-checkpoint', version 1: got ")


@pytest.mark.parametrize(
    "about", [{"format": "dendritree-checkpoint", "version": "2", "facts": "{}"}, {"format": "mine", "version": "1"}]
)
def test_another_format_or_version_is_rejected_and_told(about, tmp_path):
    save_file({"w": torch.ones(1)}, tmp_path / "run", metadata=about)
    rejected(tmp_path / "run", r"must have format 'dendritree-checkpoint', version 1: got .*" + about["format"])


def rewritten(whole, change):
    """The same file with another header."""
    (length,) = struct.unpack("<Q", whole[:8])
    header = json.loads(whole[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + whole[8 + length :]


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["__metadata__"].update(facts="{not JSON"),
        lambda header: header["__metadata__"].pop("facts"),
        lambda header: header["__metadata__"].update(facts="{}"),
        lambda header: header.update({"odd.name": header.pop("random.order")}),
    ],
    ids=["facts that are no JSON", "no facts", "empty facts", "an odd tensor"],
)
def test_a_checkpoint_whose_contents_are_spoilt_is_rejected(change, whole, tmp_path):
    (tmp_path / "run").write_bytes(rewritten(whole, change))
    rejected(tmp_path / "run", "run")


@pytest.mark.parametrize("bit", [0, 7])
def test_no_bit_of_a_file_can_change_unnoticed(bit, tmp_path):
    """But for a header that says the same in other words: there is none a single bit away."""
    path = tmp_path / "run"
    write_checkpoint(path, {"w": torch.ones(2), "n": torch.tensor(3)}, {"epoch": 1, "rate": 0.5})
    written = path.read_bytes()
    for place in range(len(written)):
        path.write_bytes(written[:place] + bytes([written[place] ^ 1 << bit]) + written[place + 1 :])
        with pytest.raises(FormatError, match="run"):
            read_checkpoint(path)


# ------------------------------------------------------------------------------------------------- runs of another kind


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"epochs": 5}, "epochs 3 -> 5"),
        ({"lr": 0.02}, "lr 0.01 -> 0.02"),
        ({"optimizer": "sgd", "seed": 4}, "optimizer 'adam' -> 'sgd', seed 0 -> 4"),
        ({"schedule": "one-cycle"}, "schedule 'constant' -> 'one-cycle'"),
        ({"batch_size": None}, "batch_size 128 -> None"),
        ({"restore_best": False}, "restore_best True -> False"),
        (
            {"loss": "squared-error", "weight_decay": 0.1},
            "loss 'cross-entropy' -> 'squared-error', weight_decay 0.0 -> 0.1",
        ),
    ],
)
def test_another_config_is_rejected_and_the_difference_told(change, difference, whole, tmp_path):
    path = tmp_path / "run"
    path.write_bytes(whole)
    rule = f"a run resumes with the config it was started with: {path} differs in {difference}$"
    rejected(path, rule, config=FitConfig(**{"epochs": 3, **change}))


@pytest.mark.parametrize(
    "model",
    [
        make_model,
        lambda: make_network("batch norm"),
        lambda: torch.nn.Linear(16, 3, dtype=torch.float64),
        lambda: make_network("plain").float(),  # a float64 run resumed in float32 would give another result
    ],
    ids=["of another class", "of other sizes", "of torch", "of another precision"],
)
def test_another_model_is_rejected_and_left_as_it_was(model, whole, tmp_path):
    (tmp_path / "run").write_bytes(whole)
    rejected(tmp_path / "run", "model", model=model())


def test_an_absent_extra_is_told_before_any_training(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    model, steps = make_network("plain"), []
    model.register_forward_pre_hook(lambda *_: steps.append(1))
    with pytest.raises(MissingExtraError, match=r"safetensors is needed here .*: pip install 'dendritree\[save\]'"):
        fit(model, make_split(), THREE_EPOCHS, checkpoint=tmp_path / "run")
    assert steps == []
    assert names_in(tmp_path) == []


def test_without_a_checkpoint_the_extra_is_not_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    assert len(run_through("plain", FitConfig(epochs=1))[2]["epoch"]) == 1
