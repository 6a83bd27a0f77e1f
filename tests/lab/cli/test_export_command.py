"""`dendritree export`: an ONNX file beside a saved model."""

import re

import onnxruntime
import torch

from dendritree import create_model, load, save
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


def test_a_file_that_ends_with_c_is_a_c_file(tmp_path, call):
    torch.manual_seed(0)
    save(DendriticNetwork(64, [6], 10, norm="batch"), tmp_path / "model")
    target = tmp_path / "digits.c"
    status, out, error = call("export", tmp_path / "model", target, "--int8", "--data", "digits", "--name", "digits")
    assert (status, error) == (0, "")
    assert "64 inputs -> 10 outputs" in out
    assert "int digits_classify(const uint8_t *x)" in target.read_text()
    status, _, error = call("export", tmp_path / "model", tmp_path / "model.onnx", "--int8")
    assert status == 2
    assert "--int8 is for C files: the file name must end in .c" in error


def test_a_deep_network_is_a_small_onnx_file(tmp_path, call):
    for kind in ("dendritic", "dendritic-single"):
        save(create_model(kind, in_features=784, image_shape=(1, 28, 28), budget="2k"), tmp_path / kind)
        assert call("export", tmp_path / kind)[0] == 0
        assert (tmp_path / kind / "model.onnx").stat().st_size <= 12_000
