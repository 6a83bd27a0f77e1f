"""`to_onnx`: a file that was compared with the model, or an error that says why not."""

import pytest
import torch
from torch import nn

from dendritree import DendriticLayer, to_onnx
from dendritree.errors import DendritreeError, OptionError, ShapeError

onnxruntime = pytest.importorskip("onnxruntime")


class OneBatch(nn.Module):
    """Makes the number of samples a constant of the trace."""

    def __init__(self):
        super().__init__()
        self.layer = DendriticLayer(4, 1)

    def forward(self, x):
        return self.layer(x.reshape(x.shape[:1].numel(), 4))


class FixedBatch(OneBatch):
    def forward(self, x):
        return self.layer(x.view(16, 4))


class Loop(OneBatch):
    def forward(self, x):
        return torch.stack([self.layer(row) for row in x])


class Broken(OneBatch):
    def forward(self, x):
        return self.layer(x) @ x.new_zeros(3, 3)


class Unsteady(OneBatch):
    """Gives other outputs every time: no file can agree with it."""

    def forward(self, x):
        return self.layer(x + torch.rand_like(x))


class Two(OneBatch):
    def forward(self, x):
        return self.layer(x), self.layer(x)


class Unstated(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))


def layer():
    return DendriticLayer(4, 1)


REJECTED = {
    "no folder": (layer, "absent/model.onnx", {}, OptionError, "folder"),
    "a folder": (layer, "", {}, OptionError, "folder"),
    "bfloat16": (lambda: layer().bfloat16(), "m.onnx", {}, OptionError, "bfloat16"),
    "meta": (lambda: DendriticLayer(4, 1, device="meta"), "m.onnx", {}, OptionError, "meta"),
    "no parameters": (nn.ReLU, "m.onnx", {}, OptionError, "parameters"),
    "no shape": (Unstated, "m.onnx", {}, OptionError, "pass an example"),
    "one sample": (layer, "m.onnx", {"example": torch.ones(4)}, ShapeError, "batch"),
    "a list": (layer, "m.onnx", {"example": [[1.0]]}, ShapeError, "list"),
    "one batch": (OneBatch, "m.onnx", {"example": torch.ones(2, 4)}, DendritreeError, "constant, 2"),
    "a fixed batch": (FixedBatch, "m.onnx", {}, DendritreeError, "FixedBatch fails on 1 samples"),
    "a loop": (Loop, "m.onnx", {}, DendritreeError, "constant"),
    "broken": (Broken, "m.onnx", {}, DendritreeError, "mat1 and mat2"),
    "two outputs": (Two, "m.onnx", {}, OptionError, "tuple"),
    "a wrong size": (layer, "m.onnx", {"example": torch.ones(2, 5)}, ShapeError, "in_features 4"),
}


# A loop is found out as one batch is, after two seconds.
@pytest.mark.parametrize("case", [pytest.param(n, marks=pytest.mark.slow) if n == "a loop" else n for n in REJECTED])
def test_what_cannot_be_exported_is_rejected_with_the_reason(case, tmp_path):
    model, path, options, kind, message = REJECTED[case]
    with pytest.raises(kind, match=message):
        to_onnx(model(), tmp_path / path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_does_not_agree_with_the_model_is_not_written(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"an older one")
    model = Unsteady().train()
    with pytest.raises(DendritreeError, match="differs"):
        to_onnx(model, tmp_path / "model.onnx")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"an older one"]
    assert model.training
    assert model.layer.training
