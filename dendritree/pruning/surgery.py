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
from ..layers import DendriticConv1d, DendriticConv2d, DendriticLayer, trace
from ..layers.forest_layer import ForestLayer
from ..layers.neuron_layer import index_of
from ..models import DendriticNetwork
from ..models.chain import chain_of
from ..models.holders import Holder, network_of, with_network
from ..models.sizing import check_budget, parameters_of
from ..training import FitConfig
from ..training.examples import Split, split_to_fit
from ..tree import BoolArray, Forest
from .importance import Measured, following, measure, trees_of
from .retraining import retrain as train_again

Model = TypeVar("Model", bound=nn.Module)
MOST_EXAMPLES = 1000
"""Training examples on which importance is measured: means converge long before."""


def prune(
    model: Holder,
    *,
    budget: float | int | str | None = None,
    threshold: float | None = None,
    examples: Any = None,
    data: Any = None,
    retrain: FitConfig | None = None,
    seconds: float = 60.0,
    reference: Any = None,
) -> Holder:
    """A smaller copy of a layer or model, without the synapses, branches and neurons that matter least.

    With `data`, the smaller model is then retrained, for up to a minute. Where a dendritic layer is followed by batch
    norms or activations and an `nn.Linear`, whole neurons are removed with their columns of that read-out.

    A removed part is replaced by its response to the reference input, added to a bias, so that the smaller layer
    responds to the reference as the whole one does; neurons that share all their weights (`Tied(shared_by=...)`) do so
    on average. A dendrite without children is removed too; a neuron that loses everything and cannot be removed becomes
    constant, and keeps one synapse of weight 0. Trees become unequal; `save`, `load`, `state_dict` and training work as
    for any other layer.

    Args:
        model: a `DendriticLayer`; a `DendriticConv2d` or `DendriticConv1d`; or a model that `explain` accepts and that
            uses each dendritic layer once: all its dendritic layers are pruned. For an estimator or a table model, its
            network is pruned.
        budget: maximum number of parameters of the pruned model: a number, such as 400 or "2k", or a share as a float.
        threshold: edges up to this importance are removed; 0 removes what contributes nothing.
        examples: inputs on which importance is measured, one per row, as for `explain`; required for a model without
            `data`. A layer without either is pruned by its weights.
        data: training data as in `fit`: importance is measured on the first 1,000 training inputs, unless there are
            `examples`, and the smaller network is retrained. An estimator takes `examples` instead; `partial_fit`
            continues its training.
        retrain: how to retrain; by default five epochs with cosine decay from 0.003, and the loss by the targets:
            squared error for real numbers, otherwise cross-entropy.
        seconds: limit in seconds on the wall clock for retraining, evaluation included: after the first epoch, none is
            started that would exceed it; 0 skips it.
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
    split = None
    if data is not None:
        if network is not model:
            raise OptionError(f"data is for a network; {type(model).__name__} takes examples: got data")
        split = data if isinstance(data, Split) else split_to_fit(data)
        examples = split.train.x[:MOST_EXAMPLES].flatten(1) if examples is None else examples
    if network is not model and examples is not None:
        rows = examples
        examples = inputs_of(model, rows)
        reference = None if reference is None else inputs_of(model, like(rows, reference))[0]
    if budget is not None:
        left = check_budget(budget)
        if isinstance(left, int) and left > (size := parameters_of(network)):
            raise OptionError(f"budget must be at most the model's own {size:,} parameters: got {left:,}")
        most = left if isinstance(left, int) else math.floor(left * parameters_of(network))
        small = cut_to_budget(network, measure(network, examples, reference), most)
    elif isinstance(threshold, bool) or not isinstance(threshold, int | float) or not threshold >= 0:
        raise OptionError(f"threshold must be a number of at least 0: got {threshold!r}")
    else:
        measured = measure(network, examples, reference)
        small = _cut(network, measured, [part.synapses > threshold for part in measured])
    if split is not None:
        train_again(small, split, retrain, seconds)
    return with_network(model, small)


def _cut(model: Model, measured: Sequence[Measured], keep: Sequence[BoolArray]) -> Model:
    """A copy of a model whose layers keep these synapses, and whose read-outs keep the neurons that have any."""
    small = copy.deepcopy(model)
    layers = trees_of(small)
    for layer, part, kept in zip(layers, measured, keep, strict=True):
        alive = _alive(part, kept)
        if not alive.all():
            _cut_neurons(small, layer, part, alive)
        _cut_layer(layer, part, kept, alive)
    for network in (module for module in small.modules() if isinstance(module, DendriticNetwork)):
        hidden = [step.out_features for step in network.hidden if isinstance(step, DendriticLayer)]
        if "model_arguments" in vars(network):  # what `save` writes
            network.__dict__["model_arguments"] = {**network.model_arguments, "hidden": hidden}  # type: ignore[dict-item]
    return small


def _alive(part: Measured, keep: BoolArray) -> BoolArray:
    """The neurons that keep a synapse, at least one; all of them, if neurons cannot be removed."""
    forest = part.layer.forest
    if part.followed is None:
        return np.ones(forest.neurons, dtype=bool)
    alive = np.bincount(forest.neuron_of_synapse[keep], minlength=forest.neurons) > 0
    alive[part.neurons.argmax()] |= not alive.any()
    return alive


@torch.no_grad()
def _cut_neurons(model: nn.Module, layer: ForestLayer, part: Measured, alive: BoolArray) -> None:
    """Remove neurons from what follows their layer; the read-out's bias takes up their response to the reference."""
    steps = chain_of(model)
    *between, readout = following(steps, next(place for place, step in enumerate(steps) if step is layer))
    assert isinstance(readout, nn.Linear)
    assert part.followed is not None
    gone, kept = (index_of(np.flatnonzero(each), readout.weight) for each in (~alive, alive))
    constant = torch.from_numpy(part.followed).to(readout.weight)[gone]
    readout.bias.add_(readout.weight[:, gone] @ constant)
    readout.weight = nn.Parameter(readout.weight[:, kept], readout.weight.requires_grad)
    readout.in_features = len(kept)
    for norm in (step for step in between if isinstance(step, nn.BatchNorm1d)):
        norm.num_features = len(kept)
        for name, values in [*norm.named_parameters(), *norm.named_buffers()]:
            if values.dim():
                part_of = values[kept]
                setattr(norm, name, nn.Parameter(part_of) if isinstance(values, nn.Parameter) else part_of)


