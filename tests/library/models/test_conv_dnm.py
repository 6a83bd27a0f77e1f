"""ConvDNM: the paper's CNN with DNM neurons, whole and pruned."""

import pytest
import torch

from dendritree import ConvMLN, count, create_model, load, save
from dendritree.errors import OptionError
from dendritree.models import ConvDNM


def test_it_has_the_papers_cnn_and_dnm_neurons():
    net = ConvDNM(dendrites=3)
    assert repr(net.cnn) == repr(ConvMLN().cnn)
    assert net.head.weight.shape == (10, 3, 256)
    cnn = count(net.cnn, (1, 32, 32))
    assert count(net).total == cnn.total + 2 * 10 * 3 * 256
    assert count(net).multiply_adds == cnn.multiply_adds + net.head.multiply_adds


@pytest.mark.parametrize("soma", ["log", "logit"])
def test_probabilities_are_the_softmax_of_logits(soma):
    torch.manual_seed(0)
    net, x = ConvDNM(4, soma=soma, output="probabilities").eval(), torch.randn(3, 1, 32, 32)
    logits = ConvDNM(4, soma=soma).eval()
    logits.load_state_dict(net.state_dict())
    torch.testing.assert_close(net(x), logits(x).softmax(-1))
    if soma == "log":  # V over the sum of all V
        v = net.head._log_dendrites(net.cnn(x)).exp().unflatten(-1, (4, 2)).sum(-1)
        torch.testing.assert_close(net(x), v / v.sum(-1, keepdim=True))


def test_a_pruned_classifier_is_saved_and_loaded_with_its_network(tmp_path):
    torch.manual_seed(0)
    net, x = create_model("conv-dnm", dendrites=2).eval(), torch.randn(4, 1, 32, 32)
    features = net.cnn(x).detach()
    whole = net.head.weight.numel()
    net.head = net.head.prune(features.amin(0), features.amax(0), tolerance=0.5)
    assert net.head.weight.numel() < whole
    save(net, tmp_path / "net")
    loaded = load(tmp_path / "net")
    assert loaded.head.is_pruned
    assert torch.equal(loaded(x), net(x))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"soma": "sigmoid"}, "soma must be one of 'log', 'logit': got 'sigmoid'"),
        ({"dendrites": 0}, "dendrites must be an integer of at least 1: got 0"),
        ({"dropout": 1.0}, r"dropout must be a probability in \[0, 1\): got 1.0"),
        ({"output": "softmax"}, "output must be one of 'logits', 'probabilities': got 'softmax'"),
        ({"soma_threshold": 0.0}, "soma_threshold must be a positive number: got 0.0"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        ConvDNM(**options)
