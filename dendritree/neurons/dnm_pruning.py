"""Which synapses and dendrites of a DNM can be removed: bounds over the range of the inputs.

A synapse is monotonic in its input, so the ends of the range bound it; log Z and V are sums, so bounds add up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import FormatError, OptionError, ShapeError

STATES = ("direct", "inverse", "constant 0", "constant 1")
"""The four states of a synapse, after Ji et al. (2016)."""

TABLE_KEYS = ("source", "dendrite", "neuron", "log_scale")
"""Buffers of a pruned layer."""


@dataclass(frozen=True)
class SynapseTable:
    """The synapses of a layer as lists, in which a dendrite need not read all inputs."""

    weight: Tensor
    """w of each synapse."""
    threshold: Tensor
    """q of each synapse."""
    source: Tensor
    """The input of each synapse."""
    dendrite: Tensor
    """The dendrite of each synapse."""
    neuron: Tensor
    """The neuron of each dendrite."""
    log_scale: Tensor
    """The log of a constant factor of each dendrite."""

    def select(self, synapses: Tensor, dendrites: Tensor, log_scale: Tensor) -> SynapseTable:
        """The synapses and dendrites that two masks keep; the dendrites are renumbered."""
        synapses = synapses & dendrites[self.dendrite]
        number = dendrites.cumsum(0) - 1
        return SynapseTable(
            self.weight[synapses],
            self.threshold[synapses],
            self.source[synapses],
            number[self.dendrite[synapses]],
            self.neuron[dendrites],
            log_scale[dendrites],
        )

    def per_dendrite(self, values: Tensor) -> Tensor:
        """Sums over the synapses of each dendrite."""
        return torch.zeros_like(self.log_scale).index_add(0, self.dendrite, values)


def check_range(low: float | Tensor, high: float | Tensor, in_features: int) -> tuple[Tensor, Tensor]:
    """The least and greatest value of each input, in float64, from one number for all or one for each.

    >>> check_range(0.0, torch.tensor([1.0, 2.0]), 2)[1].tolist()
    [1.0, 2.0]
    """
    ends = []
    for name, end in (("low", low), ("high", high)):
        try:
            tensor = torch.as_tensor(end, dtype=torch.float64).detach().cpu()
        except (TypeError, ValueError, RuntimeError):
            raise OptionError(f"{name} must be a number or one for each input: got {end!r:.60}") from None
        if tensor.shape not in ((), (in_features,)):
            raise ShapeError(f"{name} must be a number or one for each of {in_features} inputs: got {end!r:.60}")
        ends.append(tensor.expand(in_features))
    if not (ends[0].isfinite() & ends[1].isfinite() & (ends[0] <= ends[1])).all():
        raise OptionError(f"low and high must be finite, low at most high: got {low!r:.60} and {high!r:.60}")
    return ends[0], ends[1]


def _ends(table: SynapseTable, k: float, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """k (w x - q) of each synapse at both ends of its input's range."""
    at_low, at_high = (k * (table.weight * end[table.source] - table.threshold) for end in (low, high))
    return at_low, at_high


def synapse_states(table: SynapseTable, k: float, low: Tensor, high: Tensor) -> Tensor:
    """Indices into `STATES`: which side of 0.5 a synapse is on at both ends of the range."""
    before, after = (end > 0 for end in _ends(table, k, low, high))
    state = torch.where(before, torch.where(after, 3, 1), torch.where(after, 0, 2))
    return state.to(torch.int8)