@torch.no_grad()
def _cut_layer(layer: ForestLayer, part: Measured, keep: BoolArray, alive: BoolArray) -> None:
    forest, weight = layer.forest, layer.edge_weight.detach().double().cpu().numpy().copy()
    edges, nodes = _kept(forest, keep)
    bias = np.zeros(forest.nodes) if layer.node_bias is None else layer.node_bias.double().cpu().numpy().copy()
    gone = ~edges & nodes[forest.node_of_edge]
    lost = np.bincount(forest.node_of_edge[gone], weight[gone] * part.rows[forest.source[gone]], forest.nodes)
    bias += _mean_of_tied(forest, lost)
    silent = forest.roots[~nodes[forest.roots] & alive]  # neurons that lost everything and stay
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
    if not alive.all():
        whole = alive[forest.neuron_of_node]
        layer.forest, layer.out_features = forest.part(whole, whole[forest.node_of_edge]), int(alive.sum())
    layer.regrow(pruned, bias=layer.bias is not None or bool(bias[nodes].any()), windows=windows)
    layer.weight.copy_(torch.from_numpy(weight[edges][pruned.is_template[pruned.node_of_edge]]))
    if layer.bias is not None:
        layer.bias.copy_(torch.from_numpy(bias[nodes][pruned.is_template]))
    if pruned.template is not None and layer.bias is not None:
        # Tied dendrites were corrected by the mean of what each lost; the rest goes to the roots, or its mean if roots
        # are tied too.
        at_rest = trace(copy.deepcopy(layer).double(), torch.from_numpy(part.rows[: forest.in_features])).sums
        rest = np.zeros(pruned.nodes)
        rest[pruned.roots] = part.sums[forest.roots[alive]] - at_rest[pruned.roots.tolist()].numpy()
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


