"""Committees: members predict from their own neurons, learn from their own rows, and merge into one network."""

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from dendritree.errors import OptionError
from dendritree.models import create_model
from dendritree.training.committee import Committee, draw_members
from dendritree.wiring import Tied


def make_network(out_features=3, **options):
    torch.manual_seed(0)
    return create_model("dendritic-network", in_features=6, hidden=[10], out_features=out_features, fan_in=4, **options)


def rows_for(committee, rows=12):
    x = torch.randn(rows, 6)
    return torch.cat([x, torch.arange(rows)[:, None] % committee.members], 1) if committee.held_out else x


def answer_of_member(committee, x, member):
    """Equation of the class, neuron by neuron."""
    hidden, readout = committee.network.hidden(x), committee.network.readout
    neurons = [i for i in range(readout.in_features) if i * committee.members // readout.in_features == member]
    return hidden[:, neurons] @ readout.weight[:, neurons].t() + committee.bias[member]


@pytest.mark.parametrize("members", [2, 3, 10])
def test_each_member_answers_from_its_own_neurons(members):
    committee = Committee(make_network(), members)
    x = rows_for(committee)
    expected = torch.stack([answer_of_member(committee, x, member) for member in range(members)], 1)
    torch.testing.assert_close(committee(x), expected)


def test_neurons_that_share_a_tree_belong_to_one_member():
    network = create_model(
        "dendritic-network", in_features=100, hidden=[37], branching=[2, 4], wiring=Tied(3, 2, shared_by=4)
    )
    committee = Committee(network, 3)
    member, roots = committee.own.argmax(0).numpy(), network.hidden[0].forest.template[network.hidden[0].forest.roots]
    assert all(len(set(member[roots == root])) == 1 for root in set(roots.tolist()))
    assert np.bincount(member).tolist() == [16, 12, 9]  # of ten trees
    with pytest.raises(OptionError, match="share 10 trees"):
        Committee(network, 11)


def test_the_merged_network_is_an_ordinary_one_and_answers_with_the_mean():
    network = make_network(norm="batch")
    size = sum(p.numel() for p in network.parameters())
    committee = Committee(network, 4)
    with torch.no_grad():
        committee.bias.normal_()
    x = rows_for(committee)
    committee.eval()
    expected = torch.stack([answer_of_member(committee, x, member) for member in range(4)], 1).mean(1)
    torch.testing.assert_close(committee(x)[:, 0], expected)
    merged = committee.merged()
    assert merged is network
    assert sum(p.numel() for p in merged.parameters()) == size
    torch.testing.assert_close(merged(x), expected)


def test_no_member_learns_from_the_rows_it_leaves_out_and_it_alone_answers_for_them():
    committee = Committee(make_network(), 3, held_out=True)
    x = rows_for(committee)
    one = x[x[:, -1] == 1]
    F.cross_entropy(committee(one).flatten(0, 1), torch.zeros(2 * len(one)).long()).backward()
    own = committee.own[1].bool()
    gradient = committee.network.readout.weight.grad
    assert not gradient[:, own].any()
    assert gradient[:, ~own].any()
    assert not committee.bias.grad[1].any()
    layer = committee.network.hidden[0]
    untouched = copy.deepcopy(layer)
    with torch.no_grad():
        for p in layer.parameters():
            p -= p.grad
    moved = (layer(x[:, :-1]) != untouched(x[:, :-1])).any(0)
    assert not moved[own].any()
    assert moved[~own].any()
    committee.eval()
    torch.testing.assert_close(committee(one)[:, 0], answer_of_member(committee, one[:, :-1], 1))


def test_examples_have_a_target_for_each_answer():
    committee = Committee(make_network(), 4, held_out=True)
    x, y = rows_for(committee), torch.arange(12) % 3
    assert committee.examples(x, y, None).y.shape == committee(x).shape[:2] == (12, 3)
    committee.eval()
    assert committee.examples(x, y, None).y.shape == committee(x).shape[:2] == (12, 1)
    numbers = torch.rand(12, 2)
    two = Committee(make_network(2), 4)
    assert two.examples(x[:, :-1], numbers, None).y.shape == two(x[:, :-1]).shape == (12, 4, 2)


def test_every_member_leaves_out_its_share_of_each_class():
    y = np.repeat([0, 1, 2], [40, 13, 7])
    drawn = draw_members(y, 4, np.random.default_rng(1), classes=True)
    for label, count in zip(*np.unique(y, return_counts=True), strict=True):
        shares = np.bincount(drawn[y == label], minlength=4)
        assert shares.max() - shares.min() <= 1
        assert shares.sum() == count
    assert (drawn != draw_members(y, 4, np.random.default_rng(2), classes=True)).any()


@pytest.mark.parametrize(
    ("network", "members", "message"),
    [
        (make_network, 1, "members"),
        (make_network, 11, "at most one per hidden neuron"),
        (lambda: make_network(readout="dendritic"), 2, "linear read-out"),
        (lambda: create_model("dense-network", in_features=6, hidden=[4, 4], out_features=2), 2, "one hidden layer"),
    ],
)
def test_a_committee_needs_one_hidden_layer_with_enough_neurons(network, members, message):
    with pytest.raises(OptionError, match=message):
        Committee(network(), members)
