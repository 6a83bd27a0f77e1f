"""`to_onnx` and `dendritree export`: one line, a file that was compared with the model, or a line that says why not."""

import re
import signal

import pytest
import torch
from torch import nn

from dendritree import DendriticLayer, load, save, to_onnx
from dendritree.errors import DendritreeError, OptionError, ShapeError
from dendritree.models import DendriticNetwork
from dendritree_lab.cli import main

onnxruntime = pytest.importorskip("onnxruntime")


class Unsteady(nn.Module):
    """Gives other outputs every time: no file can agree with it."""

    def __init__(self):
        super().__init__()
        self.layer = DendriticLayer(4, 1)

    def forward(self, x):
        return self.layer(x + torch.rand_like(x))


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


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = DendriticLayer(4, 1)

    def forward(self, x):
        return self.layer(x), self.layer(x)


class Unstated(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))


REJECTED = {
    "no folder": (lambda: DendriticLayer(4, 1), "absent/model.onnx", {}, OptionError, "a folder that exists"),
    "a folder": (lambda: DendriticLayer(4, 1), "", {}, OptionError, "a folder that exists"),
    "bfloat16": (lambda: DendriticLayer(4, 1).bfloat16(), "m.onnx", {}, OptionError, "float32 or float64.*bfloat16"),
    "meta": (lambda: DendriticLayer(4, 1, device="meta"), "m.onnx", {}, OptionError, "with values: got .*on meta"),
    "no parameters": (nn.ReLU, "m.onnx", {}, OptionError, r"with values: got \['none'\]"),
    "no shape": (Unstated, "m.onnx", {}, OptionError, "Unstated does not state .*: pass an example"),
    "one sample": (
        lambda: DendriticLayer(4, 1),
        "m.onnx",
        {"example": torch.ones(4)},
        ShapeError,
        r"a batch of inputs.*: got \(4,\)",
    ),
    "a list": (lambda: DendriticLayer(4, 1), "m.onnx", {"example": [[1.0]]}, ShapeError, "a batch.*: got list"),
    "one batch": (
        OneBatch,
        "m.onnx",
        {"example": torch.ones(2, 4)},
        DendritreeError,
        "must take any batch: the code of OneBatch makes the batch size a constant, 2",
    ),
    "a fixed batch": (FixedBatch, "m.onnx", {}, DendritreeError, "the code of FixedBatch fixes the batch size at 16"),
    "a loop": (Loop, "m.onnx", {}, DendritreeError, "the code of Loop makes the batch size a constant, 2 here"),
    "broken": (Broken, "m.onnx", {}, DendritreeError, "Broken must run on its inputs: mat1 and mat2"),
    "two outputs": (Two, "m.onnx", {}, OptionError, "one tensor to be exported: got tuple"),
    "a wrong size": (
        lambda: DendriticLayer(4, 1),
        "m.onnx",
        {"example": torch.ones(2, 5)},
        ShapeError,
        "in_features 4",
    ),
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
    with pytest.raises(DendritreeError, match="onnxruntime must agree with the model to 1e-05: it differs by"):
        to_onnx(model, tmp_path / "model.onnx")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"an older one"]
    assert model.training
    assert model.layer.training


def test_a_saved_model_is_exported_from_the_command_line_and_served_without_torch(tmp_path, capsys):
    torch.manual_seed(0)
    model = DendriticNetwork(12, [5], 3, branching=[2, [2]], wiring="random", norm="batch", dropout=0.5)
    model(torch.randn(50, 12))  # running statistics of the norm
    save(model, tmp_path / "model")
    assert main(["export", str(tmp_path / "model")]) == 0
    out, error = capsys.readouterr()
    assert error == ""
    assert re.search(r"model\.onnx: input \(batch, 12\) -> output \(batch, 3\), opset \d+", out)
    assert re.search(r"onnxruntime gives the model's outputs, to \de-\d+", out)
    x = torch.randn(7, 12)
    session = onnxruntime.InferenceSession(tmp_path / "model" / "model.onnx")
    (found,) = session.run(["output"], {"input": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), model.eval()(x).detach(), rtol=1e-5, atol=1e-5)
    assert torch.equal(load(tmp_path / "model")(x), model(x))  # the file beside the model does not disturb it


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "absent"], r"must hold config.json: found none \(in absent\)"),
        (["export"], "MODEL"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        status = main(arguments)
    except SystemExit as end:
        status = end.code
    out, error = capsys.readouterr()
    assert (status, out, len(error.splitlines())) == (2, "", 1)
    assert re.search(message, error)
    assert list(tmp_path.iterdir()) == []


WENT_ON = []
"""What an interrupted export did after its Ctrl-C; an exporter rejects models that change themselves."""


class Interrupted(OneBatch):
    """A Ctrl-C comes while it is traced."""

    def forward(self, x):
        if torch.compiler.is_exporting() and not WENT_ON:
            signal.raise_signal(signal.SIGINT)
            WENT_ON.append(x)
        return self.layer(x)


def test_ctrl_c_waits_for_the_end_of_the_exporter_which_works_again(tmp_path):
    model, file = Interrupted(), tmp_path / "model.onnx"
    with pytest.raises(KeyboardInterrupt):
        to_onnx(model, file, torch.randn(2, 4))
    assert WENT_ON
    assert not file.exists()
    assert to_onnx(model, file, torch.randn(2, 4)).difference < 1e-5
