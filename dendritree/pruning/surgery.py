"""Remove parts of trees: their response to the reference input is added to the biases."""

from __future__ import annotations

import bisect
import copy
import math
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from ..errors import OptionError
from ..explanation.prepared_rows import inputs_of, like
from ..layers import DendriticConv1d, DendriticConv2d, trace
from ..layers.forest_layer import ForestLayer
from ..models.holders import Holder, network_of, with_network
from ..models.sizing import check_budget, parameters_of
from ..tree import BoolArray, Forest
from .importance import Measured, measure, trees_of

Model = TypeVar("Model", bound=nn.Module)


def prune(
    model: Holder,
    *,
    budget: float | int | str | None = None,
    threshold: float | None = None,
    examples: Any = None,
    reference: Any = None,
) -> Holder:
    """A smaller copy of a layer or model, without the synapses and branches that matter least.

    A removed part is replaced by its response to the reference input, added to a bias, so that the smaller layer
    responds to the reference as the whole one does; neurons that share all their weights (`Tied(shared_by=...)`) do so
    on average. A dendrite without children is removed too; a neuron that loses everything becomes constant, and keeps
    one synapse of weight 0. Trees become unequal; `save`, `load`, `state_dict` and training work as for any other
    layer.

    Args:
        model: a `DendriticLayer`; a `DendriticConv2d` or `DendriticConv1d`; or a model that `explain` accepts and that
            uses each dendritic layer once: all its dendritic layers are pruned. For an estimator or a table model, its
            network is pruned.
        budget: the most parameters that the whole model may keep: a number, such as 400 or "2k", or a share as a float.
        threshold: edges up to this importance are removed; 0 removes what contributes nothing.
        examples: inputs on which importance is measured, one per row, as for `explain`; required for a model. Without
            examples a layer is pruned by its weights.
        reference: the input to compare with: a number or a tensor of shape (in_features,); one row, for an object that
            holds a network. By default the mean of the examples, or 0 without examples.

    Example:
        >>> from dendritree import DendriticLayer
        >>> layer = DendriticLayer(64, 1, branching=8)
        >>> small = prune(layer, budget=40)
        >>> parameters_of(small) <= 40
        True
    """
    if (budget is None) == (threshold is None):
        raise OptionError(f"prune takes a budget or a threshold: got budget {budget}, threshold {threshold}")
    if isinstance(model, DendriticConv1d | DendriticConv2d) and model.dendrite_norm is not None:
        model = cast(Holder, model.folded())
    network = network_of(model)
    if network is not model and examples is not None:
        rows = examples
        examples = inputs_of(model, rows)
        reference = None if reference is None else inputs_of(model, like(rows, reference))[0]
    if budget is not None:
        left = check_budget(budget)
        most = left if isinstance(left, int) else math.floor(left * parameters_of(network))
        return with_network(model, cut_to_budget(network, measure(network, examples, reference), most))
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not threshold >= 0:
        raise OptionError(f"threshold must be a number of at least 0: got {threshold!r}")
    measured = measure(network, examples, reference)
    return with_network(model, _cut(network, measured, [part.synapses > threshold for part in measured]))


def _cut(model: Model, measured: Sequence[Measured], keep: Sequence[BoolArray]) -> Model:
    """A copy of a model whose layers keep these synapses."""
    small = copy.deepcopy(model)
    for layer, part, kept in zip(trees_of(small), measured, keep, strict=True):
        _cut_layer(layer, part, kept)
    return small


