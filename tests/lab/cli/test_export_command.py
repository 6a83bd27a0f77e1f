"""`dendritree export`: an ONNX file beside a saved model."""

import re

import onnxruntime
import torch

from dendritree import load, save
from dendritree.models import DendriticNetwork


def test_a_saved_model_is_exported_and_served_without_torch(tmp_path, call):
    torch.manual_seed(0)
    model = DendriticNetwork(12, [5], 3, branching=[2, [2]], wiring="random", norm="batch", dropout=0.5)
    model(torch.randn(50, 12))  # running statistics of the norm
    save(model, tmp_path / "model")
    status, out, error = call("export", tmp_path / "model")
    assert (status, error) == (0, "")
    assert re.search(r"model\.onnx: input \(batch, 12\) -> output \(batch, 3\), opset \d+", out)
    assert re.search(r"onnxruntime reproduces the model's outputs to within \de-\d+", out)
    x = torch.randn(7, 12)
    session = onnxruntime.InferenceSession(tmp_path / "model" / "model.onnx")
    (outputs,) = session.run(["output"], {"input": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(outputs), model.eval()(x).detach(), rtol=1e-5, atol=1e-5)
    assert torch.equal(load(tmp_path / "model")(x), model(x))  # the file beside the model does not disturb it
