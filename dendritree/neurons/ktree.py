"""`KTree`: k binary trees over the same inputs and a linear soma, the neuron of Jones and Kording.

Source: I. S. Jones and K. P. Kording, "Might a single neuron solve interesting machine learning problems through
successive computations on its dendritic tree?", Neural Computation 33(6), 2021, and its authors' code.
"""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import nn

from ..errors import check_int, check_one_of
from ..layers.activation import Activation
from ..layers.dendritic import DendriticLayer
from ..layers.forest_layer import CommonOptions
from ..randomness import generator_on
from ..tree.levels import Branching
from ..wiring import Morton, Random, Shared, Wiring
from .families import register_neuron

KTREE_WIRINGS: dict[str, type[Wiring]] = {"original": Shared, "permuted": Morton, "random": Random}
"""The source's input orders by name."""


class KTree(DendriticLayer):
    r"""A layer of k-trees: each neuron is k trees over all inputs, joined by a linear soma.

    .. math:: y = c + \sum_{t=1}^{k} s_t \, T_t(x), \qquad
        T(x) = \mathrm{act}\Big(\sum_{j=1}^{b} w_j T_j(x) + c\Big), \qquad T_\text{leaf}(x) = x_i

    This is a `DendriticLayer` with `repeats=k`, the source's slope of 0.01 and the source's initialization of the soma.
    It can be used wherever a `DendriticLayer` can.

    Args:
        in_features: number of inputs. The source pads images with zeros to a power of two; any other number grows
            ragged trees, in which a level of n children has ceil(n / branching) nodes.
        out_features: number of neurons.
        trees: trees per neuron, `k`.
        branching: children of every node, as in `DendriticLayer`; 2 in the source.
        wiring: the order in which every tree reads the inputs: `"original"`, `"permuted"` (along a Z-curve, so that
            every subtree sees a compact part of a square image) or `"random"` (one permutation per neuron, the same for
            all its trees); or a wiring object.
        dropout: as in `DendriticLayer`.
        activation: activation of the nodes, as in `DendriticLayer`; torch's LeakyReLU, with a slope of 0.01, by
            default. The soma has none.
        options: `bias` (of the nodes and the soma), `dropout_per`, `backend`, `device`, `dtype`, as in
            `DendriticLayer`.

    Shape:
        - Input: `(*, in_features)` with any leading dimensions.
        - Output: `(*, out_features)`: logits.

    Attributes:
        weight: shape `(edges,)`, initially N(0, 2 / children) in the trees (density gain) and uniform within
            1 / sqrt(k) in the soma, as in `nn.Linear`.
        bias: shape `(nodes,)`, initially 0, or None.

    Example:
        >>> neuron = KTree(1024, trees=32)
        >>> neuron(torch.randn(5, 1024)).shape, sum(p.numel() for p in neuron.parameters())
        (torch.Size([5, 1]), 98241)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int = 1,
        *,
        trees: int = 1,
        branching: Branching = 2,
        wiring: str | Wiring = "original",
        dropout: float = 0.0,
        activation: Activation = nn.LeakyReLU,
        **options: Unpack[CommonOptions],
    ) -> None:
        super().__init__(
            in_features,
            check_int("out_features", out_features),
            branching=branching,
            wiring=_input_order(wiring),
            repeats=check_int("trees", trees),
            ragged=True,
            dropout=dropout,
            activation=activation,
            **options,
        )

    @property
    def trees(self) -> int:
        """Trees per neuron, `k`."""
        assert self.repeats is not None
        return self.repeats

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Redraw the weights: the trees' from N(0, 2 / children), the soma's as `nn.Linear` does; biases are 0."""
        super().reset_parameters()
        # Differs from the source, which draws the soma's bias as nn.Linear does: here all biases start at 0.
        for soma in self.forest.roots.tolist():
            begin, end = self.forest.offsets[soma], self.forest.offsets[soma + 1]
            bound = float(end - begin) ** -0.5
            self.weight[begin:end].uniform_(-bound, bound, generator=generator_on(self.weight.device))

    def _tree_options(self) -> dict[str, Any]:
        order = next((name for name, kind in KTREE_WIRINGS.items() if self.wiring == kind()), self.wiring)
        return {"trees": self.trees, "branching": self.branching, "wiring": order}


def _input_order(wiring: str | Wiring) -> Wiring:
    if isinstance(wiring, Wiring):
        return wiring
    return KTREE_WIRINGS[check_one_of("wiring", wiring, KTREE_WIRINGS)]()


@register_neuron(
    "ktree",
    label="k-trees",
    title="k-trees over all inputs, a linear soma per output",
    choices={"branching": (2, 4, 8, 16, 32), "wiring": ("original", "random")},
)
def hidden_trees(
    in_features: int,
    out_features: int,
    *,
    branching: int = 2,
    wiring: str = "original",
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> DendriticLayer:
    """The trees of k-trees as a hidden layer: a linear read-out is then their soma, one per output."""
    order = _input_order(wiring)
    size: Any = {"fan_in": in_features} if order.any_fan_in else {"ragged": True}
    return DendriticLayer(
        in_features,
        out_features,
        branching=branching,
        wiring=order,
        activation=nn.LeakyReLU(0.01),
        **size,
        device=device,
        dtype=dtype,
    )
