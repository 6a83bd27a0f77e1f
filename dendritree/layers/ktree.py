"""`KTree`: k binary trees over the same inputs and a linear soma, one neuron of Jones and Kording.

Source: I. S. Jones and K. P. Kording, "Might a single neuron solve interesting machine learning problems through
successive computations on its dendritic tree?", Neural Computation 33(6), 2021, and its authors' code.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from ..errors import check_int, check_one_of
from ..levels import Branching
from ..wiring import Morton, Random, Shared, Wiring
from .activation import Activation
from .dendritic import DendriticLayer
from .description import call_and_trees

__all__ = ["KTREE_WIRINGS", "KTree"]

KTREE_WIRINGS: dict[str, type[Wiring]] = {"original": Shared, "permuted": Morton, "random": Random}
"""Input orders of the source by name."""


class KTree(DendriticLayer):
    r"""A layer of k-trees: each neuron is k trees over all inputs, joined by a linear soma.

    .. math:: y = c + \sum_{t=1}^{k} s_t \, T_t(x), \qquad
        T(x) = \mathrm{act}\Big(\sum_{j=1}^{b} w_j T_j(x) + c\Big), \qquad T_\text{leaf}(x) = x_i

    This is a `DendriticLayer` with `repeats=k`, the source's slope of 0.01 and the source's law for the soma; whatever
    takes a `DendriticLayer` takes it.

    Args:
        in_features: number of inputs. The source pads images with zeros until it is a power of two; any other number
            grows ragged trees, in which a level of n children has ceil(n / branching) nodes.
        out_features: number of neurons.
        trees: of each neuron, `k`.
        branching: children of every node, as in `DendriticLayer`; 2 in the source.
        wiring: the order in which every tree reads the inputs: `"original"`, `"permuted"` (along a Z-curve, so that
            every subtree sees a compact part of a square image) or `"random"` (one permutation a neuron, the same for
            all its trees); or a wiring, or a list with one for each tree.
        bias: whether nodes and the soma have a bias.
        dropout, dropout_per: as in `DendriticLayer`.
        activation: of the nodes, as in `DendriticLayer`; torch's LeakyReLU with its slope of 0.01 by default. The soma
            has none.
        backend, device, dtype: as in `DendriticLayer`.

    Shape:
        - Input: `(*, in_features)` with any leading dimensions.
        - Output: `(*, out_features)`: logits.

    Attributes:
        weight: shape `(edges,)`, at first N(0, 2 / children) in the trees (density gain) and uniform within
            1 / sqrt(k) in the soma, `nn.Linear`'s law.
        bias: shape `(nodes,)`, at first 0, or None.

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
        wiring: str | Wiring | Sequence[str | Wiring] = "original",
        bias: bool = True,
        dropout: float = 0.0,
        dropout_per: str = "synapse",
        activation: Activation = nn.LeakyReLU,
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            check_int("out_features", out_features),
            branching=branching,
            wiring=_input_order(wiring),
            repeats=check_int("trees", trees),
            ragged=True,
            bias=bias,
            dropout=dropout,
            dropout_per=dropout_per,
            activation=activation,
            backend=backend,
            device=device,
            dtype=dtype,
        )

    @property
    def trees(self) -> int:
        """Trees of a neuron, `k`."""
        assert self.repeats is not None
        return self.repeats

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw the weights anew: the trees' from N(0, 2 / children), the soma's as `nn.Linear` does; biases are 0."""
        super().reset_parameters()
        # Differs from the source, which leaves the soma's bias to nn.Linear's law too: here all start from 0.
        for soma in self.forest.roots.tolist():
            begin, end = self.forest.offsets[soma], self.forest.offsets[soma + 1]
            bound = float(end - begin) ** -0.5
            self.weight[begin:end].uniform_(-bound, bound)

    def extra_repr(self) -> str:
        """The constructor's call, the trees that were grown, their parameters."""
        names = {kind: name for name, kind in KTREE_WIRINGS.items()}
        orders = [repr(names[type(w)]) if w == type(w)() else repr(w) for w in self.wirings if type(w) in names]
        shown = orders if len(orders) == len(self.wirings) else [repr(wiring) for wiring in self.wirings]
        order = shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"
        return call_and_trees(self, [f"trees={self.trees}", f"branching={self.branching!r}", f"wiring={order}"])


def _input_order(wiring: str | Wiring | Sequence[str | Wiring]) -> Wiring | list[Wiring]:
    """The wirings that names of input orders stand for."""
    if isinstance(wiring, Wiring):
        return wiring
    if isinstance(wiring, Sequence) and not isinstance(wiring, str):
        return [each if isinstance(each, Wiring) else _named(each) for each in wiring]
    return _named(wiring)


def _named(order: str) -> Wiring:
    return KTREE_WIRINGS[check_one_of("wiring", order, KTREE_WIRINGS)]()
