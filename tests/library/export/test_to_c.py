"""`to_c`: a C file that was compiled and compared with the model, or an error that says why not."""

import errno
import re
import subprocess

import numpy as np
import pytest
import torch
from torch import nn

from dendritree import (
    ConvMLN,
    DendriticClassifier,
    DendriticConv2d,
    DendriticLayer,
    DendriticRegressor,
    MLNBinaryClassifier,
    MLNClassifier,
    create_model,
    to_c,
)
from dendritree.errors import DendritreeError, OptionError, ShapeError
from dendritree.export import c_file
from dendritree.export.checking import FLAGS, compiler, run_c
from dendritree.export.lowering import CLIP

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")
SANITIZED = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def lived(model):
    """A model whose norms have seen something."""
    for part in model.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.3)
            part.running_var.uniform_(0.5, 2)
    return model.eval()


MODELS = {
    "deep": (lambda: create_model("dendritic", image_shape=(1, 28, 28), budget="2k"), (784,)),
    "color": (lambda: create_model("dendritic", image_shape=(3, 16, 16), budget="4k"), (3, 16, 16)),
    "single": (lambda: create_model("dendritic-single", in_features=784, image_shape=(1, 28, 28), budget="2k"), (784,)),
    "single color": (
        lambda: create_model("dendritic-single", in_features=3072, image_shape=(3, 32, 32), budget="4k"),
        (3072,),
    ),
    "cnn": (lambda: create_model("cnn", image_shape=(1, 28, 28), budget="2k"), (784,)),
    "separable": (lambda: create_model("cnn", image_shape=(3, 16, 16), budget="4k", stage="separable"), (768,)),
    "mln": (lambda: MLNClassifier(64, 10, branching=8), (64,)),
    "binary": (lambda: MLNBinaryClassifier(64, branching=2), (64,)),
    "conv-mln": (lambda: ConvMLN(), (1, 32, 32)),
    "table": (lambda: create_model("dendritic", in_features=20, out_features=3, budget=500), (20,)),
    "unbalanced": (lambda: DendriticLayer(30, 4, branching=[6, [2]], wiring="random"), (30,)),
    "trees on patches": (
        lambda: nn.Sequential(DendriticConv2d(2, 4, 5, 2, 2, branching=[5, 10]), nn.Flatten(), nn.Linear(100, 3)),
        (2, 10, 10),
    ),
    "sequence": (
        lambda: nn.Sequential(
            nn.Conv1d(2, 4, 3, padding=1, dilation=2), nn.LeakyReLU(0.2), nn.AvgPool1d(2), nn.AdaptiveAvgPool1d(2),
            nn.Flatten(), nn.Linear(8, 3),
        ),
        (2, 12),
    ),
    "ends in pooling": (lambda: nn.Sequential(nn.Conv2d(1, 5, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1)), (1, 8, 8)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_file_in_float_gives_the_scores_of_the_model_without_undefined_behavior(name, tmp_path):
    torch.manual_seed(0)
    build, shape = MODELS[name]
    model, x = lived(build()), torch.randn(5, *shape)
    file = to_c(model, tmp_path / "net.c", name="net", examples=x)
    assert file.difference < 1e-5
    wanted = model(x).detach().flatten(1).numpy()
    scores = run_c(file.path.read_text(), "net", x.flatten(1).numpy(), file.outputs, SANITIZED)
    np.testing.assert_allclose(scores, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_file_of_integers_is_near_the_model(name, tmp_path):
    torch.manual_seed(0)
    build, shape = MODELS[name]
    model = lived(build())
    file = to_c(model, tmp_path / "model.c", int8=True, examples=torch.randn(200, *shape))
    assert "math.h" not in file.path.read_text()
    assert file.same_class >= 0.85
    extreme = np.random.default_rng(0).choice([0, 255], (20, file.inputs)).astype(np.uint8)
    run_c(file.path.read_text(), "model", extreme, file.outputs, SANITIZED)  # sums do not overflow


def test_weights_of_four_bits_take_half_of_the_space(tmp_path):
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(100, 30), nn.ReLU(), nn.Linear(30, 5)), torch.randn(300, 100)
    eight, four = (to_c(model, tmp_path / f"{n}.c", int8=True, bits=n, examples=x) for n in (8, 4))
    assert "w0[3000]" in eight.path.read_text()
    assert "w0[1500]" in four.path.read_text()
    assert four.same_class >= 0.8


def test_probabilities_are_those_of_the_model(tmp_path):
    torch.manual_seed(0)
    for outputs, kind in ((3, "softmax"), (1, "sigmoid")):
        end = nn.Softmax(-1) if kind == "softmax" else nn.Sigmoid()
        model = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Dropout(), nn.Linear(6, outputs), end)
        assert to_c(model, tmp_path / "model.c").difference < 1e-6
    with pytest.raises(OptionError, match="got tanh"):
        to_c(model, tmp_path / "model.c", int8=True, examples=torch.randn(9, 8))


def test_wiring_that_is_regular_is_not_stored(tmp_path):
    for model in (MLNClassifier(64, 10, branching=8), create_model("dendritic", image_shape=(1, 28, 28), budget="2k")):
        tables = re.findall(r"static const \w+ ([a-z]+)\d+\[", to_c(model, tmp_path / "m.c").path.read_text())
        assert set(tables) == {"w", "b"}


@pytest.mark.parametrize("int8", [False, True])
def test_estimators_are_exported_with_their_scaling(int8, tmp_path):
    pytest.importorskip("sklearn")
    from dendritree.sklearn import estimator_module

    assert estimator_module.CLIP == CLIP
    random = np.random.default_rng(0)
    x = random.normal(5, [1, 10, 0.1, 3], (200, 4)).astype(np.float32)
    score = x[:, 0] + x[:, 1] / 10
    for classes in (2, 3):
        y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
        model = DendriticClassifier(epochs=3, random_state=0).fit(x, y)
        file = to_c(model, tmp_path / "model.c", int8=int8, examples=x, labels=y)
        assert file.outputs == classes
        assert file.same_class > 0.95
    model = DendriticRegressor(epochs=3, random_state=0).fit(x, 100 * score)
    file = to_c(model, tmp_path / "model.c", int8=int8, examples=x)
    assert "classify" not in file.path.read_text()
    assert file.difference < (0.1 if int8 else 1e-5)


REJECTED = {
    "an unknown module": (lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.GELU()), {}, OptionError, "^2: GELU: "),
    "an unknown activation": (lambda: DendriticLayer(4, 1, activation="silu"), {}, OptionError, "DendriticLayer.*SiLU"),
    "NaN": (lambda: nn.utils.skip_init(nn.Linear, 4, 2).requires_grad_(False).apply(
        lambda m: m.weight.fill_(float("nan"))), {}, OptionError, "weights must be finite: weight"),
    "no shape": (lambda: nn.Sequential(nn.Conv2d(1, 2, 3)), {}, OptionError, "pass examples"),
    "no examples": (lambda: nn.Linear(4, 2), {"int8": True}, OptionError, "int8 needs examples"),
    "wrong bits": (lambda: nn.Linear(4, 2), {"bits": 3}, OptionError, "bits must be 8, or 4 with int8: got 3"),
    "a wrong name": (lambda: nn.Linear(4, 2), {"name": "9 lives"}, OptionError, "name must be .* got '9 lives'"),
    "NaN examples": (lambda: nn.Linear(4, 2), {"examples": torch.full((2, 4), np.nan)}, ShapeError, "finite"),
    "other examples": (lambda: nn.Sequential(nn.Linear(4, 2)), {"examples": torch.ones(2, 5)}, OptionError, "^0: Lin"),
    "an unfitted estimator": (lambda: DendriticClassifier(), {}, OptionError, "must be fitted first"),
    "no model": (lambda: "net", {}, OptionError, "must be an nn.Module"),
}  # fmt: skip


