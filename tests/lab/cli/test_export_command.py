"""`dendritree export`: an ONNX file beside a saved model."""

import re

import pytest
import torch

from dendritree import load, save
from dendritree.models import DendriticNetwork
from dendritree_lab.cli import main

onnxruntime = pytest.importorskip("onnxruntime")


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
    (outputs,) = session.run(["output"], {"input": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(outputs), model.eval()(x).detach(), rtol=1e-5, atol=1e-5)
    assert torch.equal(load(tmp_path / "model")(x), model(x))  # the file beside the model does not disturb it


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "absent"], "must hold config.json"),
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
