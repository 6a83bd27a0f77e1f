"""`DNM`: the dendritic neuron model, whose dendrites multiply sigmoids of single inputs.

Source: Todo, Tamura, Yamashita and Tang (2014), "Unsupervised learnable neuron model with nonlinear interaction on
dendrites", Neural Networks 60. Pruning to a logic circuit: Ji, Gao, Cheng, Tang and Todo (2016), "An approximate logic
neuron model with a dendritic structure", Neurocomputing 173.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import OptionError, check_int, check_one_of
from ..layers.base import NeuronLayer, as_rows, check_number
from ..ops.neurons.products import log_sigmoid, log_sigmoid_products
from ..randomness import generator_on
from .dnm_logic import Logic, read_logic
from .dnm_pruning import TABLE_KEYS, SynapseTable, check_range, check_table, pruned_table, synapse_states

SOMAS = ("sigmoid", "logit", "log")
"""The output of a neuron: O, the logit of O, or a logit in the log domain that gives the same decisions."""


class DNM(NeuronLayer):
    r"""A layer of neurons whose dendrites multiply one sigmoid per input: soft logic.

    For a neuron with dendrites j and inputs i, synapses Y, dendrites Z, membrane V and output O:

    .. math::
        Y_{ij} = \sigma(k (w_{ij} x_i - q_{ij})), \quad Z_j = \prod_i Y_{ij}, \quad V = \sum_j Z_j, \quad
        O = \sigma(k_s (V - \theta_s))

    The product is computed as a sum of logarithms, and no tensor of (samples, dendrites, inputs) is kept for the
    backward pass: memory stays near that of the weights, and time is about 3 sigmoids per synapse and sample.

    Args:
        in_features: number of inputs.
        out_features: number of neurons.
        dendrites: dendrites of a neuron; each reads all inputs.
        k: steepness of the synapses.
        soma_k: steepness of the soma, `k_s`.
        soma_threshold: threshold of the soma, `theta_s`.
        soma: `"sigmoid"` gives O; `"logit"` gives k_s (V - theta_s), for losses that take logits; `"log"` gives
            k_s (log V - log theta_s), which is positive exactly where O > 0.5 and, unlike the others, has gradients
            where V is too small for a float.
        device, dtype: as in `nn.Linear`.

    Shape:
        - Input: `(*, in_features)` with any leading dimensions.
        - Output: `(*, out_features)`.

    Attributes:
        weight: w, shape `(out_features, dendrites, in_features)`, initially uniform within sqrt(8 / in_features) of 0.
        threshold: q, of the same shape, initially about -log(in_features) / k: a synapse is then nearly constant 1,
            1 - Y about 1 / in_features, and a dendrite near exp(-1) whatever the number of inputs. (With uniform q, as
            in the source, Z is about exp(-1000) for 784 inputs, which leaves no gradient to learn from.)
        source, dendrite, neuron, log_scale: None, or in a pruned layer, the input and the dendrite of each synapse
            that is left, the neuron of each dendrite, and the log of the product of its removed synapses. `weight` and
            `threshold` of a pruned layer have shape `(synapses,)`.

    Example:
        >>> layer = DNM(784, 10, dendrites=2)
        >>> layer(torch.rand(128, 784)).shape
        torch.Size([128, 10])
        >>> sum(p.numel() for p in layer.parameters())
        31360
    """

    weight: nn.Parameter
    threshold: nn.Parameter
    source: Tensor | None
    dendrite: Tensor | None
    neuron: Tensor | None
    log_scale: Tensor | None
    _place: Tensor | None  # in a pruned layer, the dendrite of each place in (neurons, dendrites); the last + 1 if none

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        dendrites: int,
        k: float = 5.0,
        soma_k: float = 5.0,
        soma_threshold: float = 0.5,
        soma: str = "sigmoid",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dtype, in_features=in_features, out_features=out_features)
        self.dendrites = check_int("dendrites", dendrites)
        self.k = check_number("k", k)
        self.soma_k = check_number("soma_k", soma_k)
        self.soma = check_one_of("soma", soma, SOMAS)
        self.soma_threshold = check_number("soma_threshold", soma_threshold, positive=self.soma == "log")
        shape = (self.out_features, self.dendrites, self.in_features)
        self._add_parameters(device, dtype, weight=shape, threshold=shape)
        for key in TABLE_KEYS:
            self.register_buffer(key, None)
        self.register_buffer("_place", None, persistent=False)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw w within sqrt(8 / n) of 0 and q within half of that of -log(n) / k, for n synapses per dendrite."""
        synapses = torch.tensor(float(self.in_features), device=self.weight.device)
        if self.dendrite is not None and self.log_scale is not None:  # a pruned layer: dendrites differ
            synapses = self.dendrite.bincount(minlength=len(self.log_scale))[self.dendrite].float()
            self.log_scale.zero_()
        reach = (8 / synapses).sqrt()
        generator = generator_on(self.weight.device)
        self.weight.uniform_(-1, 1, generator=generator).mul_(reach)
        self.threshold.uniform_(-0.5, 0.5, generator=generator).mul_(reach).sub_(synapses.log() / self.k)

    # --------------------------------------------------------------------------------------------------- computing

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (..., out_features) for inputs of shape (..., in_features)."""
        rows = as_rows(x, self.in_features, self.weight.dtype)
        log_z = self._log_dendrites(rows)
        if self.soma == "log":
            log_v = self._sum_dendrites(log_z, logarithm=True)
            y = self.soma_k * (log_v - math.log(self.soma_threshold))
        else:
            y = self.soma_k * (self._sum_dendrites(log_z, logarithm=False) - self.soma_threshold)
            if self.soma == "sigmoid":
                y = torch.sigmoid(y)
        return y.reshape(*x.shape[:-1], self.out_features)

    def _log_dendrites(self, rows: Tensor) -> Tensor:
        """log Z of all dendrites, shape (samples, dendrites of all neurons)."""
        gain, shift = self.k * self.weight, self.k * self.threshold
        if self.source is None or self.dendrite is None or self.log_scale is None:
            return log_sigmoid_products(rows, gain.flatten(0, 1), shift.flatten(0, 1))
        log_y = log_sigmoid(rows[:, self.source] * gain - shift)
        return self.log_scale.repeat(rows.shape[0], 1).index_add(1, self.dendrite, log_y)

    def _sum_dendrites(self, log_z: Tensor, *, logarithm: bool) -> Tensor:
        """V of all neurons, shape (samples, neurons), or its logarithm."""
        if self._place is not None:  # neurons have different numbers of dendrites left: missing ones are log 0
            lacking = log_z.new_full((log_z.shape[0], 1), -math.inf)
            log_z = torch.cat([log_z, lacking], 1)[:, self._place]
        each = log_z.reshape(log_z.shape[0], self.out_features, self.dendrites)
        return each.logsumexp(-1) if logarithm else each.exp().sum(-1)

    # ----------------------------------------------------------------------------------------------------- reading

    @property
    def is_pruned(self) -> bool:
        """Whether synapses have been removed; see `prune`."""
        return self.source is not None

    @property
    def multiply_adds(self) -> int:
        """For one sample: w x - q and a factor of the product for each synapse, a term of V for each dendrite."""
        dendrites = self.out_features * self.dendrites if self.neuron is None else len(self.neuron)
        return 2 * self.weight.numel() + dendrites

    @torch.no_grad()
    def table(self) -> SynapseTable:
        """The synapses as one list, in float64 on the CPU, whether the layer is pruned or not.

        >>> DNM(3, 2, dendrites=2).table().source.tolist()
        [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2]
        """
        weight, threshold = (p.detach().flatten().double().cpu() for p in (self.weight, self.threshold))
        if self.is_pruned:
            source, dendrite, neuron, log_scale = (getattr(self, key).cpu() for key in TABLE_KEYS)
            return SynapseTable(weight, threshold, source, dendrite, neuron, log_scale.double())
        dendrites = self.out_features * self.dendrites
        return SynapseTable(
            weight,
            threshold,
            source=torch.arange(self.in_features).repeat(dendrites),
            dendrite=torch.arange(dendrites).repeat_interleave(self.in_features),
            neuron=torch.arange(self.out_features).repeat_interleave(self.dendrites),
            log_scale=torch.zeros(dendrites, dtype=torch.float64),
        )

    def states(self, low: float | Tensor = 0.0, high: float | Tensor = 1.0) -> Tensor:
        """What each synapse does over a range of inputs: indices into `dnm_pruning.STATES`, in the shape of `weight`.

        0 direct (rises through 0.5), 1 inverse (falls through 0.5), 2 constant 0 (below 0.5), 3 constant 1.

        >>> layer = DNM(2, 1, dendrites=1)
        >>> _ = layer.weight.data.copy_(torch.tensor([[[1.0, -1.0]]])), layer.threshold.data.fill_(0.5)
        >>> layer.states().tolist()
        [[[0, 2]]]
        """
        ends = check_range(low, high, self.in_features)
        return synapse_states(self.table(), self.k, *ends).reshape(self.weight.shape)

    def prune(self, low: float | Tensor = 0.0, high: float | Tensor = 1.0, *, tolerance: float = 1e-3) -> DNM:
        """A smaller layer, whose outputs differ by no more than `tolerance` on inputs from `low` to `high`.

        Synapses that are constant over the range (0, 1 or anything between) become one factor of their dendrite, and
        dendrites that stay near 0 are removed, as many as the tolerance allows in total. The bound holds for every
        input in the range, not only for data; rounding errors of the layer's dtype add to it. A pruned layer can be
        trained, pruned again, saved and loaded; an unpruned layer that loads the state dict of a pruned one becomes
        pruned too.

        Args:
            low, high: the range of the inputs, one number or one for each input, such as `x.amin(0)` and `x.amax(0)`.
            tolerance: greatest change of an output.

        >>> layer = DNM(2, 1, dendrites=2)
        >>> w, q = torch.tensor([[[9.0, 0], [0, -9]]]), torch.tensor([[[4.0, -9], [9, 5]]])
        >>> _ = layer.weight.data.copy_(w), layer.threshold.data.copy_(q)
        >>> layer.prune()  # the second synapse is constant 1, the second dendrite constant 0
        DNM(2, 1, dendrites=2, k=5.0, soma_k=5.0, soma_threshold=0.5; pruned to 1 of 4 synapses, 1 of 2 dendrites)
        """
        tolerance = check_number("tolerance", tolerance)
        lipschitz = self.soma_k / 4 if self.soma == "sigmoid" else self.soma_k  # of the output in V, or in log V
        ends, relative = check_range(low, high, self.in_features), self.soma == "log"
        table = pruned_table(self.table(), self.k, *ends, tolerance=tolerance / lipschitz, relative=relative)
        options = {"k": self.k, "soma_k": self.soma_k, "soma_threshold": self.soma_threshold, "soma": self.soma}
        device, dtype = self.weight.device, self.weight.dtype
        small = DNM(self.in_features, self.out_features, dendrites=self.dendrites, **options, device="meta")  # type: ignore[arg-type]
        small._take_table(table, device, dtype)
        return small.train(self.training)

    def logic(self, names: Sequence[str] | None = None, low: float | Tensor = 0.0, high: float | Tensor = 1.0) -> Logic:
        """The rule of each neuron with its synapses taken as switches, as text to print and as a function of inputs.

        Args:
            names: one for each input; x0, x1, ... if None.
            low, high: the range of the inputs, as for `prune`.

        >>> layer = DNM(2, 1, dendrites=2)
        >>> w, q = torch.tensor([[[9.0, -9], [-9, 9]]]), torch.tensor([[[4.0, -4], [-5, 3]]])
        >>> _ = layer.weight.data.copy_(w), layer.threshold.data.copy_(q)
        >>> print(layer.logic(["left", "right"]))
        neuron 0 = (left > 0.444 and right < 0.444) or (left < 0.556 and right > 0.333)
        """
        if names is None:
            names = [f"x{i}" for i in range(self.in_features)]
        if isinstance(names, str) or len(names) != self.in_features or not all(isinstance(n, str) for n in names):
            raise OptionError(f"names must be one string for each of {self.in_features} inputs: got {names!r:.60}")
        ends = check_range(low, high, self.in_features)
        return read_logic(self.table(), self.k, self.soma_threshold, self.out_features, tuple(names), *ends)

    def extra_repr(self) -> str:
        """The constructor's call, and the synapses and dendrites left by pruning."""
        if self.neuron is None:
            return super().extra_repr()
        whole = self.out_features * self.dendrites
        synapses = f"{self.weight.numel()} of {whole * self.in_features} synapses"
        return f"{super().extra_repr()}; pruned to {synapses}, {len(self.neuron)} of {whole} dendrites"

    def _options(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in ("dendrites", "k", "soma_k", "soma_threshold")}
        return options | self._changed(soma=self.soma)

    # ------------------------------------------------------------------------------------------------------- state

    def _take_table(self, table: SynapseTable, device: torch.device, dtype: torch.dtype) -> None:
        """Become the pruned layer that a table describes."""
        for key in ("weight", "threshold"):
            values = getattr(table, key).to(device, dtype)
            setattr(self, key, nn.Parameter(values, requires_grad=getattr(self, key).requires_grad))
        for key in TABLE_KEYS:
            values = getattr(table, key)
            setattr(self, key, values.to(device, dtype if values.is_floating_point() else values.dtype))
        self._follow_device()

    def _follow_device(self) -> None:
        """Find the places of a pruned layer's dendrites, once and not in every call: an export cannot search."""
        if self.neuron is not None:
            neurons = torch.arange(self.out_features, device=self.neuron.device).unsqueeze(1)
            first, end = (torch.searchsorted(self.neuron, neurons, right=right) for right in (False, True))
            place = first + torch.arange(self.dendrites, device=self.neuron.device)
            self._place = torch.where(place < end, place, len(self.neuron)).flatten()

    def _check_structure(self, state: Mapping[str, Any]) -> None:
        """Become the pruned layer that a state dict describes: its parameters have other shapes."""
        if "source" in state:
            table = check_table(state, self.in_features, self.out_features, self.dendrites)
            self._take_table(table, self.weight.device, self.weight.dtype)