@pytest.mark.parametrize("case", REJECTED)
def test_what_cannot_be_exported_is_named_before_anything_is_written(case, tmp_path):
    build, options, error, message = REJECTED[case]
    with pytest.raises(error, match=message):
        to_c(build(), tmp_path / "model.c", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_way_or_missing_is_rejected(tmp_path):
    for path in (tmp_path, tmp_path / "absent" / "model.c"):
        with pytest.raises(OptionError, match="folder that exists"):
            to_c(nn.Linear(4, 2), path)


def test_a_file_that_differs_from_the_model_is_not_kept(tmp_path, monkeypatch):
    true = c_file.c_source
    (tmp_path / "model.c").write_text("before")
    monkeypatch.setattr(c_file, "c_source", lambda *a: true(*a).replace("s = AT", "s = 1 + AT"))
    with pytest.raises(DendritreeError, match="must agree with the model"):
        to_c(nn.Linear(4, 2), tmp_path / "model.c")
    monkeypatch.setattr(c_file, "c_source", lambda *_: "int main(void) { return 0 }")
    with pytest.raises(DendritreeError, match="does not compile"):
        to_c(nn.Linear(4, 2), tmp_path / "model.c")
    assert (tmp_path / "model.c").read_text() == "before"


def test_a_full_disk_leaves_no_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(type(tmp_path), "write_bytes", full)
    with pytest.raises(DendritreeError, match=r"could not write a C file: .*No space left on device"):
        to_c(nn.Linear(4, 2), tmp_path / "model.c")
    assert list(tmp_path.iterdir()) == []


def test_without_a_compiler_the_file_is_written_unchecked(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    file = to_c(nn.Linear(4, 2), tmp_path / "model.c")
    assert (file.difference, file.sizes) == (None, ())


def test_the_comment_states_the_accuracy_and_the_file_compiles_without_warnings(tmp_path):
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3)), torch.randn(50, 6)
    file = to_c(model, tmp_path / "model.c", int8=True, examples=x, labels=model(x).argmax(1))
    assert f"Accuracy on 50 examples: {file.accuracy[1]:.4f}; of the model in PyTorch: 1.0000." in file.path.read_text()
    for option in ("-Os", "-O3"):
        command = [compiler(), *FLAGS, option, "-c", "-o", tmp_path / "model.o", file.path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