def _size(part: Measured, keep: BoolArray, cost: int) -> int:
    """Upper bound of the parameters of a layer that keeps these synapses, and of what follows its neurons: without
    biases, it may need none for constants."""
    forest = part.layer.forest
    edges, nodes = _kept(forest, keep)
    alive = _alive(part, keep)
    silent = len(np.unique(forest.bias_of_node[forest.roots[~nodes[forest.roots] & alive]]))  # tied roots are one
    has_bias = part.layer.bias is not None or bool(part.rows.any())
    weights, biases = len(np.unique(forest.weight_of_edge[edges])), len(np.unique(forest.bias_of_node[nodes]))
    return weights + silent + (biases + silent if has_bias else 0) + cost * int(alive.sum())


def _costs(model: nn.Module, measured: Sequence[Measured]) -> list[int]:
    """Parameters that each neuron has in the steps that follow its layer: norms, and its column of the read-out."""
    steps, costs = chain_of(model) if any(part.followed is not None for part in measured) else [], []
    for part in measured:
        followers = following(steps, next((at for at, step in enumerate(steps) if step is part.layer), len(steps)))
        norms = sum(map(parameters_of, followers[:-1])) // part.layer.forest.neurons
        costs.append(norms + int(followers[-1].out_features if followers else 0))  # type: ignore[arg-type]
    return costs


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
    ends = np.cumsum([len(part.synapses) for part in measured])[:-1]
    costs = _costs(model, measured)
    # Neurons with a read-out of their own compete with synapses by importance per parameter.
    starts = np.cumsum([0, *(part.layer.forest.neurons for part in measured)])
    owner = np.concatenate([
        part.layer.forest.neuron_of_synapse + start for part, start in zip(measured, starts, strict=False)
    ])  # fmt: skip
    worth = [
        np.full(part.layer.forest.neurons, np.inf) if part.followed is None else part.neurons / _price(part, cost)
        for part, cost in zip(measured, costs, strict=True)
    ]
    value = np.concatenate([np.concatenate([part.synapses for part in measured])[first], *worth])
    order = np.argsort(value, kind="stable")[: np.isfinite(value).sum()]
    followed = sum(cost * part.layer.forest.neurons for part, cost in zip(measured, costs, strict=True))
    rest = parameters_of(model) - sum(parameters_of(part.layer) for part in measured) - followed

    def kept(removed: int) -> list[BoolArray]:
        keep = np.ones(len(value), dtype=bool)
        keep[order[:removed]] = False
        return np.split(keep[: len(first)][weight] & keep[len(first) :][owner], ends)

    def size(removed: int) -> int:
        return rest + sum(map(_size, measured, kept(removed), costs))

    if (least := size(len(order))) > budget:
        raise OptionError(
            f"budget must be at least {least:,} parameters, the fewest that this model can be pruned to: got {budget:,}"
        )
    # Removing synapses and neurons never adds parameters.
    removed = bisect.bisect_left(range(len(order)), True, key=lambda removed: size(removed) <= budget)
    return _cut(model, measured, kept(removed)) if removed else copy.deepcopy(model)


def _price(part: Measured, cost: int) -> float:
    """Parameters that go with a neuron: those that follow it, and those of its tree if no other neuron has it."""
    forest = part.layer.forest
    return cost + (parameters_of(part.layer) / forest.neurons if forest.template is None else 0)