def pruned_table(
    table: SynapseTable, k: float, low: Tensor, high: Tensor, *, tolerance: float, relative: bool
) -> SynapseTable:
    """Remove as much as changes no neuron's V (log V if `relative`) by more than `tolerance` in the range.

    Dendrites are removed first, for up to half the tolerance; the dendrites that are kept share the rest of it.
    """
    log_y = torch.stack([F.logsigmoid(end) for end in _ends(table, k, low, high)])
    bottom, top = log_y.amin(0), log_y.amax(0)
    z_bottom, z_top = (table.log_scale + table.per_dendrite(bound) for bound in (bottom, top))
    stays = torch.ones(len(table.neuron), dtype=torch.bool)
    allowance = torch.empty_like(z_top)  # of |change of log Z|, for each dendrite
    for neuron in sorted(set(table.neuron.tolist())):
        dendrites = torch.nonzero(table.neuron == neuron).flatten()
        dendrites = dendrites[z_top[dendrites].argsort()]
        going, left = _dead(z_bottom[dendrites], z_top[dendrites], tolerance, relative)
        stays[dendrites[:going]] = False
        kept = dendrites[going:]
        # Z changes by at most z_top (exp(change of log Z) - 1): softplus(log a - log z) is log(1 + a / z)
        share = math.log(left / max(1, len(kept)))
        allowance[kept] = left if relative else F.softplus(share - z_top[kept])
    half_width = (top - bottom) / 2
    folds = _fits(half_width, table.dendrite, allowance)
    middle = table.per_dendrite(torch.where(folds, (top + bottom) / 2, 0.0))
    return table.select(~folds, stays, table.log_scale + middle)


def _dead(z_bottom: Tensor, z_top: Tensor, tolerance: float, relative: bool) -> tuple[int, float]:
    """How many of a neuron's sorted dendrites can be removed for half the tolerance, and how much of it is left."""
    gone = z_top.logcumsumexp(0)  # log of what the first 1, 2, ... dendrites can add up to
    if relative:  # log V falls by at most log(1 + most of what goes / least of what stays)
        rest = z_bottom.flip(0).logcumsumexp(0).flip(0)
        rest = torch.cat([rest[1:], rest.new_full((1,), -math.inf)])
        cost = F.softplus(gone - rest)  # infinite for the last dendrite: one always stays
    else:
        cost = gone.exp()
    going = int((cost <= tolerance / 2).sum())
    return going, tolerance - (float(cost[going - 1]) if going else 0.0)


def _fits(cost: Tensor, group: Tensor, allowance: Tensor) -> Tensor:
    """A mask of the cheapest items of each group whose costs together are within the group's allowance."""
    order = cost.argsort()
    order = order[group[order].argsort(stable=True)]
    members = torch.split(cost[order], group.bincount(minlength=len(allowance)).tolist())
    # one sum per group: in a common sum, a huge cost in another group would round small ones away
    within = torch.cat([cost[:0], *(some.cumsum(0) for some in members)])
    fits = torch.empty_like(group, dtype=torch.bool)
    fits[order] = within <= allowance[group[order]]
    return fits


def check_table(state: Mapping[str, Any], in_features: int, out_features: int, most: int) -> SynapseTable:
    """Read the table in the state dict of a pruned layer; one that does not fit the layer is rejected."""
    keys = ("weight", "threshold", *TABLE_KEYS)
    missing = [key for key in keys if not isinstance(state.get(key), Tensor)]
    if missing:
        raise FormatError(f"the state dict of a pruned DNM must hold {', '.join(keys)}: {', '.join(missing)} missing")
    table = SynapseTable(*(state[key].detach() for key in keys))
    synapses, dendrites = len(table.source.flatten()), len(table.neuron.flatten())
    for key, length, limit in (
        ("weight", synapses, None),
        ("threshold", synapses, None),
        ("source", synapses, in_features),
        ("dendrite", synapses, dendrites),
        ("neuron", dendrites, out_features),
        ("log_scale", dendrites, None),
    ):
        values = getattr(table, key)
        if values.shape != (length,):
            raise FormatError(f"{key} of a pruned DNM must have shape ({length},): got {tuple(values.shape)}")
        if (limit is None) != values.is_floating_point():
            raise FormatError(f"{key} of a pruned DNM must be {'integers' if limit else 'floats'}: got {values.dtype}")
        if limit is not None and length and (int(values.min()) < 0 or int(values.max()) >= limit):
            ends = f"{int(values.min())} to {int(values.max())}"
            raise FormatError(f"{key} of a pruned DNM must be from 0 to {limit - 1}: got {ends}")
    if dendrites and (bool((table.neuron.diff() < 0).any()) or int(table.neuron.bincount().max()) > most):
        raise FormatError(
            f"neuron of a pruned DNM must be sorted, each at most {most} times: got {table.neuron.tolist()}"
        )
    return table
