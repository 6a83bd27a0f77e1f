"""What models share: sizes, dropout and the step from logits to the output."""

from __future__ import annotations

from torch import nn

from ..errors import check_int, check_one_of, check_probability
from ..layers.linear import Dropout
from .chain import Chain

OUTPUTS = ("logits", "probabilities")
"""The output of a classifier; the paper uses probabilities."""


def make_output(output: str, out_features: int) -> nn.Module:
    """The last step of a classifier: sigmoid for one output, softmax for more, or nothing for logits.

    >>> make_output("probabilities", 1), make_output("probabilities", 10), make_output("logits", 10)
    (Sigmoid(), Softmax(dim=-1), Identity())
    """
    if check_one_of("output", output, OUTPUTS) == "logits":
        return nn.Identity()
    return nn.Sigmoid() if out_features == 1 else nn.Softmax(dim=-1)


class Classifier(Chain):
    """The base of models with checked sizes, dropout and an output step."""

    def __init__(self, in_features: int, out_features: int, dropout: float, output: str) -> None:
        super().__init__()
        self.in_features = check_int("in_features", in_features)
        self.out_features = check_int("out_features", out_features)
        self.dropout = Dropout(check_probability("dropout", dropout))
        self.output = make_output(output, self.out_features)
