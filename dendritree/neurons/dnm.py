"""`DNM`: the dendritic neuron model, whose dendrites multiply sigmoids of single inputs.

Source: Todo, Tamura, Yamashita and Tang (2014), "Unsupervised learnable neuron model with nonlinear interaction on
dendrites", Neural Networks 60.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import check_int, check_number, check_one_of
from ..layers.neuron_layer import NeuronLayer, as_rows
from ..ops.neurons.log_products import log_sigmoid_products
from ..randomness import generator_on
from .families import register_neuron

SOMAS = ("sigmoid", "logit", "log")
"""The output of a neuron: O, the logit of O, or a logit in the log domain that gives the same decisions."""


@register_neuron(
    "dnm",
    label="DNM",
    title="DNM: sums of products of sigmoid synapses",
    choices={"dendrites": (1, 1, 2, 4), "k": (1.0, 3.0, 5.0), "soma": ("sigmoid", "log")},
)
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
        dendrites: dendrites per neuron; each reads all inputs.
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

    Example:
        >>> layer = DNM(784, 10, dendrites=2)
        >>> layer(torch.rand(128, 784)).shape
        torch.Size([128, 10])
        >>> sum(p.numel() for p in layer.parameters())
        31360
    """

    weight: nn.Parameter
    threshold: nn.Parameter

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
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw w within sqrt(8 / n) of 0 and q within half of that of -log(n) / k, for n inputs."""
        synapses = torch.tensor(float(self.in_features), device=self.weight.device)
        reach = (8 / synapses).sqrt()
        generator = generator_on(self.weight.device)
        self.weight.uniform_(-1, 1, generator=generator).mul_(reach)
        self.threshold.uniform_(-0.5, 0.5, generator=generator).mul_(reach).sub_(synapses.log() / self.k)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (..., out_features) for inputs of shape (..., in_features)."""
        rows = as_rows(x, self.in_features, self.weight.dtype)
        gain, shift = self.k * self.weight, self.k * self.threshold
        log_z = log_sigmoid_products(rows, gain.flatten(0, 1), shift.flatten(0, 1))
        log_z = log_z.reshape(rows.shape[0], self.out_features, self.dendrites)
        if self.soma == "log":
            y = self.soma_k * (log_z.logsumexp(-1) - math.log(self.soma_threshold))
        else:
            y = self.soma_k * (log_z.exp().sum(-1) - self.soma_threshold)
            if self.soma == "sigmoid":
                y = torch.sigmoid(y)
        return y.reshape(*x.shape[:-1], self.out_features)

    @property
    def multiply_adds(self) -> int:
        """For one sample: w x - q and a factor of the product for each synapse, a term of V for each dendrite."""
        return 2 * self.weight.numel() + self.out_features * self.dendrites

    def _options(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in ("dendrites", "k", "soma_k", "soma_threshold")}
        return options | self._changed(soma=self.soma)