@torch.no_grad()
def _cut_layer(layer: ForestLayer, part: Measured, keep: BoolArray) -> None:
    forest, weight = layer.forest, layer.edge_weight.detach().double().cpu().numpy().copy()
    edges, nodes = _kept(forest, keep)
    bias = np.zeros(forest.nodes) if layer.node_bias is None else layer.node_bias.double().cpu().numpy().copy()
    gone = ~edges & nodes[forest.node_of_edge]
    lost = np.bincount(forest.node_of_edge[gone], weight[gone] * part.rows[forest.source[gone]], forest.nodes)
    bias += _mean_of_tied(forest, lost)
    silent = forest.roots[~nodes[forest.roots]]  # neurons that lost everything
    bias[silent] = part.sums[silent]
    source, places = forest.source.copy(), None if layer.windows is None else layer.windows.copy()
    for root in silent:  # a node needs an edge: its first one reads the input of its tree's strongest synapse
        first, neuron = forest.offsets[root], forest.neuron_of_node[root]
        own = np.flatnonzero(forest.neuron_of_synapse == neuron)
        strongest = forest.synapse_edges[own[part.synapses[own].argmax()]]
        source[first] = forest.source[strongest]
        weight[first], edges[first] = 0.0, True
        if places is not None:  # and its window
            places[root] = places[forest.node_of_edge[strongest]]
    nodes[silent] = True
    pruned = forest.part(nodes, edges, source)
    windows = None
    if places is not None:
        reads = np.bincount(pruned.node_of_edge[pruned.synapse_edges], minlength=pruned.nodes) > 0
        windows = np.where(reads[:, None], places[nodes], 0).astype(np.int32)
        windows.setflags(write=False)
    layer.regrow(pruned, bias=layer.bias is not None or bool(bias[nodes].any()), windows=windows)
    layer.weight.copy_(torch.from_numpy(weight[edges][pruned.is_template[pruned.node_of_edge]]))
    if layer.bias is not None:
        layer.bias.copy_(torch.from_numpy(bias[nodes][pruned.is_template]))
    if pruned.template is not None and layer.bias is not None:
        # Tied dendrites were corrected by the mean of what each lost; the rest goes to the roots, or its mean if roots
        # are tied too.
        at_rest = trace(copy.deepcopy(layer).double(), torch.from_numpy(part.rows[: forest.in_features])).sums
        rest = np.zeros(pruned.nodes)
        rest[pruned.roots] = part.sums[forest.roots] - at_rest[pruned.roots.tolist()].numpy()
        layer.bias.add_(torch.from_numpy(_mean_of_tied(pruned, rest)[pruned.is_template]).to(layer.bias))


def _mean_of_tied(forest: Forest, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Values of nodes, averaged over those that are tied."""
    tied = forest.bias_of_node
    mean = np.bincount(tied, values) / np.bincount(tied)
    return np.asarray(mean[tied])


def _kept(forest: Forest, keep: BoolArray) -> tuple[BoolArray, BoolArray]:
    """The edges and nodes that remain with these synapses."""
    edges, rows = np.zeros(forest.edges, dtype=bool), np.zeros(forest.in_features + forest.nodes, dtype=bool)
    edges[forest.synapse_edges], nodes = keep, rows[forest.in_features :]
    for level, span, begin in forest.ascend():
        edges[span] |= rows[forest.source[span]]
        nodes[level] = np.logical_or.reduceat(edges[span], begin)
    return edges, nodes


def _size(part: Measured, keep: BoolArray) -> int:
    """Upper bound of the parameters of a layer that keeps these synapses: without biases, it may need none for
    constants."""
    forest = part.layer.forest
    edges, nodes = _kept(forest, keep)
    silent = len(np.unique(forest.bias_of_node[forest.roots[~nodes[forest.roots]]]))  # tied roots are one
    has_bias = part.layer.bias is not None or bool(part.rows.any())
    weights, biases = len(np.unique(forest.weight_of_edge[edges])), len(np.unique(forest.bias_of_node[nodes]))
    return weights + silent + (biases + silent if has_bias else 0)


def cut_to_budget(model: Model, measured: Sequence[Measured], budget: int) -> Model:
    """Remove the least important synapses, over all layers, until the parameters fit the budget."""
    # Synapses that share a weight are removed together: they have the same importance and the same index here.
    weights = [part.layer.forest.weight_of_edge[part.layer.forest.synapse_edges] for part in measured]
    firsts = np.cumsum([0, *(part.layer.forest.weights for part in measured)])
    _, first, weight = np.unique(
        np.concatenate([each + first for each, first in zip(weights, firsts, strict=False)]),
        return_index=True,
        return_inverse=True,
    )
    order = np.argsort(np.concatenate([part.synapses for part in measured])[first], kind="stable")
    ends = np.cumsum([len(part.synapses) for part in measured])[:-1]
    rest = parameters_of(model) - sum(parameters_of(part.layer) for part in measured)

    def kept(removed: int) -> list[BoolArray]:
        keep = np.ones(len(order), dtype=bool)
        keep[order[:removed]] = False
        return np.split(keep[weight], ends)

    def size(removed: int) -> int:
        return rest + sum(map(_size, measured, kept(removed)))

    if (least := size(len(order))) > budget:
        raise OptionError(
            f"budget must be at least the {least} parameters of silent neurons and the rest: got {budget}"
        )
    # Removing synapses never adds parameters.
    removed = bisect.bisect_left(range(len(order)), True, key=lambda removed: size(removed) <= budget)
    return _cut(model, measured, kept(removed)) if removed else copy.deepcopy(model)
