"""The appendix CNN with DNM neurons as its classifier, beside `ConvMLN`.

After the hybrid of a CNN and the dendritic neuron model (DNM-CNN) of Wang et al. (2022), which the paper cites; the CNN
here is the paper's own, so that only the classifiers differ.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import check_one_of, check_probability
from ..layers import DNM
from .output import make_output
from .paper import PaperCNN
from .registry import register


@register("conv-dnm", example={"dendrites": 2})
class ConvDNM(nn.Module):
    """The appendix CNN with DNM neurons as its classifier.

    Args:
        out_features: number of classes, one neuron each, reading all 256 features.
        dendrites: dendrites of a neuron.
        k: steepness of the synapses.
        soma_k: steepness of the soma.
        soma_threshold: threshold of the soma.
        soma: `"log"` takes k_s (log V - log theta_s) as logits, `"logit"` k_s (V - theta_s). The softmax of `"log"`
            with `soma_k=1` is V over the sum of all neurons' V.
        dropout: probability of silencing a feature while training.
        output: `"logits"` or `"probabilities"`.
        device, dtype: as in `nn.Linear`.

    Shape:
        - Input: `(batch, 1, 32, 32)`.
        - Output: `(batch, out_features)`.

    Example:
        >>> net = ConvDNM(dendrites=2)
        >>> net(torch.randn(2, 1, 32, 32)).shape
        torch.Size([2, 10])
        >>> sum(p.numel() for p in net.head.parameters())
        10240
    """

    input_shape = PaperCNN.input_shape

    def __init__(
        self,
        out_features: int = 10,
        *,
        dendrites: int = 2,
        k: float = 5.0,
        soma_k: float = 1.0,
        soma_threshold: float = 0.5,
        soma: str = "log",
        dropout: float = 0.0,
        output: str = "logits",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(check_probability("dropout", dropout))
        self.output = make_output(output, out_features)
        self.cnn = PaperCNN(device=device, dtype=dtype)
        self.head = DNM(
            PaperCNN.out_features,
            out_features,
            dendrites=dendrites,
            k=k,
            soma_k=soma_k,
            soma_threshold=soma_threshold,
            soma=check_one_of("soma", soma, ("log", "logit")),
            device=device,
            dtype=dtype,
        )

    def forward(self, x: Tensor) -> Tensor:
        """Probabilities (or logits) of the classes."""
        y: Tensor = self.output(self.head(self.dropout(self.cnn(x))))
        return y
