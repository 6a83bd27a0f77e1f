"""`DANNClassifier`: dendrites and somata with restricted input sampling, and a dense read-out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import check_int, check_probability
from ..layers import DANN
from ..layers.activation import Activation
from .controls import make_linear
from .output import make_output
from .registry import register


@register("dann", example={"in_features": 16, "out_features": 3, "somata": 5, "synapses": 4})
class DANNClassifier(nn.Module):
    """The dANN of Chavlis and Poirazi (2025): somata with dendrites in receptive fields, and a dense read-out.

    With `S` somata of `D` dendrites of 16 synapses and `C` classes it has 17 D S + (D + 1) S + (S + 1) C parameters.

    Args:
        in_features: number of inputs.
        out_features: number of classes; 1 for a yes-or-no question.
        somata: number of somata, `S`.
        dendrites: of each soma, `D`.
        synapses, field, image_shape, activation, seed, backend: as in `DANN`; field `"all"` is the source's pdANN.
        dropout: probability of silencing a soma's output while training.
        output: `"logits"` or `"probabilities"`.
        device, dtype: as in `nn.Linear`.

    Example:
        >>> net = DANNClassifier(784, 10, somata=64, dendrites=4, field="local")
        >>> sum(p.numel() for p in net.parameters()) == 17 * 4 * 64 + (4 + 1) * 64 + (64 + 1) * 10
        True
    """

    def __init__(
        self,
        in_features: int,
        out_features: int = 10,
        *,
        somata: int = 64,
        dendrites: int = 2,
        synapses: int | None = None,
        field: str = "random",
        image_shape: tuple[int, ...] | None = None,
        activation: Activation = "leaky_relu",
        seed: int | None = None,
        dropout: float = 0.0,
        output: str = "logits",
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = check_int("in_features", in_features)
        self.out_features = check_int("out_features", out_features)
        self.dropout = nn.Dropout(check_probability("dropout", dropout))
        self.output = make_output(output, self.out_features)
        self.neurons = DANN(
            self.in_features,
            check_int("somata", somata),
            dendrites=dendrites,
            synapses=synapses,
            field=field,
            image_shape=image_shape,
            activation=activation,
            seed=seed,
            backend=backend,
            device=device,
            dtype=dtype,
        )
        self.readout = make_linear(self.neurons.out_features, self.out_features, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities (or logits) of the classes."""
        y: Tensor = self.output(self.readout(self.dropout(self.neurons(x))))
        return y
