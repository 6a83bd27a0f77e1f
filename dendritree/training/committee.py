"""A committee: groups of a network's hidden neurons that predict separately while the network is trained."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..errors import OptionError, check_int
from ..layers.forest_layer import ForestLayer
from ..models.network import Network
from .examples import Examples


class Committee(nn.Module):
    r"""A network whose hidden neurons form groups, the *members*; each learns to predict without the others.

    With the read-out :math:`W h + c`, member :math:`m` of :math:`k` predicts :math:`W h_m + c_m`, where :math:`h_m` has
    the neurons of its own group and 0 elsewhere. The loss is the mean over the members. Their mean prediction,
    :math:`\frac{1}{k} W h + \bar c`, is that of an ordinary network with as many parameters, which `merged` returns.
    So the gain of an ensemble costs nothing once the network is trained, and all tools accept the network.

    Members share no weights, so each can leave out some rows and be evaluated on them: together they estimate, over all
    rows, how well unseen rows are predicted. Neurons that share a tree belong to the same member.

    Args:
        network: a network with hidden layers and a linear read-out. It is trained in place.
        members: number of groups, at most one per hidden neuron, or per tree if neurons share trees.
        held_out: whether rows have an additional last column, the index of the member that does not learn from the row.
            The output then holds the predictions of all other members in training mode, and that of this member in
            evaluation mode. Otherwise it holds all predictions in training mode, and their mean in evaluation mode.

    Shape:
        - input: (rows, in_features), with `held_out` (rows, in_features + 1)
        - output: (rows, predictions, out_features)

    Example:
        >>> from dendritree.models import create_model
        >>> network = create_model("dendritic", in_features=6, out_features=3, budget=400)
        >>> committee = Committee(network, 4)
        >>> committee(torch.randn(5, 6)).shape
        torch.Size([5, 4, 3])
        >>> x = torch.randn(5, 6)
        >>> mean = committee.eval()(x)[:, 0]
        >>> bool(torch.allclose(committee.merged()(x), mean, atol=1e-5))
        True
    """

    own: Tensor
    others: Tensor

    def __init__(self, network: Network, members: int, *, held_out: bool = False) -> None:
        super().__init__()
        readout = network.readout
        layers = [module for module in network.hidden if hasattr(module, "out_features")]
        if len(layers) != 1 or not isinstance(readout, nn.Linear):
            raise OptionError(
                "a committee needs a network with one hidden layer and a linear read-out: got "
                f"{len(layers)} and {type(readout).__name__}"
            )
        self.members = check_int("members", members, least=2)
        tree = tree_of_neuron(network)
        trees = int(tree.max()) + 1
        if members > trees:
            shared = f" that share {trees} trees" if trees < len(tree) else ""
            raise OptionError(
                f"members must be at most one per hidden neuron: got {members} for {len(tree)} neurons{shared}"
            )
        self.network, self.held_out = network, held_out
        group = torch.from_numpy(tree.astype(np.int64) * members // trees).to(readout.weight.device)
        own = nn.functional.one_hot(group, members).t().to(readout.weight.dtype)  # (members, hidden)
        self.register_buffer("own", own, persistent=False)
        places = torch.arange(members, device=own.device)
        self.register_buffer("others", (places[:, None] + places[1:]) % members, persistent=False)  # for each member
        with torch.no_grad():  # a member sums 1/k of the neurons; its output should vary like the network's
            readout.weight.mul_(math.sqrt(members))
        self.bias = nn.Parameter(readout.bias.detach().repeat(members, 1))

    @property
    def _readout(self) -> nn.Linear:
        return cast(nn.Linear, self.network.readout)

    def forward(self, x: Tensor) -> Tensor:
        """The predictions of the members, as described in the class."""
        rows = x[:, :-1] if self.held_out else x
        weight = self._readout.weight * self.own[:, None]  # (members, out, hidden)
        answers = nn.functional.linear(self.network.hidden(rows), weight.flatten(0, 1))
        answers = answers.reshape(-1, *self.bias.shape) + self.bias  # (rows, members, out)
        if not self.held_out:
            return answers if self.training else answers.mean(1, keepdim=True)
        left_out = x[:, -1].long()  # the member that does not learn from the row
        asked = self.others[left_out] if self.training else left_out[:, None]
        return answers.gather(1, asked[..., None].expand(-1, -1, answers.shape[2]))

    @torch.no_grad()
    def merged(self) -> Network:
        """The network that predicts the mean of its members; the committee must not be used afterwards."""
        self._readout.weight.div_(self.members)
        self._readout.bias.copy_(self.bias.mean(0))
        return self.network

    def examples(self, x: Tensor, y: Tensor, weight: Tensor | None) -> Examples:
        """Examples for training or evaluation, with a target for each prediction of the current mode."""
        answers = (self.members - self.held_out) if self.training else 1
        return Examples(x, y[:, None].expand(-1, answers, *y.shape[1:]), weight)


def tree_of_neuron(network: Network) -> NDArray[np.integer[Any]]:
    """The index of each hidden neuron's tree; neurons that share their weights have the same tree.

    >>> from dendritree.models import DendriticNetwork
    >>> from dendritree.wiring import Tied
    >>> tree_of_neuron(DendriticNetwork(64, [5], branching=[2, 4], wiring=Tied(3, 2, shared_by=4))).tolist()
    [0, 0, 0, 0, 1]
    """
    layer = next(module for module in network.hidden if hasattr(module, "out_features"))
    if not isinstance(layer, ForestLayer):
        return np.arange(int(cast(Any, layer).out_features))
    return layer.forest.tree_of_neuron


def draw_members(y: NDArray[Any], members: int, random: np.random.Generator, *, classes: bool) -> NDArray[np.int64]:
    """The member that does not learn from each row: equally many rows per member, and per class if `classes`.

    >>> y = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    >>> drawn = draw_members(y, 2, np.random.default_rng(0), classes=True)
    >>> [int(((drawn == member) & (y == 0)).sum()) for member in range(2)]
    [2, 2]
    """
    order = random.permutation(len(y))
    if classes:
        order = order[np.argsort(y[order], kind="stable")]
    drawn = np.empty(len(y), dtype=np.int64)
    drawn[order] = np.arange(len(y)) % members
    return drawn
