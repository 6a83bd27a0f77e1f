"""The dANN with its read-out: size, training, files."""

import pytest
import torch

from dendritree import FitConfig, budget, create_model, fit, load, save
from dendritree.errors import DendritreeError
from dendritree.models import DANNClassifier
from dendritree_lab.data import load_dataset

FIELDS = ["random", "local", "global", "all"]


@pytest.mark.parametrize("field", FIELDS[:3])
@pytest.mark.parametrize(("somata", "dendrites", "classes"), [(1, 1, 1), (32, 4, 10), (17, 9, 3)])
def test_it_has_the_paper_s_number_of_parameters(field, somata, dendrites, classes):
    net = DANNClassifier(784, classes, somata=somata, dendrites=dendrites, field=field)
    s, d, c = somata, dendrites, classes
    assert budget.count(net).total == 17 * d * s + (d + 1) * s + (s + 1) * c
    assert budget.count(net).multiply_adds == 16 * d * s + d * s + s * c


def test_the_partly_dendritic_control_reads_everything():
    net = DANNClassifier(784, 10, somata=8, dendrites=4, field="all")
    assert budget.count(net).total == 785 * 4 * 8 + (4 + 1) * 8 + (8 + 1) * 10
    assert budget.count(net).multiply_adds == 784 * 4 * 8 + 4 * 8 + 8 * 10


@pytest.mark.parametrize("field", FIELDS)
def test_it_learns_digits_and_is_saved_with_its_fields(field, tmp_path):
    torch.manual_seed(0)
    net = DANNClassifier(64, 10, somata=32, dendrites=4, field=field, output="logits")
    assert fit(net, load_dataset("digits"), FitConfig(epochs=6, lr=0.01)).best.val_acc > 0.9
    save(net, tmp_path / "net")
    x = torch.randn(5, 64)
    assert torch.equal(load(tmp_path / "net")(x), net.eval()(x))


def test_create_model_knows_it():
    net = create_model(
        "dann", in_features=64, out_features=1, somata=4, field="global", image_shape=(2, 4, 8), output="probabilities"
    )
    y = net(torch.randn(2, 3, 64))
    assert y.shape == (2, 3, 1)
    assert ((y > 0) & (y < 1)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"somata": 0}, r"^somata must be an integer of at least 1: got 0$"),
        ({"out_features": 0}, r"^out_features must be an integer of at least 1: got 0$"),
        ({"dropout": 1}, r"^dropout must be a probability in \[0, 1\): got 1$"),
        ({"output": "logit"}, r"^output must be one of .*: got 'logit'; did you mean 'logits'\?$"),
        ({"field": "globe"}, r"^field must be one of .*: got 'globe'"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(DendritreeError, match=message):
        DANNClassifier(64, **options)
